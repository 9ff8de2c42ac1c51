"""Edges from which a graph is built: the chunks that loaders yield and the buffer that collects them.

A pair of ends is one 64-bit key, the source in the high bits. Buffers grow and shrink in place (the
allocator remaps the pages of a large array), so a collected edge takes 8 bytes and those of its columns, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.building.texts import Texts
from sigps.graph.user_arrays import as_ids, as_numbers, on_host
from sigps.group import Group, own_range

__all__ = ["EdgeBuffer", "EdgeChunk", "KeyForm", "TextChunk", "edge_chunks", "mirror", "own_share"]


@dataclass
class EdgeChunk:
    """Some edges: oids of one kind (integers within int64 or str) and edge columns, [edges] each."""

    sources: NDArray[Any]
    targets: NDArray[Any]
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass
class TextChunk:
    """Some edges whose oids are texts that are not converted to str yet, and edge columns, [edges] each."""

    sources: Texts
    targets: Texts
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)


def mirror(chunk: EdgeChunk) -> EdgeChunk:
    """Return each edge followed by its reverse, a self-loop once. Edges keep their order in both rows."""
    has_reverse = chunk.sources != chunk.targets
    stored = np.stack([np.ones_like(has_reverse), has_reverse], axis=1).ravel()
    both = np.stack([chunk.sources, chunk.targets], axis=1)
    columns = {name: np.repeat(column, 2)[stored] for name, column in chunk.columns.items()}
    return EdgeChunk(both.ravel()[stored], both[:, ::-1].ravel()[stored], columns)


def own_share(values: NDArray[Any], group: Group) -> NDArray[Any]:
    """Return this rank's slice of an array that all ranks have."""
    own = own_range(values.size, group)
    return values[own.start : own.stop]


def edge_chunks(
    sources: ArrayLike, targets: ArrayLike, columns: dict[str, Any], group: Group, local: bool = False
) -> Iterator[EdgeChunk]:
    """Yield this rank's share of arrays, [edges] each, in chunks, so that temporary arrays are small.

    With `local` every rank gives different edges; otherwise all give the same, and a share is a slice.
    """
    names = ["sources", "targets", *columns]
    arrays = [as_ids(sources, "sources"), as_ids(targets, "targets")]
    arrays += [as_numbers(on_host(column, name), name) for name, column in columns.items()]
    shape = arrays[0].shape
    for name, array in zip(names, arrays, strict=True):
        if array.shape != shape or array.ndim != 1:
            raise GraphError(f"{name} has shape {array.shape}, sources {shape}: every edge needs one value")
    shares = arrays if local else [own_share(array, group) for array in arrays]
    for start in range(0, max(shares[0].size, 1), _CHUNK_EDGES):
        cut = [share[start : start + _CHUNK_EDGES] for share in shares]
        yield EdgeChunk(cut[0], cut[1], dict(zip(columns, cut[2:], strict=True)))


_CHUNK_EDGES = 1 << 20


@dataclass(frozen=True)
class KeyForm:
    """The encoding of an edge between gids as a key: `(source - first_row) << target_bits | target`."""

    num_vertices: int
    target_bits: int
    first_row: int
    num_rows: int

    @classmethod
    def of(cls, num_vertices: int, row_range: tuple[int, int]) -> KeyForm:
        """Return the encoding for the rows of one rank.

        Raises:
            GraphError: If a row and a target need more than 64 bits.
        """
        num_rows = row_range[1] - row_range[0]
        target_bits = 32 if num_vertices < 2**32 else (num_vertices - 1).bit_length()
        if max(num_rows - 1, 0).bit_length() + target_bits > 64:
            raise GraphError(
                f"{num_rows:,} rows of a graph with {num_vertices:,} vertices are too many for one rank: "
                "row and target must fit in 64 bits together. Use more ranks."
            )
        return cls(num_vertices, target_bits, row_range[0], num_rows)

    @property
    def target_dtype(self) -> np.dtype[Any]:
        """The dtype of targets: uint32 if all gids fit, else uint64."""
        return np.dtype(np.uint32 if self.target_bits == 32 else np.uint64)

    def pack(self, sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.uint64]:
        keys = sources.astype(np.uint64)
        keys -= np.uint64(self.first_row)
        keys <<= np.uint64(self.target_bits)
        keys |= targets.astype(np.uint64, copy=False)
        return keys

    def rows(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the keys' sources, counted from the first row."""
        return (keys >> np.uint64(self.target_bits)).view(np.int64)

    def targets(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return keys & np.uint64((1 << self.target_bits) - 1)


class EdgeBuffer:
    """A growing array of keys and one array for each column.

    Growing and shrinking may move the memory: no view of `keys` or a column may be alive then.
    """

    def __init__(self) -> None:
        """Make an empty buffer; the first `append` determines its columns."""
        self.keys: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self.columns: dict[str, NDArray[Any]] = {}

    @property
    def size(self) -> int:
        return self.keys.size

    @property
    def pairs(self) -> NDArray[np.uint32]:
        """The keys as [size, 2]: low half (target), high half (source), on a little-endian machine."""
        return self.keys.view(np.uint32).reshape(-1, 2)

    def append(self, keys: NDArray[np.uint64], columns: dict[str, NDArray[Any]]) -> None:
        """Add edges at the end. A column takes the common dtype of its old and new values."""
        start = self.size
        if not start:
            self.columns = {name: np.empty(0, column.dtype) for name, column in columns.items()}
        if columns.keys() != self.columns.keys():
            raise GraphError(
                f"some edges have the columns {sorted(self.columns)}, others {sorted(columns)}: "
                "every edge needs the same"
            )
        self.grow(start + keys.size)
        self.keys[start:] = keys
        for name, column in columns.items():
            wide = np.result_type(self.columns[name].dtype, column.dtype)
            if wide != self.columns[name].dtype:
                self.columns[name] = self.columns[name].astype(wide)
            self.columns[name][start:] = column

    def grow(self, size: int) -> None:
        """Grow to `size` edges; the new ones are not initialised."""
        for array in (self.keys, *self.columns.values()):
            array.resize(size, refcheck=False)

    def shrink(self, size: int) -> None:
        """Drop all edges after the first `size` and free their memory."""
        for array in (self.keys, *self.columns.values()):
            array.resize(size, refcheck=False)
