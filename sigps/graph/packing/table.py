"""Which rows and arcs each page holds, and where it lies."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sigps.graph.packing.pages import ALIGNMENT, PAGE_ARCS

__all__ = ["PageTable", "chains", "cut_rows", "problem_of", "rows_of_ranks"]


@dataclass(frozen=True)
class PageTable:
    """The pages of some rows, in their order.

    Attributes:
        first_rows: [pages], the first row of each.
        end_rows: [pages], the row behind the last. The next page begins there, or with the last row again, which
            continues in it.
        arcs: [pages + 1], how many arcs the pages before each have.
        words: [pages + 1], where each begins among the words of all.
    """

    first_rows: NDArray[np.uint64]
    end_rows: NDArray[np.uint64]
    arcs: NDArray[np.uint64]
    words: NDArray[np.uint64]

    @property
    def num_pages(self) -> int:
        return int(self.first_rows.size)

    @property
    def continues(self) -> NDArray[np.bool_]:
        """Whether the first row of each page has arcs in the page before, [pages]."""
        found = np.zeros(self.num_pages, dtype=bool)
        found[1:] = self.first_rows[1:] < self.end_rows[:-1]
        return found

    def rows(self, page: int) -> range:
        return range(int(self.first_rows[page]), int(self.end_rows[page]))

    def arcs_of(self, page: int) -> slice:
        return slice(int(self.arcs[page]), int(self.arcs[page + 1]))

    def words_of(self, page: int) -> slice:
        return slice(int(self.words[page]), int(self.words[page + 1]))


def cut_rows(offsets: NDArray[np.uint64], page_arcs: int = PAGE_ARCS) -> PageTable:
    """Cut rows into pages, whose `words` are not known yet: zeros. O(pages log rows).

    A page takes as many whole rows as it may: `page_arcs` arcs, and as many rows. A row that is longer begins one, and
    continues in the next.

    >>> table = cut_rows(np.array([0, 3, PAGE_ARCS + 7, PAGE_ARCS + 9], dtype=np.uint64))
    >>> table.first_rows.tolist(), table.end_rows.tolist(), (table.arcs[1:-1] - 3).tolist()
    ([0, 1, 1], [1, 2, 3], [0, 262144])
    """
    firsts, ends, arcs = [], [], [0]
    row, num_rows = 0, offsets.size - 1
    while row < num_rows:
        most = arcs[-1] + page_arcs
        end = min(int(np.searchsorted(offsets, np.uint64(most), side="right")) - 1, row + page_arcs)
        firsts.append(row)
        ends.append(max(end, row + 1))
        arcs.append(int(offsets[end]) if end > row else most)
        row = end if end > row else row
    as_words = np.zeros(len(arcs), dtype=np.uint64)
    as_array = functools.partial(np.array, dtype=np.uint64)
    return PageTable(as_array(firsts), as_array(ends), as_array(arcs), as_words)


def chains(table: PageTable) -> Iterator[range]:
    """Yield pages that rows hold together, most of them one: they begin with a row, and end with one."""
    begins = [*np.flatnonzero(~table.continues).tolist(), table.num_pages]
    yield from itertools.starmap(range, itertools.pairwise(begins))


def rows_of_ranks(table: PageTable, shares: Sequence[float]) -> NDArray[np.int64]:
    """Return the rows at which those of each rank begin, [ranks + 1]: each has whole chains of pages.

    Their words (or rows, where no page has words) are as near to the rank's share as such cuts allow. A rank may have
    no rows. Words are what links and
    disks bring, and nearer to what cores take than arcs are: where rows are by degree, those of hubs pack in half of
    the words that others take. PageRank streamed on two ranks of one core each, kron-21 by degree: 248 to 263 ms a
    superstep by arcs, 175 to 222 by words.

    Args:
        table: The pages.
        shares: [ranks], positive: each rank's, relative to the others.

    >>> at = functools.partial(np.array, dtype=np.uint64)
    >>> table = PageTable(at([0, 1, 1, 3]), at([1, 2, 3, 4]), at([0, 3, 7, 9, 12]), at([0, 4, 9, 10, 14]))
    >>> [rows_of_ranks(table, shares).tolist() for shares in ([1, 1], [1, 2], [1, 9])]
    [[0, 3, 4], [0, 1, 4], [0, 0, 4]]
    """
    if not table.num_pages:
        return np.zeros(len(shares) + 1, dtype=np.int64)
    begins = np.append(np.flatnonzero(~table.continues), table.num_pages)
    rows = np.append(table.first_rows, table.end_rows[-1])[begins].astype(np.int64)
    work = table.words[begins].astype(np.int64) if table.words[-1] else rows
    goals = np.cumsum(shares)[:-1] / np.sum(shares) * work[-1]
    above = np.minimum(np.searchsorted(work, goals), work.size - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(goals - work[below] < work[above] - goals, below, above)
    return np.concatenate([[0], rows[nearest], rows[-1:]])


def problem_of(table: PageTable, num_rows: int, num_arcs: int, num_words: int) -> str:
    """Return what keeps a table from being one of so many rows, arcs and words; an empty text if nothing does."""
    sizes = [getattr(table, field.name).size for field in fields(PageTable)]
    if sizes != [table.num_pages, table.num_pages, table.num_pages + 1, table.num_pages + 1]:
        return "its tables of pages have different lengths"
    for name, found, expected in (("arcs", table.arcs, num_arcs), ("words", table.words, num_words)):
        if (int(found[0]), int(found[-1])) != (0, expected) or (found[1:] < found[:-1]).any():
            return f"its pages have not all {expected:,} {name}"
    firsts, ends = table.first_rows, table.end_rows
    if not table.num_pages:
        return "" if num_rows == 0 else "it has no pages"
    if int(firsts[0]) != 0 or int(ends[-1]) != num_rows or (ends[:-1] > num_rows).any():
        return f"its pages have not all {num_rows:,} rows"
    if (firsts >= ends).any() or (ends - firsts > PAGE_ARCS).any() or (np.diff(table.arcs) > PAGE_ARCS).any():
        return "a page has no rows, or too many rows or arcs"
    if ((firsts[1:] != ends[:-1]) & (firsts[1:] + np.uint64(1) != ends[:-1])).any():
        return "a page does not begin where the one before ends"
    return "" if not (table.words % np.uint64(ALIGNMENT)).any() else "a page does not begin at a whole line"
