"""The connections over which ranks watch each other: TCP between rank 0 and each other rank, for msgpack.

They stay from run to run of a group, and are made anew after a failure.
"""

from __future__ import annotations

import contextlib
import logging
import platform
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import msgpack

from sigps.group import Group
from sigps.system.faults.rendezvous import TOKEN_BYTES, accept_ranks, addresses_of, connect_to_master
from sigps.system.faults.watchdog import Watchdog, start_watchdog

__all__ = ["Link", "Links", "links_of"]

log = logging.getLogger(__name__)

Work = Callable[[], None]

_MOMENT_SECONDS = 0.05


class Link:
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


class Lookout:
    """A thread that stays from run to run. It takes up what a run offers, unless that is over in a moment.

    So a short run costs no switch between threads. Between runs it looks once a moment.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offered: Work | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="fault detector", daemon=True)
        self._thread.start()

    def offer(self, work: Work) -> None:
        """Let the thread do something, from a moment on."""
        with self._lock:
            self._offered = work

    def withdraw(self) -> bool:
        """Take back what was offered; False where the thread has begun with it, or done it."""
        with self._lock:
            offered, self._offered = self._offered, None
        return offered is not None

    def is_here(self) -> bool:
        """Tell whether this is the thread."""
        return threading.current_thread() is self._thread

    def end(self) -> None:
        """Let the thread end, in a moment."""
        self._is_over = True

    def _run(self) -> None:
        while not self._is_over:
            time.sleep(_MOMENT_SECONDS)
            with self._lock:
                work, self._offered = self._offered, None
            if work is not None:
                try:
                    work()
                except Exception:  # later runs need this thread
                    log.exception("the fault detector failed; this run is not watched any more")


class Links:
    """The connections of a group's ranks, which stay from run to run.

    Attributes:
        links: This rank's, by rank.
        hosts: By rank.
        runs: How many have used them.
        watchdog: Who tells of a death that no rank outlives.
        monitor: The thread that watches.
        waking, wake: What wakes it.
    """

    def __init__(
        self, links: dict[int, Link], hosts: list[str], num_expected: int, watchdog: Watchdog | None
    ) -> None:
        self.links, self.hosts, self.runs, self.watchdog = links, hosts, 0, watchdog
        self._num_expected = num_expected
        self.monitor = Lookout()
        self.wake, self.waking = socket.socketpair()
        self.wake.setblocking(False)

    @property
    def is_whole(self) -> bool:
        return len(self.links) == self._num_expected

    def drop(self, link: Link) -> None:
        """Close one, which no run can use any more."""
        self.links.pop(link.rank, None)
        link.socket.close()

    def close(self) -> None:
        """Close all."""
        for link in list(self.links.values()):
            self.drop(link)
        self.monitor.end()
        for end in (self.wake, self.waking):
            end.close()
        watchdog, self.watchdog = self.watchdog, None
        if watchdog is not None:
            watchdog.close()


_known: weakref.WeakKeyDictionary[Group, Links] = weakref.WeakKeyDictionary()


def links_of(group: Group) -> Links:
    """Return connections that all ranks have, made anew where one has lost some. Collective.

    Ranks that a launcher can end get a watchdog too.
    """
    known = _known.get(group)
    if not all(group.all_gather(known is not None and known.is_whole)):
        if known is not None:
            known.close()
        hosts = group.all_gather(platform.node())
        sockets, problem = _meet(group, hosts)
        if group.rank == 0 and problem:
            text = "ranks cannot watch each other: %s; the launcher alone notices a dead rank"
            log.warning(text, problem)
        links = {rank: Link(rank, connection) for rank, connection in sockets.items()}
        watchdog = _find_watchdog(group, hosts) if hasattr(group, "abort") and not problem else None
        known = _known[group] = Links(links, hosts, 1 if group.rank else group.size - 1, watchdog)
        weakref.finalize(group, known.close)
    assert known is not None
    return known


def _find_watchdog(group: Group, hosts: list[str]) -> Watchdog | None:
    """Connect all ranks with a watchdog that rank 0 starts; None where that cannot be. Collective."""
    sockets, problem = _meet(group, hosts)
    watchdog = None
    if not problem and group.rank == 0:
        try:
            watchdog = start_watchdog(sockets, hosts)
        except OSError as error:
            problem = str(error)
    elif not problem:
        watchdog = Watchdog(sockets[0])
    if problem:
        log.debug("nobody watchdogs the end of all ranks: %s", problem)
        for connection in sockets.values():
            connection.close()
    group.barrier()  # it watches before anybody tells it anything
    return watchdog


def _meet(group: Group, hosts: list[str]) -> tuple[dict[int, socket.socket], str]:
    """Connect rank 0 with the others. Collective; returns the sockets of this rank, and what failed on any."""
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
    return sockets, next(filter(None, problems), "")
