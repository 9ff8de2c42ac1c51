"""Changed values on edges whose other ends are rows of other ranks: they wait in a superstep, and cross at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.change_log import ChangeLog, Changes, entry_bytes
from sigps.engine.exchange import Exchange

__all__ = ["CrossingChanges"]

_MOST_ENTRIES = 1 << 22
"""Entries that go to one rank at a time where memory has no limit."""


class CrossingChanges:
    """Entries grouped by the rank that they are for, in memory or in files; their targets are rows of all ranks.

    They cross in pieces, so that those that arrive take no more memory than there is room for.

    Args:
        exchange: The way to the other ranks.
        bounds: [ranks + 1], the row at which those of each rank begin.
        dtypes: Of the columns.
        room: Bytes of memory that entries may take; the others are in files. None for any number.
        longest: Edges of the longest block, as many as which may arrive at a time with any room.
    """

    def __init__(
        self,
        exchange: Exchange,
        bounds: NDArray[np.int64],
        dtypes: Sequence[np.dtype[Any]],
        room: int | None,
        longest: int,
    ) -> None:
        self._exchange, self._log = exchange, ChangeLog(bounds, dtypes, room, exchange.rank)
        self._first, self._dtypes = np.uint32(bounds[exchange.rank]), tuple(dtypes)
        self._most = _MOST_ENTRIES
        if room is not None:
            at_a_time = max(room // 4 // entry_bytes(dtypes), longest)
            self._most = max(1, at_a_time // exchange.size)

    def put(self, changes: Changes) -> None:
        """Append entries; threads may do it side by side."""
        self._log.put(changes)

    def cross(self, arrived: ChangeLog) -> int:
        """Send each rank its entries, and append those for this one; return the bytes that left it. Collective."""
        self._log.commit()
        num_bytes, pieces = 0, self._log.drain(self._most)
        parts = next(pieces, None)
        while self._exchange.gather(np.array([parts is not None])).any():
            num_bytes += self._swap(parts or [Changes.none(self._dtypes)] * self._exchange.size, arrived)
            parts = next(pieces, None)
        return num_bytes

    def take_spilled(self) -> int:
        """Return the bytes that were written to files since the last call."""
        return self._log.take_spilled()

    def _swap(self, parts: Sequence[Changes], arrived: ChangeLog) -> int:
        swap = self._exchange.swap
        ends = swap([np.concatenate([part.targets, part.sources]) for part in parts])
        columns = [swap([part.columns[i] for part in parts]) for i in range(len(self._dtypes))]
        for rank, both in enumerate(ends):
            targets, sources = np.split(both, 2)
            own = targets - self._first, sources.copy()  # a view would keep both
            arrived.put(Changes(*own, tuple(column[rank] for column in columns)))
        return sum(part.num_bytes for part in parts)
