"""Dependencies of shortest paths on nodes and edges, of one source at a time.

    paths(v) = sum { paths(u) : (u, v) on a shortest path },   dependency(u) = sum { share(u, v) : v after u }
    share(u, v) = paths(u) / paths(v) * (1 + dependency(v))

U. Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25, 2001.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    lengths = 1 if weight is None else G.lengths(weight)
    for source, distances, is_reached in from_each(G, sources, weight):
        on_path = is_reached[G.rows] & (distances[G.rows] + lengths == distances[G.targets])
        edges = np.flatnonzero(on_path)
        if weight is not None and not G.lengths(weight)[edges].all():
            raise NotImplementedError("sigps counts no shortest paths along edges of length 0")
        steps = _steps(len(G), source, G.rows[edges], G.targets[edges])
        yield _dependencies(G, source, is_reached, edges, steps)


def _steps(n: int, source: int, rows: NDArray[np.int64], targets: NDArray[np.int64]) -> list[Any]:
    """Return edges of an acyclic graph in steps: those of a step leave nodes that all their in-edges have reached."""
    begins = np.searchsorted(rows, np.arange(n + 1))
    waiting = np.bincount(targets, minlength=n)
    ready, steps, seen = np.array([source]), [], 0
    while ready.size:
        counts = begins[ready + 1] - begins[ready]
        step = np.repeat(begins[ready] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        found, times = np.unique(targets[step], return_counts=True)
        waiting[found] -= times
        ready = found[waiting[found] == 0]
        steps.append(step)
        seen += len(step)
    if seen != len(rows) or waiting[source]:
        raise NotImplementedError("sigps counts no shortest paths along edges that are lost in rounding")
    return steps


def _dependencies(
    G: ConvertedGraph, source: int, is_reached: NDArray[np.bool_], edges: NDArray[np.int64], steps: list[Any]
) -> Dependencies:
    rows, targets = G.rows[edges], G.targets[edges]
    paths, of_nodes, of_edges = np.zeros(len(G)), np.zeros(len(G)), np.zeros(len(edges))
    paths[source] = 1.0
    for step in steps:
        np.add.at(paths, targets[step], paths[rows[step]])
    for step in reversed(steps):
        before, after = rows[step], targets[step]
        of_edges[step] = paths[before] / paths[after] * (1.0 + of_nodes[after])
        np.add.at(of_nodes, before, of_edges[step])
    return Dependencies(source, is_reached, of_nodes, edges, of_edges)
