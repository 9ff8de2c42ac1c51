"""The process above a server's worker: where the worker dies another takes its place, and jobs with a name go on.

The worker has the pool, its threads and the GPU, on which an illegal access ends all that a process can do there. It is
a fork of this process, which has imported what it needs, listens at the socket, and does nothing else: no threads, no
graph, no GPU. So a new worker answers without the second that imports take, and those who ask meanwhile wait.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import secrets
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from sigps.errors import ServerError, SigpsError
from sigps.extras import needs
from sigps.serve.listening import listening
from sigps.serve.own_code import KeptTables
from sigps.serve.pool_file import PoolFile
from sigps.serve.server import Server
from sigps.serve.wire import FrameError, error_of, read_frame, read_tables, reply_of, send_frame
from sigps.serve.workers import Kept

__all__ = ["keep_serving"]

log = logging.getLogger(__name__)

_TRIES = 3
"""Workers that a job with a name may outlive: it may be what ends them."""

_PR_SET_PDEATHSIG = 1


def keep_serving(file: PoolFile, announce: Callable[[Server | None, bool], None]) -> None:
    """Serve until SIGINT or SIGTERM, in a worker, and in others where that dies.

    Args:
        file: What to serve.
        announce: Called with None before graphs are read; in each worker when it answers, and, with True, when it is
            to end.

    Raises:
        ConfigError: If another server has the socket, or something else lies there.
        SigpsError: What a worker raised before it answered.
    """
    with needs("pyarrow"):
        import pyarrow  # noqa: F401  (what a worker would import first)

    import sigps.compiler.cpu.native
    import sigps.engine.cpu.engine
    import sigps.job.collect  # noqa: F401

    kept = Kept(secrets.token_hex(8))
    with listening(file.socket) as listener, _forwarding() as forward:
        announce(None, False)
        while True:
            ours, theirs = socket.socketpair()
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                ours.close()
                _work(file, listener, theirs, kept, announce)
            theirs.close()
            forward.to(pid)
            with ours:
                is_ready, failed, lost = _take_notes(ours, kept)
            status = os.waitpid(pid, 0)[1]
            forward.to(None)
            if failed is not None:
                raise error_of(failed)
            if status == 0 or forward.is_ending:
                return
            kept.why = lost or _how_it_ended(status)
            if not is_ready:
                raise ServerError(f"the server's worker ended before it answered: {kept.why}")
            log.warning("%s; another goes on with %d jobs that have names", kept.why, len(kept.named))
            kept.forget_after(_TRIES)


def _take_notes(notes: socket.socket, kept: Kept) -> tuple[bool, dict[str, Any] | None, str]:
    """Read what a worker says until it ends; return whether it answered, its error, and what it says of its GPU."""
    is_ready, failed, lost = False, None, ""
    with contextlib.suppress(FrameError, OSError):  # it was killed while it wrote
        while (note := read_frame(notes)) is not None:
            if note["do"] == "ready":
                is_ready = True
            elif note["do"] == "failed":
                failed = note
            elif note["do"] == "lost":
                lost = f"the GPU can be used no longer by the server's worker: {note['why']}"
            elif count := note.get("tables"):
                kept.take(note, KeptTables(read_tables(notes, count)))
            else:
                kept.take(note, note.get("reply"))
    return is_ready, failed, lost


def _work(
    file: PoolFile,
    listener: socket.socket,
    notes: socket.socket,
    kept: Kept,
    announce: Callable[[Server | None, bool], None],
) -> NoReturn:
    """Be a worker, and end this process."""
    code, parent = 1, os.getppid()
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal's group; the supervisor passes it on
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        with Server(file, listener, notes, kept) as server:

            def stop(*_: object) -> None:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends it at once
                server.stop()

            signal.signal(signal.SIGTERM, stop)
            announce(server, False)
            sys.stdout.flush()
            send_frame(notes, {"do": "ready"})
            server.serve()
            announce(server, True)
        code = 0
    except SigpsError as error:
        send_frame(notes, {"do": "failed", **reply_of(error)})
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _how_it_ended(status: int) -> str:
    number = os.waitstatus_to_exitcode(status)
    how = f"was killed by {signal.Signals(-number).name}" if number < 0 else f"ended with code {number}"
    return f"the server's worker {how}"


class _Forward:
    """Passes the end on to a worker.

    Attributes:
        is_ending: Whether the server is to end.
    """

    def __init__(self) -> None:
        self.is_ending = False
        self._pid: int | None = None

    def to(self, pid: int | None) -> None:
        self._pid = pid
        if self.is_ending:
            self._send()

    def end(self, *_: object) -> None:
        self.is_ending = True
        self._send()

    def _send(self) -> None:
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)


@contextlib.contextmanager
def _forwarding() -> Iterator[_Forward]:
    """Take SIGINT and SIGTERM in the block."""
    forward = _Forward()
    before = {number: signal.signal(number, forward.end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield forward
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
