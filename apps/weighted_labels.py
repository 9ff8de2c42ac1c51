"""Weighted label propagation: each vertex takes the label to which its edges pull it with the most weight.

All vertices change at once, and of labels that pull alike the smallest is taken. That makes the answer unique where
sums of weights are exact, as those of whole numbers are. In a directed graph edges pull at both ends.

    label_0(v) = id(v),
    label_i(v) = min argmax { sum { weight(u, v) : (u, v) or (v, u) an edge, label_{i-1}(u) = l } : l a label }

`iterations` + 1 supersteps, each O(edges).

I. X. Y. Leung, P. Hui, P. Lio, J. Crowcroft, "Towards real-time community detection in large networks", Physical
Review E 79, 2009.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 2, 3], [3, 3, 4], weights=[1.0, 5.0, 2.0])
>>> sigps.run(WeightedLabels(iterations=1), graph)["label"].tolist()
[3, 3, 2, 3]
"""

from typing import NamedTuple

from sigps import Param, State, Vertex, VertexId, at_least


class Pull(NamedTuple):
    """A label, and the weight of the edge that it comes along."""

    label: VertexId
    weight: float


class WeightedLabels(Vertex, message=Pull, directed=False):
    """Labels after `iterations` rounds; a vertex without edges keeps its own."""

    iterations: Param[int] = at_least(0, default=10)
    label: State[VertexId] = -1

    def compute(self, messages):
        """Take the label with the greatest sum of weights, and pass it on."""
        if self.superstep == 0:
            self.label = self.id
        else:
            self.label = messages.most_common(lambda m: m.label, lambda m: m.weight, default=self.label)
        if self.superstep < self.iterations:
            for edge in self.out_edges:
                self.send(edge, Pull(self.label, edge.weight))
        else:
            self.vote_to_halt()
