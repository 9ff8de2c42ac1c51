"""Radius and diameter: how far each vertex is from the vertex farthest from it.

A breadth-first search from each source in turn; every vertex keeps the greatest depth at which it was found.

    eccentricity(v) = max { distance(u, v) : u a source that reaches v },   -1 where none does
    radius = min { eccentricity(v) : v reached },   diameter = max { eccentricity(v) : v reached }

All vertices are sources, and each eccentricity is that of v in its component; or, with `samples` = k, sources are k
random vertices, and what is found are lower bounds for the components they are in, the diameter not below half of it.

The graph is taken as undirected and unweighted. At most 3 supersteps a source, one for each level beyond it, and one
at the end, which makes the aggregators; `eccentricities()` in `distances.py` gives the fields of searches side by side.

J. Shun, "An evaluation of parallel eccentricity estimation algorithms on undirected real-world graphs", KDD 2015;
U. Kang et al., "HADI: mining radii of large graphs", ACM Transactions on Knowledge Discovery from Data 5, 2011.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 4], directed=False)
>>> result = sigps.run(Radius(), graph)
>>> result["eccentricity"].tolist(), result.aggregators["radius"], result.aggregators["diameter"]
([2, 2, 3, 3, 3], 2, 3)
"""

from sigps import Aggregator, State
from sigps.apps.source_by_source import SourceBySource


class Radius(SourceBySource, message=bool):
    """How far the farthest source is that reaches each vertex; the least and the greatest of these."""

    eccentricity: State[int] = -1
    is_found: State[bool] = False
    radius = Aggregator.min(int)
    diameter = Aggregator.max(int)

    def compute(self, messages):
        """Be found once in each search, and send to the neighbours; between searches, contribute what was found."""
        if self.depth < 0:
            self.is_found = False
            self.line_up()
            if self.eccentricity >= 0:
                self.radius += self.eccentricity
                self.diameter += self.eccentricity
        elif not self.is_found and (messages or self.is_source()):
            self.is_found = True
            self.eccentricity = max(self.eccentricity, self.depth)
            self.spreads += self.out_degree > 0
            self.send_to_neighbors(True)
        self.vote_to_halt()

    def master(self):
        """Line up once more after the last search."""
        if self.spreads or self.num_searches < self.num_sources():
            super().master()
            if self.depth == 0:
                self.wake_all()
        elif self.depth >= 0:
            self.depth = -1
            self.wake_all()
