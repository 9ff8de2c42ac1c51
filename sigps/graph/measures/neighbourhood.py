"""What a graph looks like around each vertex: measures that a state may begin with.

    links: State[int] = neighbor_links

They are of the simple graph: loops, and all but one of parallel edges, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigps.graph.graph import Graph

__all__ = ["CountShare", "Neighbourhoods", "ThreadPool", "count_on_threads", "neighbourhoods"]

_PARTS_OF_THREAD = 32


class ThreadPool(Protocol):
    """Threads, as far as they are needed here."""

    count: int

    def map(self, function: Callable[..., Any], tasks: Sequence[Any]) -> list[Any]: ...


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Measures of all vertices of a graph, by gid.

    Attributes:
        num_neighbors: [num_vertices] distinct neighbours, by an edge in either direction.
        neighbor_links: [num_vertices] arcs between two of them: an undirected edge is two.
    """

    num_neighbors: NDArray[np.int64]
    neighbor_links: NDArray[np.int64]


class CountShare(Protocol):
    """Who counts a share of the links; all shares together are those of the graph.

    Takes the offsets and targets of all rows, and gives by gid the neighbours of each vertex, all of them, and the
    links of the share.
    """

    def __call__(
        self,
        offsets: NDArray[np.uint64],
        targets: NDArray[Any],
        *,
        directed: bool,
        share: int,
        num_shares: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...


def neighbourhoods(graph: Graph, count: CountShare) -> Neighbourhoods:
    """Return the measures of a graph's vertices. Collective; computed once a graph.

    Every rank holds all edges while it counts its share of the triangles.

    Args:
        graph: The graph.
        count: Who counts; the same on all ranks.
    """
    group = graph.group

    def measured() -> Neighbourhoods:
        num_neighbors, links = count(
            *_whole(graph), directed=graph.directed, share=group.rank, num_shares=group.size
        )
        return Neighbourhoods(num_neighbors, group.all_reduce(links, "sum"))

    return graph.derived("neighbourhoods", measured)


def count_on_threads(
    threads: ThreadPool,
    offsets: NDArray[np.uint64],
    targets: NDArray[Any],
    *,
    directed: bool,
    share: int,
    num_shares: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count a share on CPU cores, as `CountShare` does.

    Time is that of looking, for each edge from a lower to a higher degree, through the edges on from there:
    O(m sqrt(m)) at most.
    """
    from sigps.graph.measures import triangle_kernel

    n = offsets.size - 1
    degrees = np.diff(offsets).astype(np.int64)
    if directed:
        degrees = degrees + np.bincount(targets, minlength=n)
    rank = np.empty(n, dtype=np.uint32)
    rank[np.argsort(degrees, kind="stable")] = np.arange(n, dtype=np.uint32)
    rows, ends, ways, num_neighbors = triangle_kernel.oriented(offsets, targets, rank, directed)
    cost = triangle_kernel.cost_of_rows(rows, ends)
    parts = threads.count * _PARTS_OF_THREAD
    shares = np.linspace(0, cost[-1], num_shares * parts + 1)
    cuts = np.searchsorted(cost, shares).astype(np.uint64)
    cuts[0], cuts[-1] = 0, n
    mine = cuts[share * parts : (share + 1) * parts + 1]

    def count(turn: int) -> NDArray[np.int64]:
        marks, links = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.int64)
        for part in range(turn, parts, threads.count):
            span = mine[part], mine[part + 1]
            if directed:
                triangle_kernel.links_among_neighbours(*span, rows, ends, ways, marks, links)
            else:
                triangle_kernel.triangles(*span, rows, ends, marks, links)
        return links if directed else 2 * links

    links = np.sum(threads.map(count, range(threads.count)), axis=0)
    return num_neighbors[rank], links[rank]


def _whole(graph: Graph) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return all rows of a graph, wherever they lie."""
    if graph.group.size == 1:
        return graph.offsets, graph.targets
    degrees = np.concatenate(graph.group.all_gather_array(np.diff(graph.offsets)))
    offsets = np.zeros(degrees.size + 1, dtype=np.uint64)
    np.cumsum(degrees, out=offsets[1:])
    return offsets, np.concatenate(graph.group.all_gather_array(graph.targets))
