"""Common neighbours of a vertex and the targets of its edges, on one thread.

A vertex's row is marked once: `marks[target]` is where in the row the target stands. Then the row of a neighbour is
walked, and each target in it looked up: one load, and a branch that is seldom taken. Where that row is much longer than
the vertex's own, as a hub's is, the own targets are looked for in it instead, by doubling steps and then halves.

A mark that another row left is told from one of this row by its value, so nothing is ever wiped out. The last mark is
where the row begins that was marked last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["mark_row", "next_common", "no_marks"]

_MUCH = np.uint64(16)
_ONE = np.uint64(1)


def no_marks(num_vertices: int, num_entries: int) -> np.ndarray[Any, Any]:
    """Return room for the marks of one thread: [num_vertices + 1], none of which stands for an entry."""
    kind = np.uint32 if num_entries < 2**32 - 1 else np.uint64
    return np.full(num_vertices + 1, np.iinfo(kind).max, dtype=kind)


def mark_row(targets: Any, marks: Any, first: Any, end: Any) -> None:
    """Mark the targets of the row that lies at first..end; of equal ones the first. Does nothing where they are marked.

    Args:
        targets: [entries] gids, ascending in each row.
        marks: As `no_marks` makes them.
        first: Where the row begins; uint64, as are all positions.
        end: Where it ends.
    """
    last = marks.size - 1
    if marks[last] != first:
        at = end
        while at > first:
            at -= _ONE
            marks[targets[at]] = at
        marks[last] = first


def next_common(
    targets: Any, marks: Any, first: Any, at: Any, end: Any, begin: Any, other: Any, stop: Any
) -> Any:
    """Return where the next common target of two rows stands, in each of them.

    Args:
        targets: [entries] gids, ascending in each row.
        marks: Those of the first row.
        first: Where the first row begins; uint64, as are all positions.
        at: Where to go on in it.
        end: Where it ends.
        begin: Where the second row begins.
        other: Where to go on in it.
        stop: Where it ends.

    Returns:
        The two positions; the first is `end` where no common target is left. Equal targets of a row (parallel edges)
        are one, and stand where the first of them does.
    """
    if stop - begin <= _MUCH * (end - first):
        while other < stop:
            target = targets[other]
            mark = marks[target]
            if first <= mark < end and (other == begin or targets[other - _ONE] != target):
                return np.uint64(mark), other
            other += _ONE
        return end, other
    while at < end and other < stop:
        mine, theirs = targets[at], targets[other]
        if theirs < mine:
            other = _leap(targets, other, stop, mine)
        elif mine < theirs or (at > first and targets[at - _ONE] == mine):
            at += _ONE
        else:
            return at, other
    return end, other


def _leap(targets: Any, low: Any, end: Any, goal: Any) -> Any:
    """Return the first position after `low`, whose target is below the goal, where that is no longer so, or `end`."""
    step = _ONE
    high = low + step
    while high < end and targets[high] < goal:
        low = high
        step += step
        high = low + step
    high = min(high, end)
    while high - low > _ONE:
        middle = (low + high) >> _ONE
        if targets[middle] < goal:
            low = middle
        else:
            high = middle
    return high
