"""Personalised PageRank: the share of time that a random surfer spends at each vertex who keeps returning to some.

A random walk with restart: with probability `damping` the surfer follows a random out-edge, otherwise, and at a
vertex without out-edges, returns to `source`. Without a source the surfer returns to any vertex, in proportion to the
vertex column `personalisation`; without that, to each alike. Ranks add up to 1 and say how near vertices are to those.

    rank(v) = d * sum { rank(u) / out_degree(u) : (u, v) an edge } + (1 - d + d * lost) * p(v) / sum { p(u) }

where p(v) is 1 for the source and else 0, or the personalisation, at least 0 and not 0 everywhere, and lost is the rank
of the vertices without out-edges. `iterations` + 1 supersteps; with `tolerance`, fewer once the ranks changed by less
than that in sum.

T. H. Haveliwala, "Topic-sensitive PageRank", WWW 2002; H. Tong, C. Faloutsos, J.-Y. Pan, "Fast random walk with
restart and its applications", ICDM 2006.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0])
>>> sigps.run(PersonalisedPageRank(source=0, damping=0.5, iterations=50), graph)["rank"].round(4).tolist()
[0.5714, 0.2857, 0.1429, 0.0]
>>> graph = graph.with_vertex_columns({"personalisation": {0: 3, 3: 1}})
>>> sigps.run(PersonalisedPageRank(damping=0.5, iterations=50), graph)["rank"].round(4).tolist()
[0.5, 0.25, 0.125, 0.125]
"""

from sigps import Aggregator, Param, State, Vertex, VertexId, from_column


class PersonalisedPageRank(Vertex, message=float):
    """Ranks after `iterations` rounds, at least 1, or once they change by less than `tolerance`."""

    source: Param[VertexId | None] = None
    damping: Param[float] = 0.85
    iterations: Param[int] = 50
    tolerance: Param[float | None] = None
    personalisation: State[float] = from_column("personalisation", default=1.0)
    rank: State[float] = 0.0
    total = Aggregator.sum(float, persistent=True)
    lost = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Gather the neighbours' shares, and share the new rank out."""
        if self.superstep == 0:
            if self.source is not None:
                self.personalisation = 1.0 if self.id == self.source else 0.0
            self.total += self.personalisation
            self.rank = self.personalisation
        else:
            # The first ranks add up to the total, which nobody knows before.
            scale = self.total if self.superstep == 1 else 1.0
            returning = 1.0 - self.damping + self.damping * self.lost / scale
            rank = self.damping * sum(messages) / scale + returning * self.personalisation / self.total
            if self.tolerance is not None:
                self.change += abs(rank - self.rank / scale)
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
