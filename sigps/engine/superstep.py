"""The superstep loop of the host: bulk-synchronous execution, for every engine whose supersteps the host directs.

L. Valiant, "A Bridging Model for Parallel Computation", CACM 1990; G. Malewicz et al., "Pregel", SIGMOD 2010.
Engines whose device runs the loop itself (a lease in one launch) do not come here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sigps.engine.aggregates import Aggregates
from sigps.engine.counters import Counters, Everywhere, reduce_counters
from sigps.engine.exchange import Exchange
from sigps.engine.master_compute import MasterCompute
from sigps.engine.stats import Outcome, SuperstepStats

__all__ = ["Done", "Fused", "LeaseLimit", "Partition", "SendOrder", "run_supersteps"]


_FIRST_FUSED = 64
"""Supersteps that are fused at most where a lease has little time and none has been timed."""

_FUSED_SECONDS = 0.001
"""How long fused supersteps of such a lease should take, since it can end only after all of them."""


class LeaseLimit(NamedTuple):
    """When a lease ends before the run does.

    Attributes:
        seconds: In how many, if a superstep that takes as long as the last one did not fit.
        awaited: [1], not 0 where it ends after the superstep that it is in.
    """

    seconds: float
    awaited: NDArray[np.uint32]


class Done(NamedTuple):
    """What one superstep, or several fused ones, came to on all partitions.

    Attributes:
        stats: One entry a superstep that counts; none where no vertex ran.
        active: Vertices that are active afterwards.
        in_flight: Messages for the next superstep.
    """

    stats: Sequence[SuperstepStats]
    active: int
    in_flight: int


class Partition(Protocol):
    """What the loop asks of an engine: the three parts of a superstep on its partition."""

    aggregates: Aggregates

    @property
    def superstep(self) -> int:
        """The next one, counted from 0; `commit` adds 1."""
        ...

    def receive(self) -> int:
        """Bring here what vertices on other partitions sent; return the bytes that left this rank. Collective."""
        ...

    def compute(self) -> tuple[str, Counters, int]:
        """Run the vertices that are active or have messages.

        Returns:
            The direction by which messages came, what was done, and the bytes that left this rank.
        """
        ...

    def commit(self, counters: Counters, everywhere: Everywhere) -> None:
        """Make what was written readable by the next superstep, and go on to that. Collective.

        Args:
            counters: What `compute` returned.
            everywhere: The same of all partitions.
        """
        ...

    def is_idle_counted(self) -> bool:
        """Tell whether a superstep in which no vertex ran counts as one."""
        ...

    def num_left(self) -> int:
        """Return how many vertices have not retired."""
        ...

    def wake_all(self) -> None:
        """Make all halted vertices active."""
        ...


class Fused(Protocol):
    """A strategy that runs several supersteps at once, as the loop would have run them one by one."""

    def run(self, most_supersteps: int) -> Done | None:
        """Run at most so many; None where the loop is to run the next one itself."""
        ...


class SendOrder(Protocol):
    """A strategy that holds messages back, and sends them in another order, where the result is provably the same."""

    def release(self, done: Done) -> int:
        """Return the messages in flight after these supersteps, with those that it lets go now. Collective."""
        ...


def run_supersteps(
    partition: Partition,
    num_supersteps: int,
    exchange: Exchange,
    *,
    master: MasterCompute | None = None,
    fused: Fused | None = None,
    order: SendOrder | None = None,
    limit: LeaseLimit | None = None,
) -> Outcome:
    """Run supersteps until the run ends, or so many. Collective.

    Args:
        partition: The engine.
        num_supersteps: How many at most.
        exchange: The way to the other partitions.
        master: The program's `master()` or `next_phase()`, or None.
        fused: Runs small supersteps at once, or None.
        order: Sends in another order, or None.
        limit: When to end before; of one partition.
    """
    outcome, last = Outcome(ended=False), 0.0
    ends_at = time.perf_counter() + limit.seconds if limit else math.inf
    while not outcome.ended and len(outcome.stats) < num_supersteps:
        left, most = ends_at - time.perf_counter(), num_supersteps - len(outcome.stats)
        if limit is not None:
            if outcome.stats and (left < last or limit.awaited[0]):
                break
            fit = max(1, int(min(left, _FUSED_SECONDS) / last)) if last else _FIRST_FUSED
            most = min(most, fit)  # the time of fused ones is known when they are over
        done = fused.run(most) if fused else None
        if done is None:
            done = run_superstep(partition, exchange, counts_idle=bool(master and master.in_flight))
        outcome.stats.extend(done.stats)
        last = done.stats[-1].seconds if done.stats else last
        in_flight = order.release(done) if order else done.in_flight
        outcome.ended = done.active == 0 and in_flight == 0
        if master is not None:
            told = outcome, partition.superstep - 1, in_flight, partition.aggregates, exchange
            if master.run(*told, counted=bool(done.stats), num_left=partition.num_left):
                partition.wake_all()
    return outcome


def run_superstep(partition: Partition, exchange: Exchange, *, counts_idle: bool = False) -> Done:
    """Run one superstep: receive, compute, and agree with all partitions on what was done. Collective.

    Args:
        partition: The engine.
        exchange: The way to the other partitions.
        counts_idle: Whether it counts where no vertex ran, since `master()` is to hear of messages to retired ones.
    """
    began = time.perf_counter()
    num_bytes = partition.receive()
    direction, counters, bytes_sent = partition.compute()
    everywhere = reduce_counters(
        exchange,
        partition.aggregates,
        counters,
        superstep=partition.superstep,
        num_bytes=num_bytes + bytes_sent,
        seconds=time.perf_counter() - began,
        counts_idle=counts_idle,
    )
    if everywhere.ran == 0 and not (counts_idle or partition.is_idle_counted()):
        return Done((), 0, 0)
    superstep = partition.superstep
    partition.commit(counters, everywhere)
    stats = everywhere.as_stats(superstep, direction, time.perf_counter() - began)
    return Done((stats,), everywhere.active, everywhere.messages)
