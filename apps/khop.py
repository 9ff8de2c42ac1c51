"""The neighbourhood of a vertex: the vertices at most `hops` edges away, how far, and how many.

Superstep s finds those s edges away; each sends to its neighbours once and retires, so no edge into it is looked at
again. `result.aggregators["size"]` is the number of vertices found, the source among them.

    hop(v) = length of a shortest path from source to v, if that is at most hops

At most `hops` + 1 supersteps.

C. R. Palmer, P. B. Gibbons, C. Faloutsos, "ANF: a fast and scalable tool for data mining in massive graphs",
KDD 2002, where it is one vertex's neighbourhood function.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4], [2, 3, 4, 4, 5])
>>> result = sigps.run(KHop(source=1, hops=2), graph)
>>> result["hop"].tolist(), result.aggregators["size"]
([0, 1, 1, 2, -1], 4)
"""

from sigps import Aggregator, Param, State, Vertex, VertexId, at_least


class KHop(Vertex, message=bool):
    """How many edges each vertex is from `source`; -1 where that is more than `hops`."""

    source: Param[VertexId]
    hops: Param[int] = at_least(0, default=2)
    hop: State[int] = -1
    size = Aggregator.sum(int, persistent=True)

    def compute(self, messages):
        """Be found, and send to the neighbours unless this is the last hop."""
        if messages or (self.superstep == 0 and self.id == self.source):
            self.hop = self.superstep
            self.size += 1
            if self.superstep < self.hops:
                self.send_to_neighbors(True)
            self.retire()
        self.vote_to_halt()
