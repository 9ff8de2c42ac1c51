"""Community detection by label propagation: each vertex takes the label that most of its neighbours have.

All vertices change at once, and of equally frequent labels the smallest is taken, so the answer is unique (the
CDLP of LDBC Graphalytics). In a directed graph a neighbour counts once for each edge, whichever its direction.

    label_0(v) = id(v),   label_i(v) = min argmax { |{ (u, v) or (v, u) an edge : label_{i-1}(u) = l }| : l a label }

`iterations` + 1 supersteps, each O(edges).

U. N. Raghavan, R. Albert, S. Kumara, "Near linear time algorithm to detect community structures in large-scale
networks", Physical Review E 76, 2007.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> sigps.run(CDLP(), graph)["label"].tolist()
[1, 1, 1, 3, 3, 3]
"""

from sigps import Param, State, Vertex, VertexId, at_least


class CDLP(Vertex, message=VertexId, directed=False):
    """Labels after `iterations` rounds; a vertex without edges keeps its own."""

    iterations: Param[int] = at_least(0, default=10)
    label: State[VertexId] = -1

    def compute(self, messages):
        """Take the most frequent label, and pass it on."""
        if self.superstep == 0:
            self.label = self.id
        else:
            self.label = messages.most_common(default=self.label)
        if self.superstep < self.iterations:
            self.send_to_neighbors(self.label)
        else:
            self.vote_to_halt()
