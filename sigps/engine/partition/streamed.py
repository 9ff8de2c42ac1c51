"""A partition whose edges stay in a packed store: the whole graph, or on several ranks rows that follow each other.

Of a part, owned vertices keep the order of their rows, and so do its ghosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sigps.engine.partition.edge_list import EdgeList, moved, require_symmetry
from sigps.engine.partition.subgraph import Subgraph, narrow, seen_ids
from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.graph.packing.paged import PagedRows
from sigps.graph.packing.table import rows_of_ranks
from sigps.graph.partitioning.assignment import Assignment, Contiguous, Table
from sigps.graph.partitioning.partition import PartitionFunction
from sigps.group import together

__all__ = ["StreamedEdges", "build_streamed", "divide_pages"]


class StreamedEdges(EdgeList):
    """In-edges by target that stay packed: where rows begin is in memory, and nothing else.

    Args:
        rows: The rows; ends are their numbers: gids, or where rows are by degree places in that order.
        num_owned: Owned vertices; those behind the last row have no edge.
        local_of: The local id of each row that is an end, [rows of all ranks]; None where they are the same.
    """

    def __init__(self, rows: PagedRows, num_owned: int, local_of: NDArray[np.uint32] | None = None) -> None:
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "local_of", local_of)
        without = num_owned + 1 - rows.offsets.size
        object.__setattr__(
            self, "offsets", np.pad(rows.offsets, (0, without), mode="edge") if without else rows.offsets
        )

    is_streamed = True
    rows: PagedRows
    local_of: NDArray[np.uint32] | None

    @property
    def num_edges(self) -> int:
        return int(self.offsets[-1])

    @property
    def ends(self) -> NDArray[Any]:
        self._absent()

    def all_ends(self) -> NDArray[np.uint32]:
        """Return all ends, unpacked, [edges]. O(edges)."""
        ends = np.empty(self.num_edges, dtype=np.uint32)
        begins = self.rows.offsets[self.rows.first_rows].tolist()
        for number in range(len(self.rows.chains)):
            self.rows.unpack(number, ends[begins[number] : begins[number + 1]], {})
        return ends

    def each_reverse(
        self, offsets: NDArray[np.uint64] | None = None, num_below: NDArray[np.uint32] | None = None
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield where the edges of a chain of pages begin, and the position of the reverse of each; O(edges) in all.

        Of an undirected graph with rows in the given order, in the order of chains. Positions follow from how many
        edges rows have, so those of a store that is wrong may be of other edges: hashes of all edges tell, behind the
        last chain, or of parts before (`find_crossing_edges`).

        Args:
            offsets: Of a part, where edges of rows and ghosts begin (`CrossingEdges.places`).
            num_below: Likewise, how many of these lead to rows of lower ranks; written.

        Raises:
            GraphError: If an edge has none.
        """
        from sigps.kernels.cpu.edge_values import reverse_in_order, sum_of_pairs

        rows, is_whole, total = self.rows, offsets is None, 0
        if offsets is None or num_below is None:
            offsets, num_below = rows.offsets, np.zeros(rows.offsets.size - 1, dtype=np.uint32)
        ends, reverse = np.empty(rows.most_arcs, np.uint32), np.empty(rows.most_arcs, np.int64)
        for number in range(len(rows.chains)):
            span = rows.first_rows[number : number + 2]
            first, stop = rows.offsets[span].tolist()
            own, found = ends[: stop - first], reverse[: stop - first]
            rows.unpack(number, own, {})
            if is_whole:
                total += int(sum_of_pairs(*span.astype(np.uint64), np.uint64(0), offsets, moved(own, first)))
            if self.local_of is not None:
                own[:] = self.local_of[own]
            reverse_in_order(
                *span.astype(np.uint64), offsets, moved(own, first), num_below, moved(found, first)
            )
            yield first, found
        if is_whole:  # else it was counted before
            differs = (num_below != np.diff(rows.offsets)).any()
            require_symmetry("some" if differs or total % (1 << 64) else 0)

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        self._absent()

    def _absent(self) -> NoReturn:
        raise AssertionError("edges of a run that streams are read by rows")


def divide_pages(
    graph: Graph, method: str | PartitionFunction, capacities: Sequence[float]
) -> tuple[Assignment, NDArray[np.int64]]:
    """Return which rank owns which vertices, and the rows at which those of each rank begin: whole pages.

    Where rows are by degree, vertices without edges, which have no row, are divided evenly.

    Args:
        graph: The graph, of a packed store.
        method: The partitioner that was asked for.
        capacities: [ranks]: how much of the graph each takes.

    Raises:
        ConfigError: If it is another one than that which streams, on several ranks.
    """
    size = graph.group.size
    if size == 1:
        bounds = np.array([0, graph.num_vertices])
        return Contiguous(bounds), bounds
    if method != "edges":
        asked = f"partitioner={method!r}" if isinstance(method, str) else "a function as partitioner"
        raise ConfigError(
            f"{asked} is not built for a run that streams on {size} ranks, each of which reads the pages of vertices "
            "that follow each other. Use partitioner='edges', or stream='never'"
        )
    packed = graph.packed
    assert packed is not None
    bounds = rows_of_ranks(packed.rows.table, capacities)
    if packed.order is None:
        return Contiguous(bounds), bounds
    owners = np.empty(graph.num_vertices, dtype=np.min_scalar_type(size - 1))
    for rank in range(size):
        owners[packed.order[bounds[rank] : bounds[rank + 1]]] = rank
    without = _without_row(packed.order, graph.num_vertices)
    owners[without] = np.arange(without.size) * size // max(without.size, 1)
    return Table(owners, size), bounds


def _without_row(order: NDArray[np.uint32], num_vertices: int) -> NDArray[np.int64]:
    has_row = np.zeros(num_vertices, dtype=bool)
    has_row[order] = True
    return np.flatnonzero(~has_row)


def build_streamed(
    graph: Graph, assignment: Assignment, bounds: NDArray[np.int64], num_threads: int
) -> Subgraph:
    """Return this rank's partition, of a packed store. Collective.

    Where rows are by degree, owned vertices have the order of rows, and those without edges come last.
    O(rows) for one rank and an undirected graph; else each rank unpacks its own pages once, to find ghosts and degrees.
    """
    if graph.group.size > 1:
        return _part(graph, assignment, bounds, num_threads)
    packed = graph.packed
    assert packed is not None
    rows = graph.derived("rows that stay packed", lambda: PagedRows(packed.rows, num_threads))
    incoming, gids = StreamedEdges(rows, graph.num_vertices), None
    if packed.order is not None:
        gids = np.concatenate([packed.order, _without_row(packed.order, graph.num_vertices)]).astype(np.int64)
    degrees = np.diff(incoming.offsets)
    if graph.directed:
        count = partial(_count_sources, rows, graph.num_vertices, num_threads)
        degrees = graph.derived("out-degrees of packed rows", count)
    return Subgraph(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_owned=graph.num_vertices,
        num_ghosts=0,
        gids=gids,
        ids=seen_ids(graph, gids),
        incoming=incoming,
        outgoing=None,
        out_degrees=narrow(degrees),
        is_symmetric=not graph.directed,
    )


def _part(graph: Graph, assignment: Assignment, bounds: NDArray[np.int64], num_threads: int) -> Subgraph:
    group, packed = graph.group, graph.packed
    assert packed is not None
    first, stop = bounds[group.rank : group.rank + 2].tolist()
    num_rows = int(bounds[-1])

    def read() -> tuple[PagedRows, NDArray[Any]]:
        rows = PagedRows(packed.rows.part(range(first, stop)), num_threads)
        if graph.directed:
            return rows, _count_sources(rows, num_rows, num_threads)
        return rows, _find_sources(rows, num_rows, num_threads)

    rows, uses = together(read, group)
    gids = np.arange(first, stop)
    if packed.order is not None:
        without = _without_row(packed.order, graph.num_vertices)
        without = without[assignment.owner_of(without) == group.rank]
        gids = np.concatenate([packed.order[first:stop], without]).astype(np.int64)
    degrees = np.diff(rows.offsets)
    if graph.directed:
        parts = group.all_to_all([uses[bounds[r] : bounds[r + 1]] for r in range(group.size)])
        degrees = np.stack(parts).sum(axis=0, dtype=np.uint64)
    uses[first:stop] = 0
    ghosts = np.flatnonzero(uses)  # by row, and so by owner
    del uses
    ghost_bounds = np.searchsorted(ghosts, bounds)
    local_of = np.zeros(num_rows, dtype=np.uint32)
    local_of[first:stop] = np.arange(stop - first)
    local_of[ghosts] = np.arange(gids.size, gids.size + ghosts.size)
    wanted = group.all_to_all([ghosts[ghost_bounds[r] : ghost_bounds[r + 1]] for r in range(group.size)])
    num_owned = gids.size
    gids = np.concatenate([gids, ghosts if packed.order is None else packed.order[ghosts].astype(np.int64)])
    return Subgraph(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_owned=num_owned,
        num_ghosts=ghosts.size,
        gids=gids,
        ids=seen_ids(graph, gids),
        incoming=StreamedEdges(rows, num_owned, local_of),
        outgoing=None,
        out_degrees=narrow(np.pad(degrees, (0, num_owned - degrees.size))),
        halo=tuple(part - first for part in wanted),
        ghost_bounds=ghost_bounds,
        is_undirected=not graph.directed,
    )


def _find_sources(rows: PagedRows, num_vertices: int, num_threads: int) -> NDArray[np.uint8]:
    """Return whether each vertex is among the ends of rows, 0 or 1: one pass over the pages."""
    from sigps.kernels.cpu.layout import mark_uses

    used = np.zeros(num_vertices, dtype=np.uint8)
    _for_each_chain(rows, num_threads, lambda thread, ends: mark_uses(ends, used))
    return used


def _count_sources(rows: PagedRows, num_vertices: int, num_threads: int) -> NDArray[np.uint64]:
    """Return how often each vertex is among the ends of rows: one pass over the pages."""
    from sigps.kernels.cpu.layout import count_uses

    uses = [np.zeros(num_vertices, dtype=np.uint32) for _ in range(num_threads)]
    _for_each_chain(rows, num_threads, lambda thread, ends: count_uses(ends, uses[thread]))
    total: NDArray[np.uint64] = np.sum(uses, axis=0, dtype=np.uint64)
    return total


def _for_each_chain(
    rows: PagedRows, num_threads: int, visit: Callable[[int, NDArray[np.uint32]], None]
) -> None:
    """Call a function with a thread's number and the ends of a chain of pages, of each."""

    def work(thread: int) -> None:
        ends = np.empty(rows.most_arcs, dtype=np.uint32)
        for number in range(thread, len(rows.chains), num_threads):
            first, stop = (int(rows.offsets[row]) for row in rows.first_rows[number : number + 2])
            rows.unpack(number, ends[: stop - first], {})
            visit(thread, ends[: stop - first])

    with ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(work, range(num_threads)))
