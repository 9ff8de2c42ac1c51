"""The account of seconds: lines that add up to the wall clock, each moment in the line that was entered last."""

from __future__ import annotations

import sys
import threading
import time
import types
from collections.abc import Iterator

import pytest

from sigps import account
from sigps.account import (
    begin_account,
    drawing,
    process_age,
    seconds_text,
    spans_since,
    spent_on,
    spent_since,
)


class Clock:
    """A clock that moves by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    hands = Clock()
    monkeypatch.setattr(account.time, "perf_counter", hands)
    begin_account()
    yield hands
    monkeypatch.undo()
    begin_account()


def nonzero(seconds: dict[account.Line, float]) -> dict[str, float]:
    return {line: spent for line, spent in seconds.items() if spent}


def test_a_line_inside_another_takes_nothing_twice(clock: Clock) -> None:
    clock.now += 1
    with spent_on("build"):
        clock.now += 10
        with spent_on("compile"):
            clock.now += 100
        clock.now += 1000
    clock.now += 10000
    assert nonzero(spent_since()) == {"rest": 10001, "build": 1010, "compile": 100}


def test_a_failure_ends_its_line(clock: Clock) -> None:
    def fail() -> None:
        with spent_on("load"):
            clock.now += 1
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        fail()
    clock.now += 2
    assert nonzero(spent_since()) == {"load": 1, "rest": 2}


def test_what_a_consumer_does_with_items_is_its_own(clock: Clock) -> None:
    def items() -> Iterator[int]:
        for i in range(3):
            clock.now += 1
            yield i

    with spent_on("build"):
        for _ in drawing("load", items()):
            clock.now += 10
    assert nonzero(spent_since()) == {"load": 3, "build": 30}


def test_a_part_of_a_run_has_an_account_of_its_own(clock: Clock) -> None:
    @spent_on("answer")
    def answer(seconds: float) -> float:
        clock.now += seconds
        return seconds

    assert answer(1) == 1
    before = spent_since()
    answer(2)
    assert nonzero(spent_since(before)) == {"answer": 2}
    assert nonzero(spent_since()) == {"answer": 3}


def test_threads_have_accounts_of_their_own(clock: Clock) -> None:
    found = []

    def other() -> None:
        with spent_on("load"):
            clock.now += 5
        found.append(nonzero(spent_since()))

    with spent_on("build"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [{"load": 5}]
    assert nonzero(spent_since()) == {"build": 5}


def test_a_process_is_older_than_its_account() -> None:
    before = process_age()
    time.sleep(0.03)
    assert 0 < before < process_age()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 us"),
        (1.5e-6, "1.50 us"),
        (0.0291, "29.1 ms"),
        (0.5, "500 ms"),
        (1, "1.00 s"),
        (3600, "3600 s"),
    ],
)
def test_seconds_text(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_spans_say_when(clock: Clock) -> None:
    clock.now = 110.0
    with spent_on("build"):
        clock.now = 111.0
        with spent_on("load"):
            clock.now = 113.0
            spent_since()  # looks, and divides nothing
            clock.now = 114.0
    clock.now = 120.0
    assert spans_since() == [("build", 110.0, 111.0), ("load", 111.0, 114.0)]
    assert spans_since(112.0) == [("load", 112.0, 114.0)]
    begin_account(import_seconds=2.0)
    assert spans_since() == [("import", 118.0, 120.0)]


def test_spans_of_a_long_process_are_those_of_a_plain_filter(clock: Clock) -> None:
    """Among 20,000 spans, some of no length and some that end together, from any moment on."""
    kept: list[account.Span] = []
    began = clock.now
    for number in range(20_000):
        with spent_on("build" if number % 3 else "rest"):
            clock.now += number % 5
        if number % 3 and number % 5:
            kept.append(("build", began, clock.now))
        began = clock.now
    last = kept[-1][2]
    for when in (last - 12_345.0, last - 100.0, last - 99.5, last - 1.0, last, last + 1.0):
        judged = [(line, max(begin, when), end) for line, begin, end in kept if end > when]
        assert merged(spans_since(when)) == merged(judged)


def merged(spans: list[account.Span]) -> list[account.Span]:
    """Return spans where one that begins as another of its line ends is part of it."""
    joined: list[account.Span] = []
    for line, begin, end in spans:
        if joined and joined[-1][0] == line and joined[-1][2] == begin:
            joined[-1] = (line, joined[-1][1], end)
        else:
            joined.append((line, begin, end))
    return joined


class Domain:
    """A domain of NVTX that keeps its open ranges."""

    def __init__(self) -> None:
        self.open: list[str] = []

    def get_event_attributes(self, message: str) -> str:
        return message

    def push_range(self, attributes: str) -> None:
        self.open.append(attributes)

    def pop_range(self) -> None:
        self.open.pop()


def test_a_profiler_gets_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain()
    nvtx = types.ModuleType("nvtx")
    nvtx.get_domain = lambda name: domain if name == "sigps" else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nvtx", nvtx)
    account._ranges.cache_clear()
    with spent_on("build"):
        assert domain.open == []  # no profiler is there
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "profiler.so")
    account._ranges.cache_clear()
    try:
        with spent_on("build"), spent_on("load"):
            assert domain.open == ["build", "load"]
        assert domain.open == []
    finally:
        account._ranges.cache_clear()
