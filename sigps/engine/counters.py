"""What one partition did in a superstep, and what all of them did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.engine.aggregates import Aggregates
from sigps.engine.exchange import Exchange
from sigps.engine.stats import SuperstepStats

__all__ = ["Counters", "Everywhere", "reduce_counters"]


@dataclass
class Counters:
    """What one partition did in one superstep.

    Attributes:
        ran: Vertices that ran compute().
        active: Vertices that are active afterwards.
        senders: Vertices that sent along their edges.
        sent_edges: Their out-edges; of direct messages their number.
        is_unordered: Whether values of a monotone program have no order here (NaN).
        bytes_read: Packed bytes of edges that were unpacked.
        blocks_skipped: Blocks of edges that were not.
        totals: Contributions to aggregators, one tuple a thread.
    """

    ran: int = 0
    active: int = 0
    senders: int = 0
    sent_edges: int = 0
    is_unordered: bool = False
    bytes_read: int = 0
    blocks_skipped: int = 0
    totals: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, counts: tuple[int, int, int, int], total: tuple[Any, ...]) -> None:
        self.ran += counts[0]
        self.active += counts[1]
        self.senders += counts[2]
        self.sent_edges += counts[3]
        self.totals.append(total)


class Everywhere(NamedTuple):
    """What all partitions did in one superstep."""

    ran: int
    active: int
    messages: int
    num_bytes: int
    imbalance: float
    has_order: bool
    bytes_read: int
    blocks_skipped: int

    @staticmethod
    def of(counts: NDArray[np.int64]) -> Everywhere:
        columns = list(zip(*counts.tolist(), strict=True))  # few ranks: quicker than NumPy
        ran, active, messages, num_bytes, all_busy, unordered, read, skipped = map(sum, columns)
        imbalance = max(columns[4]) * len(columns[4]) / all_busy if all_busy > 0 else 1.0
        return Everywhere(ran, active, messages, num_bytes, imbalance, unordered == 0, read, skipped)

    def as_stats(self, superstep: int, direction: str, seconds: float) -> SuperstepStats:
        return SuperstepStats(
            superstep,
            direction,
            self.ran,
            self.messages,
            self.num_bytes,
            seconds,
            self.imbalance,
            bytes_read=self.bytes_read,
            blocks_skipped=self.blocks_skipped,
        )


def reduce_counters(
    exchange: Exchange,
    aggregates: Aggregates,
    counters: Counters,
    *,
    superstep: int,
    num_bytes: int,
    seconds: float,
    counts_idle: bool = False,
) -> Everywhere:
    """Tell the other partitions what this one did, and return what all of them did. Collective.

    The aggregators get their next values, unless nobody ran and that is no superstep.

    Args:
        exchange: The way to the others.
        aggregates: The aggregators' values here.
        counters: What this partition did.
        superstep: In which superstep.
        num_bytes: The bytes that it sent.
        seconds: How long it computed.
        counts_idle: Whether what nobody ran is a superstep.
    """
    if exchange.size == 1:
        return _alone(aggregates, counters, superstep=superstep, num_bytes=num_bytes, counts_idle=counts_idle)
    counts = [counters.ran, counters.active, counters.sent_edges, num_bytes, int(seconds * 1e9)]
    counts += [counters.is_unordered, counters.bytes_read, counters.blocks_skipped]
    packed = np.concatenate([np.array(counts, dtype=np.int64), aggregates.pack(counters.totals, superstep)])
    gathered = exchange.gather(packed)
    everywhere = Everywhere.of(gathered[:, : len(counts)])
    if everywhere.ran > 0 or counts_idle:
        aggregates.advance(gathered[:, len(counts) :], superstep)
    return everywhere


def _alone(
    aggregates: Aggregates, counters: Counters, *, superstep: int, num_bytes: int, counts_idle: bool
) -> Everywhere:
    """Do the same where there are no others: nothing is packed for them, which takes as long as a small superstep."""
    words = aggregates.pack(counters.totals, superstep)
    if counters.ran > 0 or counts_idle:
        aggregates.advance(words[np.newaxis], superstep)
    return Everywhere(
        counters.ran, counters.active, counters.sent_edges, num_bytes, 1.0, not counters.is_unordered,
        counters.bytes_read, counters.blocks_skipped,
    )  # fmt: skip
