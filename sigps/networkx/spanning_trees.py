"""networkx.algorithms.tree: the spanning forest that Kruskal's algorithm finds, and whether a graph is one.

Of several forests that weigh the same Kruskal's is the one of the edges that come first. So edges get their places in
the sorted order for weights, which makes the forest unique.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

import sigps
from sigps.apps import MinimumSpanningForest
from sigps.networkx.components import weak_labels
from sigps.networkx.converted import ConvertedGraph, run
from sigps.networkx.neighbour_order import edges_in_order, neighbours
from sigps.networkx.serving import serves

__all__: list[str] = []


def _refuses(given: dict[str, Any]) -> str | None:
    if given["algorithm"] != "kruskal":
        return f"algorithm={given['algorithm']!r} may pick other edges of equal weight"
    return None


def _forest(G: ConvertedGraph, weight: str, sign: int) -> list[tuple[Any, Any]]:
    """Return the edges of the forest, the lightest first, or with sign -1 the heaviest."""
    nodes, others = edges_in_order(G)
    if len(nodes) == 0:
        return []
    all_nodes, all_others = neighbours(G)
    sorted_rows = np.lexsort((all_others, all_nodes))  # stored rows are sorted
    weights = np.empty(len(sorted_rows), G.weights(weight).dtype)
    weights[sorted_rows] = G.weights(weight)
    by_weight = np.argsort(sign * weights[all_nodes <= all_others], kind="stable")
    places = np.empty(len(by_weight), np.int64)
    places[by_weight] = np.arange(len(by_weight))
    ranked = sigps.Graph.from_edges(nodes, others, places, directed=False, vertices=np.arange(len(G)))
    result = run(MinimumSpanningForest(), ranked)
    kept = by_weight[np.sort(result["weight"][~np.ma.getmaskarray(result["low"])].astype(np.int64))]
    ends = zip(nodes[kept].tolist(), others[kept].tolist(), strict=True)
    return [(G.nodes[a], G.nodes[b]) for a, b in ends]


def _edges(G: ConvertedGraph, weight: str, sign: int, data: bool) -> Iterator[Any]:
    G.weights(weight)  # refused here, where NetworkX can still take over
    return ((a, b, G.source._adj[a][b]) if data else (a, b) for a, b in _forest(G, weight, sign))


def _tree(G: ConvertedGraph, weight: str, sign: int) -> Any:
    tree = type(G.source)()
    tree.graph.update(G.source.graph)
    tree.add_nodes_from(G.source.nodes.items())
    tree.add_edges_from(_edges(G, weight, sign, True))
    return tree


@serves(multigraph=False, not_for="directed", obstacle=_refuses)
def minimum_spanning_edges(
    G: ConvertedGraph,
    algorithm: str = "kruskal",
    weight: str = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    return _edges(G, weight, 1, data)


@serves(multigraph=False, not_for="directed", obstacle=_refuses)
def maximum_spanning_edges(
    G: ConvertedGraph,
    algorithm: str = "kruskal",
    weight: str = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    return _edges(G, weight, -1, data)


@serves(multigraph=False, not_for="directed", obstacle=_refuses)
def minimum_spanning_tree(
    G: ConvertedGraph, weight: str = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    return _tree(G, weight, 1)


@serves(multigraph=False, not_for="directed", obstacle=_refuses)
def maximum_spanning_tree(
    G: ConvertedGraph, weight: str = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    return _tree(G, weight, -1)


def _num_components(G: ConvertedGraph) -> int:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("G has no nodes.")
    return len(np.unique(weak_labels(G)))


@serves()
def is_tree(G: ConvertedGraph) -> bool:
    return _num_components(G) == 1 and G.num_edges == len(G) - 1


@serves()
def is_forest(G: ConvertedGraph) -> bool:
    return G.num_edges == len(G) - _num_components(G)
