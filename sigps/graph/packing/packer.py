"""Rows of a graph to pages, by several threads; and the order of rows that packs better."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.graph.degrees import degree_order
from sigps.graph.packing.numbers import pack_numbers
from sigps.graph.packing.pages import PAGE_ARCS, most_page_words, pack_rows
from sigps.graph.packing.renumbering import renumbered
from sigps.graph.packing.table import chains, cut_rows

__all__ = ["Order", "PackableRows", "Page", "in_order"]


@dataclass(frozen=True)
class Page:
    """A packed page, and those of its columns."""

    words: NDArray[np.uint32]
    columns: list[NDArray[np.uint32]]


class PackableRows:
    """Rows that can be packed, in their given order or in another.

    Args:
        offsets: [num_vertices + 1].
        targets: [arcs], ascending in each row.
        columns: [arcs] each.
        order: The rows in the order in which they are packed, at least all that have an arc or are a target; these
            get the numbers 0, 1, ..., which targets then have too. None for the given order.
        page_arcs: Arcs, and rows, of a page at most: no more than `PAGE_ARCS`.
        first_row: The number of the first row, where others are packed before.

    Attributes:
        table: Which rows and arcs the pages hold.
    """

    def __init__(
        self,
        offsets: NDArray[np.uint64],
        targets: NDArray[np.uint32],
        columns: list[NDArray[Any]],
        order: NDArray[np.int64] | None = None,
        page_arcs: int = PAGE_ARCS,
        first_row: int = 0,
    ) -> None:
        self._first_row = first_row
        self._offsets, self._targets, self._columns, self.order = offsets, targets, columns, order
        self._own_offsets = offsets
        self._moves = order is not None
        if order is not None:
            self._numbers = np.zeros(offsets.size - 1, dtype=np.uint32)
            self._numbers[order] = np.arange(order.size, dtype=np.uint32)
            self._own_offsets = np.zeros(order.size + 1, dtype=np.uint64)
            np.cumsum(offsets[order + 1] - offsets[order], out=self._own_offsets[1:])
        self.table = cut_rows(self._own_offsets, page_arcs)

    def arranged(
        self, offsets: NDArray[np.uint64], targets: NDArray[np.uint32], columns: list[NDArray[Any]]
    ) -> None:
        """Take the rows as they are in `order`, ends by its numbers: from now on they are read one after the other."""
        self._offsets, self._targets, self._columns, self._moves = offsets, targets, columns, False

    def pages(self, num_threads: int) -> Iterator[Page]:
        """Yield the pages in their order; some more are held in memory, twice as many as threads."""
        waiting: deque[Future[list[Page]]] = deque()
        with ThreadPoolExecutor(num_threads) as pool:
            for chain in chains(self.table):
                waiting.append(pool.submit(self._packed, chain))
                if len(waiting) > 2 * num_threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()

    def sampled_bytes(self, num_samples: int) -> float:
        """Return about how many bytes the pages take, without columns, by that many short pages."""
        num_arcs = int(self._own_offsets[-1])
        if num_arcs == 0:
            return 0.0
        taken, seen = 0, 0
        for begin in np.linspace(0, num_arcs, num_samples, endpoint=False).astype(np.uint64):
            first = int(np.searchsorted(self._own_offsets, begin, side="right")) - 1
            last = int(np.searchsorted(self._own_offsets, begin + np.uint64(_SAMPLE_ARCS), side="left"))
            end = max(first + 1, min(last, self._own_offsets.size - 1, first + PAGE_ARCS))
            targets, _ = self._arcs(first, end, with_columns=False)
            kept = targets[:_SAMPLE_ARCS]
            degrees = np.diff(
                np.minimum(self._own_offsets[first : end + 1] - self._own_offsets[first], kept.size)
            )
            taken += self._page(first, degrees.astype(np.uint32), kept).nbytes
            seen += kept.size
        return taken / max(seen, 1) * num_arcs

    def _arcs(
        self, first: int, end: int, *, with_columns: bool = True
    ) -> tuple[NDArray[np.uint32], list[NDArray[Any]]]:
        columns = self._columns if with_columns else []
        if self._moves:
            assert self.order is not None
            rows = self.order[first:end]
            return renumbered(rows, self._offsets, self._targets, self._numbers, columns)
        own = slice(int(self._offsets[first]), int(self._offsets[end]))
        return self._targets[own], [column[own] for column in columns]

    def _packed(self, chain: range) -> list[Page]:
        """Return pages, the first of which begins with a row and the last of which ends with one."""
        table, found = self.table, []
        first, end = int(table.first_rows[chain[0]]), int(table.end_rows[chain[-1]])
        targets, columns = self._arcs(first, end)
        for page in chain:
            rows, arcs = table.rows(page), table.arcs_of(page)
            ends = np.clip(self._own_offsets[rows.start : rows.stop + 1], arcs.start, arcs.stop)
            own = slice(arcs.start - int(table.arcs[chain[0]]), arcs.stop - int(table.arcs[chain[0]]))
            words = self._page(rows.start, np.diff(ends).astype(np.uint32), targets[own])
            found.append(Page(words, [pack_numbers(column[own]) for column in columns]))
        return found

    def _page(
        self, first_row: int, degrees: NDArray[np.uint32], targets: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        scratch = _scratch_of_thread()
        size = pack_rows(degrees, targets, np.uint64(self._first_row + first_row), *scratch)
        return scratch[2][: int(size)].copy()


Order = Literal["better", "given", "degree"]
"""The order of packed rows: that of the vertices, by descending degree, or which of the two takes fewer bytes."""


def in_order(
    order: Order,
    offsets: NDArray[np.uint64],
    targets: NDArray[np.uint32],
    columns: list[NDArray[Any]],
    degrees: NDArray[np.int64],
    page_arcs: int = PAGE_ARCS,
) -> PackableRows:
    """Return the rows in an order; which is the better is found by a sample.

    The order by degree leaves out vertices without an edge, and takes 4 bytes for each of the others.

    Args:
        order: The order.
        offsets: [num_vertices + 1].
        targets: [arcs].
        columns: [arcs] each.
        degrees: [num_vertices], how many edges each vertex has, in both directions.
        page_arcs: As of `PackableRows`.
    """
    given = PackableRows(offsets, targets, columns, None, page_arcs)
    if order == "given":
        return given
    vertices = degree_order(degrees)[: np.count_nonzero(degrees)]
    by_degree = PackableRows(offsets, targets, columns, vertices, page_arcs)
    if order == "degree":
        return by_degree
    bytes_by_degree = by_degree.sampled_bytes(_NUM_SAMPLES) + 4 * vertices.size
    return by_degree if bytes_by_degree < given.sampled_bytes(_NUM_SAMPLES) else given


_NUM_SAMPLES, _SAMPLE_ARCS = 64, 1 << 13
_of_thread = threading.local()


def _scratch_of_thread() -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return this thread's first targets, gaps and words of a page."""
    if not hasattr(_of_thread, "scratch"):
        sizes = PAGE_ARCS, PAGE_ARCS, most_page_words(PAGE_ARCS, PAGE_ARCS)
        _of_thread.scratch = tuple(np.empty(size, dtype=np.uint32) for size in sizes)
    found: tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]] = _of_thread.scratch
    return found
