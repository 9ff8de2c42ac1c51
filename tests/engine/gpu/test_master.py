"""master() and next_phase() that run between supersteps on the device, and those that stay Python on the host."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from drawn_masters import drawn_master, outcome_of
from gpu_ways import assert_as_judged
from host_gpu import use_host_as_gpu
from master_programs import (
    Budget,
    Fading,
    Floods,
    Gone,
    HeldBack,
    Letters,
    Sleeper,
    Unheard,
    Vanished,
    Waves,
)
from turns import in_turn, some_of
from ways import Way

from sigps import Aggregator, Checkpoint, ComputeError, Graph, Shared, State, Vertex, run
from sigps.apps import (
    SCC,
    DNGraphs,
    KCore,
    LabelGroups,
    LongestPath,
    MinimumSpanningForest,
    StreamDN,
)
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.variant import Variant

APPS = [SCC(), DNGraphs(), KCore(), LabelGroups(), LongestPath(), MinimumSpanningForest(), StreamDN(scans=3)]
MASTERS = [Waves(), Budget(), Sleeper(), Unheard(), HeldBack(), Gone()]
PHASES = [Floods(), Fading(), Letters(), Vanished()]


def named(program: Vertex) -> str:
    return type(program).__name__


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let this process be the GPU; the list grows by each launch."""
    use_host_as_gpu(monkeypatch)
    return counted(monkeypatch)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    launch = Variant.launch

    def count(self: Variant, *arguments: Any) -> None:
        made.append(1)
        launch(self, *arguments)

    monkeypatch.setattr(Variant, "launch", count)
    return made


def assert_equal(found: Any, judge: Any) -> None:
    assert found.aggregators == judge.aggregators
    assert found.reason == judge.reason
    assert [s.active for s in found.stats] == [s.active for s in judge.stats]
    for name in judge.fields:
        assert found[name].tolist() == judge[name].tolist(), name


@pytest.mark.parametrize("program", [*some_of(APPS, 2), *MASTERS, *PHASES], ids=named)
def test_a_lease_goes_on_without_the_host(program: Vertex, launches: list[int]) -> None:
    graph = BATTERY["skewed"].build()
    found = run(program, graph, device="cuda")
    assert_equal(found, run(program, graph, device="python"))
    posts = isinstance(program, (Letters, MinimumSpanningForest))  # what is full ends a launch
    assert posts or len(launches) == 1
    assert analyse(program).master is not None


@pytest.mark.parametrize("program", [Waves(), Unheard(), Floods(), Fading(), Vanished()], ids=named)
def test_a_run_goes_on_in_the_middle(program: Vertex, launches: list[int], tmp_path: Path) -> None:
    graph = BATTERY["skewed"].build()
    whole = run(program, graph, device="python")
    stops = sorted({1, whole.supersteps - 1} & set(range(1, whole.supersteps)))
    devices = ("cuda", "cuda"), ("cuda", "python"), ("python", "cuda")
    for stop, first, second in ((stop, *pair) for pair, stop in (in_turn(devices, stops) if stops else [])):
        folder = tmp_path / f"{first} {second} {stop}"
        saved: dict[str, Any] = {"checkpoint": Checkpoint(folder, every=1)}
        run(program, graph, device=first, max_supersteps=stop, **saved)
        assert_equal(run(program, graph, device=second, resume=True, **saved), whole)


class Counts(Vertex):
    """Arithmetic of its master() has no result after superstep 2."""

    level: Shared[np.int8] = 100
    total = Aggregator.sum(int)
    seen: State[int] = 0

    def compute(self, messages):
        self.seen = self.level
        self.total += 1

    def master(self):
        self.level = self.raised(10)

    def raised(self, by):
        return self.level + by * self.superstep // (self.total - 3 + 1)


class Divides(Counts):
    """Divides by zero."""

    def master(self):
        self.level = 7 // (2 - self.superstep)


class Adds(Counts):
    """Adds more than an int8 holds."""

    def master(self):
        self.level += 10


def error_of(program: Vertex, device: Any) -> ComputeError:
    with pytest.raises(ComputeError) as caught:
        run(program, Graph.from_edges([0, 1], [1, 2]), device=device, max_supersteps=9)
    return caught.value


@pytest.mark.parametrize("program", [Counts(), Divides(), Adds()], ids=named)
def test_what_has_no_result_is_the_same_error_everywhere(program: Vertex, launches: list[int]) -> None:
    found = [error_of(program, device) for device in ("python", "cpu", "cuda")]
    assert len(set(map(str, found))) == 1, found
    assert (found[0].file, found[0].superstep) == (__file__, 2)
    assert f"in master(), superstep {found[0].superstep}" in str(found[0])
    assert "self.level" in found[0].source or "self.total" in found[0].source


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_drawn_masters_leave_the_same_bits(seed: int, launches: list[int]) -> None:
    program = drawn_master(seed)
    assert analyse(program).master is not None
    assert outcome_of(program, "python") == outcome_of(program, "cpu") == outcome_of(program, "cuda")


def test_deterministic_sums_are_rounded_for_the_master(launches: list[int]) -> None:
    graph = BATTERY["grid"].build()
    found, judge = (run(Budget(), graph, device=d, deterministic=True) for d in ("cuda", "python"))  # type: ignore
    assert_equal(found, judge)
    assert len(launches) == 1


class Clock(Waves):
    """Asks a clock."""

    def master(self):
        self.step = time.time()
        super().master()


def test_what_is_python_stays_so_and_says_where(launches: list[int]) -> None:
    derived = analyse(Clock())
    assert derived.master is None
    assert derived.master_obstacle.startswith("test_master.py:")
    found = run(Clock(), BATTERY["grid"].build(), device="cuda")
    assert len(launches) == found.supersteps
    judge = run(Waves(), BATTERY["grid"].build(), device="python")
    assert found["reached"].tolist() == judge["reached"].tolist()


# --- on a GPU -----------------------------------------------------------------

CUDA = [Way(device="cuda", direction=direction) for direction in ("auto", "push", "pull")]


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["skewed", "grid", "path", "isolated"])
@pytest.mark.parametrize("program", [*APPS, HeldBack(), Gone(), Floods()], ids=named)
def test_programs_on_the_device(program: Vertex, name: str) -> None:
    ways = CUDA if not isinstance(program, (MinimumSpanningForest, StreamDN, DNGraphs)) else CUDA[:1]
    assert_as_judged(program, BATTERY[name].build(), ways=ways)


@pytest.mark.gpu
@pytest.mark.parametrize("program", [Waves(), Budget(), Sleeper(), Floods(), KCore(), SCC()], ids=named)
def test_one_launch_on_the_device(program: Vertex, monkeypatch: pytest.MonkeyPatch) -> None:
    made = counted(monkeypatch)
    run(program, BATTERY["skewed"].build(), device="cuda")
    assert len(made) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("program", [Counts(), Divides(), Adds()], ids=named)
def test_errors_of_the_device(program: Vertex) -> None:
    assert str(error_of(program, "cuda")) == str(error_of(program, "python"))


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(6))
def test_drawn_masters_on_the_device(seed: int) -> None:
    program = drawn_master(seed)
    assert outcome_of(program, "cuda") == outcome_of(program, "python")


@pytest.mark.gpu
def test_python_masters_on_the_device() -> None:
    found = run(Clock(), BATTERY["grid"].build(), device="cuda")
    assert (
        found["reached"].tolist()
        == run(Waves(), BATTERY["grid"].build(), device="python")["reached"].tolist()
    )


@pytest.mark.gpu
@pytest.mark.parametrize("program", [Waves(), Floods(), Fading(), Unheard()], ids=named)
def test_logs_of_the_device(program: Vertex, tmp_path: Path) -> None:
    graph = BATTERY["skewed"].build()
    whole = run(program, graph, device="python")
    go = functools.partial(run, program, graph, device="cuda")
    for stop in sorted({1, 2, whole.supersteps - 1} & set(range(1, whole.supersteps))):
        log = Checkpoint(tmp_path / str(stop), every=1)
        go(checkpoint=log, max_supersteps=stop)
        assert_equal(go(checkpoint=log, resume=True), whole)
