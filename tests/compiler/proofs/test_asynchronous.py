"""Programs that need no barriers: which they are, and what the others are told."""

from __future__ import annotations

from typing import Any

import pytest
from cells import run_cell
from gas_programs import ConvergedPageRank, GatheredPaths, GatheredSSSP, GatheredWCC, Loudest

from sigps.apps import BFS, CDLP, SCC, SSSP, WCC, BiTriDN, KCore, MinimumSpanningForest, PageRank
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.errors import CompileError

CELL = """
class Fold(Vertex, message={message}):
    limit: Param[float] = 9.0
    best: State[float] = inf
    other: State[int] = 0

    def compute(self, messages):
        received = {first} if self.superstep == 0 else min(messages, default=inf)
        if received < self.best:
            self.best = received
            {more}
            for edge in self.out_edges:
                self.send(edge, {sent})
        self.vote_to_halt()
"""

PLAIN = {"message": "float", "first": "(self.id + 0.0)", "more": "pass", "sent": "self.best + edge.weight"}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"sent": "self.best"},
        {"sent": "self.best + 2.5", "first": "(1.0 if self.id == 0 else inf)"},
        {"first": "(0.0 if self.id == 3 else inf)"},
    ],
    ids=str,
)
def test_proved(changed: dict[str, str]) -> None:
    program = analyse(run_cell(CELL.format(**PLAIN | changed))["Fold"]())
    assert program.asynchronous is not None
    assert not program.asynchronous.has_parents
    assert program.barrier_reason == ""


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"more": "self.other += 1"}, "cannot be proved"),
        ({"more": "self.other = self.id"}, "other may depend on the order"),
        ({"sent": "self.best * 0.5 + edge.weight"}, "better value, or do nothing"),
        ({"sent": "5.0 - self.best"}, "better value, or do nothing|cannot be proved"),
        ({"more": "if self.best > self.limit: return"}, "better value, or do nothing"),
        ({"sent": "self.best + 2.5"}, "something else than it"),  # in superstep 0 it cannot be told
        ({"more": "self.other = self.superstep"}, "line 10: it reads the number of a superstep"),
    ],
    ids=str,
)
def test_not_proved(changed: dict[str, str], reason: str) -> None:
    program = analyse(run_cell(CELL.format(**PLAIN | changed))["Fold"]())
    assert program.asynchronous is None
    assert any(text in program.barrier_reason for text in reason.split("|")), program.barrier_reason


def test_apps() -> None:
    for cls, has_parents in (
        (SSSP, True),
        (GatheredPaths, True),
        (WCC, False),
        (GatheredSSSP, False),
        (GatheredWCC, False),
    ):
        given: dict[str, Any] = {"source": 0} if cls.declaration.params else {}
        claim = analyse(cls(**given)).asynchronous
        assert claim is not None
        assert claim.has_parents == has_parents


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (BFS, "line 33: it reads the number of a superstep after the first"),
        (PageRank, "line 40: aggregator 'lost' has a value after each superstep"),
        (ConvergedPageRank, "aggregator 'num_changed' has a value after each superstep"),
        (KCore, "next_phase() runs between supersteps"),
        (SCC, "next_phase() runs between supersteps"),
        (MinimumSpanningForest, "master() runs between supersteps"),
        (BiTriDN, "values on edges are read as they were when a superstep began"),
        (CDLP, "line 34: it reads the number of a superstep after the first"),
        (Loudest, "a message that is read twice counts twice"),
    ],
)
def test_explained(cls: Any, reason: str) -> None:
    said = explain(cls).partition("barriers     ")[2].partition("\n")[0]
    assert said.startswith("needed: ")
    assert reason in said


def test_explained_where_none_is_needed() -> None:
    said = [explain(cls).partition("barriers     ")[2].partition("\n")[0] for cls in (WCC, SSSP)]
    assert said[0] == "not needed: with asynchronous=True the result is the same, bit for bit"
    assert said[1] == f"{said[0]}, where weights are whole numbers"


DECLARED = """
class Halves(Vertex, message=float, asynchronous={factor}):
    value: State[float] = 0.0
    moved = Aggregator.{count}

    def compute(self, messages):
        if self.superstep {when} and not self.moved:
            self.vote_to_halt()
            return
        value = 0.5 * {taken}
        self.moved += abs(value - self.value) > 1e-10
        self.value = value
        self.send_to_neighbors(value)
"""

HALVES = {
    "factor": "0.5",
    "count": "any()",
    "when": "> 1",
    "taken": "max(messages, default=0.0)",
    "gives": "|=",
}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, ""),
        ({"count": "sum(int)"}, ""),
        ({"taken": "sum(messages)"}, ""),
        ({"count": "sum(float)"}, "aggregator 'moved' is more than a count"),
        ({"count": "any(persistent=True)"}, "aggregator 'moved' is more than a count"),
        ({"when": "> 9"}, "line 6: it reads the number of a superstep"),
        ({"taken": "sum(m / (1 + self.value) for m in messages)"}, "not combined along edges"),
    ],
    ids=str,
)
def test_declared(changed: dict[str, str], reason: str) -> None:
    program = analyse(run_cell(DECLARED.format(**HALVES | changed))["Halves"]())
    assert reason in program.barrier_reason
    assert (program.asynchronous is None) == bool(reason)
    if program.asynchronous is not None:
        assert program.asynchronous.factor == 0.5


@pytest.mark.parametrize("factor", ["1.0", "0.0", "-0.5", "True", "'0.5'"])
def test_no_factor(factor: str) -> None:
    with pytest.raises(CompileError, match="must be a number between 0 and 1"):
        run_cell(DECLARED.format(**HALVES | {"factor": factor}))


def test_a_subclass_declares_for_itself() -> None:
    names = run_cell(DECLARED.format(**HALVES))
    assert type("Other", (names["Halves"],), {}).declaration.factor is None
