"""One partition as the engine runs it: owned vertices, all their in-edges, and ghosts.

Owned vertices come first in the local numbering, then the ghosts: remote vertices with an edge into the partition,
grouped by owner and in gid order inside a group. In-edges stand in ascending order of the source's gid, so that
a sum over them is the same for every partitioning. A partition that is the whole graph uses the graph's own
arrays and numbering; others number owned vertices by descending in-degree, which keeps busy records together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.errors import GraphError
from sigps.graph.graph import Graph
from sigps.graph.partition import Assignment, degree_order

__all__ = ["EdgeList", "Subgraph", "build_subgraph", "columns_of"]


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges grouped by one end: `offsets` [rows + 1] uint64, `ends` the other end, `columns` in the same order."""

    offsets: NDArray[np.uint64]
    ends: NDArray[Any]
    columns: dict[str, NDArray[Any]]

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.ends.nbytes + sum(c.nbytes for c in self.columns.values())


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A partition of a graph.

    Attributes:
        gids: [num_owned + num_ghosts], int64; None where local id and gid are the same.
        ids: [num_owned], int64: the id that compute() sees; empty where it is the local id.
        incoming: In-edges of owned vertices; ends are local ids of sources.
        pushed: The same edges by source, owned and ghosts; ends are local ids of owned targets.
        outgoing: Out-edges of owned vertices; ends are gids. None unless a program walks them.
        out_degrees: [num_owned], uint32 or uint64, counted in the whole graph.
        halo: For each rank, the owned local ids that it holds as ghosts, in the order of its slots.
        ghost_bounds: [size + 1]: rank r's vertices are the ghosts ghost_bounds[r] : ghost_bounds[r + 1].
    """

    num_vertices: int
    num_edges: int
    num_owned: int
    num_ghosts: int
    gids: NDArray[np.int64] | None
    ids: NDArray[np.int64]
    incoming: EdgeList
    pushed: EdgeList
    outgoing: EdgeList | None
    out_degrees: NDArray[Any]
    halo: tuple[NDArray[np.int64], ...] = ()
    ghost_bounds: NDArray[np.int64] | None = None
    outgoing_oids: NDArray[np.int64] | None = None

    @property
    def owned_gids(self) -> NDArray[np.int64]:
        return np.arange(self.num_owned) if self.gids is None else self.gids[: self.num_owned]

    def outgoing_ids(self) -> NDArray[np.int64]:
        """Return the ids of the out-edges' targets as compute() sees them."""
        assert self.outgoing is not None
        return self.outgoing.ends if self.outgoing_oids is None else self.outgoing_oids

    def local_ids(self, gids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local ids of owned vertices. O(log owned) each."""
        if self.gids is None:
            return gids
        owned = self.owned_gids
        order = np.argsort(owned)
        return order[np.searchsorted(owned, gids, sorter=order)]


def build_subgraph(graph: Graph, assignment: Assignment, *, with_outgoing: bool) -> Subgraph:
    """Bring each rank its partition: collective; one process alone copies nothing.

    Args:
        graph: The graph, its rows spread over `graph.group`.
        assignment: Which rank owns which vertex.
        with_outgoing: Whether compute() walks out-edges.
    """
    if graph.group.size == 1:
        return _whole(graph, with_outgoing)
    return _part(graph, assignment, with_outgoing)


def columns_of(edges: EdgeList, names: tuple[str, ...]) -> tuple[NDArray[Any], ...]:
    """Return the columns a program reads, in its order; a missing weight is 1.0 everywhere, and takes no memory.

    Raises:
        GraphError: If the graph has no column of that name.
    """
    columns = []
    for name in names:
        if name in edges.columns:
            columns.append(edges.columns[name])
        elif name == "weight":
            columns.append(np.broadcast_to(np.float64(1.0), edges.ends.shape))
        else:
            known = ", ".join(edges.columns) or "none"
            raise GraphError(f"the program reads edge.{name}, but the edges have no such column; they have: {known}")
    return tuple(columns)


def seen_ids(graph: Graph, gids: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the ids that compute() sees: the user's where they are numbers, gids where they are strings."""
    if graph.ids.kind == "strings":
        return np.empty(0, dtype=np.int64) if gids is None else gids
    if gids is None:
        if graph.ids.is_identity:
            return np.empty(0, dtype=np.int64)
        gids = np.arange(graph.num_vertices)
    return np.ascontiguousarray(graph.ids.to_oids(gids), dtype=np.int64)


def _target_oids(graph: Graph, gids: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the numbers that compute() sees as targets; None where they are the gids themselves."""
    if graph.ids.is_identity or graph.ids.kind == "strings":
        return None
    return np.ascontiguousarray(graph.ids.to_oids(gids), dtype=np.int64)


def _whole(graph: Graph, with_outgoing: bool) -> Subgraph:
    inward = graph.in_edges()
    rows = EdgeList(graph.offsets, graph.targets, graph.columns)
    degrees = np.diff(graph.offsets)
    return Subgraph(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_owned=graph.num_vertices,
        num_ghosts=0,
        gids=None,
        ids=seen_ids(graph, None),
        incoming=EdgeList(inward.offsets, inward.sources, inward.columns),
        pushed=rows,
        outgoing=rows,
        out_degrees=_narrow(degrees),
        outgoing_oids=_target_oids(graph, graph.targets) if with_outgoing else None,
    )


def _narrow(degrees: NDArray[Any]) -> NDArray[Any]:
    fits = degrees.size == 0 or int(degrees.max()) < 2**32
    return degrees.astype(np.uint32 if fits else np.uint64)


def _part(graph: Graph, assignment: Assignment, with_outgoing: bool) -> Subgraph:
    group = graph.group
    rows = np.arange(graph.first_row, graph.first_row + graph.num_rows, dtype=np.int64)
    degrees = graph.out_degrees()
    sources = np.repeat(rows, degrees)
    targets = graph.targets.astype(np.int64)
    arrived = _route(graph, assignment.owner_of(targets), [sources, targets, *graph.columns.values()])
    in_sources, in_targets = arrived[0], arrived[1]
    in_columns = dict(zip(graph.columns, arrived[2:], strict=True))

    by_gid = np.sort(assignment.owned(group.rank))
    position = np.searchsorted(by_gid, in_targets)
    order = degree_order(np.bincount(position, minlength=by_gid.size))
    owned = by_gid[order]
    to_local = np.empty(by_gid.size, dtype=np.int64)
    to_local[order] = np.arange(by_gid.size)

    is_remote = assignment.owner_of(in_sources) != group.rank
    ghosts = np.unique(in_sources[is_remote])
    owners = assignment.owner_of(ghosts)
    ghosts = ghosts[np.argsort(owners, kind="stable")]
    ghost_bounds = np.searchsorted(np.sort(owners), np.arange(group.size + 1))
    in_source_ids = np.empty(in_sources.size, dtype=np.int64)
    in_source_ids[~is_remote] = to_local[np.searchsorted(by_gid, in_sources[~is_remote])]
    ghost_order = np.argsort(ghosts)
    found = np.searchsorted(ghosts, in_sources[is_remote], sorter=ghost_order)
    in_source_ids[is_remote] = owned.size + ghost_order[found]

    incoming = _grouped(to_local[position], in_sources, in_source_ids, in_columns, owned.size)
    pushed = _by_source(incoming, owned.size + ghosts.size)
    asked = group.all_to_all([ghosts[ghost_bounds[r] : ghost_bounds[r + 1]] for r in range(group.size)])
    halo = tuple(to_local[np.searchsorted(by_gid, part)] for part in asked)
    row_owners = assignment.owner_of(rows)
    degree_gids, degree_values = _route(graph, row_owners, [rows, degrees])
    out_degrees = np.zeros(owned.size, dtype=np.int64)
    out_degrees[to_local[np.searchsorted(by_gid, degree_gids)]] = degree_values
    outgoing = None
    if with_outgoing:
        out = _route(graph, np.repeat(row_owners, degrees), [sources, targets, *graph.columns.values()])
        local = to_local[np.searchsorted(by_gid, out[0])]
        out_columns = dict(zip(graph.columns, out[2:], strict=True))
        outgoing = _grouped(local, out[1], out[1], out_columns, owned.size, wide=True)
    return Subgraph(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_owned=owned.size,
        num_ghosts=ghosts.size,
        gids=np.concatenate([owned, ghosts]),
        ids=seen_ids(graph, owned),
        incoming=incoming,
        pushed=pushed,
        outgoing=outgoing,
        out_degrees=_narrow(out_degrees),
        halo=halo,
        ghost_bounds=ghost_bounds,
        outgoing_oids=None if outgoing is None else _target_oids(graph, outgoing.ends),
    )


def _route(graph: Graph, owners: NDArray[Any], arrays: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Send element i of every array to rank owners[i]; order within a sender is kept, senders come by rank."""
    group = graph.group
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(group.size + 1))
    arrived = []
    for array in arrays:
        moved = array[order]
        parts = group.all_to_all([moved[bounds[r] : bounds[r + 1]] for r in range(group.size)])
        arrived.append(np.concatenate(parts))
    return arrived


def _grouped(
    rows: NDArray[np.int64],
    sort_by: NDArray[np.int64],
    ends: NDArray[np.int64],
    columns: dict[str, NDArray[Any]],
    num_rows: int,
    wide: bool = False,
) -> EdgeList:
    """Group edges by row; inside a row ascending in `sort_by`, parallel edges in their given order."""
    order = np.lexsort((sort_by, rows))
    offsets = np.zeros(num_rows + 1, dtype=np.uint64)
    np.cumsum(np.bincount(rows, minlength=num_rows), out=offsets[1:], dtype=np.uint64)
    sorted_ends = ends[order].astype(np.int64 if wide else np.uint32)
    return EdgeList(offsets, sorted_ends, {n: c[order] for n, c in columns.items()})


def _by_source(incoming: EdgeList, num_sources: int) -> EdgeList:
    targets = np.repeat(np.arange(incoming.offsets.size - 1, dtype=np.uint32), np.diff(incoming.offsets).view(np.int64))
    order = np.argsort(incoming.ends, kind="stable")
    offsets = np.zeros(num_sources + 1, dtype=np.uint64)
    np.cumsum(np.bincount(incoming.ends, minlength=num_sources), out=offsets[1:], dtype=np.uint64)
    return EdgeList(offsets, targets[order], {n: c[order] for n, c in incoming.columns.items()})
