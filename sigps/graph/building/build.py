"""From chunks of edges to the arrays of a graph: the path of every loader and generator.

Four steps: collect this rank's chunks in a buffer; number the ids; give every rank a range of rows of about
equal cost and send it those rows' edges; sort the edges into rows. An edge is in memory once at any time, except
those of the block that is being sent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import EdgeBuffer, EdgeChunk, KeyForm, TextChunk, mirror
from sigps.graph.building.numbering import Numbering, Segment, Share, encode, number, translated
from sigps.graph.building.place import gpu_for
from sigps.graph.building.rows import (
    MIN_COUNTED_EDGES,
    Duplicates,
    Rows,
    SelfLoops,
    rows_as_chunks,
    sort_edges,
)
from sigps.graph.building.spread import balance_rows, send_to_rows
from sigps.graph.building.vertex_columns import moved_to_rows
from sigps.graph.ids import Ids
from sigps.graph.report import LoadReport
from sigps.graph.user_arrays import as_column, as_ids
from sigps.group import Group, raise_together

if TYPE_CHECKING:
    from sigps.device.cuda import Gpu
    from sigps.graph.building.on_gpu import EdgesOnGpu

__all__ = [
    "both_ways",
    "build",
    "build_on_gpu",
    "each_once",
    "finished",
    "fits_gpu",
    "is_simple",
    "undirected",
]


def build(
    chunks: Iterable[EdgeChunk | TextChunk],
    *,
    directed: bool,
    group: Group,
    vertices: ArrayLike | None = None,
    duplicates: Duplicates = "keep",
    self_loops: SelfLoops = "keep",
    ids: Literal["table", "identity"] = "table",
    num_vertices: int | None = None,
    report: LoadReport | None = None,
) -> GraphArrays:
    """Return the arrays of the graph of these edges; see `sigps.graph.graph.build_graph`. Collective."""
    started = time.perf_counter()
    report = LoadReport() if report is None else report
    _check_options(duplicates, self_loops, ids, num_vertices)
    share = _collect(chunks, vertices, group)
    _unify_columns(share.edges, group)
    numbering = number(share, num_vertices if ids == "identity" else None, group)
    given = share.edges.size
    edges, num_loops, row_bounds = _bring_to_rows(share, numbering, directed, self_loops == "drop", group)
    graph_ids = numbering.ids_for(row_bounds)
    del share, numbering  # frees their tables before the sort
    form = KeyForm.of(graph_ids.num_vertices, (int(row_bounds[group.rank]), int(row_bounds[group.rank + 1])))
    rows = _sorted(edges, form, graph_ids, not directed and group.size == 1, duplicates, group)
    report.duplicates_policy, report.self_loops_policy = duplicates, self_loops
    return finished(rows, graph_ids, row_bounds, directed, group, report, (given, num_loops, started))


def build_on_gpu(
    edges: EdgesOnGpu,
    gpu: Gpu,
    *,
    directed: bool,
    group: Group,
    duplicates: Literal["keep", "drop"],
    self_loops: SelfLoops,
    report: LoadReport,
) -> GraphArrays:
    """Return the arrays of the graph of edges that are in the memory of a GPU. Frees the edges; one process only."""
    from sigps.graph.building.on_gpu import rows_on_gpu

    started = time.perf_counter()
    given = edges.keys.size
    rows, num_loops = rows_on_gpu(
        edges,
        gpu,
        symmetric=not directed,
        drops_repeats=duplicates == "drop",
        drops_loops=self_loops == "drop",
    )
    report.duplicates_policy, report.self_loops_policy = duplicates, self_loops
    bounds = np.array([0, edges.ids.num_vertices])
    return finished(rows, edges.ids, bounds, directed, group, report, (given, num_loops, started))


def fits_gpu(duplicates: Duplicates, columns: Mapping[str, Any]) -> bool:
    """Return whether a GPU does with parallel edges what is asked for: it keeps or drops them, and adds no weights."""
    return duplicates in ("keep", "drop") or "weight" not in columns


def _sorted(
    buffers: list[EdgeBuffer],
    form: KeyForm,
    ids: Ids,
    symmetric: bool,
    duplicates: Duplicates,
    group: Group,
) -> Rows:
    """Sort edges into rows, on a GPU where that pays. Frees the buffers."""
    first = buffers[0]
    is_easy = len(buffers) == 1 and form.target_bits == 32 and fits_gpu(duplicates, first.columns)
    if is_easy and (gpu := gpu_for(first.size, first.columns, group, symmetric=symmetric)):
        from sigps.device.transfers import send
        from sigps.graph.building.on_gpu import EdgesOnGpu, rows_on_gpu

        edges = EdgesOnGpu(send(first.keys), first.columns, ids)
        first.keys, first.columns = np.empty(0, np.uint64), {}
        drops = duplicates != "keep"
        return rows_on_gpu(edges, gpu, symmetric=symmetric, drops_repeats=drops, drops_loops=False)[0]
    return sort_edges(
        buffers,
        form,
        symmetric=symmetric,
        duplicates=duplicates,
        num_threads=max(1, len(os.sched_getaffinity(0)) // group.size),
    )


def finished(
    rows: Rows,
    ids: Ids,
    row_bounds: NDArray[np.int64],
    directed: bool,
    group: Group,
    report: LoadReport,
    counted: tuple[int, int, float],
) -> GraphArrays:
    """Return the arrays of finished rows, and complete the report. Collective.

    `counted` are the edges that this rank was given, the self-loops among them, and when building began.
    """
    graph = GraphArrays(
        offsets=rows.offsets,
        targets=rows.targets,
        columns=rows.columns,
        num_edges=int(group.all_reduce(np.array([rows.targets.size]), "sum")[0]),
        directed=directed,
        ids=ids,
        row_bounds=row_bounds,
        group=group,
        report=report,
    )
    _write_report(graph, rows, *counted)
    return graph


def undirected(graph: GraphArrays, *, simple: bool) -> GraphArrays:
    """See `Graph.undirected`."""
    chunks = rows_as_chunks(graph)
    if not graph.directed:
        chunks = map(each_once, chunks)
    return _rebuilt(graph, chunks, directed=False, repeats="drop" if simple else "keep")


def is_simple(graph: GraphArrays) -> bool:
    """Return whether a graph has neither loops nor parallel edges. Collective; O(edges)."""
    found, last = False, None
    for chunk in rows_as_chunks(graph):
        sources, targets = chunk.sources, chunk.targets
        repeats = (sources[1:] == sources[:-1]) & (targets[1:] == targets[:-1])
        if sources.size and not found:
            found = bool(repeats.any() or (sources == targets).any()) or last == (sources[0], targets[0])
            last = sources[-1], targets[-1]
    return not graph.group.all_reduce(np.array([int(found)]), "max")[0]


def each_once(chunk: EdgeChunk) -> EdgeChunk:
    """Return the edges of an undirected graph of which this is the lower end's copy."""
    is_lower = chunk.sources <= chunk.targets
    columns = {name: column[is_lower] for name, column in chunk.columns.items()}
    return EdgeChunk(chunk.sources[is_lower], chunk.targets[is_lower], columns)


def both_ways(graph: GraphArrays) -> GraphArrays:
    """See `Graph.both_ways`."""
    if taken := graph.columns.keys() & {"leads_out", "leads_in"}:
        raise GraphError(
            f"the edges have a column {min(taken)!r} already, and both_ways() adds one; rename it"
        )
    if graph.directed:
        return _rebuilt(graph, map(_with_reverse, rows_as_chunks(graph)), directed=True)
    leads = np.broadcast_to(np.True_, graph.targets.shape)  # which takes no memory
    return replace(graph, columns={**graph.columns, "leads_out": leads, "leads_in": leads}, by_target=None)


_ID_KEYS = KeyForm.of(2**32 - 1, (0, 2**32 - 1))


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


def _collect(chunks: Iterable[EdgeChunk | TextChunk], vertices: ArrayLike | None, group: Group) -> Share:
    """Return this rank's chunks in one buffer, or raise on all ranks. Collective."""
    share = Share()
    error: Exception | None = None
    chunks = iter(chunks)
    try:
        if vertices is not None:
            share.named = _widest(as_ids(vertices, "vertices").ravel())
        for chunk in chunks:
            _append_texts(share, chunk) if isinstance(chunk, TextChunk) else _append(share, chunk)
        share.sort_texts()
    except Exception as raised:
        error = raised
        if group.size > 1:
            for _ in chunks:  # the last step of a loader may be collective
                pass
    raise_together(error, group)
    return share


def _append(share: Share, chunk: EdgeChunk) -> None:
    """Append a chunk: keys of ids if all fit in uint32, else of positions in a table of ids."""
    sources, targets, columns = _checked(chunk)
    start = share.edges.size
    if not sources.size:
        if not start:
            share.edges.append(np.empty(0, dtype=np.uint64), columns)
        return
    packed = _packed(sources, targets)
    keys, table = (packed, None) if packed is not None else encode(_widest(sources), _widest(targets))
    share.edges.append(keys, columns)
    if table is None and share.segments and share.segments[-1].table is None:
        share.segments[-1].stop = share.edges.size
    else:
        share.segments.append(Segment(start, share.edges.size, table))


def _append_texts(share: Share, chunk: TextChunk) -> None:
    """Append a chunk of edges between texts: keys of the texts' numbers."""
    start, texts = share.edges.size, share.texts
    columns = {name: as_column(column, name) for name, column in chunk.columns.items()}
    keys = _ID_KEYS.pack(texts.codes(chunk.sources), texts.codes(chunk.targets))
    if keys.size or not start:
        share.edges.append(keys, columns)
    if not keys.size:
        return
    if share.text_segments and share.segments[-1] is share.text_segments[-1]:
        share.segments[-1].stop = share.edges.size
    else:
        share.segments.append(Segment(start, share.edges.size, np.empty(0, np.str_)))
        share.text_segments.append(share.segments[-1])


def _checked(chunk: EdgeChunk) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]]]:
    sources, targets = as_ids(chunk.sources, "sources"), as_ids(chunk.targets, "targets")
    for name, column in (("sources", sources), ("targets", targets), *chunk.columns.items()):
        if np.ndim(column) != 1 or len(column) != len(sources):
            raise GraphError(
                f"{name} has shape {np.shape(column)}, sources {np.shape(sources)}; all need the same"
            )
    if sources.size and (sources.dtype.kind == "U") != (targets.dtype.kind == "U"):
        raise GraphError("one end of the edges has string ids, the other integers: give both as strings")
    return sources, targets, {name: as_column(column, name) for name, column in chunk.columns.items()}


def _packed(sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.uint64] | None:
    """Return keys of ids, if all fit in uint32."""
    if sources.size >= _MANY and sources.dtype.kind in "iu" and targets.dtype.kind in "iu":
        from sigps.graph.building.key_sort import pack_ids

        keys = np.empty(sources.size, dtype=np.uint64)
        return keys if pack_ids(sources, targets, keys) else None
    return _ID_KEYS.pack(sources, targets) if _fits(sources) and _fits(targets) else None


_MANY = 1 << 18
"""Edges from which a compiled loop pays, whose first load takes a tenth of a second."""


def _widest(ids: NDArray[Any]) -> NDArray[Any]:
    return ids if ids.dtype.kind == "U" else ids.astype(np.int64, copy=False)


def _fits(ids: NDArray[Any]) -> bool:
    return ids.dtype == np.uint32 or (
        ids.dtype.kind != "U" and int(ids.min()) >= 0 and int(ids.max()) < 2**32
    )


def _unify_columns(edges: EdgeBuffer, group: Group) -> None:
    """Give the edges of all ranks the same columns and dtypes, or raise on all ranks. Collective."""
    dtypes = {name: column.dtype.str for name, column in edges.columns.items()}
    everywhere: list[Any] = group.all_gather([edges.size, dtypes])
    filled: list[dict[str, str]] = [columns for size, columns in everywhere if size]
    for columns in filled:
        if columns.keys() != filled[0].keys():
            raise GraphError(
                f"some edges have the columns {sorted(filled[0])}, others {sorted(columns)}: "
                "every edge needs the same"
            )
    filled = filled or [max((columns for _, columns in everywhere), key=len)]
    old, edges.columns = edges.columns, {}
    for name in filled[0]:
        dtype = np.result_type(*(np.dtype(columns[name]) for columns in filled))
        edges.columns[name] = old[name].astype(dtype, copy=False) if edges.size else np.empty(0, dtype)


def _bring_to_rows(
    share: Share, numbering: Numbering, directed: bool, drop_loops: bool, group: Group
) -> tuple[list[EdgeBuffer], int, NDArray[np.int64]]:
    """Return the edges of this rank's rows, how many self-loops this rank was given, and the row bounds.

    One process renumbers its edges in place; several send them to their rows, mirrored if undirected. Collective.
    """
    if group.size == 1:
        num_loops = _renumber(share, numbering, drop_loops)
        return [share.edges], num_loops, np.array([0, numbering.num_vertices])
    num_loops, row_bounds = balance_rows(share, numbering, directed, group)
    return send_to_rows(share, numbering, row_bounds, directed, drop_loops, group), num_loops, row_bounds


def _renumber(share: Share, numbering: Numbering, drop_loops: bool) -> int:
    """Replace ids by gids, in place, and drop self-loops if `drop_loops`. Return how many there were."""
    edges = share.edges
    end = num_loops = 0
    if (
        drop_loops
        and numbering.to_gids is None
        and not edges.columns
        and edges.size >= MIN_COUNTED_EDGES
        and all(segment.table is None for segment in share.segments)
    ):
        from sigps.graph.building import key_sort

        end = int(key_sort.drop_loops(edges.keys))
        num_loops = edges.size - end
        edges.shrink(end)
        return num_loops
    for block, sources, targets in translated(share, numbering):
        is_kept = sources != targets
        loops = is_kept.size - int(np.count_nonzero(is_kept))
        num_loops += loops
        if loops and drop_loops:
            sources, targets = sources[is_kept], targets[is_kept]
        stop = end + sources.size
        if stop != block.stop:
            for column in edges.columns.values():
                column[end:stop] = column[block][is_kept]
        if numbering.to_gids is not None or stop != block.stop:
            pairs = edges.pairs
            pairs[end:stop, 1], pairs[end:stop, 0] = sources, targets
            del pairs
        end = stop
    edges.shrink(end)
    return num_loops


def _write_report(graph: GraphArrays, rows: Rows, given: int, num_loops: int, started: float) -> None:
    """Write the report of a finished graph. Collective."""
    report, group = graph.report, graph.group
    counts = np.array([given, num_loops, rows.num_repeats, rows.num_loop_repeats, graph.nbytes])
    given, num_loops, repeats, loop_repeats, num_bytes = group.all_reduce(counts, "sum").tolist()
    report.directed = graph.directed
    report.num_vertices = graph.num_vertices
    report.edges_given = given
    report.edges_stored = graph.num_edges
    report.duplicates = repeats if graph.directed else loop_repeats + (repeats - loop_repeats) // 2
    report.self_loops = num_loops
    report.isolated = _count_isolated(graph, rows)
    report.base, report.id_map = _smallest_id(graph), graph.ids.kind
    report.num_bytes = num_bytes
    seconds = np.array([report.seconds + time.perf_counter() - started])
    report.seconds = float(group.all_reduce(seconds, "max")[0])


def _count_isolated(graph: GraphArrays, rows: Rows) -> int:
    """Return how many vertices of all ranks have neither out-edges nor in-edges. Collective."""
    group = graph.group
    if rows.num_isolated is not None and group.size == 1:
        return rows.num_isolated
    is_isolated = rows.offsets[1:] == rows.offsets[:-1]
    if graph.directed:
        has_in_edge = np.zeros(graph.num_vertices, dtype=np.bool_)
        has_in_edge[rows.targets] = True
        if group.size > 1:
            bounds = graph.row_bounds
            slices = [has_in_edge[bounds[r] : bounds[r + 1]].view(np.uint8) for r in range(group.size)]
            has_in_edge = np.bitwise_or.reduce(np.stack(group.all_to_all(slices)), axis=0).view(np.bool_)
        is_isolated &= ~has_in_edge
    return int(group.all_reduce(np.array([np.count_nonzero(is_isolated)]), "sum")[0])


def _smallest_id(graph: GraphArrays) -> int | None:
    if not graph.num_vertices or graph.ids.kind == "strings":
        return None
    return int(graph.ids.to_oids(np.zeros(1, dtype=np.int64))[0])


def _with_reverse(chunk: EdgeChunk) -> EdgeChunk:
    """Return each edge followed by its reverse, a self-loop once, with the columns `leads_out` and `leads_in`."""
    places = np.arange(chunk.sources.size)
    both = mirror(EdgeChunk(chunk.sources, chunk.targets, {**chunk.columns, "": places}))
    is_first = np.diff(both.columns.pop(""), prepend=-1) > 0
    both.columns |= {"leads_out": is_first, "leads_in": ~is_first | (both.sources == both.targets)}
    return both


def _rebuilt(
    graph: GraphArrays,
    chunks: Iterable[EdgeChunk],
    *,
    directed: bool,
    repeats: Literal["keep", "drop"] = "keep",
) -> GraphArrays:
    """Return the graph of the same vertices, with their ids, and of edges in gids. Collective.

    With `repeats="drop"` it has neither loops nor parallel edges.
    """
    built = build(
        chunks,
        directed=directed,
        group=graph.group,
        duplicates=repeats,
        self_loops=repeats,
        ids="identity",
        num_vertices=graph.num_vertices,
    )
    columns = moved_to_rows(graph.vertex_columns, graph.row_bounds, built.row_bounds, graph.group)
    return replace(built, ids=graph.ids, report=graph.report, vertex_columns=columns)
