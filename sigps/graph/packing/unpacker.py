"""Pages to rows of a graph, by several threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.packing.numbers import unpack_numbers
from sigps.graph.packing.page_files import PageFile, PageFiles
from sigps.graph.packing.pages import PAGE_ARCS, most_words_to_degrees, unpack_degrees, unpack_rows
from sigps.graph.packing.renumbering import place_rows, renumbered
from sigps.graph.packing.streams import CHUNK
from sigps.graph.packing.table import PageTable, chains

__all__ = ["UNPACKING_BYTES", "PackedColumn", "PackedRows", "row_degrees", "row_offsets", "unpacked"]


@dataclass(frozen=True)
class PackedColumn:
    """An edge column in pages, beside those of the rows.

    Attributes:
        dtype: Of its numbers.
        begins: [pages + 1], where each page begins among the words.
        words: Of all pages; none where these are in several folders.
        file: That from which pages are read; None where `words` are in memory.
        first_word: Of a part, the place of its first word in the file.
    """

    dtype: np.dtype[Any]
    begins: NDArray[np.uint64]
    words: NDArray[np.uint32]
    file: PageFile | PageFiles | None = None
    first_word: int = 0

    @property
    def num_bytes(self) -> int:
        """Of all pages."""
        return 4 * int(self.begins[-1] - self.begins[0])

    def part(self, pages: slice) -> PackedColumn:
        """Return some of the pages."""
        begins = self.begins[pages.start : pages.stop + 1]
        first, stop = int(begins[0]), int(begins[-1])
        return replace(
            self, begins=begins - begins[0], words=self.words[first:stop], first_word=self.first_word + first
        )


@dataclass(frozen=True)
class PackedRows:
    """Rows in pages. What they hold may be anything: it is checked while it is unpacked.

    Attributes:
        num_vertices: What targets must be below.
        table: What the pages hold; it has been checked (`table.problem_of`).
        words: Of all pages; none where these are in several folders.
        columns: By name.
        where: What holds the pages, for errors.
        file: That from which pages are read; None where `words` are in memory.
        first_word: Of a part, the place of its first word in the file.
        first_row: Of a part, the number of its first row: `table` counts from there.
        first_page: Likewise.
    """

    num_vertices: int
    table: PageTable
    words: NDArray[np.uint32]
    columns: dict[str, PackedColumn]
    where: str
    file: PageFile | PageFiles | None = None
    first_word: int = 0
    first_row: int = 0
    first_page: int = 0

    @property
    def num_bytes(self) -> int:
        """Of all pages, without columns."""
        return 4 * int(self.table.words[-1])

    def part(self, rows: range) -> PackedRows:
        """Return some of the rows, which begin with a page and end with one."""
        table = self.table
        first, stop = np.searchsorted(
            table.first_rows, np.array([rows.start, rows.stop], dtype=np.uint64)
        ).tolist()
        arcs, words = table.arcs[first : stop + 1], table.words[first : stop + 1]
        own = PageTable(
            table.first_rows[first:stop] - np.uint64(rows.start),
            table.end_rows[first:stop] - np.uint64(rows.start),
            arcs - arcs[0],
            words - words[0],
        )
        return replace(
            self,
            table=own,
            words=self.words[int(words[0]) : int(words[-1])],
            columns={name: column.part(slice(first, stop)) for name, column in self.columns.items()},
            first_word=self.first_word + int(words[0]),
            first_row=self.first_row + rows.start,
            first_page=self.first_page + first,
        )

    def require_files(self) -> None:
        """Check that the files are still what they were.

        Raises:
            GraphError: If one was cut short or changed.
        """
        for file in (self.file, *(column.file for column in self.columns.values())):
            if file is not None:
                file.require()

    def unpack_page(self, page: int, degrees: NDArray[np.uint32], targets: NDArray[np.uint32]) -> None:
        """Write the arcs of a page.

        Args:
            page: Its number.
            degrees: [rows of the page], written: how many arcs of each row it has.
            targets: [arcs of the page], written.

        Raises:
            GraphError: If it is damaged.
        """
        rows, scratch = self.table.rows(page), _scratch_of_thread()
        whole = unpack_rows(
            self.words_of_page(page),
            np.uint64(self.num_vertices),
            np.uint64(self.first_row + rows.start),
            np.uint64(len(rows)),
            scratch.degrees,
            scratch.firsts,
            scratch.gaps,
            targets,
        )
        if not whole:
            raise self.damaged("pages", page)
        degrees[:] = scratch.degrees[: len(rows)]

    def unpack_degrees(self, page: int, degrees: NDArray[np.uint32]) -> None:
        """Write how many arcs of each row a page has, [rows of the page]; they may not be those of the arcs.

        Raises:
            GraphError: If it is damaged.
        """
        scratch, num_rows, arcs = _scratch_of_thread(), np.uint64(degrees.size), self.table.arcs_of(page)
        words = self.words_of_page(page, most_words_to_degrees(degrees.size, arcs.stop - arcs.start))
        if not unpack_degrees(words, num_rows, scratch.degrees):
            raise self.damaged("pages", page)
        degrees[:] = scratch.degrees[: degrees.size]

    def unpack_column(self, name: str, page: int, values: NDArray[Any]) -> None:
        """Write a column's values for the arcs of a page, [arcs of the page].

        Raises:
            GraphError: If it is damaged.
        """
        if not unpack_numbers(self.words_of_column(name, page), values, _scratch_of_thread().degrees):
            raise self.damaged(f"the column {name!r}", page)

    def words_of_column(self, name: str, page: int, most: int | None = None) -> NDArray[np.uint32]:
        """Return the words of a page of a column; as `words_of_page` does."""
        column = self.columns[name]
        first, stop = int(column.begins[page]), int(column.begins[page + 1])
        stop = stop if most is None else min(stop, first + most)
        if column.file is None:
            return column.words[first:stop]
        return column.file.read(column.first_word + first, column.first_word + stop, self.first_page + page)

    def words_of_page(self, page: int, most: int | None = None) -> NDArray[np.uint32]:
        """Return the words of a page, in room of this thread where they come from a file: until it reads the next.

        Args:
            page: Its number.
            most: Words, from the first one on; None for all.
        """
        words = self.table.words_of(page)
        if most is not None:
            words = slice(words.start, min(words.stop, words.start + most))
        if self.file is None:
            return self.words[words]
        return self.file.read(
            self.first_word + words.start, self.first_word + words.stop, self.first_page + page
        )

    def bring_page(self, page: int, room: NDArray[np.uint32], columns: Sequence[str]) -> None:
        """Bring the words of a page, with those of some columns behind them, to the beginning of some room.

        Raises:
            GraphError: If they cannot be read.
        """
        own = self.table.words_of(page)
        size = own.stop - own.start
        if self.file is None:
            room[:size] = self.words[own]
        else:
            self.file.read_into(room[:size], self.first_word + own.start, self.first_page + page)
        for values in (self.columns[name] for name in columns):
            first, stop = int(values.begins[page]), int(values.begins[page + 1])
            behind, size = room[size : size + stop - first], size + stop - first
            if values.file is None:
                behind[:] = values.words[first:stop]
            else:
                values.file.read_into(behind, values.first_word + first, self.first_page + page)

    def damaged(self, what: str, page: int) -> GraphError:
        """Return the error for a page that is none."""
        number = self.first_page + page
        where = self.where if self.file is None else self.file.folder_of(number)
        return GraphError(f"{where}: {what} is damaged in page {number:,}. Copy or write the store again")


def unpacked(
    packed: PackedRows, order: NDArray[np.uint32] | None, num_threads: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], dict[str, NDArray[Any]]]:
    """Return offsets, [num_vertices + 1], targets and columns of all rows in the order of vertices.

    Args:
        packed: The rows.
        order: The vertex of each row, distinct ones; None if they are 0, 1, ...
        num_threads: Threads that work.

    Raises:
        GraphError: If a page is damaged.
    """
    if order is None:
        with ThreadPoolExecutor(num_threads) as pool:
            return _in_given_order(packed, pool)
    own_offsets = row_offsets(packed, num_threads)
    with ThreadPoolExecutor(num_threads) as pool:
        return _in_order_of_vertices(packed, own_offsets, order, pool)


def row_offsets(packed: PackedRows, num_threads: int) -> NDArray[np.uint64]:
    """Return where each row begins among all arcs, [rows + 1], of which the beginning of each page tells: O(rows).

    Args:
        packed: The rows.
        num_threads: Threads that work.

    Raises:
        GraphError: If a page is damaged.
    """
    table, parts = packed.table, _RowParts(packed.table)
    with ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(lambda page: packed.unpack_degrees(page, parts.of(page)), range(table.num_pages)))
    offsets = parts.offsets()
    for chain in chains(table):  # so that no arc of theirs is looked for elsewhere
        end = int(offsets[int(table.end_rows[chain[-1]])])
        if end != int(table.arcs[chain[-1] + 1]):
            raise packed.damaged("pages", chain[-1])
    return offsets


_Arrays = tuple[NDArray[np.uint64], NDArray[np.uint32], dict[str, NDArray[Any]]]


def _in_given_order(packed: PackedRows, pool: ThreadPoolExecutor) -> _Arrays:
    """Return what pages hold, one behind the other."""
    table, parts = packed.table, _RowParts(packed.table)
    targets, columns = _empty_arrays(packed)

    def unpack(page: int) -> None:
        packed.unpack_page(page, parts.of(page), targets[table.arcs_of(page)])
        for name, column in columns.items():
            packed.unpack_column(name, page, column[table.arcs_of(page)])

    list(pool.map(unpack, range(table.num_pages)))
    return parts.offsets(), targets, columns


def _in_order_of_vertices(
    packed: PackedRows, own_offsets: NDArray[np.uint64], order: NDArray[np.uint32], pool: ThreadPoolExecutor
) -> _Arrays:
    """Return rows in the order of vertices, each of them sorted anew, and brought to its place."""
    table = packed.table
    found = np.zeros(packed.num_vertices + 1, dtype=np.uint64)
    found[1:][order] = np.diff(own_offsets)
    np.cumsum(found, out=found)
    targets, columns = _empty_arrays(packed)

    def move(chain: range) -> None:
        rows = slice(int(table.first_rows[chain[0]]), int(table.end_rows[chain[-1]]))
        first_arc = int(table.arcs[chain[0]])
        arcs = int(table.arcs[chain[-1] + 1]) - first_arc
        offsets = own_offsets[rows.start : rows.stop + 1] - np.uint64(first_arc)
        ends = np.empty(arcs, dtype=np.uint32)
        values = {name: np.empty(arcs, column.dtype) for name, column in columns.items()}
        for page in chain:
            own = slice(int(table.arcs[page]) - first_arc, int(table.arcs[page + 1]) - first_arc)
            degrees = np.empty(len(table.rows(page)), dtype=np.uint32)
            packed.unpack_page(page, degrees, ends[own])
            begins = np.clip(
                own_offsets[table.rows(page).start : table.rows(page).stop + 1], *_ends(table, page)
            )
            if not np.array_equal(degrees, np.diff(begins)):  # a file that changed since
                raise packed.damaged("pages", page)
            for name, column in values.items():
                packed.unpack_column(name, page, column[own])
        local = np.arange(rows.stop - rows.start)
        ends, moved = renumbered(local, offsets, ends, order, list(values.values()))
        begins = found[order[rows]]
        for out, sorted_values in zip([targets, *columns.values()], [ends, *moved], strict=True):
            place_rows(offsets, sorted_values, begins, out)

    list(pool.map(move, chains(table)))
    return found, targets, columns


def row_degrees(packed: PackedRows, num_threads: int) -> NDArray[np.int64]:
    """Return the arcs of each row, [rows]; as `row_offsets` does."""
    offsets = row_offsets(packed, num_threads)
    return (offsets[1:] - offsets[:-1]).view(np.int64)


def _ends(table: PageTable, page: int) -> tuple[int, int]:
    arcs = table.arcs_of(page)
    return arcs.start, arcs.stop


def _empty_arrays(packed: PackedRows) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
    size = int(packed.table.arcs[-1])
    columns = {name: np.empty(size, column.dtype) for name, column in packed.columns.items()}
    return np.empty(size, dtype=np.uint32), columns


class _RowParts:
    """How many arcs each row has in each page: a row that continues has several parts."""

    def __init__(self, table: PageTable) -> None:
        sizes = (table.end_rows - table.first_rows).astype(np.int64)
        self._ends = np.cumsum(sizes)
        self._begins = self._ends - sizes
        self._continues = table.continues
        self._degrees = np.empty(int(sizes.sum()), dtype=np.uint32)

    def of(self, page: int) -> NDArray[np.uint32]:
        """Return those of a page, [rows of the page], to be written."""
        return self._degrees[self._begins[page] : self._ends[page]]

    def offsets(self) -> NDArray[np.uint64]:
        """Return where each row begins, [rows + 1]."""
        found = np.zeros(self._degrees.size + 1, dtype=np.uint64)
        np.cumsum(self._degrees, out=found[1:])
        continued = self._begins[self._continues]
        return np.delete(found, continued) if continued.size else found


UNPACKING_BYTES = 4 * (2 * PAGE_ARCS + CHUNK)
"""What a thread that unpacks has for itself, beside the rows that it writes."""


@dataclass(frozen=True)
class _Scratch:
    degrees: NDArray[np.uint32]
    firsts: NDArray[np.uint32]
    gaps: NDArray[np.uint32]


_of_thread = threading.local()


def _scratch_of_thread() -> _Scratch:
    if not hasattr(_of_thread, "scratch"):
        _of_thread.scratch = _Scratch(
            *(np.empty(size, dtype=np.uint32) for size in (PAGE_ARCS, PAGE_ARCS, CHUNK))
        )
    found: _Scratch = _of_thread.scratch
    return found
