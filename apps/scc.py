"""Strongly connected components: every vertex learns the smallest id that it can reach and that reaches it.

Rounds of three phases. Vertices that no edge enters or no edge leaves any more are components of their own and go,
again and again. Then ids fall along edges. Last, who kept its own id looks back: who reaches it in its colour goes too.

    colour(v) = min { u : u reaches v, both left },   component(v) = colour(v) if v reaches it, else of a later one

A phase takes as many supersteps as its longest path has edges, and two. Chains of components may take a round each.
In an undirected graph these are the components of `WCC`.

S. Orzan, "On distributed verification and verified distribution", PhD thesis, VU Amsterdam, 2004; W. McLendon et al.,
"Finding strongly connected components in distributed graphs", J. Parallel and Distributed Computing 65, 2005.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 2, 3, 4, 4], [1, 2, 0, 3, 4, 3, 5])
>>> sigps.run(SCC(), graph)["component"].tolist()
[0, 0, 0, 3, 3, 5]
"""

from typing import NamedTuple

from sigps import Shared, State, Vertex, VertexId

TRIM, FORWARD, BACKWARD = range(3)


class Word(NamedTuple):
    """A colour, and whether it came along an edge into or out of the receiver; or both."""

    colour: VertexId
    ins: bool
    outs: bool


class SCC(Vertex, message=Word, both_ways=True):
    """The smallest id of each vertex's component; until it has gone its colour, and the edges from and to others."""

    component: State[VertexId] = -1
    ins: State[int] = 1
    outs: State[int] = 1
    phase: Shared[int] = TRIM
    begins: Shared[int] = 0

    def compute(self, messages):
        """Take a smaller colour, or count the edges that are left; send it, or that this vertex goes."""
        ins, outs = sum(m.ins for m in messages), sum(m.outs for m in messages)
        lowest = min((m.colour for m in messages), default=self.component)
        found = max((m.colour for m in messages if m.outs), default=self.component)  # none is above its own
        goes = False
        if self.phase == FORWARD:
            sends = self.superstep == self.begins or lowest < self.component
            self.component = min(self.component, lowest)
        else:
            # In superstep 0 all send, to be counted.
            self.ins = ins if self.superstep == 1 else self.ins - ins
            self.outs = outs if self.superstep == 1 else self.outs - outs
            if self.phase == TRIM:
                self.component = self.id
                goes = self.ins == 0 or self.outs == 0
            else:
                goes = self.component == self.id or (outs > 0 and found == self.component)
            sends = goes or self.superstep == 0
        if sends:
            for edge in self.out_edges:
                if edge.target != self.id and (edge.leads_out or self.phase != FORWARD):
                    self.send(edge, Word(self.component, edge.leads_out, edge.leads_in))
        if goes:
            self.retire()
        elif self.superstep > 0:  # then all count
            self.vote_to_halt()

    def next_phase(self):
        """Go on when no vertex has anything to send; when all have gone none wakes, and the run ends."""
        self.phase = (self.phase + 1) % 3
        self.begins = self.superstep + 1
        self.wake_all()
