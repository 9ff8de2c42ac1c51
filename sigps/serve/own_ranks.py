"""Processes of a tenant's own code, each with a socket to the server: one, or ranks that `mpirun` starts."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sigps.errors import ConfigError
from sigps.serve.wire import FrameError, peer_uid, read_frame

__all__ = ["OwnProcesses", "check_launcher", "check_ranks", "forget_memory"]

_START_SECONDS = 60.0

_OF_LAUNCHERS = (
    *("PMI_", "PMIX_", "MPI_LOCAL", "HYDI_"),
    *("OMPI_COMM_", "OMPI_UNIVERSE_", "OMPI_FIRST_", "OMPI_APP_", "OMPI_NUM_", "OMPI_FILE_"),
)
"""How names of variables begin that a launcher gives its ranks; those by which a user tells it something stay."""


class OwnProcesses:
    """The processes of one job, from their start until none is left. `kill` may be called by any thread.

    Ranks are children of the launcher: they are known by descriptors, which name no other process later.

    Args:
        num_ranks: How many; with one there is no launcher.
        environment: Of the processes.

    Attributes:
        first: The child of this process: the only one, or the launcher.
        connections: A socket to each, once `connect` has returned, in any order.
    """

    def __init__(self, num_ranks: int, environment: Mapping[str, str]) -> None:
        self._num_ranks, self._began = num_ranks, time.time()
        self._pidfds: list[int] = []
        self._ranks: list[int] = []  # those of `_pidfds`
        self._listener: socket.socket | None = None
        # -P: a random.py that lies in the current folder is not Python's.
        command = [sys.executable, "-P", "-m", "sigps.serve.own_process"]
        about: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        if num_ranks == 1:
            ours, theirs = socket.socketpair()
            self.connections = [ours]
            with theirs:
                passed = theirs.fileno()
                self.first = subprocess.Popen(
                    [*command, str(passed), str(os.getpid())],
                    pass_fds=[passed],
                    env=environment,
                    start_new_session=True,
                    **about,
                )
            return
        self.connections = []
        name = f"sigps-{secrets.token_hex(16)}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{name}")  # which is in no folder, and ends with the socket
        self._listener.listen(num_ranks)
        self.first = subprocess.Popen(
            [_launcher(), "-n", str(num_ranks), *command, f"@{name}"],
            env={k: v for k, v in environment.items() if not k.startswith(_OF_LAUNCHERS)},
            start_new_session=True,
            **about,
        )

    def connect(self, ending: threading.Lock) -> None:
        """Wait until all ranks are connected.

        Args:
            ending: Held by whoever calls `kill`.

        Raises:
            ConnectionResetError: If the launcher has ended.
            FrameError: If one says that it is another rank than those of the job.
            TimeoutError: If they are not after a minute.
        """
        if self._listener is None:
            return
        while len(self._ranks) < self._num_ranks:
            ready = self.ready(_START_SECONDS, self._listener.fileno())
            if not ready:
                raise TimeoutError
            if self._listener.fileno() not in ready:
                raise ConnectionResetError
            connection, _ = self._listener.accept()
            size = struct.calcsize("3i")
            pid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0]
            if peer_uid(connection) != os.getuid():
                connection.close()
                continue
            with ending:
                self.connections.append(connection)
                self._pidfds.append(os.pidfd_open(pid))
            hello = read_frame(connection, _START_SECONDS)
            if hello is None:
                raise ConnectionResetError
            rank = hello.get("rank")
            if not isinstance(rank, int) or rank not in range(self._num_ranks) or rank in self._ranks:
                raise FrameError("the number of a rank that is none of the job's")
            self._ranks.append(rank)

    def ready(self, seconds: float | None, *others: int) -> list[int]:
        """Wait until one of the processes ends, or another descriptor can be read; return which can be.

        The ends are watched besides the sockets: what a process has forked keeps its end of one open.
        """
        first = os.pidfd_open(self.first.pid)
        try:
            waiting = select.poll()
            for descriptor in (first, *self._pidfds, *others):
                waiting.register(descriptor, select.POLLIN)
            return [found for found, _ in waiting.poll(None if seconds is None else 1000 * seconds)]
        finally:
            os.close(first)

    def ended_ranks(self, seconds: float = 0.0) -> list[int]:
        """Return the ranks that have ended, after waiting so long for a first; none where there is one process."""
        ended = set(self.ready(seconds))
        ranks = zip(self._ranks, self._pidfds[: len(self._ranks)], strict=True)
        return sorted(rank for rank, pidfd in ranks if pidfd in ended)

    def end_of_first(self) -> Any:
        """Return how `first` ended (`os.waitid`), without forgetting it; None where it runs."""
        return os.waitid(os.P_PID, self.first.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)

    def kill(self) -> None:
        """End all that runs of them, and what they started."""
        for pidfd in self._pidfds:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        # Not yet waited for, so that its number, also that of its group, is nobody else's.
        if self.first.returncode is None:
            os.killpg(self.first.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until none is left; after `kill`. They are forgotten then."""
        self.first.wait()
        for pidfd in self._pidfds:
            waiting = select.poll()
            waiting.register(pidfd, select.POLLIN)
            waiting.poll()
            os.close(pidfd)
        self._pidfds.clear()
        for connection in self.connections:
            connection.close()
        if self._listener is not None:
            self._listener.close()
            forget_memory(self._began)


def forget_memory(since: float) -> None:
    """Remove the names of memory that MPICH made for ranks that were killed before they had removed them.

    These are files of this user that no process has in its memory.

    Args:
        since: When the ranks began, in seconds since 1970: older files are not theirs.
    """
    for path in Path("/dev/shm").glob("mpich_shm_*"):
        with contextlib.suppress(OSError):
            about = path.stat()
            if about.st_uid == os.getuid() and about.st_ctime > since - 1.0 and not _is_mapped(path):
                path.unlink()


def _is_mapped(path: Path) -> bool:
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if str(path) in maps.read_text():
                return True
    return False


def check_launcher() -> None:
    """Check that ranks can be started.

    Raises:
        ConfigError: If there is no `mpirun`, or no mpi4py.
    """
    _launcher()
    if importlib.util.find_spec("mpi4py") is None:
        raise ConfigError("ranks= needs mpi4py: pip install 'sigps[mpi]'")


def check_ranks(ranks: Any) -> None:
    """Check a number of ranks.

    Raises:
        ConfigError: If it is none.
    """
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise ConfigError(f"ranks={ranks!r} must be a whole number, at least 1")


def _launcher() -> str:
    beside = Path(sys.executable).with_name("mpirun")
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None:
        raise ConfigError("ranks= needs mpirun, which is not in PATH: pip install 'sigps[mpi]'")
    return found
