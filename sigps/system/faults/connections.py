"""The connections over which ranks watch each other: TCP between rank 0 and each other rank, for msgpack.

They stay from run to run of a group, and are made anew after a failure.
"""

from __future__ import annotations

import contextlib
import logging
import platform
import socket
import time
import weakref
from typing import Any

import msgpack

from sigps.group import Group
from sigps.system.faults.monitor import MonitorThread
from sigps.system.faults.rendezvous import connect_ranks
from sigps.system.faults.watchdog import WatchdogConnection, start_watchdog

__all__ = ["Connection", "Connections", "connections_of"]

log = logging.getLogger(__name__)

_MOST_UNSENT_BYTES = 1 << 14


class Connection:
    """A connection with one rank, for msgpack. Never blocks.

    Attributes:
        rank: The rank at the other end.
        socket: The socket, for a selector.
        received_at: When its last message arrived, by `time.monotonic()`.
        superstep: The superstep that it is in, by its last heartbeat.
        computing_seconds: How long it has computed at a stretch, by its last heartbeat.
    """

    def __init__(self, rank: int, connected: socket.socket) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rank, self.socket = rank, connected
        self._arrived, self._unsent = msgpack.Unpacker(), bytearray()
        self.begin(0)

    def begin(self, run: int) -> None:
        """Receive messages of this run alone; those of an earlier run that still arrive are dropped."""
        self._run = run
        self.received_at = time.monotonic()
        self.superstep: int | None = None
        self.computing_seconds = 0.0

    def send(self, message: dict[str, Any]) -> None:
        """Send what the socket takes, and keep the rest for the next call.

        While more than `_MOST_UNSENT_BYTES` are kept, new messages are dropped.
        """
        if len(self._unsent) < _MOST_UNSENT_BYTES:
            self._unsent += msgpack.packb(message | {"run": self._run})
        with contextlib.suppress(OSError):  # full, or the peer is gone, which `receive` returns
            del self._unsent[: self.socket.send(self._unsent)]

    def receive(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the messages of this run that have arrived, and whether the connection is open."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return [], True
        except OSError:
            return [], False
        self._arrived.feed(data)
        return [message for message in self._arrived if message["run"] == self._run], bool(data)


class Connections:
    """One rank's connections with the others of its group, which stay from run to run.

    Attributes:
        by_rank: Rank 0's with each other rank; another rank's with rank 0.
        hosts: The name of each rank's host, [size].
        num_runs: How many runs have used them.
        watchdog: This rank's connection with the watchdog process; None where there is none.
        monitor: The thread that runs the detector.
        wake, waking: A byte written to `waking` ends the monitor thread's wait on `wake`.
    """

    def __init__(
        self,
        by_rank: dict[int, Connection],
        hosts: list[str],
        num_expected: int,
        watchdog: WatchdogConnection | None,
    ) -> None:
        self.by_rank, self.hosts, self.num_runs, self.watchdog = by_rank, hosts, 0, watchdog
        self._num_expected = num_expected
        self.monitor = MonitorThread()
        self.wake, self.waking = socket.socketpair()
        self.wake.setblocking(False)

    @property
    def is_whole(self) -> bool:
        return len(self.by_rank) == self._num_expected

    def drop(self, connection: Connection) -> None:
        """Close one, so that no later run uses it."""
        self.by_rank.pop(connection.rank, None)
        connection.socket.close()

    def close(self) -> None:
        """Close all, and end the monitor thread."""
        for connection in list(self.by_rank.values()):
            self.drop(connection)
        self.monitor.end()
        for end in (self.wake, self.waking):
            end.close()
        watchdog, self.watchdog = self.watchdog, None
        if watchdog is not None:
            watchdog.close()


_kept: weakref.WeakKeyDictionary[Group, Connections] = weakref.WeakKeyDictionary()


def connections_of(group: Group) -> Connections:
    """Return this rank's connections; on all ranks they are made anew where one has lost some. Collective.

    Ranks that a launcher started also get a watchdog process.
    """
    kept = _kept.get(group)
    if not all(group.all_gather(kept is not None and kept.is_whole)):
        if kept is not None:
            kept.close()
        hosts = group.all_gather(platform.node())
        sockets, problem = connect_ranks(group, hosts)
        if group.rank == 0 and problem:
            text = "ranks cannot watch each other: %s; the launcher alone notices a dead rank"
            log.warning(text, problem)
        by_rank = {rank: Connection(rank, connected) for rank, connected in sockets.items()}
        watchdog = _connect_watchdog(group, hosts) if hasattr(group, "abort") and not problem else None
        kept = _kept[group] = Connections(by_rank, hosts, 1 if group.rank else group.size - 1, watchdog)
        weakref.finalize(group, kept.close)
    assert kept is not None
    return kept


def _connect_watchdog(group: Group, hosts: list[str]) -> WatchdogConnection | None:
    """Connect all ranks with a watchdog process that rank 0 starts; None where that fails. Collective."""
    sockets, problem = connect_ranks(group, hosts)
    watchdog = None
    if not problem and group.rank == 0:
        try:
            watchdog = start_watchdog(sockets, hosts)
        except OSError as error:
            problem = str(error)
    elif not problem:
        watchdog = WatchdogConnection(sockets[0])
    if problem:
        log.debug("there is no watchdog process: %s", problem)
        for connected in sockets.values():
            connected.close()
    group.barrier()  # no rank sends to it before it reads
    return watchdog
