"""Measures of each vertex's neighbourhood, which can be the initial values of states.

    links: State[int] = neighbor_links

They are those of the simple graph: self-loops, and all but one of parallel edges, do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.graph import Graph
from sigps.graph.whole import whole_rows

__all__ = [
    "CountShare",
    "Neighbourhoods",
    "count_on_threads",
    "count_with_cost",
    "measured",
    "neighbourhoods",
]

_RANGES_OF_THREAD = 32


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Measures of all vertices of a graph, by gid.

    Attributes:
        num_neighbors: [num_vertices], distinct neighbours by an edge in either direction.
        neighbor_links: [num_vertices], directed edges between two of them; an undirected edge counts twice.
    """

    num_neighbors: NDArray[np.int64]
    neighbor_links: NDArray[np.int64]


CountShare = Callable[..., tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Counts a share of the links, as `count_on_threads` does; those of all shares add up to the links of the graph."""


def neighbourhoods(graph: Graph, count: CountShare) -> Neighbourhoods:
    """Return the measures of a graph's vertices. Collective; computed once a graph.

    Every rank holds all edges while it counts its share of the triangles, by the same function `count`.
    """
    return graph.derived("neighbourhoods", lambda: measured(graph, count))


def measured(graph: Graph, count: CountShare) -> Neighbourhoods:
    """Return the measures, counted now. Collective."""
    group = graph.group
    num_neighbors, links = count(
        *whole_rows(graph), directed=graph.directed, share=group.rank, num_shares=group.size
    )
    return Neighbourhoods(num_neighbors, group.all_reduce(links, "sum"))


def count_on_threads(
    threads: Any,
    offsets: NDArray[np.uint64],
    targets: NDArray[Any],
    *,
    directed: bool,
    share: int,
    num_shares: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count one of `num_shares` shares on CPU cores; a `CountShare` once `threads` is bound.

    For each edge from a lower to a higher degree, the edges on to still higher degrees are read: O(m sqrt(m)).
    `threads` is a `sigps.device.cpu.Threads`.

    Returns:
        By gid each vertex's number of neighbours, and its links that are in the share.
    """
    given = threads, offsets, targets
    num_neighbors, links, _ = count_with_cost(*given, directed=directed, share=share, num_shares=num_shares)
    return num_neighbors, links


def count_with_cost(
    threads: Any,
    offsets: NDArray[np.uint64],
    targets: NDArray[Any],
    *,
    directed: bool,
    share: int = 0,
    num_shares: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Count as `count_on_threads` does; return, too, how many marks all shares read."""
    from sigps.graph.measures import triangle_kernel

    n = offsets.size - 1
    degrees = np.diff(offsets).astype(np.int64)
    if directed:
        degrees = degrees + np.bincount(targets, minlength=n)
    rank = np.empty(n, dtype=np.uint32)
    rank[np.argsort(degrees, kind="stable")] = np.arange(n, dtype=np.uint32)
    rows, ends, ways, num_neighbors = triangle_kernel.oriented(offsets, targets, rank, directed)
    cost = triangle_kernel.cost_of_rows(rows, ends)
    num_ranges = threads.count * _RANGES_OF_THREAD
    goals = np.linspace(0, cost[-1], num_shares * num_ranges + 1)
    cuts = np.searchsorted(cost, goals).astype(np.uint64)
    cuts[0], cuts[-1] = 0, n
    mine = cuts[share * num_ranges : (share + 1) * num_ranges + 1]

    def count(thread: int) -> NDArray[np.int64]:
        marks, links = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.int64)
        for index in range(thread, num_ranges, threads.count):
            span = mine[index], mine[index + 1]
            if directed:
                triangle_kernel.links_among_neighbours(*span, rows, ends, ways, marks, links)
            else:
                triangle_kernel.triangles(*span, rows, ends, marks, links)
        return links if directed else 2 * links

    links = np.sum(threads.map(count, range(threads.count)), axis=0)
    return num_neighbors[rank], links[rank], int(cost[-1])
