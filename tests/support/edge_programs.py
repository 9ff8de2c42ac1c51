"""Programs that keep values on edges and look through the edges of neighbours."""

from __future__ import annotations

import math
from typing import Any

from sigps import Aggregator, EdgeState, Param, State, Vertex


class EdgeTriangles(Vertex, directed=False):
    """The triangles on each edge, and those of which a vertex is a corner."""

    support: EdgeState[int]
    corners: State[int] = 0
    total = Aggregator.sum(int)

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            for one, other in self.common_neighbors(edge):
                if one.target > edge.target and other.target == one.target:
                    self.corners += 1
            edge.support = sum(1 for one, other in self.common_neighbors(edge))
        self.total += self.corners
        self.vote_to_halt()


class Waves(Vertex, message=float):
    """Of directed graphs: what lies on edges spreads over transitive triples, one superstep late, and is sent."""

    rounds: Param[int] = 3
    flow: EdgeState[float] = 0.5
    hops: EdgeState[int] = -1
    heard: State[float] = 0.0
    best: State[float] = 0.0
    most = Aggregator.max(float)

    def compute(self, messages: Any) -> None:
        self.heard += sum(messages)
        for edge in self.out_edges:
            if self.superstep == 0:
                edge.flow = edge.weight
                edge.hops = self.id
                continue
            taken = 0
            for one, other in self.common_neighbors(edge):
                if one.hops > other.hops:
                    continue
                taken += 1
                if taken > 3:
                    break
                edge.flow += (one.flow + 0.5 * other.flow) * 0.25
            edge.hops = max((other.hops for one, other in self.common_neighbors(edge)), default=edge.hops)
            if any(other.flow > edge.flow for one, other in self.common_neighbors(edge)):
                edge.flow *= 0.5
            if self.superstep < self.rounds:
                self.send(edge, edge.flow)
        self.best = max((edge.flow for edge in self.out_edges), default=-1.0)
        self.most += self.best
        if self.superstep >= self.rounds:
            self.vote_to_halt()


class Returns(Vertex, directed=False):
    """What the other end keeps on an edge comes back, one superstep late, with the end's id."""

    said: EdgeState[int] = 0
    sum: EdgeState[int] = 0
    heard: State[int] = 0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.said = self.superstep * 10 + self.out_degree
            edge.sum += edge.reverse.said
        self.heard = max((edge.reverse.sum for edge in self.out_edges), default=-1)
        if self.superstep == 3:
            self.vote_to_halt()


class Marks(Vertex, message=bool):
    """Keeps narrow values on edges and looks at nobody else's."""

    seen: EdgeState[bool]
    times: EdgeState[int] = 3

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.times += self.superstep
            edge.seen = edge.times > 4 or edge.target < self.id
        if self.superstep < 3:
            self.send_to_neighbors(True)
        self.vote_to_halt()


class Mirrors(Vertex, directed=False):
    """What a neighbour wrote in this superstep is not seen before the next; what a vertex wrote itself neither."""

    mark: EdgeState[int] = 7
    seen: EdgeState[int] = 0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.mark = 100 * (self.superstep + 1)
            edge.seen = sum(one.mark + other.mark for one, other in self.common_neighbors(edge))
        if self.superstep == 1:
            self.vote_to_halt()


class Closeness(Vertex, message=int, directed=False):
    """What neighbours say adds up; what a vertex says grows with its triangles."""

    corners: State[int] = 0
    heard: State[int] = 0

    def compute(self, messages: Any) -> None:
        self.heard += sum(messages)
        for edge in self.out_edges:
            self.corners += sum(1 for one, other in self.common_neighbors(edge))
        if self.superstep < 3:
            self.send_to_neighbors(self.corners + self.superstep)
        self.vote_to_halt()


class Loudest(Vertex, message=int, directed=False):
    """How many neighbours say the most, which takes two looks at the messages."""

    corners: State[int] = 0
    heard: State[int] = 0

    def compute(self, messages: Any) -> None:
        most = max(messages, default=-1)
        self.heard += most + sum(1 for m in messages if m == most)
        for edge in self.out_edges:
            for one, other in self.common_neighbors(edge):
                self.corners += one.target % 3 + other.target % 2
        if self.superstep < 3:
            self.send_to_neighbors(self.corners % 5)
        self.vote_to_halt()


class SentAlong(Vertex, message=int):
    """Keeps on each edge how often it was sent along."""

    sent: EdgeState[int] = 0
    heard: State[int] = 0

    def compute(self, messages):
        self.heard += sum(messages)
        for edge in self.out_edges:
            edge.sent += self.superstep + 1
        if self.superstep < 3:
            self.send_to_neighbors(self.superstep + 1)
        self.vote_to_halt()


class Posts(Vertex, message=int, directed=False):
    """Counts on every edge, and sends the count by direct messages, more than the first capacity."""

    kept: EdgeState[int] = 0
    x: State[int] = 0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.kept += 1
            self.send(edge, edge.kept)
        self.x = sum(messages)
        if self.superstep == 1:
            self.vote_to_halt()


class Unasked(Vertex, message=float):
    """Names neighbours and a reverse where it does not run."""

    x: State[float] = 0.0
    reverse: Param[bool] = False
    mode: Param[str] = "plain"

    def compute(self, messages: Any) -> None:
        if self.reverse:
            self.x = 1.0
        if self.mode == "triangles":
            for edge in self.out_edges:
                self.x += sum(1 for a, b in self.common_neighbors(edge))
        if self.superstep < 2:
            self.send_to_neighbors(1.0)
        self.x += sum(messages)
        self.vote_to_halt()


class Signs(Vertex, directed=False):
    """Writes a zero of another sign, which is another value."""

    d: EdgeState[float] = 0.0
    x: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        self.x = 0.0
        for edge in self.out_edges:
            edge.d = -0.0
            self.x += sum(math.copysign(1.0, b.d) for a, b in self.common_neighbors(edge))
        if self.superstep == 1:
            self.vote_to_halt()
