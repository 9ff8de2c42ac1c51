"""The breadth-first order of a graph, as a plain function and compiled."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["order_by_bfs", "order_by_bfs_plain"]


def order_by_bfs_plain(
    offsets: NDArray[np.int64], neighbours: NDArray[np.int64], order: NDArray[np.int64]
) -> None:
    """Fill in all vertices, component by component, each in breadth-first order.

    A component is walked twice: from its smallest vertex, then from the last vertex which that walk found.

    Args:
        offsets: [n + 1] of the rows of a symmetric graph.
        neighbours: [offsets[n]].
        order: [n] written.
    """
    walked = np.zeros(order.size, dtype=np.uint8)
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


order_by_bfs = numba.njit("(i8[::1], i8[::1], i8[::1])", cache=True, nogil=True)(order_by_bfs_plain)
