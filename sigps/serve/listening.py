"""The Unix socket at which a server listens: one server a path, and what a killed one left is replaced."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from sigps.errors import ConfigError

__all__ = ["listening"]

_PATIENCE_SECONDS = 5.0  # for another server that is taking the socket


@contextlib.contextmanager
def listening(path: str) -> Iterator[socket.socket]:
    """Have a Unix socket at a path that only this user may use; what a killed server left there is replaced.

    Raises:
        ConfigError: If a server listens there, or the path cannot be used.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        try:
            with _only_one(Path(path).parent):
                _clear(path)
                listener.bind(path)
                os.chmod(path, 0o600)  # before it listens, so that nobody else can have connected
                listener.listen(64)
                own = os.stat(path)
        except OSError as error:
            raise ConfigError(
                f"no socket can be made at {path}: {error.strerror or error}. Give another: --socket"
            ) from None
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), own):
                    os.unlink(path)


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Let one process at a time take a socket in a folder; the system forgets it when the process ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _clear(path: str) -> None:
    """Remove a socket on which nobody listens."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigError(f"{path} is there and is no socket: give another, --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:  # it listens, and is busy
            pass
    raise ConfigError(
        f"a server listens at {path} already: end it, or give this one another socket, --socket"
    )
