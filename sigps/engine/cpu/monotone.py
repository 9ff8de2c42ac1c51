"""Monotone programs (`compiler/proofs/monotone.py`): a strategy of pulls that looks only for better keys.

`LastRecords` holds every vertex's last record. A pull compares these with current values instead of finding out which
in-neighbours sent, and leaves out vertices that no record of the last superstep can improve. States and supersteps
stay as they are. Loops are in `kernels/cpu/monotone.py`: `store` after each superstep, `pull` before each pull.

Gain (2 cores): SSSP on kron-16 with random weights takes 22.5 ms a run instead of 28.2, and 28.8 instead of 42.1 where
all supersteps are pulled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.cpu.rows import rows
from sigps.compiler.program import Monotone
from sigps.device.cpu import Threads
from sigps.engine.cpu.work import num_parts_worth
from sigps.engine.partition.subgraph import Subgraph
from sigps.kernels.cpu.arguments import Bound, Outbox

__all__ = ["LastRecords", "has_order"]

Arrays = tuple[NDArray[Any], ...]

_PIECE = 1 << 18
"""Numbers tested at a time: the results of the test stay in cache."""


class LastRecords:
    """Every vertex's last record, and a bound on the keys of the next superstep.

    A key is the sum of a record's number and perhaps an edge's, so none is better than the sum of the best of both.
    Vertices whose current value is as good need not read their in-edges.

    Args:
        native: A monotone program.
        columns: The in-edges' columns that messages need.
        num_owned: Vertices of the partition.
        num_records: Owned vertices and ghosts.

    Attributes:
        records: Rows, [num_records]; the worst value where there was no record yet.
    """

    def __init__(self, native: NativeProgram, columns: Arrays, num_owned: int, num_records: int) -> None:
        self._native = native
        self._worst = _worst_records(native, 1)
        self._best: Any = _keys(native, self._worst)[0]
        self.records = _worst_records(native, num_records)
        self._columns = tuple(np.zeros(num_owned, dtype=c.dtype) for c in columns)
        column = _claim(native).column
        self._has_columns = column is None
        if column is not None:
            self._columns[column].fill(_worst(native, columns[column].dtype))

    @property
    def worst(self) -> Any:
        """The key of a record that was never sent: no other is worse. Of the type of records."""
        return _keys(self._native, self._worst)[0]

    @property
    def keys(self) -> NDArray[Any]:
        """The number in each record that keys are made of, [num_records]."""
        return _keys(self._native, self.records)

    def were_sent(self, count: int) -> NDArray[np.bool_]:
        """Return which of the first `count` vertices have a record; one that says nothing to anybody counts as none."""
        found: NDArray[np.bool_] = self.keys[:count] != self.worst
        return found

    def store(
        self,
        outbox: Outbox,
        senders: NDArray[Any] | None,
        ranges: Sequence[tuple[np.uint64, np.uint64]],
        threads: Threads,
    ) -> None:
        """Store the records that owned vertices sent in this superstep. O(senders) where `senders` lists them.

        Args:
            outbox: The one that was written.
            senders: Local ids, or None.
            ranges: All owned vertices, cut for threads; used where `senders` is None.
            threads: The crew.
        """
        worst = _keys(self._native, self._worst)[0]
        if senders is None:
            store = self._native.loop("store_last").over(outbox, self.records, worst)
            keys = threads.map(lambda span: store(*span), ranges)
            self._best = self._best_of(keys, worst)
        else:
            for to, new in zip(self.records, outbox.records, strict=True):
                to[senders] = new[senders]
            self.note_senders(senders)

    def forget(self) -> None:
        """Forget all records, before superstep 0 runs again."""
        for array, worst in zip(self.records, self._worst, strict=True):
            array[:] = worst[0]
        self._best = _keys(self._native, self._worst)[0]

    def grow(self, more: int) -> None:
        """Make room for so many more vertices, which have no records and no in-edges yet."""
        self.records = tuple(
            np.concatenate([array, np.repeat(worst, more)])
            for array, worst in zip(self.records, self._worst, strict=True)
        )
        columns = [np.concatenate([c, np.zeros(more, dtype=c.dtype)]) for c in self._columns]
        column = _claim(self._native).column
        if column is not None and more:
            columns[column][-more:] = _worst(self._native, columns[column].dtype)
        self._columns = tuple(columns)

    def widen(self, targets: NDArray[np.int64], columns: Arrays) -> None:
        """Let the bound hold for new edges too: their targets, and the columns that messages need."""
        column = _claim(self._native).column
        if column is not None and self._has_columns:
            better = np.minimum if _takes_min(self._native) else np.maximum
            better.at(self._columns[column], targets, columns[column])

    def note_senders(self, senders: NDArray[Any]) -> None:
        """Take the bound from these senders of the last superstep, whose records are stored already."""
        keys = _keys(self._native, self.records)[senders]
        self._best = self._best_of(keys, _keys(self._native, self._worst)[0])

    def pull(self, ghosts: NDArray[np.int64]) -> tuple[str, Bound]:
        """Return the name of the loop to pull with, and its bound, whose columns the first of these loops fills.

        Args:
            ghosts: Local ids of the ghosts whose records arrived in this superstep.
        """
        if not self._has_columns:
            self._has_columns = True
            return "gather_better_first", Bound(self._worst, self._columns)
        best = _worst_records(self._native, 1)
        keys = _keys(self._native, best)
        keys[0] = self._best_of(_keys(self._native, self.records)[ghosts], self._best)
        return "gather_better", Bound(best, self._columns)

    def _best_of(self, keys: Any, other: Any) -> Any:
        found = np.asarray(keys, dtype=_keys(self._native, self._worst).dtype)
        return found.min(initial=other) if _takes_min(self._native) else found.max(initial=other)


def has_order(
    native: NativeProgram, params: tuple[Any, ...], subgraph: Subgraph, columns: Arrays, threads: Threads
) -> bool:
    """Tell whether no key can be NaN: a number, with a finite one added, stays a number. O(edges), once a partition."""
    column = _claim(native).column
    if column is not None:
        name = f"finite {native.program.edge_columns[column]}"
        if not subgraph.derived(name, lambda: _is_finite(columns[column], threads)):
            return False
    return not any(np.isnan(p) for p in params)


def _is_finite(column: NDArray[Any], threads: Threads) -> bool:
    if column.dtype.kind != "f":
        return True
    if column.strides == (0,):
        column = column[:1]

    def check(part: NDArray[Any]) -> bool:
        return all(np.isfinite(part[i : i + _PIECE]).all() for i in range(0, part.size, _PIECE))

    return all(threads.map(check, np.array_split(column, num_parts_worth(column.size, threads.count))))


def _worst_records(native: NativeProgram, size: int) -> Arrays:
    """Return records of vertices that never sent: no key made of them is better than any other."""
    records = rows(native.record, size)
    keys = _keys(native, records)
    keys.fill(_worst(native, keys.dtype))
    return records


def _keys(native: NativeProgram, records: Arrays) -> NDArray[Any]:
    (array,) = records
    return array if len(native.record) == 1 else array[f"f{_claim(native).record}"]


def _worst(native: NativeProgram, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return np.inf if _takes_min(native) else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if _takes_min(native) else limits.min


def _takes_min(native: NativeProgram) -> bool:
    return native.program.slots[0].op == "min"


def _claim(native: NativeProgram) -> Monotone:
    assert native.program.monotone is not None
    return native.program.monotone
