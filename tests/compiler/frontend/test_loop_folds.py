"""Loops over messages that fold them combine on the way, and come to what the loops come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cells import program_of
from loop_programs import FOLDS, LISTS, loop_program
from turns import in_turn
from worked_cases import kite

from sigps import Graph, run
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption

WAYS: list[dict[str, Any]] = [
    {"direction": "pull"},
    {"direction": "push"},
    {"direction": "push", "threads": 2},
    {"threads": 2, "deterministic": True},
    {"schedule": "edge"},
]

PAIR = "from typing import NamedTuple\nfrom sigps import inf\nclass Pair(NamedTuple):\n    d: float\n    who: int"


def graph_with_ties() -> Graph:
    """Return a graph whose vertices hear the same price from many sellers, of several kinds."""
    rng = np.random.default_rng(3)
    sources, targets = rng.integers(0, 40, (2, 400))
    weights = rng.integers(1, 4, 400) / 2
    return Graph.from_edges(sources, targets, weights=weights, vertices=[99])


@pytest.mark.parametrize("name", FOLDS)
def test_folds_combine(name: str) -> None:
    derived = analyse(loop_program(name))
    assert derived.obstacles == ()
    assert derived.consumption is Consumption.COMBINED


@pytest.mark.parametrize("name", LISTS)
def test_where_order_matters_messages_are_listed(name: str) -> None:
    derived = analyse(loop_program(name))
    assert derived.consumption is Consumption.LISTED
    assert "line " in derived.obstacles[0]


@pytest.mark.parametrize(
    ("name", "make", "way"),
    in_turn(FOLDS, [graph_with_ties, kite], WAYS),
    ids=lambda value: None if callable(value) else str(value),
)
def test_every_way_is_the_loop(name: str, make: Any, way: dict[str, Any]) -> None:
    program, graph = loop_program(name), make()
    judge = run(program, graph, device="python")
    result = run(program, graph, device="cpu", **way)
    assert result.supersteps == judge.supersteps
    for field in judge.fields:
        np.testing.assert_allclose(result[field], judge[field], rtol=1e-9, err_msg=field)


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_of_equal_prices_the_lowest_seller(device: str) -> None:
    graph = Graph.from_edges([5, 3, 4, 8], [1, 1, 1, 1], weights=[2.0, 2.0, 2.0, 3.0])
    result = run(loop_program("best and its sender"), graph, device=device)
    assert (result["best"][0], result["who"][0]) == (2.0, 3)
    graph = Graph.from_edges([5, 3, 4, 8], [1, 1, 1, 1], weights=[3.0, 2.0, 3.0, 1.0])
    result = run(loop_program("greatest and its sender"), graph, device=device)
    assert (result["x"][0], result["who"][0]) == (3.0, 4)


def test_parents_of_shortest_paths() -> None:
    program = program_of(
        """
        parent = -1
        best = 0.0 if self.superstep == 0 and self.id == 0 else inf
        for m in messages:
            if m.d < best:
                best = m.d
                parent = m.who
        if best < self.x:
            self.x = best
            self.parent = parent
            for edge in self.out_edges:
                self.send(edge, Pair(best + edge.weight, self.id))
        self.vote_to_halt()
        """,
        "parent: State[int] = -1\nx: State[float] = inf",
        message="message=Pair",
        before=PAIR,
    )
    graph = graph_with_ties()
    judge = run(program, graph, device="python")
    for way in WAYS:
        result = run(program, graph, device="cpu", **way)
        assert result["x"].tolist() == judge["x"].tolist()
        assert result["parent"].tolist() == judge["parent"].tolist()


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_a_nan_is_not_taken(sign: str) -> None:
    program = program_of(
        f"""
        best = {"inf" if "<" in sign else "-inf"}
        who = -1
        for m in messages:
            if m.d {sign} best:
                best = m.d
                who = m.who
        self.x = float(who)
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, Pair(edge.weight / edge.weight - 1.0 + self.id, self.id))
        self.vote_to_halt()
        """,
        message="message=Pair",
        before=PAIR,
    )
    assert analyse(program).consumption is Consumption.COMBINED
    weights = np.array([0.0, 3.0, 0.0, 0.0])  # 0.0 / 0.0 is NaN
    graph = Graph.from_edges([0, 1, 2, 3], [9, 9, 8, 8], weights=weights)
    for device in ("python", "cpu"):
        assert run(program, graph, device=device)["x"].tolist()[-2:] == [-1.0, 1.0]


def test_what_prevents_it_is_named_with_its_line() -> None:
    text = explain(type(loop_program("until enough")))
    assert "line 21: the loop over messages stops at one, and does something else with others" in text
