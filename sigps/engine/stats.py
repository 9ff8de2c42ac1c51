"""What a superstep did, and what a lease came to."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Outcome", "SuperstepStats"]


@dataclass(frozen=True)
class SuperstepStats:
    """One superstep of the whole graph.

    Attributes:
        superstep: Counted from 0.
        direction: `"push"`, `"pull"`, or `"mailbox"`; rank 0's, since partitions decide for themselves.
        active: Vertices that ran.
        messages: Out-edges of the vertices that sent (a filter in compute() may let fewer pass), or mail.
        bytes_moved: Bytes that crossed between ranks.
        seconds: Wall clock on rank 0.
        imbalance: The slowest rank's computing time over the mean.
    """

    superstep: int
    direction: str
    active: int
    messages: int
    bytes_moved: int
    seconds: float
    imbalance: float


@dataclass
class Outcome:
    """What a lease came to.

    Attributes:
        ended: Whether nothing is active and nothing is in flight.
        stats: One entry a superstep.
    """

    ended: bool
    stats: list[SuperstepStats] = field(default_factory=list)
