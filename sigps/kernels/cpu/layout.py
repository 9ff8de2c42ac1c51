"""Passes over edges that lay them out by row: stable, O(edges + rows), on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = [
    "copy_rows",
    "count_groups",
    "count_uses",
    "find_reverse_entries",
    "mark_uses",
    "number_by_degree",
    "order_by_row",
    "order_group",
    "place_in_groups",
    "renumber",
    "rows_in_order",
    "targets_by_source",
]


def order_by_row(rows: NDArray[np.uint32], num_rows: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return where each row begins, [num_rows + 1], and the order that groups elements by row, [elements]."""
    counts = np.zeros(num_rows + 1, dtype=np.uint32)
    count_uses(rows, counts[1:])
    offsets = np.cumsum(counts, dtype=np.uint64)
    order = np.empty(rows.size, dtype=np.int64)
    _place_in_rows(rows, offsets[:-1].copy(), order)
    return offsets, order


@compiled
def copy_rows(
    begin: np.uint64,
    end: np.uint64,
    offsets: NDArray[np.uint64],
    marks: NDArray[np.uint8],
    width: np.uint64,
    source: NDArray[Any],
    target: NDArray[Any],
) -> None:
    """Copy the rows begin..end that have a mark, of `width` numbers an element."""
    first = begin  # of rows with marks, whose elements lie together
    for row in range(begin, end + np.uint64(1)):
        if row == end or marks[row] == 0:
            for i in range(offsets[first] * width, offsets[row] * width):
                target[i] = source[i]
            first = min(row + np.uint64(1), end)


@compiled
def count_groups(rows: NDArray[np.uint32], shift: np.uint32, counts: NDArray[np.uint64]) -> None:
    """Add to counts[g], [groups], how many of `rows` are in group g: those of rows g << shift to (g + 1) << shift."""
    for i in range(rows.size):
        counts[rows[i] >> shift] += np.uint64(1)


@compiled
def place_in_groups(
    rows: NDArray[np.uint32],
    first: int,
    shift: np.uint32,
    at: NDArray[np.uint64],
    grouped: NDArray[np.uint32],
    numbers: NDArray[np.int64],
) -> None:
    """Write elements first, first + 1, ... and their rows into their groups' next places, `at`, [groups]."""
    for i in range(rows.size):
        row = rows[i]
        place = at[row >> shift]
        grouped[place] = row
        numbers[place] = first + i
        at[row >> shift] = place + np.uint64(1)


@compiled
def order_group(
    rows: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    first: np.uint32,
    begin: np.uint64,
    offsets: NDArray[np.uint64],
    at: NDArray[np.uint64],
    order: NDArray[np.int64],
) -> None:
    """Order the elements of one group by row, which `place_in_groups` wrote.

    Args:
        rows: [elements].
        numbers: [elements].
        first: The group's first row.
        begin: Where the group begins among all elements.
        offsets: [rows of the group], filled: where each begins among all elements.
        at: [rows of the group], zeroed; overwritten.
        order: [elements], filled.
    """
    for i in range(rows.size):
        at[rows[i] - first] += np.uint64(1)
    place = np.uint64(0)
    for row in range(at.size):
        size = at[row]
        offsets[row] = begin + place
        at[row] = place
        place += size
    for i in range(rows.size):
        row = rows[i] - first
        order[at[row]] = numbers[i]
        at[row] += np.uint64(1)


def number_by_degree(degrees: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Number vertices by descending degree, equal degrees in their given order. O(vertices) where edges are simple.

    Returns:
        The number of each vertex, and the degrees in the order of numbers.
    """
    lids, descending = np.empty_like(degrees), np.empty_like(degrees)
    largest = int(degrees.max(initial=0))
    if largest > 4 * degrees.size + _MOST_DEGREES:  # of parallel edges
        order = np.argsort(~degrees, kind="stable")
        lids[order] = np.arange(degrees.size, dtype=np.uint32)
        return lids, degrees[order]
    counts = np.zeros(largest + 1, dtype=np.uint32)
    count_uses(degrees, counts)
    _place_by_degree(degrees, degrees.size - np.cumsum(counts, dtype=np.uint64), lids, descending)
    return lids, descending


_MOST_DEGREES = 1 << 20
"""Degrees that are always counted one by one."""


@compiled
def _place_by_degree(
    degrees: NDArray[np.uint32],
    at: NDArray[np.uint64],
    lids: NDArray[np.uint32],
    descending: NDArray[np.uint32],
) -> None:
    """Give each vertex the next number of its degree, `at`, [largest degree + 1]."""
    for v in range(np.uint64(degrees.size)):
        degree = degrees[v]
        number = at[degree]
        lids[v] = number
        descending[number] = degree
        at[degree] = number + np.uint64(1)


@compiled
def _place_in_rows(rows: NDArray[np.uint32], at: NDArray[np.uint64], order: NDArray[np.int64]) -> None:
    """Write each element's number into its row's next place, `at`."""
    for i in range(rows.size):
        row = rows[i]
        order[at[row]] = i
        at[row] += np.uint64(1)


@compiled
def targets_by_source(
    offsets: NDArray[np.uint64],
    sources: NDArray[np.uint32],
    targets: NDArray[np.uint32],
    order: NDArray[Any],
    at: NDArray[np.uint64],
) -> None:
    """Transpose rows of in-edges: fill `targets`, and `order` where it is not empty, ascending in each source's row.

    Args:
        offsets: [targets' rows + 1], where each target's in-edges begin.
        sources: [edges].
        targets: [edges], filled.
        order: [edges] or [0]: filled with the position of each edge in `sources`.
        at: [sources' rows], where each source's out-edges begin; moved to where they end.
    """
    for t in range(offsets.size - 1):
        for e in range(offsets[t], offsets[t + 1]):
            position = at[sources[e]]
            targets[position] = t
            if order.size > 0:
                order[position] = e
            at[sources[e]] = position + np.uint64(1)


@compiled
def count_uses(ends: NDArray[Any], uses: NDArray[np.uint32]) -> None:
    """Add to uses[v], [vertices], how often v is among `ends`."""
    for e in range(ends.size):
        uses[ends[e]] += np.uint32(1)


@compiled
def mark_uses(ends: NDArray[np.uint32], used: NDArray[np.uint8]) -> None:
    """Write 1 to used[v], [vertices], for each of `ends`; threads may do it side by side."""
    for e in range(ends.size):
        used[ends[e]] = np.uint8(1)


@compiled
def renumber(ends: NDArray[np.uint32], numbers: NDArray[np.uint32]) -> None:
    """Replace each of `ends` by its number, [vertices]."""
    for e in range(ends.size):
        ends[e] = numbers[ends[e]]


@compiled
def rows_in_order(
    offsets: NDArray[np.uint64],
    order: NDArray[np.int64],
    values: NDArray[Any],
    names: NDArray[Any] | None,
    moved: NDArray[Any],
) -> None:
    """Write rows one after the other in another order.

    Args:
        offsets: [rows + 1], where each row begins.
        order: [rows], the rows in their new order.
        values: [edges], in the old order.
        names: `names[value]` is written for each value; None to write the value itself.
        moved: [edges], filled.
    """
    at = np.uint64(0)
    for row in order:
        for e in range(offsets[row], offsets[row + 1]):
            if names is None:
                moved[at] = values[e]
            else:
                moved[at] = names[values[e]]
            at += np.uint64(1)


@compiled
def find_reverse_entries(
    offsets: NDArray[np.uint64],
    targets: NDArray[Any],
    rows: NDArray[Any],
    gids: NDArray[np.int64],
    reverse: NDArray[np.int64],
) -> int:
    """Write the entry of each edge's reverse in an undirected graph; of parallel ones the first. O(log degree) each.

    Returns how many edges have none, for which nothing is written: in a graph that is not symmetric.

    Args:
        offsets: [rows + 1]: where rows begin; the first are those of the edges.
        targets: [entries]: gids, ascending in each row.
        rows: [num_edges]: the row of each edge's target.
        gids: [num_owned]: the vertices of the rows of the edges.
        reverse: [num_edges].
    """
    one, missing = np.uint64(1), 0
    for v in range(gids.size):
        for edge in range(offsets[v], offsets[v + 1]):
            low, end = offsets[rows[edge]], offsets[np.uint64(rows[edge]) + one]
            after = end
            while low < end:
                middle = (low + end) >> one
                if targets[middle] < gids[v]:
                    low = middle + one
                else:
                    end = middle
            if low < after and targets[low] == gids[v]:
                reverse[edge] = low
            else:
                missing += 1
    return missing
