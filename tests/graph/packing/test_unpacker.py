"""Pages that are whole, each by itself, and do not fit together."""

from __future__ import annotations

import numpy as np
import pytest

from sigps.errors import GraphError
from sigps.graph.packing.pages import most_page_words, pack_rows
from sigps.graph.packing.table import PageTable, problem_of
from sigps.graph.packing.unpacker import PackedRows, unpacked


def pages_of(sizes: list[int]) -> PackedRows:
    """Return pages of one row with so many arcs, whose table says that each has ten."""
    pages = []
    for row, size in enumerate(sizes):
        targets, firsts = np.arange(size, dtype=np.uint32), np.empty(1, dtype=np.uint32)
        words = np.empty(most_page_words(1, size), dtype=np.uint32)
        degrees = np.array([size], dtype=np.uint32)
        end = pack_rows(degrees, targets, np.uint64(row), firsts, np.empty_like(targets), words)
        pages.append(words[: int(end)])
    numbers = np.arange(len(sizes) + 1, dtype=np.uint64)
    begins = np.cumsum([0, *(page.size for page in pages)]).astype(np.uint64)
    table = PageTable(numbers[:-1], numbers[1:], 10 * numbers, begins)
    words = np.concatenate(pages)
    assert problem_of(table, len(sizes), 10 * len(sizes), words.size) == ""
    return PackedRows(20, table, words, {}, "a store")


@pytest.mark.parametrize("order", [None, np.array([5, 9, 0], dtype=np.uint32)])
def test_degrees_that_are_not_those_of_the_arcs(order: np.ndarray | None) -> None:
    """The middle page is right, and begins elsewhere by the degrees than by the table."""
    offsets, targets, _ = unpacked(pages_of([10, 10, 10]), order, 2)
    assert int(offsets[-1]) == targets.size == 30
    for sizes, page in (([11, 10, 9], 0), ([9, 10, 11], 0), ([10, 9, 11], 1)):
        with pytest.raises(GraphError, match=rf"a store: pages is damaged in page {page}\."):
            unpacked(pages_of(sizes), order, 1)
