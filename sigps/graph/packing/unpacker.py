"""Pages to rows of a graph, by several threads."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.packing.numbers import unpack_numbers
from sigps.graph.packing.pages import PAGE_ARCS, unpack_rows
from sigps.graph.packing.renumbering import renumbered
from sigps.graph.packing.streams import CHUNK
from sigps.graph.packing.table import PageTable, cut_rows

__all__ = ["PackedColumn", "PackedRows", "unpacked"]


@dataclass(frozen=True)
class PackedColumn:
    """An edge column in pages, beside those of the rows.

    Attributes:
        dtype: Of its numbers.
        begins: [pages + 1], where each page begins among the words.
        words: Of all pages.
    """

    dtype: np.dtype[Any]
    begins: NDArray[np.uint64]
    words: NDArray[np.uint32]


@dataclass(frozen=True)
class PackedRows:
    """Rows in pages. What they hold may be anything: it is checked while it is unpacked.

    Attributes:
        num_vertices: What targets must be below.
        table: What the pages hold; it has been checked (`table.problem_of`).
        words: Of all pages.
        columns: By name.
        where: What holds the pages, for errors.
    """

    num_vertices: int
    table: PageTable
    words: NDArray[np.uint32]
    columns: dict[str, PackedColumn]
    where: str

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
            self.words[self.table.words_of(page)],
            np.uint64(self.num_vertices),
            np.uint64(rows.start),
            np.uint64(len(rows)),
            scratch.degrees,
            scratch.firsts,
            scratch.gaps,
            targets,
        )
        if not whole:
            raise self._damaged("pages", page)
        degrees[:] = scratch.degrees[: len(rows)]

    def unpack_column(self, name: str, page: int, values: NDArray[Any]) -> None:
        """Write a column's values for the arcs of a page, [arcs of the page].

        Raises:
            GraphError: If it is damaged.
        """
        column = self.columns[name]
        words = column.words[int(column.begins[page]) : int(column.begins[page + 1])]
        if not unpack_numbers(words, values, _scratch_of_thread().degrees):
            raise self._damaged(f"the column {name!r}", page)

    def _damaged(self, what: str, page: int) -> GraphError:
        return GraphError(f"{self.where}: {what} is damaged in page {page:,}. Copy or write the store again")


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
    table = packed.table
    num_arcs = int(table.arcs[-1])
    continues = table.continues
    sizes = (table.end_rows - table.first_rows).astype(np.int64)
    ends = np.cumsum(sizes)
    parts = np.empty(int(sizes.sum()), dtype=np.uint32)  # a row that continues has several
    targets = np.empty(num_arcs, dtype=np.uint32)
    columns = {name: np.empty(num_arcs, column.dtype) for name, column in packed.columns.items()}

    def unpack(page: int) -> None:
        arcs = table.arcs_of(page)
        packed.unpack_page(page, parts[ends[page] - sizes[page] : ends[page]], targets[arcs])
        for name, column in columns.items():
            packed.unpack_column(name, page, column[arcs])

    with ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(unpack, range(table.num_pages)))
        is_first = np.ones(parts.size, dtype=bool)
        is_first[(ends - sizes)[continues]] = False
        offsets = np.append(np.cumsum(parts, dtype=np.uint64) - parts, np.uint64(num_arcs))
        offsets = offsets[np.append(is_first, True)]
        if order is None:
            return offsets, targets, columns
        return _in_order_of_vertices(packed.num_vertices, order, offsets, targets, columns, pool)


def _in_order_of_vertices(
    num_vertices: int,
    order: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    targets: NDArray[np.uint32],
    columns: dict[str, NDArray[Any]],
    pool: ThreadPoolExecutor,
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], dict[str, NDArray[Any]]]:
    degrees = np.zeros(num_vertices, dtype=np.uint64)
    degrees[order] = np.diff(offsets)
    found = np.zeros(num_vertices + 1, dtype=np.uint64)
    np.cumsum(degrees, out=found[1:])
    rows = np.argsort(order, kind="stable")  # those of the vertices that have one, ascending
    vertices = order[rows]
    moved = np.empty_like(targets)
    moved_columns = {name: np.empty_like(column) for name, column in columns.items()}

    def move(pieces: tuple[int, int]) -> None:
        begin, end = np.searchsorted(vertices, pieces)
        arcs = slice(int(found[pieces[0]]), int(found[pieces[1]]))
        moved[arcs], values = renumbered(rows[begin:end], offsets, targets, order, list(columns.values()))
        for column, own in zip(moved_columns.values(), values, strict=True):
            column[arcs] = own

    pages = cut_rows(found)
    begins = [*pages.first_rows[~pages.continues].tolist(), num_vertices]
    list(pool.map(move, itertools.pairwise(begins)))
    return found, moved, moved_columns


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
