"""What several tests share of `test_edge_schedule`."""

from __future__ import annotations

from cases import PROGRAMS, program_for

from sigps import EdgeState, Param, State, Vertex
from sigps.compiler.frontend.analysis import analyse

BY_EDGE = [
    name for name, made in PROGRAMS.items() if analyse(program_for(name, "path")).edge_obstacle is None
]


class Paced(Vertex, message=int):
    """Everybody is active for a while, and nobody sends."""

    turns: Param[int] = 3
    count: State[int] = 0

    def compute(self, messages):
        self.count += 1 + sum(messages)
        if self.superstep == self.turns:
            self.vote_to_halt()


class Marks(Vertex, message=int):
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
