"""Labels from few examples: one vertex is labelled 1, another 0, and every other one is the mean of its neighbours.

The score of a vertex is the chance that a random walk along the edges, by their weights, meets `one` before `zero`,
so 0.5 divides the labels; it is also the voltage if edges conduct. Vertices that reach neither stay at 0.5.

    score(one) = 1,   score(zero) = 0,
    score(v) = sum { weight(u, v) * score(u) : (u, v) an edge } / sum { weight(u, v) : (u, v) an edge }

The graph is taken as undirected, with weights of 0 or more. `iterations` + 1 supersteps; fewer, once no score
changed by more than `tolerance`.

X. Zhu, Z. Ghahramani, J. Lafferty, "Semi-supervised learning using Gaussian fields and harmonic functions", ICML 2003.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2], [1, 2, 3], weights=[1.0, 1.0, 2.0], directed=False)
>>> sigps.run(HarmonicLabels(one=0, zero=3), graph)["score"].round(4).tolist()
[1.0, 0.6, 0.2, 0.0]
"""

from sigps import Aggregator, Param, State, Vertex, VertexId, at_least, requires


class HarmonicLabels(Vertex, message=float, directed=False):
    """Scores between 0 and 1 after `iterations` rounds, or once they change by no more than `tolerance`."""

    one: Param[VertexId]
    zero: Param[VertexId]
    iterations: Param[int] = at_least(0, default=1000)
    tolerance: Param[float] = at_least(0, default=1e-9)
    score: State[float] = 0.5
    strength: State[float] = 0.0
    change = Aggregator.max(float)

    @requires("one and zero are different vertices")
    def has_two_labels(self):
        """Tell whether the labels differ."""
        return self.one != self.zero

    def compute(self, messages):
        """Take the mean of the neighbours, weighted, unless labelled."""
        if self.superstep == 0:
            self.strength = sum(edge.weight for edge in self.out_edges)
            if self.id == self.one or self.id == self.zero:
                self.score = 1.0 if self.id == self.one else 0.0
        elif self.id != self.one and self.id != self.zero and self.strength > 0.0:
            score = sum(messages) / self.strength
            self.change += abs(score - self.score)
            self.score = score
        is_settled = self.superstep > 1 and self.change <= self.tolerance
        if is_settled or self.superstep >= self.iterations:
            self.vote_to_halt()
        else:
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.score)
