"""The watchdog process: small, beside rank 0, it reports a death after which no rank lives long enough to do so.

A launcher ends all ranks within a millisecond of a death, and on busy cores no other rank gets to report it before.
The watchdog is in a session of its own, which the launcher does not end, and is connected with every rank. The system
closes a dead rank's connections before it notifies the launcher, so the first connection that closes is that of the
first rank that died.

It starts with Python's own modules alone (`_PROGRAM`), in some 50 ms for which the first run waits.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sigps.system.faults.fault import Fault

__all__ = ["BEGAN", "ENDED", "FAILED", "REPORTED", "Watchdog", "WatchdogConnection", "start_watchdog"]

READY = b"r"
"""What the watchdog sends to rank 0, once."""

BEGAN, ENDED, FAILED, REPORTED = b"b", b"e", b"f", b"s"
"""What a rank sends: it is in a run; it is in none; it left by an exception; it has reported a fault."""

_STATUS = struct.Struct("=qI")
"""The status record in memory that rank 0 writes: superstep or -1, bytes of the last log's name, then that name."""
_STATUS_BYTES = 8192
_PATIENCE_SECONDS = 5.0

_PROGRAM = """
import sys, types
for name, folder in zip(("sigps", "sigps.system", "sigps.system.faults"), sys.argv[1:4]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from sigps.system.faults.watchdog import main
main(sys.argv[4:])
"""


class WatchdogConnection:
    """A rank's end of the connection with the watchdog process. No call waits for that process but `close`.

    Args:
        connected: The socket.
        status_file: On rank 0, the descriptor of the file that holds the status record.
        process: On rank 0, the watchdog process.
    """

    def __init__(
        self,
        connected: socket.socket,
        status_file: int | None = None,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self._socket, self._process = connected, process
        self._status = None if status_file is None else mmap.mmap(status_file, _STATUS_BYTES)

    def send(self, event: bytes) -> None:
        """Send one of BEGAN, ENDED, FAILED, REPORTED."""
        with contextlib.suppress(OSError):  # the watchdog is gone: the run goes on without it
            self._socket.send(event)

    def record_superstep(self, superstep: int | None) -> None:
        """Write the run's superstep into the status record; without effect on ranks other than 0."""
        if self._status is not None:
            struct.pack_into("=q", self._status, 0, -1 if superstep is None else superstep)

    def record_log(self, last_log: str | None) -> None:
        """Write the log from which the run can go on into the status record; without effect on ranks other than 0."""
        if self._status is not None:
            name = os.fsencode(last_log or "")[: _STATUS_BYTES - _STATUS.size]
            self._status[_STATUS.size : _STATUS.size + len(name)] = name
            struct.pack_into("=I", self._status, 8, len(name))

    def close(self) -> None:
        """Close this end; the watchdog ends when all ends are closed, for which rank 0 waits up to 1 s."""
        self._socket.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)


def start_watchdog(connections: Mapping[int, socket.socket], hosts: Sequence[str]) -> WatchdogConnection:
    """Start the process with these connections; return rank 0's end once the process reads them.

    Args:
        connections: With each rank but 0; closed in this process, also where starting fails.
        hosts: The name of each rank's host, [size].

    Raises:
        OSError: If it cannot be started.
    """
    own, peer = socket.socketpair()
    with contextlib.ExitStack() as passed, contextlib.ExitStack() as failed:
        failed.callback(own.close)
        ends = {0: peer, **connections}
        for rank, connected in ends.items():
            passed.enter_context(connected)
            if rank > 0:  # a host that is lost closes no connection
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        status = passed.enter_context(tempfile.TemporaryFile())
        status.truncate(_STATUS_BYTES)
        descriptors = [status.fileno(), *(ends[rank].fileno() for rank in sorted(ends))]
        packages = [str(folder) for folder in reversed(Path(__file__).parents[:3])]
        arguments = [*packages, *map(str, descriptors), *hosts]
        process = subprocess.Popen(
            [sys.executable, "-ISc", _PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=True,
        )
        failed.callback(process.wait)
        failed.callback(process.kill)
        peer.close()
        own.settimeout(_PATIENCE_SECONDS)
        if own.recv(1) != READY:
            raise OSError("the watchdog did not start")
        failed.pop_all()
        return WatchdogConnection(own, status.fileno(), process)


class Watchdog:
    """What runs in the watchdog process: it reads each rank's connection until all are closed.

    Args:
        connections: One a rank, [size].
        hosts: The name of each rank's host, [size].
        status: The status record, which rank 0 writes.
    """

    def __init__(
        self, connections: Sequence[socket.socket], hosts: Sequence[str], status: mmap.mmap | bytearray
    ) -> None:
        self._open, self._hosts, self._status = dict(enumerate(connections)), hosts, status
        self._running: set[int] = set()
        self._dead: int | None = None
        self._is_over = False
        self._ready = selectors.DefaultSelector()
        for rank, connected in self._open.items():
            connected.setblocking(False)
            self._ready.register(connected, selectors.EVENT_READ, rank)

    def run(self) -> str | None:
        """Read until all connections are closed or nothing is left to report; return the report of a death."""
        while self._open and not self._is_over:
            self.receive()
        return None if self._dead is None or self._is_over else self._report(self._dead)

    def receive(self) -> None:
        """Wait until connections are readable or closed, and take them in that order.

        The selector returns them in the order in which they became readable. A closed one with unread events became
        readable by these, so it says nothing of when it closed. Therefore the first death is unknown where several
        are closed of which one had unread events, and where the first was in no run.
        """
        closed, is_in_order = [], True
        for key, _ in self._ready.select():
            rank = key.data
            events, is_open = self._read(rank)
            for event in events:
                if event in FAILED + REPORTED:
                    self._is_over = True
                elif event in BEGAN:
                    self._running.add(rank)
                else:
                    self._running.discard(rank)
            if not is_open:
                self._ready.unregister(self._open.pop(rank))
                closed.append(rank)
                is_in_order = is_in_order and not events
        if self._dead is None and closed:
            is_known = closed[0] in self._running and (is_in_order or len(closed) == 1)
            self._dead, self._is_over = closed[0], self._is_over or not is_known

    def _read(self, rank: int) -> tuple[bytes, bool]:
        """Return the events that a rank has sent, one byte each, and whether its connection is open."""
        events = b""
        while True:
            try:
                data = self._open[rank].recv(4096)
            except BlockingIOError:
                return events, True
            except OSError:
                return events, False
            if not data:
                return events, False
            events += data

    def _report(self, dead: int) -> str:
        superstep, length = _STATUS.unpack_from(self._status)
        last_log = os.fsdecode(bytes(self._status[_STATUS.size : _STATUS.size + length]))
        fault = Fault(dead, self._hosts[dead], None if superstep < 0 else superstep, "died")
        return fault.describe(last_log or None)


def main(arguments: Sequence[str]) -> None:
    """Run the watchdog.

    Args:
        arguments: The descriptors of the status file and of each rank's connection, then each rank's host.
    """
    size = (len(arguments) - 1) // 2
    status_file, *descriptors = map(int, arguments[: size + 1])
    connections = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    watchdog = Watchdog(connections, arguments[size + 1 :], mmap.mmap(status_file, _STATUS_BYTES))
    connections[0].send(READY)
    text = watchdog.run()
    if text is not None:
        with contextlib.suppress(OSError):
            os.write(2, f"{text}\n".encode())
