"""The fault detector: ranks watch each other, so that one that dies, stops or hangs ends the run and is named.

A collective waits for ever for a rank that does not come, and a launcher notices only processes that ended.
So rank 0 keeps a TCP connection with each other rank, over which both send heartbeats. A rank

    died        the connection closed without a goodbye
    is silent   no heartbeat for `silent_seconds`: stopped, or its host or network is lost
    hangs       has computed for longer than `superstep_seconds`, as its own heartbeats say
    failed      left by an exception, and the others are still in the run `silent_seconds` later

The rank that finds a fault sends it on: rank 0 to all, another to rank 0. Then `on_fault` is called. A death after
which the launcher ends all ranks at once is reported by the watchdog process (`watchdog.py`).
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
from sigps.system.faults.connections import Connection, connections_of
from sigps.system.faults.fault import Fault
from sigps.system.faults.watchdog import BEGAN, ENDED, FAILED, REPORTED, WatchdogConnection

__all__ = ["Fault", "FaultDetector", "end_run"]

_PATIENCE_SECONDS = 5.0  # for the monitor thread to send its goodbyes
_ABORT_SECONDS = 2.0

Superstep = int | Callable[[], int]


class FaultDetector:
    """Watches the ranks of a run from its creation, which is collective, until `close`.

    A group of one is not watched: nothing is opened. Where ranks cannot connect, rank 0 logs a warning and
    the run goes on, watched by the launcher alone. As a context manager it sends the others whether an
    exception ended the block. Only creation waits for other ranks.

    Args:
        group: The ranks.
        interval: Seconds between heartbeats.
        silent_seconds: How long a rank may be without a heartbeat, and how long the others may stay in the
            run after one left it by an exception.
        superstep_seconds: How long a rank may compute at a stretch; None for any time.
        on_fault: Called at most once on each rank, from the monitor thread. None for `end_run`.

    Attributes:
        last_log: Returns the log from which the run can continue; what writes logs sets it, on every rank.
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
        # (superstep, computing since or None): the main thread replaces it whole, the monitor thread reads it whole.
        self._own: tuple[Superstep | None, float | None] = (None, None)
        self._failed: dict[int, tuple[float, int | None]] = {}  # rank -> (when it left, superstep)
        self._is_closing, self._has_failed, self._resumed_at = False, False, 0.0
        self._is_open, self._is_done = False, threading.Event()
        if group.size == 1:
            return
        self._connections = connections_of(group)
        self._connections.num_runs += 1
        self._peers, self._hosts = dict(self._connections.by_rank), self._connections.hosts
        for peer in self._peers.values():
            peer.begin(self._connections.num_runs)
        if self._peers:
            self._is_open = True
            if self._connections.watchdog is not None:
                self._connections.watchdog.record_superstep(None)
                self._connections.watchdog.record_log(None)
                self._connections.watchdog.send(BEGAN)
            self._connections.monitor.offer(self._run)

    def computing(self, superstep: Superstep) -> None:
        """Record that this rank computes from now on, and in which superstep, or a function that returns it."""
        self._own = (superstep, time.monotonic())
        if self._is_open and self._connections.watchdog is not None:
            self._connections.watchdog.record_superstep(self._superstep())

    def _superstep(self) -> int | None:
        superstep = self._own[0]
        return superstep() if callable(superstep) else superstep

    def waiting(self) -> None:
        """Record that this rank waits for others from now on: in a collective, however long it takes."""
        self._own = (self._own[0], None)

    def record_log(self, log: object) -> None:
        """Record that the run can go on from this log."""
        if self._is_open and self._connections.watchdog is not None:
            self._connections.watchdog.record_log(str(log))

    def close(self) -> None:
        """Send goodbye to the others, whose run goes on. Waits for no rank; a second call does nothing."""
        if not self._is_open:
            return
        self._is_open, self._is_closing = False, True
        if self._connections.watchdog is not None:
            self._connections.watchdog.send(FAILED if self._has_failed else ENDED)
        monitor = self._connections.monitor
        if monitor.withdraw():
            for peer in self._peers.values():
                peer.receive()  # goodbyes of others, which would fill the connection in time
            self._send_goodbye()
        else:
            with contextlib.suppress(OSError):
                self._connections.waking.send(b"!")
            if not monitor.is_current() and not self._is_done.wait(_PATIENCE_SECONDS):
                self._has_failed = True
        if self._has_failed:
            self._connections.close()

    def _send_goodbye(self) -> None:
        self._send({"kind": "goodbye", "has_failed": self._has_failed, "superstep": self._superstep()})

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
                self._send_goodbye()
                return
            pass_on = functools.partial(self._send, {"kind": "fault", "fault": vars(fault)})
            if self._on_fault is None:
                end_run(self._group, fault, self._last_log(), pass_on, self._connections.watchdog)
            else:
                pass_on()
                self._on_fault(fault)
        finally:
            if fault is not None:
                self._connections.close()
            self._is_done.set()

    def _watch(self) -> Fault | None:
        """Send heartbeats and receive those of others until `close` or a fault."""
        with contextlib.suppress(BlockingIOError):
            self._connections.wake.recv(1 << 10)  # sent by the `close` of an earlier run
        self._ready.register(self._connections.wake, selectors.EVENT_READ)
        for peer in self._peers.values():
            self._ready.register(peer.socket, selectors.EVENT_READ, peer)
        fault, now, beat_at = None, time.monotonic(), 0.0
        while fault is None and not self._is_closing:
            if now >= beat_at:
                self._send({"kind": "beat", "superstep": self._superstep(), "seconds": self._computed(now)})
                beat_at = now + self._interval
                if self._connections.watchdog is not None and self._group.rank == 0:
                    self._connections.watchdog.record_superstep(self._superstep())
                    self._connections.watchdog.record_log(self._last_log())
            limits = [peer.received_at + self._silent_seconds for peer in self._peers.values()]
            arrived = self._ready.select(max(min([beat_at, *limits]) - now, 1e-3))
            before, now = now, time.monotonic()
            if now - before > self._interval + self._silent_seconds / 2:
                self._resume(now)
            found = [self._receive(key.data, now) for key, _ in arrived if key.data is not None]
            fault = next((f for f in found if f is not None), None) or self._overdue(now)
        return fault

    def _resume(self, now: float) -> None:
        """Count all limits from now: this process was stopped, perhaps with the whole job."""
        self._resumed_at = now
        self._failed = {rank: (now, superstep) for rank, (_, superstep) in self._failed.items()}
        for peer in self._peers.values():
            peer.received_at = now

    def _computed(self, now: float) -> float:
        """Seconds for which this rank has computed at a stretch."""
        since = self._own[1]
        return 0.0 if since is None else now - max(since, self._resumed_at)

    def _send(self, message: dict[str, Any]) -> None:
        for peer in self._peers.values():
            peer.send(message)

    def _last_log(self) -> str | None:
        with contextlib.suppress(OSError):  # the folder may be out of reach for now
            return self.last_log()
        return None

    def _receive(self, peer: Connection, now: float) -> Fault | None:
        """Handle what a peer sent; one that is gone leaves `_peers`."""
        messages, is_open = peer.receive()
        for message in messages:
            peer.received_at = now
            if message["kind"] == "beat":
                peer.superstep, peer.computing_seconds = message["superstep"], message["seconds"]
            elif message["kind"] == "fault":
                return Fault(**message["fault"])
            elif message["kind"] == "failed":
                self._failed[message["rank"]] = (now, message["superstep"])
            else:
                self._drop(peer, is_lost=message["has_failed"])
                if message["has_failed"]:
                    self._failed[peer.rank] = (now, message["superstep"])
                    self._send({"kind": "failed", "rank": peer.rank, "superstep": message["superstep"]})
                return None
        if is_open:
            return None
        # After a failure the launcher ends one rank after the other: those deaths are not the cause.
        fault = None if self._failed else self._fault(peer.rank, "died", 0.0)
        self._drop(peer, is_lost=True)
        return fault

    def _drop(self, peer: Connection, *, is_lost: bool) -> None:
        """Receive no more of a rank that has left this run; one that is lost leaves the later runs too."""
        del self._peers[peer.rank]
        self._ready.unregister(peer.socket)
        if is_lost:
            self._connections.drop(peer)

    def _overdue(self, now: float) -> Fault | None:
        """Return the fault of a rank that is beyond a limit: silent, failed or hanging; None where none is."""
        for peer in self._peers.values():
            if now - peer.received_at > self._silent_seconds:
                return self._fault(peer.rank, "is silent", now - peer.received_at)
        for rank, (left_at, superstep) in self._failed.items():
            if now - left_at > self._silent_seconds:
                return Fault(rank, self._hosts[rank], superstep, "failed", now - left_at)
        computed = [(peer.computing_seconds, peer.rank, peer.superstep) for peer in self._peers.values()]
        computed.append((self._computed(now), 0, self._superstep()))
        seconds, rank, superstep = max(computed, key=lambda report: report[0])
        is_over = seconds > self._superstep_seconds
        return Fault(rank, self._hosts[rank], superstep, "hangs", seconds) if is_over else None

    def _fault(self, rank: int, what: Literal["died", "is silent"], seconds: float) -> Fault:
        """Heartbeats may be old; but all ranks come as far as the one at fault, and none gets past it."""
        reported = [self._superstep(), *(peer.superstep for peer in self._peers.values())]
        superstep = max((s for s in reported if s is not None), default=None)
        return Fault(rank, self._hosts[rank], superstep, what, seconds)


def end_run(
    group: Group,
    fault: Fault,
    last_log: str | None,
    pass_on: Callable[[], None],
    watchdog: WatchdogConnection | None = None,
) -> None:
    """Write the fault to stderr, send it to other ranks, end all ranks with exit code 1. Does not return.

    Called on every rank, one reports: the others wait for a moment in which that one ends them. `pass_on` sends the
    fault to other ranks.
    """
    text = f"{fault.describe(last_log)}\n".encode()
    is_first = group.rank == (1 if fault.rank == 0 else 0)
    delay = 0.0 if is_first else min(1.5 + 0.05 * group.rank, 3.0)
    if is_first:  # before all else: the launcher ends this rank within a millisecond of a death
        _report(text, watchdog)
    threading.Timer(delay + _ABORT_SECONDS, os._exit, (1,)).start()
    pass_on()
    if not is_first:
        time.sleep(delay)
        _report(text, watchdog)
    sys.stdout.flush()
    time.sleep(0.1)  # the launcher passes on what was written, and an abort may overtake it
    getattr(group, "abort", os._exit)(1)
    os._exit(1)


def _report(text: bytes, watchdog: WatchdogConnection | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text)
    if watchdog is not None:
        watchdog.send(REPORTED)
