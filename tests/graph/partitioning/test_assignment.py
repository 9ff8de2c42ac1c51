import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps.graph.partitioning.assignment import Contiguous, Hashed, Table, cut_by_weight
from sigps.group import Alone


def contiguous():
    return Contiguous(np.array([0, 0, 3, 3, 9, 9]))


def hashed():
    return Hashed(50, np.full(4, 0.25), seed=1)


def table():
    return Table(np.array([2, 0, 0, 2, 4, 1]), 6)


@pytest.mark.parametrize("make", [contiguous, hashed, table])
def test_parts_own_what_owner_of_says(make):
    assignment = make()
    gids = np.arange(assignment.num_vertices)
    owners = assignment.owner_of(gids)
    assert owners.dtype == np.int32
    for part in range(assignment.num_partitions):
        owned = assignment.owned(part)
        assert owned.dtype == np.int64
        assert owned.tolist() == [gid for gid in gids.tolist() if owners[gid] == part]
    assert assignment.owner_of(gids[:0]).tolist() == []
    assert assignment.owner_of(gids[::-1]).tolist() == owners[::-1].tolist()


def test_contiguous_parts_may_be_empty():
    assert contiguous().owner_of(np.arange(9)).tolist() == [1, 1, 1, 3, 3, 3, 3, 3, 3]
    assert [contiguous().owned(part).size for part in range(5)] == [0, 3, 0, 6, 0]


def test_hashed_parts_get_their_shares():
    shares = np.array([0.5, 0.2, 0.3])
    counts = np.bincount(Hashed(10_000, shares, 1).owner_of(np.arange(10_000)))
    deviations = np.sqrt(10_000 * shares * (1 - shares))
    assert np.all(np.abs(counts - 10_000 * shares) < 5 * deviations)


def test_hashed_parts_differ_by_seed():
    gids = np.arange(1000)
    owners = [Hashed(1000, np.full(4, 0.25), seed).owner_of(gids) for seed in (1, 2)]
    # A quarter agrees by chance, with a standard deviation of 13.7.
    assert abs(np.count_nonzero(owners[0] == owners[1]) - 250) < 5 * 13.7


def test_hashed_parts_are_found_block_by_block(monkeypatch):
    whole = [hashed().owned(part).tolist() for part in range(4)]
    monkeypatch.setattr("sigps.graph.partitioning.assignment._BLOCK", 7)
    assert [hashed().owned(part).tolist() for part in range(4)] == whole


@pytest.mark.parametrize(
    ("num_partitions", "num_bytes"), [(1, 1), (256, 1), (257, 2), (65536, 2), (65537, 4)]
)
def test_a_table_takes_no_more_bytes_than_its_parts_need(num_partitions, num_bytes):
    parts = Table(np.array([num_partitions - 1, 0]), num_partitions)
    assert parts.owners.itemsize == num_bytes
    assert parts.owner_of(np.array([0, 1])).tolist() == [num_partitions - 1, 0]


def test_an_assignment_says_how_it_is_kept():
    assert repr(table()) == "<Table: 6 vertices in 6 partitions>"


WEIGHTS = st.lists(st.integers(1, 30), max_size=30)
CAPACITIES = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def nearest_cuts(weights, shares):
    """Return the cuts by trying every place; of two equally near ones the later."""
    behind = [sum(weights[:row]) for row in range(len(weights) + 1)]
    goals = np.cumsum(shares)[:-1] * behind[-1]
    places = range(len(weights), -1, -1)
    inner = [min(places, key=lambda row: abs(behind[row] - goal)) for goal in goals]
    return [0, *inner, len(weights)]


@given(WEIGHTS, CAPACITIES)
def test_each_cut_is_the_nearest(weights, capacities):
    shares = np.array(capacities) / sum(capacities)
    cuts = cut_by_weight(np.array(weights, dtype=np.int64), shares, Alone())
    assert cuts.dtype == np.int64
    assert cuts.tolist() == nearest_cuts(weights, shares)


@settings(deadline=None, max_examples=30)
@given(WEIGHTS, CAPACITIES, st.integers(1, 4), st.data())
def test_cuts_do_not_depend_on_how_ranks_hold_the_rows(run_ranks, weights, capacities, num_ranks, data):
    shares = np.array(capacities) / sum(capacities)
    ends = st.lists(st.integers(0, len(weights)), min_size=num_ranks - 1, max_size=num_ranks - 1)
    bounds = [0, *sorted(data.draw(ends)), len(weights)]

    def cut(group):
        mine = weights[bounds[group.rank] : bounds[group.rank + 1]]
        return cut_by_weight(np.array(mine, dtype=np.int64), shares, group).tolist()

    expected = cut_by_weight(np.array(weights, dtype=np.int64), shares, Alone()).tolist()
    assert run_ranks(num_ranks, cut) == [expected] * num_ranks


def test_a_heavy_vertex_fills_a_part_and_leaves_others_empty():
    weights = np.array([1, 1, 100, 1, 1])
    cuts = cut_by_weight(weights, np.full(4, 0.25), Alone())
    assert cuts.tolist() == nearest_cuts([1, 1, 100, 1, 1], np.full(4, 0.25))
    assert np.diff(cuts).min() == 0
