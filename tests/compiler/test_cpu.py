"""Compiled programs against the interpreter, and both against values worked out by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from cells import program_of
from worked_cases import CASES, kite

from sigps import Aggregator, CompileError, Graph, Result, State, Vertex, run


@cache
def interpreted(name: str, precision: Any = "double") -> Result:
    """Return the judge's result."""
    case = CASES[name]
    return run(case.program(), case.graph(), device="python", precision=precision)


def assert_same(result: Result, judge: Result, tolerance: float = 1e-12) -> None:
    """Integers and the run's course must agree exactly, floats up to the order of their sums."""
    assert (result.supersteps, result.reason) == (judge.supersteps, judge.reason)
    assert result.aggregators == pytest.approx(judge.aggregators, rel=tolerance)
    for field in judge.fields:
        assert result[field].dtype == judge[field].dtype, field
        exact = judge[field].dtype.kind != "f"
        np.testing.assert_allclose(result[field], judge[field], rtol=0 if exact else tolerance, err_msg=field)


@pytest.mark.parametrize(("name", "direction"), list(zip(CASES, ["auto", "push"] * len(CASES), strict=False)))
def test_compiled_is_interpreted(name: str, direction: Any) -> None:
    case = CASES[name]
    result = run(case.program(), case.graph(), device="cpu", direction=direction, threads=1)
    assert_same(result, interpreted(name))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.expected])
def test_interpreted_by_hand(name: str) -> None:
    judge = interpreted(name)
    for field, values in CASES[name].expected.items():
        assert judge[field].tolist() == pytest.approx(values), field


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("y = (1, 2)", "keeps one type"),
        ("y = y + 'a'", "compute with numbers"),
        ("y = math.sqrt(1, 2)", "takes 1 argument here, not 2"),
        ("y = None", "keeps one type"),
        ("y = helper(1)", "missing a required argument"),
    ],
)
def test_types_that_do_not_fit_point_at_their_line(line: str, says: str) -> None:
    before = "def helper(a, b):\n    return a + b"
    program = program_of(f"y = self.x\nif self.id > 1:\n    {line}\nself.x = y", before=before)
    with pytest.raises(CompileError, match=says) as caught:
        run(program, kite(), device="cpu")
    assert caught.value.source in (line, "self.x = y")
    assert "__" not in str(caught.value).partition("\n")[0]
    assert caught.value.__suppress_context__  # a traceback shows this error alone


def test_a_mistake_in_a_helper_points_at_the_class_and_names_the_helper() -> None:
    before = "def helper(a):\n    return a.missing"
    program = program_of("self.x = helper(self.x)", before=before)
    with pytest.raises(CompileError) as caught:
        run(program, kite(), device="cpu")
    assert caught.value.source in ("self.x = helper(self.x)", "return a.missing")


class Begins(Vertex):
    x: State[int] = 0
    total = Aggregator.sum(int)
    seen: State[int] = 0

    def compute(self, messages):
        self.total += 1
        self.seen = self.total
        if self.superstep == 2:
            self.vote_to_halt()


class BeginsAt5(Begins):
    x: State[int] = 5


class Persists(Begins):
    total = Aggregator.sum(int, persistent=True)


def test_what_is_declared_otherwise_is_another_program() -> None:
    for edited in (BeginsAt5, Persists):  # as when a class is edited and defined again
        edited.__name__ = edited.__qualname__ = "Begins"
    graph = Graph.from_edges([0, 1], [1, 2])
    for program, begins, seen in (
        (Begins(), 0, 3),
        (BeginsAt5(), 5, 3),
        (Persists(), 0, 6),
        (Begins(), 0, 3),
    ):
        result = run(program, graph, device="cpu")
        assert result["x"].tolist() == [begins] * 3
        assert result["seen"].tolist() == [seen] * 3
