"""Pages of packed in-edges, read from their store once: checked, and put where they stay."""

from __future__ import annotations

from collections.abc import Sequence
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
        columns: Those that are read with them.
        words: [pages + 1], where each page begins, its pages of the columns behind it.
        resident: Memory on the device; it takes the first pages.
        num_resident: How many those are.
        host: Memory of the host; it takes the next ones.
        num_held: How many are in memory of either kind.

    Attributes:
        first_fronts: [pages + 1], where the front of each page begins in `fronts`.
        fronts: The header and tables of each page, with those of the columns' pages behind them.
    """

    def __init__(
        self,
        packed: PackedRows,
        places: PlacesInPages,
        headers: PageHeaders,
        columns: Sequence[str],
        words: NDArray[np.int64],
        *,
        resident: Any,
        num_resident: int,
        host: NDArray[np.uint32],
        num_held: int,
    ) -> None:
        self._packed, self._headers, self._columns, self._words = packed, headers, columns, words
        self._resident, self._num_resident = resident, num_resident
        self._host, self._num_held = host, num_held
        self._own_fronts = front_words(packed.table, places)
        self.first_fronts = np.append(0, np.cumsum(front_words(packed.table, places, columns)))
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
        self._packed.bring_page(page, memory[first:stop], self._columns)
        sizes = [self._packed.table.words, *(self._packed.columns[name].begins for name in self._columns)]
        ends = first + np.cumsum([int(begins[page + 1] - begins[page]) for begins in sizes])
        begins = [first, *ends[:-1].tolist()]
        self._keep_fronts(page, [memory[b:e] for b, e in zip(begins, ends.tolist(), strict=True)])

    def _read_front(self, page: int) -> None:
        packed, of_column = self._packed, self._words_of_column(page)
        own = packed.words_of_page(page, int(self._own_fronts[page]))
        words = [own.copy()]  # others come to the same room
        words += [packed.words_of_column(name, page, of_column).copy() for name in self._columns]
        self._keep_fronts(page, words)

    def _words_of_column(self, page: int) -> int:
        """Return the words of the header and table of a page of a column."""
        return COLUMN_HEADER_WORDS + int(num_chunks(np.array(self._headers.num_arcs(page))))

    def _keep_fronts(self, page: int, words: Sequence[NDArray[np.uint32]]) -> None:
        """Check a page and those of its columns by what they begin with, and keep that."""
        begin, packed = int(self.first_fronts[page]), self._packed
        end = begin + int(self._own_fronts[page])
        own, *of_columns = words
        if own.size < end - begin:
            raise packed.damaged("pages", page)
        self._headers.check(page, own)
        self.fronts[begin:end] = own[: end - begin]
        num_arcs, size = self._headers.num_arcs(page), self._words_of_column(page)
        for name, of_column in zip(self._columns, of_columns, strict=True):
            kind = int(of_column[0]) if of_column.size >= COLUMN_HEADER_WORDS else -1
            needed = COLUMN_HEADER_WORDS + -(-num_arcs * packed.columns[name].dtype.itemsize // 4)
            least = {_RAW: needed if page < self._num_held else 0, _WHOLE: size}.get(kind, of_column.size + 1)
            if of_column.size < max(least, size) or int(of_column[1]) != num_arcs:
                raise packed.damaged(f"the column {name!r}", page)
            self.fronts[end : end + size] = of_column[:size]
            end += size


def num_readers(packed: PackedRows) -> int:
    """Return how many threads read pages: also where cores are few so many that the disks of all folders work."""
    return max(available_cores(), _READERS_OF_FOLDER * (1 if packed.file is None else packed.file.num_files))
