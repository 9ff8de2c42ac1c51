"""The CPU as a device: how many threads this rank may use, and running a loop on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Threads", "available_cores", "available_memory"]


def available_cores() -> int:
    """Return how many cores this process may use: its affinity, and a container's quota where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, round(int(quota) / int(period))))


def available_memory() -> int:
    """Return how many bytes can be taken without swapping, as Linux estimates; very many where it does not say."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 1 << 62


class Threads:
    """A fixed crew of threads for loops that release the interpreter lock. Close it, or use it in a `with`."""

    def __init__(self, count: int) -> None:
        self.count = max(1, count)
        self._pool = ThreadPoolExecutor(self.count, "sigps") if self.count > 1 else None

    def map(self, function: Callable[..., Any], tasks: Sequence[Any]) -> list[Any]:
        """Call `function(task)` for every task and return the results in order; waits for all."""
        if self._pool is None or len(tasks) == 1:
            return [function(task) for task in tasks]
        return list(self._pool.map(function, tasks))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
