"""Programs that read several columns of an edge: in messages that combine or are listed, and where compute() walks."""

from __future__ import annotations

from typing import Any

import numpy as np

import sigps
from sigps import Result, State, Vertex


class Tolls(Vertex, message=float):
    """Sums of what three columns say."""

    heard: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        self.heard = self.heard * 0.5 + sum(messages)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, (self.heard + 1.0) * edge.weight + edge.time * edge.cost)
        else:
            self.vote_to_halt()


class Cheapest(Vertex, message=float):
    """Least cost with a time on top, from vertex 0: a search, which is pushed."""

    least: State[float] = sigps.inf

    def compute(self, messages: Any) -> None:
        best = 0.0 if self.superstep == 0 and self.id == 0 else min(messages, default=sigps.inf)
        if best < self.least:
            self.least = best
            for edge in self.out_edges:
                self.send(edge, best + edge.cost + edge.time)
        self.vote_to_halt()


class Narrow(Vertex, message=float):
    """A search by the narrowest columns, of which there are as many as are read where they lie."""

    least: State[float] = sigps.inf

    def compute(self, messages: Any) -> None:
        best = 0.0 if self.superstep == 0 and self.id == 0 else min(messages, default=sigps.inf)
        if best < self.least:
            self.least = best
            for edge in self.out_edges:
                self.send(edge, best + edge.lanes * 2.0 + edge.steep)
        self.vote_to_halt()


class Weighed(Vertex, message=float):
    """A search by weights, which a graph may lack, before another column."""

    least: State[float] = sigps.inf

    def compute(self, messages: Any) -> None:
        best = 0.0 if self.superstep == 0 and self.id == 0 else min(messages, default=sigps.inf)
        if best < self.least:
            self.least = best
            for edge in self.out_edges:
                self.send(edge, best + edge.weight + edge.lanes)
        self.vote_to_halt()


class Every(Vertex, message=float):
    """All columns at once, of every width."""

    sum: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        self.sum += sum(messages)
        if self.superstep < 2:
            for edge in self.out_edges:
                near = edge.lanes * 3.0 + edge.steep * edge.time + edge.weight
                self.send(edge, near + edge.cost * 0.5 + edge.far * 2.0**-40 + edge.ratio)
        else:
            self.vote_to_halt()


class Heard(Vertex, message=float):
    """Reads messages one by one, each of which is of two columns."""

    best: State[float] = 0.0
    second: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        for m in messages:
            if m > self.best:
                self.second = self.best
                self.best = m
            elif m > self.second:
                self.second = m
        if self.superstep < 2:
            for edge in self.out_edges:
                self.send(edge, edge.time * 2.0 + edge.cost)
        else:
            self.vote_to_halt()


class Walked(Vertex, message=float):
    """Its messages read two columns; compute() reads one of these and others, in another order."""

    sum: State[float] = 0.0
    narrow: State[int] = 0

    def compute(self, messages: Any) -> None:
        self.sum += sum(messages)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.sum += edge.weight * edge.ratio + edge.time
                self.narrow += edge.lanes
            for edge in self.out_edges:
                self.send(edge, self.sum * edge.time + edge.cost)
        else:
            self.vote_to_halt()


class Silent(Vertex):
    """Walks edges, of which it reads three columns; nobody sends anything."""

    cost: State[int] = 0
    time: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            if edge.lanes > 1:
                self.cost += edge.cost
            self.time += edge.time
        if self.superstep >= self.id % 3:
            self.vote_to_halt()


COLUMNS: dict[str, Vertex] = {
    "tolls": Tolls(),
    "cheapest": Cheapest(),
    "narrow": Narrow(),
    "weighed": Weighed(),
    "every": Every(),
    "heard": Heard(),
    "walked": Walked(),
    "silent": Silent(),
}
SEARCHES = "cheapest", "narrow", "weighed"
WEIGHTED = "tolls", "weighed", "every", "walked"
"""They read weights, which a graph may lack."""


def with_columns(scale: int, *, weighted: bool, directed: bool = False) -> sigps.Graph:
    """Return a graph whose edges have columns of several widths, and perhaps weights; a vertex has over 2,500 edges.

    Whole numbers are packed as a stream, others as they are.
    """
    drawn = np.random.default_rng(scale)
    made = sigps.generate("rmat", scale=scale, seed=2, directed=True).in_edges()
    num_vertices = made.offsets.size - 1
    sources = np.append(made.sources.astype(np.int64), np.full(2500, 3))
    ends = np.repeat(np.arange(num_vertices), np.diff(made.offsets).astype(np.int64))
    targets = np.append(ends, num_vertices + drawn.integers(0, 100, 2500))
    columns = {
        "cost": drawn.integers(1, 90, sources.size),
        "time": drawn.random(sources.size),
        "lanes": drawn.integers(1, 5, sources.size).astype(np.uint8),
        "steep": drawn.integers(1, 2000, sources.size).astype(np.int16),
        "ratio": drawn.random(sources.size).astype(np.float32),
        "far": drawn.integers(0, 2**62, sources.size),
    }
    weights = drawn.integers(1, 7, sources.size) * 0.25 if weighted else None
    return sigps.Graph.from_edges(sources, targets, weights, columns=columns, directed=directed)


def assert_near(found: Result, expected: Result, rtol: float, what: object = "") -> None:
    """Let two results have the same fields, floats but for rounding, and as many messages in each superstep."""
    for field in expected.fields:
        mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
        np.testing.assert_allclose(mine, theirs, rtol=rtol, err_msg=f"{field} {what}")
    assert [s.messages for s in found.stats] == [s.messages for s in expected.stats]
