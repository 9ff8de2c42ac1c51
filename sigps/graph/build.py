"""From chunks of edges to a graph: the one path of every loader and generator.

Four steps: take in this rank's chunks in as few bytes as they need; number the ids; give every rank a
range of rows of about equal cost and send it those rows' edges; sort the edges into rows. Each step
consumes what the one before it made, chunk by chunk.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.graph import Graph
from sigps.graph.ids import as_ids, split_by_rank
from sigps.graph.numbering import Numbering, number_dense, number_given, number_sorted
from sigps.graph.report import LoadReport
from sigps.graph.rows import Duplicates, EdgeChunk, Rows, mirror, sort_edges
from sigps.group import Group, world

__all__ = ["EdgeChunk", "build_graph"]

SelfLoops = Literal["keep", "drop"]


def build_graph(
    chunks: Iterable[EdgeChunk],
    *,
    directed: bool,
    group: Group | None = None,
    vertices: ArrayLike | None = None,
    duplicates: Duplicates = "keep",
    self_loops: SelfLoops = "keep",
    ids: Literal["table", "identity"] = "table",
    num_vertices: int | None = None,
    report: LoadReport | None = None,
) -> Graph:
    """Build a graph from this rank's share of its edges. Collective.

    The result depends only on the edges in the order of ranks and chunks, not on how they are cut up.
    An undirected edge is stored in both its ends' rows, a self-loop once.

    Args:
        chunks: This rank's edges; consumed once. Ids are int64-able or str, the same kind everywhere.
        directed: Whether edges have a direction.
        group: The ranks that build together; None for those that the launcher started.
        vertices: Ids that are vertices with or without an edge; on several ranks, any share of them.
        duplicates: `"keep"` parallel edges, `"drop"` all but the first given, or reduce their weights by
            `"sum"`, `"min"` or `"max"` (other columns keep the first). Undirected, (u, v) repeats (v, u).
        self_loops: `"keep"` or `"drop"`; a vertex of a dropped self-loop stays.
        ids: `"table"`: the vertices are the ids that occur. `"identity"`: they are 0..num_vertices - 1.
        num_vertices: Needed with `ids="identity"`.
        report: The account to fill in; None starts one.

    Raises:
        GraphError: If ids, weights, lengths or options are wrong.
    """
    started = time.perf_counter()
    group = world() if group is None else group
    report = LoadReport() if report is None else report
    _check_options(duplicates, self_loops, ids, num_vertices)
    taken = [_take_in(chunk) for chunk in chunks]
    named = None if vertices is None else as_ids(vertices, "vertices").ravel()
    _agree_on_columns(taken, group)
    numbering = _number(taken, named, num_vertices if ids == "identity" else None, group)
    del named
    num_loops, given = _to_gids(taken, numbering, drop_loops=self_loops == "drop")
    row_bounds = _balance_rows(taken, numbering.num_vertices, directed, group)
    if group.size > 1:
        taken = _send_to_rows(taken, row_bounds, directed, group)
    rows = sort_edges(
        taken,
        symmetric=not directed and group.size == 1,
        num_vertices=numbering.num_vertices,
        row_range=(int(row_bounds[group.rank]), int(row_bounds[group.rank + 1])),
        duplicates=duplicates,
    )
    counts = np.array([given, num_loops, rows.num_repeats, rows.num_loop_repeats, rows.targets.size])
    given, num_loops, repeats, loop_repeats, stored = group.all_reduce(counts, "sum").tolist()
    graph = Graph(
        offsets=rows.offsets,
        targets=rows.targets,
        columns=rows.columns,
        num_edges=stored,
        directed=directed,
        ids=numbering.ids_for(row_bounds),
        row_bounds=row_bounds,
        group=group,
        report=report,
    )
    report.directed = directed
    report.num_vertices = numbering.num_vertices
    report.edges_given = given
    report.edges_stored = stored
    report.duplicates = repeats if directed else loop_repeats + (repeats - loop_repeats) // 2
    report.duplicates_policy = duplicates
    report.self_loops, report.self_loops_policy = num_loops, self_loops
    report.isolated = _count_isolated(graph, rows)
    report.base, report.id_map = _smallest_id(graph), graph.ids.kind
    report.num_bytes = int(group.all_reduce(np.array([graph.nbytes]), "sum")[0])
    seconds = np.array([report.seconds + time.perf_counter() - started])
    report.seconds = float(group.all_reduce(seconds, "max")[0])
    return graph


_EXCHANGE_EDGES = 1 << 22  # edges a rank sends at once
_MAX_BINS = 1 << 16
_DENSE_IDS = 1 << 22  # a bitmap of so many ids is always cheap


def _check_options(duplicates: str, self_loops: str, ids: str, num_vertices: int | None) -> None:
    for name, value, allowed in (
        ("duplicates", duplicates, get_args(Duplicates)),
        ("self_loops", self_loops, get_args(SelfLoops)),
        ("ids", ids, ("table", "identity")),
    ):
        if value not in allowed:
            raise GraphError(f"{name}={value!r} is not known; choose one of {', '.join(allowed)}")
    if ids == "identity" and (num_vertices is None or num_vertices < 0):
        raise GraphError(f"ids='identity' needs num_vertices, a count, not {num_vertices}")


def _take_in(chunk: EdgeChunk) -> EdgeChunk:
    """Check a chunk and keep its ends as uint32 where all fit, else as int64 or str."""
    sources, targets = as_ids(chunk.sources, "sources"), as_ids(chunk.targets, "targets")
    for name, column in (("sources", sources), ("targets", targets), *chunk.columns.items()):
        if np.ndim(column) != 1 or len(column) != len(sources):
            raise GraphError(
                f"{name} has shape {np.shape(column)}, sources {np.shape(sources)}: every edge needs one value"
            )
    columns = {name: as_column(column, name) for name, column in chunk.columns.items()}
    if (sources.dtype.kind == "U") != (targets.dtype.kind == "U") and sources.size:
        raise GraphError("one end of the edges has string ids, the other integers: give both as strings")
    if sources.dtype.kind != "U":
        ends = (sources, targets)
        small = not sources.size or (
            min(int(end.min()) for end in ends) >= 0 and max(int(end.max()) for end in ends) < 2**32
        )
        dtype = np.uint32 if small else np.int64
        sources, targets = (end.astype(dtype) for end in ends)
    return EdgeChunk(sources, targets, columns)


def as_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an edge column as an array; a weight as int64, float32 or float64, without NaN."""
    column = np.asarray(values)
    if column.dtype.kind == "O":
        column = np.array(column.tolist())
    if column.dtype.kind not in "biuf":
        raise GraphError(f"column {name!r} holds {column.dtype}: an edge column must be numeric")
    if name != "weight":
        return column
    if column.dtype.kind == "f":
        if np.isnan(column).any():
            at = int(np.flatnonzero(np.isnan(column))[0])
            raise GraphError(f"weight[{at}] is NaN: every edge needs a number. Fill or remove such rows.")
        return column.astype(np.float32 if column.dtype.itemsize <= 4 else np.float64, copy=False)
    if column.dtype == np.uint64 and column.size and int(column.max()) >= 2**63:
        raise GraphError(f"weight {column.max()} is above the largest int64; give such weights as float64")
    return column.astype(np.int64, copy=False)


def _agree_on_columns(chunks: list[EdgeChunk], group: Group) -> None:
    """Give all chunks of all ranks the same columns and dtypes; leave at least one chunk."""
    known: dict[str, str] = {}
    names = {tuple(chunk.columns) for chunk in chunks}
    for chunk in chunks:
        for name, column in chunk.columns.items():
            known[name] = np.result_type(column.dtype, np.dtype(known.get(name, column.dtype))).str
    everywhere: list[Any] = group.all_gather([[list(order) for order in sorted(names)], known])
    orders = {tuple(order) for rank_orders, _ in everywhere for order in rank_orders}
    if len({frozenset(order) for order in orders}) > 1:
        raise GraphError(f"chunks have different columns: {sorted(orders)}; every edge needs the same")
    agreed: dict[str, np.dtype[Any]] = {}
    for name in min(orders, default=()):
        agreed[name] = np.result_type(*(types[name] for _, types in everywhere if name in types))
    if not chunks:
        nothing = np.empty(0, dtype=np.uint32)
        chunks.append(
            EdgeChunk(nothing, nothing, {name: np.empty(0, dtype) for name, dtype in agreed.items()})
        )
    for chunk in chunks:
        chunk.columns = {
            name: chunk.columns[name].astype(dtype, copy=False) for name, dtype in agreed.items()
        }


def _number(
    chunks: list[EdgeChunk], named: NDArray[Any] | None, num_vertices: int | None, group: Group
) -> Numbering:
    """Choose how ids are numbered, by their kind and range over all ranks. Collective."""
    ends = [end for chunk in chunks for end in (chunk.sources, chunk.targets) if end.size]
    if named is not None and named.size:
        ends.append(named)
    strings = [end.dtype.kind == "U" for end in ends]
    kinds = group.all_gather([any(strings), not all(strings)])
    if any(has_strings for has_strings, _ in kinds):
        if any(has_integers for _, has_integers in kinds):
            raise GraphError("some ids are strings and some are integers; give all of them as strings")
        if num_vertices is not None:
            raise GraphError("ids='identity' needs integer ids, but the edges have strings")
        return _number_strings(chunks, named, group)
    low = min((int(end.min()) for end in ends), default=2**63 - 1)
    high = max((int(end.max()) for end in ends), default=-(2**63))
    low = int(group.all_reduce(np.array([low]), "min")[0])
    high = int(group.all_reduce(np.array([high]), "max")[0])
    num_ends = int(group.all_reduce(np.array([sum(end.size for end in ends)]), "sum")[0])
    if num_vertices is not None:
        if num_ends and not (low >= 0 and high < num_vertices):
            raise GraphError(f"ids {low}..{high} lie outside 0..{num_vertices - 1}, as ids='identity' needs")
        return number_given(num_vertices)
    if not num_ends:
        return number_given(0)
    if high - low < max(_DENSE_IDS, num_ends // 2):
        return number_dense(chunks, named, low, high, group)
    _cast_ends(chunks, np.dtype(np.int64))
    return number_sorted(chunks, None if named is None else named.astype(np.int64), group)


def _number_strings(chunks: list[EdgeChunk], named: NDArray[Any] | None, group: Group) -> Numbering:
    widths = [
        end.dtype.itemsize // 4 for chunk in chunks for end in (chunk.sources, chunk.targets) if end.size
    ]
    widths += [] if named is None else [named.dtype.itemsize // 4]
    width = int(group.all_reduce(np.array([max(widths, default=1)]), "max")[0])
    dtype = np.dtype(f"<U{width}")
    _cast_ends(chunks, dtype)
    return number_sorted(chunks, None if named is None else named.astype(dtype), group)


def _cast_ends(chunks: list[EdgeChunk], dtype: np.dtype[Any]) -> None:
    for chunk in chunks:
        chunk.sources = chunk.sources.astype(dtype, copy=False)
        chunk.targets = chunk.targets.astype(dtype, copy=False)


def _to_gids(chunks: list[EdgeChunk], numbering: Numbering, *, drop_loops: bool) -> tuple[int, int]:
    """Replace the chunks' oids by gids; return how many self-loops and how many edges were given."""
    num_loops = given = 0
    dtype = np.uint32 if numbering.num_vertices < 2**32 else np.uint64
    for index, chunk in enumerate(chunks):
        sources, targets = numbering.gids_of(index, chunk)
        chunk.sources, chunk.targets = sources.astype(dtype, copy=False), targets.astype(dtype, copy=False)
        apart = chunk.sources != chunk.targets
        given += apart.size
        loops = apart.size - int(np.count_nonzero(apart))
        num_loops += loops
        if loops and drop_loops:
            chunk.sources, chunk.targets = chunk.sources[apart], chunk.targets[apart]
            chunk.columns = {name: column[apart] for name, column in chunk.columns.items()}
    return num_loops, given


def _balance_rows(
    chunks: list[EdgeChunk], num_vertices: int, directed: bool, group: Group
) -> NDArray[np.int64]:
    """Return row bounds that give each rank about the same bytes: 4 an edge, 8 a row. Collective."""
    if group.size == 1:
        return np.array([0, num_vertices])
    shift = max(0, max(num_vertices - 1, 0).bit_length() - _MAX_BINS.bit_length() + 1)
    num_bins = -(-num_vertices // (1 << shift))
    cost = np.zeros(num_bins, dtype=np.int64)
    for chunk in chunks:
        for ends in (chunk.sources,) if directed else (chunk.sources, chunk.targets):
            cost += np.bincount((ends >> ends.dtype.type(shift)).astype(np.int64), minlength=num_bins)
    cost = group.all_reduce(cost, "sum") + 2 * (1 << shift)
    behind = np.cumsum(cost)
    goals = np.arange(1, group.size) * (int(behind[-1]) if num_bins else 0) / group.size
    inner = np.minimum((np.searchsorted(behind, goals) + 1) << shift, num_vertices)
    return np.concatenate([[0], inner if num_bins else inner * 0, [num_vertices]]).astype(np.int64)


def _send_to_rows(
    chunks: list[EdgeChunk], row_bounds: NDArray[np.int64], directed: bool, group: Group
) -> list[EdgeChunk]:
    """Bring each edge to the rank of its row, in rounds of bounded size; keep the given order. Collective."""
    blocks = [(chunk, start) for chunk in chunks for start in range(0, chunk.sources.size, _EXCHANGE_EDGES)]
    arrived: list[list[EdgeChunk]] = [[] for _ in range(group.size)]
    rounds = int(group.all_reduce(np.array([max(len(blocks), 1)]), "max")[0])
    empty = _cut(chunks[0], 0, 0)
    chunks.clear()
    blocks.reverse()
    for _ in range(rounds):
        block = empty
        if blocks:
            chunk, start = blocks.pop()
            block = _cut(chunk, start, start + _EXCHANGE_EDGES)
        if not directed:
            block = mirror(block)
        owners = np.searchsorted(row_bounds, block.sources, side="right") - 1
        order, parts = split_by_rank(owners, group.size)
        moved = {
            name: group.all_to_all([values[order[part]] for part in parts])
            for name, values in (("\0s", block.sources), ("\0t", block.targets), *block.columns.items())
        }
        for peer in range(group.size):
            columns = {name: values[peer] for name, values in moved.items() if name[0] != "\0"}
            arrived[peer].append(EdgeChunk(moved["\0s"][peer], moved["\0t"][peer], columns))
    return [chunk for from_peer in arrived for chunk in from_peer]


def _cut(chunk: EdgeChunk, start: int, stop: int) -> EdgeChunk:
    columns = {name: column[start:stop] for name, column in chunk.columns.items()}
    return EdgeChunk(chunk.sources[start:stop], chunk.targets[start:stop], columns)


def _count_isolated(graph: Graph, rows: Rows) -> int:
    """Count vertices without out-edge and in-edge, over all ranks. Collective."""
    group = graph.group
    lonely = rows.offsets[1:] == rows.offsets[:-1]
    if graph.directed:
        reached = np.zeros(graph.num_vertices, dtype=np.bool_)
        reached[rows.targets] = True
        if group.size > 1:
            bounds = graph.row_bounds
            slices = [reached[bounds[rank] : bounds[rank + 1]].view(np.uint8) for rank in range(group.size)]
            reached = np.bitwise_or.reduce(np.stack(group.all_to_all(slices)), axis=0).view(np.bool_)
        lonely &= ~reached
    return int(group.all_reduce(np.array([np.count_nonzero(lonely)]), "sum")[0])


def _smallest_id(graph: Graph) -> int | None:
    if not graph.num_vertices or graph.ids.kind == "strings":
        return None
    return int(graph.ids.to_oids(np.zeros(1, dtype=np.int64))[0])
