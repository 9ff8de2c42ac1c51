"""The edges of neighbours: two sorted rows intersected, and rows that other ranks have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup

from sigps.engine.partition.edge_list import reverse_edges
from sigps.engine.partition.neighbor_rows import build_neighbor_rows
from sigps.engine.partition.subgraph import NeighborRows, build_subgraph
from sigps.errors import GraphError
from sigps.graph.partitioning.partition import partition
from sigps.kernels.cpu.neighbors import mark_row, next_common, no_marks

ROW = st.lists(st.integers(0, 60), max_size=50).map(sorted)
LONG_ROW = st.lists(st.integers(0, 3000), min_size=0, max_size=600).map(sorted)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(ROW | LONG_ROW, ROW | LONG_ROW, st.sampled_from([np.uint32, np.uint64]))
def test_common_targets_are_those_of_both_rows(mine: list[int], theirs: list[int], kind: Any) -> None:
    """Marks are used again for a row after another's, and for the first row once more."""
    targets = np.array([5, *mine, *theirs, 5], dtype=kind)
    borders = [np.uint64(n) for n in (1, 1 + len(mine), 1 + len(mine) + len(theirs))]
    marks = no_marks(3001, targets.size)
    for first, end, begin, stop in (borders[:2] + borders[1:], borders[1:] + borders[:2]) * 2:
        if first == end:
            continue
        mark_row(targets, marks, first, end)
        at, other, found = first, begin, []
        while True:
            at, other = next_common(targets, marks, first, at, end, begin, other, stop)
            if at >= end:
                break
            assert targets[at] == targets[other]
            assert first <= at < end
            assert begin <= other < stop
            assert at == first or targets[at - np.uint64(1)] < targets[at]
            assert other == begin or targets[other - np.uint64(1)] < targets[other]
            found.append(int(targets[at]))
            at, other = at + np.uint64(1), other + np.uint64(1)
        assert found == sorted(set(mine) & set(theirs))


@pytest.mark.parametrize(("target", "missing"), [(1, 1), (2, 2)])
def test_edges_without_a_reverse_are_found(target: int, missing: int) -> None:
    """Edges 0 -> 1 and 1 -> target of an undirected graph: what lies behind the last entry is not taken for one."""
    targets = np.array([1, target])
    rows = NeighborRows(np.array([0, 1, 2, 2], dtype=np.uint64), targets, targets)
    complaint = f"{missing} edges are stored at one of their ends only"
    with pytest.raises(GraphError, match=complaint):
        _ = rows.reverse
    with pytest.raises(GraphError, match=complaint):
        reverse_edges(np, np.arange(2), targets, targets, np.arange(3), 3)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["skewed", "star_in", "isolated", "parallel_edges"])
def test_rows_of_neighbours_are_the_graphs(name: str, size: int, run_ranks: Any) -> None:
    def check(group: ThreadGroup) -> int:
        graph = BATTERY[name].build(group=group)
        assignment = partition(graph, size, "hash")
        part = build_subgraph(graph, assignment, with_outgoing=True)
        rows = build_neighbor_rows(part, assignment, group)
        whole = BATTERY[name].build()
        assert part.outgoing is not None
        offsets = rows.offsets.astype(int)
        np.testing.assert_array_equal(rows.targets[: part.outgoing.ends.size], part.outgoing.ends)
        for end, row in zip(part.outgoing.ends.tolist(), rows.row_of.tolist(), strict=True):
            expected = whole.targets[int(whole.offsets[end]) : int(whole.offsets[end + 1])]
            np.testing.assert_array_equal(rows.targets[offsets[row] : offsets[row + 1]], expected)
        return int(offsets.size - 1 - part.num_owned)

    num_remote = sum(run_ranks(size, check))
    assert (num_remote > 0) == (size > 1 and name != "isolated") or name == "isolated"
