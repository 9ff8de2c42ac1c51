"""Dependencies: how much of the shortest paths from a source to all others leads through each vertex.

    paths(source) = 1,   paths(v) = sum { paths(u) : (u, v) an edge, level(u) = level(v) - 1 }
    dependency(v) = paths(v) * sum { (1 + dependency(w)) / paths(w) : (v, w) an edge, level(w) = level(v) + 1 }

The vertices at level l are found in superstep l and send the number of their paths; two supersteps later a vertex hears
from how many edges to the next level it waits for answers. It answers when it has them all, and retires. All that is
sent by a level comes in supersteps of its parity, so a vertex tells its own level's messages by the superstep, and
needs nobody to say whose turn it is. The graph is taken as undirected, simple and unweighted: parallel edges count
once, and loops do not. At most 3 supersteps more than twice the greatest level.

Their sum over the sources is betweenness, for which many searches go side by side (`sigps.run_many`):

    centrality(v) = scale * sum { dependency(v) in the search from s : s a source }

scale is 1 / ((n - 1) * (n - 2)), or 1/2 if not `normalised`. With `samples` = k, sources are k random vertices, and
scale is (n - 1) / k times that; at a source, to which only the k - 1 others contribute, (n - 1) / (k - 1) times.

U. Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25, 2001; U. Brandes,
C. Pich, "Centrality estimation in large networks", International Journal of Bifurcation and Chaos 17, 2007.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], directed=False)
>>> sigps.run(Dependencies(source=1), graph)["dependency"].tolist()
[0.0, 0.0, 2.0, 1.0, 0.0]
>>> betweenness(graph, normalised=False)["centrality"].tolist()
[0.0, 3.0, 4.0, 3.0, 0.0]
"""

import numpy as np

import sigps
from sigps import Param, State, Vertex, VertexId
from sigps.apps.sources import sources_of


class Dependencies(Vertex, message=float, directed=False, simple=True):
    """Dependencies of paths from `source`, numbers of paths, and levels; -1 where no path leads."""

    source: Param[VertexId]
    level: State[int] = -1
    paths: State[float] = 0.0
    dependency: State[float] = 0.0
    awaited: State[int] = 0

    def compute(self, messages):
        """Be found, hear how many answers to wait for, gather them, answer."""
        received, count = sum(messages), len(messages)
        if self.level < 0:
            is_source = self.superstep == 0 and self.id == self.source
            if is_source or count > 0:
                self.level, self.paths = self.superstep, 1.0 if is_source else received
                self.send_to_neighbors(self.paths)
            if is_source:
                self.retire()
            elif count == 0:
                self.vote_to_halt()
        elif self.superstep > self.level + 1:
            if (self.superstep - self.level) % 2 == 0:
                if self.superstep == self.level + 2:
                    self.awaited = count
                else:
                    self.awaited -= count
                    self.dependency += self.paths * received
                if self.awaited == 0:
                    if self.level > 1:
                        self.send_to_neighbors((1.0 + self.dependency) / self.paths)
                    self.retire()
            self.vote_to_halt()


def betweenness(graph, samples=0, seed=0, normalised=True, sources=None, **options):
    """Return a result with the field `centrality`: of paths from all vertices, from `samples`, or from `sources`.

    `options` are those of `sigps.run_many`.
    """
    n = graph.num_vertices
    sources = sources_of(graph, samples, seed) if sources is None else list(sources)
    results = sigps.run_many(Dependencies, graph, source=sources, reduce={"dependency": "sum"}, **options)
    pairs = max(1, (n - 1) * (n - 2)) if normalised else 2
    others = np.maximum(1, len(sources) - np.isin(results.ids, sources))
    return results.as_one({"centrality": (n - 1) / others / pairs * results.reduced["dependency"]})
