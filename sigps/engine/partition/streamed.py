"""A partition whose edges stay in a packed store: the whole graph on one rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import Subgraph, narrow, seen_ids
from sigps.graph.graph import Graph
from sigps.graph.packing.paged import PagedRows

__all__ = ["StreamedEdges", "build_streamed"]


class StreamedEdges(EdgeList):
    """In-edges by target that stay packed: where rows begin is in memory, and nothing else.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: PagedRows) -> None:
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "offsets", rows.offsets)

    rows: PagedRows

    @property
    def num_edges(self) -> int:
        return int(self.offsets[-1])

    @property
    def ends(self) -> NDArray[Any]:
        self._absent()

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        self._absent()

    def _absent(self) -> NoReturn:
        raise AssertionError("edges of a run that streams are read by rows")


def build_streamed(graph: Graph, num_threads: int) -> Subgraph:
    """Return the whole graph as a partition, of a packed store in the given order. O(rows); directed O(edges)."""
    packed = graph.packed
    assert packed is not None
    rows = graph.derived("rows that stay packed", lambda: PagedRows(packed.rows, num_threads))
    degrees = np.diff(rows.offsets)
    if graph.directed:
        degrees = graph.derived("out-degrees of packed rows", lambda: _count_sources(rows, num_threads))
    return Subgraph(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_owned=graph.num_vertices,
        num_ghosts=0,
        gids=None,
        ids=seen_ids(graph, None),
        incoming=StreamedEdges(rows),
        outgoing=None,
        out_degrees=narrow(degrees),
        is_symmetric=not graph.directed,
    )


def _count_sources(rows: PagedRows, num_threads: int) -> NDArray[np.uint64]:
    """Return how often each vertex is among the ends of rows: one pass over all pages."""
    from concurrent.futures import ThreadPoolExecutor

    from sigps.kernels.cpu.layout import count_uses

    uses = [np.zeros(rows.offsets.size - 1, dtype=np.uint32) for _ in range(num_threads)]

    def count(thread: int) -> None:
        ends = np.empty(rows.most_arcs, dtype=np.uint32)
        for number in range(thread, len(rows.chains), num_threads):
            first, stop = (int(rows.offsets[row]) for row in rows.first_rows[number : number + 2])
            rows.unpack(number, ends[: stop - first], {})
            count_uses(ends[: stop - first], uses[thread])

    with ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(count, range(num_threads)))
    total: NDArray[np.uint64] = np.sum(uses, axis=0, dtype=np.uint64)
    return total
