"""DN-graphs: the locally densest groups of vertices, in which the ends of every edge share neighbours.

First the edges' bounds are found as in `BiTriDN`. A group is what edges connect whose bound is no smaller than the
group's, and it is a DN-graph if none of its edges has a larger one: with any vertex more it would be less dense, and no
part of it is denser. Groups are found by their smallest id, which spreads from both ends of edges of a group.

    group(v) = min { u : u and v are connected by edges of bound density(v) }, None if one of these has a denser end
    density(v) = max { bound(e) : e an edge of v }

Vertices without a triangle are in no group. The graph is taken as undirected; loops do not count, parallel edges are
one.

N. Wang, J. Zhang, K.-L. Tan, A. K. H. Tung, "On triangulation-based dense neighborhood graph discovery", Proceedings of
the VLDB Endowment 4, 2010.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1, 1, 2, 3, 4, 4, 5], [1, 2, 3, 2, 3, 3, 4, 5, 6, 6], directed=False)
>>> result = sigps.run(DNGraphs(), graph)
>>> result["group"].tolist(), result["density"].tolist()
([0, 0, 0, 0, 4, 4, 4], [2, 2, 2, 2, 1, 1, 1])
"""

from typing import NamedTuple

from sigps import Shared, State, VertexId
from sigps.apps.bitridn import BiTriDN

BOUND, SPREAD = range(2)


class Claim(NamedTuple):
    """What one end of an edge sends the other: the edge's bound, the largest density received, the smallest id."""

    bound: int
    most: int
    lowest: VertexId


class DNGraphs(BiTriDN, message=Claim):
    """The group and the density of each vertex, and the bound of each edge."""

    group: State[VertexId | None] = None
    most: State[int] = 0
    lowest: State[VertexId] = -1
    phase: Shared[int] = BOUND

    def compute(self, messages):
        """Lower bounds until all hold; then take what comes along edges of the vertex's own density, and send it."""
        if self.phase == BOUND:
            fell = self.lower_bounds()
            if fell:
                self.send_to_neighbors(Claim(0, 0, -1))
        elif self.density > 0:
            is_new = self.most == 0
            if is_new:
                self.most = self.density
                self.lowest = self.id
            for m in messages:
                if m.bound == self.density and (
                    m.most > self.most or (m.most == self.most and m.lowest < self.lowest)
                ):
                    self.most = m.most
                    self.lowest = m.lowest
                    is_new = True
            self.group = self.lowest if self.most == self.density else None
            if is_new:
                for edge in self.out_edges:
                    if edge.bound > 0:
                        self.send(edge, Claim(edge.bound, self.most, self.lowest))
        self.vote_to_halt()

    def next_phase(self):
        """Go on to the groups when all bounds hold."""
        if self.phase == BOUND:
            self.phase = SPREAD
            self.wake_all()
