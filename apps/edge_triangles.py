"""Triangles on edges: how many common neighbours the two ends of each edge have.

    triangles(u, v) = |{ w : (u, w), (w, v) are edges }|,   most(v) = max { triangles(e) : e an edge of v }

The graph is taken as undirected; a loop is on no triangle, and parallel edges are on the same ones. A triangle counts
on all three of its edges, and each end of an edge counts for itself. One superstep, no messages. What is left when
edges on few triangles are taken away, again and again, is in `BiTriDN`.

J. Cohen, "Graph twiddling in a MapReduce world", Computing in Science & Engineering 11, 2009.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 1, 2, 3], [1, 2, 2, 3, 3, 4], directed=False)
>>> result = sigps.run(EdgeTriangles(), graph)
>>> result.edges["triangles"].tolist(), result["most"].tolist()
([1, 1, 2, 1, 1, 0], [1, 2, 2, 1, 0])
"""

from sigps import EdgeState, State, Vertex


class EdgeTriangles(Vertex, directed=False):
    """The triangles on each edge, and the most on any edge of each vertex."""

    triangles: EdgeState[int] = 0
    most: State[int] = 0

    def compute(self, messages):
        """Count the common neighbours with each neighbour."""
        for edge in self.out_edges:
            if edge.target != self.id:
                edge.triangles = sum(1 for one, other in self.common_neighbors(edge))
            self.most = max(self.most, edge.triangles)
        self.vote_to_halt()
