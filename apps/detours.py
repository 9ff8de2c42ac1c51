"""Detours: the paths between two vertices that visit none twice, one after another, by a tree of shortest paths.

The tree has the distance from its root to every vertex and, of equally short paths, one with the fewest edges. Paths
are followed from the target back to the root. The next one leaves an earlier one at some vertex, never by an edge that
paths with the same end took, so that no path is found twice, and none leaves where an earlier one was kept anyway:

    rest(v) = min { distance(u) + length(u, v) : (u, v) an edge that is open }

If the tree leads on from there without meeting the end that is kept, this is the best path that leaves at v, and no
search is needed. Else it bounds it from below, and a search for it, guided by distances in the tree, waits until
nothing shorter is left. With `k`, what is longer than k paths that are known is dropped.

Paths come by ascending length; the equally long by their number of edges, then by numbers of vertices as compared from
the target back. O(edges of the path) for each path, and for searches those of the vertices that they visit.

J. Y. Yen, "Finding the K shortest loopless paths in a network", Management Science 17, 1971; E. L. Lawler, "A procedure
for computing the K best solutions to discrete optimization problems", Management Science 18, 1972; P. E. Hart et al.,
"A formal basis for the heuristic determination of minimum cost paths", 1968.

>>> before = {0: ([], []), 1: ([0], [1]), 2: ([0, 1], [3, 1])}
>>> list(simple_paths(Tree(0, np.array([0, 1, 2]), np.array([0, 0, 1]), before.get), target=2))
[([0, 1, 2], [0.0, 1.0, 2.0]), ([0, 2], [0.0, 3.0])]
"""

from bisect import insort
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """A shortest way from the root to a vertex by the one before it: how long, of how many edges; the last length."""

    distance: float
    edges: int
    before: int
    length: float


class Tree:
    """Distances from a root, [n], infinite where no path leads; parents; and edges from wherever they are."""

    def __init__(self, root, distance, parent, edges_into):
        """Take arrays and what returns, of a vertex, those with an edge to it and the lengths of these edges."""
        self.root, self.distance, self.parent, self.edges_into = root, distance, parent, edges_into
        self.depths, self.known = {root: 0}, {}

    def climb(self, v, seen):
        """Return the vertices from v on towards the root that come before one of `seen`, and that one."""
        passed = []
        while v not in seen:
            passed.append(v)
            v = int(self.parent[v])
        return passed, v

    def depth(self, v):
        """Return how many edges the path in the tree has."""
        passed, met = self.climb(v, self.depths)
        for count, u in enumerate(reversed(passed), self.depths[met] + 1):
            self.depths[u] = count
        return self.depths[v]

    def steps(self, v):
        """Return the steps to v by the vertices before it, the shortest way first; of parallel edges the shortest."""
        if v not in self.known:
            before, lengths = (np.asarray(part) for part in self.edges_into(v))
            near = np.flatnonzero(self.distance[before] < np.inf) if len(before) else []
            before, lengths = before[near].astype(int), lengths[near]
            ways = (lengths + self.distance[before]).tolist(), before.tolist(), lengths.tolist()
            found = self.known[v] = {}
            for step in sorted(
                Step(way, self.depth(u) + 1, u, last) for way, u, last in zip(*ways, strict=True)
            ):
                found.setdefault(step.before, step)
        return self.known[v]


@dataclass(slots=True, eq=False)
class Branch:
    """All paths that keep the end of one, up to its vertex `at` from the target, and go on by none of `closed`.

    The best of them goes on by `after` and then by the tree; that is but a bound if the tree `meets` what is kept.
    """

    way: list
    lengths: list
    at: int
    closed: set
    after: tuple
    meets: bool

    def vertices(self):
        """Return the vertices that are known, from the target back."""
        return [*self.way[: self.at + 1], *self.after]

    def __lt__(self, other):
        return self.vertices() < other.vertices()


def simple_paths(tree, target, k=None):
    """Yield paths from the root to a target that can be reached: vertices, and how far each is; at most `k`."""
    first = Branch([target], [0.0], 0, set(), (), meets=False)
    length = float(tree.distance[target])
    waiting, shortest, num_found = [(length, tree.depth(target), first)], [length], 0
    while waiting and num_found != k:
        branch = heappop(waiting)[2]
        limit = shortest[k - 1] if k is not None and len(shortest) >= k else np.inf
        if branch.meets:
            found = detour(tree, branch, limit)
        else:
            way, lengths = followed(tree, branch)
            steps = (tree.steps(v)[u].length for u, v in zip(way[:0:-1], way[-2::-1], strict=True))
            yield way[::-1], list(accumulate(steps, initial=0.0))
            num_found += 1
            found = branches(tree, way, lengths, branch)
        for candidate in found:
            if candidate[0] <= limit:
                heappush(waiting, candidate)
                if k is not None and not candidate[2].meets:
                    insort(shortest, candidate[0])
                    del shortest[k:]


def followed(tree, branch):
    """Return the vertices of a branch's best path, from the target back to the root, and how far each is from there."""
    known = branch.vertices()
    passed, root = tree.climb(known[-1], {tree.root})
    way, lengths = [*known[:-1], *passed, root], branch.lengths[: branch.at + 1]
    for v, u in zip(way[branch.at : -1], way[branch.at + 1 :], strict=True):
        lengths.append(lengths[-1] + tree.steps(v)[u].length)
    return way, lengths


def branches(tree, way, lengths, branch):
    """Yield what leaves a path at each vertex from where it left an earlier one, by length, edges and vertices."""
    place = {v: at for at, v in enumerate(way)}
    lowest = {tree.root: len(way) - 1}  # the place next to the target that the tree meets from a vertex on
    for at in range(branch.at, len(way) - 1):
        closed = {way[at + 1]} | (branch.closed if at == branch.at else set())
        for u, step in tree.steps(way[at]).items():
            if u not in closed and place.get(u, len(way)) > at:
                passed, met = tree.climb(u, lowest)
                for v in reversed(passed):
                    lowest[v] = min(lowest[met], place.get(v, len(way)))
                    met = v
                left = Branch(way, lengths, at, closed, (u,), meets=lowest[u] <= at)
                yield lengths[at] + step.distance, at + step.edges, left
                break


def detour(tree, branch, limit):
    """Yield the best path of a branch, if it has one within the limit: A* with distances in the tree as bounds."""
    at, begin, here = branch.at, branch.lengths[branch.at], branch.way[branch.at]
    kept = set(branch.way[: at + 1])
    done, ends = set(), kept | {tree.root}  # ends: the root, and from where the tree leads to what is kept
    waiting = [
        (begin + step.distance, at + step.edges, (u,), begin + step.length)
        for u, step in tree.steps(here).items()
        if u not in branch.closed and u not in kept
    ]
    heapify(waiting)
    while waiting and waiting[0][0] <= limit:
        length, edges, after, begin = heappop(waiting)
        v = after[-1]
        if v in done:
            continue
        done.add(v)
        passed, met = tree.climb(v, ends)
        if met == tree.root:
            yield length, edges, Branch(branch.way, branch.lengths, at, branch.closed, after, meets=False)
            return
        ends.update(passed)
        for u, step in tree.steps(v).items():
            if u not in kept and u not in done:
                ahead = begin + step.distance, at + len(after) + step.edges, (*after, u), begin + step.length
                heappush(waiting, ahead)
