"""Local clustering coefficients: how many of the possible edges between a vertex's neighbours are there.

    N(v) = { u != v : (u, v) or (v, u) is an edge },    d(v) = |N(v)|
    lcc(v) = |{ (u, w) an edge : u, w in N(v) }| / (d(v) (d(v) - 1))

and 0 with fewer than two neighbours. Edges of directed graphs count in each direction, neighbours whatever the
direction; loops, and all but one of parallel edges, do not count.

D. J. Watts, S. H. Strogatz, "Collective dynamics of 'small-world' networks", 1998; as in LDBC Graphalytics.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3], directed=False)
>>> sigps.run(LCC(), graph)["coefficient"].round(3).tolist()
[1.0, 1.0, 0.333, 0.0]
"""

from sigps import State, Vertex, neighbor_links, num_neighbors


class LCC(Vertex):
    """The share of the possible edges between a vertex's neighbours."""

    links: State[int] = neighbor_links
    neighbors: State[int] = num_neighbors
    coefficient: State[float] = 0.0

    def compute(self, messages):
        """Divide what there is by what there could be."""
        if self.neighbors > 1:
            self.coefficient = self.links / (self.neighbors * (self.neighbors - 1))
        self.vote_to_halt()
