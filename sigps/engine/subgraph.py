"""One partition as the engine runs it: owned vertices, all their in-edges, and ghosts.

Owned vertices come first in the local numbering, then the ghosts: remote vertices with an edge into the partition,
grouped by owner and, inside a group, in descending order of their edges into the partition. In-edges stand in
ascending order of the source's gid, so that a sum over them is the same for every partitioning. Owned vertices are
numbered by descending in-degree, which keeps busy records together. A partition that is the whole graph uses the
graph's own arrays and numbering, unless CPU cores gain by another one (`gains_by_degree`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import available_memory
from sigps.errors import GraphError
from sigps.graph.assignment import Contiguous
from sigps.graph.graph import Graph
from sigps.graph.ids import split_by_rank
from sigps.graph.partition import Assignment, degree_order

if TYPE_CHECKING:
    from sigps.engine.neighbor_rows import NeighborRows

__all__ = [
    "EdgeList",
    "Subgraph",
    "build_subgraph",
    "columns_of",
    "gains_by_degree",
    "with_rows",
]


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges grouped by one end: `offsets` [rows + 1] uint64, `ends` the other end, `columns` in the same order."""

    offsets: NDArray[np.uint64]
    ends: NDArray[Any]
    columns: Mapping[str, NDArray[Any]]

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.ends.nbytes + sum(c.nbytes for c in self.columns.values())


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
        neighbor_rows: The edges of neighbours, where a program looks through them.
        is_symmetric: Whether in-edges by target are the same as by source: local ids all around, and no ghosts.
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

    @cached_property
    def pushed(self) -> EdgeList:
        """In-edges by source, owned and ghosts; ends are local ids of owned targets.

        The whole graph has them as it is, or the same either way. A part lays them out when somebody first asks, since
        many programs never push and they take as much memory as the in-edges.
        """
        if self.gids is None:
            assert self.outgoing is not None
            return self.outgoing
        if self.is_symmetric:
            return self.incoming
        return _by_source(self.incoming, self.num_owned + self.num_ghosts)

    @cached_property
    def by_gid(self) -> NDArray[np.int64]:
        """Owned local ids in ascending order of their gids, [num_owned]."""
        return np.argsort(self.owned_gids)

    @cached_property
    def sorted_gids(self) -> NDArray[np.int64]:
        """The gids of owned vertices, ascending."""
        return self.owned_gids[self.by_gid]

    @property
    def owned_gids(self) -> NDArray[np.int64]:
        return np.arange(self.num_owned) if self.gids is None else self.gids[: self.num_owned]

    def sources_of_edges(self) -> NDArray[np.int64]:
        """Return the gids of the owned ends of the out-edges, in the order of `outgoing`."""
        assert self.outgoing is not None
        return np.repeat(self.owned_gids, np.diff(self.outgoing.offsets).astype(np.int64))

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
    graph: Graph, assignment: Assignment, *, with_outgoing: bool, num_threads: int = 0
) -> Subgraph:
    """Bring each rank its partition: collective; one process alone copies nothing, but by degree.

    Args:
        graph: The graph, its rows spread over `graph.group`.
        assignment: Which rank owns which vertex.
        with_outgoing: Whether compute() walks out-edges.
        num_threads: CPU cores that lay the whole graph out by degree, where `gains_by_degree`; 0 for none.
    """
    if graph.group.size > 1:
        return _part(graph, assignment, with_outgoing)
    if not num_threads:
        return _whole(graph, with_outgoing)
    part = _whole_by_degree(graph, num_threads)
    return with_rows(part, graph, num_threads) if with_outgoing else part


_FEW_VERTICES, _MOST_VERTICES = 1 << 16, 1 << 32


def gains_by_degree(graph: Graph) -> bool:
    """Tell whether CPU cores that read records are faster where vertices of many in-edges lie together.

    They are where records do not all stay in a core's cache, and most edges lead to few vertices. There must be memory
    for the edges in two orders, or three where they are directed: twice as much as that. O(vertices).
    """
    an_edge = 4 + sum(column.dtype.itemsize for column in graph.columns.values())
    copies = (2 + graph.directed) * an_edge * graph.num_edges
    if not _FEW_VERTICES < graph.num_vertices < _MOST_VERTICES or graph.num_edges < graph.num_vertices:
        return False
    return copies < available_memory() // 2 and is_skewed(np.diff(graph.in_edges().offsets))


def is_skewed(degrees: NDArray[Any]) -> bool:
    """Tell whether an eighth of the vertices have more than half of the edges.

    >>> is_skewed(np.repeat([100, 1], [100, 900])), is_skewed(np.full(1000, 8))
    (True, False)
    """
    many = degrees.size - degrees.size // 8
    to_many, to_all = (int(d.sum(dtype=np.int64)) for d in (np.partition(degrees, many)[many:], degrees))
    return 2 * to_many > to_all


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
        elif name == "weight" and edges.ends.size <= _FEW_EDGES:
            columns.append(np.ones(edges.ends.size))
        elif name == "weight":
            columns.append(np.broadcast_to(np.float64(1.0), edges.ends.shape))
        else:
            known = ", ".join(edges.columns) or "none"
            raise GraphError(
                f"the program reads edge.{name}, but the edges have no such column; they have: {known}"
            )
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
        outgoing=rows,
        out_degrees=_narrow(degrees),
        outgoing_oids=_target_oids(graph, graph.targets) if with_outgoing else None,
    )


def _whole_by_degree(graph: Graph, num_threads: int) -> Subgraph:
    inward = graph.in_edges()
    order = degree_order(np.diff(inward.offsets))
    local_of = np.empty(order.size, dtype=np.uint32)
    local_of[order] = np.arange(order.size, dtype=np.uint32)
    incoming = EdgeList(inward.offsets, inward.sources, inward.columns)
    return Subgraph(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_owned=order.size,
        num_ghosts=0,
        gids=order,
        ids=seen_ids(graph, order),
        incoming=_in_order(incoming, order, local_of, num_threads=num_threads),
        outgoing=None,
        out_degrees=_narrow(np.diff(graph.offsets)[order]),
        is_symmetric=not graph.directed,
    )


def with_rows(part: Subgraph, graph: Graph, num_threads: int) -> Subgraph:
    """Return the whole graph by degree with its out-edges, for a program that walks them."""
    assert part.gids is not None
    rows = EdgeList(graph.offsets, graph.targets, graph.columns)
    outgoing = _in_order(rows, part.gids, num_threads=num_threads)
    wider = replace(part, outgoing=outgoing, outgoing_oids=_target_oids(graph, outgoing.ends))
    if "pushed" in part.__dict__:
        wider.__dict__["pushed"] = part.pushed  # laid out already
    return wider


def _narrow(degrees: NDArray[Any]) -> NDArray[Any]:
    fits = degrees.size == 0 or int(degrees.max()) < 2**32
    return degrees.astype(np.uint32 if fits else np.uint64)


def _part(graph: Graph, assignment: Assignment, with_outgoing: bool) -> Subgraph:
    from sigps.kernels.layout import count_uses

    group = graph.group
    by_gid = assignment.owned(group.rank)
    local_of = np.zeros(graph.num_vertices, dtype=np.uint32)
    local_of[by_gid] = np.arange(by_gid.size)
    rows = None if graph.directed else _own_rows(graph, assignment)
    if rows is not None:
        sources, degrees = rows.ends, np.diff(rows.offsets)
    else:
        arrived = _in_edges(graph, assignment)
        sources, degrees = arrived.ends, np.bincount(local_of[arrived.rows], minlength=by_gid.size)
    by_degree = degree_order(degrees)
    owned = by_gid[by_degree]
    local_of[owned] = np.arange(owned.size)

    uses = np.zeros(graph.num_vertices, dtype=np.uint32)
    count_uses(sources, uses)
    uses[by_gid] = 0
    ghosts = np.flatnonzero(uses)
    ghosts = ghosts[degree_order(uses[ghosts])]
    del uses
    owners = assignment.owner_of(ghosts)
    ghosts = ghosts[np.argsort(owners, kind="stable")]
    ghost_bounds = np.searchsorted(np.sort(owners), np.arange(group.size + 1))
    local_of[ghosts] = np.arange(owned.size, owned.size + ghosts.size)

    outgoing = None
    if rows is not None:
        incoming = _in_order(rows, by_degree, local_of)
        outgoing = _in_order(rows, by_degree) if with_outgoing else None
    else:
        incoming = _grouped(local_of[arrived.rows], local_of[sources], arrived.columns, owned.size)
        del arrived
    del rows, sources
    asked = group.all_to_all([ghosts[ghost_bounds[r] : ghost_bounds[r + 1]] for r in range(group.size)])
    if with_outgoing and outgoing is None:
        outgoing = _outgoing(graph, assignment, local_of, owned.size)
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
        out_degrees=_out_degrees(graph, assignment, local_of, owned.size),
        halo=tuple(local_of[part].astype(np.int64) for part in asked),
        ghost_bounds=ghost_bounds,
        outgoing_oids=None if outgoing is None else _target_oids(graph, outgoing.ends),
    )


def _own_rows(graph: Graph, assignment: Assignment) -> EdgeList | None:
    """Bring each rank the rows of its vertices, by gid: whole pieces of the graph, where parts are contiguous.

    Returns:
        None where they are not. One process's own rows are not copied.
    """
    if not isinstance(assignment, Contiguous):
        return None
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


def _in_order(
    rows: EdgeList,
    order: NDArray[np.int64],
    names: NDArray[np.uint32] | None = None,
    *,
    num_threads: int = 1,
) -> EdgeList:
    """Return rows in another order; ends called by other names, where there are some.

    Columns follow when they are first read: few programs read them all.
    """
    from sigps.kernels.layout import rows_in_order

    offsets = np.zeros(order.size + 1, dtype=np.uint64)
    np.cumsum(np.diff(rows.offsets)[order], out=offsets[1:])
    begins = rows.offsets
    goals = np.linspace(0, int(offsets[-1]), num_threads + 1).astype(np.uint64)
    cuts = [0, *np.searchsorted(offsets, goals[1:-1]).tolist(), order.size]

    def moved(values: NDArray[Any], names: NDArray[np.uint32] | None = None) -> NDArray[Any]:
        result = np.empty(values.size, dtype=values.dtype if names is None else names.dtype)

        def move(span: tuple[int, int]) -> None:
            first, last = span
            place = result[int(offsets[first]) : int(offsets[last])]
            rows_in_order(begins, order[first:last], values, names, place)

        with ThreadPoolExecutor(num_threads, thread_name_prefix="sigps-layout") as pool:
            list(pool.map(move, pairwise(cuts)))
        return result

    columns = dict(rows.columns)  # each may go when it has been moved
    return EdgeList(offsets, moved(rows.ends, names), _Moved(columns, lambda name: moved(columns.pop(name))))


class _Moved(Mapping[str, Any]):
    """Columns of edges in another order, each brought there when it is first read.

    Args:
        names: Theirs.
        move: Returns one in that order.
    """

    def __init__(self, names: Iterable[str], move: Callable[[str], NDArray[Any]]) -> None:
        self._names, self._move = tuple(names), move
        self._moved: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._moved:
            if name not in self._names:
                raise KeyError(name)
            self._moved[name] = self._move(name)
        return self._moved[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _in_edges(graph: Graph, assignment: Assignment) -> _Routed:
    """Bring each rank the in-edges of its vertices, each target's in ascending order of the source.

    An undirected row holds its vertex's in-edges already; otherwise each edge goes to its target's owner.
    """
    if not graph.directed:
        return _routed(graph, lambda rows, ends: (assignment.owner_of(rows), rows, ends))
    return _routed(graph, lambda rows, ends: (assignment.owner_of(ends.astype(np.int64)), ends, rows))


def _outgoing(graph: Graph, assignment: Assignment, local_of: NDArray[np.uint32], num_owned: int) -> EdgeList:
    out = _routed(graph, lambda rows, ends: (assignment.owner_of(rows), rows, ends))
    return _grouped(local_of[out.rows], out.ends, out.columns, num_owned)


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
    return _narrow(result)


@dataclass
class _Routed:
    """Edges that arrived: a row and another end each, in gids, in ascending order of the sender's row."""

    rows: NDArray[Any]
    ends: NDArray[Any]
    columns: dict[str, NDArray[Any]]


def _routed(graph: Graph, address: Callable[..., tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]) -> _Routed:
    """Send every edge where `address(rows, ends)` says: owners, then the two arrays to bring. A block at a time."""
    group = graph.group
    cuts = _block_cuts(graph)
    num_rounds = int(group.all_reduce(np.array([len(cuts) - 1]), "max")[0])
    arrived: list[list[list[NDArray[Any]]]] = [
        [[] for _ in range(group.size)] for _ in range(2 + len(graph.columns))
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
        moved += [column[edges] for column in graph.columns.values()]
        for store, array in zip(arrived, moved, strict=True):
            pieces = group.all_to_all([array[order[part]] for part in parts])
            for peer, piece in enumerate(pieces):
                store[peer].append(piece)
    dtypes = [graph.targets.dtype, graph.targets.dtype, *[c.dtype for c in graph.columns.values()]]
    whole = [
        np.concatenate([np.empty(0, dtype=dtype), *[piece for peer in store for piece in peer]])
        for store, dtype in zip(arrived, dtypes, strict=True)
    ]
    return _Routed(whole[0], whole[1], dict(zip(graph.columns, whole[2:], strict=True)))


_BLOCK_EDGES = 1 << 21
_FEW_EDGES = 1 << 12


def _block_cuts(graph: Graph) -> list[int]:
    """Cut this rank's rows into blocks of about `_BLOCK_EDGES` edges."""
    goals = np.arange(_BLOCK_EDGES, max(graph.targets.size, 1), _BLOCK_EDGES, dtype=np.uint64)
    inner = np.searchsorted(graph.offsets, goals).tolist()
    return sorted({0, *inner, graph.num_rows}) if graph.num_rows else [0, 0]


def _grouped(
    rows: NDArray[np.uint32], ends: NDArray[Any], columns: dict[str, NDArray[Any]], num_rows: int
) -> EdgeList:
    """Group edges by row, in their given order inside a row."""
    from sigps.kernels.layout import order_by_row

    offsets, order = order_by_row(rows, num_rows)
    return EdgeList(offsets, ends[order], {name: column[order] for name, column in columns.items()})


def _by_source(incoming: EdgeList, num_sources: int) -> EdgeList:
    """Return in-edges grouped by their source."""
    from sigps.kernels.layout import targets_by_source

    num_edges = incoming.ends.size
    offsets = np.zeros(num_sources + 1, dtype=np.uint64)
    np.cumsum(np.bincount(incoming.ends, minlength=num_sources), out=offsets[1:], dtype=np.uint64)
    targets = np.empty(num_edges, dtype=np.uint32)
    targets_by_source(incoming.offsets, incoming.ends, targets, np.empty(0, dtype=np.int64))

    def moved(name: str) -> NDArray[Any]:
        order = np.empty(num_edges, dtype=np.int64)
        targets_by_source(incoming.offsets, incoming.ends, np.empty_like(targets), order)
        column: NDArray[Any] = incoming.columns[name][order]
        return column

    return EdgeList(offsets, targets, _Moved(incoming.columns, moved))
