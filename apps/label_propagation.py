"""Label propagation until it rests: among a vertex's neighbours no label is more frequent than its own.

In each superstep half of the vertices may change, drawn by a hash of id, superstep and `seed`: if all did at once, the
sides of a bipartite graph would swap labels for ever. A vertex keeps its label while that is one of the most frequent;
else it takes one of these, drawn likewise. The answer is unique for each seed.

    label(v) in argmax { |{ u : (u, v) an edge, label(u) = l }| : l a label }

The graph is taken as undirected; parallel edges count each, and a loop for the vertex's own label. A vertex looks at
its messages once for each label that may still win. How many supersteps there are depends on the graph.

U. N. Raghavan, R. Albert, S. Kumara, "Near linear time algorithm to detect community structures in large-scale
networks", Physical Review E 76, 2007; G. Cordasco, L. Gargano, "Community detection via semi-synchronous label
propagation algorithms", BASNA 2010.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> label = sigps.run(LabelPropagation(), graph)["label"]
>>> [len(set(label[:3])), len(set(label[3:]))]
[1, 1]
"""

from sigps import Aggregator, Param, State, Vertex, VertexId
from sigps.apps.hashing import hashed


class LabelPropagation(Vertex, message=VertexId, directed=False):
    """Labels, each the id of some vertex; a vertex without edges keeps its own.

    Draws are hashes of labels, and not `self.random()`: a label's number may not depend on how many were drawn before
    it, since messages have no order.
    """

    seed: Param[int] = 0
    label: State[VertexId] = -1
    unsettled = Aggregator.sum(int)

    def compute(self, messages):
        """Find the most frequent label, and take it if this one is rarer and it is this vertex's turn."""
        drawn = hashed(self.id, hashed(self.superstep, self.seed))
        if self.superstep == 0:
            self.label = self.id
        else:
            label = min(messages, default=self.label)
            best = self.label
            most = sum(1 for m in messages if m == self.label)
            left = len(messages)
            is_rarer = False
            while left > 0 and left >= most:
                count = sum(1 for m in messages if m == label)
                is_drawn = is_rarer and count == most and hashed(label, drawn) < hashed(best, drawn)
                if count > most or is_drawn:
                    best, most, is_rarer = label, count, True
                left -= count
                label = min((m for m in messages if m > label), default=label)
            self.unsettled += is_rarer
            if is_rarer and drawn % 2 == 0:
                self.label = best
        if self.superstep < 2 or self.unsettled > 0:
            self.send_to_neighbors(self.label)
        else:
            self.vote_to_halt()
