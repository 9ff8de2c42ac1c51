"""A part of a graph is put in the same order on a GPU as by cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps.engine.partition import order
from sigps.engine.partition.edge_list import EdgeList, in_order, positions_before
from sigps.engine.partition.order import PartOrder, order_of_part, order_on_gpu
from sigps.engine.partition.subgraph import _order_on_cores, rows_of
from sigps.graph.partitioning.assignment import Contiguous


def move_rows(before: Any, by: Any, after: Any, values: Any) -> Any:
    return values[positions_before(np, before, after, by)]


def parts(num_ranks: int, bounds: list[float]) -> list[tuple[EdgeList, np.ndarray, int, PartOrder]]:
    """Return the rows of each rank, where ranks begin, and how cores order them."""

    def on_ranks(group: ThreadGroup) -> Any:
        graph = sigps.generate("rmat", scale=9, group=group)
        cuts = (np.array(bounds) * graph.num_vertices).astype(np.int64)
        assignment = Contiguous(cuts)
        rows = rows_of(graph, assignment)
        found = _order_on_cores(graph, assignment, rows, None, 2)
        moved = in_order(rows, found.by_degree, found.local_of, num_threads=2)
        return rows, cuts, group.rank, found._replace(ends=moved.ends)

    return run_ranks(num_ranks, on_ranks)


def assert_alike(found: PartOrder, expected: PartOrder, own: range) -> None:
    known = np.union1d(expected.ghosts, np.arange(own.start, own.stop))
    np.testing.assert_array_equal(found.local_of[known], expected.local_of[known])
    for name in ("by_degree", "ghosts", "ghost_bounds", "ends"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


BOUNDS = {2: [0, 0.4, 1], 3: [0, 0.3, 0.3, 1], 4: [0, 0.1, 0.5, 0.9, 1]}


@pytest.mark.parametrize("num_ranks", BOUNDS)
def test_arrays_find_what_cores_find(num_ranks: int) -> None:
    for rows, cuts, rank, expected in parts(num_ranks, BOUNDS[num_ranks]):
        found = order_of_part(np, rows.offsets, rows.ends, cuts, rank, move_rows)
        assert_alike(found, expected, range(cuts[rank], cuts[rank + 1]))


@pytest.mark.gpu
@pytest.mark.parametrize("num_ranks", BOUNDS)
def test_a_gpu_finds_what_cores_find(num_ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from sigps.device.cuda import find_gpu

    monkeypatch.setattr(order, "_FEW_EDGES", 1)
    for rows, cuts, rank, expected in parts(num_ranks, BOUNDS[num_ranks]):
        found = order_on_gpu(find_gpu(), rows, cuts, rank)
        assert found is not None or rows.ends.size == 0
        if found is not None:
            assert_alike(found, expected, range(cuts[rank], cuts[rank + 1]))


@pytest.mark.gpu
def test_a_gpu_without_room_leaves_it_to_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    from sigps.device.cuda import find_gpu

    monkeypatch.setattr(order, "_FEW_EDGES", 1)
    monkeypatch.setattr(order, "free_bytes", lambda wanted: wanted - 1)
    rows, cuts, rank, _ = parts(2, BOUNDS[2])[0]
    assert order_on_gpu(find_gpu(), rows, cuts, rank) is None
