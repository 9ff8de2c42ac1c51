"""Distances: how many edges each vertex is from a source.

    distance(source) = 0,   distance(v) = 1 + min { distance(u) : (u, v) an edge }

Superstep d finds the vertices at distance d, which send to their neighbours and retire. The graph is taken as
undirected and unweighted; `BFS` follows directions, and finds parents. `DistanceSums` makes 64 searches at the price
of one: a bit of a mask says which of them have found a vertex. Many such runs go side by side (`sigps.run_many`), and
give measures that look from all vertices:

    closeness(v) = (r - 1) / (n - 1) * (r - 1) / sum { distance(u, v) : u a source that reaches v }
    eccentricity(v) = max { distance(u, v) : u a source that reaches v },   -1 where none does
    radius = min { eccentricity(v) : v reached },   diameter = max { eccentricity(v) : v reached }

r is how many reach v, itself among them; closeness is 0 where no other source does. With `samples` = k, sources are k
random vertices; r and the sum are then n / k times what is found from these, and eccentricities are lower bounds.

L. C. Freeman, "Centrality in social networks", Social Networks 1, 1978; S. Wasserman, K. Faust, "Social network
analysis", 1994, for unconnected graphs; D. Eppstein, J. Wang, "Fast approximation of centrality", Journal of Graph
Algorithms and Applications 8, 2004; M. Then et al., "The more the merrier: efficient multi-source graph traversal",
VLDB 2015.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 4], directed=False)
>>> sigps.run(Distances(source=4), graph)["distance"].tolist()
[2, 1, 3, 3, 0]
>>> closeness(graph)["closeness"].round(4).tolist()
[0.8, 0.6667, 0.5, 0.5, 0.4444]
>>> found = eccentricities(graph)
>>> found["eccentricity"].tolist(), found.aggregators["radius"], found.aggregators["diameter"]
([2, 2, 3, 3, 3], 2, 3)
"""

import numpy as np

import sigps
from sigps import Param, State, Vertex, VertexId, at_least, from_column
from sigps.apps.sources import numbered, sources_of


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


class DistanceSums(Vertex, message=np.uint64, directed=False):
    """What 64 searches find together: of those from the sources with `number` `first` to `first` + 63.

    `reached` counts those that reach a vertex, `distance` adds up their distances, `nearness` one over each, and
    `farthest` is the greatest distance, -1 where there is none. Sources are numbered from 1; other vertices have the
    number 0.
    """

    first: Param[int] = at_least(1, default=1)
    number: State[int] = from_column("number", default=0)
    found: State[np.uint64] = 0
    reached: State[int] = 0
    distance: State[int] = 0
    nearness: State[float] = 0.0
    farthest: State[np.int32] = -1

    def compute(self, messages):
        """Be found by searches that have not found this vertex yet, and pass them on."""
        mask = np.uint64(0)
        if self.superstep == 0:
            k = self.number - self.first
            if 0 <= k < 64:
                mask = np.uint64(1) << k
        for m in messages:
            mask |= m
        new = mask & ~self.found
        if new != 0:
            self.found |= new
            count = new.bit_count()
            self.reached += count
            self.distance += count * self.superstep
            self.farthest = self.superstep
            if self.superstep > 0:
                self.nearness += count / self.superstep
            self.send_to_neighbors(new)
        self.vote_to_halt()


def closeness(graph, samples=0, seed=0, sources=None, **options):
    """Return a result with the field `closeness`: as seen from all vertices, from `samples`, or from `sources`.

    `options` are those of `sigps.run_many`.
    """
    n = graph.num_vertices
    sources, runs = numbered(graph, sources_of(graph, samples, seed) if sources is None else sources)
    both = {"distance": "sum", "reached": "sum"}
    results = sigps.run_many(DistanceSums, graph, reduce=both, **runs, **options)
    total = results.reduced["distance"]
    scale = n / len(sources)
    others = scale * results.reduced["reached"] - 1.0
    near = np.where(total > 0, others * others / (max(1, n - 1) * scale * np.maximum(total, 1)), 0.0)
    return results.as_one({"closeness": near})


def eccentricities(graph, samples=0, seed=0, sources=None, **options):
    """Return a result with `eccentricity`, and with `radius` and `diameter` as aggregators; else as `closeness`."""
    _, runs = numbered(graph, sources_of(graph, samples, seed) if sources is None else sources)
    results = sigps.run_many(DistanceSums, graph, reduce={"farthest": "max"}, **runs, **options)
    found = results.reduced["farthest"]
    reached = found[found >= 0]
    ends = {"radius": reached.min(), "diameter": reached.max()} if len(reached) else {}
    return results.as_one({"eccentricity": found}, {name: int(value) for name, value in ends.items()})
