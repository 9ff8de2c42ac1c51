"""Monotone programs, beside those of `sigps.apps`."""

from __future__ import annotations

from typing import NamedTuple

from sigps import Param, State, Vertex, VertexId, inf


class Way(NamedTuple):
    """A path to a vertex: its length, its number of edges, and its first vertex."""

    length: float
    hops: int
    start: VertexId


class Looped(Vertex, message=float):
    """Shortest paths, with the least message found by hand."""

    source: Param[VertexId]
    distance: State[float] = inf

    def compute(self, messages):
        best = 0.0 if self.superstep == 0 and self.id == self.source else inf
        for m in messages:
            if m < best:
                best = m
        if best < self.distance:
            self.distance = best
            for edge in self.out_edges:
                self.send(edge, best + edge.weight)
        self.vote_to_halt()


class Nearest(Vertex, message=Way):
    """The nearest of two vertices; a tie is broken by the message's other fields."""

    source: Param[VertexId]
    distance: State[float] = inf
    hops: State[int] = -1
    start: State[VertexId] = -1

    def compute(self, messages):
        best = min(messages, default=Way(inf, 0, -1))
        if self.superstep == 0 and (self.id == self.source or self.out_degree > 3):
            best = Way(0.0, 0, self.id)
        if best.length < self.distance:
            self.distance = best.length
            self.hops = best.hops
            self.start = best.start
            for edge in self.out_edges:
                self.send(edge, Way(best.length + edge.weight, best.hops + 1, best.start))
        self.vote_to_halt()


class Loudest(Vertex, message=float):
    """The greatest sum of weights on a path that ends here; for graphs without cycles of positive weight."""

    loudness: State[float] = -inf

    def compute(self, messages):
        received = max(messages, default=0.0)
        if received > self.loudness:
            self.loudness = received
            for edge in self.out_edges:
                self.send(edge, edge.weight + received)
        self.vote_to_halt()


class Highest(Vertex, message=VertexId):
    """The greatest id on a path that ends here; superstep 0 sends ids without storing them."""

    highest: State[VertexId] = -5

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(self.id)
        else:
            received = max(messages, default=self.highest)
            if received > self.highest:
                self.highest = received
                self.send_to_neighbors(received)
        self.vote_to_halt()


class Hops(Vertex, message=int):
    """The fewest edges from a vertex."""

    source: Param[VertexId]
    hops: State[int] = 1_000_000

    def compute(self, messages):
        received = 0 if self.superstep == 0 and self.id == self.source else min(messages, default=1_000_000)
        if received < self.hops:
            self.hops = received
            self.send_to_neighbors(received + 1)
        self.vote_to_halt()


class KeepsTheFirst(Vertex, message=Way):
    """The least length, and where the first path that came began: that is no matter of the least alone."""

    source: Param[VertexId] = 0
    length: State[float] = inf
    start: State[VertexId | None] = None

    def compute(self, messages):
        best = min(messages, default=Way(inf, 0, self.id))
        if self.superstep == 0 and self.id == self.source:
            best = Way(0.0, 0, self.id)
        if best.length < self.length:
            self.length = best.length
            if self.start is None:
                self.start = best.start
            for edge in self.out_edges:
                self.send(edge, Way(best.length + edge.weight, 0, self.id))
        self.vote_to_halt()


class Lowest(Vertex, message=float):
    """The least number that comes along a path; one vertex sends less in superstep 0 than it keeps."""

    least: State[float] = inf

    def compute(self, messages):
        received = min(messages, default=9.0)
        if received < self.least:
            self.least = received
            sent = received
            if self.superstep == 0 and self.id == 2:
                sent = -5.0
            for edge in self.out_edges:
                self.send(edge, sent + edge.weight)
        self.vote_to_halt()


class Joined(Vertex, message=VertexId, directed=False):
    """The smallest id of each vertex's component, and the superstep in which it came."""

    component: State[VertexId] = -1
    came: State[int] = -1

    def compute(self, messages):
        label = self.id if self.superstep == 0 else min(messages, default=self.component)
        if self.superstep == 0 or label < self.component:
            self.component = label
            self.came = self.superstep
            self.send_to_neighbors(label)
        self.vote_to_halt()
