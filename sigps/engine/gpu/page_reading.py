"""Pages of packed in-edges, read from their store once: checked, and put where they stay."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import available_cores
from sigps.engine.gpu.packed_places import (
    COLUMN_HEADER_WORDS,
    HEADER_WORDS,
    PlacesInPages,
    front_words,
    num_chunks,
)

if TYPE_CHECKING:
    from sigps.graph.packing.unpacker import PackedRows

__all__ = ["PageHeaders", "PageReading", "num_readers"]

_FIXED = [0, 1, 2, 4, 5, 6]
"""Words of a page's header that follow from the tables of the store."""

_RAW, _WHOLE = 0, 1  # kinds of pages of a column

_READERS_OF_FOLDER = 2

_PIECE_WORDS = 1 << 24  # of pages that stay on the device, read together


class PageHeaders:
    """What the headers of pages must say, by the tables of the store.

    Args:
        packed: The pages.
        places: Where rows are in them.
    """

    def __init__(self, packed: PackedRows, places: PlacesInPages) -> None:
        self._packed, table = packed, packed.table
        num_rows = table.end_rows.astype(np.int64) - table.first_rows.astype(np.int64)
        counts = np.stack([num_rows, places.num_parts, np.diff(table.arcs)], axis=1).astype(np.int64)
        self._counts, self._tables = counts, HEADER_WORDS + np.cumsum(num_chunks(counts[:, :2]), axis=1)

    def num_arcs(self, page: int) -> int:
        """Return how many arcs a page has."""
        return int(self._counts[page, 2])

    def check(self, page: int, words: NDArray[np.uint32]) -> None:
        """Check a page by its header.

        Raises:
            GraphError: If it says something else: the page is damaged.
        """
        wanted = [*self._counts[page].tolist(), HEADER_WORDS, *self._tables[page].tolist()]
        if words[_FIXED].tolist() != wanted:
            raise self._packed.damaged("pages", page)


class PageReading:
    """Reads all pages; each stays on the device, in pinned memory, or on disk, by its number.

    Args:
        packed: The pages.
        places: Where rows are in them.
        headers: What their headers must say.
        column: The column that is read with them, or None.
        words: [pages + 1], where each page begins, its page of the column behind it.
        resident: Memory on the device; it takes the first pages.
        num_resident: How many those are.
        host: Memory of the host; it takes the next ones.
        num_held: How many are in memory of either kind.

    Attributes:
        first_fronts: [pages + 1], where the front of each page begins in `fronts`.
        fronts: The header and tables of each page, with those of the column's page behind them.
    """

    def __init__(
        self,
        packed: PackedRows,
        places: PlacesInPages,
        headers: PageHeaders,
        column: str | None,
        words: NDArray[np.int64],
        *,
        resident: Any,
        num_resident: int,
        host: NDArray[np.uint32],
        num_held: int,
    ) -> None:
        self._packed, self._headers, self._column, self._words = packed, headers, column, words
        self._resident, self._num_resident = resident, num_resident
        self._host, self._num_held = host, num_held
        self._own_fronts = front_words(packed.table, places)
        self.first_fronts = np.append(0, np.cumsum(front_words(packed.table, places, column)))
        self.fronts = np.empty(int(self.first_fronts[-1]), dtype=np.uint32)

    def run(self) -> None:
        """Read them with threads: those of the device a piece at a time, the others to where they stay.

        Raises:
            GraphError: If a page is damaged, or cannot be read.
        """
        first, words = 0, self._words
        with ThreadPoolExecutor(num_readers(self._packed)) as pool:
            while first < self._num_resident:
                stop = int(np.searchsorted(words, words[first] + _PIECE_WORDS, side="right")) - 1
                stop = min(max(stop, first + 1), self._num_resident)
                piece = np.empty(int(words[stop] - words[first]), dtype=np.uint32)
                list(pool.map(partial(self._read, piece, int(words[first])), range(first, stop)))
                self._resident[int(words[first]) : int(words[stop])].set(piece)
                first = stop
            begin = int(words[self._num_resident])
            list(pool.map(partial(self._read, self._host, begin), range(first, self._num_held)))
            list(pool.map(self._read_front, range(self._num_held, self._packed.table.num_pages)))

    def _read(self, memory: NDArray[np.uint32], begin: int, page: int) -> None:
        """Bring a page to memory that has the words from a first one on."""
        first, stop = int(self._words[page]) - begin, int(self._words[page + 1]) - begin
        self._packed.bring_page(page, memory[first:stop], self._column)
        own = int(self._packed.table.words[page + 1] - self._packed.table.words[page])
        self._keep_front(page, memory[first : first + own], memory[first + own : stop])

    def _read_front(self, page: int) -> None:
        packed = self._packed
        front = int(self._own_fronts[page])
        own = packed.words_of_page(page, front).copy()  # the column's comes to the same room
        of_column = own[:0]
        if self._column is not None:
            more = int(self.first_fronts[page + 1]) - int(self.first_fronts[page]) - front
            of_column = packed.words_of_column(self._column, page, more)
        self._keep_front(page, own, of_column)

    def _keep_front(self, page: int, own: NDArray[np.uint32], of_column: NDArray[np.uint32]) -> None:
        """Check a page by what it begins with, and keep that."""
        begin, end = int(self.first_fronts[page]), int(self.first_fronts[page + 1])
        middle = begin + int(self._own_fronts[page])
        if own.size < middle - begin:
            raise self._packed.damaged("pages", page)
        self._headers.check(page, own)
        self.fronts[begin:middle] = own[: middle - begin]
        if self._column is None:
            return
        num_arcs = self._headers.num_arcs(page)
        kind = int(of_column[0]) if of_column.size >= COLUMN_HEADER_WORDS else -1
        needed = COLUMN_HEADER_WORDS + -(-num_arcs * self._packed.columns[self._column].dtype.itemsize // 4)
        least = {_RAW: needed if page < self._num_held else 0, _WHOLE: end - middle}.get(
            kind, of_column.size + 1
        )
        if of_column.size < max(least, end - middle) or int(of_column[1]) != num_arcs:
            raise self._packed.damaged(f"the column {self._column!r}", page)
        self.fronts[middle:end] = of_column[: end - middle]


def num_readers(packed: PackedRows) -> int:
    """Return how many threads read pages: also where cores are few so many that the disks of all folders work."""
    return max(available_cores(), _READERS_OF_FOLDER * (1 if packed.file is None else packed.file.num_files))
