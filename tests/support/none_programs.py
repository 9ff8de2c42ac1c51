"""Programs with vertex ids that may be None, in every place where one can be."""

from __future__ import annotations

from typing import NamedTuple

from sigps import EdgeState, Param, State, Vertex, VertexId


class Tree(Vertex, message=VertexId):
    """The tree of a search; None where no path leads."""

    source: Param[VertexId]
    parent: State[VertexId | None]

    def compute(self, messages):
        found = self.id if self.superstep == 0 and self.id == self.source else min(messages, default=None)
        if self.parent is None and found is not None:
            self.parent = found
            self.send_to_neighbors(self.id)
        self.vote_to_halt()


class Elect(Vertex, message=VertexId | None, directed=False):
    """Odd ids are sent, even ones stay unsaid; the largest that is said, how many said nothing, and who agrees."""

    best: State[VertexId | None] = None
    again: State[VertexId | None] = None
    silent: State[int] = 0
    agrees: State[bool] = False

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(self.id if self.id % 2 == 1 else None)
        elif self.superstep == 1:
            self.best = max((m for m in messages if m is not None), default=None)
            self.silent = sum(1 for m in messages if m is None)
            self.send_to_neighbors(self.best)
        else:
            for m in messages:
                if m is not None and (self.again is None or m > self.again):
                    self.again = m
            self.agrees = self.best == self.again
            self.vote_to_halt()
        if self.superstep == 2:
            self.retire()


class Word(NamedTuple):
    who: VertexId | None
    weight: float


class Named(Vertex, message=Word):
    """Messages one by one: what is said of nobody, and of somebody, by edges of two kinds."""

    nobody: State[float] = 0.0
    last: State[VertexId | None]

    def compute(self, messages):
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, Word(edge.target if edge.weight > 2 else None, edge.weight))
            self.send_to(self.id, Word(None, 100.0))
        best = None
        for m in messages:
            if m.who is None:
                self.nobody += m.weight
            elif best is None or m.who > best:
                best = m.who
        self.last = best
        self.vote_to_halt()


class Kept(Vertex, message=int, directed=False):
    """Values on edges: each end keeps the other where that is larger, and reads what the other keeps."""

    larger: EdgeState[VertexId | None] = None
    smaller: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            for edge in self.out_edges:
                if edge.target > self.id:
                    edge.larger = edge.target
        else:
            self.smaller = sum(1 for edge in self.out_edges if edge.reverse.larger == self.id)
            self.vote_to_halt()
        if self.superstep > 1:
            self.retire()


PROGRAMS = {
    "tree": lambda: Tree(source=-1),
    "elect": Elect,
    "named": Named,
    "kept": Kept,
}
