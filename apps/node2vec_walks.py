"""Node2vec walks: a random walk from each vertex, drawn to where it was by 1/p and to where it is new by 1/q.

    P(x | v, t) = a(t, x) / sum { a(t, y) : (v, y) an edge },   the step from v after one from t
    a(t, x) = 1/p if x = t,   1 if (t, x) is an edge,   1/q else

By rejection: v draws an edge and a number, and sends the walker there. x looks whether t is its neighbour, keeps the
walker if the number allows, and else sends it back for another draw. So a step takes O(log degree) for each draw, and a
superstep; two more for each draw that was rejected. Where a walker is it reports to the vertex that it started from.
The graph is taken as undirected; parallel edges count each, weights do not. `sigps.run(..., seed=)` draws others.

A. Grover, J. Leskovec, "node2vec: scalable feature learning for networks", KDD 2016.

>>> import sigps
>>> sigps.run(Node2vecWalks(length=4), sigps.Graph.from_edges([0], [1]))["walk"].tolist()
[[1, 0, 1, 0], [0, 1, 0, 1]]
"""

from typing import NamedTuple

from sigps import Param, State, Vector, Vertex, VertexId, above, at_least

REJECTED, REPORT = -1.0, -2.0  # in the place of a draw


class Walker(NamedTuple):
    """Whose walk and which step; the last vertex and the one before; the number drawn, or what else this is."""

    start: VertexId
    step: int
    last: VertexId
    before: VertexId
    draw: float


class Node2vecWalks(Vertex, message=Walker, directed=False):
    """Row v of `walk` has the `length` vertices after v on the walk from v; -1 if v has no edges."""

    p: Param[float] = above(0, default=1.0)
    q: Param[float] = above(0, default=1.0)
    length: Param[int] = at_least(1, default=20)
    walk: State[Vector[int, "length"]] = -1

    def compute(self, messages):
        """Write down reports of the walk from here; send walkers back or on."""
        if self.superstep == 0 and self.out_degree > 0:
            self.send_to(self.random_edge().target, Walker(self.id, 1, self.id, self.id, 0.0))
        for start, group in messages.grouped(lambda m: m.start):  # ascending: the same draws everywhere
            for m in group:
                step, before = m.step, m.before
                weight = 1.0 / self.p if before == self.id else 1.0 if self.has_edge(before) else 1.0 / self.q
                if m.draw == REPORT:
                    self.walk[step - 1] = m.last
                elif m.draw * max(1.0, 1.0 / self.p, 1.0 / self.q) >= weight:
                    self.send_to(m.last, Walker(start, step, m.last, before, REJECTED))
                else:
                    if m.draw != REJECTED:
                        self.send_to(start, Walker(start, step, self.id, before, REPORT))
                        step, before = step + 1, m.last
                    if step <= self.length:
                        there = self.random_edge().target
                        self.send_to(there, Walker(start, step, self.id, before, self.random()))
        self.vote_to_halt()
