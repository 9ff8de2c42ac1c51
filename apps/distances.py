"""Distances: how many edges each vertex is from a source.

    distance(source) = 0,   distance(v) = 1 + min { distance(u) : (u, v) an edge }

Superstep d finds the vertices at distance d, which send to their neighbours and retire. The graph is taken as
undirected and unweighted; `BFS` follows directions, and finds parents. As equal messages say no more than one, many
searches go side by side at the price of few (`sigps.run_many`), and give measures that look from all vertices:

    closeness(v) = (r - 1) / (n - 1) * (r - 1) / sum { distance(u, v) : u a vertex that reaches v }
    eccentricity(v) = max { distance(u, v) : u a source that reaches v },   -1 where none does

r is how many reach v, itself among them.

M. Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2015.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 4], directed=False)
>>> sigps.run(Distances(source=4), graph)["distance"].tolist()
[2, 1, 3, 3, 0]
>>> closeness(graph).round(4).tolist(), eccentricities(graph).tolist()
([0.8, 0.6667, 0.5, 0.5, 0.4444], [2, 2, 3, 3, 3])
"""

import numpy as np

import sigps
from sigps import Param, State, Vertex, VertexId
from sigps.apps.source_by_source import sources_of


class Distances(Vertex, message=bool, directed=False):
    """Distance from `source`, -1 where no path leads; and `reached`, 1 where one does."""

    source: Param[VertexId]
    distance: State[np.int32] = -1
    reached: State[bool] = False

    def compute(self, messages):
        """Be found once, and send to the neighbours."""
        if messages or (self.superstep == 0 and self.id == self.source):
            self.distance, self.reached = self.superstep, True
            self.send_to_neighbors(True)
            self.retire()
        self.vote_to_halt()


def closeness(graph, sources=None, samples=0, seed=0, **options):
    """Return each vertex's closeness in ascending order of ids, from all sources or estimated from some.

    Without `sources` it is that of the program `Closeness`, whose sources `samples` and `seed` choose.
    From k of n vertices, r and the sum are n / k times what is found; 0 where no other source reaches a vertex.
    `options` are those of `sigps.run`.
    """
    n = graph.num_vertices
    sources = sources_of(graph, samples, seed) if sources is None else list(sources)
    both = {"distance": "sum", "reached": "sum"}
    found = sigps.run_many(Distances, graph, source=sources, reduce=both, **options).reduced
    total = found["distance"] + (
        len(sources) - found["reached"]
    )  # without the -1 of those that do not reach it
    scale = n / len(sources)
    others = scale * found["reached"] - 1.0
    return np.where(total > 0, others * others / (max(1, n - 1) * scale * np.maximum(total, 1)), 0.0)


def eccentricities(graph, sources=None, samples=0, seed=0, **options):
    """Return how far the farthest of the sources is that reaches each vertex, in ascending order of ids.

    Without `sources` it is that of the program `Radius`, whose sources `samples` and `seed` choose.
    """
    sources = sources_of(graph, samples, seed) if sources is None else list(sources)
    return sigps.run_many(Distances, graph, source=sources, reduce={"distance": "max"}, **options).reduced[
        "distance"
    ]
