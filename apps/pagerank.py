"""PageRank: the share of time that a random surfer spends at each vertex.

With probability `damping` the surfer follows a random out-edge, otherwise starts anew anywhere. At a vertex
without out-edges, `dangling="redistribute"` starts anew too (so ranks add up to 1, as in LDBC Graphalytics and
NetworkX), and `dangling="leak"` lets that share vanish (as in GAP).

    rank(v) = (1 - d) / n + d * (sum { rank(u) / out_degree(u) : (u, v) an edge } + lost / n)

With `tolerance`, the run ends once the ranks changed by less than that in sum; `iterations` bounds it.

L. Page, S. Brin, R. Motwani, T. Winograd, "The PageRank citation ranking", 1999.

>>> import sigps
>>> result = sigps.run(PageRank(iterations=50), sigps.Graph.from_edges([0, 1, 2], [1, 2, 0]))
>>> result["rank"].round(6).tolist()
[0.333333, 0.333333, 0.333333]
"""

from sigps import Aggregator, Param, State, Vertex, at_least, between, one_of


class PageRank(Vertex, message=float):
    """Ranks after `iterations` rounds, or once they change by less than `tolerance`."""

    damping: Param[float] = between(0, 1, default=0.85)
    iterations: Param[int] = at_least(0, default=20)
    tolerance: Param[float | None] = at_least(0, default=None)
    dangling: Param[str] = one_of("redistribute", "leak", default="redistribute")
    rank: State[float] = 0.0
    lost = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Gather the neighbours' shares, and share the new rank out."""
        if self.superstep == 0:
            self.rank = 1.0 / self.num_vertices
        else:
            share = sum(messages)
            if self.dangling == "redistribute":
                share += self.lost / self.num_vertices
            rank = (1.0 - self.damping) / self.num_vertices + self.damping * share
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
