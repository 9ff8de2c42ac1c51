"""The lock of a log folder: one job at a time writes there, and who comes second learns which it is.

The system releases it when the process of rank 0 ends, however that is; the file `.lock` stays, and names the last job.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from sigps.errors import StateLogError
from sigps.group import Group

__all__ = ["locked"]

log = logging.getLogger(__name__)

_NAME = ".lock"
_PATIENCE_SECONDS = 5.0  # for the ranks of a job that was killed to end


@contextlib.contextmanager
def locked(folder: Path, group: Group, program: str) -> Iterator[None]:
    """Have a log folder for this job in this block; rank 0 locks it. Entering is collective.

    Raises:
        StateLogError: If another job has it; names that job.
    """
    file, problem = None, ""
    if group.rank == 0:
        try:
            file = _taken(folder, f"{program}, process {os.getpid()} on host {platform.node()}")
        except StateLogError as error:
            problem = str(error)
    try:
        if problem := group.broadcast(problem):
            raise StateLogError(problem)
        yield
    finally:
        if file is not None:
            os.close(file)


def _taken(folder: Path, owner: str) -> int | None:
    """Return the locked file; None where the file system has no locks or the folder cannot be written, with a warning.

    Raises:
        StateLogError: If another job has it.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        log.warning("%s cannot be locked against other jobs: %s", folder, error.strerror)
        return None
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK:
                log.warning("%s cannot be locked against other jobs: %s", folder, error.strerror)
                break
            if time.monotonic() > deadline:
                other = os.pread(file, 1000, 0).decode(errors="replace").strip()
                os.close(file)
                raise StateLogError(
                    f"the log folder {folder} is in use by another job: {other}. Wait for its end, end it, or "
                    "give this job another folder (checkpoint.dir)"
                ) from None
        time.sleep(0.1)
    os.ftruncate(file, 0)
    os.pwrite(file, f"{owner}\n".encode(), 0)
    return file
