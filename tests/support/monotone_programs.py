"""Programs that only take what is better, beside those of `sigps.apps`."""

from __future__ import annotations

from typing import NamedTuple

from sigps import Param, State, Vertex, VertexId, inf


class Way(NamedTuple):
    """A way to a vertex: how long it is, how many edges it has, and where it begins."""

    length: float
    hops: int
    start: VertexId


class Nearest(Vertex, message=Way):
    """The nearest of two vertices; a tie is broken by what else a message says."""

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
    """The greatest sum of weights on a way here, from anywhere; for graphs without cycles of positive weight."""

    loudness: State[float] = -inf

    def compute(self, messages):
        heard = max(messages, default=0.0)
        if heard > self.loudness:
            self.loudness = heard
            for edge in self.out_edges:
                self.send(edge, edge.weight + heard)
        self.vote_to_halt()


class Highest(Vertex, message=VertexId):
    """The greatest id on a way here; the first superstep says less than it could."""

    highest: State[VertexId] = -5

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(self.id)
        else:
            heard = max(messages, default=self.highest)
            if heard > self.highest:
                self.highest = heard
                self.send_to_neighbors(heard)
        self.vote_to_halt()


class Hops(Vertex, message=int):
    """The fewest edges from a vertex."""

    source: Param[VertexId]
    hops: State[int] = 1_000_000

    def compute(self, messages):
        heard = 0 if self.superstep == 0 and self.id == self.source else min(messages, default=1_000_000)
        if heard < self.hops:
            self.hops = heard
            self.send_to_neighbors(heard + 1)
        self.vote_to_halt()
