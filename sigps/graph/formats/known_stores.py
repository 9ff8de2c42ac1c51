"""Native stores whose checksums were right when they were opened before, and whose files have not changed since.

Files are known by what the file system says of them: device, inode, size, and the times of the last changes, one of
which no program can set. So a store is read whole once, and again when a file of it was written, replaced or copied;
what a disk loses by itself changes no times, and is left to `verify="full"`. Kept in the cache of compiled code, which
is the user's alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sigps.group import Group
from sigps.native import cache

__all__ = ["FileStates", "is_known", "remember", "states_of"]

FileStates = list[tuple[int, int, int, int, int]]
"""Of each file its device, inode, size, and the times of the last change of content and of anything, in nanoseconds."""


def states_of(files: Iterable[Path]) -> FileStates:
    """Return the states of files."""
    found = [os.stat(file) for file in files]
    return [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in found]


def is_known(states: FileStates, group: Group) -> bool:
    """Return whether all ranks have the same files, in this state remembered where each rank is. Collective."""
    # A device has other numbers on other hosts; and what crosses ranks comes back as lists.
    same_files = [list(state[1:]) for state in states]
    known = all(other == same_files for other in group.all_gather(same_files)) and cache.read(_key(states))
    return bool(group.all_reduce(np.array([int(known is True)]), "min")[0])


def remember(states: FileStates) -> None:
    """Remember files whose checksums were right, unless a change to come could bear the time of the last one."""
    if time.time_ns() - max(state[-1] for state in states) > _COARSEST_NS:
        cache.write(_key(states), True)


_COARSEST_NS = 2_000_000_000  # the coarsest clock of a file system in use


def _key(states: FileStates) -> str:
    return f"undamaged store {states}"
