import numpy as np
import pytest

from sigps.graph.partitioning.assignment import Contiguous, Hashed, Table


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
    for part in range(assignment.num_parts):
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


@pytest.mark.parametrize(("num_parts", "num_bytes"), [(1, 1), (256, 1), (257, 2), (65536, 2), (65537, 4)])
def test_a_table_takes_no_more_bytes_than_its_parts_need(num_parts, num_bytes):
    parts = Table(np.array([num_parts - 1, 0]), num_parts)
    assert parts.parts.itemsize == num_bytes
    assert parts.owner_of(np.array([0, 1])).tolist() == [num_parts - 1, 0]


def test_an_assignment_says_how_it_is_kept():
    assert [make().kind for make in (contiguous, hashed, table)] == ["bounds", "hashed", "table"]
    assert repr(table()) == "<Table: 6 vertices in 6 parts>"
