"""Matching of a bipartite graph by a handshake in four steps, maximal and random.

Edges go from left to right: a vertex with out-edges is on the left, the others are on the right, and an edge between
two on the left counts for nothing. In each cycle (0) free left vertices ask all their neighbours; (1) a free right one
grants one request and denies the others; (2) a left one accepts one of its grants; (3) the right one notes its mate.
A left vertex that hears nothing, since its neighbours are all taken, sleeps for good; one that was denied asks again.

    mate(u) = v and mate(v) = u  for some edges (u, v), no two with a common end, to which none can be added

Whoever chooses takes the smallest of numbers that those who ask have drawn (`sigps.run(..., seed=)`), so the choice is
uniform and does not depend on the order of messages. O(log n) cycles are expected.

T. E. Anderson et al., "High-speed switch scheduling for local-area networks", ACM Transactions on Computer Systems 11,
1993; G. Malewicz et al., "Pregel: a system for large-scale graph processing", SIGMOD 2010.

>>> import sigps
>>> result = sigps.run(BipartiteMatching(), sigps.Graph.from_edges([0, 0, 1, 1], [7, 8, 7, 8]), seed=1)
>>> sorted(result["mate"].tolist())
[0, 1, 7, 8]
"""

from typing import NamedTuple

from sigps import State, Vertex, VertexId


class Handshake(NamedTuple):
    """A request, an answer or an acceptance, and whose it is; `is_denied` of requests and acceptances is false."""

    is_denied: bool
    draw: float
    vertex: VertexId


class BipartiteMatching(Vertex, message=Handshake):
    """Each vertex's mate; -1: none."""

    mate: State[VertexId] = -1

    def compute(self, messages):
        """Do this vertex's part of the step."""
        step, is_left = self.superstep % 4, self.out_degree > 0
        draw = self.random()
        if step == 0 and is_left:
            self.send_to_neighbors(Handshake(False, draw, self.id))
        first = min(messages, default=Handshake(True, 0.0, -1))
        is_asked = self.mate == -1 and not is_left
        if step == 1 and is_asked:
            for m in messages:
                self.send_to(m.vertex, Handshake(m.vertex != first.vertex, draw, self.id))
        elif step == 2 and not first.is_denied:
            self.mate = first.vertex
            self.send_to(first.vertex, Handshake(False, draw, self.id))
        elif step == 3 and is_asked and messages:
            self.mate = first.vertex
        if step < 2 or not is_left or self.mate != -1:
            self.vote_to_halt()
