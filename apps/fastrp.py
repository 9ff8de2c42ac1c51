"""FastRP: vectors for vertices, near to each other where few steps lead from one to the other along many edges.

Each vertex draws a sparse random vector. Means over the neighbours, again and again, mix them by steps of random walks,
and what the rounds come to is added up with a weight for each, at length 1.

    drawn(v) = d(v)^s sqrt(3 / dimensions) * (1 or -1, with a chance of 1/6 each, else 0, in each place)
    mean_0(v) = drawn(v),   mean_i(v) = sum { weight(u, v) mean_{i-1}(u) : (u, v) an edge } / d(v)
    embedding(v) = own * unit(drawn(v)) + sum { w_i * unit(mean_i(v)) : i = 1, 2, ... }

d(v) is the weight of v's edges, s is `normalization_strength` (below 0 hubs count less), own `node_self_influence`, and
w_i are the `iteration_weights`. unit(x) is x divided by its length, of zeros zeros. Scalar products of drawn vectors
are near those of the whole rows of the matrix of steps. The graph is taken as undirected, and weights are not negative;
a vertex without edges has its own part alone. The run's `seed=` draws others. As many supersteps as weights, and one.

H. Chen, S. F. Sultan, Y. Tian, M. Chen, S. Skiena, "Fast and accurate network embeddings via very sparse random
projection", CIKM 2019; D. Achlioptas, "Database-friendly random projections", JCSS 66, 2003: the drawn vectors.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 1], [2, 3, 2, 3], directed=False)
>>> found = sigps.run(FastRP(dimensions=8), graph)["embedding"]
>>> found.shape, (found[0] == found[1]).all().item()
((4, 8), True)
"""

import math

from sigps import Param, State, Table, Vector, Vertex, between, finite


class FastRP(Vertex, message=Vector[float, "dimensions"], directed=False):
    """An embedding of each vertex, and the weight of its edges."""

    dimensions: Param[int] = between(1, 1024, default=128)
    iteration_weights: Param[Table[float]] = finite(default=(0.0, 1.0, 1.0))
    normalization_strength: Param[float] = finite(default=0.0)
    node_self_influence: Param[float] = finite(default=0.0)
    embedding: State[Vector[float, "dimensions"]] = 0.0
    strength: State[float] = 0.0

    def compute(self, messages):
        """Draw a vector, or take the mean of the neighbours'; add it up and pass it on."""
        mean, share = sum(messages), self.node_self_influence
        if self.superstep == 0:
            self.strength = sum(edge.weight for edge in self.out_edges)
            size = math.sqrt(3.0 / self.dimensions)
            if self.strength > 0.0:
                size *= self.strength**self.normalization_strength
            for k in range(self.dimensions):
                drawn = self.random_int(6)
                if drawn < 2:
                    mean[k] = size if drawn == 0 else -size
        elif self.strength > 0.0:
            mean = mean / self.strength
            share = self.iteration_weights[self.superstep - 1]
        square = mean @ mean
        if square > 0.0:
            self.embedding += share / math.sqrt(square) * mean
        if self.superstep < len(self.iteration_weights):
            for edge in self.out_edges:
                self.send(edge, edge.weight * mean)
        self.vote_to_halt()
