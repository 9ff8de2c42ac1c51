"""Edges to rows, and rows back to edges: sort keys into CSR, with the columns of each edge.

Sorting 64-bit keys sorts rows and, inside a row, targets. NumPy sorts in place with vector instructions,
and the targets are then packed at the front of the same memory: 8 bytes an edge at the peak. MIN_COUNTED_EDGES and
more are put into buckets first, which threads sort side by side (`key_sort.py`).
With columns the sort must be stable, because parallel edges keep the order in which they were given:
fewer than MIN_COUNTED_EDGES are sorted by position (`_sort_stable`), more by two counting sorts, by target and
then by source (`_count_into_rows`). The former is the reference for tests of the latter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import EdgeBuffer, EdgeChunk, KeyForm, mirror

__all__ = ["Duplicates", "Rows", "SelfLoops", "apply_duplicates", "rows_as_chunks", "sort_edges", "transpose"]

Duplicates = Literal["keep", "drop", "sum", "min", "max"]
SelfLoops = Literal["keep", "drop"]
Columns = dict[str, NDArray[Any]]


@dataclass
class Rows:
    """CSR rows, and counts of repeated edges.

    Attributes:
        offsets: [num_rows + 1], uint64.
        targets: [num_edges], gids.
        columns: [num_edges] each.
        num_repeats: Edges equal to the one before them, kept or not.
        num_loop_repeats: Those of them that are self-loops.
        num_isolated: Vertices without an edge, of rows that are a whole graph; None where nobody counted them.
    """

    offsets: NDArray[np.uint64]
    targets: NDArray[Any]
    columns: Columns
    num_repeats: int = 0
    num_loop_repeats: int = 0
    num_isolated: int | None = None


def sort_edges(
    buffers: list[EdgeBuffer],
    form: KeyForm,
    *,
    symmetric: bool,
    duplicates: Duplicates = "keep",
    num_threads: int = 1,
) -> Rows:
    """Sort edges into rows. Frees the buffers.

    Args:
        buffers: Keys of `form`, and the same columns in each; without columns one buffer.
        form: The encoding of the keys; sources are within its rows.
        symmetric: Store each edge in both its ends' rows, a self-loop once. Needs all rows.
        duplicates: What to do with equal edges. `"sum"`, `"min"` and `"max"` reduce the weight; other
            columns keep the first edge's value.
        num_threads: Threads that sort many edges without columns.
    """
    size = sum(edges.size for edges in buffers)
    if not buffers[0].columns and size >= MIN_COUNTED_EDGES and form.target_bits == 32:
        from sigps.graph.building.key_sort import rows_by_buckets

        drops = duplicates != "keep"
        found = rows_by_buckets(buffers[0], form, symmetric=symmetric, drops=drops, num_threads=num_threads)
        return Rows(found[0], found[1], {}, *found[2:])
    if not buffers[0].columns:
        rows = _sort_in_place(buffers[0], form, symmetric)
    elif size < MIN_COUNTED_EDGES or form.num_vertices > 4 * size:
        rows = _sort_stable(_joined(buffers), form, symmetric)
    else:
        rows = _count_into_rows(buffers, form, symmetric)
    apply_duplicates(rows, form.first_row, duplicates)
    return rows


def transpose(rows: Rows) -> Rows:
    """Return the in-edges of rows that are a whole graph: offsets, sources (ascending), columns."""
    num_vertices = rows.offsets.size - 1
    offsets = _offsets_of(rows.targets, num_vertices)
    if rows.targets.size >= MIN_COUNTED_EDGES:
        return _move_rows(rows, offsets)
    order = np.argsort(rows.targets, kind="stable")
    gids = np.arange(num_vertices, dtype=rows.targets.dtype)
    sources = np.repeat(gids, (rows.offsets[1:] - rows.offsets[:-1]).view(np.int64))
    return Rows(offsets, sources[order], {name: column[order] for name, column in rows.columns.items()})


def rows_as_chunks(graph: GraphArrays) -> Iterator[EdgeChunk]:
    """Yield this rank's edges in gids; one empty chunk, which names the columns, if there are none."""
    if not graph.targets.size:
        yield EdgeChunk(graph.targets, graph.targets, graph.columns)
    for start in range(0, graph.targets.size, _CHUNK_EDGES):
        stop = min(start + _CHUNK_EDGES, graph.targets.size)
        first, last = np.searchsorted(graph.offsets, np.array([start, stop - 1], np.uint64), side="right") - 1
        cuts = np.clip(graph.offsets[first : last + 2], start, stop)
        gids = np.arange(graph.first_row + first, graph.first_row + last + 1, dtype=graph.targets.dtype)
        columns = {name: column[start:stop] for name, column in graph.columns.items()}
        sources = np.repeat(gids, (cuts[1:] - cuts[:-1]).astype(np.int64))
        yield EdgeChunk(sources, graph.targets[start:stop], columns)


MIN_COUNTED_EDGES = 1 << 19
"""Below, edges are sorted. Rows and in-edges with a weight take 0.16 s of a core either way at 2**19 edges, of which
0.1 s are the kernels' first load; at 2**18 they take 0.075 and 0.13 s. Kernels that are loaded take 0.06 and 0.03 s.
"""
_BLOCK_EDGES = 1 << 18
_CHUNK_EDGES = 1 << 18  # of `rows_as_chunks`


def _sort_in_place(edges: EdgeBuffer, form: KeyForm, symmetric: bool) -> Rows:
    if symmetric:
        _append_mirrored(edges)
    edges.keys.sort()
    return _unpack(edges, form)


def _joined(buffers: list[EdgeBuffer]) -> EdgeBuffer:
    joined = buffers[0]
    for buffer in buffers[1:]:
        joined.append(buffer.keys, buffer.columns)
    return joined


def _sort_stable(edges: EdgeBuffer, form: KeyForm, symmetric: bool) -> Rows:
    keys, columns = edges.keys, edges.columns
    if symmetric:
        both = mirror(EdgeChunk(edges.pairs[:, 1], edges.pairs[:, 0], columns))
        keys, columns = form.pack(both.sources, both.targets), both.columns
    order = np.argsort(keys, kind="stable")
    edges.columns = {}
    edges.keys = keys[order]
    rows = _unpack(edges, form)
    rows.columns = {name: column[order] for name, column in columns.items()}
    return rows


def _count_into_rows(buffers: list[EdgeBuffer], form: KeyForm, symmetric: bool) -> Rows:
    """Sort edges by target, then stably by source, by counting.

    The first pass reads the buffers from their ends and shrinks them block by block.
    """
    from sigps.graph.building.counting_sort import count_ends, place_by_target, scatter

    by_target = np.zeros(form.num_vertices + 1, dtype=np.uint64)
    for edges in buffers:
        count_ends(edges.keys, symmetric, by_target)
    np.cumsum(by_target, out=by_target)
    ends = by_target[1:].copy()
    sources = np.empty(int(by_target[-1]), dtype=np.uint32)
    columns = {name: np.empty(sources.size, column.dtype) for name, column in buffers[0].columns.items()}
    slots = np.empty((2, _BLOCK_EDGES), dtype=np.uint64)
    for edges in reversed(buffers):
        while edges.size:
            start = (edges.size - 1) // _BLOCK_EDGES * _BLOCK_EDGES
            place_by_target(edges.keys[start:], symmetric, ends, sources, slots[0], slots[1])
            for name, moved in columns.items():
                for slot in slots if symmetric else slots[:1]:
                    scatter(edges.columns[name][start:], slot, moved)
            edges.shrink(start)
    by_source = by_target if symmetric else _offsets_of(sources, form.num_rows)
    return _move_rows(Rows(by_target, sources, columns), by_source)


def _move_rows(rows: Rows, offsets: NDArray[np.uint64]) -> Rows:
    """Return the edges of `rows` in the rows of their other ends, which begin at `offsets`."""
    from sigps.graph.building.counting_sort import place_by_source, scatter

    ends = offsets[:-1].copy()
    targets = np.empty_like(rows.targets)
    columns = {name: np.empty_like(column) for name, column in rows.columns.items()}
    slots = np.empty(_BLOCK_EDGES, dtype=np.uint64)
    for start in range(0, targets.size, _BLOCK_EDGES):
        stop = min(start + _BLOCK_EDGES, targets.size)
        row = np.searchsorted(rows.offsets, np.uint64(start), side="right") - 1
        place_by_source(rows.offsets, rows.targets, start, stop, np.uint64(row), ends, targets, slots)
        for name, column in rows.columns.items():
            scatter(column[start:stop], slots, columns[name])
    return Rows(offsets, targets, columns)


def _append_mirrored(edges: EdgeBuffer) -> None:
    """Append the reverse of every edge that is no self-loop."""
    size = edges.size
    edges.grow(2 * size)
    edges.shrink(_copy_reversed(edges.pairs, size))


def _copy_reversed(pairs: NDArray[np.uint32], size: int) -> int:
    """Write the reverses of the first `size` pairs after them; return where they end."""
    end = size
    for start in range(0, size, _BLOCK_EDGES):
        block = pairs[start : min(start + _BLOCK_EDGES, size)]
        reverses = block[block[:, 0] != block[:, 1], ::-1]
        pairs[end : end + len(reverses)] = reverses
        end += len(reverses)
    return end


def _unpack(edges: EdgeBuffer, form: KeyForm) -> Rows:
    """Turn sorted keys into rows inside the keys' memory: a target is never written after its key."""
    keys, edges.keys = edges.keys, np.empty(0, dtype=np.uint64)
    degrees = np.zeros(form.num_rows + 1, dtype=np.int64)
    targets = keys.view(form.target_dtype)
    for start in range(0, keys.size, _BLOCK_EDGES):
        block = keys[start : start + _BLOCK_EDGES]
        rows = form.rows(block)
        first = int(rows[0])
        counts = np.bincount(rows - first)
        degrees[first + 1 : first + 1 + counts.size] += counts
        targets[start : start + block.size] = form.targets(block)
    size = keys.size
    del targets
    per_key = 8 // form.target_dtype.itemsize
    keys.resize(-(-size // per_key), refcheck=False)  # shrinks in place
    offsets = np.cumsum(degrees, out=degrees).view(np.uint64)
    return Rows(offsets, keys.view(form.target_dtype)[:size], {})


def _offsets_of(ends: NDArray[Any], num_rows: int) -> NDArray[np.uint64]:
    """Return the offsets, [num_rows + 1], of rows that hold one edge for each element of `ends`."""
    degrees = np.zeros(num_rows + 1, dtype=np.int64)
    step = max(_BLOCK_EDGES, num_rows)  # a step takes O(step + num_rows)
    for start in range(0, ends.size, step):
        degrees[1:] += np.bincount(ends[start : start + step], minlength=num_rows)
    return np.cumsum(degrees, out=degrees).view(np.uint64)


def apply_duplicates(rows: Rows, first_row: int, duplicates: Duplicates) -> None:
    """Count edges equal to the one before them, and drop or reduce them as `duplicates` says."""
    repeated = np.empty(rows.targets.size, dtype=np.bool_)
    repeated[:1] = False
    np.equal(rows.targets[1:], rows.targets[:-1], out=repeated[1:])
    starts = rows.offsets[:-1]
    repeated[starts[starts < repeated.size].view(np.int64)] = False
    where = np.flatnonzero(repeated)
    if not where.size:
        return
    owners = np.searchsorted(rows.offsets, where.view(np.uint64), side="right") - 1
    rows.num_repeats = where.size
    rows.num_loop_repeats = int(np.count_nonzero(rows.targets[where] == owners + first_row))
    if duplicates == "keep":
        return
    if "weight" in rows.columns and duplicates != "drop":
        _reduce_runs(rows.columns["weight"], repeated, duplicates)
    is_kept = np.logical_not(repeated, out=repeated)
    rows.targets = rows.targets[is_kept]
    for name in rows.columns:
        rows.columns[name] = rows.columns[name][is_kept]
    rows.offsets = rows.offsets - np.searchsorted(where, rows.offsets.view(np.int64)).astype(np.uint64)


def _check_sums(sums: NDArray[np.float64], dtype: np.dtype[Any]) -> None:
    """Refuse sums of whole weights that their type cannot hold; within rounding of its bounds, too."""
    bounds = np.iinfo(dtype)
    wrong = sums[(sums >= float(bounds.max) + 1) | (sums < float(bounds.min) - 1)]
    if wrong.size:
        raise GraphError(
            f"duplicates='sum' makes a weight of about {wrong[0]:.4g}, which {dtype} cannot hold: load the weights as "
            "floats, or with a wider type"
        )


def _reduce_runs(weights: NDArray[Any], repeated: NDArray[np.bool_], duplicates: Duplicates) -> None:
    """Write the reduction over each run of equal edges to the first of them."""
    in_run = repeated.copy()
    in_run[:-1] |= repeated[1:]
    heads = np.flatnonzero(~repeated[in_run])
    reducer = {"sum": np.add, "min": np.minimum, "max": np.maximum}[duplicates]
    reduced = reducer.reduceat(weights[in_run], heads, dtype=weights.dtype)
    if duplicates == "sum" and weights.dtype.kind in "iu":
        _check_sums(np.add.reduceat(weights[in_run], heads, dtype=np.float64), weights.dtype)
    weights[np.flatnonzero(in_run & ~repeated)] = reduced
