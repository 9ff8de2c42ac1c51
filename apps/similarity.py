"""Similarity: how much the neighbours of each vertex are those of one vertex, by the usual measures.

    common(v) = N(source) and N(v),   N(v) = { w != v : {v, w} is an edge },   d(v) = |N(v)|
    jaccard(v) = |common(v)| / (d(source) + d(v) - |common(v)|),   overlap(v) = |common(v)| / min { d(source), d(v) }
    cosine(v) = |common(v)| / sqrt(d(source) d(v)),   adamic_adar(v) = sum { 1 / log d(w) : w in common(v) }
    resource_allocation(v) = sum { 1 / d(w) : w in common(v) }

All are 0 where nothing is common, and at the source. The graph is taken as undirected, loops and all but one of
parallel edges left out. Three supersteps, along the edges of the source and of its neighbours. The k vertices most
similar to it are `result.top("jaccard", k)`; for pairs there is `sigps.run_many`, for all vertices `MostSimilar`.

P. Jaccard, "Etude comparative de la distribution florale", 1901; L. A. Adamic, E. Adar, "Friends and neighbors on
the Web", Social Networks 25, 2003; T. Zhou, L. Lu, Y.-C. Zhang, "Predicting missing links", EPJ B 71, 2009.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 1, 2], [2, 3, 2, 3, 3], directed=False)
>>> result = sigps.run(Similarity(source=0), graph)
>>> result["common"].tolist(), result["jaccard"].round(2).tolist(), result.top("adamic_adar", 1)
([0, 2, 1, 1], [0.0, 1.0, 0.25, 0.25], [(1, 1.8204784532536746)])
"""

import math
from typing import NamedTuple

from sigps import Aggregator, Param, State, Vertex, VertexId


class Mutual(NamedTuple):
    """A neighbour that is common, and what it adds to the weighted measures."""

    count: int
    adamic_adar: float
    resource_allocation: float


class Similarity(Vertex, message=Mutual, directed=False, simple=True):
    """The measures of each vertex and `source`."""

    source: Param[VertexId]
    common: State[int] = 0
    jaccard: State[float] = 0.0
    overlap: State[float] = 0.0
    cosine: State[float] = 0.0
    adamic_adar: State[float] = 0.0
    resource_allocation: State[float] = 0.0
    degree = Aggregator.sum(int, persistent=True)

    def compute(self, messages):
        """Ask the source's neighbours to tell theirs, and count who is told."""
        d = self.out_degree
        count, adamic_adar, resource_allocation = 0, 0.0, 0.0
        for m in messages:
            count += m.count
            adamic_adar += m.adamic_adar
            resource_allocation += m.resource_allocation
        if self.superstep == 0 and self.id == self.source:
            self.degree += d
            self.send_to_neighbors(Mutual(1, 0.0, 0.0))
        elif self.superstep == 1 and count > 0:
            self.send_to_neighbors(Mutual(1, 1.0 / math.log(max(d, 2)), 1.0 / d))
        elif count > 0 and self.id != self.source:
            self.common, self.adamic_adar, self.resource_allocation = count, adamic_adar, resource_allocation
            self.jaccard = count / (self.degree + d - count)
            self.overlap = count / min(self.degree, d)
            self.cosine = count / math.sqrt(self.degree * d)
        self.vote_to_halt()
