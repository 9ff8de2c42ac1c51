"""Weakly connected components: every vertex learns the smallest id that an undirected path leads to.

Labels fall along edges, in both directions, until none can.

    component(v) = min { id(u) : v and u connected }

U. Kang, C. Tsourakakis, C. Faloutsos, "PEGASUS", ICDM 2009.

>>> import sigps
>>> result = sigps.run(WCC(), sigps.Graph.from_edges([5, 7, 8], [6, 6, 9]))
>>> result["component"].tolist()
[5, 5, 5, 8, 8]
"""

from sigps import State, Vertex, VertexId


class WCC(Vertex, message=VertexId, directed=False):
    """The smallest id of each vertex's component."""

    component: State[VertexId] = -1

    def compute(self, messages):
        """Take a smaller label, and pass it on."""
        label = self.id if self.superstep == 0 else min(messages, default=self.component)
        if self.superstep == 0 or label < self.component:
            self.component = label
            self.send_to_neighbors(label)
        self.vote_to_halt()
