"""The watchdog: a small process beside rank 0 that tells who died where no rank lives long enough to.

A launcher ends all ranks within a millisecond of a death, and on busy cores no other rank gets to speak before. The
watchdog is in a session of its own, so it lives on, and it is connected with every rank. The system closes a dead
rank's connections before it lets the launcher know, so who closed first is who died first.

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

__all__ = ["BEGUN", "ENDED", "FAILED", "SPOKEN", "Watch", "Watchdog", "start_watchdog"]

READY = b"r"
"""What the watchdog tells rank 0, once."""

BEGUN, ENDED, FAILED, SPOKEN = b"b", b"e", b"f", b"s"
"""What a rank tells: it is in a run; it is in none; it left by an exception; it has told what is wrong."""

_NOTE = struct.Struct("=qI")  # superstep or -1, bytes of the last log's name behind it
_NOTE_BYTES = 8192
_PATIENCE_SECONDS = 5.0

_PROGRAM = """
import sys, types
for name, folder in zip(("sigps", "sigps.system", "sigps.system.faults"), sys.argv[1:4]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from sigps.system.faults.watchdog import main
main(sys.argv[4:])
"""


class Watchdog:
    """A rank's end of the connection with the watchdog.

    Args:
        connection: The connection.
        room: On rank 0, what the watchdog reads: a file's descriptor.
        process: On rank 0, the watchdog.
    """

    def __init__(
        self,
        connection: socket.socket,
        room: int | None = None,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self._connection, self._process = connection, process
        self._note = None if room is None else mmap.mmap(room, _NOTE_BYTES)

    def tell(self, what: bytes) -> None:
        """Tell one of BEGUN, ENDED, FAILED, SPOKEN."""
        with contextlib.suppress(OSError):  # it is gone: then nobody speaks for the dead
            self._connection.send(what)

    def note(self, superstep: int | None) -> None:
        """Keep in which superstep the run is. Rank 0's is the run's; others' is dropped."""
        if self._note is not None:
            struct.pack_into("=q", self._note, 0, -1 if superstep is None else superstep)

    def note_log(self, last_log: str | None) -> None:
        """Keep from which log the run could go on."""
        if self._note is not None:
            name = os.fsencode(last_log or "")[: _NOTE_BYTES - _NOTE.size]
            self._note[_NOTE.size : _NOTE.size + len(name)] = name
            struct.pack_into("=I", self._note, 8, len(name))

    def close(self) -> None:
        """End the connection; the watchdog ends when all have."""
        self._connection.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)


def start_watchdog(connections: Mapping[int, socket.socket], hosts: Sequence[str]) -> Watchdog:
    """Start the process and give it these connections; return rank 0's end once it watches.

    Args:
        connections: With each rank but 0; they are the watchdog's from now on.
        hosts: By rank.

    Raises:
        OSError: If it cannot be started.
    """
    own, peer = socket.socketpair()
    with contextlib.ExitStack() as given, contextlib.ExitStack() as failed:
        failed.callback(own.close)
        ends = {0: peer, **connections}
        for rank, connection in ends.items():
            given.enter_context(connection)
            if rank > 0:  # a host that is lost says nothing
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        room = given.enter_context(tempfile.TemporaryFile())
        room.truncate(_NOTE_BYTES)
        descriptors = [room.fileno(), *(ends[rank].fileno() for rank in sorted(ends))]
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
        return Watchdog(own, room.fileno(), process)


class Watch:
    """What the watchdog knows of the ranks.

    Args:
        connections: By rank.
        hosts: By rank.
        note: What rank 0 notes.
    """

    def __init__(
        self, connections: Sequence[socket.socket], hosts: Sequence[str], note: mmap.mmap | bytearray
    ) -> None:
        self._open, self._hosts, self._note = dict(enumerate(connections)), hosts, note
        self._running: set[int] = set()
        self._dead: int | None = None
        self._is_over = False
        self._ready = selectors.DefaultSelector()
        for rank, connection in self._open.items():
            connection.setblocking(False)
            self._ready.register(connection, selectors.EVENT_READ, rank)

    def run(self) -> str | None:
        """Watch until all are gone, or one has said what there is to say; return what nobody can say any more."""
        while self._open and not self._is_over:
            self.hear()
        return None if self._dead is None or self._is_over else self._testimony(self._dead)

    def hear(self) -> None:
        """Wait until ranks have told something or are gone; take it in the order in which it came.

        A rank that is gone and had told something before, unread, has its place in that order for what it told. So
        among several that are gone then, nobody knows who was first; nor where a rank is gone that was in no run.
        """
        gone, is_in_order = [], True
        for key, _ in self._ready.select():
            rank = key.data
            told, is_open = self._read(rank)
            for what in told:
                if what in FAILED + SPOKEN:
                    self._is_over = True
                elif what in BEGUN:
                    self._running.add(rank)
                else:
                    self._running.discard(rank)
            if not is_open:
                self._ready.unregister(self._open.pop(rank))
                gone.append(rank)
                is_in_order = is_in_order and not told
        if self._dead is None and gone:
            is_known = gone[0] in self._running and (is_in_order or len(gone) == 1)
            self._dead, self._is_over = gone[0], self._is_over or not is_known

    def _read(self, rank: int) -> tuple[bytes, bool]:
        """Return what a rank has told, and whether it can tell more."""
        told = b""
        while True:
            try:
                data = self._open[rank].recv(4096)
            except BlockingIOError:
                return told, True
            except OSError:
                return told, False
            if not data:
                return told, False
            told += data

    def _testimony(self, dead: int) -> str:
        superstep, length = _NOTE.unpack_from(self._note)
        last_log = os.fsdecode(bytes(self._note[_NOTE.size : _NOTE.size + length]))
        fault = Fault(dead, self._hosts[dead], None if superstep < 0 else superstep, "died")
        return fault.describe(last_log or None)


def main(arguments: Sequence[str]) -> None:
    """Be the watchdog. Arguments: descriptors of the note and of each rank's connection, then each rank's host."""
    size = (len(arguments) - 1) // 2
    room, *descriptors = map(int, arguments[: size + 1])
    connections = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    watch = Watch(connections, arguments[size + 1 :], mmap.mmap(room, _NOTE_BYTES))
    connections[0].send(READY)
    text = watch.run()
    if text is not None:
        with contextlib.suppress(OSError):
            os.write(2, f"{text}\n".encode())
