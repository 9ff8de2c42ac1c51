"""Pages of packed in-edges, read from their store once: checked, and put where they stay."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
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
        host: Pinned memory; it takes the next ones.
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
        """Read them: those of the device one after another, the others with threads.

        Raises:
            GraphError: If a page is damaged, or cannot be read.
        """
        for page in range(self._num_resident):
            self._read(page)
        with ThreadPoolExecutor(num_readers(self._packed)) as pool:
            list(pool.map(self._read, range(self._num_resident, self._packed.table.num_pages)))

    def _read(self, page: int) -> None:
        packed, is_held = self._packed, page < self._num_held
        begin = int(self.first_fronts[page])
        end = begin + int(self._own_fronts[page])
        own = packed.words_of_page(page, None if is_held else end - begin)
        if own.size < end - begin:
            raise packed.damaged("pages", page)
        self._headers.check(page, own)
        self.fronts[begin:end] = own[: end - begin]
        self._keep(int(self._words[page]), page, own)
        if self._column is not None:
            self._read_column(self._column, page, end, int(self._words[page]) + own.size)

    def _read_column(self, column: str, page: int, begin: int, at: int) -> None:
        """Read the column's page behind a page, whose front begins there, and which is put there."""
        packed, is_held = self._packed, page < self._num_held
        num_arcs, end = self._headers.num_arcs(page), int(self.first_fronts[page + 1])
        own = packed.words_of_column(column, page, None if is_held else end - begin)
        kind = int(own[0]) if own.size >= COLUMN_HEADER_WORDS else -1
        needed = COLUMN_HEADER_WORDS + -(-num_arcs * packed.columns[column].dtype.itemsize // 4)
        least = {_RAW: needed if is_held else 0, _WHOLE: end - begin}.get(kind, own.size + 1)
        if own.size < max(least, end - begin) or int(own[1]) != num_arcs:
            raise packed.damaged(f"the column {column!r}", page)
        self.fronts[begin:end] = own[: end - begin]
        self._keep(at, page, own)

    def _keep(self, at: int, page: int, own: NDArray[np.uint32]) -> None:
        if page < self._num_resident:
            self._resident[at : at + own.size].set(own)
        elif page < self._num_held:
            self._host[at - int(self._words[self._num_resident]) :][: own.size] = own


def num_readers(packed: PackedRows) -> int:
    """Return how many threads read pages: also where cores are few so many that the disks of all folders work."""
    return max(available_cores(), _READERS_OF_FOLDER * (1 if packed.file is None else packed.file.num_files))
