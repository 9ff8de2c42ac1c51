"""Dense neighbourhoods by triangulation, as simply as can be: bounds that do not hold fall by one.

What comes out is what `BiTriDN` gives, whose page has the formula, after as many supersteps as a bound falls: up to the
triangles on one edge.

N. Wang, J. Zhang, K.-L. Tan, A. K. H. Tung, "On triangulation-based dense neighborhood graph discovery", Proceedings of
the VLDB Endowment 4, 2010; J. Cohen, "Trusses: cohesive subgraphs for social network analysis", 2008.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1, 1, 2, 3], [1, 2, 3, 2, 3, 3, 4], directed=False)
>>> sigps.run(TriDN(), graph).edges["bound"].tolist()
[2, 2, 2, 2, 2, 2, 0]
"""

from sigps.apps.bitridn import BiTriDN


class TriDN(BiTriDN):
    """The bound of each edge, and the largest of each vertex's edges."""

    def lower_bounds(self):
        """Let each bound of this vertex's edges fall by one if it does not hold; return whether any did."""
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
        return fell
