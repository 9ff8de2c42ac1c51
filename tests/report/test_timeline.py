"""The timeline: what went on when, in the trace event format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sigps
from sigps import OutputError
from sigps.apps import BFS
from sigps.engine.stats import SuperstepStats
from sigps.report.timeline import RankSpans, timeline, write_timeline

STATS = [SuperstepStats(s, "push", 10 + s, 20 + s, 5, 0.5, 1.25) for s in range(3)]


def events(trace: dict[str, Any], ph: str, pid: int = 0, tid: int | None = None) -> list[tuple[Any, ...]]:
    found = [e for e in trace["traceEvents"] if e["ph"] == ph and e["pid"] == pid]
    return [(e["name"], e["ts"], e.get("dur")) for e in found if tid is None or e["tid"] == tid]


def test_spans_and_supersteps_have_one_clock() -> None:
    first = RankSpans("a", 1000.0, [("build", 2.0, 3.0), ("supersteps", 3.0, 5.5)])
    second = RankSpans("b", 900.0, [("build", 101.0, 102.0)])  # a clock that began earlier
    trace = timeline([first, second], STATS, [(3.5, 2), (4.75, 1)])
    assert events(trace, "X", 1) == [("build", 0.0, 1e6)]  # the first of all
    assert events(trace, "X", 0, 0) == [("build", 1e6, 1e6), ("supersteps", 2e6, 2.5e6)]
    assert events(trace, "X", 0, 1) == [
        ("superstep 0", 2.5e6, 5e5),
        ("superstep 1", 3e6, 5e5),
        ("superstep 2", 3.75e6, 5e5),
    ]
    assert [name for name, at, _ in events(trace, "C") if at == 3e6] == ["active", "messages"]


def test_supersteps_before_a_state_log_are_not_there() -> None:
    trace = timeline([RankSpans("a", 0.0, [])], STATS, [(1.0, 2)])
    assert [name for name, *_ in events(trace, "X")] == ["superstep 1", "superstep 2"]


def test_a_result_writes_the_timeline_of_its_run(tmp_path: Path) -> None:
    graph = sigps.generate("path", n=20)
    result = sigps.run(BFS(source=0), graph, device="cpu")
    result.write_timeline(tmp_path / "run.json")
    trace = json.loads((tmp_path / "run.json").read_text())
    named = events(trace, "X", 0, 1)
    assert [name for name, *_ in named] == [f"superstep {s}" for s in range(20)]
    ((_, begin, length),) = [e for e in events(trace, "X", 0, 0) if e[0] == "supersteps"]
    assert all(begin < at and at + took <= begin + length for _, at, took in named)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"run\.json cannot be written"):
        write_timeline(tmp_path / "none" / "run.json", timeline([RankSpans("a", 0.0, [])], [], []))
