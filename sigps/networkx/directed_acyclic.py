"""networkx.algorithms.dag: generations of directed acyclic graphs, and their longest paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from sigps.apps import LongestPath
from sigps.networkx.converted import ConvertedGraph, run
from sigps.networkx.neighbour_order import finders
from sigps.networkx.serving import serves

__all__: list[str] = []


def _generations(G: ConvertedGraph) -> NDArray[np.int64]:
    """Return how many edges the longest path to each node has, -1 on cycles and behind them, [nodes]."""
    lengths = run(LongestPath(), G.weighted(None))["length"]
    return np.where(np.isfinite(lengths), lengths, -1.0).astype(np.int64)


def _in_order(G: ConvertedGraph) -> Iterator[list[Any]]:
    if not G.is_directed():
        raise nx.NetworkXError("Topological sort not defined on undirected graphs.")
    if len(G) == 0:
        return
    levels = _generations(G)
    first = np.flatnonzero(levels == 0)
    later = list(finders(G, levels, first, last=True))  # before the graph may change
    if len(first):
        yield [G.nodes[position] for position in first.tolist()]
    for _, found in later:
        yield [G.nodes[position] for position in found.tolist()]
    if (levels < 0).any():
        raise nx.NetworkXUnfeasible("Graph contains a cycle.")


@serves()
def topological_generations(G: ConvertedGraph) -> Iterator[list[Any]]:
    yield from _in_order(G)


@serves()
def topological_sort(G: ConvertedGraph) -> Iterator[Any]:
    for generation in _in_order(G):
        yield from generation


@serves()
def is_directed_acyclic_graph(G: ConvertedGraph) -> bool:
    return G.is_directed() and (len(G) == 0 or bool((_generations(G) >= 0).all()))


def _refuses_default(given: dict[str, Any]) -> str | None:
    return None if given["default_weight"] == 1 else "default_weight= other than 1"


@serves(not_for="undirected", weight="weight", obstacle=_refuses_default)
def dag_longest_path_length(G: ConvertedGraph, weight: str | None = "weight", default_weight: int = 1) -> Any:
    if len(G) == 0:
        return 0
    is_whole = G.lengths(weight).dtype.kind in "iub"
    result = run(LongestPath(), G.weighted(weight))
    if not result.aggregators["is_acyclic"]:
        raise nx.NetworkXUnfeasible("Graph contains a cycle.")
    longest = result["length"].max().item()
    return int(longest) if is_whole else longest
