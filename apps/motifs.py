"""Motifs: how many subgraphs of three and four vertices there are of each connected shape.

    wedges = sum { C(d(v), 2) : v },   stars = sum { C(d(v), 3) : v },   t(u, v) = |N(u) and N(v)|
    triangles = sum { t(u, v) : {u, v} an edge } / 3,   diamonds = sum { C(t(u, v), 2) : {u, v} an edge }
    paths = sum { (d(u) - 1) (d(v) - 1) : {u, v} an edge } - 3 triangles
    paws = sum { t(u, v) (d(u) + d(v) - 4) : {u, v} an edge } / 2,   cycles and cliques are counted

`FourCliques` orders vertices by degree, then id. The lowest vertex u of a clique keeps for each edge to a higher v, as
bits, which of its other higher neighbours are neighbours of v; a clique is a bit that both edges to v and w have, which
are neighbours. `FourCycles` has each vertex tell its neighbours of lower ones: the highest vertex u of cycles hears of
the w opposite c times, and C(c, 2) cycles lead through u and w. An induced subgraph has no edges beside the shape's;
its number follows from those of shapes with more edges. Paths, stars, cycles, paws (a triangle and an edge), diamonds
(a clique less an edge) and cliques have four vertices, and paths three edges.

The graph is taken as undirected and simple. Cliques cost two searches of triangles, and cycles a message for each two
neighbours of a vertex v of which one is above both v and the other.

N. Chiba, T. Nishizeki, "Arboricity and subgraph listing algorithms", SIAM Journal on Computing 14, 1985; N. K. Ahmed,
J. Neville, R. A. Rossi, N. Duffield, "Efficient graphlet counting for large networks", ICDM 2015: the formulas.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1, 2, 3], [1, 2, 3, 2, 3, 4], directed=False)
>>> found = motifs(graph).aggregators
>>> [found[shape] for shape in ("triangles", "diamonds", "induced_paws", "cliques")]
[2, 1, 1, 0]
"""

import numpy as np

from sigps import Aggregator, EdgeState, Param, State, Vector, Vertex, VertexId, at_least
from sigps.apps.driving import Runs
from sigps.apps.hashing import hashed


class FourCliques(Vertex, directed=False, simple=True):
    """The 4-cliques of which each vertex is the lowest, and sums for the other shapes."""

    cliques: State[int] = 0
    higher: State[int] = 0
    degree: EdgeState[int] = 0
    place: EdgeState[int] = -1  # among the edges to higher vertices
    among: EdgeState[Vector[np.uint64, 4]] = 0  # a bit for each of 256 places
    whole = Aggregator.sum(Vector[int, 7], persistent=True)

    def compute(self, messages):
        """Order the neighbours; then mark who is adjacent to whom, and see who is to two, 256 places at a time."""
        d = self.out_degree
        first = (self.superstep // 2 - 1) * 256
        if self.superstep == 0:
            for edge in self.out_edges:
                edge.degree = d
        elif self.superstep == 1:
            for edge in self.out_edges:
                if is_higher(edge.reverse.degree, edge.target, d, self.id):
                    edge.place = self.higher
                    self.higher += 1
            self.whole[0] += d * (d - 1) // 2
            self.whole[1] += d * (d - 1) * (d - 2) // 6
        elif self.superstep % 2 == 0:
            for edge in self.out_edges:
                if edge.place >= 0:
                    among, triangles = Vector[np.uint64, 4](0), 0
                    for one, _ in self.common_neighbors(edge):
                        triangles += 1
                        at = one.place - first
                        if 0 <= at < 256:
                            among[at >> 6] = among[at >> 6] | np.uint64(1) << (at & 63)
                    edge.among = among
                    if first == 0:
                        other_d = edge.reverse.degree
                        self.whole[2] += triangles
                        self.whole[3] += (d - 1) * (other_d - 1)
                        self.whole[4] += triangles * (triangles - 1) // 2
                        self.whole[5] += triangles * (d + other_d - 4)
        else:
            for edge in self.out_edges:
                if edge.place >= 0:
                    for one, _ in self.common_neighbors(edge):
                        if one.place >= 0:
                            for k in range(4):
                                self.cliques += (edge.among[k] & one.among[k]).bit_count()
            if first + 256 >= self.higher:
                self.cliques //= 6
                self.whole[6] += self.cliques
                self.vote_to_halt()


class FourCycles(Vertex, message=VertexId, directed=False, simple=True):
    """The 4-cycles of which each vertex is the highest; in about `at_a_time` messages a superstep."""

    at_a_time: Param[int] = at_least(1, default=1 << 24)
    cycles: State[int] = 0
    degree: EdgeState[int] = 0
    other_degree: EdgeState[int] = 0
    most = Aggregator.sum(int, persistent=True)
    whole = Aggregator.sum(int, persistent=True)

    def compute(self, messages):
        """Tell each higher neighbour of those that are lower than it, part by part; count who is told of twice."""
        for _, group in messages.grouped():
            count = len(group)
            self.cycles += count * (count - 1) // 2
            self.whole += count * (count - 1) // 2
        if self.superstep == 0:
            for edge in self.out_edges:
                edge.degree = self.out_degree
        elif self.superstep == 1:
            for edge in self.out_edges:
                edge.other_degree = edge.reverse.degree
                if is_higher(edge.reverse.degree, edge.target, self.out_degree, self.id):
                    self.most += self.out_degree
        else:
            parts = 1 + self.most // self.at_a_time
            for edge in self.out_edges:
                d, v = edge.other_degree, edge.target
                if is_higher(d, v, self.out_degree, self.id) and hashed(v, 0) % parts == self.superstep - 2:
                    for lower in self.out_edges:
                        if is_higher(d, v, lower.other_degree, lower.target):
                            self.send_to(v, lower.target)
            if self.superstep > parts:
                self.vote_to_halt()


def is_higher(degree, vertex, other_degree, other):
    """Tell whether a vertex is above another in the order of degrees, and of ids where these are equal."""
    return degree > other_degree or (degree == other_degree and vertex > other)


def motifs(graph, **options):
    """Return a result whose aggregators are the numbers of subgraphs and of induced subgraphs.

    `options` are those of `sigps.run`. Collective.
    """
    runs = Runs(options)
    sums = runs.run(FourCliques(), graph).aggregators["whole"].tolist()
    wedges, stars, corners, walks, diamonds, twice_paws, cliques = sums
    cycles = runs.run(FourCycles(), graph).aggregators["whole"]
    triangles, paws = corners // 3, twice_paws // 2
    found = {"wedges": wedges, "triangles": triangles, "paths": walks - 3 * triangles, "stars": stars}
    found |= {"cycles": cycles, "paws": paws, "diamonds": diamonds, "cliques": cliques}
    diamonds -= 6 * cliques
    paws -= 4 * diamonds + 12 * cliques
    cycles -= diamonds + 3 * cliques
    induced = {"wedges": wedges - 3 * triangles, "cycles": cycles, "paws": paws, "diamonds": diamonds}
    induced["stars"] = stars - paws - 2 * diamonds - 4 * cliques
    induced["paths"] = found["paths"] - 4 * cycles - 2 * paws - 6 * diamonds - 12 * cliques
    return runs.as_one(graph, {}, found | {f"induced_{shape}": number for shape, number in induced.items()})
