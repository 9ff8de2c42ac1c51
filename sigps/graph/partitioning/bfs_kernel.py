"""The breadth-first order and the levels of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = ["count_levels", "order_by_bfs"]


@compiled
def order_by_bfs(
    offsets: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    order: NDArray[np.int64],
    walked: NDArray[np.uint8],
) -> None:
    """Write all vertices, component by component, each in breadth-first order.

    A component is searched twice: from its smallest vertex, then from the last vertex of that search.

    Args:
        offsets: [n + 1] of the rows of a symmetric graph.
        neighbours: [offsets[n]].
        order: [n] written.
        walked: [n] zeros: scratch.
    """
    begin = 0
    for smallest in range(order.size):
        if walked[smallest] != 0:
            continue
        root, end = smallest, begin
        for walk in range(1, 3):
            order[begin] = root
            walked[root] = walk
            head, end = begin, begin + 1
            while head < end:
                vertex = order[head]
                head += 1
                for edge in range(offsets[vertex], offsets[vertex + 1]):
                    neighbour = neighbours[edge]
                    if walked[neighbour] != walk:
                        walked[neighbour] = walk
                        order[end] = neighbour
                        end += 1
            root = order[end - 1]
        begin = end


def count_levels(offsets: NDArray[np.uint64], targets: NDArray[np.unsignedinteger[Any]], source: int) -> int:
    """Return the number of levels of a breadth-first search along out-edges, counting the source's.

    O(edges) time, 9 bytes a vertex.

    Args:
        offsets: [n + 1] of the rows.
        targets: [offsets[n]].
        source: The vertex at which it begins, below n.
    """
    seen = np.zeros(offsets.size - 1, dtype=np.uint8)
    queue = np.empty(offsets.size - 1, dtype=np.int64)
    return int(_count_levels(offsets, targets, source, seen, queue))


@compiled
def _count_levels(
    offsets: NDArray[np.uint64],
    targets: NDArray[np.unsignedinteger[Any]],
    source: int,
    seen: NDArray[np.uint8],
    queue: NDArray[np.int64],
) -> int:
    queue[0] = source
    seen[source] = 1
    levels, begin, end = 0, 0, 1
    while begin < end:
        levels += 1
        level_end = end
        for place in range(begin, level_end):
            vertex = queue[place]
            for edge in range(offsets[vertex], offsets[vertex + 1]):
                neighbour = targets[edge]
                if seen[neighbour] == 0:
                    seen[neighbour] = 1
                    queue[end] = neighbour
                    end += 1
        begin = level_end
    return levels
