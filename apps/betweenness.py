"""Betweenness: what share of the shortest paths between others leads through each vertex.

From each source in turn a search counts shortest paths, level by level, and comes back by the same levels: then a
vertex learns how much of the source's paths to vertices farther away depends on it.

    paths(source) = 1,   paths(v) = sum { paths(u) : (u, v) an edge, level(u) = level(v) - 1 }
    dependency(v) = paths(v) * sum { (1 + dependency(w)) / paths(w) : (v, w) an edge, level(w) = level(v) + 1 }
    centrality(v) = scale * sum { dependency(v) in the search from s : s a source, s != v }

scale is 1 / ((n - 1) * (n - 2)), or 1/2 if not `normalised`. With `samples` = k, sources are k random vertices, and
scale is (n - 1) / k times that; at a source, to which only the k - 1 others contribute, (n - 1) / (k - 1) times. The
graph is taken as undirected, simple and unweighted: parallel edges count once, and loops do not. Paths are counted in
floats, up to 1e308. At most 3 supersteps a source, and two for each level beyond it; `betweenness()` in
`dependencies.py` gives the same of searches side by side, which is faster where these have lanes.

U. Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25, 2001; U. Brandes,
C. Pich, "Centrality estimation in large networks", International Journal of Bifurcation and Chaos 17, 2007.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], directed=False)
>>> sigps.run(Betweenness(normalised=False), graph)["centrality"].tolist()
[0.0, 3.0, 4.0, 3.0, 0.0]
"""

from sigps import Param, State
from sigps.apps.source_by_source import SourceBySource


class Betweenness(SourceBySource, message=float, simple=True):
    """Centralities, and of the last search each vertex's level (-1: not found) and number of paths."""

    has_way_back = True
    normalised: Param[bool] = True
    centrality: State[float] = 0.0
    level: State[int] = -1
    paths: State[float] = 0.0
    is_sample: State[bool] = False

    def compute(self, messages):
        """Count paths on the way out, add up dependencies on the way back."""
        received = sum(messages)
        if self.depth < 0:
            self.level = -1
            self.line_up()
        elif self.goes_back:
            if self.level == self.depth:
                dependency = self.paths * received
                self.centrality += dependency / self.num_pairs(self.is_sample)
                if self.level > 1:
                    self.send_to_neighbors((1.0 + dependency) / self.paths)
            if self.level >= self.depth:
                self.vote_to_halt()
        else:
            if self.level < 0 and (messages or self.is_source()):
                self.level = self.depth
                self.paths = received or 1.0
                if self.is_source():
                    self.is_sample = True
                    self.centrality *= self.num_pairs(False) / self.num_pairs(True)
                self.spreads += self.out_degree > 0
                self.send_to_neighbors(self.paths)
            is_inner = messages and self.level == self.depth - 2  # those beyond will wake it on the way back
            if self.level <= 0 or is_inner:
                self.vote_to_halt()

    def num_pairs(self, is_sample):
        """Return by what dependencies are divided at a sampled vertex, or at another."""
        n, k = self.num_vertices, self.num_sources()
        pairs = max(1, (n - 1) * (n - 2)) if self.normalised else 2
        return pairs if k == n else pairs * max(1, k - is_sample) / (n - 1)
