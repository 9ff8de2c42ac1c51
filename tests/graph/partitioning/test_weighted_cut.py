import numpy as np
import pytest
from battery import BATTERY
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps.graph.partitioning.weighted_cut import cut_by_weight, work_of_rows
from sigps.group import Alone

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


@pytest.mark.parametrize("name", BATTERY)
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_work_counts_the_edges_of_both_directions(run_ranks, name, num_ranks):
    graph = BATTERY[name].build()
    work = [1] * graph.num_vertices
    for source in range(graph.num_vertices):
        for target in graph.targets[int(graph.offsets[source]) : int(graph.offsets[source + 1])].tolist():
            work[source] += 1
            if graph.directed:
                work[target] += 1
    parts = run_ranks(num_ranks, lambda group: work_of_rows(BATTERY[name].build(group=group)))
    assert np.concatenate(parts).tolist() == work
