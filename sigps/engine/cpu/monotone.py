"""What an engine keeps for a monotone program (`compiler/monotone.py`): every vertex's last record.

Records are read as of the end of the last superstep, so those of its senders are brought over when it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram, rows
from sigps.compiler.program import Monotone
from sigps.device.cpu import Threads
from sigps.kernels.cpu.arguments import Bound, Outbox

__all__ = ["Kept", "has_order"]

Arrays = tuple[NDArray[Any], ...]

_PIECE = 1 << 18
"""So many numbers are looked at at a time: what is found out about them stays in cache."""


class Kept:
    """Every vertex's last record, and which vertices the best of the last superstep's can improve.

    A key is a record's and perhaps an edge's number added up, so none is better than the best of both would make:
    vertices that know better need not look at their in-edges.

    Args:
        native: A monotone program.
        columns: The in-edges' columns that messages need.
        num_owned: Vertices of the partition.
        num_records: The same and ghosts.
    """

    def __init__(self, native: NativeProgram, columns: Arrays, num_owned: int, num_records: int) -> None:
        self._native = native
        self._worst = _worst_records(native, 1)
        self._best: Any = _keys(native, self._worst)[0]
        self.records = _worst_records(native, num_records)
        self._columns = tuple(np.zeros(num_owned, dtype=c.dtype) for c in columns)
        column = _claim(native).column
        self._is_known = column is None
        if column is not None:
            self._columns[column].fill(_worst(native, columns[column].dtype))

    def keep(
        self,
        outbox: Outbox,
        senders: NDArray[Any] | None,
        ranges: Sequence[tuple[np.uint64, np.uint64]],
        threads: Threads,
    ) -> None:
        """Keep what owned vertices said, listed or not. O(senders) where they are listed."""
        worst = _keys(self._native, self._worst)[0]
        if senders is None:
            loop = self._native.loop("store_last")
            said = threads.map(lambda span: loop(*span, outbox, self.records, worst), ranges)
            self._best = self._best_of(said, worst)
        else:
            for to, new in zip(self.records, outbox.records, strict=True):
                to[senders] = new[senders]
            self.note(senders)

    def note(self, senders: NDArray[Any]) -> None:
        """Take in who sent in the last superstep, where what they said is kept already."""
        said = _keys(self._native, self.records)[senders]
        self._best = self._best_of(said, _keys(self._native, self._worst)[0])

    def pull(self, ghosts: NDArray[np.int64]) -> tuple[str, Bound]:
        """Return the loop that pulls what was kept last, and what it calls `reach`; the first one fills that in.

        Args:
            ghosts: Those whose records have just arrived.
        """
        if not self._is_known:
            self._is_known = True
            return "gather_better_first", Bound(self._worst, self._columns)
        best = _worst_records(self._native, 1)
        keys = _keys(self._native, best)
        keys[0] = self._best_of(_keys(self._native, self.records)[ghosts], self._best)
        return "gather_better", Bound(best, self._columns)

    def _best_of(self, keys: Any, other: Any) -> Any:
        said = np.asarray(keys, dtype=_keys(self._native, self._worst).dtype)
        return said.min(initial=other) if _wants_min(self._native) else said.max(initial=other)


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


def _worst_records(native: NativeProgram, size: int) -> Arrays:
    """Return records of vertices that said nothing: no key made of them is better than any."""
    records = rows(native.record, size)
    keys = _keys(native, records)
    keys.fill(_worst(native, keys.dtype))
    return records


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


def _claim(native: NativeProgram) -> Monotone:
    assert native.program.monotone is not None
    return native.program.monotone
