"""The account of seconds: lines that add up to the wall clock, each moment in the line that was entered last."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from sigps import account
from sigps.account import begin_account, drawing, process_age, seconds_text, spent_on, spent_since


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
