from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from drawn_masters import drawn_master, outcome_of
from master_programs import Budget, Gone, HeldBack, Sleeper, Unheard, Waves
from thread_group import ThreadGroup, run_ranks
from turns import in_turn
from ways import WAYS, assert_all_equal

from sigps import (
    Aggregator,
    Checkpoint,
    CompileError,
    Graph,
    Param,
    Result,
    Shared,
    State,
    Table,
    Vertex,
    run,
)
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse

GRAPHS = [name for name in BATTERY if name != "empty"]
DEVICES = ["python", "cpu"]


PROGRAMS = [Waves(), Budget(), Sleeper(), Unheard(), HeldBack()]


@pytest.mark.parametrize(
    ("name", "program"),
    [
        *in_turn([name for name in GRAPHS if name != "skewed"], PROGRAMS),
        *[("skewed", program) for program in PROGRAMS],
    ],
    ids=str,
)
def test_all_ways_agree(name: str, program: Vertex) -> None:
    turn = GRAPHS.index(name) + PROGRAMS.index(program)
    assert_all_equal(program, BATTERY[name], WAYS[turn % 2 :: 2] if name == "skewed" else WAYS[turn % 3 :: 3])


@pytest.mark.parametrize("device", DEVICES)
def test_a_master_switches_phases_and_stops(device: Any) -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    result = run(Waves(waves=2), graph, device=device)
    assert result.reason == "stopped"
    assert "stopped by the program" in result.summary()
    # Wave 0 has labels 0 7 14 21 and wave 1 1 8 15 22: along the path nothing is ever better.
    assert result["reached"].tolist() == [1, 8, 15, 22]
    assert result["weight"].tolist() == [0.5 + 0.5] * 4
    assert result.aggregators == {"changed": False, "wave": 1, "step": 0.5, "first": False}
    # Each wave is a superstep in which all speak and one in which nobody changes.
    assert [s.active for s in result.stats] == [4, 3, 4, 3]


@pytest.mark.parametrize("device", DEVICES)
def test_a_master_wakes_all_but_the_retired(device: Any) -> None:
    result = run(Sleeper(), Graph.from_edges([0, 1], [1, 2]), device=device)
    assert [s.active for s in result.stats] == [3, 3, 2]
    assert result["runs"].tolist() == [2, 3, 3]
    assert result.reason == "converged"


@pytest.mark.parametrize("device", DEVICES)
def test_a_master_is_asked_where_nobody_is_left_to_hear(device: Any) -> None:
    graph = Graph.from_edges([0, 2, 4], [1, 3, 5], directed=False)
    result = run(Unheard(), graph, device=device)
    assert [s.active for s in result.stats] == [6, 0, 3, 0, 3, 0]
    assert [s.messages for s in result.stats] == [3, 0] * 3
    assert result["runs"].tolist() == [3, 1] * 3
    assert result.aggregators == {"spoke": 0, "rounds": 2}
    assert result.reason == "converged"


@pytest.mark.parametrize("device", DEVICES)
def test_a_master_that_wakes_nobody_ends(device: Any) -> None:
    result = run(Gone(), Graph.from_edges([0], [1]), device=device)
    assert [s.active for s in result.stats] == [2]
    assert result.aggregators == {"asked": 1}


@pytest.mark.parametrize("first", DEVICES)
@pytest.mark.parametrize("second", DEVICES)
@pytest.mark.parametrize(("program", "stop"), [(Gone(), 1), *[(Unheard(), stop) for stop in range(1, 6)]])
def test_a_master_is_asked_as_often_by_a_run_that_goes_on(
    first: Any, second: Any, program: Vertex, stop: int, tmp_path: Path
) -> None:
    graph = Graph.from_edges([0, 2, 4], [1, 3, 5], directed=False)
    whole = run(program, graph, device="python")
    run(program, graph, device=first, checkpoint=Checkpoint(tmp_path, every=1), max_supersteps=stop)
    result = run(program, graph, device=second, checkpoint=Checkpoint(tmp_path, every=1), resume=True)
    assert result.aggregators == whole.aggregators
    assert [s.active for s in result.stats] == [s.active for s in whole.stats]


@pytest.mark.parametrize("device", DEVICES)
def test_shared_values_are_what_was_set_last(device: Any) -> None:
    result = run(Budget(limit=3.9), Graph.from_edges([0, 1], [1, 2]), device=device)
    # Each superstep spends 0.5 (1 + 2 + 3) = 3.
    assert result.aggregators == {"spent": 6.0, "rounds": -3}
    assert result.supersteps == 2


@pytest.mark.parametrize("first", DEVICES)
@pytest.mark.parametrize("second", DEVICES)
def test_a_log_keeps_shared_values(first: str, second: str, tmp_path: Path) -> None:
    whole = run(Waves(), BATTERY["grid"].build(), device="python")

    def run_rank(group: ThreadGroup, device: str, **options: Any) -> Result:
        checkpoint = Checkpoint(tmp_path, every=3)
        return run(
            Waves(), BATTERY["grid"].build(group=group), device=device, checkpoint=checkpoint, **options
        )  # type: ignore[arg-type]

    run_ranks(2, lambda group: run_rank(group, first, max_supersteps=7))
    result = run_ranks(3, lambda group: run_rank(group, second, resume=True))[0]
    assert result.aggregators == whole.aggregators
    assert result["reached"].tolist() == whole["reached"].tolist()
    assert [s.active for s in result.stats] == [s.active for s in whole.stats]


class Random(Vertex):
    """A master that would say another thing on every rank."""

    number: Shared[float] = 0.0
    heard: State[float] = 0.0

    def compute(self, messages):
        self.heard = self.number

    def master(self):
        self.number = float(np.random.default_rng().random())
        if self.superstep == 2:
            self.stop()


def test_all_ranks_hear_the_same() -> None:
    result = run_ranks(3, lambda group: run(Random(), BATTERY["grid"].build(group=group), device="cpu"))[0]
    assert len(set(result["heard"].tolist())) == 1
    assert result["heard"][0] > 0


class Wrong(Vertex):
    phase: Shared[int] = 0
    x: State[int] = 0

    def compute(self, messages):
        if self.superstep == 1:
            self.vote_to_halt()


def sets_in_compute(self: Any, messages: Any) -> None:
    self.phase = 1


def adds_in_compute(self: Any, messages: Any) -> None:
    self.phase += 1


def stops_in_compute(self: Any, messages: Any) -> None:
    self.stop()


@pytest.mark.parametrize(
    ("compute", "complaint"),
    [
        (sets_in_compute, r"compute\(\) reads it; master\(\) or next_phase\(\) sets it"),
        (adds_in_compute, r"compute\(\) reads it; master\(\) or next_phase\(\) sets it"),
        (stops_in_compute, r"stop\(\) is for master\(\) and next_phase\(\)"),
    ],
)
def test_compute_may_not_do_what_the_master_does(compute: Any, complaint: str) -> None:
    program = type("Edited", (Wrong,), {"compute": compute})()
    graph = Graph.from_edges([0], [1])
    with pytest.raises(CompileError, match=complaint):
        run(program, graph, device="cpu")
    with pytest.raises(AttributeError, match=complaint):
        run(program, graph, device="python")


def sends(self: Any) -> None:
    self.send_to(0, 1)


def contributes(self: Any) -> None:
    self.total += 1


def sets_a_fraction(self: Any) -> None:
    self.phase = 0.5


@pytest.mark.parametrize(
    ("master", "error", "complaint"),
    [
        (sends, AttributeError, r"'send_to' belongs to a vertex"),
        (contributes, AttributeError, "vertices contribute to the aggregator 'total'"),
        (sets_a_fraction, ValueError, "0.5 is no whole number"),
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_a_master_may_not_do_what_a_vertex_does(master: Any, error: Any, complaint: str, device: Any) -> None:
    program = type("Edited", (Wrong,), {"master": master, "total": Aggregator.sum(int)})()
    with pytest.raises(error, match=complaint) as raised:
        run(program, Graph.from_edges([0], [1]), device=device)
    assert "in master(), after superstep 0" in raised.value.__notes__


@pytest.mark.parametrize("seed", [0, 3, 7, 24, 81, 112, 124])
def test_a_master_that_is_compiled_leaves_the_same_bits(seed: int) -> None:
    program = drawn_master(seed)
    assert analyse(program).master is not None
    assert outcome_of(program, "cpu") == outcome_of(program, "python")


class Helped(Vertex):
    """A master() whose helpers read, set and stop."""

    limit: Param[int] = 5
    table: Param[Table[int]] = (4, 7)
    level: Shared[int] = 0
    share: Shared[float] = 0.5
    seen: State[int] = 0
    total = Aggregator.sum(int)

    def compute(self, messages):
        self.total += 1
        self.seen = self.level

    @staticmethod
    def doubled(x):
        return 2 * x

    def beyond(self, by):
        return self.total + by > self.limit + self.table[self.superstep % 2]

    def raise_level(self, by=1):
        self.level += by
        if self.beyond(self.level):
            self.stop()

    def master(self):
        self.share = self.level / max(self.total, 1)
        self.raise_level(self.doubled(1))


def test_helpers_of_a_master_are_compiled() -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    assert analyse(Helped()).master_obstacle == ""
    found = [run(Helped(), graph, device=device) for device in ("python", "cpu")]  # type: ignore[arg-type]
    # 3 + 2 > 5 + 4 is false, 3 + 4 > 5 + 7 is false, 3 + 6 > 5 + 4 is false, ..., 3 + 8 > 5 + 7 is false.
    assert [r.supersteps for r in found] == [5, 5]
    assert [r.aggregators for r in found] == [{"level": 10, "share": 8 / 3, "total": 3}] * 2


def asks_a_clock(self: Any) -> None:
    self.number = time.time()


def loops(self: Any) -> None:
    while self.number < 1.0:
        self.number += 0.5


def takes_a_root(self: Any) -> None:
    self.number = math.exp(self.number)


def sets_a_truth(self: Any) -> None:
    self.count = self.number > 0.0


def reads_a_state(self: Any) -> None:
    self.number = self.heard


@pytest.mark.parametrize(
    ("master", "reason"),
    [
        (asks_a_clock, "time"),
        (loops, "'while', which may never end"),
        (takes_a_root, r"exp\(\) differs in its last bits"),
        (sets_a_truth, "'count' is a number, and is given a truth value"),
        (reads_a_state, "self.heard is nothing that compiled code has between supersteps"),
        (sets_a_fraction, "a float becomes an int here"),
        (sends, "cannot be called between supersteps"),
    ],
)
def test_a_master_that_is_python_says_why(master: Any, reason: str) -> None:
    fields = {"__annotations__": {"count": Shared[int], "phase": Shared[int]}, "count": 0, "phase": 0}
    program = type("Edited", (Random,), {"master": master, **fields})
    derived = analyse(program())
    assert derived.master is None
    assert re.search(reason, derived.master_obstacle), derived.master_obstacle
    assert derived.master_obstacle.startswith("test_master_compute.py:")
    assert derived.master_obstacle in explain(program)


def test_parameters_of_another_precision_leave_a_master_python() -> None:
    assert analyse(Budget(), "double").master is not None
    assert "'limit' has 32 bits where vertices read it" in analyse(Budget(), "single").master_obstacle


def test_a_shared_value_has_a_number_type() -> None:
    with pytest.raises(CompileError, match=r"Shared\[str\] is not supported"):
        type("Bad", (Vertex,), {"__annotations__": {"name": Shared[str]}})
    with pytest.raises(CompileError, match=r"cannot begin as 1\.5"):
        type("Bad", (Vertex,), {"__annotations__": {"phase": Shared[int]}, "phase": 1.5})


def test_explain_names_shared_values() -> None:
    assert "wave: shared, set between supersteps" in explain(Waves)
    assert "master()     runs between supersteps on the device" in explain(Waves)
