"""The master: knows which managers there are, shares the graph out, leases supersteps, and decides the end.

It stands outside the superstep loop: a lease is as many supersteps as the managers may run without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from sigps.engine.stats import StatsLog, SuperstepStats

__all__ = ["Master", "lease_size"]

Reason = Literal["converged", "max_supersteps"]


class Master:
    """The decisions of one run; lives on rank 0.

    Args:
        registrations: What every manager said of itself, by rank: `cores` is its share of the host's.
        max_supersteps: Where the run stops at the latest, or None.
        on_progress: Called with all statistics so far after each lease, or None for one lease to the end.
    """

    def __init__(
        self,
        registrations: Sequence[dict[str, Any]],
        max_supersteps: int | None,
        on_progress: Callable[[Sequence[SuperstepStats]], None] | None,
    ) -> None:
        self.capacities = [float(r["cores"]) for r in registrations]
        self.stats = StatsLog()
        self.reason: Reason | None = None
        self._max_supersteps = max_supersteps
        self._on_progress = on_progress

    def next_order(self) -> dict[str, Any]:
        """Return the next lease, or the end of the run and why."""
        done = len(self.stats)
        if self.reason is None and self._max_supersteps is not None and done >= self._max_supersteps:
            self.reason = "max_supersteps"
        if self.reason is not None:
            return {"verb": "stop", "reason": self.reason, "supersteps": done}
        left = None if self._max_supersteps is None else self._max_supersteps - done
        seconds = self.stats[-1].seconds if self.stats else None
        return {"verb": "lease", "supersteps": lease_size(left, self._on_progress is not None, seconds)}

    def hear(self, ended: bool, stats: Sequence[SuperstepStats]) -> None:
        """Take in what a lease came to."""
        self.stats.extend(stats)
        if ended:
            self.reason = "converged"
        if self._on_progress is not None:
            self._on_progress(self.stats)


UNLIMITED = 1 << 62


def lease_size(left: int | None, wants_progress: bool, last_seconds: float | None) -> int:
    """Return how many supersteps to lease: all that are left, or about a quarter of a second between reports.

    >>> lease_size(30, False, None), lease_size(None, True, 0.05), lease_size(3, True, 0.05)
    (30, 5, 3)
    """
    size = UNLIMITED if left is None else left
    if wants_progress:
        size = min(size, 1 if last_seconds is None else max(1, round(0.25 / max(last_seconds, 1e-6))))
    return size
