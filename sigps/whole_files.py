"""Files and folders that are whole or absent: written under another name beside their own, synced, renamed.

That name begins with a dot and ends in `.tmp`. Its writer holds a lock on it, which ends with the process: so what a
dead process left is known, and goes when the same path is written next.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from sigps.errors import SigpsError
from sigps.group import Group, together

__all__ = ["sync", "write_folder", "write_whole"]

T = TypeVar("T")


def write_whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a file, and wait until it is on the disk; it replaces an older one, or a folder, when it is whole.

    Raises:
        OSError: If it cannot be written; an older file is left as it was.
    """
    _remove_abandoned(path)
    aside = _name_beside(path)
    try:
        with open(aside, "xb") as file:
            _lock(file.fileno())
            write(file)
            file.flush()
            os.fsync(file.fileno())
            _replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_folder(
    path: Path,
    group: Group,
    *,
    write: Callable[[Path], T],
    finish: Callable[[Path, list[T]], Any],
    prepare: Callable[[Path], Any] = lambda folder: None,
    problem: Callable[[OSError], SigpsError],
) -> None:
    """Write a folder together; it replaces an older one, or a file, when all is on the disk. Collective.

    Args:
        path: The folder, or a link to it; all ranks see it under this name.
        group: The ranks.
        write: Called on every rank with the folder to write to; syncs what it writes.
        finish: Called on rank 0 with that folder and what `write` returned on each rank.
        prepare: Called on rank 0 before.
        problem: Returns the error for an OSError.

    Raises:
        SigpsError: If it cannot be written on some rank; what was at the path is left as it was.
    """

    def on_all(work: Callable[[], Any]) -> Any:
        def explained() -> Any:
            try:
                return work()
            except OSError as error:
                raise problem(error) from error

        return together(explained, group)

    def on_first(work: Callable[[], Any]) -> None:
        on_all(lambda: work() if group.rank == 0 else None)

    def end() -> None:
        finish(aside, found)
        sync(aside)
        _replace(aside, path)

    path = Path(os.path.realpath(path))
    aside = path.with_name(group.broadcast(_name_beside(path).name))
    with contextlib.ExitStack() as stack:
        on_first(lambda: stack.enter_context(_folder_aside(aside, path)))
        on_first(lambda: prepare(aside))
        found = group.all_gather(on_all(lambda: write(aside)))
        on_first(end)


def sync(folder: Path) -> None:
    """Wait until a folder's entries are on the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _name_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


@contextlib.contextmanager
def _folder_aside(aside: Path, path: Path) -> Iterator[None]:
    """Make a folder that is locked, and removed at the end if it is still there."""
    _remove_abandoned(path)
    aside.mkdir()
    opened = os.open(aside, os.O_RDONLY)
    try:
        _lock(opened)
        yield
    finally:
        os.close(opened)
        shutil.rmtree(aside, ignore_errors=True)


def _replace(aside: Path, path: Path) -> None:
    """Rename a file or a folder to a path, in the place of what is there."""
    if aside.is_dir() or path.is_dir():  # a rename replaces files by files only
        old = _name_beside(path)
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, old)
        try:
            os.rename(aside, path)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.rename(old, path)
            raise
        _remove(old)
    else:
        os.replace(aside, path)
    sync(path.parent)


def _remove_abandoned(path: Path) -> None:
    """Remove what processes that have ended left of this path."""
    for aside in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 16}.tmp"):
        with contextlib.suppress(OSError):  # it is locked, or gone, or its file system has no locks
            opened = os.open(aside, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(aside)
            finally:
                os.close(opened)


def _lock(opened: int) -> None:
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
