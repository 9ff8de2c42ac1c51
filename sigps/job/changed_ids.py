"""The ids of vertices whose fields differ between two results."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.job.result import Result

__all__ = ["LaterIds", "UnreadIds", "changed_ids"]


def changed_ids(before: Result, after: Result) -> NDArray[Any]:
    """Return the ids of vertices whose fields differ between two results, or that are new in the later one."""
    there: Any = slice(None)
    at: Any = there
    if not np.array_equal(before.ids, after.ids):
        at = np.searchsorted(after.ids, before.ids)
        there = at < after.ids.size
        there[there] = after.ids[at[there]] == before.ids[there]
        at = at[there]
    same = np.zeros(after.ids.size, dtype=np.bool_)
    same[at] = True
    for name in after.fields:
        one, other = np.ma.getdata(before[name])[there], np.ma.getdata(after[name])[at]
        masks = np.ma.getmaskarray(before[name])[there], np.ma.getmaskarray(after[name])[at]
        equal = (one == other) | ((one != one) & (other != other))
        equal = np.asarray(equal & (masks[0] == masks[1]))
        same[at] &= equal.reshape(equal.shape[0], -1).all(axis=1) if equal.ndim > 1 else equal
    changed: NDArray[Any] = after.ids[~same]
    return changed


class LaterIds:
    """Ids that are found when they are first read."""

    def __init__(self, find: Callable[[], NDArray[Any]]) -> None:
        self._find: Callable[[], NDArray[Any]] | None = find

    def read(self) -> NDArray[Any]:
        """Return them."""
        if self._find is not None:
            self._found, self._find = self._find(), None
        return self._found


class UnreadIds:
    """Those of the last two results, which alone may wait to be read: what they are found from holds memory."""

    def __init__(self) -> None:
        self._last: tuple[weakref.ref[LaterIds] | None, weakref.ref[LaterIds] | None] = (None, None)

    def add(self, later: LaterIds) -> None:
        """Let the ids of one more result wait; those of the last but one are read."""
        older, last = self._last
        _read(older)
        self._last = last, weakref.ref(later)

    def read(self) -> None:
        """Read all that wait."""
        for later in self._last:
            _read(later)
        self._last = None, None


def _read(later: weakref.ref[LaterIds] | None) -> None:
    if later is not None and (waiting := later()) is not None:
        waiting.read()
