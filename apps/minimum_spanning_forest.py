"""Minimum spanning forest: the lightest edges that connect all that is connected.

Every vertex begins as a root. In each round roots join the component to which the first edge out of their own leads,
and keep that edge; of two that picked the same one, the lower stays a root. Those that joined follow their pointers to
roots; then each other vertex asks its own once, which answers if it has joined another.

    edge(C) = min { (weight, low, high) : low < high the ends of an edge, one of them in C },   C a component

The graph is taken as undirected. Weights are floats: whole ones beyond 2**53 are rounded, with a warning. The ends of
an edge leave on it to which components they belong, when that has changed. A vertex whose neighbours are all in its
component takes no part in later rounds, and follows its pointer only when the last one is over; an edge inside a
component is not looked at again. At most log2(n) rounds of 8 supersteps, and of 2 more each time that pointers of
roots still moved, and 2 each time that the others' do at the end.

O. Boruvka, "O jistem problemu minimalnim", 1926; S. Salihoglu, J. Widom, "Optimizing graph algorithms on Pregel-like
systems", Proceedings of the VLDB Endowment 7, 2014.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3], weights=[1.0, 5.0, 2.0, 3.0], directed=False)
>>> result = sigps.run(MinimumSpanningForest(), graph)
>>> result["low"].tolist(), result["high"].tolist(), result.aggregators["total"]
([None, 0, 0, 2], [None, 1, 3, 3], 6.0)
"""

from typing import NamedTuple

from sigps import Aggregator, EdgeState, Shared, State, Vertex, VertexId, inf

LOOK, PICK, JOIN, ANSWER, JUMP, SPREAD, REPLY = range(7)
LAST = 2**63 - 1  # no vertex comes behind it


class Link(NamedTuple):
    """An edge, and the component it leads to: the lower goes first. Both ends see the same order."""

    weight: float
    low: VertexId
    high: VertexId
    component: VertexId


class MinimumSpanningForest(Vertex, message=Link, directed=False):
    """The root of each vertex's component, and the edge of the forest that it keeps; a root has none."""

    component: State[VertexId] = -1
    low: State[VertexId | None] = None
    high: State[VertexId | None] = None
    weight: State[float] = 0.0
    is_root: State[bool] = True
    is_inner: State[bool] = False  # all neighbours are in the same component
    told: State[VertexId] = -1  # the component that its edges out of it say
    here: EdgeState[VertexId] = -1  # the component of the end that keeps it
    is_inside: EdgeState[bool] = False  # of a component
    phase: Shared[int] = LOOK
    is_over: Shared[bool] = False  # no edge leads out of any component
    goes_on = Aggregator.any()
    total = Aggregator.sum(float, persistent=True)
    edges = Aggregator.sum(int, persistent=True)

    def compute(self, messages):
        """Do what the phase asks for."""
        if self.superstep == 0:
            self.component = self.id
        if self.phase == LOOK and not self.is_inner:
            self.component = min((m.component for m in messages), default=self.component)
            if self.told != self.component:
                self.told = self.component
                for edge in self.out_edges:
                    if not edge.is_inside:
                        edge.here = self.component
        elif self.phase == PICK and not self.is_inner:
            self.propose()
        elif self.phase == JOIN and messages:
            self.weight, self.low, self.high, self.component = min(messages)
            self.ask()
        elif self.phase in (ANSWER, REPLY) and messages and self.component != self.id:
            for m in messages:
                root = min(self.id, m.component) if m.component == self.component else self.component
                self.send_to(m.component, Link(0.0, -1, -1, root))
            self.goes_on += True
        elif self.phase == SPREAD and self.component != self.id:
            if self.is_over or not (self.is_inner or self.told == self.id):  # who was a root has asked
                self.ask()
        elif self.phase == JUMP:
            root = min((m.component for m in messages), default=self.component)
            has_moved = root != self.component
            self.component = root
            if self.is_root and root == self.id:  # the one that it joined has joined it
                self.weight, self.low, self.high = 0.0, None, None
            elif self.is_root:
                self.is_root = False
                self.total += self.weight
                self.edges += 1
            if has_moved and root != self.id:
                self.ask()
        self.vote_to_halt()

    def propose(self):
        """Send the root the first edge that leads out of the component, if there is one."""
        first = Link(inf, LAST, LAST, self.component)
        for edge in self.out_edges:
            if not edge.is_inside:
                there = edge.reverse.here
                if there == self.component:  # as along a loop
                    edge.is_inside = True
                else:
                    low, high = min(self.id, edge.target), max(self.id, edge.target)
                    first = min(first, Link(edge.weight, low, high, there))
        self.is_inner = first.component == self.component
        if not self.is_inner:
            self.send_to(self.component, first)
            self.goes_on += True

    def ask(self):
        """Ask the vertex that this one points to where it points itself."""
        self.send_to(self.component, Link(0.0, -1, -1, self.id))
        self.goes_on += True

    def master(self):
        """Go on to the next phase, until no edge leads out of any component and all pointers lead to roots."""
        if self.phase == PICK:
            self.is_over = not self.goes_on
            self.phase = SPREAD if self.is_over else JOIN
        elif self.phase == SPREAD and (self.goes_on or self.is_over):
            self.phase = ANSWER if self.is_over else REPLY
        elif self.phase in (JOIN, ANSWER, JUMP) and self.goes_on:
            self.phase = JUMP if self.phase == ANSWER else ANSWER
        elif not self.is_over:
            self.phase = PICK if self.phase == LOOK else SPREAD if self.phase in (ANSWER, JUMP) else LOOK
        if self.phase in (LOOK, PICK, SPREAD):
            self.wake_all()
