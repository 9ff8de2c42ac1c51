"""The master: knows which managers there are, shares the graph out, leases supersteps, and decides the end.

It stands outside the superstep loop: a lease is as many supersteps as the managers may run without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from sigps.engine.stats import StatsLog, SuperstepStats
from sigps.system.checkpoint.state_log import Checkpoint

__all__ = ["GIGABYTES_PER_SECOND_OF_A_CORE", "Master", "lease_size"]

Reason = Literal["converged", "max_supersteps", "stopped"]


class Master:
    """The decisions of one run; lives on rank 0.

    Args:
        registrations: What every manager said of itself, by rank: its `device`, `cores`, its share of the
            host's, and of a GPU the `gigabytes_per_second` of its memory.
        max_supersteps: Where the run stops at the latest, or None.
        on_progress: Called with all statistics so far after each lease, or None for one lease to the end.
        checkpoint: When the state is saved, or None.
        stats: The supersteps before a log from which this run goes on.
        clock: Seconds, counted from anywhere.
    """

    def __init__(
        self,
        registrations: Sequence[dict[str, Any]],
        max_supersteps: int | None,
        on_progress: Callable[[Sequence[SuperstepStats]], None] | None,
        checkpoint: Checkpoint | None = None,
        stats: Sequence[SuperstepStats] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacities = [_capacity(r) for r in registrations]
        self.stats = StatsLog(stats)
        self.reason: Reason | None = None
        self._checkpoint, self._clock = checkpoint, clock
        self._saved, self._saved_at = len(self.stats), clock()
        self._last_lease = 1
        self._max_supersteps = max_supersteps
        self._on_progress = on_progress

    def next_order(self) -> dict[str, Any]:
        """Return the next lease, that the state is saved now, or the end of the run and why."""
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
        plan = self._checkpoint
        if plan is None or done == self._saved:
            return False
        by_count = plan.every is not None and done % plan.every == 0
        return by_count or (plan.seconds is not None and self._clock() - self._saved_at >= plan.seconds)

    def _lease_size(self, done: int) -> int:
        plan = self._checkpoint
        left = UNLIMITED if self._max_supersteps is None else self._max_supersteps - done
        if plan is not None and plan.every is not None:
            left = min(left, plan.every - done % plan.every)
        pause = _SECONDS_BETWEEN_REPORTS if self._on_progress is not None else None
        if plan is not None and plan.seconds is not None:
            to_save = max(self._saved_at + plan.seconds - self._clock(), 0.0)
            pause = to_save if pause is None else min(pause, to_save)
        size = lease_size(left, pause, self.stats[-1].seconds if self.stats else None)
        if pause is not None:  # the next supersteps may cost a thousand times what the last one did
            size = min(size, 2 * self._last_lease)
            self._last_lease = size
        return size

    def hear(self, ended: bool, stats: Sequence[SuperstepStats], *, stopped: bool = False) -> None:
        """Take in what a lease came to."""
        self.stats.extend(stats)
        if ended:
            self.reason = "stopped" if stopped else "converged"
        if self._on_progress is not None:
            self._on_progress(self.stats)


def _capacity(registration: dict[str, Any]) -> float:
    """Return how much of the graph a rank takes, in cores: supersteps take as long as reading memory does."""
    if registration["device"] == "cuda":
        return float(registration["gigabytes_per_second"] / GIGABYTES_PER_SECOND_OF_A_CORE)
    return float(registration["cores"])


GIGABYTES_PER_SECOND_OF_A_CORE = 10
UNLIMITED = 1 << 62
_SECONDS_BETWEEN_REPORTS = 0.25


def lease_size(left: int, pause: float | None, last_seconds: float | None) -> int:
    """Return how many supersteps to lease: all that are left, or as many as fit before the next pause.

    Args:
        left: Supersteps that may run at most.
        pause: Seconds until the master wants to be asked again; None for never.
        last_seconds: What the last superstep took; None before the first.

    >>> lease_size(30, None, None), lease_size(UNLIMITED, 0.25, 0.05), lease_size(3, 0.25, 0.05)
    (30, 5, 3)
    """
    if pause is None:
        return left
    return min(left, 1 if last_seconds is None else max(1, round(pause / max(last_seconds, 1e-6))))
