"""Programs that add up floats, whose deterministic runs leave the same bits everywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sigps import Aggregator, Result, State, Vector, Vertex
from sigps.apps import HITS, Katz, PageRank


class Pair(NamedTuple):
    weight: float
    count: int


class Mixed(Vertex, message=Pair):
    """Sums of floats beside other reductions, in an order that the rule must not show."""

    x: State[float] = 0.1
    n: State[int] = 0
    low: State[float] = 0.0
    given = Aggregator.sum(float)
    most = Aggregator.max(float)
    ever = Aggregator.sum(float, persistent=True)
    narrow = Aggregator.sum(np.float32)

    def compute(self, messages):
        total = self.x
        for m in messages:
            total += m.weight / 3.0
            if m.count > 1:
                self.x = self.x + m.weight
        self.n = sum(m.count for m in messages)
        self.low = min((m.weight for m in messages), default=0.0) + sum((m.weight for m in messages), 0.25)
        self.given += total * 0.1
        self.ever += self.x * 0.1
        self.narrow += self.x
        self.most += total
        self.x = total * 0.7 + self.x * 0.3 + 1e-3 * self.given
        if self.superstep < 4:
            self.send_to_neighbors(Pair(self.x * (self.id % 7 - 3.1), 1 + self.id % 2))
        else:
            self.vote_to_halt()


class Posted(Vertex, message=float, combiner=sum):
    """Direct messages that a combiner adds up."""

    x: State[float] = 0.1

    def compute(self, messages):
        self.x += sum(messages)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, self.x * 0.3)
                self.send(edge, self.x / -7)
        self.vote_to_halt()


class Bundle(NamedTuple):
    """A vector, a number and a count."""

    values: Vector[float, 3]
    weight: float
    count: int


class Vectors(Vertex, message=Bundle):
    """Sums of vectors of floats beside others: at once, in a loop, and of what is computed of a message."""

    v: State[Vector[float, 3]] = 0.1
    narrow: State[Vector[np.float32, 2]] = 0.1
    x: State[float] = 0.1
    n: State[int] = 0

    def compute(self, messages):
        given = self.v * 0.5
        for m in messages:
            given += m.values / 3.0
            if m.count > 1:
                self.narrow += m.values[1:3]
        self.v = given + sum(m.values * m.weight for m in messages) * 1e-2
        self.x = self.x * 0.3 + sum(m.weight for m in messages)
        self.n = sum(m.count for m in messages)
        if self.superstep < 4:
            mine = self.v * (self.id % 7 - 3.1)
            mine[self.id % 3] += 1e9
            self.send_to_neighbors(Bundle(mine, self.x + self.id % 3, 1 + self.id % 2))
        else:
            self.vote_to_halt()


class Thrown(Vertex, message=Vector[float, 2], combiner=sum):
    """Direct messages that a combiner adds up."""

    v: State[Vector[float, 2]] = (0.1, -0.7)

    def compute(self, messages):
        self.v += sum(messages)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, self.v * 0.3)
                self.send(edge, self.v / -7)
        self.vote_to_halt()


class Heaped(Vertex, message=float):
    """Aggregators that add up vectors of floats, some numbers of which nobody gives anything."""

    x: State[float] = 0.1
    heaps = Aggregator.sum(Vector[float, 3], persistent=True)
    narrow = Aggregator.sum(Vector[np.float32, 2])
    all_at_once = Aggregator.sum(Vector[float, 2])
    count = Aggregator.sum(int)

    def compute(self, messages):
        self.heaps[self.id % 2] += self.x * 1e9 if self.id % 5 == 1 else self.x / 3.0
        self.narrow[1] += self.x * 0.7
        self.all_at_once += (self.x * self.id, -self.x)
        self.count += 1
        self.x = sum(messages) * 0.3 + self.heaps[0] * 1e-10 + self.narrow[1] + self.all_at_once[1] / 7.0
        if self.superstep < 4:
            self.send_to_neighbors(self.x)
        else:
            self.vote_to_halt()


PROGRAMS: dict[str, Any] = {
    "PageRank": lambda: PageRank(iterations=6),
    "Katz": lambda: Katz(attenuation=0.01),
    "HITS": lambda: HITS(iterations=4),
    "Mixed": Mixed,
    "Posted": Posted,
    "Vectors": Vectors,
    "Thrown": Thrown,
    "Heaped": Heaped,
}


def bits(result: Result) -> dict[str, Any]:
    """Return everything that a run left, floats by their bits."""
    found: dict[str, Any] = {name: result[name].tobytes() for name in result.fields}
    return found | {name: np.array(value).tobytes() for name, value in result.aggregators.items()}
