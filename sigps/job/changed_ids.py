"""The ids of vertices whose fields differ between two results."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.whole import of_all_ranks
from sigps.group import Group
from sigps.job.result import Result

__all__ = ["LaterIds", "UnreadIds", "changed_ids"]


def changed_ids(before: Result, after: Result, group: Group | None = None) -> NDArray[Any]:
    """Return the ids of vertices whose fields differ between two results, or that are new in the later one.

    Args:
        before: The earlier result.
        after: The later one.
        group: The ranks of both, each with a part, or rank 0 with all: those tell what was known of vertices that came
            from another rank. Collective then.
    """
    ids, known = before.ids, {name: _values_and_mask(before[name]) for name in after.fields}
    if group is not None and group.size > 1:
        ids, known = _with_arrived(ids, known, after.ids, group)
    there: Any = slice(None)
    at: Any = there
    if not np.array_equal(ids, after.ids):
        at = np.searchsorted(after.ids, ids)
        there = at < after.ids.size
        there[there] = after.ids[at[there]] == ids[there]
        at = at[there]
    same = np.zeros(after.ids.size, dtype=np.bool_)
    same[at] = True
    for name in after.fields:
        (one, mask), (other, other_mask) = known[name], _values_and_mask(after[name])
        one, other = one[there], other[at]
        equal = (one == other) | ((one != one) & (other != other))
        equal = np.asarray(equal & (mask[there] == other_mask[at]))
        same[at] &= equal.reshape(equal.shape[0], -1).all(axis=1) if equal.ndim > 1 else equal
    changed: NDArray[Any] = after.ids[~same]
    return changed


_Known = dict[str, tuple[NDArray[Any], NDArray[Any]]]


def _values_and_mask(field: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.ma.getdata(field), np.ma.getmaskarray(field)


def _with_arrived(
    ids: NDArray[Any], known: _Known, later: NDArray[Any], group: Group
) -> tuple[NDArray[Any], _Known]:
    """Return also what other ranks knew of vertices that are here only later. Collective."""
    arrived = later[~np.isin(later, ids)]
    if not group.all_reduce(np.array([arrived.size]), "sum")[0]:
        return ids, known
    asked = np.flatnonzero(np.isin(ids, _of_all_ranks(arrived, group)))
    told, first = np.unique(_of_all_ranks(ids[asked], group), return_index=True)
    is_own = np.isin(told, arrived)
    first = first[is_own]

    def joined(values: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([values, _of_all_ranks(values[asked], group)[first]])

    return np.concatenate([ids, told[is_own]]), {
        name: (joined(one), joined(mask)) for name, (one, mask) in known.items()
    }


def _of_all_ranks(values: NDArray[Any], group: Group) -> NDArray[Any]:
    """Return the ranks' values, one rank's behind the other's; strings, too. Collective."""
    if values.dtype.kind not in "OTU":
        return of_all_ranks(values, group)
    parts = [np.array(part, dtype=values.dtype) for part in group.all_gather(values.tolist())]
    return np.concatenate(parts)


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
