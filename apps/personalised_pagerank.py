"""Personalised PageRank: the share of time that a random surfer spends at each vertex who keeps returning to one.

A random walk with restart: with probability `damping` the surfer follows a random out-edge, otherwise, and at a
vertex without out-edges, returns to `source`. Ranks add up to 1 and say how near vertices are to the source; ranks
for a set of sources are the mean of those for each.

    rank(v) = d * sum { rank(u) / out_degree(u) : (u, v) an edge } + (1 - d + d * lost if v = source)

where lost is the rank of the vertices without out-edges. `iterations` + 1 supersteps; with `tolerance`, fewer once
the ranks changed by less than that in sum.

T. H. Haveliwala, "Topic-sensitive PageRank", WWW 2002; H. Tong, C. Faloutsos, J.-Y. Pan, "Fast random walk with
restart and its applications", ICDM 2006.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0])
>>> sigps.run(PersonalisedPageRank(source=0, damping=0.5, iterations=50), graph)["rank"].round(4).tolist()
[0.5714, 0.2857, 0.1429, 0.0]
"""

from sigps import Aggregator, Param, State, Vertex, VertexId


class PersonalisedPageRank(Vertex, message=float):
    """Ranks as seen from `source`, after `iterations` rounds, or once they change by less than `tolerance`."""

    source: Param[VertexId]
    damping: Param[float] = 0.85
    iterations: Param[int] = 50
    tolerance: Param[float | None] = None
    rank: State[float] = 0.0
    lost = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Gather the neighbours' shares, and share the new rank out."""
        if self.superstep == 0:
            self.rank = 1.0 if self.id == self.source else 0.0
        else:
            rank = self.damping * sum(messages)
            if self.id == self.source:
                rank += 1.0 - self.damping + self.damping * self.lost
            if self.tolerance is not None:
                self.change += abs(rank - self.rank)
            self.rank = rank
        if self.is_done():
            self.vote_to_halt()
        elif self.out_degree > 0:
            self.send_to_neighbors(self.rank / self.out_degree)
        else:
            self.lost += self.rank

    def is_done(self):
        """Tell whether this round is the last."""
        if self.tolerance is not None and self.superstep > 1 and self.change < self.tolerance:
            return True
        return self.superstep >= self.iterations
