"""The master of a run, on rank 0: the leases, the saves, and the end; and each rank's share of the graph.

It stands outside the superstep loop: a lease is a number of supersteps that the engines run without it. It only
decides, from what the managers report: it calls no collective, waits for nothing and holds no data of the graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from sigps.engine.stats import StatsLog, SuperstepStats

if TYPE_CHECKING:
    from sigps.system.checkpoint.state_log import Checkpoint

__all__ = ["GIGABYTES_PER_SECOND_OF_A_CORE", "UNLIMITED", "Master", "capacity_of", "lease_size"]

Reason = Literal["converged", "max_supersteps", "stopped"]


class Master:
    """The decisions of one run; lives on rank 0.

    Args:
        max_supersteps: The run ends after so many supersteps; None for no limit.
        on_progress: Called with all statistics so far after each lease; None where none is wanted.
        checkpoint: When the state is saved; None for never.
        stats: The supersteps before the log from which this run goes on.
        clock: Returns seconds since any fixed moment.
        lease_seconds: How long a lease should be, at most; None for no limit.
        first_lease: How many supersteps the first one may have where there is such a limit.

    Attributes:
        stats: One entry a superstep so far.
        reason: Why the run ended; None while it runs.
    """

    def __init__(
        self,
        max_supersteps: int | None,
        on_progress: Callable[[Sequence[SuperstepStats]], None] | None,
        checkpoint: Checkpoint | None = None,
        stats: Sequence[SuperstepStats] = (),
        clock: Callable[[], float] = time.monotonic,
        lease_seconds: float | None = None,
        first_lease: int = 1,
    ) -> None:
        self.stats = StatsLog(stats)
        self.reason: Reason | None = None
        self._checkpoint, self._clock = checkpoint, clock
        self._saved, self._saved_at = len(self.stats), clock()
        self._last_lease, self._first_lease = 1, first_lease
        self._max_supersteps = max_supersteps
        self._on_progress, self._lease_seconds = on_progress, lease_seconds
        self._keeps_time = False

    def let_engine_end_leases(self) -> None:
        """Lease all supersteps from now on: the engine ends a lease when its time is up."""
        self._keeps_time = True

    def next_order(self) -> dict[str, Any]:
        """Return what all managers do next, for `Group.broadcast`.

        Returns:
            `{"verb": "lease", "supersteps": how many to run}`, `{"verb": "save"}`, or
            `{"verb": "stop", "reason": why, "supersteps": how many ran}`.
        """
        done = len(self.stats)
        if self.reason is None and self._is_save_due(done):
            self._saved, self._saved_at = done, self._clock()
            return {"verb": "save"}
        if self.reason is None and self._max_supersteps is not None and done >= self._max_supersteps:
            self.reason = "max_supersteps"
        if self.reason is not None:
            return {"verb": "stop", "reason": self.reason, "supersteps": done}
        return {"verb": "lease", "supersteps": self._lease_size(done)}

    def _is_save_due(self, done: int) -> bool:
        when = self._checkpoint
        if when is None or done == self._saved:
            return False
        by_count = when.every is not None and done % when.every == 0
        return by_count or (when.seconds is not None and self._clock() - self._saved_at >= when.seconds)

    def _lease_size(self, done: int) -> int:
        when = self._checkpoint
        left = UNLIMITED if self._max_supersteps is None else self._max_supersteps - done
        if when is not None and when.every is not None:
            left = min(left, when.every - done % when.every)
        if self._keeps_time:
            return left
        pause = _SECONDS_BETWEEN_REPORTS if self._on_progress is not None else None
        if self._lease_seconds is not None:
            pause = self._lease_seconds if pause is None else min(pause, self._lease_seconds)
        if when is not None and when.seconds is not None:
            to_save = max(self._saved_at + when.seconds - self._clock(), 0.0)
            pause = to_save if pause is None else min(pause, to_save)
        size = lease_size(left, pause, self.stats[-1].seconds if self.stats else None)
        if pause is not None:  # the next supersteps may cost a thousand times what the last one did
            size = min(size, 2 * self._last_lease) if self.stats else min(left, self._first_lease)
            self._last_lease = size
        return size

    def record(self, ended: bool, stats: Sequence[SuperstepStats], *, stopped: bool = False) -> None:
        """Take the outcome of a lease.

        Args:
            ended: Whether the run is over.
            stats: One entry a superstep of the lease.
            stopped: Whether the program ended it, by `master()` or `next_phase()`.
        """
        self.stats.extend(stats)
        if ended:
            self.reason = "stopped" if stopped else "converged"
        if self._on_progress is not None:
            self._on_progress(self.stats)


def capacity_of(registration: dict[str, Any]) -> float:
    """Return how much of the graph a rank takes, in CPU cores: a superstep takes as long as its reads of memory.

    Args:
        registration: What its manager says of it: its `cores`, a share of its host's; and of a GPU the
            `gigabytes_per_second` of its memory.
    """
    if "gigabytes_per_second" in registration:
        return float(registration["gigabytes_per_second"] / GIGABYTES_PER_SECOND_OF_A_CORE)
    return float(registration["cores"])


GIGABYTES_PER_SECOND_OF_A_CORE = 10
"""Of memory bandwidth, to compare a GPU with CPU cores."""

UNLIMITED = 1 << 62
"""Supersteps of a lease to the end."""

_SECONDS_BETWEEN_REPORTS = 0.25


def lease_size(left: int, pause: float | None, last_seconds: float | None) -> int:
    """Return how many supersteps to lease: all that are left, or as many as fit before the lease must end.

    Args:
        left: Supersteps that may run at most.
        pause: Seconds after which the lease must end, for a report or a save; None for no limit.
        last_seconds: Seconds of the last superstep; None before the first.

    >>> lease_size(30, None, None), lease_size(UNLIMITED, 0.25, 0.05), lease_size(3, 0.25, 0.05)
    (30, 5, 3)
    """
    if pause is None:
        return left
    return min(left, 1 if last_seconds is None else max(1, round(pause / max(last_seconds, 1e-6))))
