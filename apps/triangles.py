"""Triangles: how many each vertex is a corner of, and how many there are.

    triangles(v) = |{ {u, w} : (u, v), (v, w), (w, u) are edges }|,    total = sum { triangles(v) } / 3

The graph is taken as undirected; loops, and all but one of parallel edges, do not count.

T. Schank, D. Wagner, "Finding, counting and listing all triangles in large graphs", 2005.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3], directed=False)
>>> result = sigps.run(Triangles(), graph)
>>> result["triangles"].tolist(), result.aggregators["corners"] // 3
([1, 1, 1, 0], 1)
"""

from sigps import Aggregator, State, Vertex, neighbor_links


class Triangles(Vertex, directed=False):
    """The triangles of each vertex; `corners` is three times their number."""

    triangles: State[int] = neighbor_links
    corners = Aggregator.sum(int, persistent=True)

    def compute(self, messages):
        """Count each triangle once: between two neighbours there are two arcs."""
        self.triangles //= 2
        self.corners += self.triangles
        self.vote_to_halt()
