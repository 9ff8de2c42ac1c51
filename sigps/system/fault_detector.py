"""The fault detector: ranks watch each other, so that one that dies, stops or hangs ends the run, by name.

A collective waits for ever for a rank that does not come, and a launcher notices only processes that ended.
So rank 0 keeps a TCP connection with each other rank, over which both send heartbeats. A rank

    died        the connection closed without a goodbye
    is silent   no heartbeat for `silent_seconds`: stopped, or its host or network is lost
    hangs       has computed for longer than `superstep_seconds`, as its own heartbeats say
    failed      left by an exception, and the others are still there `silent_seconds` later

Who finds a fault passes it on: rank 0 to all, another to rank 0. What is done then is `on_fault`'s.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import platform
import secrets
import selectors
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgpack

from sigps.group import Group
from sigps.system.rendezvous import TOKEN_BYTES, accept_ranks, addresses_of, connect_to_master

__all__ = ["Fault", "FaultDetector", "end_run"]

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 5.0  # to take leave
_ABORT_SECONDS = 2.0

Superstep = int | Callable[[], int]
What = Literal["died", "is silent", "hangs", "failed"]


@dataclass(frozen=True)
class Fault:
    """What is wrong with one rank.

    Attributes:
        rank: The rank, counted from 0.
        host: Where it runs.
        superstep: Where it is as far as is known; None before the first.
        what: How it is at fault.
        seconds: Since when: without a heartbeat, computing, or gone by an exception; 0 for a death.
    """

    rank: int
    host: str
    superstep: int | None
    what: What
    seconds: float = 0.0

    def __str__(self) -> str:
        where = "before superstep 0" if self.superstep is None else f"in superstep {self.superstep}"
        how = {
            "died": "",
            "is silent": f": nothing was heard of it for {self.seconds:.1f} s",
            "hangs": f": it has computed for {self.seconds:.1f} s",
            "failed": f": it left {self.seconds:.1f} s ago, and the others wait for it",
        }[self.what]
        return f"rank {self.rank} on host {self.host} {self.what} {where}{how}"

    def describe(self, last_log: str | None) -> str:
        """Say what happened and from where the run can go on.

        >>> print(Fault(3, "n17", 41, "died").describe("log/20261121T190000-00000040"))
        rank 3 on host n17 died in superstep 41. The last log is log/20261121T190000-00000040: continue with --resume
        """
        rest = f"The last log is {last_log}: continue with --resume" if last_log else "No log was written."
        return f"{self}. {rest}"


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
        self._thread: threading.Thread | None = None
        if group.size == 1:
            return
        self._known = _known_links(group)
        self._known.runs += 1
        self._links, self._hosts = dict(self._known.links), self._known.hosts
        for link in self._links.values():
            link.begin(self._known.runs)
        if self._links:
            self._wake, self._waking = socket.socketpair()
            self._ready = selectors.DefaultSelector()
            self._thread = threading.Thread(target=self._run, name="fault detector", daemon=True)
            self._thread.start()

    def computing(self, superstep: Superstep) -> None:
        """Say that this rank computes from now on, and in which superstep, or what tells it."""
        self._own = (superstep, time.monotonic())

    def _superstep(self) -> int | None:
        superstep = self._own[0]
        return superstep() if callable(superstep) else superstep

    def waiting(self) -> None:
        """Say that this rank waits for others from now on: in a collective, however long it takes."""
        self._own = (self._own[0], None)

    def close(self) -> None:
        """Take leave of the others, who go on. Waits for no rank; a second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._is_closing = True
        with contextlib.suppress(OSError):
            self._waking.send(b"!")
        if thread is not threading.current_thread():
            thread.join(_PATIENCE_SECONDS)
        self._waking.close()
        if self._has_failed or thread.is_alive():
            self._known.close()

    def __enter__(self) -> FaultDetector:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._has_failed = kind is not None
        self.close()

    def _run(self) -> None:
        fault = None
        try:
            fault = self._watch()
            if fault is None:
                self._tell(
                    {"kind": "goodbye", "has_failed": self._has_failed, "superstep": self._superstep()}
                )
                return
            pass_on = functools.partial(self._tell, {"kind": "fault", "fault": vars(fault)})
            if self._on_fault is None:
                end_run(self._group, fault, self.last_log(), pass_on)
            else:
                pass_on()
                self._on_fault(fault)
        finally:
            self._wake.close()
            self._ready.close()
            if fault is not None:
                self._known.close()

    def _watch(self) -> Fault | None:
        """Send heartbeats and read those of others until `close` or a fault."""
        self._ready.register(self._wake, selectors.EVENT_READ)
        for link in self._links.values():
            self._ready.register(link.socket, selectors.EVENT_READ, link)
        fault, now, beat_at = None, time.monotonic(), 0.0
        while fault is None and not self._is_closing:
            if now >= beat_at:
                self._tell({"kind": "beat", "superstep": self._superstep(), "seconds": self._computed(now)})
                beat_at = now + self._interval
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

    def _hear(self, link: _Link, now: float) -> Fault | None:
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

    def _drop(self, link: _Link, *, is_lost: bool) -> None:
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

    def _fault(self, rank: int, what: What, seconds: float) -> Fault:
        """Heartbeats may be old; but all ranks come as far as the one at fault, and none gets past it."""
        heard = [self._superstep(), *(link.superstep for link in self._links.values())]
        superstep = max((s for s in heard if s is not None), default=None)
        return Fault(rank, self._hosts[rank], superstep, what, seconds)


def end_run(group: Group, fault: Fault, last_log: str | None, pass_on: Callable[[], None]) -> None:
    """Say what happened on stderr, pass the fault on, end all ranks with exit code 1. Does not return.

    Called on every rank, it speaks on one: the others wait for a moment in which that one ends them.
    """
    text = f"{fault.describe(last_log)}\n".encode()
    speaks_first = group.rank == (1 if fault.rank == 0 else 0)
    delay = 0.0 if speaks_first else min(1.5 + 0.05 * group.rank, 3.0)
    if speaks_first:
        _write(text)  # before all else: the launcher kills this rank within a millisecond of a death
    threading.Timer(delay + _ABORT_SECONDS, os._exit, (1,)).start()
    pass_on()
    if not speaks_first:
        time.sleep(delay)
        _write(text)
    sys.stdout.flush()
    time.sleep(0.1)  # the launcher passes on what was written, and an abort may overtake it
    getattr(group, "abort", os._exit)(1)
    os._exit(1)


def _write(text: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text)


class _Link:
    """A connection with one rank, for msgpack. Never blocks."""

    def __init__(self, rank: int, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rank, self.socket = rank, connection
        self._arrived, self._unsent = msgpack.Unpacker(), bytearray()
        self.begin(0)

    def begin(self, run: int) -> None:
        """Hear of this run alone: what of the one before is still on its way is dropped."""
        self._run = run
        self.heard_at = time.monotonic()
        self.superstep: int | None = None
        self.computing_seconds = 0.0

    def send(self, message: dict[str, Any]) -> None:
        """Send, or keep until the next call what does not fit; a peer far behind is told no more."""
        if len(self._unsent) < 1 << 14:
            self._unsent += msgpack.packb(message | {"run": self._run})
        with contextlib.suppress(OSError):  # full, or the peer is gone: reading tells which
            del self._unsent[: self.socket.send(self._unsent)]

    def receive(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the messages that have arrived, and whether more can come."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return [], True
        except OSError:
            return [], False
        self._arrived.feed(data)
        return [message for message in self._arrived if message["run"] == self._run], bool(data)


class _Known:
    """The connections of a group's ranks, which stay from run to run.

    Attributes:
        links: This rank's, by rank.
        hosts: By rank.
        runs: How many have used them.
    """

    def __init__(self, links: dict[int, _Link], hosts: list[str], num_expected: int) -> None:
        self.links, self.hosts, self.runs = links, hosts, 0
        self._num_expected = num_expected

    @property
    def is_whole(self) -> bool:
        return len(self.links) == self._num_expected

    def drop(self, link: _Link) -> None:
        """Close one, which no run can use any more."""
        self.links.pop(link.rank, None)
        link.socket.close()

    def close(self) -> None:
        """Close all."""
        for link in list(self.links.values()):
            self.drop(link)


_known: weakref.WeakKeyDictionary[Group, _Known] = weakref.WeakKeyDictionary()


def _known_links(group: Group) -> _Known:
    """Return connections that all ranks have, made anew where one has lost some. Collective."""
    known = _known.get(group)
    if not all(group.all_gather(known is not None and known.is_whole)):
        if known is not None:
            known.close()
        links, hosts = _open_links(group)
        known = _known[group] = _Known(links, hosts, 1 if group.rank else group.size - 1)
        weakref.finalize(group, known.close)
    assert known is not None
    return known


def _open_links(group: Group) -> tuple[dict[int, _Link], list[str]]:
    """Connect rank 0 with the others. Collective; returns the links of this rank and the hosts by rank."""
    hosts = group.all_gather(platform.node())
    door, problem, sockets = None, "", dict[int, socket.socket]()
    with contextlib.ExitStack() as listening:
        try:
            if group.rank == 0:
                address = "127.0.0.1" if len(set(hosts)) == 1 else ""
                listener = listening.enter_context(socket.create_server((address, 0), backlog=group.size))
                token = secrets.token_bytes(2 * TOKEN_BYTES)
                door = {"addresses": addresses_of(hosts), "port": listener.getsockname()[1], "token": token}
        except OSError as error:
            problem = f"rank 0 cannot listen: {error}"
        door = group.broadcast(door)
        try:
            if door is not None and group.rank == 0:
                sockets = accept_ranks(listener, door["token"], group.size)
            elif door is not None:
                sockets = {0: connect_to_master(**door, rank=group.rank)}
        except OSError as error:
            problem = f"rank {group.rank} cannot connect with rank 0: {error}"
        problems = group.all_gather(problem)
    for rank in [rank for rank in sockets if problems[rank]]:
        sockets.pop(rank).close()  # it came too late, and that rank has given up
    if group.rank == 0 and any(problems):
        text = "ranks cannot watch each other: %s; the launcher alone notices a dead rank"
        log.warning(text, next(filter(None, problems)))
    return {rank: _Link(rank, connection) for rank, connection in sockets.items()}, hosts
