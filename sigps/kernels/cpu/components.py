"""The best value of each component, by union and find over the edges of an undirected graph; of no program's functions.

`parents` makes trees of vertices: a vertex points to one of its component with a better value, and a root to itself. So
a root has the best value of its tree, and where no edge joins two trees, of its component. Equal values are ordered by
local id. Paths are halved wherever they are walked (R. Tarjan, J. van Leeuwen, "Worst-case analysis of set union
algorithms", Journal of the ACM 31, 1984).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = ["join_across", "join_within", "take_roots"]


@compiled
def join_within(
    begin: int,
    end: int,
    offsets: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    values: NDArray[Any],
    takes_min: bool,
    parents: NDArray[np.uint32],
    crossing: NDArray[np.uint32],
) -> int:
    """Join the trees of vertices begin..end along the edges between them; no other `parents` are read or written.

    Returns how many of these have an edge to a vertex before `begin`: they are listed in `crossing` from there on.
    """
    for v in range(begin, end):
        parents[v] = v
    count = 0
    for v in range(begin, end):
        crosses = False
        for e in range(np.int64(offsets[v]), np.int64(offsets[v + np.uint64(1)])):
            u = ends[e]
            if u >= begin and u < v:
                _join(u, np.uint32(v), values, takes_min, parents)
            crosses = crosses or u < begin
        if crosses:
            crossing[np.int64(begin) + count] = v
            count += 1
    return count


@compiled
def join_across(
    vertices: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    values: NDArray[Any],
    takes_min: bool,
    parents: NDArray[np.uint32],
) -> None:
    """Join the trees of these vertices and of all their neighbours of lower local ids."""
    for i in range(len(vertices)):
        v = vertices[i]
        for e in range(np.int64(offsets[v]), np.int64(offsets[np.int64(v) + 1])):
            if ends[e] < v:
                _join(ends[e], v, values, takes_min, parents)


@compiled
def take_roots(begin: int, end: int, parents: NDArray[np.uint32], values: NDArray[Any]) -> int:
    """Give vertices begin..end the values of their roots; return how many values changed. Roots keep theirs."""
    count = 0
    for v in range(begin, end):
        root = parents[v]
        while parents[root] != root:
            root = parents[root]
        parents[v] = root
        if values[root] != values[v]:
            values[v] = values[root]
            count += 1
    return count


def _join(a: Any, b: Any, values: NDArray[Any], takes_min: bool, parents: NDArray[np.uint32]) -> None:
    a, b = _root(a, parents), _root(b, parents)
    if a == b:
        return
    x, y = values[a], values[b]
    if (x < y if takes_min else x > y) or (x == y and a < b):
        parents[b] = a
    else:
        parents[a] = b


def _root(v: Any, parents: NDArray[np.uint32]) -> Any:
    while parents[v] != v:
        parents[v] = parents[parents[v]]
        v = parents[v]
    return v
