"""Dense neighbourhoods by triangulation and binary search: the bounds of `TriDN` in far fewer supersteps.

A bound that does not hold falls at once to the largest that does, which is found by halving: the higher a bound,
the fewer triangles on an edge support it.

    bound(u, v) = max { k : |{ w : bound(u, w) >= k, bound(v, w) >= k }| >= k },   w a common neighbour of u and v

An edge's bound plus 2 is its truss number. The graph is taken as undirected; loops do not count, and parallel edges
are one.

N. Wang et al., "On triangulation-based dense neighborhood graph discovery", Proceedings of the VLDB Endowment 4, 2010;
A. E. Sariyuce et al., "Local algorithms for hierarchical dense subgraph discovery", the same 12, 2018: why it ends.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1, 1, 2, 3], [1, 2, 3, 2, 3, 3, 4], directed=False)
>>> result = sigps.run(BiTriDN(), graph)
>>> result.edges["bound"].tolist(), result["density"].tolist()
([2, 2, 2, 2, 2, 2, 0], [2, 2, 2, 2, 0])
"""

from sigps import EdgeState, State, Vertex


class BiTriDN(Vertex, message=bool, directed=False):
    """The bound of each edge, and the largest of each vertex's edges."""

    bound: EdgeState[int] = 0
    density: State[int] = 0

    def compute(self, messages):
        """Let the bounds fall that do not hold, and send to the neighbours, which check theirs."""
        fell = self.lower_bounds()
        if fell:
            self.send_to_neighbors(True)
        self.vote_to_halt()

    def lower_bounds(self):
        """Let each bound of this vertex's edges fall to the largest that holds; return whether any did."""
        fell = self.superstep == 0
        self.density = 0
        for edge in self.out_edges:
            if edge.target != self.id and self.superstep == 0:
                edge.bound = sum(1 for one, other in self.common_neighbors(edge))
            elif edge.bound > 0:
                low, high, tried = 0, edge.bound, edge.bound  # most bounds hold
                while low < high:
                    holding = 0
                    for one, other in self.common_neighbors(edge):
                        if one.bound >= tried and other.bound >= tried:
                            holding += 1
                            if holding == tried:
                                break
                    if holding == tried:
                        low = tried
                    else:
                        high = tried - 1
                    tried = (low + high + 1) // 2
                if low < edge.bound:
                    edge.bound = low
                    fell = True
            self.density = max(self.density, edge.bound)
        return fell
