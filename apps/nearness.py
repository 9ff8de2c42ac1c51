"""Nearness: one over how many edges each vertex is from a source; summed over sources it is harmonic closeness.

    nearness(source) = 0,   nearness(v) = 1 / distance(source, v),   0 where no path leads
    harmonic(v) = scale * sum { nearness(v) in the search from s : s a source }

Superstep d finds the vertices at distance d, which send to their neighbours and retire. The graph is taken as
undirected and unweighted. `DistanceSums` makes 64 such searches at the price of one. scale is 1 / (n - 1), or 1 if not
`normalised`. With `samples` = k, sources are k random vertices, and scale is (n - 1) / k times that; at a source, to
which only the k - 1 others contribute, (n - 1) / (k - 1) times. Unlike `closeness` it needs no care where the graph is
not connected. `HyperBall` estimates it in one run.

P. Boldi, S. Vigna, "Axioms for centrality", Internet Mathematics 10, 2014.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 5], [1, 2, 6], directed=False)
>>> sigps.run(Nearness(source=0), graph)["nearness"].tolist()
[0.0, 1.0, 0.5, 0.0, 0.0]
>>> harmonic(graph, normalised=False)["harmonic"].tolist()
[1.5, 2.0, 1.5, 1.0, 1.0]
"""

import numpy as np

import sigps
from sigps import Param, State, Vertex, VertexId
from sigps.apps.distances import DistanceSums
from sigps.apps.sources import numbered, sources_of


class Nearness(Vertex, message=bool, directed=False):
    """One over the distance from `source`."""

    source: Param[VertexId]
    nearness: State[float] = 0.0

    def compute(self, messages):
        """Be found once, and send to the neighbours."""
        if messages or (self.superstep == 0 and self.id == self.source):
            self.nearness = 1.0 / self.superstep if self.superstep > 0 else 0.0
            self.send_to_neighbors(True)
            self.retire()
        self.vote_to_halt()


def harmonic(graph, samples=0, seed=0, normalised=True, sources=None, **options):
    """Return a result with the field `harmonic`: as seen from all vertices, from `samples`, or from `sources`.

    `options` are those of `sigps.run_many`.
    """
    n = graph.num_vertices
    sources, runs = numbered(graph, sources_of(graph, samples, seed) if sources is None else sources)
    results = sigps.run_many(DistanceSums, graph, reduce={"nearness": "sum"}, **runs, **options)
    others = np.maximum(1, len(sources) - np.isin(results.ids, sources))
    share = results.reduced["nearness"] / others
    return results.as_one({"harmonic": share if normalised else (n - 1) * share})
