"""Programs with a `next_phase()`, which runs where nothing is left to do; `test_equality` has them on all devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from battery import BATTERY
from master_programs import Fading, Floods, Gone, Letters, Vanished
from turns import in_turn

from sigps import Checkpoint, CompileError, Graph, Shared, Vertex, run
from sigps.apps import SCC, KCore

DEVICES = ["python", "cpu"]


@pytest.mark.parametrize("device", DEVICES)
def test_a_phase_ends_when_nobody_has_more_to_say(device: Any) -> None:
    result = run(Floods(floods=2), Graph.from_edges([0, 1, 2], [1, 2, 3]), device=device)
    # Flood 0 has labels 0 7 14 21 and flood 1 1 8 15 22: along the path nothing is ever better.
    assert result["reached"].tolist() == [1, 8, 15, 22]
    assert result["changes"].tolist() == [1 + 2] * 4
    assert [s.active for s in result.stats] == [4, 3, 4, 3]
    assert result.aggregators == {"flood": 2, "begins": 4, "steps": 4, "told": 0, "told_last": 0}
    assert result.reason == "converged"


@pytest.mark.parametrize("device", DEVICES)
def test_a_superstep_in_which_nobody_runs_is_none(device: Any) -> None:
    result = run(Fading(), Graph.from_edges([0, 1, 4], [1, 3, 3]), device=device)
    # 0 and 3 retire at once; 1 and 4 speak to 3, then retire when they are woken. No message is ever heard.
    assert [s.active for s in result.stats] == [4, 2]
    assert [s.messages for s in result.stats] == [2, 0]
    assert result["runs"].tolist() == [1, 2, 1, 2]
    assert result["heard"].tolist() == [0] * 4
    assert result.aggregators == {"phase": 2}
    assert result.reason == "converged"


@pytest.mark.parametrize("device", DEVICES)
def test_who_has_retired_does_not_wake(device: Any) -> None:
    result = run(Vanished(), Graph.from_edges([0], [1]), device=device)
    assert [s.active for s in result.stats] == [2]
    assert result.aggregators == {"asked": 1}


@pytest.mark.parametrize(
    ("program", "devices"),
    in_turn(
        [Floods(), Fading(), Vanished(), Letters(), KCore(), SCC()],
        [("cpu", "python"), ("python", "cpu"), ("python", "python"), ("cpu", "cpu")],
        times=2,
    ),
    ids=str,
)
def test_a_run_goes_on_in_any_phase(program: Vertex, devices: tuple[Any, Any], tmp_path: Path) -> None:
    first, second = devices
    if isinstance(program, Letters) and first != second:
        return  # direct messages that were combined are read where they were
    graph = BATTERY["skewed"].build()
    whole = run(program, graph, device="python")
    for stop in sorted({1, 3, whole.supersteps - 1, whole.supersteps} & set(range(1, whole.supersteps + 1))):
        folder = tmp_path / str(stop)
        run(program, graph, device=first, checkpoint=Checkpoint(folder, every=stop), max_supersteps=stop)
        result = run(program, graph, device=second, checkpoint=Checkpoint(folder, every=99), resume=True)
        assert (result.aggregators, result.reason) == (whole.aggregators, whole.reason), stop
        for field in whole.fields:
            assert result[field].tolist() == whole[field].tolist(), (stop, field)
        assert [s.active for s in result.stats] == [s.active for s in whole.stats], stop


class Mixin:
    """No vertex program, but what one may be made of."""

    next_phase = Vanished.next_phase


class Quiet(Vertex):
    asked: Shared[int] = 0

    def compute(self, messages):
        self.vote_to_halt()


def test_a_base_of_any_kind_may_have_it() -> None:
    made = type("Mixed", (Mixin, Quiet), {"next_phase": stops_at_three})
    assert run(made(), Graph.from_edges([0], [1]), device="python").aggregators == {"asked": 3}
    assert type("Mixed", (Mixin, Quiet), {}).declaration.has_phases
    with pytest.raises(CompileError, match="write one of them"):
        type("Both", (Gone, Vanished), {})


def stops_at_three(self: Any) -> None:
    self.asked += 1
    if self.asked == 3:
        self.stop()
    self.wake_all()


def test_one_of_the_two_is_written() -> None:
    with pytest.raises(CompileError, match=r"master\(\) runs after every superstep and next_phase\(\) where"):
        type("Both", (Vanished,), {"master": Gone.master})
    with pytest.raises(CompileError, match="write one of them"):
        type("Both", (Gone,), {"next_phase": Vanished.next_phase})


def halves(self: Any) -> None:
    self.phase = 0.5


@pytest.mark.parametrize("device", DEVICES)
def test_an_error_says_where(device: Any) -> None:
    program = type(
        "Halved", (Vanished,), {"__annotations__": {"phase": Shared[int]}, "phase": 0, "next_phase": halves}
    )()
    with pytest.raises(ValueError, match=r"0\.5 is no whole number") as raised:
        run(program, Graph.from_edges([0], [1]), device=device)
    assert "in next_phase(), after superstep 0" in raised.value.__notes__
