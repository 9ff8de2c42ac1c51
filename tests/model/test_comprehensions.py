"""Reductions of expressions with `for` over vectors, and draws that are not always made: compiled as interpreted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import sigps
from sigps import Param, State, Vector, Vertex
from sigps.errors import ComputeError


class Parcel(NamedTuple):
    """Numbers, and a weight."""

    values: Vector[float, 3]
    weight: float


class OfMessages(Vertex, message=Parcel):
    """Inside loops over messages, and inside reductions of these."""

    total: State[float] = 1.0
    most: State[float] = 0.0

    def compute(self, messages):
        for m in messages:
            self.most = max(self.most, max(x * 2.0 for x in m.values))
        self.total += sum(m.weight * sum(x * x for x in m.values if x > 0.5) for m in messages)
        if self.superstep < 3:
            self.send_to_neighbors(Parcel((0.25, float(self.id % 3), self.total * 0.01), 0.5))
        else:
            self.vote_to_halt()


class OfVectors(Vertex):
    """Every reduction, with conditions, starts, defaults and names that are used outside, too."""

    v: State[Vector[float, 4]] = (3.0, 1.0, 2.0, 0.5)
    n: State[Vector[int, 3]] = (4, 5, 6)
    total: State[float] = 0.0
    most: State[float] = 0.0
    count: State[int] = 0
    kept: State[int] = 0

    def squares(self) -> float:
        return sum(x * x for x in self.v)

    def compute(self, messages):
        x = self.id
        self.v[self.id % 4] = float(self.id)
        self.total = sum((x - 1.0 for x in self.v if x > 0.75), 10.0) + self.squares()
        self.most = max(x * 2.0 for x in self.v) + min((x for x in self.v if x > 90.0), default=-1.0)
        self.count = sum(1 for x in self.v if x > 1.5) + sum(i * self.id for i in range(4))
        self.vote_to_halt()
        self.kept = x


class Flags(Vertex):
    """`any` and `all` stop at the first that decides: nothing is divided by zero behind it."""

    n: State[Vector[int, 3]] = (4, 0, 6)
    found: State[int] = 0
    kept: State[int] = 0

    def compute(self, messages):
        x = self.id
        self.found = 1 if any(12 // x == 3 for x in self.n) else 0
        self.found += 10 if all(x != 0 and 12 // x > 0 for x in self.n) else 0
        self.found += 100 * sum(x > 1 for x in self.n) + 1000 * max(x for x in self.n if x < 5)
        self.kept = x
        self.vote_to_halt()


class Least(Vertex):
    """The least of nothing."""

    v: State[Vector[float, 2]] = 1.0
    bound: Param[float] = 0.5
    least: State[float] = 0.0

    def compute(self, messages):
        self.least = min(x for x in self.v if x > self.bound + self.id)
        self.vote_to_halt()


class Draws(Vertex, message=float):
    """Draws in every place that is not always reached."""

    total: State[float] = 0.0
    count: State[int] = 0

    def compute(self, messages):
        self.total += sum(messages)
        if self.id % 2 and self.random() < 0.5:
            self.count += 1
        if self.id % 3 == 0 or (self.random() < 0.5 and self.random() > 0.2):
            self.count += 10
        x = (self.random() if self.id % 2 else (self.random_int(5) if self.id % 3 else 1)) + self.random()
        k = 0
        while self.random() < 0.7 and k < 5:
            k += 1
        for edge in self.out_edges:
            while self.random_int(4) > 1:
                k += 1
            self.send(
                edge, x if edge.target % 2 else self.random() * (self.random() if edge.target % 3 else 2)
            )
        self.count += 100 * k + (self.random_edge().target if self.out_degree > 2 else 0)
        if self.superstep > 3:
            self.vote_to_halt()


class AlongNeighbors(Vertex, message=float):
    """A draw in a message to all neighbours."""

    total: State[float] = 0.0

    def compute(self, messages):
        self.total += sum(messages)
        if self.superstep < 3:
            self.send_to_neighbors(self.random() if self.id % 2 else 1.0)
        else:
            self.vote_to_halt()


@pytest.mark.parametrize("made", [OfMessages, OfVectors, Flags, Draws, AlongNeighbors])
def test_compiled_code_gives_what_python_gives(made: Any) -> None:
    graph = sigps.generate("rmat", scale=6, seed=2, directed=False)
    options: dict[str, Any] = {"max_supersteps": 6, "seed": 5, "deterministic": True}
    expected, found = (sigps.run(made(), graph, device=device, **options) for device in ("python", "cpu"))
    for field in made.declaration.states:
        name = field if isinstance(field, str) else field.name
        np.testing.assert_array_equal(found[name], expected[name])


def test_the_numbers_are_those_of_plain_python() -> None:
    graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    result = sigps.run(Flags(), graph, device="cpu")
    assert result["found"].tolist() == [4201] * 4
    assert result["kept"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_the_least_of_nothing_has_no_value(device: str) -> None:
    graph = sigps.Graph.from_edges([0, 1], [1, 0])
    with pytest.raises((ComputeError, ValueError)):
        sigps.run(Least(), graph, device=device)
