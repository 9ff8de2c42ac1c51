"""Katz centrality: how many walks end at each vertex, a longer one counting less.

    score(v) = 1 + attenuation * sum { score(u) : (u, v) an edge }

A walk of k edges counts attenuation**k, the empty walk 1. The sum is finite where `attenuation` is below 1 over the
largest eigenvalue of the adjacency matrix (1 over the largest in-degree is always small enough), negative or not;
otherwise scores grow until `iterations` end the run. The aggregator `change` has the last round's greatest change, as a
share of the score where that is over 1: scores are settled if it is at most `tolerance`, and infinite if it is.
`iterations` + 1 supersteps, or fewer, once they are settled.

L. Katz, "A new status index derived from sociometric analysis", Psychometrika 18, 1953.

>>> import sigps
>>> sigps.run(Katz(attenuation=0.5), sigps.Graph.from_edges([0, 1, 0], [1, 2, 2]))["score"].tolist()
[1.0, 1.5, 2.25]
"""

from sigps import Aggregator, Param, State, Vertex, at_least, finite, inf


class Katz(Vertex, message=float):
    """Scores after `iterations` rounds, or once they change by no more than `tolerance`."""

    attenuation: Param[float] = finite()
    iterations: Param[int] = at_least(0, default=100)
    tolerance: Param[float] = at_least(0, default=1e-9)
    score: State[float] = 1.0
    change = Aggregator.max(float)

    def compute(self, messages):
        """Add up what the neighbours have, and pass it on."""
        if self.superstep > 0:
            score = 1.0 + self.attenuation * sum(messages)
            change = abs(score - self.score) / max(1.0, abs(score))
            self.change += change if change < inf else inf  # of infinite scores it is NaN
            self.score = score
        is_settled = self.superstep > 1 and self.change <= self.tolerance
        if is_settled or self.superstep >= self.iterations:
            self.vote_to_halt()
        else:
            self.send_to_neighbors(self.score)
