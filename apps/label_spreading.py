"""Label spreading: from a few examples of up to 64 classes, how much each vertex belongs to each of them.

Examples keep their scores, and all others take the mean of their neighbours' again and again. What that comes
to are the chances that a random walk, which ends at an example, ends at one of the class.

    scores(v) = sum { weight(u, v) scores(u) : (u, v) an edge } / sum { weight(u, v) },   examples keep theirs

Examples are the rows that are not 0 of the vertex column `examples`, [num_vertices, 64] (or of
`initial={"scores": rows}`); without it vertices 0 to 63 are one of a class each. The graph is taken as
undirected, and weights are positive. At most `iterations` + 1 supersteps; fewer, once no score changed by as
much as `tolerance`. A vertex that no example reaches has scores of 0, and the label -1.

X. Zhu, Z. Ghahramani, "Learning from labeled and unlabeled data with label propagation", CMU-CALD-02-107,
2002.

>>> import numpy as np
>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2], [1, 2, 3], directed=False)
>>> examples = np.zeros((4, 64))
>>> examples[0, 5] = examples[3, 9] = 1.0
>>> result = sigps.run(LabelSpreading(), graph.with_vertex_columns({"examples": examples}))
>>> result["label"].tolist(), result["scores"][1, [5, 9]].round(4).tolist()
([5, 5, 9, 9], [0.6667, 0.3333])
"""

import numpy as np

from sigps import Aggregator, Param, State, Vector, Vertex, at_least, from_column

Scores = Vector[float, 64]


class LabelSpreading(Vertex, message=Scores, directed=False):
    """Scores after `iterations` rounds, and the class of the largest."""

    iterations: Param[int] = at_least(0, default=1000)
    tolerance: Param[float] = at_least(0, default=1e-9)
    scores: State[Scores] = from_column("examples", default=-1.0)
    label: State[int] = -1
    strength: State[float] = 0.0
    is_example: State[bool] = False
    change = Aggregator.max(float)

    def compute(self, messages):
        """Take the mean of the neighbours' scores, and pass it on."""
        if self.superstep == 0:
            if self.scores[0] < 0.0:
                self.scores = 0.0
                if 0 <= self.id < 64:
                    self.scores[self.id] = 1.0
            self.is_example = any(self.scores != 0.0)
            self.strength = sum(edge.weight for edge in self.out_edges)
        elif self.strength > 0.0 and not self.is_example:
            scores = sum(messages) / self.strength
            self.change += max(abs(scores - self.scores))
            self.scores = scores
        if any(self.scores > 0.0):
            self.label = np.argmax(self.scores)
        if self.superstep == self.iterations or (self.superstep > 1 and self.change < self.tolerance):
            self.vote_to_halt()
        else:
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.scores)
