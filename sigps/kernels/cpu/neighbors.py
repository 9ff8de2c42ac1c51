"""Common neighbours of a vertex and the targets of its edges, on one thread.

A vertex's row is marked once: `marks[target]` is the target's position in the row. Then the row of a neighbour is
walked, and each target in it looked up: one load, and a branch that is seldom taken. Where that row is much longer than
the vertex's own, as a hub's is, the vertex's own targets are searched in it instead, by doubling steps and then halves.

The value of a mark says whether it belongs to this row or to an earlier one, so marks are never cleared. The last entry
of `marks` is the begin of the row that was marked last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["mark_row", "next_common", "no_marks"]

_MUCH = np.uint64(16)
_ONE = np.uint64(1)


def no_marks(num_vertices: int, num_entries: int) -> np.ndarray[Any, Any]:
    """Return the marks of one thread, [num_vertices + 1], none of which is the position of an entry."""
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
    """Return the positions of the next common target of two rows.

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
        Its position in each row; the first is `end` where no common target is left. Equal targets of a row (parallel
        edges) count once, at the first of them.
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
    """Return the first position after `low` whose target is not below the goal, or `end`; that of `low` is below."""
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
