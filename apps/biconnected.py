"""Biconnected components: what no single vertex cuts in two; and the vertices and edges that cut.

Two edges are in one block if a cycle goes through both. A tree of shortest paths, from `Bridges`, is numbered in
preorder, so that below v are those with numbers from first(v) to last(v); an edge in no tree joins two that are not
below each other. The edge from v up to its parent stands for v, and blocks are what hangs together by

    v ~ u           if {v, u} is an edge in no tree
    v ~ parent(v)   if an edge in no tree leads from below v to a number outside first(parent(v)) ... last(parent(v))

and a vertex is an articulation point if it is the top of a block, and is in another one too. An edge is in the block of
its end of greater level, of both if these are equal. The graph is taken as undirected and simple, as in `Bridges`,
whose supersteps and edges are crossed first; then as many supersteps as the tree is high, and as a block is wide.

R. E. Tarjan, U. Vishkin, "An efficient parallel biconnectivity algorithm", SIAM Journal on Computing 14, 1985.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> result = biconnected(graph)
>>> result["block"].tolist(), result.ids[result["is_articulation"]].tolist()
([-1, 0, 0, 1, 2, 2], [3, 4])
"""

from typing import NamedTuple

import numpy as np

from sigps import Shared, State, Vertex, VertexId
from sigps.apps.bridges import Bridges
from sigps.apps.driving import Runs, numbered


class Span(NamedTuple):
    """The numbers below the sender, and the outermost that edges lead to; later its block, and whether it joins."""

    sender: VertexId
    first: int
    last: int
    low: int = 0
    high: int = 0


class Blocks(Vertex, message=Span, directed=False, simple=True):
    """The smallest number in the block of the edge to the parent; `initial` has `first` and `last`."""

    first: State[int] = 0
    last: State[int] = 0
    low: State[int] = 0
    high: State[int] = 0
    above: State[VertexId | None] = None
    begin: State[int] = 0
    end: State[int] = 0
    awaited: State[int] = 0
    joins: State[bool] = False
    block: State[int] = 0
    begins: Shared[int] = 0

    def compute(self, messages):
        """Tell the neighbours the numbers; pass up how far edges lead; then spread the smallest number."""
        if self.superstep == 0:
            self.low, self.high, self.block = self.first, self.last, self.first
            self.send_to_neighbors(Span(self.id, self.first, self.last))
        elif self.begins == 0:
            self.rise(messages)
        else:
            block = self.block
            for m in messages:
                is_above = m.first < self.first and self.last <= m.last
                is_below = self.first < m.first and m.last <= self.last
                if self.joins if is_above else m.high == 1 or not is_below:
                    block = min(block, m.low)
            if self.superstep == self.begins or block < self.block:
                self.block = block
                self.send_to_neighbors(Span(self.id, self.first, self.last, block, 1 if self.joins else 0))
        self.vote_to_halt()

    def rise(self, messages):
        """Find parent and children, and the numbers that edges lead to; pass them up when all children have."""
        for m in messages:
            if self.superstep > 1:
                self.awaited -= 1
                self.low, self.high = min(self.low, m.low), max(self.high, m.high)
            elif m.first < self.first and self.last <= m.last:
                self.above, self.begin, self.end = m.sender, m.first, m.last
            elif self.first < m.first and m.last <= self.last:
                self.awaited += 1
            else:
                self.low, self.high = min(self.low, m.first), max(self.high, m.first)
        if self.awaited == 0 and self.above is not None:
            self.joins = self.low < self.begin or self.high > self.end
            self.send_to(self.above, Span(self.id, self.first, self.last, self.low, self.high))

    def next_phase(self):
        """Go on to the blocks when all is passed up."""
        if self.begins == 0:
            self.begins = self.superstep + 1
            self.wake_all()


def biconnected(graph, **options):
    """Return `block`, from 0, of the edge to `parent`, -1 at roots (their own parents), `level` and what cuts.

    `options` are those of `sigps.run`. Collective; every rank has the whole result.
    """
    runs = Runs(options)
    runs.run(Bridges(), graph)
    level, is_bridge = runs.field("level", graph), runs.field("is_bridge", graph)
    parent = runs.vertices("parent", graph)
    first, last = preorder(parent, level)
    runs.run(Blocks(), graph, initial={"first": first, "last": last})
    lowest, below = runs.field("block", graph), level > 0
    tops = np.bincount(parent[below & (lowest == first)], minlength=level.size)
    block = np.full(level.size, -1)
    block[below] = numbered(lowest[below])
    fields = {"block": block, "is_articulation": tops > ~below, "is_bridge": is_bridge}
    fields |= {"parent": graph.ids.to_oids(parent), "level": level}
    return runs.as_one(graph, fields, {"blocks": int(tops.sum())})


def preorder(parent, level):
    """Return the first and the last number below each vertex, itself first; O(n) for each level in NumPy.

    >>> preorder(np.array([0, 0, 1, 0]), np.array([0, 1, 2, 1]))
    (array([0, 1, 2, 3]), array([3, 2, 2, 3]))
    """
    order = np.lexsort((parent, level))
    of_levels = np.split(order, np.flatnonzero(np.diff(level[order])) + 1)
    size, first = np.ones(level.size, int), np.zeros(level.size, int)
    for at in reversed(of_levels[1:]):
        np.add.at(size, parent[at], size[at])
    first[of_levels[0]] = np.cumsum(size[of_levels[0]]) - size[of_levels[0]]
    for at in of_levels[1:]:
        above, before = parent[at], np.cumsum(size[at]) - size[at]
        begins = np.append(True, above[1:] != above[:-1])
        first[at] = first[above] + 1 + before - np.maximum.accumulate(np.where(begins, before, 0))
    return first, first + size - 1
