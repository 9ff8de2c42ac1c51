"""Rows that stay packed: where each begins is in memory, and pages are unpacked by those that read them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.packing.table import chains
from sigps.graph.packing.unpacker import PackedRows, row_offsets

__all__ = ["PagedRows"]

_AT_ONCE = 1 << 20


class PagedRows:
    """Rows in the order of vertices, in chains of pages: a chain begins with a row, and ends with one.

    Most chains are one page. The degrees are unpacked once, O(rows), by several threads.

    Args:
        packed: The rows.
        num_threads: Threads that work.

    Attributes:
        packed: As given.
        offsets: [rows + 1], where each row begins among all arcs.
        chains: The pages of each chain.
        first_rows: [chains + 1], the first row of each.

    Raises:
        GraphError: If a page is damaged.
    """

    def __init__(self, packed: PackedRows, num_threads: int) -> None:
        packed.require_files()
        self.packed, table = packed, packed.table
        self.offsets = row_offsets(packed, num_threads)
        self.chains = list(chains(table)) if table.num_pages else []
        firsts = [int(table.first_rows[chain[0]]) for chain in self.chains]
        self.first_rows = np.array([*firsts, self.offsets.size - 1], dtype=np.int64)

    @functools.cached_property
    def is_descending(self) -> bool:
        """Whether no row has more arcs than the one before it; O(rows)."""
        for first in range(0, self.offsets.size - 2, _AT_ONCE):
            degrees = np.diff(self.offsets[first : first + _AT_ONCE + 2])
            if (degrees[1:] > degrees[:-1]).any():
                return False
        return True

    @property
    def most_arcs(self) -> int:
        """The arcs of the longest chain."""
        return int(np.diff(self.offsets[self.first_rows]).max(initial=0))

    def words_of(self, number: int, names: tuple[str, ...] = ()) -> int:
        """Return the words of the pages of a chain, with those of some columns."""
        chain, table = self.chains[number], self.packed.table
        words = int(table.words[chain[-1] + 1] - table.words[chain[0]])
        for name in names:
            begins = self.packed.columns[name].begins
            words += int(begins[chain[-1] + 1] - begins[chain[0]])
        return words

    def unpack(self, number: int, targets: NDArray[np.uint32], columns: Mapping[str, NDArray[Any]]) -> None:
        """Write the arcs of a chain; threads may do it side by side.

        Args:
            number: Of the chain.
            targets: [arcs of the chain], written.
            columns: Those that are wanted, [arcs of the chain] each, written.

        Raises:
            GraphError: If a page is damaged, or is no longer what it was.
        """
        packed, table = self.packed, self.packed.table
        chain = self.chains[number]
        first_arc = int(table.arcs[chain[0]])
        for page in chain:
            rows, arcs = table.rows(page), table.arcs_of(page)
            own = slice(arcs.start - first_arc, arcs.stop - first_arc)
            degrees = np.empty(len(rows), dtype=np.uint32)
            packed.unpack_page(page, degrees, targets[own])
            ends = np.clip(self.offsets[rows.start : rows.stop + 1], arcs.start, arcs.stop)
            if not np.array_equal(degrees, np.diff(ends)):
                raise packed.damaged("pages", page)
            for name, values in columns.items():
                packed.unpack_column(name, page, values[own])
