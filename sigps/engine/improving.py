"""What an engine keeps for an improving program (`compiler/improving.py`): every vertex's last record, and its reach.

Records are read as of the end of the last superstep, so those of its senders are brought over when it has ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram, rows
from sigps.compiler.program import Improving
from sigps.device.cpu import Threads

__all__ = ["Reach", "has_order", "keep_last", "worst_records"]

Arrays = tuple[NDArray[Any], ...]

_PIECE = 1 << 16
"""So many numbers are looked at at a time: what is found out about them stays in cache."""


class Reach:
    """Which vertices the best that was said can improve: the others need not look at their in-edges.

    A key is a record's and perhaps an edge's number added up, so none is better than the best of both would make.

    Args:
        native: An improving program.
        columns: The in-edges' columns that messages need.
        num_owned: Vertices of the partition.
    """

    def __init__(self, native: NativeProgram, columns: Arrays, num_owned: int) -> None:
        self._native = native
        column = _claim(native).column
        self._columns = tuple(np.zeros(num_owned, dtype=c.dtype) for c in columns)
        if column is not None:
            self._columns[column].fill(_worst(native, columns[column].dtype))
        self._is_known = column is None

    def next(self, sent: NDArray[np.uint8], records: Arrays) -> tuple[str, tuple[Arrays, Arrays]]:
        """Return the loop that pulls what was sent, and what it calls `reach`; the first time it fills that in."""
        best = worst_records(self._native, 1)
        if not self._is_known:
            self._is_known = True
            return "gather_better_first", (best, self._columns)
        said = _keys(self._native, records)[sent.view(np.bool_)]
        if said.size:
            _keys(self._native, best)[0] = said.min() if _wants_min(self._native) else said.max()
        return "gather_better", (best, self._columns)


def has_order(native: NativeProgram, params: tuple[Any, ...], columns: Arrays, threads: Threads) -> bool:
    """Tell whether no key can be NaN: a number, with a finite one added, stays a number. O(edges)."""
    column = _claim(native).column
    is_finite = column is None or _is_finite(columns[column], threads)
    return is_finite and not any(np.isnan(p) for p in params)


def _is_finite(column: NDArray[Any], threads: Threads) -> bool:
    if column.dtype.kind != "f":
        return True
    if column.strides == (0,):
        column = column[:1]

    def check(part: NDArray[Any]) -> bool:
        return all(np.isfinite(part[i : i + _PIECE]).all() for i in range(0, part.size, _PIECE))

    return all(threads.map(check, np.array_split(column, threads.count)))


def worst_records(native: NativeProgram, size: int) -> Arrays:
    """Return records of vertices that said nothing: no key made of them is better than any."""
    records = rows(native.record, size)
    keys = _keys(native, records)
    keys.fill(_worst(native, keys.dtype))
    return records


def keep_last(kept: Arrays, written: Arrays, sent: NDArray[np.uint8], senders: NDArray[Any] | None) -> None:
    """Bring the records of those who sent, listed or not, to the records kept. O(senders) where they are listed."""
    for to, new in zip(kept, written, strict=True):
        if senders is not None:
            to[senders] = new[senders]
        else:
            np.copyto(to, new, where=sent.view(np.bool_))


def _keys(native: NativeProgram, records: Arrays) -> NDArray[Any]:
    (array,) = records
    return array if len(native.record) == 1 else array[f"f{_claim(native).record}"]


def _worst(native: NativeProgram, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return np.inf if _wants_min(native) else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if _wants_min(native) else limits.min


def _wants_min(native: NativeProgram) -> bool:
    return native.program.slots[0].op == "min"


def _claim(native: NativeProgram) -> Improving:
    assert native.program.improving is not None
    return native.program.improving
