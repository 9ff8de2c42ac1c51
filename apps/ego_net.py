"""The ego network of a vertex: the vertices at most `hops` edges away from it, and all edges among these.

A vertex that is found marks its edges and sends to its neighbours. Of a vertex found before the last hop all neighbours
are inside; those on the rim look one superstep later which of their edges the other ends have marked.
`result.edges["inside"]` is the answer; the aggregators `vertices` and `edges` count.

    hop(v) = length of a shortest path between source and v, if that is at most hops
    inside(u, v) = hop(u) >= 0 and hop(v) >= 0,   (u, v) an edge

The graph is taken as undirected. `hops` + 2 supersteps; only vertices inside look at their edges.

L. C. Freeman, "Centered graphs and the structure of ego networks", Mathematical Social Sciences 3, 1982.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4], [2, 3, 3, 4, 5], directed=False)
>>> result = sigps.run(EgoNet(source=1), graph)
>>> result["hop"].tolist(), result.edges["inside"].tolist(), result.aggregators["edges"]
([0, 1, 1, -1, -1], [True, True, True, False, False], 3)
"""

from sigps import Aggregator, EdgeState, Param, State, Vertex, VertexId, at_least


class EgoNet(Vertex, message=bool, directed=False):
    """How many edges each vertex is from `source`, -1 where that is more than `hops`; and which edges are inside."""

    source: Param[VertexId]
    hops: Param[int] = at_least(0, default=1)
    hop: State[int] = -1
    inside: EdgeState[bool] = False
    vertices = Aggregator.sum(int, persistent=True)
    edges = Aggregator.sum(int, persistent=True)

    def compute(self, messages):
        """Be found, and keep the edges whose other end is inside; an edge is counted by its lower end."""
        is_found = self.hop < 0 and (messages or (self.superstep == 0 and self.id == self.source))
        if is_found:
            self.hop = self.superstep
            self.vertices += 1
            if self.hop < self.hops:
                self.send_to_neighbors(True)
        if self.hop < 0:
            self.vote_to_halt()
        else:
            for edge in self.out_edges:
                edge.inside = is_found or edge.reverse.inside
            if not (is_found and self.hop == self.hops):
                self.edges += sum(1 for edge in self.out_edges if edge.inside and self.id <= edge.target)
                self.retire()
