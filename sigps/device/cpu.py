"""The CPU as a device: its cores, and a pool of threads for compiled loops."""

from __future__ import annotations

import functools
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Threads", "available_cores"]


def available_cores() -> int:
    """Return how many cores this process may use: its affinity, and a container's quota where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota_of_container()))


@functools.cache  # it is asked for in every run
def _quota_of_container() -> int:
    """Return the cores that a container is given, a number that none reaches where there is no limit."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return round(int(quota) / int(period)) if quota != "max" else 1 << 30
    except (OSError, ValueError):
        return 1 << 30


class Threads:
    """A pool of threads for loops that release the interpreter lock. Close it, or use it in a `with`.

    Threads are started by the first `map` that needs them: starting dozens takes milliseconds. The thread that calls
    `map` runs tasks too, and does not wait for threads that have taken none: a short `map` ends before they wake up.
    """

    def __init__(self, count: int) -> None:
        self.count = max(1, count)
        self._rounds: queue.SimpleQueue[_Round | None] = queue.SimpleQueue()
        self._others: list[threading.Thread] = []
        self._starting = threading.Lock()

    def map(self, function: Callable[..., Any], tasks: Sequence[Any]) -> list[Any]:
        """Call `function(task)` for every task and return the results in order; waits for all.

        If calls raise, the error of the first such task is raised here; later tasks may have run by then. An error
        that is no `Exception`, such as KeyboardInterrupt, stops further tasks from starting.
        """
        if self.count == 1 or len(tasks) < 2:
            return [function(task) for task in tasks]
        work, num_others = _Round(function, tasks), min(len(tasks), self.count) - 1
        self._start(num_others)
        for _ in range(num_others):
            self._rounds.put(work)
        work.take_part()
        return work.results()

    def close(self) -> None:
        for _ in self._others:
            self._rounds.put(None)
        for thread in self._others:
            thread.join()
        self._others = []

    def _start(self, num_others: int) -> None:
        with self._starting:
            while len(self._others) < num_others:
                name = f"sigps_{len(self._others) + 1}"
                thread = threading.Thread(target=self._serve, name=name, daemon=True)
                thread.start()
                self._others.append(thread)

    def _serve(self) -> None:
        while (work := self._rounds.get()) is not None:
            work.take_part()
            del work  # otherwise the tasks' arrays are kept until the next round

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class _Round:
    """The tasks of one `map`; each thread that takes part runs the next one until none is left."""

    def __init__(self, function: Callable[..., Any], tasks: Sequence[Any]) -> None:
        self._function, self._tasks = function, tasks
        self._results: list[Any] = [None] * len(tasks)
        self._errors: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        self._next, self._left = 0, len(tasks)
        self._is_done = threading.Lock()
        self._is_done.acquire()

    def take_part(self) -> None:
        """Run tasks that no thread has taken, until none is left."""
        while (i := self._take()) is not None:
            try:
                self._results[i] = self._function(self._tasks[i])
            except BaseException as error:  # raised in the thread that called `map`
                self._errors[i] = error
                if not isinstance(error, Exception):
                    self._drop_remaining()
            with self._lock:
                self._left -= 1
                is_last = self._left == 0
            if is_last:
                self._is_done.release()

    def results(self) -> list[Any]:
        """Wait until all tasks have ended; return their results."""
        self._is_done.acquire()
        if self._errors:
            raise self._errors[min(self._errors)]
        return self._results

    def _drop_remaining(self) -> None:
        with self._lock:
            self._left -= len(self._tasks) - self._next
            self._next = len(self._tasks)

    def _take(self) -> int | None:
        with self._lock:
            if self._next == len(self._tasks):
                return None
            self._next += 1
            return self._next - 1
