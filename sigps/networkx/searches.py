"""Searches from nodes of a converted graph: what traversals, paths and distance measures are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import sigps
from sigps.apps import BFS, SSSP
from sigps.networkx.converted import ConvertedGraph, batches, run, settings
from sigps.networkx.programs import Hops, HopSums, Levels, Nearest

__all__ = ["Tree", "distances_from", "from_each", "levels_from", "sums_of_hops", "tree_from", "tree_of_edges"]


def levels_from(G: ConvertedGraph, sources: Sequence[int], *, reverse: bool = False) -> NDArray[np.int64]:
    """Return how many edges each node is from the nearest source, -1 where no path leads, [nodes]."""
    graph = G.reversed_graph() if reverse else G.graph
    found: NDArray[np.int64] = run(Levels(), graph, initial={"is_source": dict.fromkeys(sources, True)})[
        "level"
    ]
    return found


@dataclass(frozen=True)
class Tree:
    """Distances from the nearest source, and the vertex before each on a shortest path.

    Attributes:
        distances: [nodes]; whole numbers if all weights are.
        is_reached: [nodes]
        parents: [nodes], of sources and of what is not reached themselves.
    """

    distances: NDArray[Any]
    is_reached: NDArray[np.bool_]
    parents: NDArray[np.int64]

    def path(self, end: int) -> list[int]:
        """Return the positions on the path to a node that is reached, from its source on."""
        found = [end]
        while (before := int(self.parents[found[-1]])) != found[-1]:
            found.append(before)
        return found[::-1]

    def order(self, cutoff: float | None = None) -> NDArray[np.int64]:
        """Return the positions reached, within the cutoff, the nearest first."""
        kept = self.is_reached if cutoff is None else self.is_reached & (self.distances <= cutoff)
        reached = np.flatnonzero(kept)
        return reached[np.argsort(self.distances[reached], kind="stable")]


def tree_from(
    G: ConvertedGraph, sources: Sequence[int], weight: str | None, *, reverse: bool = False
) -> Tree:
    """Return shortest paths from the nearest of the sources.

    Raises:
        NotImplementedError: If a weight is negative.
    """
    lengths = G.lengths(weight)
    graph = G.reversed_weighted(weight) if reverse else G.weighted(weight)
    result = run(Nearest(), graph, initial={"is_source": dict.fromkeys(sources, True)})
    distances, is_reached = _exact(result["distance"], lengths)
    own = np.arange(len(G))
    return Tree(distances, is_reached, np.where(is_reached, np.ma.getdata(result["parent"]), own))


def tree_of_edges(G: ConvertedGraph, source: int) -> Tree:
    """Return paths with the fewest edges from a node; a search for them takes about half as long as `tree_from`."""
    found = run(BFS(source=source), G.graph)
    levels: NDArray[np.int64] = found["level"]
    is_reached = levels >= 0
    return Tree(levels, is_reached, np.where(is_reached, np.ma.getdata(found["parent"]), np.arange(len(G))))


def distances_from(
    G: ConvertedGraph, source: int, weight: str | None, *, reverse: bool = False
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return distances, [nodes], and which nodes are reached; None as weight counts edges."""
    if weight is None:
        levels = levels_from(G, [source], reverse=reverse)
        return levels, levels >= 0
    tree = tree_from(G, [source], weight, reverse=reverse)
    return tree.distances, tree.is_reached


def from_each(
    G: ConvertedGraph, sources: Sequence[int], weight: str | None, *, reverse: bool = False
) -> Iterator[tuple[int, NDArray[Any], NDArray[np.bool_]]]:
    """Yield each source with distances from it, [nodes], and which nodes are reached; searches go side by side."""
    lengths = None if weight is None else G.lengths(weight)
    if weight is None:
        graph = G.reversed_graph() if reverse else G.graph
    else:
        graph = G.reversed_weighted(weight) if reverse else G.weighted(weight)
    for some in batches(graph, sources):
        if lengths is None:
            for source, levels in zip(some, _rows(Hops, graph, some), strict=True):
                yield source, levels, levels >= 0
        else:
            for source, found in zip(some, _rows(SSSP, graph, some), strict=True):
                yield source, *_exact(found, lengths)


def _rows(program: type[sigps.Vertex], graph: sigps.Graph, sources: Sequence[int]) -> NDArray[Any]:
    found: NDArray[Any] = sigps.run_many(program, graph, source=list(sources), device=settings().device)[
        "distance"
    ]
    return found


def sums_of_hops(G: ConvertedGraph, **reduce: Literal["sum", "max"]) -> dict[str, NDArray[Any]]:
    """Return fields of `DistanceSums` as seen from all nodes along edges, each reduced as told, [nodes] each."""
    n = len(G)
    sources: dict[str, Any] = {
        "first": list(range(1, n + 1, 64)),
        "initial": {"number": np.arange(1, n + 1)},
    }
    results = sigps.run_many(HopSums, G.graph, reduce=dict(reduce), device=settings().device, **sources)
    return dict(results.reduced)


def _exact(distances: NDArray[np.float64], lengths: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return distances as whole numbers if all lengths are, and which are finite."""
    is_reached = np.isfinite(distances)
    if lengths.dtype.kind not in "iub":
        return distances, is_reached
    if lengths.size and float(lengths.max()) * len(distances) >= 2.0**53:
        raise NotImplementedError(
            "sigps adds up lengths as floats, and these whole numbers are too large for that"
        )
    return np.where(is_reached, distances, 0.0).astype(np.int64), is_reached
