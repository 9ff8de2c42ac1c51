"""What a parameter may be: in Python, and what the command line says of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cells import run_cell

from sigps import (
    CompileError,
    ConfigError,
    Graph,
    Param,
    State,
    Table,
    Vertex,
    VertexId,
    above,
    at_least,
    between,
    finite,
    one_of,
    requires,
    run,
)
from sigps.compiler.explain import explain


class Limited(Vertex):
    share: Param[float] = between(0, 1, default=0.85)
    half_open: Param[float] = between(0, 1, open="high", default=0)
    rounds: Param[np.int8] = at_least(2)
    rate: Param[float | None] = above(0, default=None)
    bias: Param[float] = finite(default=0.0)
    mode: Param[str] = one_of("fast", "exact", default="fast")
    weights: Param[Table[float]] = at_least(0)
    low: Param[VertexId]
    high: Param[VertexId]
    x: State[float] = 0.0

    @requires("low and high are different vertices")
    def has_two_ends(self) -> bool:
        return self.low != self.high

    def compute(self, messages: Any) -> None:
        self.x = self.share * self.rounds + self.bias + self.weights[0]
        if self.rate is not None:
            self.x += self.rate
        if self.mode == "exact":
            self.x += 100.0
        self.vote_to_halt()


class Narrower(Limited):
    rounds: Param[int] = between(2, 3, default=3)

    @requires("there are at least two weights")
    def has_weights(self) -> bool:
        return len(self.weights) >= 2


GIVEN = {"rounds": 2, "weights": [0.0, 4.0], "low": 0, "high": 1}


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_what_is_within_the_limits_is_taken(device: Any) -> None:
    program = Limited(**GIVEN | {"share": 1, "rate": 0.25, "mode": "exact", "bias": -4.5, "weights": [4.5]})
    graph = Graph.from_edges([0], [1])
    assert run(program, graph, device=device)["x"].tolist() == [102.25, 102.25]
    assert type(Limited(**GIVEN).params["rounds"]) is np.int8
    assert (Limited.share, hasattr(Limited, "rounds"), Narrower(**GIVEN | {"rounds": 3}).rounds) == (
        0.85,
        False,
        3,
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"share": 1.5}, "Limited: share=1.5 is not from 0 to 1"),
        ({"share": math.nan}, "Limited: share=nan is not from 0 to 1"),
        ({"half_open": 1.0}, "Limited: half_open=1.0 is not at least 0 and below 1"),
        ({"rounds": 1}, "Limited: rounds=1 is not at least 2"),
        ({"rate": 0}, "Limited: rate=0 is not above 0, nor None"),
        ({"rate": math.inf}, "Limited: rate=inf is not above 0 and finite, nor None"),
        ({"rate": "x"}, "Limited: rate='x' is no number above 0, nor None"),
        ({"bias": -math.inf}, "Limited: bias=-inf is not a number and finite"),
        ({"mode": "Exact"}, "Limited: mode='Exact' is none of 'fast', 'exact'; did you mean 'exact'?"),
        ({"weights": [1, -2]}, "Limited: weights=[1, -2] holds -2.0 at position 1, not at least 0"),
        ({"low": 1}, "Limited: low and high are different vertices, not low=1, high=1"),
    ],
)
def test_what_is_outside_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Limited(**GIVEN | given)
    assert str(caught.value) == says


def test_a_subclass_keeps_and_replaces_limits_and_conditions() -> None:
    assert Narrower(**{name: value for name, value in GIVEN.items() if name != "rounds"}).rounds == 3
    for given, says in [
        ({"rounds": 4}, "Narrower: rounds=4 is not from 2 to 3"),
        ({"low": 1}, "low and high are different vertices"),
        ({"weights": [1.0]}, "Narrower: there are at least two weights, not weights=<Table"),
    ]:
        with pytest.raises(ConfigError, match=says):
            Narrower(**GIVEN | given)


@pytest.mark.parametrize(
    ("line", "error", "says"),
    [
        ("x: Param[float] = between(0, 1, default=2)", CompileError, "P: x=2 is not from 0 to 1"),
        ("x: Param[VertexId] = at_least(0)", CompileError, "P.x names a vertex, and may be any of the graph"),
        ("x: State[float] = at_least(0)", CompileError, "State[float] cannot begin as"),
        ("x: Param[float] = between(1, 0)", TypeError, "between(1, 0): no number is between them"),
        ("x: Param[float] = between(1, 1, open='low')", TypeError, "no number is between them"),
        ("x: Param[float] = between(0, 1, open='left')", TypeError, "give 'low', 'high' or 'both'"),
        ("x: Param[str] = one_of()", TypeError, "one_of() takes the values"),
    ],
)
def test_wrong_limits(line: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        run_cell(f"from sigps import at_least, between, one_of\nclass P(Vertex):\n    {line}")
    assert says in str(caught.value)


def test_explain_shows_the_limits_and_finds_examples_within() -> None:
    text = explain(Limited)
    for shown in (
        "share: float from 0 to 1 = 0.85",
        "rounds: int8 at least 2",
        "mode: constant 'fast' or 'exact' = 'fast'",
        "weights: Table[float] at least 0",
        "low and high are different vertices",
    ):
        assert shown in text
