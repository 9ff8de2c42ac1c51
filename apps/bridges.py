"""Bridges: the edges without which the graph would fall into more components.

Trees of shortest paths grow from the smallest id of each component. An edge of a tree is a bridge if no other edge
leads out of the subtree below it. So each edge that is in no tree gets a random label of 64 bits, which both its ends
know, and

    label(v) = xor { label(v, u) : {v, u} an edge in no tree } xor label(c) xor ... for the children c of v
    {parent(v), v} is a bridge if label(v) = 0

as an edge with both ends below v is in it twice, and leaves no trace. A bridge is always found; another edge is taken
for one with probability 2**-64, as `seed` has it. The graph is taken as undirected and simple: loops are no bridges,
and parallel edges are one. Supersteps are as many as trees take to grow, and at most twice their height and 3; each
edge is crossed when a root or a level falls, and once more.

D. Pritchard, R. Thurimella, "Fast computation of small cuts via cycle space sampling", ACM Transactions on Algorithms
7, 2011.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> result = sigps.run(Bridges(), graph)
>>> [(p, v) for v, p, found in zip(result.ids, result["parent"], result["is_bridge"]) if found] == [(3, 4)]
True
"""

from typing import NamedTuple

from sigps import Param, Shared, State, Vertex, VertexId
from sigps.apps.hashing import hashed


class Word(NamedTuple):
    """A root, how far it is, and who says so; later who has which parent, or the label of a subtree."""

    sender: VertexId
    root: VertexId
    level: int = 0


class Bridges(Vertex, message=Word, directed=False, simple=True):
    """Whether the edge to `parent` is a bridge; the root of the tree, and the level there."""

    seed: Param[int] = 0
    root: State[VertexId] = -1
    level: State[int] = 0
    parent: State[VertexId | None] = None
    is_bridge: State[bool] = False
    label: State[int] = 0
    awaited: State[int] = 0
    begins: Shared[int] = 0

    def compute(self, messages):
        """Grow the tree; say who the parent is; then pass the label up when all children have."""
        if self.begins == 0:
            self.grow(messages)
        elif self.superstep == self.begins:
            self.send_to_neighbors(Word(self.id, self.id if self.parent is None else self.parent))
        else:
            if self.superstep == self.begins + 1:
                for m in messages:
                    if m.root == self.id:
                        self.awaited += 1
                    elif self.parent is None or m.sender != self.parent:
                        low, high = min(m.sender, self.id), max(m.sender, self.id)
                        self.label ^= hashed(low, hashed(high, self.seed))
            else:
                for m in messages:
                    self.awaited -= 1
                    self.label ^= m.level
            if self.awaited == 0 and self.parent is not None:
                self.is_bridge = self.label == 0
                self.send_to(self.parent, Word(self.id, self.root, self.label))
        self.vote_to_halt()

    def grow(self, messages):
        """Take the smallest root, the shortest way to it, and the smallest neighbour on one."""
        changed = self.superstep == 0
        if changed:
            self.root = self.id
        for m in messages:
            if m.root < self.root or (m.root == self.root and m.level + 1 < self.level):
                self.root, self.level, self.parent, changed = m.root, m.level + 1, m.sender, True
            elif m.root == self.root and m.level + 1 == self.level and self.parent is not None:
                self.parent = min(self.parent, m.sender)
        if changed:
            self.send_to_neighbors(Word(self.id, self.root, self.level))

    def next_phase(self):
        """Go on to the labels when the trees are grown."""
        if self.begins == 0:
            self.begins = self.superstep + 1
            self.wake_all()
