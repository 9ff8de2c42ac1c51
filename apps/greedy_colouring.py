"""Greedy colouring: each vertex has the smallest colour that no neighbour before it has.

Every vertex has a priority, drawn by a hash of its id and `seed`, and a colour it hopes for, at first 0. In odd
supersteps those that come before all undecided neighbours, by hoped-for colour and then by priority, get theirs
and say so; in even ones neighbours that hoped for the same go on to the next. So colours arrive in ascending
order, none need be remembered, and the colours are those of going through the vertices in order of priority.

    colour(v) = min { c >= 0 : no u with (u, v) an edge, priority(u) < priority(v) and colour(u) = c }

The graph is taken as undirected; loops are ignored. 2 supersteps a round; colours are at most the degree.

M. T. Jones, P. E. Plassmann, "A parallel graph coloring heuristic", SIAM Journal on Scientific Computing 14, 1993.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 0, 1], [1, 2, 3, 4, 2], directed=False)
>>> sigps.run(GreedyColouring(), graph)["colour"].tolist()
[2, 0, 1, 0, 0]
"""

from typing import NamedTuple

from sigps import Param, State, Vertex, VertexId
from sigps.apps.hashing import hashed


class Claim(NamedTuple):
    """Who gets which colour: the lower goes first."""

    colour: int
    priority: int
    vertex: VertexId


class GreedyColouring(Vertex, message=Claim, directed=False):
    """Colours from 0 that differ along every edge."""

    seed: Param[int] = 0
    colour: State[int] = 0

    def compute(self, messages):
        """Take the colour if it is this vertex's turn, and the next one if it is gone."""
        is_turn = self.superstep % 2 == 1
        if not is_turn and max((m.colour for m in messages), default=-1) == self.colour:
            self.colour += 1
        mine = Claim(self.colour, hashed(self.id, self.seed), self.id)
        if not is_turn or mine <= min(messages, default=mine):
            self.send_to_neighbors(mine)
            if is_turn:
                self.retire()
