"""Most similar vertices: for each vertex the k others whose neighbours are most like its own, by one of five measures.

    common(u, v) = N(u) and N(v),   N(v) = { w != v : {v, w} is an edge },   d(v) = |N(v)|
    jaccard = |common| / (d(u) + d(v) - |common|),   overlap = |common| / min { d(u), d(v) }
    cosine = |common| / sqrt(d(u) d(v)),   adamic_adar = sum { 1 / log d(w) : w in common }
    resource_allocation = sum { 1 / d(w) : w in common }

Those with the highest scores come first, of equal ones those with smaller ids; where fewer have a neighbour in common,
the last are -1, with a score of 0. Each vertex w tells each of its neighbours of all the others: so one direct message
for each two neighbours of a vertex and direction, in about `at_a_time` messages a superstep, and no pairs that have
nothing in common. Sums of `adamic_adar` and `resource_allocation` are rounded, so that their order may decide between
scores that are equal. The graph is taken as undirected and simple. For one vertex there is `Similarity`.

D. Liben-Nowell, J. Kleinberg, "The link-prediction problem for social networks", JASIST 58, 2007.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 1, 2], [2, 3, 2, 3, 3], directed=False)
>>> result = sigps.run(MostSimilar(k=2), graph)
>>> result["similar"].tolist(), result["score"].round(2).tolist()
([[1, 2], [0, 2], [3, 0], [2, 0]], [[1.0, 0.25], [1.0, 0.25], [0.5, 0.25], [0.5, 0.25]])
"""

import math
from typing import NamedTuple

from sigps import Aggregator, EdgeState, Param, State, Vector, Vertex, VertexId, at_least, between, one_of
from sigps.apps.hashing import hashed


class Candidate(NamedTuple):
    """A vertex, its degree, and what a neighbour that both have counts."""

    who: VertexId
    degree: int
    amount: float


class MostSimilar(Vertex, message=Candidate, directed=False, simple=True):
    """The `k` vertices most similar to each, and their scores."""

    k: Param[int] = between(1, 1024, default=10)
    measure: Param[str] = one_of(
        "jaccard", "overlap", "cosine", "adamic_adar", "resource_allocation", default="jaccard"
    )
    at_a_time: Param[int] = at_least(1, default=1 << 24)
    similar: State[Vector[VertexId, "k"]] = -1
    score: State[Vector[float, "k"]] = 0.0
    degree: EdgeState[int] = 0
    other_degree: EdgeState[int] = 0
    most = Aggregator.sum(int, persistent=True)

    def compute(self, messages):
        """Tell the neighbours of each other, part by part; rank those that were told of."""
        d = self.out_degree
        for who, group in messages.grouped(lambda m: m.who):
            self.rank(who, self.scored(sum(m.amount for m in group), d, min(m.degree for m in group)))
        if self.superstep == 0:
            self.most += d * (d - 1)
            for edge in self.out_edges:
                edge.degree = d
        elif self.superstep == 1:
            for edge in self.out_edges:
                edge.other_degree = edge.reverse.degree
        else:
            amount = 1.0
            if self.measure == "adamic_adar":
                amount = 1.0 / math.log(max(d, 2))
            elif self.measure == "resource_allocation":
                amount = 1.0 / max(d, 1)
            parts = 1 + self.most // self.at_a_time
            for edge in self.out_edges:
                if hashed(edge.target, 0) % parts == self.superstep - 2:
                    for other in self.out_edges:
                        if other.target != edge.target:
                            self.send_to(edge.target, Candidate(other.target, other.other_degree, amount))
            if self.superstep > parts:
                self.vote_to_halt()

    def scored(self, common, d, other_d):
        """Return the measure of what is common."""
        if self.measure == "jaccard":
            return common / (d + other_d - common)
        if self.measure == "overlap":
            return common / min(d, other_d)
        if self.measure == "cosine":
            return common / math.sqrt(d * other_d)
        return common

    def rank(self, who, score):
        """Put a vertex among the best, behind those with the same score: ids ascend."""
        if score > self.score[self.k - 1]:
            at = self.k - 1
            while at > 0 and score > self.score[at - 1]:
                self.score[at], self.similar[at] = self.score[at - 1], self.similar[at - 1]
                at -= 1
            self.score[at], self.similar[at] = score, who
