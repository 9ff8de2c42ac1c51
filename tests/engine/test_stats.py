"""The log of a run's supersteps: a list of records to its readers, whatever it is made of."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sigps import Result
from sigps.engine.stats import Outcome, StatsLog, SuperstepStats
from sigps.kernels.cuda.lease import STATS
from sigps.kernels.direction import PULL, PUSH

NAMES = {PULL: "pull", PUSH: "push"}


def records(first: int, count: int) -> list[SuperstepStats]:
    """Return supersteps that could have been counted on a device."""
    return [
        SuperstepStats(
            *(s, "push" if s % 3 else "pull", 10 * s, 2**40 + s, 3 * s, s * 1000 * 1e-9, 1.0 + s / 8),
            bytes_read=7 * s,
            blocks_skipped=s % 5,
        )
        for s in range(first, first + count)
    ]


def rows(first: int, count: int) -> NDArray[Any]:
    """Return the same supersteps as a device counts them."""
    counted = [
        (s, PUSH if s % 3 else PULL, 10 * s, 2**40 + s, s * 1000, 3 * s, 1.0 + s / 8, s % 5, 7 * s)
        for s in range(first, first + count)
    ]
    return np.array(counted, dtype=STATS)


def test_rows_are_the_same_as_records() -> None:
    log = StatsLog()
    log.append_rows(rows(0, 7), NAMES)
    assert log == records(0, 7)
    assert records(0, 7) == log
    types = [int, str, int, int, int, float, float, int, int, int, int]
    assert [type(value) for value in vars(log[3]).values()] == types


@given(st.lists(st.tuples(st.sampled_from(["append", "extend", "rows", "log"]), st.integers(0, 4))))
def test_however_it_grew_it_is_the_list(steps: list[tuple[str, int]]) -> None:
    log, slow = StatsLog(), list[SuperstepStats]()
    for how, count in steps:
        given = records(len(slow), count)
        match how:
            case "append":
                given = records(len(slow), 1)
                log.append(given[0])
            case "extend":
                log.extend(given)
            case "rows":
                log.append_rows(rows(len(slow), count), NAMES)
            case "log":
                other = StatsLog(given[: count // 2])
                other.append_rows(rows(len(slow) + count // 2, count - count // 2), NAMES)
                log.extend(other)
        slow += given
    assert len(log) == len(slow)
    assert list(log) == slow
    assert list(reversed(log)) == slow[::-1]
    assert [log[i] for i in range(-len(slow), len(slow))] == slow + slow
    for cut in (slice(None), slice(1, -1), slice(None, None, -2), slice(2, 100), slice(5, 2)):
        assert log[cut] == slow[cut]
    assert log == slow
    assert log == StatsLog(slow)
    assert (not log) == (not slow)
    assert log.num_messages == sum(record.messages for record in slow)
    assert pickle.loads(pickle.dumps(log)) == slow


@pytest.mark.parametrize("index", [3, -4, 2**40])
def test_there_is_no_superstep_outside(index: int) -> None:
    log = StatsLog()
    log.append_rows(rows(0, 3), NAMES)
    with pytest.raises(IndexError):
        log[index]


def test_logs_that_differ() -> None:
    log = StatsLog(records(0, 3))
    assert log != records(0, 2)
    assert log != records(1, 3)
    assert log != tuple(records(0, 3))
    assert StatsLog() == []


def test_what_it_was_extended_with_stays_as_it_was() -> None:
    """The master and every rank keep a log of their own of the same leases."""
    lease = Outcome(ended=False)
    lease.stats.append(records(0, 1)[0])
    lease.stats.append_rows(rows(1, 2), NAMES)
    mine, theirs = StatsLog(), StatsLog()
    for log in (mine, theirs):
        log.extend(lease.stats)
        log.extend(records(3, 2))
    assert lease.stats == records(0, 3)
    assert mine == theirs == records(0, 5)
    result = Result(
        ids=np.arange(1),
        fields={},
        reason="converged",
        supersteps=5,
        stats=mine,
        aggregators={},
        device="cuda",
    )
    mine.append(records(5, 1)[0])
    assert result.stats == records(0, 5)
    assert f"({5 * 2**40 + 10:,} messages, " in result.summary()


def test_rows_become_records_only_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(superstep: int, *rest: Any, **named: Any) -> SuperstepStats:
        made.append(superstep)
        return SuperstepStats(superstep, *rest, **named)

    monkeypatch.setattr("sigps.engine.stats.SuperstepStats", counted)
    log = StatsLog()
    for first in range(0, 8000, 1000):
        log.append_rows(rows(first, 1000), NAMES)
    copy = StatsLog(log)
    assert len(copy) == 8000
    assert repr(copy) == "<StatsLog: 8,000 supersteps>"
    assert made == []
    assert copy[-1].superstep == 7999
    assert [s.superstep for s in copy[998:1002]] == [998, 999, 1000, 1001]
    assert made == [7999, 998, 999, 1000, 1001]


def test_supersteps_cross_as_rows() -> None:
    records = [
        SuperstepStats(0, "pull", 5, 7, 0, 0.25, 1.0),
        SuperstepStats(1, "mailbox", 2, 3, 16, 0.5, 1.5),
        SuperstepStats(2, "edge", 1, 0, 0, 0.125, 1.0),
    ]
    log = StatsLog(records)
    other = StatsLog(records[:1])
    other.append_rows(log.as_rows()[1:], {2: "mailbox", 3: "edge"})
    for found in (StatsLog.of_rows(log.as_rows()), StatsLog.of_rows(other.as_rows())):
        assert list(found) == records
    assert len(StatsLog.of_rows(StatsLog().as_rows())) == 0
