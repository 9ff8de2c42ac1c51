"""The watchdog process: one beside each rank, it says what its rank does, and ends it where a rank is at fault.

A collective waits for ever for a rank that does not come, and a launcher notices only processes that ended. So each
rank has a small process that reads the rank's status in shared memory and looks at its process: a rank that holds
Python's lock for minutes is alive there, and one that is stopped is not. Watchdogs are in sessions of their own, which
a launcher does not end, and report to that of rank 0, which gives the verdict (`verdict.py`). A fault it writes
to stderr and sends to all, and each ends its rank. Where the watchdog of rank 0 is lost, the others find that.

A launcher ends all ranks within a millisecond of a death. The first that died is known all the same: each rank has a
connection of its own with the watchdog of rank 0, which the system closes when the process ends, before it notifies the
launcher, and a selector returns connections in the order in which they closed.

A rank whose parent has changed has lost its launcher, and is ended too.

It starts with Python's own modules alone (`PROGRAM`), in some 50 ms for which its rank waits.
"""

from __future__ import annotations

import contextlib
import functools
import json
import mmap
import operator
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sigps.group.fault import Fault
from sigps.group.status import Status
from sigps.group.verdict import Report, find_fault

__all__ = ["PROGRAM", "READY", "Watchdog", "process_state"]

READY = b"r"
"""What the watchdog sends its rank once it notices ends in their order."""

_LONGEST_INTERVAL = 1.0
_CLOSING_SECONDS = 0.1  # the launcher passes on what was written, and the end of a rank may overtake it

PROGRAM = """
import sys, types
for name, folder in zip(("sigps", "sigps.group"), sys.argv[1:3]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from sigps.group.watchdog import main
main(sys.argv[3])
"""


class Watchdog:
    """What runs in the watchdog process.

    Args:
        rank: The rank beside which it runs.
        pid, launcher: That rank's process, and its parent when it began.
        hosts: The name of each rank's host, [size].
        statuses: What this rank is doing; for rank 0, also what the other ranks of its host are.
        own: Closed when the rank's process ends.
        peers: Connections with watchdogs: rank 0's with every other, another's with rank 0's.
        lives: For rank 0, connections that are closed when the process of each other rank ends.
    """

    def __init__(
        self,
        rank: int,
        pid: int,
        launcher: int,
        hosts: Sequence[str],
        statuses: Mapping[int, Status],
        own: socket.socket,
        peers: Mapping[int, socket.socket],
        lives: Mapping[int, socket.socket],
    ) -> None:
        self._rank, self._pid, self._launcher, self._hosts = rank, pid, launcher, hosts
        self._status, self._statuses = statuses[rank], statuses
        self._own, self._peers, self._lives = own, dict(peers), dict(lives)
        self._arrived = dict.fromkeys(peers, b"")
        self._reports = {r: Report() for r in ({rank: own, **peers} if rank == 0 else peers)}
        now = time.monotonic()
        self._heard_at = dict.fromkeys(peers, now)
        self._closed: dict[int, float] = {}
        self._stopped_at: float | None = None
        self._all_stopped_at = self._looked_at = now
        self._end, self._beat_at = "", 0.0
        self._fault: Fault | None = None
        self._ready = selectors.DefaultSelector()
        self._listen(own, self._heed_own, is_end=True)
        for other, connected in lives.items():
            self._listen(connected, functools.partial(self._close, other), is_end=True)
        for other, connected in peers.items():
            self._listen(connected, functools.partial(self._receive, other))

    def run(self) -> Fault | None:
        """Watch until there is no more to watch; return a fault that this watchdog is to report.

        None also where another has reported it, and this rank is to be ended.
        """
        while not self._is_done():
            interval = min(_LONGEST_INTERVAL, self._status.silent_seconds / 4)
            now = time.monotonic()
            if now - self._looked_at > interval + self._status.silent_seconds / 2:
                self._resume(now)
            self._looked_at = now
            self._look(now)
            if now >= self._beat_at:
                self._beat_at = now + interval
                self._send_report(now)
            found = self._verdict(now)
            if found is not None:
                self._send({"fault": vars(found)})
                return found
            arrived = [key.data for key, _ in self._ready.select(self._pause(interval))]
            # Ends first, and within a kind in the order of arrival.
            for _, handle in sorted(arrived, key=operator.itemgetter(0)):
                handle()
        return None

    def close(self) -> None:
        """Let the other watchdogs read what was sent, for up to 1 s: what is closed unread takes that with it."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_WR)
                peer.settimeout(_CLOSING_SECONDS * 10 / len(self._peers))
                while peer.recv(1 << 16):
                    pass

    @property
    def last_log(self) -> str | None:
        """The log from which the run can go on, by the master."""
        return self._status.last_log if self._rank == 0 else self._reports[0].last_log

    def end_rank(self) -> None:
        """End the rank's process, also where it is stopped."""
        if not self._end:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def _is_done(self) -> bool:
        if self._fault is not None:
            return True
        return bool(self._end) and (self._rank > 0 or not self._peers)

    def _pause(self, interval: float) -> float:
        """Return for how long to wait for the others: shorter where an end is not accounted for."""
        is_due = any(self._reports[rank].end != "ended" for rank in self._closed if rank in self._reports)
        return _CLOSING_SECONDS if is_due else interval

    def _listen(self, connected: socket.socket, handle: Callable[[], None], *, is_end: bool = False) -> None:
        connected.setblocking(False)
        self._ready.register(connected, selectors.EVENT_READ, (not is_end, handle))

    def _look(self, now: float) -> None:
        """Look at the rank's process, whose parent changes when the launcher ends."""
        if self._end:
            return
        state, parent = process_state(self._pid)
        if state in "ZX":
            self._end_own()
        elif parent != self._launcher:
            self.end_rank()
            self._end_own("lost its launcher")
        elif state not in "Tt":
            self._stopped_at = None
        elif self._stopped_at is None:
            self._stopped_at = now

    def _resume(self, now: float) -> None:
        """Count all limits from now: this process was stopped, perhaps with the whole job."""
        self._all_stopped_at = now
        self._heard_at = dict.fromkeys(self._heard_at, now)

    def _send_report(self, now: float) -> None:
        """Send all to the watchdog of rank 0, which judges; from there what names rank 0 if that host is lost."""
        stopped = 0.0 if self._stopped_at is None else max(now - self._stopped_at, 1e-3)
        report = report_of(self._status, now, stopped, self._end)
        if self._rank == 0:
            self._reports[0] = report
            report = Report(report.phase, report.superstep, last_log=report.last_log)
        self._send({"report": asdict(report)})

    def _send(self, message: dict[str, Any]) -> None:
        for peer in self._peers.values():
            with contextlib.suppress(OSError):  # full, where its host is lost, or closed, which is received
                peer.send(json.dumps(message).encode() + b"\n")

    def _receive(self, rank: int) -> None:
        """Take what the watchdog of a rank sent; one that closed without a word of its rank's end is lost with it."""
        peer = self._peers[rank]
        try:
            data = peer.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._arrived[rank] = (self._arrived[rank] + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):  # cut where the connection was full
                self._take(rank, json.loads(line))
        if not data:
            self._ready.unregister(self._peers.pop(rank))
            del self._heard_at[rank]
            peer.close()
            if not self._reports[rank].end:
                self._note_end(rank, "died")

    def _take(self, rank: int, message: dict[str, Any]) -> None:
        self._heard_at[rank] = time.monotonic()
        if "fault" in message:
            self._fault = Fault(**message["fault"])
            return
        self._reports[rank] = Report(**message["report"])
        if self._reports[rank].end:
            self._note_end(rank, self._reports[rank].end)

    def _note_end(self, rank: int, end: str) -> None:
        self._reports[rank].end = end
        self._closed.setdefault(rank, time.monotonic())

    def _close(self, rank: int) -> None:
        """Note that the process of another rank ended; its watchdog says how, where its status is not at hand."""
        self._ready.unregister(self._lives.pop(rank))
        self._closed.setdefault(rank, time.monotonic())
        if rank in self._statuses:
            self._reports[rank].end = self._reports[rank].end or end_of(self._statuses[rank])

    def _heed_own(self) -> None:
        """The rank's process ended, or asks that its status be read."""
        try:
            has_ended = not self._own.recv(1 << 10)
        except OSError:
            has_ended = True
        if has_ended:
            self._end_own()
        else:
            self._send_report(time.monotonic())

    def _end_own(self, end: str = "") -> None:
        """Note how the process of this rank ended, and report it."""
        if self._end:
            return
        self._ready.unregister(self._own)
        self._end = end or end_of(self._status)
        self._closed.setdefault(self._rank, time.monotonic())
        self._send_report(time.monotonic())

    def _verdict(self, now: float) -> Fault | None:
        for rank, status in self._statuses.items():
            if rank in self._reports:  # on this host: what ranks do now, and not at their last report
                sent = self._reports[rank]
                self._reports[rank] = report_of(status, now, sent.stopped, sent.end)
        running = [report for report in self._reports.values() if not report.end]
        if running and all(report.stopped for report in running):
            self._all_stopped_at = now
        for report in running:  # all that were stopped together count from when one went on
            since = max(now - self._all_stopped_at, 1e-3)
            report.stopped, report.computing = min(report.stopped, since), min(report.computing, since)
        return find_fault(
            self._reports,
            {rank: now - at for rank, at in self._heard_at.items() if not self._reports[rank].end},
            [(rank, now - at) for rank, at in self._closed.items() if rank in self._reports],
            self._hosts,
            self._status.silent_seconds,
            self._status.superstep_seconds,
        )


def report_of(status: Status, now: float, stopped: float, end: str) -> Report:
    """Return what a status says."""
    seconds = now - status.since
    return Report(
        phase=status.phase,
        superstep=status.superstep,
        computing=0.0 if status.is_waiting else seconds,
        waiting=seconds if status.is_waiting else 0.0,
        stopped=stopped,
        failed=now - status.failed_at if status.failed_at else None,
        ended=now - status.ended_at if status.ended_at else None,
        end=end,
        last_log=status.last_log,
    )


def end_of(status: Status) -> str:
    """Say how a process ended that left this status."""
    if status.ended_at:
        return "failed" if status.failed_at else "ended"
    return "was ended by SIGTERM" if status.signal_text else "died"


def process_state(pid: int) -> tuple[str, int]:
    """Return a process's state, as the letter that Linux has for it, and its parent; "X" where there is none."""
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return "X", 0
    return state, int(parent)


def main(arguments: str) -> None:
    """Run the watchdog.

    Args:
        arguments: As JSON: those of `Watchdog`, with file descriptors in the place of statuses and sockets.
    """
    given = json.loads(arguments)
    rank, pid = given["rank"], given["pid"]
    peers, lives = (
        {int(other): socket.socket(fileno=number) for other, number in given[name].items()}
        for name in ("peers", "lives")
    )
    statuses = {
        int(other): Status.from_buffer(mmap.mmap(number, 0)) for other, number in given["statuses"].items()
    }
    own = socket.socket(fileno=given["own"])
    watchdog = Watchdog(rank, pid, given["launcher"], given["hosts"], statuses, own, peers, lives)
    own.send(READY)
    fault = watchdog.run()
    if fault is not None:
        if fault.rank == 0 and rank > 1:  # all find it; rank 1's reports, and ends all
            time.sleep(min(1.5 + 0.05 * rank, 3.0))
        if rank < 2 or process_state(pid)[0] not in "ZX":
            with contextlib.suppress(OSError):
                os.write(sys.stderr.fileno(), f"{fault.describe(watchdog.last_log)}\n".encode())
        time.sleep(_CLOSING_SECONDS)
    watchdog.end_rank()
    watchdog.close()
