"""The memory that this process may have: the machine's, or less where a container or a batch system limits it.

Limits are those of control groups, of version 1 or 2: the process's own group and the groups around it each have one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from sigps.errors import ConfigError

__all__ = ["available_memory", "bytes_of", "machine_memory"]


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


def bytes_of(given: int | str, name: str) -> int:
    """Return bytes that are given as a number or as a text: 8GB is 8 * 10**9, 8GiB is 8 * 2**30.

    >>> bytes_of("1.5 GB", "host_memory"), bytes_of("2KiB", "host_memory"), bytes_of(7, "host_memory")
    (1500000000, 2048, 7)

    Raises:
        ConfigError: If it is neither, or not above 0; `name` is what it was given as.
    """
    found = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)B?\s*", given) if isinstance(given, str) else None
    )
    if found:
        base = 1024 if found[3] else 1000
        given = int(float(found[1]) * base ** " KMGT".index(found[2].upper() or " "))
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ConfigError(
            f"{name}={given!r} must be bytes above 0: a whole number, or a text such as '8GB' or '512MiB'"
        )
    return given


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
