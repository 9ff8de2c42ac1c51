"""Longest paths in a directed acyclic graph: how long the longest path is that ends at each vertex.

A vertex is settled when all its in-edges have brought a path, and then sends on the longest; so every edge carries one
message. On a graph with cycles those on one, and all that these lead to, wait for ever: the run finds them when nothing
moves any more, `is_acyclic` is false, and their length is infinite. Of equally long paths it is the one whose last
vertex before the end is smallest; a path of no edges counts 0, and comes first.

    length(v) = max { 0, length(u) + weight(u, v) : (u, v) an edge }

Without weights every edge counts 1; an undirected one is a cycle. A superstep for each vertex of the path with most.

A. B. Kahn, "Topological sorting of large networks", Communications of the ACM 5, 1962.

>>> import sigps
>>> result = sigps.run(LongestPath(), sigps.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[2.0, 3.0, 2.0]))
>>> result["length"].tolist(), result["previous"].tolist(), result.aggregators["is_acyclic"]
([0.0, 2.0, 4.0], [-1, 0, 1], True)
"""

from typing import NamedTuple

from sigps import Aggregator, Shared, State, Vertex, VertexId, inf


class Path(NamedTuple):
    """A path to a vertex: how long it is, and the vertex before the end."""

    length: float
    last: VertexId


class LongestPath(Vertex, message=Path):
    """Lengths, and the vertex before each on its path (-1: none); `waiting` counts in-edges that brought nothing."""

    length: State[float] = 0.0
    previous: State[VertexId] = -1
    waiting: State[int] = 0
    settled = Aggregator.sum(int, persistent=True)
    is_acyclic: Shared[bool] = True

    def compute(self, messages):
        """Take the longest path that came, and send the paths through here once all have come."""
        best, last = 0.0, -1
        for m in messages:
            if m.length > best:
                best, last = m.length, m.last
        if best > self.length or (best == self.length and last < self.previous):
            self.length, self.previous = best, last
        self.waiting += (self.in_degree if self.superstep == 0 else 0) - len(messages)
        if self.waiting > 0 and not self.is_acyclic:
            self.length, self.previous = inf, -1
        elif self.waiting == 0 and self.is_acyclic:
            self.settled += 1
            for edge in self.out_edges:
                self.send(edge, Path(self.length + edge.weight, self.id))
        self.vote_to_halt()

    def next_phase(self):
        """When nothing moves any more, let those that still wait say so."""
        if self.is_acyclic and self.settled < self.num_vertices:
            self.is_acyclic = False
            self.wake_all()
