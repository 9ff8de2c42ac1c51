"""Closeness: how near a vertex is to all others, on the mean.

A breadth-first search from each source in turn; every vertex adds up how far it is from those that reach it.

    closeness(v) = (r - 1) / (n - 1) * (r - 1) / sum { distance(u, v) : u a vertex that reaches v }

r is how many reach v, itself among them; in a connected graph that is (n - 1) / sum. With `samples` = k, sources are
k random vertices, and r and the sum are n / k times what is found from these. In a connected graph that is the
estimate 1 / sum { n * distance(source_i, v) / (k * (n - 1)) : i }, whose inverse errs by no more than e times the
diameter, with high probability, for k = O(log n / e^2). 0 where no other source reaches a vertex.

The graph is taken as undirected and unweighted. At most 3 supersteps a source, and one for each level beyond it;
`closeness()` in `distances.py` gives the same of searches side by side, which is faster where these have lanes.

L. C. Freeman, "Centrality in social networks", Social Networks 1, 1978; S. Wasserman, K. Faust, "Social network
analysis", 1994, for unconnected graphs; D. Eppstein, J. Wang, "Fast approximation of centrality", Journal of Graph
Algorithms and Applications 8, 2004.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 4], directed=False)
>>> sigps.run(Closeness(), graph)["closeness"].round(4).tolist()
[0.8, 0.6667, 0.5, 0.5, 0.4444]
"""

from sigps import State
from sigps.apps.source_by_source import SourceBySource


class Closeness(SourceBySource, message=bool):
    """Closeness, how many sources reach each vertex, and the sum of the distances from them."""

    closeness: State[float] = 0.0
    reached: State[int] = 0
    distance: State[int] = 0
    is_found: State[bool] = False

    def compute(self, messages):
        """Be found once in each search, and send to the neighbours."""
        if self.depth < 0:
            self.is_found = False
            self.line_up()
        else:
            if not self.is_found and (messages or self.is_source()):
                self.is_found = True
                self.reached += 1
                self.distance += self.depth
                if self.distance > 0:
                    scale = self.num_vertices / self.num_sources()
                    others = scale * self.reached - 1.0
                    self.closeness = others / (self.num_vertices - 1) * others / (scale * self.distance)
                self.spreads += self.out_degree > 0
                self.send_to_neighbors(True)
            self.vote_to_halt()
