"""Breadth-first search: each vertex's distance in edges from a source, and a parent one step nearer.

Superstep s finds the vertices at level s: they receive from level s - 1, send to their neighbours, and retire, so no
edge into a found vertex is looked at again. Of several possible parents the one with the smallest id is taken,
which makes the answer unique.

    level(source) = 0,   level(v) = 1 + min { level(u) : (u, v) an edge }

E. F. Moore, "The shortest path through a maze", 1959.

>>> import sigps
>>> result = sigps.run(BFS(source=1), sigps.Graph.from_edges([1, 1, 2, 3], [2, 3, 4, 4], vertices=[9]))
>>> result["level"].tolist(), result["parent"].tolist()
([0, 1, 1, 2, -1], [1, 1, 1, 2, None])
"""

from sigps import Param, State, Vertex, VertexId


class BFS(Vertex, message=VertexId):
    """Levels and parents from `source`; -1 and None where no path leads."""

    source: Param[VertexId]
    level: State[int] = -1
    parent: State[VertexId | None] = None

    def compute(self, messages):
        """Take the first level received, send it on, and retire."""
        if self.superstep == 0 and self.id == self.source:
            self.level = 0
            self.parent = self.id
        elif messages:
            self.level = self.superstep
            self.parent = min(messages)
        if self.level >= 0:
            self.send_to_neighbors(self.id)
            self.retire()
        self.vote_to_halt()
