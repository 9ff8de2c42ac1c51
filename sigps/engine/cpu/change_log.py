"""Changed values on edges that wait for the block of rows whose `edge.reverse` reads them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.spill import SpillFile
from sigps.kernels.cpu.edge_values import group_by_block

__all__ = ["SEGMENTS_IN_ROOM", "ChangeLog", "Changes", "entry_bytes"]

SEGMENTS_IN_ROOM = 5
"""So many would fill the room, of which two are being grouped."""

_MOST_ENTRIES = 1 << 26
"""Entries of one segment."""
_MANY_SEGMENTS = 32
"""Segments of earlier supersteps that stay: one block that is never read would keep them all."""


def entry_bytes(dtypes: Sequence[np.dtype[Any]]) -> int:
    """Return the bytes of an entry with columns of these types: both ends' numbers, and the values."""
    return 8 + sum(dtype.itemsize for dtype in dtypes)


class Changes(NamedTuple):
    """Entries: the row whose edges read a value, the vertex that keeps it, and the value in each column."""

    targets: NDArray[np.uint32]
    sources: NDArray[np.uint32]
    columns: tuple[NDArray[Any], ...]

    @classmethod
    def none(cls, dtypes: Sequence[np.dtype[Any]]) -> Changes:
        """Return no entries, with columns of these types."""
        rows = np.empty(0, dtype=np.uint32)
        return cls(rows, rows, tuple(np.empty(0, dtype=dtype) for dtype in dtypes))

    @property
    def num_bytes(self) -> int:
        return sum(part.nbytes for part in (self.targets, self.sources, *self.columns))

    def cut(self, begin: int, end: int) -> Changes:
        """Return some of them: no copies."""
        return Changes(
            self.targets[begin:end], self.sources[begin:end], tuple(c[begin:end] for c in self.columns)
        )


class ChangeLog:
    """Entries grouped by the block that they are for, in segments in the order in which they were written.

    What is written in a superstep is there to be taken after `commit`.

    Args:
        first_rows: [blocks + 1].
        dtypes: Of the columns.
        room: Bytes of memory that entries may take; the others are in files. None for any number.
        rank: The rank that has them.

    Attributes:
        waiting: [blocks], how many entries may be taken.
        spilled: Bytes written to files since the last `take_spilled`.
    """

    def __init__(
        self, first_rows: NDArray[Any], dtypes: Sequence[np.dtype[Any]], room: int | None, rank: int = 0
    ) -> None:
        self._first_rows, self._dtypes = first_rows.astype(np.uint32), list(dtypes)
        self._room, self._rank = room, rank
        self._writing = threading.Lock()
        self._open: list[Changes] = []
        self._open_bytes = 0
        self._new: list[_Segment] = []
        self._segments: list[_Segment] = []
        self._num_last = 0  # of them, written in the last superstep
        self._in_memory = 0
        self._file: SpillFile | None = (
            None  # of the segments of this superstep; it goes with the last of them
        )
        self._file_end = 0
        self.waiting = np.zeros(first_rows.size - 1, dtype=np.int64)
        self.spilled = 0

    def put(self, changes: Changes) -> None:
        """Append entries; threads may do it side by side."""
        if changes.targets.size == 0:
            return
        with self._writing:
            self._open.append(changes)
            self._open_bytes += changes.num_bytes
            entries = sum(part.targets.size for part in self._open)
            is_full = self._room is not None and SEGMENTS_IN_ROOM * self._open_bytes > self._room
            if is_full or entries > _MOST_ENTRIES:
                self._seal()

    def commit(self) -> None:
        """Let what was written be taken."""
        self._seal()
        for segment in self._new:
            self.waiting += segment.sizes
        self._segments += self._new
        self._num_last = len(self._new)
        self._new, self._file = [], None

    def take(self, number: int) -> Iterator[Changes]:
        """Yield the entries of a block, which are not there again; those to one edge in the order of supersteps."""
        if not self.waiting[number]:
            return
        self.waiting[number] = 0
        for segment in self._segments:
            if (changes := segment.take(number)) is not None:
                yield changes

    def drain(self, most: int) -> Iterator[list[Changes]]:
        """Yield all entries, of each block at most so many at a time; they are not there again."""
        nothing = Changes.none(self._dtypes)
        self.waiting.fill(0)
        while self._segments:
            segment = self._segments.pop(0)
            parts = [segment.take(number) or nothing for number in range(self.waiting.size)]
            for first in range(0, max(part.targets.size for part in parts), most):
                yield [part.cut(first, first + most) for part in parts]
            self._in_memory -= segment.in_memory

    def crowded(self, num_arcs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the blocks that have more entries than edges, and those that keep old segments alive.

        They are to be taken, so that entries never take more than edges do. Segments that were taken whole go now.
        """
        live = [segment for segment in self._segments if segment.num_left]
        self._in_memory -= sum(segment.in_memory for segment in self._segments if not segment.num_left)
        self._segments = live
        is_crowded = self.waiting > np.maximum(num_arcs, 1)
        for segment in live[: max(0, len(live) - self._num_last - _MANY_SEGMENTS)]:
            is_crowded |= segment.waits
        return np.flatnonzero(is_crowded)

    def take_spilled(self) -> int:
        """Return the bytes that were written to files since the last call."""
        found, self.spilled = self.spilled, 0
        return found

    def _seal(self) -> None:
        """Group what was written by block, in memory or in a file."""
        if not self._open:
            return
        parts, self._open, self._open_bytes = self._open, [], 0
        targets = np.concatenate([part.targets for part in parts])
        begins = np.zeros(self._first_rows.size, dtype=np.uint64)
        order = np.empty(targets.size, dtype=np.uint32)
        group_by_block(targets, self._first_rows, begins, order)
        size = targets.size * entry_bytes(self._dtypes)
        fits = self._room is None or 2 * (self._in_memory + size) <= self._room
        if not fits and self._file is None:
            self._file, self._file_end = SpillFile(self._rank), 0
        segment = _Segment(begins, self._dtypes, None if fits else self._file, self._file_end)
        segment.write(targets[order])
        del targets
        segment.write(np.concatenate([part.sources for part in parts])[order])
        for column in range(len(self._dtypes)):
            segment.write(np.concatenate([part.columns[column] for part in parts])[order])
        self._file_end = self._file_end if fits else segment.file_end
        self._in_memory += segment.in_memory
        self.spilled += size - segment.in_memory
        self._new.append(segment)


class _Segment:
    """Arrays of entries grouped by block: `begins`, [blocks + 1], says where those of each begin."""

    def __init__(
        self, begins: NDArray[np.uint64], dtypes: Sequence[np.dtype[Any]], file: SpillFile | None, at: int
    ) -> None:
        self.begins, self._file = begins, file
        self._dtypes = [np.dtype(np.uint32), np.dtype(np.uint32), *dtypes]
        self._arrays: list[NDArray[Any]] = []
        self._positions: list[int] = [at]
        self._counting = threading.Lock()
        self.sizes: NDArray[np.int64] = (begins[1:] - begins[:-1]).astype(np.int64)
        self.waits = self.sizes > 0
        self.num_left = int(np.count_nonzero(self.waits))
        self.in_memory = 0

    @property
    def file_end(self) -> int:
        """The position behind what it has in its file."""
        return self._positions[-1]

    def write(self, values: NDArray[Any]) -> None:
        """Keep one more array."""
        if self._file is None:
            self._arrays.append(values)
            self.in_memory += values.nbytes
        else:
            self._positions.append(self._file.write(self._positions[-1], values))

    def take(self, number: int) -> Changes | None:
        """Return a block's entries; None where there are none, or they were taken."""
        if not self.waits[number]:
            return None
        self.waits[number] = False
        begin, end = (int(at) for at in self.begins[number : number + 2])
        if self._file is None:
            targets, sources, *columns = (values[begin:end] for values in self._arrays)
        else:
            targets, sources, *columns = (self._read(i, begin, end) for i in range(len(self._dtypes)))
        with self._counting:
            self.num_left -= 1
        return Changes(targets, sources, tuple(columns))

    def _read(self, array: int, begin: int, end: int) -> NDArray[Any]:
        assert self._file is not None
        values = np.empty(end - begin, dtype=self._dtypes[array])
        self._file.read(self._positions[array] + begin * self._dtypes[array].itemsize, values)
        return values
