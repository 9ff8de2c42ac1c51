"""Personalised PageRank: the share of time that a random surfer spends at each vertex who keeps returning to some.

With probability `damping` the surfer follows a random out-edge, otherwise, and at a vertex without any, returns to
`source`; without a source to any vertex, in proportion to the vertex column `personalisation`, or to each alike.

    rank(v) = d * sum { rank(u) / out_degree(u) : (u, v) an edge } + (1 - d + d * lost) * p(v) / sum { p(u) }

where p(v) is 1 for the source and else 0, or the personalisation (not negative, not 0 everywhere), and lost the rank of
vertices without out-edges. `iterations` + 1 supersteps, or until ranks change by less than `tolerance` in sum.

T. H. Haveliwala, "Topic-sensitive PageRank", WWW 2002.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0])
>>> sigps.run(PersonalisedPageRank(source=0, damping=0.5, iterations=50), graph)["rank"].round(4).tolist()
[0.5714, 0.2857, 0.1429, 0.0]
>>> given = graph.with_vertex_columns({"personalisation": {0: 3, 3: 1}})
>>> sigps.run(PersonalisedPageRank(damping=0.5, iterations=50), given)["rank"].round(4).tolist()
[0.5, 0.25, 0.125, 0.125]
"""

from sigps import Aggregator, Param, State, Vertex, VertexId, at_least, between, from_column


class PersonalisedPageRank(Vertex, message=float):
    """Ranks after `iterations` rounds, at least 1, or once they change by less than `tolerance`."""

    source: Param[VertexId | None] = None
    damping: Param[float] = between(0, 1, default=0.85)
    iterations: Param[int] = at_least(1, default=50)
    tolerance: Param[float | None] = at_least(0, default=None)
    personalisation: State[float] = from_column("personalisation", default=1.0)
    rank: State[float] = 0.0
    total = Aggregator.sum(float, persistent=True)
    lost = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Gather the neighbours' shares, and share the new rank out."""
        if self.superstep == 0:
            if self.source is not None:
                self.personalisation = float(self.id == self.source)
            self.total += self.personalisation
            self.rank = self.personalisation
        else:
            scale = self.total if self.superstep == 1 else 1.0  # the first ranks add up to the total
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
        rests = self.tolerance is not None and self.superstep > 1 and self.change < self.tolerance
        return rests or self.superstep >= self.iterations
