"""Edges that stay in a packed store, as loops read them: unpacked by the thread that uses them, into its own cache."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.engine.fixed_points import NEAR_IDS
from sigps.engine.partition.edge_list import moved
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import missing_column
from sigps.kernels.cpu.arguments import Edges
from sigps.kernels.cpu.layout import renumber

__all__ = ["Blocks"]


class Blocks:
    """In-edges by target in blocks of rows, each of one page, or of the pages that a long row spans.

    What one thread was given holds until it asks for the next block.

    Args:
        edges: The edges.
        program: The program, which reads some columns; a missing weight is 1.0 everywhere.
        ids: The ids that compute() sees, by local id; empty where they are local ids.
        num_records: Local ids: owned vertices and ghosts.
        cache_bytes: What unpacked blocks may take that are kept: always the same, the first ones, since a sweep over
            all blocks would never find those that were used last.

    Attributes:
        spans: The vertices of each block.
        spans_without: Vertices that have no row in any block, cut into pieces.
    """

    def __init__(
        self,
        edges: StreamedEdges,
        program: VertexProgram,
        ids: NDArray[np.int64],
        num_records: int,
        cache_bytes: int,
    ) -> None:
        self._rows, self._program, self._ids = edges.rows, program, ids
        self._local_of = edges.local_of
        self._keeps_gids = program.reads_edges and edges.local_of is not None
        types = {name: column.dtype for name, column in edges.rows.packed.columns.items()}
        names = {*program.edge_columns, *program.read_columns}
        self._types = {name: types[name] for name in names if name in types}
        self._absent = {
            name: missing_column(name, edges.num_edges, types) for name in names if name not in types
        }
        self._stops = edges.offsets[1:]
        self._offsets = edges.offsets
        bounds = edges.rows.first_rows.astype(np.uint64)
        self.spans = list(itertools.pairwise(bounds))
        behind = range(int(bounds[-1]), edges.offsets.size - 1, _PIECE)
        cuts = np.array([*behind, edges.offsets.size - 1], dtype=np.uint64)
        self.spans_without = list(itertools.pairwise(cuts))
        held = tuple(self._types)
        self._packed_bytes = [4 * edges.rows.words_of(number, held) for number in range(len(self.spans))]
        self._of_thread, self._counting, self._bytes_read = threading.local(), threading.Lock(), 0
        an_edge = 4 + sum(dtype.itemsize for dtype in self._types.values())
        an_edge += (8 if program.reads_edges and ids.size else 0) + 4 * self._keeps_gids
        ends = edges.offsets[edges.rows.first_rows[1:]]
        self._shift = np.uint32(max(0, (num_records - 1).bit_length() - _BUCKET_BITS))
        self._sources = np.full((len(self.spans), 1 << _BUCKET_BITS - 3), 255, dtype=np.uint8)
        self._has_sources = np.zeros(len(self.spans), dtype=np.bool_)
        self._num_kept = int(np.searchsorted(ends * np.uint64(an_edge), np.uint64(cache_bytes), side="right"))
        self._kept: dict[int, tuple[Edges, tuple[Any, ...]]] = {}

    def __len__(self) -> int:
        return len(self.spans)

    def nothing(self) -> Edges:
        """Return the edges of no block: for loops that read none."""
        ends = np.empty(0, dtype=np.uint32)
        return self._edges(ends, ends, {n: np.empty(0, d) for n, d in self._types.items()}, 0)

    def block(self, number: int) -> Edges:
        """Unpack a block, and return its edges at the positions that they have among all.

        Raises:
            GraphError: If the store is damaged.
        """
        if number in self._kept:
            block, self._of_thread.walked = self._kept[number]
            return block
        first, stop = (int(self._offsets[int(row)]) for row in self.spans[number])
        keeps = number < self._num_kept
        ends, columns = self._room(stop - first) if keeps else self._scratch()
        own = {name: column[: stop - first] for name, column in columns.items()}
        ends = ends[: stop - first]
        self._rows.unpack(number, ends, own)
        gids = ends
        if self._local_of is not None:
            gids = ends.copy() if self._keeps_gids else ends
            renumber(ends, self._local_of)
        if not self._has_sources[number]:
            self._sources[number] = self.buckets_with(ends)
            self._has_sources[number] = True
        with self._counting:
            self._bytes_read += self._packed_bytes[number]
        block = self._edges(ends, gids, own, first)
        if keeps:
            self._kept[number] = block, self.walked
        return block

    def buckets_of(self, sent: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return which buckets of local ids have one that sent, a bit each; `sent`: [num_records], 0 or 1."""
        found = np.zeros(1 << _BUCKET_BITS, dtype=np.uint8)
        if sent.size:
            any_sent = np.maximum.reduceat(sent, np.arange(0, sent.size, 1 << int(self._shift)))
            found[: any_sent.size] = any_sent
        return np.packbits(found)

    def buckets_with(self, vertices: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the buckets that have one of these local ids, a bit each."""
        found = np.zeros(1 << _BUCKET_BITS, dtype=np.bool_)
        found[vertices >> self._shift] = True
        return np.packbits(found)

    def may_read(self, buckets: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which blocks may have a source in these buckets, as `may_have_sender`; [blocks]."""
        both = self._sources.view(np.uint64) & buckets.view(np.uint64)
        found: NDArray[np.bool_] = np.bitwise_or.reduce(both, axis=1).astype(np.bool_)
        return found

    def share_of_near_sources(self) -> float:
        """Return how many edges of a few blocks join vertices of near local ids, from 0 to 1."""
        num_near = num_edges = 0
        for number in range(0, len(self), max(1, len(self) // _SAMPLE)):
            first, end = (int(row) for row in self.spans[number])
            edges, rows = self.block(number), np.arange(first, end)
            arcs = slice(int(self._offsets[first]), int(self._offsets[end]))
            degrees = np.diff(self._offsets[first : end + 1]).astype(np.int64)
            far = np.abs(edges.ends[arcs].astype(np.int64) - np.repeat(rows, degrees))
            num_near, num_edges = num_near + int(np.count_nonzero(far < NEAR_IDS)), num_edges + far.size
        return num_near / max(1, num_edges)

    def may_have_sender(self, number: int, buckets: NDArray[np.uint8]) -> bool:
        """Tell whether a source in a block may be in these buckets: so it is said of one that was never unpacked."""
        return bool((self._sources[number] & buckets).any())

    def require_files(self) -> None:
        """Check that the store is still there, as each superstep does.

        Raises:
            GraphError: If a file of it is gone or was cut short.
        """
        self._rows.packed.require_files()

    def take_bytes_read(self) -> int:
        """Return the packed bytes that were unpacked since the last call."""
        with self._counting:
            found, self._bytes_read = self._bytes_read, 0
        return found

    def _edges(
        self, ends: NDArray[np.uint32], gids: NDArray[np.uint32], columns: dict[str, NDArray[Any]], first: int
    ) -> Edges:
        """Return edges as loops take them, their ends by local id and by gid."""
        found = {name: moved(values, first) for name, values in columns.items()} | self._absent
        messages = tuple(found[name] for name in self._program.edge_columns)
        block = Edges(self._offsets, moved(ends, first), messages, self._stops)
        walked: tuple[Any, ...] = ()
        if self._program.reads_edges:
            walked_ends = moved(gids, first)
            ids = moved(self._ids[ends], first) if self._ids.size else walked_ends
            walked = (
                block.offsets,
                walked_ends,
                ids,
                tuple(found[name] for name in self._program.read_columns),
            )
        self._of_thread.walked = walked
        return block

    @property
    def walked(self) -> tuple[Any, ...]:
        """The out-edges of this thread's last block as compute() walks them (`engine.cpu.work.walked_edges`)."""
        found: tuple[Any, ...] = self._of_thread.walked
        return found

    def _scratch(self) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
        """Return this thread's room for the longest block."""
        if not hasattr(self._of_thread, "scratch"):
            self._of_thread.scratch = self._room(self._rows.most_arcs)
        found: tuple[NDArray[np.uint32], dict[str, NDArray[Any]]] = self._of_thread.scratch
        return found

    def _room(self, num_arcs: int) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
        columns = {name: np.empty(num_arcs, dtype) for name, dtype in self._types.items()}
        return np.empty(num_arcs, dtype=np.uint32), columns


_PIECE = 1 << 15
"""Vertices of a piece without edges."""
_SAMPLE = 4
_BUCKET_BITS = 12
"""Which of 2**12 buckets of vertices a block's sources are in is kept: 512 bytes a block of some 400 KB."""
