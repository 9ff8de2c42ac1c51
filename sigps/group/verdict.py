"""What counts as a fault: a pure function of what the watchdogs know. Imports Python's own modules alone.

A rank
    died        its process ended, and not by itself; or it was ended by SIGTERM, which launchers pass on
    is stopped  for `silent_seconds`, by a signal or a debugger, and not all are
    is silent   no heartbeat of its watchdog for `silent_seconds`: its host or network is lost
    failed      left by an exception, or
    ended       by itself, and another waits for it `silent_seconds` later
    hangs       has computed in one superstep for longer than `superstep_seconds`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sigps.group.fault import Fault

__all__ = ["Report", "find_fault"]

_WORDLESS_SECONDS = 5.0  # in which a watchdog says how its rank ended


@dataclass
class Report:
    """What a watchdog reports of its rank. Times are seconds up to the report.

    Attributes:
        phase: What it does; empty outside of a run.
        superstep: The superstep that it is in; -1 outside of supersteps.
        computing, waiting, stopped: For how long it has; 0 where it does not.
        failed, ended: How long ago an exception left a phase, or the process began to end; None where not.
        end: How the process ended: "died", "was ended by SIGTERM", "lost its launcher", "failed", "ended"; empty while
            it runs.
        last_log: The log from which the run can go on.
    """

    phase: str = ""
    superstep: int = -1
    computing: float = 0.0
    waiting: float = 0.0
    stopped: float = 0.0
    failed: float | None = None
    ended: float | None = None
    end: str = ""
    last_log: str | None = None


def find_fault(
    reports: Mapping[int, Report],
    silences: Mapping[int, float],
    closed: Sequence[tuple[int, float]],
    hosts: Sequence[str],
    silent_seconds: float,
    superstep_seconds: float,
) -> Fault | None:
    """Return what is wrong with the first rank with which something is; None where nothing is.

    Args:
        reports: The last report of each rank that this watchdog hears of.
        silences: For how many seconds there was none from those that still run.
        closed: Ranks whose processes ended, in that order, and how many seconds ago.
        hosts: The name of each rank's host, [size].
        silent_seconds: The limit of silence, of a stop, and of waiting for a rank that has left.
        superstep_seconds: The limit of computing.
    """
    superstep = max((report.superstep for report in reports.values()), default=-1)

    def fault(rank: int, what: str, seconds: float = 0.0) -> Fault:
        """All ranks come as far as the one at fault, and none gets past it: the highest superstep is its own."""
        known = reports.get(rank, Report())
        where = f"while {known.phase}" if known.phase else "outside of a run"
        return Fault(
            rank, hosts[rank], f"in superstep {superstep}" if known.superstep >= 0 else where, what, seconds
        )

    if not any(report.failed is not None and report.ended is not None for report in reports.values()):
        for rank, seconds in closed:
            end = reports[rank].end if rank in reports else ""
            if end == "ended":
                continue
            if end or seconds > _WORDLESS_SECONDS:
                return fault(rank, end or "died")
            return None
    # After a failure that a rank reported itself the launcher ends the others: those deaths are not the cause.
    running = {rank: report for rank, report in sorted(reports.items()) if not report.end}
    for rank, seconds in silences.items():
        if seconds > silent_seconds:
            return fault(rank, "is silent", seconds)
    if not all(report.stopped for report in running.values()):
        for rank, report in running.items():
            if report.stopped > silent_seconds:
                return fault(rank, "is stopped", report.stopped)
    if any(report.waiting > silent_seconds for report in running.values()):
        for rank, what, seconds in _absent(reports, dict(closed)):
            if seconds > silent_seconds:
                return fault(rank, what, seconds)
    for rank, report in running.items():
        if report.superstep >= 0 and report.computing > superstep_seconds:
            return fault(rank, "hangs", report.computing)
    return None


def _absent(reports: Mapping[int, Report], closed: Mapping[int, float]) -> Iterator[tuple[int, str, float]]:
    for rank, report in reports.items():
        if report.failed is not None:
            yield rank, "failed", max(report.failed, closed.get(rank, 0.0))
        elif report.ended is not None:
            yield rank, "ended", max(report.ended, closed.get(rank, 0.0))
