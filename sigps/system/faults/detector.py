"""The fault detector: ranks watch each other, so that one that dies, stops or hangs ends the run, by name.

A collective waits for ever for a rank that does not come, and a launcher notices only processes that ended.
So rank 0 keeps a TCP connection with each other rank, over which both send heartbeats. A rank

    died        the connection closed without a goodbye
    is silent   no heartbeat for `silent_seconds`: stopped, or its host or network is lost
    hangs       has computed for longer than `superstep_seconds`, as its own heartbeats say
    failed      left by an exception, and the others are still there `silent_seconds` later

Who finds a fault passes it on: rank 0 to all, another to rank 0. What is done then is `on_fault`'s. A death after
which the launcher ends all ranks at once is told by the watchdog (`watchdog.py`).
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import selectors
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from sigps.group import Group
from sigps.system.faults.connections import Link, links_of
from sigps.system.faults.fault import Fault
from sigps.system.faults.watchdog import BEGUN, ENDED, FAILED, SPOKEN, Watchdog

__all__ = ["Fault", "FaultDetector", "end_run"]

_PATIENCE_SECONDS = 5.0  # to take leave
_ABORT_SECONDS = 2.0

Superstep = int | Callable[[], int]


class FaultDetector:
    """Watches the ranks of a run from its creation, which is collective, until `close`.

    A group of one is not watched: nothing is opened. Where ranks cannot connect, rank 0 logs a warning and
    the run goes on, watched by the launcher alone. As a context manager it tells the others whether an
    exception ended the block.

    Args:
        group: The ranks.
        interval: Seconds between heartbeats.
        silent_seconds: How long a rank may be without a heartbeat, and how long the others may stay in the
            run after one left it by an exception.
        superstep_seconds: How long a rank may compute at a stretch; None for any time.
        on_fault: Called at most once on each rank, from the detector's thread. None for `end_run`.

    Attributes:
        last_log: Gives the log from which the run can continue; what writes logs sets it, on every rank.
    """

    def __init__(
        self,
        group: Group,
        *,
        interval: float = 1.0,
        silent_seconds: float = 10.0,
        superstep_seconds: float | None = None,
        on_fault: Callable[[Fault], None] | None = None,
    ) -> None:
        self.last_log: Callable[[], str | None] = lambda: None
        self._group, self._interval = group, interval
        self._silent_seconds, self._on_fault = silent_seconds, on_fault
        self._superstep_seconds = (
            math.inf if superstep_seconds is None or group.rank > 0 else superstep_seconds
        )
        # (superstep, computing since or None): the main thread replaces it whole, the detector's reads it whole.
        self._own: tuple[Superstep | None, float | None] = (None, None)
        self._failed: dict[int, tuple[float, int | None]] = {}  # rank -> (when it left, superstep)
        self._is_closing, self._has_failed, self._resumed_at = False, False, 0.0
        self._is_open, self._is_done = False, threading.Event()
        if group.size == 1:
            return
        self._known = links_of(group)
        self._known.runs += 1
        self._links, self._hosts = dict(self._known.links), self._known.hosts
        for link in self._links.values():
            link.begin(self._known.runs)
        if self._links:
            self._is_open = True
            if self._known.watchdog is not None:
                self._known.watchdog.note(None)
                self._known.watchdog.note_log(None)
            self._tell_watchdog(BEGUN)
            self._known.monitor.offer(self._run)

    def computing(self, superstep: Superstep) -> None:
        """Say that this rank computes from now on, and in which superstep, or what tells it."""
        self._own = (superstep, time.monotonic())
        if self._is_open and self._known.watchdog is not None:
            self._known.watchdog.note(self._superstep())

    def _superstep(self) -> int | None:
        superstep = self._own[0]
        return superstep() if callable(superstep) else superstep

    def waiting(self) -> None:
        """Say that this rank waits for others from now on: in a collective, however long it takes."""
        self._own = (self._own[0], None)

    def note_log(self, log: object) -> None:
        """Say that the run can go on from this log now."""
        if self._is_open and self._known.watchdog is not None:
            self._known.watchdog.note_log(str(log))

    def close(self) -> None:
        """Take leave of the others, who go on. Waits for no rank; a second call does nothing."""
        if not self._is_open:
            return
        self._is_open, self._is_closing = False, True
        self._tell_watchdog(FAILED if self._has_failed else ENDED)
        monitor = self._known.monitor
        if monitor.withdraw():
            for link in self._links.values():
                link.receive()  # goodbyes of others, which would fill the connection in time
            self._take_leave()
        else:
            with contextlib.suppress(OSError):
                self._known.waking.send(b"!")
            if not monitor.is_here() and not self._is_done.wait(_PATIENCE_SECONDS):
                self._has_failed = True
        if self._has_failed:
            self._known.close()

    def _take_leave(self) -> None:
        self._tell({"kind": "goodbye", "has_failed": self._has_failed, "superstep": self._superstep()})

    def __enter__(self) -> FaultDetector:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._has_failed = kind is not None
        self.close()

    def _run(self) -> None:
        fault = None
        try:
            with selectors.DefaultSelector() as self._ready:
                fault = self._watch()
            if fault is None:
                self._take_leave()
                return
            pass_on = functools.partial(self._tell, {"kind": "fault", "fault": vars(fault)})
            if self._on_fault is None:
                end_run(self._group, fault, self._last_log(), pass_on, self._known.watchdog)
            else:
                pass_on()
                self._on_fault(fault)
        finally:
            if fault is not None:
                self._known.close()
            self._is_done.set()

    def _watch(self) -> Fault | None:
        """Send heartbeats and read those of others until `close` or a fault."""
        with contextlib.suppress(BlockingIOError):
            self._known.wake.recv(1 << 10)  # of a run before, which was over by itself
        self._ready.register(self._known.wake, selectors.EVENT_READ)
        for link in self._links.values():
            self._ready.register(link.socket, selectors.EVENT_READ, link)
        fault, now, beat_at = None, time.monotonic(), 0.0
        while fault is None and not self._is_closing:
            if now >= beat_at:
                self._tell({"kind": "beat", "superstep": self._superstep(), "seconds": self._computed(now)})
                beat_at = now + self._interval
                if self._known.watchdog is not None and self._group.rank == 0:
                    self._known.watchdog.note(self._superstep())
                    self._known.watchdog.note_log(self._last_log())
            wake_at = min([beat_at, *(link.heard_at + self._silent_seconds for link in self._links.values())])
            arrived = self._ready.select(max(wake_at - now, 1e-3))
            before, now = now, time.monotonic()
            if now - before > self._interval + self._silent_seconds / 2:
                self._resume(now)
            heard = [self._hear(key.data, now) for key, _ in arrived if key.data is not None]
            fault = next((f for f in heard if f is not None), None) or self._late(now)
        return fault

    def _resume(self, now: float) -> None:
        """Go on after this process was stopped, perhaps with the whole job: nobody is late for that time."""
        self._resumed_at = now
        self._failed = {rank: (now, superstep) for rank, (_, superstep) in self._failed.items()}
        for link in self._links.values():
            link.heard_at = now

    def _computed(self, now: float) -> float:
        """Seconds for which this rank has computed at a stretch."""
        since = self._own[1]
        return 0.0 if since is None else now - max(since, self._resumed_at)

    def _tell(self, message: dict[str, Any]) -> None:
        for link in self._links.values():
            link.send(message)

    def _last_log(self) -> str | None:
        with contextlib.suppress(OSError):  # the folder may be out of reach for now
            return self.last_log()
        return None

    def _tell_watchdog(self, what: bytes) -> None:
        if self._known.watchdog is not None:
            self._known.watchdog.tell(what)

    def _hear(self, link: Link, now: float) -> Fault | None:
        """Take what a peer sent; a peer that is gone leaves `_links`."""
        messages, is_open = link.receive()
        for message in messages:
            link.heard_at = now
            if message["kind"] == "beat":
                link.superstep, link.computing_seconds = message["superstep"], message["seconds"]
            elif message["kind"] == "fault":
                return Fault(**message["fault"])
            elif message["kind"] == "failed":
                self._failed[message["rank"]] = (now, message["superstep"])
            else:
                self._drop(link, is_lost=message["has_failed"])
                if message["has_failed"]:
                    self._failed[link.rank] = (now, message["superstep"])
                    self._tell({"kind": "failed", "rank": link.rank, "superstep": message["superstep"]})
                return None
        if is_open:
            return None
        # After a failure the launcher ends one rank after the other: those deaths are not the cause.
        fault = None if self._failed else self._fault(link.rank, "died", 0.0)
        self._drop(link, is_lost=True)
        return fault

    def _drop(self, link: Link, *, is_lost: bool) -> None:
        """Hear no more of a rank that has left this run."""
        del self._links[link.rank]
        self._ready.unregister(link.socket)
        if is_lost:
            self._known.drop(link)

    def _late(self, now: float) -> Fault | None:
        """Return what is wrong with a rank that is silent, has failed or hangs, if there is one."""
        for link in self._links.values():
            if now - link.heard_at > self._silent_seconds:
                return self._fault(link.rank, "is silent", now - link.heard_at)
        for rank, (left_at, superstep) in self._failed.items():
            if now - left_at > self._silent_seconds:
                return Fault(rank, self._hosts[rank], superstep, "failed", now - left_at)
        reports = [(link.computing_seconds, link.rank, link.superstep) for link in self._links.values()]
        reports.append((self._computed(now), 0, self._superstep()))
        seconds, rank, superstep = max(reports, key=lambda report: report[0])
        is_over = seconds > self._superstep_seconds
        return Fault(rank, self._hosts[rank], superstep, "hangs", seconds) if is_over else None

    def _fault(self, rank: int, what: Literal["died", "is silent"], seconds: float) -> Fault:
        """Heartbeats may be old; but all ranks come as far as the one at fault, and none gets past it."""
        heard = [self._superstep(), *(link.superstep for link in self._links.values())]
        superstep = max((s for s in heard if s is not None), default=None)
        return Fault(rank, self._hosts[rank], superstep, what, seconds)


def end_run(
    group: Group,
    fault: Fault,
    last_log: str | None,
    pass_on: Callable[[], None],
    watchdog: Watchdog | None = None,
) -> None:
    """Say what happened on stderr, pass the fault on, end all ranks with exit code 1. Does not return.

    Called on every rank, it speaks on one: the others wait for a moment in which that one ends them.
    """
    text = f"{fault.describe(last_log)}\n".encode()
    speaks_first = group.rank == (1 if fault.rank == 0 else 0)
    delay = 0.0 if speaks_first else min(1.5 + 0.05 * group.rank, 3.0)
    if speaks_first:
        _speak(
            text, watchdog
        )  # before all else: the launcher kills this rank within a millisecond of a death
    threading.Timer(delay + _ABORT_SECONDS, os._exit, (1,)).start()
    pass_on()
    if not speaks_first:
        time.sleep(delay)
        _speak(text, watchdog)
    sys.stdout.flush()
    time.sleep(0.1)  # the launcher passes on what was written, and an abort may overtake it
    getattr(group, "abort", os._exit)(1)
    os._exit(1)


def _speak(text: bytes, watchdog: Watchdog | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text)
    if watchdog is not None:
        watchdog.tell(SPOKEN)
