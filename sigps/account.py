"""Where the time goes: an account of seconds in lines that add up to the wall clock.

    with spent_on("compile"):
        ...

Each moment of a thread belongs to the line that it entered last, so a line inside another takes nothing twice; what is
in no line is the `rest`.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, ParamSpec, TypeVar

__all__ = [
    "LINES",
    "Line",
    "Span",
    "begin_account",
    "drawing",
    "process_age",
    "seconds_text",
    "spans_since",
    "spent_on",
    "spent_since",
]

Line = Literal["import", "load", "build", "compile", "transfer", "supersteps", "answer", "rest"]

LINES: tuple[Line, ...] = (
    "import",
    "load",
    "build",
    "compile",
    "transfer",
    "supersteps",
    "answer",
    "rest",
)
"""Importing modules; reading or generating edges; building the graph, partitioning and laying it out; compiling, or
reading what was compiled; bringing the graph to a device; supersteps; collecting, printing and writing the result."""

Span = tuple[Line, float, float]
"""A line, and when it was entered and left, by `time.perf_counter()`."""

_MOST_SPANS = 1 << 14
"""That are kept; older ones go."""

P = ParamSpec("P")
T = TypeVar("T")


class _Account:
    """The account of one thread."""

    __slots__ = ("entered", "line", "seconds", "since", "spans")

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(LINES, 0.0)
        self.line: Line = "rest"
        self.since = self.entered = time.perf_counter()
        self.spans: deque[Span] = deque(maxlen=_MOST_SPANS)

    def enter(self, line: Line) -> None:
        before = self.line
        now = time.perf_counter()
        self.seconds[before] += now - self.since
        if now > self.entered:
            self.spans.append((before, self.entered, now))
        self.line, self.entered, self.since = line, now, now

    def settle(self) -> float:
        """Add to the line what was spent on it until now; return when that is."""
        now = time.perf_counter()
        self.seconds[self.line] += now - self.since
        self.since = now
        return now


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.account = _Account()


_of_thread = _OfThread()


class spent_on:  # noqa: N801  (used like a function)
    """What this thread does in a block, or in a function as its decorator, is spent on a line, but for lines inside."""

    __slots__ = ("_account", "_before", "_line")

    def __init__(self, line: Line) -> None:
        self._line = line

    def __enter__(self) -> None:
        self._account = account = _of_thread.account
        self._before = before = account.line
        if before != self._line:
            account.enter(self._line)
        if (ranges := _ranges()) is not None:
            ranges.push_range(ranges.get_event_attributes(message=self._line))

    def __exit__(self, *_: object) -> None:
        if self._before != self._line:
            self._account.enter(self._before)
        if (ranges := _ranges()) is not None:
            ranges.pop_range()

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function, each call of which is spent on the line."""

        @functools.wraps(function)
        def spent(*args: P.args, **options: P.kwargs) -> T:
            with spent_on(self._line):
                return function(*args, **options)

        return spent


@functools.cache
def _ranges() -> Any:
    """Return the domain of the ranges that a profiler such as Nsight Systems shows; None without one, or without nvtx.

    NVTX finds its profiler by an environment variable. Without one nvtx would be imported for nothing, in 0.1 s.
    """
    if "NVTX_INJECTION64_PATH" not in os.environ:
        return None
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx.get_domain("sigps")


def drawing(line: Line, items: Iterable[T]) -> Iterator[T]:
    """Yield items; making them is spent on a line, what the caller does with them is not."""
    source = iter(items)
    while True:
        with spent_on(line):
            try:
                item = next(source)
            except StopIteration:
                return
        yield item


def spent_since(before: Mapping[Line, float] | None = None) -> dict[Line, float]:
    """Return this thread's seconds by line, since an earlier such answer or since its account began.

    >>> before = spent_since()
    >>> with spent_on("build"):
    ...     pass
    >>> [line for line, seconds in spent_since(before).items() if seconds > 0]
    ['build', 'rest']
    """
    account = _of_thread.account
    account.settle()
    if before is None:
        return account.seconds.copy()
    return {line: seconds - before[line] for line, seconds in account.seconds.items()}


def spans_since(when: float = 0.0) -> list[Span]:
    """Return what this thread spent on which line and when, from a `time.perf_counter()` on; the last 16,384 spans.

    The time it takes is that of the spans it returns, not of all that are kept.

    >>> with spent_on("build"):
    ...     begun = time.perf_counter()
    >>> [line for line, _, _ in spans_since(begun)]
    ['build']
    """
    recent: list[Span] = []
    account = _of_thread.account
    # A span is kept when it ends, so they stand in the order of their ends: what is asked for is the tail.
    for line, begin, end in itertools.chain(
        [(account.line, account.entered, time.perf_counter())], reversed(account.spans)
    ):
        if end <= when:
            break
        if line != "rest":
            recent.append((line, max(begin, when), end))
    return recent[::-1]


def begin_account(import_seconds: float = 0.0) -> None:
    """Begin this thread's account anew, with what was spent on imports before."""
    _of_thread.account = account = _Account()
    account.seconds["import"] = import_seconds
    if import_seconds:
        account.spans.append(("import", account.since - import_seconds, account.since))


def process_age() -> float:
    """Return the seconds since this process was started, to a hundredth; 0 where Linux does not say."""
    try:
        with open("/proc/self/stat", "rb") as file:
            started = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)


def seconds_text(seconds: float) -> str:
    """Say a time for people, in three digits.

    Example:
        >>> seconds_text(0.00123)
        '1.23 ms'
    """
    unit, scale = next(
        (u, f) for u, f in (("s", 1.0), ("ms", 1e3), ("us", 1e6)) if seconds * f >= 1 or u == "us"
    )
    value = seconds * scale
    decimals = max(0, 3 - len(str(int(value))))
    return f"{value:.{decimals}f} {unit}"
