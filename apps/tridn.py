"""Dense neighbourhoods by triangulation: how many neighbours the ends of each edge share in the densest part around.

Each edge has an upper bound of that number, first its triangles. A bound holds if as many triangles on the edge have
bounds no smaller on both other sides; one that does not hold falls by one. Those that all hold are the largest that do.

    bound(u, v) = max { k : |{ w : bound(u, w) >= k, bound(v, w) >= k }| >= k },   w a common neighbour of u and v

An edge's bound plus 2 is its truss number. The graph is taken as undirected; loops do not count, and parallel edges
are one. A superstep for each fall: as many as triangles on one edge, at most.

N. Wang, J. Zhang, K.-L. Tan, A. K. H. Tung, "On triangulation-based dense neighborhood graph discovery", Proceedings of
the VLDB Endowment 4, 2010; J. Cohen, "Trusses: cohesive subgraphs for social network analysis", 2008.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1, 1, 2, 3], [1, 2, 3, 2, 3, 3, 4], directed=False)
>>> result = sigps.run(TriDN(), graph)
>>> result.edges["bound"].tolist(), result["density"].tolist()
([2, 2, 2, 2, 2, 2, 0], [2, 2, 2, 2, 0])
"""

from sigps import EdgeState, State, Vertex


class TriDN(Vertex, message=bool, directed=False):
    """The bound of each edge, and the largest of each vertex's edges."""

    bound: EdgeState[int] = 0
    density: State[int] = 0

    def compute(self, messages):
        """Let the bounds fall that do not hold, and tell the neighbours, who look at them."""
        fell = self.superstep == 0
        self.density = 0
        for edge in self.out_edges:
            if edge.target != self.id and self.superstep == 0:
                edge.bound = sum(1 for one, other in self.common_neighbors(edge))
            elif edge.bound > 0:
                holding = 0
                for one, other in self.common_neighbors(edge):
                    if one.bound >= edge.bound and other.bound >= edge.bound:
                        holding += 1
                        if holding == edge.bound:
                            break
                if holding < edge.bound:
                    edge.bound -= 1
                    fell = True
            self.density = max(self.density, edge.bound)
        if fell:
            self.send_to_neighbors(True)
        self.vote_to_halt()
