"""Minimum spanning forest: the lightest edges that connect all that is connected.

Every vertex begins as a root. In each round roots join the component to which the first edge out of their own leads,
and keep that edge; of two that picked the same one, the lower stays a root. Then all follow pointers to their roots.

    edge(C) = min { (weight, low, high) : low < high the ends of an edge, one of them in C },   C a component

The graph is taken as undirected. At most log2(n) rounds of 5 supersteps, and of 2 more each time that pointers still
moved, and 2 supersteps at the end. Roots hear from all of their components.

O. Boruvka, "O jistem problemu minimalnim", 1926; S. Salihoglu, J. Widom, "Optimizing graph algorithms on Pregel-like
systems", Proceedings of the VLDB Endowment 7, 2014.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3], weights=[1.0, 5.0, 2.0, 3.0], directed=False)
>>> result = sigps.run(MinimumSpanningForest(), graph)
>>> result["low"].tolist(), result["high"].tolist(), result.aggregators["total"]
([-1, 0, 0, 2], [-1, 1, 3, 3], 6.0)
"""

from typing import NamedTuple

from sigps import Aggregator, Shared, State, Vertex, VertexId

LOOK, PICK, JOIN, ANSWER, JUMP = range(5)


class Link(NamedTuple):
    """An edge, and the component it leads to: the lower goes first. Both ends see the same order."""

    weight: float
    low: VertexId
    high: VertexId
    component: VertexId


class MinimumSpanningForest(Vertex, message=Link, directed=False):
    """The root of each vertex's component, and the edge of the forest that it keeps; a root has none: -1, -1."""

    component: State[VertexId] = -1
    low: State[VertexId] = -1
    high: State[VertexId] = -1
    weight: State[float] = 0.0
    is_inner: State[bool] = False  # all neighbours are in the same component, and need not hear which
    phase: Shared[int] = LOOK
    goes_on = Aggregator.any()
    total = Aggregator.sum(float)
    edges = Aggregator.sum(int)

    def compute(self, messages):
        """Do what the phase asks for, given what leads out of the component: edges, or a pointer farther on."""
        if self.superstep == 0:
            self.component = self.id
        nowhere = Link(0.0, -1, -1, self.component)
        first = min((m for m in messages if m.component != self.component), default=nowhere)
        leads_out = first.component != self.component
        if self.phase == LOOK and not self.is_inner:
            for edge in self.out_edges:
                low, high = min(self.id, edge.target), max(self.id, edge.target)
                self.send(edge, Link(edge.weight, low, high, self.component))
        elif self.phase == PICK:
            if self.component == self.id:  # also one that joined, and stayed
                self.weight, self.low, self.high = 0.0, -1, -1
            self.total += self.weight
            self.edges += self.component != self.id
            self.is_inner = not leads_out
            if leads_out:
                self.send_to(self.component, first)
                self.goes_on += True
        elif self.phase == ANSWER:
            for m in messages:
                root = min(self.id, m.component) if m.component == self.component else self.component
                self.send_to(m.component, Link(0.0, -1, -1, root))
        elif self.phase == JOIN or self.phase == JUMP:
            if self.phase == JOIN and leads_out:
                self.weight, self.low, self.high = first.weight, first.low, first.high
            self.component = first.component
            if self.component != self.id and (leads_out or self.phase == JOIN):
                self.send_to(self.component, Link(0.0, -1, -1, self.id))
                self.goes_on += True
        self.vote_to_halt()

    def master(self):
        """Go on to the next phase, until no edge leads out of any component."""
        if self.phase == JUMP and self.goes_on:
            self.phase = ANSWER
        elif self.phase != PICK or self.goes_on:
            self.phase = (self.phase + 1) % 5
            if self.phase <= JOIN:
                self.wake_all()
