"""Maximal independent set: vertices of which no two are neighbours, and to which none can be added.

Every vertex has a priority, drawn by a hash of its id and `seed`. In odd supersteps those that come before all
neighbours still undecided are chosen, and say so; in even ones their neighbours drop out, and the undecided give
their priorities again. The set is the one that going through the vertices in order of priority gives, so it is
unique for each seed.

    chosen(v) = no u with (u, v) an edge, priority(u) < priority(v) and chosen(u)

The graph is taken as undirected; loops are ignored. 2 supersteps a round; O(log n) rounds are expected.

M. Luby, "A simple parallel algorithm for the maximal independent set problem", SIAM Journal on Computing 15, 1986;
G. E. Blelloch, J. T. Fineman, J. Shun, "Greedy sequential maximal independent set and matching are parallel on
average", SPAA 2012.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 2], [1, 2, 3, 4], directed=False)
>>> sigps.run(MaximalIndependentSet(), graph)["chosen"].tolist()
[False, True, True, True, False]
"""

from typing import NamedTuple

from sigps import Param, State, Vertex, VertexId
from sigps.apps.hashing import hashed


class Claim(NamedTuple):
    """Whose turn it is: the lower goes first."""

    priority: int
    vertex: VertexId


class MaximalIndependentSet(Vertex, message=Claim, directed=False):
    """Whether each vertex is in the set."""

    seed: Param[int] = 0
    chosen: State[bool] = False

    def compute(self, messages):
        """Drop out beside a chosen vertex, or be chosen before all undecided ones."""
        mine = Claim(hashed(self.id, self.seed), self.id)
        if self.superstep % 2 == 1:
            if mine <= min(messages, default=mine):
                self.chosen = True
                self.send_to_neighbors(mine)
                self.retire()
        elif messages:
            self.retire()
        else:
            self.send_to_neighbors(mine)
