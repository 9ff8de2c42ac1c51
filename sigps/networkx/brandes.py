"""Dependencies of shortest paths on nodes and edges, of one source at a time.

    paths(v) = sum { paths(u) : (u, v) on a shortest path },   dependency(u) = sum { share(u, v) : v after u }
    share(u, v) = paths(u) / paths(v) * (1 + dependency(v))

U. Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25, 2001.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigps.apps.edge_betweenness import by_level, dependencies
from sigps.networkx.converted import ConvertedGraph
from sigps.networkx.searches import from_each

__all__ = ["Dependencies", "dependencies_from_each"]


@dataclass(frozen=True)
class Dependencies:
    """What depends on each node and each edge among the shortest paths from a source.

    Attributes:
        source: The source.
        is_reached: [nodes]
        of_nodes: [nodes]; the source's own are no betweenness.
        edges: [edges on shortest paths], positions among the stored edges of the graph.
        of_edges: [edges on shortest paths], their shares.
    """

    source: int
    is_reached: NDArray[np.bool_]
    of_nodes: NDArray[np.float64]
    edges: NDArray[np.int64]
    of_edges: NDArray[np.float64]


def dependencies_from_each(
    G: ConvertedGraph, sources: Sequence[int], weight: str | None
) -> Iterator[Dependencies]:
    """Yield the dependencies of each source; O(edges) for each in NumPy, after searches side by side.

    Raises:
        NotImplementedError: If edges of length 0 are on shortest paths, or one is negative.
    """
    for source, distances, is_reached in from_each(G, sources, weight):
        if weight is None:
            edges, ends = by_level(distances, G.rows, G.targets)
        else:
            lengths = G.lengths(weight)
            edges = np.flatnonzero(is_reached[G.rows] & (distances[G.rows] + lengths == distances[G.targets]))
            if not lengths[edges].all():
                raise NotImplementedError("sigps counts no shortest paths along edges of length 0")
            in_steps, ends = _steps(len(G), source, G.rows[edges], G.targets[edges])
            edges = edges[in_steps]
        is_source = np.arange(len(G)) == source
        found = dependencies(is_source, G.rows[edges], G.targets[edges], ends)
        yield Dependencies(source, is_reached, found[0], edges, found[1])


def _steps(
    n: int, source: int, rows: NDArray[np.int64], targets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[int]]:
    """Return edges of an acyclic graph in steps: those of a step leave nodes that all their in-edges have reached.

    Their positions, and how many are in each step and those before.
    """
    begins = np.searchsorted(rows, np.arange(n + 1))
    waiting = np.bincount(targets, minlength=n)
    ready, steps, ends = np.array([source]), [], [0]
    while ready.size:
        counts = begins[ready + 1] - begins[ready]
        step = np.repeat(begins[ready] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        found, times = np.unique(targets[step], return_counts=True)
        waiting[found] -= times
        ready = found[waiting[found] == 0]
        steps.append(step)
        ends.append(ends[-1] + len(step))
    if ends[-1] != len(rows) or waiting[source]:
        raise NotImplementedError("sigps counts no shortest paths along edges that are lost in rounding")
    return np.concatenate(steps), ends[1:]
