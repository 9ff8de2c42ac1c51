"""All that an engine asks of the outside: a few verbs. `NoExchange` is one partition alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ExchangeError

__all__ = ["Arrays", "Exchange", "NoExchange"]

Arrays = tuple[NDArray[Any], ...]


class Exchange(Protocol):
    """What crosses partitions. Every verb is collective; all ranks call them in the same order.

    Attributes:
        on_device: Whether what `publish`, `collect`, `post` and `swap` take and give are CuPy arrays.
    """

    rank: int
    size: int
    on_device: bool

    def publish(self, sent: NDArray[np.uint8], records: Arrays) -> None:
        """Start sending the outbox records of owned vertices that sent, to the ranks that hold their ghosts."""
        ...

    def collect(self, sent: NDArray[np.uint8], records: Arrays) -> tuple[NDArray[np.int64], int]:
        """Fill in the ghosts that changed; return their local ids and the bytes that this rank sent."""
        ...

    def post(
        self, gids: NDArray[np.int64], senders: NDArray[np.int64] | None, messages: Arrays
    ) -> tuple[NDArray[np.int64], Arrays, int]:
        """Bring messages to their targets' owners; return local ids, messages, and the bytes sent.

        With `senders` (gids), what arrives is in ascending order of the sender.
        """
        ...

    def find(self, ids: NDArray[np.int64], superstep: int) -> NDArray[np.int64]:
        """Return the gids of the users' ids. Raises ExchangeError for an id that is not in the graph."""
        ...

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return every rank's values, [size, values.size]."""
        ...

    def swap(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Send `parts[r]` (1-D, one dtype on all ranks) to rank r; return what each rank sent here."""
        ...


class NoExchange:
    """One partition that owns the whole graph: gid and local id are the same."""

    rank = 0
    size = 1
    on_device = False

    def __init__(self, find: Callable[[NDArray[np.int64], int], NDArray[np.int64]]) -> None:
        """Take the function that finds gids by ids, as `find` below does."""
        self._find = find

    def publish(self, sent: NDArray[np.uint8], records: Arrays) -> None:
        return

    def collect(self, sent: NDArray[np.uint8], records: Arrays) -> tuple[NDArray[np.int64], int]:
        return np.empty(0, dtype=np.int64), 0

    def post(
        self, gids: NDArray[np.int64], senders: NDArray[np.int64] | None, messages: Arrays
    ) -> tuple[NDArray[np.int64], Arrays, int]:
        if senders is None:
            return gids, messages, 0
        order = np.argsort(senders, kind="stable")
        return gids[order], tuple(m[order] for m in messages), 0

    def find(self, ids: NDArray[np.int64], superstep: int) -> NDArray[np.int64]:
        return self._find(ids, superstep)

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        return values[None, :]

    def swap(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return list(parts)


def checked_gids(
    ids: NDArray[np.int64], gids: NDArray[np.int64], rank: int, superstep: int
) -> NDArray[np.int64]:
    """Return gids, all of which are vertices.

    Raises:
        ExchangeError: If an id is not in the graph.
    """
    missing = np.flatnonzero(gids < 0)
    if missing.size:
        raise ExchangeError(
            f"send_to({ids[missing[0]]}) names a vertex that is not in the graph "
            f"({missing.size} such message{'s' * (missing.size > 1)}). Send only to ids that the graph holds",
            rank=rank,
            superstep=superstep,
        )
    return gids
