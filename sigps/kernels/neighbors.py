"""Common neighbours: two ascending rows walked together, on one thread.

Where one row is much longer than the other, as a hub's is, its pointer leaps by doubling steps and then halves the
last one, so a pair of rows costs the shorter one's length, times the logarithm of how often it fits into the longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["next_common"]


def next_common(targets: Any, first: Any, at: Any, end: Any, other: Any, other_end: Any) -> Any:
    """Return where the next common target of two rows stands, in each of them.

    Args:
        targets: [entries] uint32 or uint64, ascending in each row.
        first: Where the first row begins; uint64, as are all positions.
        at: Where to go on in it.
        end: Where it ends.
        other: Where to go on in the second row.
        other_end: Where that ends.

    Returns:
        The two positions; the first is `end` where no common target is left. Of equal targets in the first row
        (parallel edges) only the first one counts.
    """
    while at < end and other < other_end:
        mine, theirs = targets[at], targets[other]
        if mine < theirs:
            at = _leap(targets, at, end, theirs)
        elif theirs < mine:
            other = _leap(targets, other, other_end, mine)
        elif at > first and targets[at - np.uint64(1)] == mine:
            at += np.uint64(1)
        else:
            return at, other
    return end, other


def _leap(targets: Any, low: Any, end: Any, goal: Any) -> Any:
    """Return the first position after `low`, whose target is below the goal, where that is no longer so, or `end`."""
    step = np.uint64(1)
    high = low + step
    while high < end and targets[high] < goal:
        low = high
        step += step
        high = low + step
    high = min(high, end)
    while high - low > np.uint64(1):
        middle = (low + high) >> np.uint64(1)
        if targets[middle] < goal:
            low = middle
        else:
            high = middle
    return high
