"""DN-graphs: the locally densest groups of vertices, in which the ends of every edge share neighbours.

First the edges' bounds are found as in `BiTriDN`. A group is what edges connect whose bound is no smaller than the
group's, and it is a DN-graph if none of its edges has a larger one: with any vertex more it would be less dense, and no
part of it is denser. Groups are found by their smallest id, which spreads from both ends of edges of a group.

    group(v) = min { u : u and v are connected by edges of bound density(v) } if none of these has a denser end, else -1
    density(v) = max { bound(e) : e an edge of v }

Vertices without a triangle are in no group. The graph is taken as undirected; loops do not count, and parallel edges are
one.

N. Wang, J. Zhang, K.-L. Tan, A. K. H. Tung, "On triangulation-based dense neighborhood graph discovery", Proceedings of
the VLDB Endowment 4, 2010.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 0, 1, 1, 2, 3, 4, 4, 5], [1, 2, 3, 2, 3, 3, 4, 5, 6, 6], directed=False)
>>> result = sigps.run(DNGraphs(), graph)
>>> result["group"].tolist(), result["density"].tolist()
([0, 0, 0, 0, 4, 4, 4], [2, 2, 2, 2, 1, 1, 1])
"""

from typing import NamedTuple

from sigps import EdgeState, Shared, State, Vertex, VertexId

BOUND, SPREAD = range(2)


class Claim(NamedTuple):
    """What one end of an edge tells the other: the edge's bound, the most that it knows, and the smallest id."""

    bound: int
    most: int
    lowest: VertexId


class DNGraphs(Vertex, message=Claim, directed=False):
    """The group and the density of each vertex, and the bound of each edge."""

    bound: EdgeState[int] = 0
    density: State[int] = 0
    most: State[int] = 0  # of the densest end heard of
    lowest: State[VertexId] = -1
    group: State[VertexId] = -1
    phase: Shared[int] = BOUND
