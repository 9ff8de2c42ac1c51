"""One partition as the engine runs it: owned vertices, all their in-edges, and ghosts.

Owned vertices come first in the local numbering, then the ghosts: remote vertices with an edge into the partition,
grouped by owner and, inside a group, in descending order of their edges into the partition. In-edges stand in
ascending order of the source's gid, so that a sum over them is the same for every partitioning. Owned vertices are
numbered by descending in-degree, equal degrees by gid, which keeps the most read records together. A partition that
is the whole graph uses the graph's own arrays and numbering, unless CPU cores gain by another one
(`degree_order.py`); a GPU brings the rows into that order while it copies them (`engine/gpu/numbering.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import Gpu
from sigps.engine.fixed_points import is_mesh
from sigps.engine.partition.edge_list import EdgeList, by_source, grouped, in_order, require_symmetry, uses_of
from sigps.engine.partition.order import PartOrder, order_on_gpu
from sigps.errors import GraphError, nearest
from sigps.graph.degrees import degree_order
from sigps.graph.graph import Graph
from sigps.graph.partitioning.assignment import Contiguous
from sigps.graph.partitioning.partition import Assignment
from sigps.group import split_by_rank

T = TypeVar("T")

__all__ = [
    "NeighborRows",
    "Subgraph",
    "build_subgraph",
    "columns_of",
    "in_edges_of",
    "missing_column",
    "narrow",
    "routed_ends",
    "rows_of",
    "seen_ids",
    "target_oids",
]


@dataclass(frozen=True, eq=False)
class NeighborRows:
    """Rows of out-edges by number: those of owned vertices by local id, then mirrors of remote targets' rows.

    Attributes:
        offsets: [rows + 1] uint64.
        targets: [entries] gids, ascending in each row; the first entries are those of `Subgraph.outgoing`.
        row_of: [num_out_edges]: the row of each out-edge's target.
        send_lists: For each rank, the entries of this partition that it mirrors, in its order.
        mirror_bounds: [size + 1]: the mirrors of rank r's entries are mirror_bounds[r] : mirror_bounds[r + 1]; None on
            one rank.
        owned: [num_owned] gids; None where they are the local ids.
    """

    offsets: NDArray[np.uint64]
    targets: NDArray[np.integer]
    row_of: NDArray[np.integer]
    send_lists: tuple[NDArray[np.int64], ...] = ()
    mirror_bounds: NDArray[np.int64] | None = None
    owned: NDArray[np.int64] | None = None

    @cached_property
    def reverse(self) -> NDArray[np.int64]:
        """The entry of each out-edge in the row of its target, [num_out_edges]; of parallel ones the first.

        Of an undirected graph. Found by search, at the first use.

        Raises:
            GraphError: If an edge has none.
        """
        from sigps.kernels.cpu.layout import find_reverse_entries

        num_owned = int(np.searchsorted(self.offsets, self.row_of.size, side="right")) - 1
        gids = np.arange(num_owned) if self.owned is None else self.owned
        reverse = np.empty(self.row_of.size, dtype=np.int64)
        require_symmetry(find_reverse_entries(self.offsets, self.targets, self.row_of, gids, reverse))
        return reverse


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A partition of a graph.

    Attributes:
        gids: [num_owned + num_ghosts], int64; None where local id and gid are the same.
        ids: [num_owned + num_ghosts], int64: the id that compute() sees; empty where it is the local id.
        incoming: In-edges of owned vertices; ends are local ids of sources.
        outgoing: Out-edges of owned vertices; ends are gids. In a part of a graph None unless a program walks them.
        out_degrees: [num_owned], uint32 or uint64, counted in the whole graph.
        halo: For each rank, the owned local ids that it holds as ghosts, in the order of its slots.
        ghost_bounds: [size + 1]: rank r's vertices are the ghosts ghost_bounds[r] : ghost_bounds[r + 1].
        neighbor_rows: The out-edges of neighbours, where a program walks them.
        is_symmetric: Whether in-edges by target are the same as by source: local ids all around, and no ghosts.
        is_undirected: Whether each edge of the graph is stored at both its ends; known of a part.
    """

    num_vertices: int
    num_edges: int
    num_owned: int
    num_ghosts: int
    gids: NDArray[np.int64] | None
    ids: NDArray[np.int64]
    incoming: EdgeList
    outgoing: EdgeList | None
    out_degrees: NDArray[Any]
    halo: tuple[NDArray[np.int64], ...] = ()
    ghost_bounds: NDArray[np.int64] | None = None
    outgoing_oids: NDArray[np.int64] | None = None
    neighbor_rows: NeighborRows | None = None
    is_symmetric: bool = False
    is_undirected: bool = False
    _derived: dict[str, Any] = field(default_factory=dict)

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """Return what is made at its first use and kept as long as the partition is."""
        if name not in self._derived:
            self._derived[name] = make()
        found: T = self._derived[name]
        return found

    def derivatives(self, kind: type[T]) -> list[T]:
        """Return what of a type was made so far."""
        return [made for made in list(self._derived.values()) if isinstance(made, kind)]

    @cached_property
    def pushed(self) -> EdgeList:
        """In-edges by source, owned and ghosts; ends are local ids of owned targets.

        The whole graph has them as it is, or the same either way. A part lays them out at the first use:
        many programs never push, and they take as much memory as the in-edges.
        """
        if self.gids is None:
            assert self.outgoing is not None
            return self.outgoing
        if self.is_symmetric:
            return self.incoming
        return by_source(self.incoming, self.num_owned + self.num_ghosts)

    @property
    def is_mesh(self) -> bool:
        """Whether it is one rank's whole graph, with the degrees of a mesh (`engine/fixed_points.py`)."""
        return self._is_mesh(of_lengths=False)

    @property
    def is_mesh_of_lengths(self) -> bool:
        """The same where lengths are wanted on a CPU core, which gains on smaller graphs."""
        return self._is_mesh(of_lengths=True)

    def _is_mesh(self, *, of_lengths: bool) -> bool:
        if self.num_owned < self.num_vertices:
            return False
        most = self.derived("largest degree", self._largest_degree)
        sizes = {"num_vertices": self.num_vertices, "num_edges": self.num_edges}
        return is_mesh(**sizes, largest_degree=most, of_lengths=of_lengths)

    def _largest_degree(self) -> int:
        inward = 0 if self.goes_both_ways else np.diff(self.incoming.offsets).max(initial=0)
        return int(max(self.most_out_edges, inward))

    @property
    def most_out_edges(self) -> int:
        """The most that an owned vertex has in the whole graph."""
        return int(self.derived("most out-edges", lambda: self.out_degrees.max(initial=0)))

    @property
    def goes_both_ways(self) -> bool:
        """Whether in-edges by target are the very same as by source, which needs no ghosts."""
        if self.gids is not None or self.outgoing is None:
            return self.is_symmetric
        one, other = self.incoming, self.outgoing
        return one.ends is other.ends or (
            one.ends.size > 0
            and one.ends.shape == other.ends.shape
            and one.ends.ctypes.data == other.ends.ctypes.data
            and one.offsets.ctypes.data == other.offsets.ctypes.data
        )

    @cached_property
    def by_gid(self) -> NDArray[np.int64]:
        """Owned local ids in ascending order of their gids, [num_owned]."""
        gids = self.owned_gids
        first = int(gids.min(initial=self.num_vertices))
        if gids.size == 0 or int(gids.max()) - first + 1 > gids.size:
            return np.argsort(gids)
        order = np.empty(gids.size, dtype=np.int64)  # of vertices that follow on one another
        order[gids - first] = np.arange(gids.size)
        return order

    @cached_property
    def sorted_gids(self) -> NDArray[np.int64]:
        """The gids of owned vertices, ascending."""
        return self.owned_gids[self.by_gid]

    @property
    def owned_gids(self) -> NDArray[np.int64]:
        return np.arange(self.num_owned) if self.gids is None else self.gids[: self.num_owned]

    def of_owned(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of owned vertices by local id, of values by gid; where both are the same, as they are."""
        return values if self.gids is None else values[self.gids[: self.num_owned]]

    @cached_property
    def ids_fit_32_bits(self) -> bool:
        """Whether every id that compute() sees fits an int32, of which the least stands for None."""
        if self.ids.size == 0:
            return self.num_owned <= 2**31
        return bool(self.ids.min() > -(2**31) and self.ids.max() < 2**31)

    def sources_of_edges(self) -> NDArray[np.int64]:
        """Return the gids of the owned ends of the out-edges, in the order of `outgoing`.

        Of an undirected graph whose edges stream, they are in the order of rows.
        """
        edges = self.incoming if self.outgoing is None else self.outgoing
        assert self.outgoing is not None or self.is_symmetric or self.is_undirected
        return np.repeat(self.owned_gids, np.diff(edges.offsets).astype(np.int64))

    def targets_of_edges(self) -> NDArray[np.int64]:
        """Return the gids of the other ends; where edges stream, all are unpacked."""
        edges = self.incoming if self.outgoing is None else self.outgoing
        assert self.outgoing is not None or self.is_symmetric or self.is_undirected
        return edges.all_ends().astype(np.int64)

    def outgoing_ids(self) -> NDArray[np.int64]:
        """Return the ids of the out-edges' targets as compute() sees them."""
        assert self.outgoing is not None
        return self.outgoing.ends if self.outgoing_oids is None else self.outgoing_oids

    def local_ids(self, gids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local ids of owned vertices. O(log owned) each."""
        if self.gids is None:
            return gids
        return self.by_gid[np.searchsorted(self.sorted_gids, gids)]


def build_subgraph(
    graph: Graph,
    assignment: Assignment,
    *,
    with_outgoing: bool,
    num_threads: int = 1,
    gpu: Gpu | None = None,
) -> Subgraph:
    """Bring each rank its partition: collective; one process alone copies nothing.

    Args:
        graph: The graph, its rows spread over `graph.group`.
        assignment: Which rank owns which vertex.
        with_outgoing: Whether compute() walks out-edges.
        num_threads: Threads of this rank that count and move edges.
        gpu: What may do so instead, where it has room.
    """
    if graph.group.size == 1:
        return _whole(graph, with_outgoing)
    return _part(graph, assignment, with_outgoing, num_threads, gpu)


def columns_of(edges: EdgeList, names: tuple[str, ...]) -> tuple[NDArray[Any], ...]:
    """Return the columns a program reads, in its order; a missing weight is 1.0 everywhere.

    For a few edges these are an array like any other, for which code may be compiled already; for many they take no
    memory.

    Raises:
        GraphError: If the graph has no column of that name.
    """
    columns = []
    for name in names:
        if name in edges.columns:
            columns.append(edges.columns[name])
        elif name == "weight" and edges.num_edges <= _FEW_EDGES:
            columns.append(np.ones(edges.num_edges))
        else:
            columns.append(missing_column(name, edges.num_edges, edges.columns))
    return tuple(columns)


def missing_column(name: str, num_edges: int, columns: Collection[str]) -> NDArray[Any]:
    """Return weights that are 1.0 everywhere, [num_edges], which take no memory.

    Raises:
        GraphError: If it is no weight: none of the graph's columns has that name.
    """
    if name == "weight":
        return np.broadcast_to(np.float64(1.0), (num_edges,))
    near = nearest(name, [*columns, "weight", "target"])
    hint = "" if near == "." else near
    raise GraphError(
        f"the program reads edge.{name}, but the edges have no such column; they have: "
        f"{', '.join(columns) or 'none'}{hint}"
    )


def seen_ids(graph: Graph, gids: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the ids that compute() sees: the user's where they are numbers, gids where they are strings."""
    if graph.ids.kind == "strings":
        return np.empty(0, dtype=np.int64) if gids is None else gids
    if gids is None:
        if graph.ids.is_identity:
            return np.empty(0, dtype=np.int64)
        gids = np.arange(graph.num_vertices)
    return np.ascontiguousarray(graph.ids.to_oids(gids), dtype=np.int64)


def target_oids(graph: Graph, gids: NDArray[Any]) -> NDArray[np.int64] | None:
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
        outgoing=rows,
        out_degrees=narrow(degrees),
        outgoing_oids=target_oids(graph, graph.targets) if with_outgoing else None,
    )


def narrow(degrees: NDArray[Any]) -> NDArray[Any]:
    """Return degrees in 32 bits, where all fit these."""
    fits = degrees.size == 0 or int(degrees.max()) < 2**32
    return degrees.astype(np.uint32 if fits else np.uint64)


def _part(
    graph: Graph, assignment: Assignment, with_outgoing: bool, num_threads: int, gpu: Gpu | None
) -> Subgraph:
    group, rows, order = graph.group, None, None
    if not graph.directed and isinstance(assignment, Contiguous):
        rows = rows_of(graph, assignment)
        if gpu is not None:
            order = order_on_gpu(gpu, rows, assignment.bounds, group.rank)
    if order is None:
        arrived = None if rows is not None else _in_edges(graph, assignment)
        order = _order_on_cores(graph, assignment, rows, arrived, num_threads)
    local_of, num_owned = order.local_of, order.by_degree.size
    owned, ghosts, ghost_bounds = (
        assignment.owned(group.rank)[order.by_degree],
        order.ghosts,
        order.ghost_bounds,
    )

    outgoing, out_degrees = None, None
    if rows is not None:
        out_degrees = narrow(
            np.diff(rows.offsets)[order.by_degree]
        )  # each edge is stored at both of its ends
        incoming = in_order(rows, order.by_degree, local_of, num_threads=num_threads, moved_ends=order.ends)
        outgoing = in_order(rows, order.by_degree, num_threads=num_threads) if with_outgoing else None
    else:
        assert arrived is not None
        incoming = grouped(local_of[arrived.rows], local_of[arrived.ends], arrived.columns, num_owned)
        del arrived
    del rows, order
    wanted = group.all_to_all([ghosts[ghost_bounds[r] : ghost_bounds[r + 1]] for r in range(group.size)])
    if with_outgoing and outgoing is None:
        outgoing = _outgoing(graph, assignment, local_of, num_owned)
    gids = np.concatenate([owned, ghosts])
    return Subgraph(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_owned=owned.size,
        num_ghosts=ghosts.size,
        gids=gids,
        ids=seen_ids(graph, gids),
        incoming=incoming,
        outgoing=outgoing,
        out_degrees=_out_degrees(graph, assignment, local_of, owned.size)
        if out_degrees is None
        else out_degrees,
        halo=tuple(local_of[part].astype(np.int64) for part in wanted),
        ghost_bounds=ghost_bounds,
        outgoing_oids=None if outgoing is None else target_oids(graph, outgoing.ends),
        is_undirected=not graph.directed,
    )


def _order_on_cores(
    graph: Graph, assignment: Assignment, rows: EdgeList | None, arrived: _Routed | None, num_threads: int
) -> PartOrder:
    """Return how a part lies, of the rows of its vertices, or of in-edges as they arrived."""
    by_gid = assignment.owned(graph.group.rank)
    local_of = np.zeros(graph.num_vertices, dtype=np.uint32)
    local_of[by_gid] = np.arange(by_gid.size)
    if rows is not None:
        ends, degrees = rows.ends, np.diff(rows.offsets)
    else:
        assert arrived is not None
        ends, degrees = arrived.ends, np.bincount(local_of[arrived.rows], minlength=by_gid.size)
    by_degree = degree_order(degrees)
    local_of[by_gid[by_degree]] = np.arange(by_gid.size)
    uses = uses_of(ends, graph.num_vertices, num_threads)
    uses[by_gid] = 0
    ghosts = np.flatnonzero(uses)
    ghosts = ghosts[degree_order(uses[ghosts])]
    owners = assignment.owner_of(ghosts)
    ghosts = ghosts[np.argsort(owners.astype(np.uint16), kind="stable")]  # 16 bits are sorted by their digits
    ghost_bounds = np.append(0, np.cumsum(np.bincount(owners, minlength=graph.group.size)))
    local_of[ghosts] = np.arange(by_gid.size, by_gid.size + ghosts.size)
    return PartOrder(by_degree, ghosts, ghost_bounds, local_of, None)


def rows_of(graph: Graph, assignment: Contiguous) -> EdgeList:
    """Bring each rank the rows of its vertices, whole pieces of the graph, with gids as ends. Collective.

    What a rank has already is not copied where that is all.
    """
    group, last_row = graph.group, graph.first_row + graph.num_rows
    cuts = np.clip(assignment.bounds, graph.first_row, last_row) - graph.first_row
    at = graph.offsets[cuts].astype(np.int64)

    def brought(values: NDArray[Any], cuts: NDArray[np.int64]) -> NDArray[Any]:
        parts = group.all_to_all([values[cuts[r] : cuts[r + 1]] for r in range(group.size)])
        held = [part for part in parts if part.size]
        return held[0] if len(held) == 1 else np.concatenate(parts)

    degrees = brought(np.diff(graph.offsets), cuts)
    offsets = np.zeros(degrees.size + 1, dtype=np.uint64)
    np.cumsum(degrees, out=offsets[1:])
    columns = {name: brought(column, at) for name, column in graph.columns.items()}
    return EdgeList(offsets, brought(graph.targets, at), columns)


def routed_ends(graph: Graph, assignment: Assignment, *, outward: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bring each rank the out-edges, or the in-edges, of its vertices: their own ends and the others, by gid.

    Collective.
    """

    def address(rows: NDArray[Any], ends: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        own, others = (rows, ends) if outward else (ends.astype(np.int64), rows)
        return assignment.owner_of(own), own, others

    found = _routed(graph, address, {})
    return found.rows, found.ends


def in_edges_of(
    graph: Graph, assignment: Assignment, columns: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]]]:
    """Bring each rank the in-edges of its vertices: targets, sources, by gid, and columns. Collective.

    Each target's are in ascending order of the source.
    """
    found = _in_edges(graph, assignment, columns)
    return found.rows, found.ends, found.columns


def _in_edges(
    graph: Graph, assignment: Assignment, columns: Mapping[str, NDArray[Any]] | None = None
) -> _Routed:
    """Bring each rank the in-edges of its vertices, each target's in ascending order of the source.

    An undirected row holds its vertex's in-edges already; otherwise each edge goes to its target's owner.
    """

    def by_target(rows: NDArray[Any], ends: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        if not graph.directed:
            return assignment.owner_of(rows), rows, ends
        return assignment.owner_of(ends.astype(np.int64)), ends, rows

    return _routed(graph, by_target, columns)


def _outgoing(graph: Graph, assignment: Assignment, local_of: NDArray[np.uint32], num_owned: int) -> EdgeList:
    out = _routed(graph, lambda rows, ends: (assignment.owner_of(rows), rows, ends))
    return grouped(local_of[out.rows], out.ends, out.columns, num_owned)


def _out_degrees(
    graph: Graph, assignment: Assignment, local_of: NDArray[np.uint32], num_owned: int
) -> NDArray[Any]:
    rows = np.arange(graph.first_row, graph.first_row + graph.num_rows)
    order, parts = split_by_rank(assignment.owner_of(rows), graph.group.size)
    gids = np.concatenate(graph.group.all_to_all([rows[order[part]] for part in parts]))
    degrees = graph.out_degrees()[order]
    values = np.concatenate(graph.group.all_to_all([degrees[part] for part in parts]))
    result = np.zeros(num_owned, dtype=np.int64)
    result[local_of[gids]] = values
    return narrow(result)


@dataclass
class _Routed:
    """Edges that arrived: a row and another end each, in gids, in ascending order of the sender's row."""

    rows: NDArray[Any]
    ends: NDArray[Any]
    columns: dict[str, NDArray[Any]]


def _routed(
    graph: Graph,
    address: Callable[..., tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
    columns: Mapping[str, NDArray[Any]] | None = None,
) -> _Routed:
    """Send every edge where `address(rows, ends)` says: owners, then the two arrays to bring. A block at a time.

    Args:
        graph: The graph.
        address: See above.
        columns: Those that go with the edges; None for all.
    """
    group = graph.group
    columns = graph.columns if columns is None else columns
    cuts = _block_cuts(graph)
    num_rounds = int(group.all_reduce(np.array([len(cuts) - 1]), "max")[0])
    arrived: list[list[list[NDArray[Any]]]] = [
        [[] for _ in range(group.size)] for _ in range(2 + len(columns))
    ]
    for number in range(num_rounds):
        first, last = (cuts[number], cuts[number + 1]) if number + 1 < len(cuts) else (0, 0)
        edges = slice(int(graph.offsets[first]), int(graph.offsets[last]))
        degrees = np.diff(graph.offsets[first : last + 1]).view(np.int64)
        rows = np.repeat(np.arange(graph.first_row + first, graph.first_row + last), degrees)
        owners, keys, others = address(rows, graph.targets[edges])
        order, parts = split_by_rank(owners, group.size)
        kind = graph.targets.dtype
        moved = [keys.astype(kind, copy=False), others.astype(kind, copy=False)]
        moved += [column[edges] for column in columns.values()]
        for store, array in zip(arrived, moved, strict=True):
            pieces = group.all_to_all([array[order[part]] for part in parts])
            for peer, piece in enumerate(pieces):
                store[peer].append(piece)
    dtypes = [graph.targets.dtype, graph.targets.dtype, *[c.dtype for c in columns.values()]]
    whole = [
        np.concatenate([np.empty(0, dtype=dtype), *[piece for peer in store for piece in peer]])
        for store, dtype in zip(arrived, dtypes, strict=True)
    ]
    return _Routed(whole[0], whole[1], dict(zip(columns, whole[2:], strict=True)))


_BLOCK_EDGES = 1 << 21
_FEW_EDGES = 1 << 12


def _block_cuts(graph: Graph) -> list[int]:
    """Cut this rank's rows into blocks of about `_BLOCK_EDGES` edges."""
    goals = np.arange(_BLOCK_EDGES, max(graph.targets.size, 1), _BLOCK_EDGES, dtype=np.uint64)
    inner = np.searchsorted(graph.offsets, goals).tolist()
    return sorted({0, *inner, graph.num_rows}) if graph.num_rows else [0, 0]
