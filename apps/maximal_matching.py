"""Maximal matching: edges of which no two share a vertex, and to which none can be added.

Every edge has a priority, drawn by a hash of its two ends and `seed`. In even supersteps free vertices offer
themselves to all neighbours; in odd ones each picks the offer that comes first, and answers that neighbour. Two that
picked each other are mates, and retire; so does a vertex without a free neighbour. The matching is the one that going
through the edges in order of priority gives, so it is unique for each seed.

    mate(v) = u  if (u, v) is an edge, and none before it that shares an end with it makes mates

The graph is taken as undirected, and need not be bipartite; loops match no vertex, parallel edges are one. 2 supersteps
a round; O(log n) rounds are expected.

A. Israeli, A. Itai, "A fast and simple randomized parallel algorithm for maximal matching", Information Processing
Letters 22, 1986; G. Malewicz et al., "Pregel: a system for large-scale graph processing", SIGMOD 2010; M. Fischer,
A. Noever, "Tight analysis of parallel randomized greedy MIS", SODA 2018, for the number of rounds.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 2], [1, 2, 3, 4], directed=False)
>>> sigps.run(MaximalMatching(), graph)["mate"].tolist()
[1, 0, 3, 2, None]
"""

from typing import NamedTuple

from sigps import Param, State, Vertex, VertexId
from sigps.apps.hashing import hashed


class Offer(NamedTuple):
    """Along which edge, and whose: the lower goes first. Both ends of an edge, and of ties, see the same order."""

    priority: int
    vertex: VertexId


class MaximalMatching(Vertex, message=Offer, directed=False):
    """Each vertex's mate, or None."""

    seed: Param[int] = 0
    mate: State[VertexId | None] = None

    def compute(self, messages):
        """Be matched with a neighbour that picked this vertex too, or offer to all and pick again."""
        first = min(messages, default=Offer(0, self.id))
        picks = self.superstep % 2 == 1
        if picks and messages:
            self.mate = first.vertex
        elif picks or (messages and first.vertex == self.mate):
            self.retire()
            return
        else:
            self.mate = None
        for edge in self.out_edges:
            if edge.target != self.id and (edge.target == self.mate or not picks):
                low = min(self.id, edge.target)
                high = max(self.id, edge.target)
                self.send(edge, Offer(hashed(high, hashed(low, self.seed)), self.id))
