"""The memory that this process may have: the machine's, or less where a container or a batch system limits it.

Limits are those of control groups, of version 1 or 2: the process's own group and the groups around it each have one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["available_memory", "machine_memory"]


def machine_memory() -> int:
    """Return how many bytes of memory this process and those beside it may have at most."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([installed, *(limit for limit, _ in _limits())])


def available_memory() -> int:
    """Return how many bytes can be allocated without swapping, as Linux estimates; 2**62 without an estimate."""
    try:
        with open(_PROC / "meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        free = 1 << 62
    return min([free, *(max(0, limit - used) for limit, used in _limits())])


_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_VERSION_1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
_VERSION_2 = "memory.max", "memory.current", "inactive_file"


def _limits() -> Iterator[tuple[int, int]]:
    """Yield of each group of this process its limit and what is used of it, in bytes, without what Linux can drop."""
    for line in _text(_PROC / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            root, names = _GROUPS / "memory", _VERSION_1
        elif not controllers:
            root, names = _GROUPS, _VERSION_2
        else:
            continue
        group = root / path.lstrip("/")
        # In a container the path may be that of the host: its own group is the root then.
        while group.is_relative_to(root):
            limit, used = (_text(group / name).strip() for name in names[:2])
            if limit.isdigit() and used.isdigit():
                stat = dict(row.split(maxsplit=1) for row in _text(group / "memory.stat").splitlines())
                yield int(limit), int(used) - int(stat.get(names[2], 0))
            group = group.parent


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
