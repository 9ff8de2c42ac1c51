"""Edges to rows: sort (source, target) pairs into CSR, with what belongs to each edge.

A pair is one 64-bit key: the source's row in the high bits, the target's gid in the low `target_bits`.
Sorting keys sorts rows and, inside a row, targets; NumPy sorts 64-bit integers with vector instructions.
Without columns equal keys cannot be told apart, so the keys are sorted in place and their targets moved
to the front of the same memory: the peak is the 8 bytes of a key. With columns the sort must be stable,
because parallel edges keep the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError

__all__ = ["Duplicates", "EdgeChunk", "Rows", "mirror", "sort_edges", "transpose"]

Duplicates = Literal["keep", "drop", "sum", "min", "max"]


@dataclass
class EdgeChunk:
    """Some edges: ends of one kind (int64 or str oids) and one array a column, all of one length."""

    sources: NDArray[Any]
    targets: NDArray[Any]
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass
class Rows:
    """CSR rows and what sorting found.

    Attributes:
        offsets: [num_rows + 1], uint64.
        targets: [num_edges], gids.
        columns: [num_edges] each.
        num_repeats: Stored edges equal to the one before them; `num_loop_repeats` of these are self-loops.
        num_loop_repeats: See `num_repeats`.
    """

    offsets: NDArray[np.uint64]
    targets: NDArray[Any]
    columns: dict[str, NDArray[Any]]
    num_repeats: int = 0
    num_loop_repeats: int = 0


def sort_edges(
    chunks: list[EdgeChunk],
    *,
    symmetric: bool,
    num_vertices: int,
    row_range: tuple[int, int],
    duplicates: Duplicates = "keep",
) -> Rows:
    """Sort edges between gids into rows. Empties `chunks`, so that memory is freed on the way.

    Args:
        chunks: Ends are gids; sources lie within `row_range`; all have the same columns.
        symmetric: Store each edge in both its ends' rows, a self-loop once.
        num_vertices: Vertices of the whole graph.
        row_range: First row and the one behind the last.
        duplicates: What becomes of equal edges. `"sum"`, `"min"` and `"max"` reduce the weight; other
            columns keep the first edge's value.
    """
    form = _KeyForm.of(num_vertices, row_range)
    if not chunks or not chunks[0].columns:
        keys = _pack_all(chunks, form, symmetric)
        keys.sort()
        return _unpack_in_place(keys, form, drop=duplicates != "keep")
    if symmetric:
        chunks[:] = [mirror(chunk) for chunk in _consume(chunks)]
    columns = {name: np.concatenate([chunk.columns[name] for chunk in chunks]) for name in chunks[0].columns}
    keys = _pack_all(chunks, form, symmetric=False)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    columns = {name: column[order] for name, column in columns.items()}
    if duplicates != "keep":
        columns = _reduced(keys, columns, duplicates)
    rows = _unpack_in_place(keys, form, drop=duplicates != "keep")
    rows.columns = columns
    return rows


def transpose(
    offsets: NDArray[np.uint64], targets: NDArray[Any], columns: dict[str, NDArray[Any]], num_vertices: int
) -> Rows:
    """Return the in-edges of rows 0..num_vertices-1: offsets, sources (ascending in a row), columns."""
    degrees = (offsets[1:] - offsets[:-1]).view(np.int64)
    sources = np.repeat(np.arange(num_vertices, dtype=targets.dtype), degrees)
    chunks = [EdgeChunk(targets, sources, dict(columns))]
    return sort_edges(chunks, symmetric=False, num_vertices=num_vertices, row_range=(0, num_vertices))


_BLOCK_EDGES = 1 << 20


@dataclass(frozen=True)
class _KeyForm:
    """How a pair becomes a key: `(source - first_row) << target_bits | target`."""

    target_bits: int
    first_row: int
    num_rows: int

    @classmethod
    def of(cls, num_vertices: int, row_range: tuple[int, int]) -> _KeyForm:
        num_rows = row_range[1] - row_range[0]
        target_bits = 32 if num_vertices < 2**32 else (num_vertices - 1).bit_length()
        if max(num_rows - 1, 0).bit_length() + target_bits > 64:
            raise GraphError(
                f"{num_rows:,} rows of a graph with {num_vertices:,} vertices are too many for one rank: "
                f"rows and vertices must fit in 64 bits together. Use more ranks."
            )
        return cls(target_bits, row_range[0], num_rows)

    @property
    def target_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint32 if self.target_bits == 32 else np.uint64)

    def pack(self, sources: NDArray[Any], targets: NDArray[Any], keys: NDArray[np.uint64]) -> None:
        keys[:] = sources
        keys -= np.uint64(self.first_row)
        keys <<= np.uint64(self.target_bits)
        keys |= targets.astype(np.uint64, copy=False)

    def rows(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        return (keys >> np.uint64(self.target_bits)).view(np.int64)

    def targets(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return keys & np.uint64((1 << self.target_bits) - 1)


def _consume(chunks: list[EdgeChunk]) -> Iterator[EdgeChunk]:
    """Yield the chunks in order, letting go of each."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()


def _pack_all(chunks: list[EdgeChunk], form: _KeyForm, symmetric: bool) -> NDArray[np.uint64]:
    most = sum(chunk.sources.size for chunk in chunks) * (2 if symmetric else 1)
    keys = np.empty(most, dtype=np.uint64)  # untouched pages take no memory yet
    end = 0
    for chunk in _consume(chunks):
        sources, targets = chunk.sources, chunk.targets
        form.pack(sources, targets, keys[end : end + sources.size])
        end += sources.size
        if symmetric:
            apart = sources != targets
            mirrored = int(np.count_nonzero(apart))
            form.pack(targets[apart], sources[apart], keys[end : end + mirrored])
            end += mirrored
    keys.resize(end, refcheck=False)
    return keys


def mirror(chunk: EdgeChunk) -> EdgeChunk:
    """Return each edge followed by its reverse, so that both rows keep the given order."""
    stored = np.stack(
        [np.ones(chunk.sources.size, dtype=bool), chunk.sources != chunk.targets], axis=1
    ).ravel()
    sources = np.stack([chunk.sources, chunk.targets], axis=1).ravel()[stored]
    targets = np.stack([chunk.targets, chunk.sources], axis=1).ravel()[stored]
    columns = {name: np.repeat(column, 2)[stored] for name, column in chunk.columns.items()}
    return EdgeChunk(sources, targets, columns)


def _unpack_in_place(keys: NDArray[np.uint64], form: _KeyForm, *, drop: bool) -> Rows:
    """Turn sorted keys into rows inside the keys' own memory: a target never lies behind its key."""
    offsets = np.zeros(form.num_rows + 1, dtype=np.uint64)
    degrees = offsets[1:].view(np.int64)
    targets = keys.view(form.target_dtype)
    end = num_repeats = num_loop_repeats = 0
    previous = None
    for start in range(0, keys.size, _BLOCK_EDGES):
        block = keys[start : start + _BLOCK_EDGES]
        repeated = np.empty(block.size, dtype=bool)
        repeated[0] = previous == block[0]
        np.equal(block[1:], block[:-1], out=repeated[1:])
        previous = block[-1]
        if repeated.any():
            repeats = block[repeated]
            num_repeats += repeats.size
            loops = form.rows(repeats) + form.first_row == form.targets(repeats).view(np.int64)
            num_loop_repeats += int(np.count_nonzero(loops))
            if drop:
                block = block[~repeated]
        if block.size:
            rows = form.rows(block)
            first = int(rows[0])
            counts = np.bincount(rows - first)
            degrees[first : first + counts.size] += counts
            targets[end : end + block.size] = form.targets(block)
            end += block.size
    np.cumsum(offsets, out=offsets)
    del targets, degrees
    per_key = 8 // form.target_dtype.itemsize
    keys.resize(-(-end // per_key), refcheck=False)  # shrinks in place
    return Rows(offsets, keys.view(form.target_dtype)[:end], {}, num_repeats, num_loop_repeats)


def _reduced(
    keys: NDArray[np.uint64], columns: dict[str, NDArray[Any]], duplicates: Duplicates
) -> dict[str, NDArray[Any]]:
    """Return one value a run of equal keys: the weight reduced as asked, of the others the first."""
    starts = (
        np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if keys.size else np.empty(0, int)
    )
    reducer = {"sum": np.add, "min": np.minimum, "max": np.maximum}.get(duplicates)
    return {
        name: reducer.reduceat(column, starts, dtype=column.dtype)
        if reducer is not None and name == "weight" and keys.size
        else column[starts]
        for name, column in columns.items()
    }
