"""`Exchange`, the verbs through which an engine reaches other partitions; `NoExchange`, for one partition alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ExchangeError

__all__ = ["Arrays", "Exchange", "NoExchange", "checked_gids"]

Arrays = tuple[NDArray[Any], ...]


class Exchange(Protocol):
    """What crosses partitions. Every verb is collective: all ranks call the same verbs in the same order.

    All but `publish` wait until every rank has called. `sent` is uint8, [num_owned + num_ghosts], 1 where that vertex's
    outbox record is to be read in this superstep; `records` are the record's fields, [num_owned + num_ghosts] each.
    Bytes are those that this rank sends to others.

    Attributes:
        rank: This rank, counted from 0.
        size: How many ranks there are.
        on_device: Whether what `publish`, `collect`, `route` and `swap` take and return are CuPy arrays. Then they are
            filled in on the current stream, for which no verb waits.
    """

    rank: int
    size: int
    on_device: bool

    def publish(self, sent: NDArray[np.uint8], records: Arrays) -> None:
        """Copy the records of owned vertices that sent, for each rank that holds their ghosts. Waits for no rank."""
        ...

    def collect(self, sent: NDArray[np.uint8], records: Arrays) -> tuple[NDArray[np.int64], int]:
        """Write the ghosts' elements of `sent` and `records` that arrive; return their local ids and the bytes.

        Exchanges what the last `publish` copied. Elements of ghosts that did not send stay as they are.
        """
        ...

    def route(
        self, gids: NDArray[np.int64], senders: NDArray[np.int64] | None, messages: Arrays
    ) -> tuple[NDArray[np.int64], Arrays, int]:
        """Send direct messages to the ranks that own their targets.

        Args:
            gids: Each message's target, [num_messages].
            senders: Each message's sender, a gid, [num_messages]; None where the order does not matter.
            messages: The message's fields, [num_messages] each.

        Returns:
            Of the messages that arrive: their targets' local ids, their fields, in ascending order of the sender where
            `senders` are given; and the bytes.
        """
        ...

    def find(self, ids: NDArray[np.int64], superstep: int) -> NDArray[np.int64]:
        """Return the gids of ids as compute() sees them, [ids.size]. On the host.

        Raises:
            ExchangeError: If an id is not in the graph.
        """
        ...

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return every rank's values (1-D, one size and dtype on all ranks), [size, values.size]. On the host."""
        ...

    def swap(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Send `parts[r]` (1-D, one dtype on all ranks) to rank r; return what each rank sent here, [size]."""
        ...

    def swap_whole(self, parts: Sequence[Any], arrived: Sequence[Any]) -> None:
        """Send `parts[r]` to rank r, and write what each rank sent here to `arrived[r]`, which has its size.

        Only where `on_device`. No rank waits for another's host.
        """
        ...


class NoExchange:
    """One partition that owns the whole graph: gid and local id are the same, and nothing waits.

    Args:
        find: What `find` calls.
    """

    rank = 0
    size = 1
    on_device = False

    def __init__(self, find: Callable[[NDArray[np.int64], int], NDArray[np.int64]]) -> None:
        self._find = find

    def publish(self, sent: NDArray[np.uint8], records: Arrays) -> None:
        return

    def collect(self, sent: NDArray[np.uint8], records: Arrays) -> tuple[NDArray[np.int64], int]:
        return np.empty(0, dtype=np.int64), 0

    def route(
        self, gids: NDArray[np.int64], senders: NDArray[np.int64] | None, messages: Arrays
    ) -> tuple[NDArray[np.int64], Arrays, int]:
        if senders is None or (senders[1:] >= senders[:-1]).all():
            return gids, messages, 0
        order = np.argsort(senders, kind="stable")
        return gids[order], tuple(m[order] for m in messages), 0

    def find(self, ids: NDArray[np.int64], superstep: int) -> NDArray[np.int64]:
        return self._find(ids, superstep)

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        return values[None, :]

    def swap(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return list(parts)

    def swap_whole(self, parts: Sequence[Any], arrived: Sequence[Any]) -> None:
        return


def checked_gids(
    ids: NDArray[np.int64], gids: NDArray[np.int64], rank: int, superstep: int
) -> NDArray[np.int64]:
    """Return `gids`, having checked that all are vertices.

    Args:
        ids: The ids as compute() sees them, [num_messages].
        gids: Their gids, [num_messages]; negative where there is no such vertex.
        rank: This rank, for the message.
        superstep: The superstep, for the message.

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
