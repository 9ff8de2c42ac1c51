"""Single-source shortest paths: distances by relaxation in supersteps, and the tree of parents.

A vertex whose distance fell sends its neighbours the way through it. Weights must not be negative on a cycle;
without weights every edge counts 1. Of equally short paths one with the fewest edges is taken, and of the
last vertices before the end of such paths the one with the smallest id, which makes the answer unique. Lengths are
floats: those of whole weights are exact up to 2**53, and weights beyond are rounded, with a warning.

    distance(source) = 0,   distance(v) = min { distance(u) + weight(u, v) : (u, v) an edge }

R. Bellman, "On a routing problem", Quarterly of Applied Mathematics 16, 1958.

>>> import sigps
>>> result = sigps.run(SSSP(source=0), sigps.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[1.0, 5.0, 2.0]))
>>> result["distance"].tolist(), result["parent"].tolist()
([0.0, 1.0, 3.0], [0, 0, 1])
"""

from typing import NamedTuple

from sigps import Param, State, Vertex, VertexId, inf


class Path(NamedTuple):
    """A way to a vertex: how long it is, and the vertex before the end."""

    length: float
    last: VertexId


class SSSP(Vertex, message=Path):
    """Distances and parents from `source`; infinity and None where no path leads."""

    source: Param[VertexId]
    distance: State[float] = inf
    parent: State[VertexId | None] = None

    def compute(self, messages):
        """Take the shortest way offered, and offer the ways through here if it is a shorter one."""
        best = min(messages, default=Path(inf, self.id))
        if self.superstep == 0 and self.id == self.source:
            best = Path(0.0, self.id)
        if best.length < self.distance:
            self.distance = best.length
            self.parent = best.last
            for edge in self.out_edges:
                self.send(edge, Path(best.length + edge.weight, self.id))
        self.vote_to_halt()
