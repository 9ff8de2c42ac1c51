"""Eigenvector centrality: a vertex is as important as those who point at it, together.

Power iteration on the adjacency matrix plus the identity, which has the same eigenvectors and, unlike the matrix
alone, converges on bipartite graphs. Scores have Euclidean norm 1. The norm of what a round computes is known
only in the next one, so unscaled values travel and the receiver divides.

    eigenvalue * score(v) = sum { score(u) : (u, v) an edge },   sum { score(v)^2 } = 1

`iterations` + 2 supersteps; fewer, once the scores changed by less than `tolerance` in sum.

P. Bonacich, "Power and centrality: a family of measures", American Journal of Sociology 92, 1987.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 0], [1, 2, 3, 4], directed=False)
>>> sigps.run(EigenvectorCentrality(), graph)["score"].round(4).tolist()
[0.7071, 0.3536, 0.3536, 0.3536, 0.3536]
"""

import math

from sigps import Aggregator, Param, State, Vertex, at_least


class EigenvectorCentrality(Vertex, message=float):
    """Scores after `iterations` rounds, or once they change by less than `tolerance`."""

    iterations: Param[int] = at_least(0, default=100)
    tolerance: Param[float] = at_least(0, default=1e-9)
    score: State[float] = 0.0
    unscaled: State[float] = 1.0
    squares = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Scale what the last round gave, and gather for the next one."""
        if self.superstep > 0:
            norm = math.sqrt(self.squares)
            score = self.unscaled / norm
            self.change += abs(score - self.score)
            self.score = score
            self.unscaled = score + sum(messages) / norm
        is_settled = self.superstep > 1 and self.change < self.tolerance
        if is_settled or self.superstep > self.iterations:
            self.vote_to_halt()
        else:
            self.squares += self.unscaled * self.unscaled
            self.send_to_neighbors(self.unscaled)
