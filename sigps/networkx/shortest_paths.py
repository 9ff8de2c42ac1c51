"""networkx.algorithms.shortest_paths: distances and paths, of edges and of weights that are not negative.

Of several shortest paths NetworkX's is the one that its queue finds first; so are those of
`single_source_shortest_path` and the like here. Functions with weights, and those between two nodes, may return another
one where paths are equally long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np

from sigps.apps import detours
from sigps.apps.arcs import edges_into
from sigps.networkx.components import strong_labels, weak_labels
from sigps.networkx.converted import ConvertedGraph
from sigps.networkx.neighbour_order import finders, neighbours
from sigps.networkx.searches import (
    Tree,
    distances_from,
    from_each,
    levels_from,
    sums_of_hops,
    tree_from,
    tree_of_edges,
)
from sigps.networkx.serving import serves

__all__: list[str] = []


def _position(G: ConvertedGraph, node: Any, what: str, problem: str = "is not in G") -> int:
    if node not in G:
        raise nx.NodeNotFound(f"{what} {node} {problem}")
    return G.position(node)


def _whole(cutoff: float | None) -> float | None:
    """Return the last level that NetworkX's search goes to, which is none in part; the source is always found."""
    return None if cutoff is None or math.isinf(cutoff) else max(0, math.ceil(cutoff))


def _within(G: ConvertedGraph, distances: Any, is_reached: Any, cutoff: float | None) -> dict[Any, Any]:
    """Return distances by nodes, the nearest first."""
    order = Tree(distances, is_reached, distances).order(cutoff)
    nodes = [G.nodes[position] for position in order.tolist()]
    return dict(zip(nodes, distances[order].tolist(), strict=True))


def _paths(G: ConvertedGraph, tree: Tree, cutoff: float | None = None) -> dict[Any, list[Any]]:
    """Return paths by their ends, the nearest first."""
    made: dict[int, list[Any]] = {}
    order = tree.order(cutoff).tolist()
    parents = tree.parents.tolist()
    for end in order:
        climbed = []
        while end not in made and parents[end] != end:
            climbed.append(end)
            end = parents[end]
        path = made.setdefault(end, [G.nodes[end]])
        for end in reversed(climbed):
            path = made[end] = [*path, G.nodes[end]]
    return {G.nodes[end]: made[end] for end in order}


# Paths of edges


@serves()
def single_source_shortest_path_length(G: ConvertedGraph, source: Any, cutoff: float | None = None) -> Any:
    levels = levels_from(G, [_position(G, source, "Source")])
    return _within(G, levels, levels >= 0, _whole(cutoff))


@serves()
def single_target_shortest_path_length(G: ConvertedGraph, target: Any, cutoff: float | None = None) -> Any:
    levels = levels_from(G, [_position(G, target, "Target")], reverse=True)
    return _within(G, levels, levels >= 0, _whole(cutoff))


@serves()
def all_pairs_shortest_path_length(G: ConvertedGraph, cutoff: float | None = None) -> Iterator[Any]:
    for source, levels, is_reached in from_each(G, range(len(G)), None):
        yield G.nodes[source], _within(G, levels, is_reached, _whole(cutoff))


def _queue_paths(G: ConvertedGraph, start: int, cutoff: float | None, reverse: bool) -> dict[Any, list[Any]]:
    """Return paths from a node, or to it, as a queue finds them."""
    levels, last = levels_from(G, [start], reverse=reverse), _whole(cutoff)
    paths = {start: [G.nodes[start]]}
    for level, (parents, children) in enumerate(
        finders(G, levels, np.array([start]), reverse=reverse), start=1
    ):
        if last is not None and level > last:
            break
        for parent, child in zip(parents.tolist(), children.tolist(), strict=True):
            before, node = paths[parent], [G.nodes[child]]
            paths[child] = node + before if reverse else before + node
    return {G.nodes[end]: path for end, path in paths.items()}


@serves()
def single_source_shortest_path(G: ConvertedGraph, source: Any, cutoff: float | None = None) -> Any:
    return _queue_paths(G, _position(G, source, "Source", "not in G"), cutoff, reverse=False)


@serves()
def single_target_shortest_path(G: ConvertedGraph, target: Any, cutoff: float | None = None) -> Any:
    return _queue_paths(G, _position(G, target, "Target", "not in G"), cutoff, reverse=True)


@serves()
def all_pairs_shortest_path(G: ConvertedGraph, cutoff: float | None = None) -> Iterator[Any]:
    for source in range(len(G)):
        yield G.nodes[source], _queue_paths(G, source, cutoff, reverse=False)


@serves()
def bidirectional_shortest_path(G: ConvertedGraph, source: Any, target: Any) -> list[Any]:
    start, end = _position(G, source, "Source"), _position(G, target, "Target")
    tree = tree_of_edges(G, start)
    if not tree.is_reached[end]:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return [G.nodes[position] for position in tree.path(end)]


@serves()
def has_path(G: ConvertedGraph, source: Any, target: Any) -> bool:
    start, end = _position(G, source, "Source"), _position(G, target, "Target")
    return bool(levels_from(G, [start])[end] >= 0)


@serves(
    obstacle=lambda given: "target= and return_seen= of predecessor" if given["target"] is not None else None
)
def predecessor(
    G: ConvertedGraph,
    source: Any,
    target: Any = None,
    cutoff: int | None = None,
    return_seen: bool | None = None,
) -> Any:
    start = _position(G, source, "Source", "not in G")
    levels = levels_from(G, [start])
    if cutoff:
        levels = np.where(levels <= np.ceil(cutoff), levels, -1)
    found: dict[int, list[Any]] = {start: []}
    rank = np.zeros(len(G), np.int64)
    for _, children in finders(G, levels, np.array([start])):
        rank[children] = np.arange(len(children))
        found.update((child, []) for child in children.tolist())
    nodes, others = neighbours(G)
    steps = (levels[nodes] >= 0) & (levels[others] == levels[nodes] + 1)
    nodes, others = nodes[steps], others[steps]
    in_order = np.argsort(rank[nodes], kind="stable")
    for node, other in zip(nodes[in_order].tolist(), others[in_order].tolist(), strict=True):
        found[other].append(G.nodes[node])
    before = {G.nodes[end]: parents for end, parents in found.items()}
    return (before, {node: int(levels[G.position(node)]) for node in before}) if return_seen else before


# Paths of weights


def _multi_source(
    G: ConvertedGraph, sources: Any, target: Any, cutoff: float | None, weight: str | None
) -> Any:
    """Return distances and paths from the nearest of the sources; of a target, its own."""
    if not sources:
        raise ValueError("sources must not be empty")
    starts = []
    for source in sources:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} not found in graph")
        starts.append(G.position(source))
    if target in sources:
        return 0, [target]
    tree = tree_from(G, starts, weight)
    if target is None:
        return _within(G, tree.distances, tree.is_reached, cutoff), _paths(G, tree, cutoff)
    end = G.position(target) if target in G else -1
    if end < 0 or not tree.is_reached[end] or (cutoff is not None and tree.distances[end] > cutoff):
        raise nx.NetworkXNoPath(f"No path to {target}.")
    return tree.distances[end].item(), [G.nodes[position] for position in tree.path(end)]


def _lengths_from(
    G: ConvertedGraph, sources: Any, cutoff: float | None, weight: str | None
) -> dict[Any, Any]:
    if not sources:
        raise ValueError("sources must not be empty")
    for source in sources:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} not found in graph")
    tree = tree_from(G, G.positions(sources), weight)
    return _within(G, tree.distances, tree.is_reached, cutoff)


def _length_between(G: ConvertedGraph, source: Any, target: Any, weight: str | None) -> Any:
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    if source == target:
        return 0
    return _multi_source(G, [source], target, None, weight)[0]


@serves(weight="weight")
def dijkstra_path(G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight") -> Any:
    return _multi_source(G, [source], target, None, weight)[1]


@serves(weight="weight")
def dijkstra_path_length(G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight") -> Any:
    return _length_between(G, source, target, weight)


@serves(weight="weight")
def single_source_dijkstra(
    G: ConvertedGraph,
    source: Any,
    target: Any = None,
    cutoff: float | None = None,
    weight: str | None = "weight",
) -> Any:
    return _multi_source(G, [source], target, cutoff, weight)


@serves(weight="weight")
def single_source_dijkstra_path(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> Any:
    return _multi_source(G, [source], None, cutoff, weight)[1]


@serves(weight="weight")
def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> Any:
    return _lengths_from(G, [source], cutoff, weight)


@serves(weight="weight")
def multi_source_dijkstra(
    G: ConvertedGraph,
    sources: Any,
    target: Any = None,
    cutoff: float | None = None,
    weight: str | None = "weight",
) -> Any:
    return _multi_source(G, sources, target, cutoff, weight)


@serves(weight="weight")
def multi_source_dijkstra_path(
    G: ConvertedGraph, sources: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> Any:
    return _multi_source(G, sources, None, cutoff, weight)[1]


@serves(weight="weight")
def multi_source_dijkstra_path_length(
    G: ConvertedGraph, sources: Any, cutoff: float | None = None, weight: str | None = "weight"
) -> Any:
    return _lengths_from(G, sources, cutoff, weight)


@serves(weight="weight")
def all_pairs_dijkstra(
    G: ConvertedGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[Any]:
    G.lengths(weight)  # refused here, where NetworkX can still take over
    return ((source, _multi_source(G, [source], None, cutoff, weight)) for source in G)


@serves(weight="weight")
def all_pairs_dijkstra_path(
    G: ConvertedGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[Any]:
    G.lengths(weight)  # refused here, where NetworkX can still take over
    return ((source, _multi_source(G, [source], None, cutoff, weight)[1]) for source in G)


def _all_pairs_lengths(G: ConvertedGraph, cutoff: float | None, weight: str | None) -> Iterator[Any]:
    if weight is not None:
        G.lengths(weight)  # refused here, where NetworkX can still take over
    found = _from_each(G, weight)
    return ((G.nodes[at], _within(G, distances, reached, cutoff)) for at, distances, reached in found)


def _from_each(G: ConvertedGraph, weight: str | None) -> Iterator[Any]:
    return from_each(G, range(len(G)), weight)


@serves(weight="weight")
def all_pairs_dijkstra_path_length(
    G: ConvertedGraph, cutoff: float | None = None, weight: str | None = "weight"
) -> Iterator[Any]:
    return _all_pairs_lengths(G, cutoff, weight)


@serves(weight="weight")
def bidirectional_dijkstra(G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight") -> Any:
    _position(G, source, "Source")
    _position(G, target, "Target")
    try:
        return _multi_source(G, [source], target, None, weight)
    except nx.NetworkXNoPath:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.") from None


@serves(weight="weight")
def bellman_ford_path(G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight") -> Any:
    return _multi_source(G, [source], target, None, weight)[1]


@serves(weight="weight")
def bellman_ford_path_length(
    G: ConvertedGraph, source: Any, target: Any, weight: str | None = "weight"
) -> Any:
    return _length_between(G, source, target, weight)


@serves(weight="weight")
def single_source_bellman_ford(
    G: ConvertedGraph, source: Any, target: Any = None, weight: str | None = "weight"
) -> Any:
    return _multi_source(G, [source], target, None, weight)


@serves(weight="weight")
def single_source_bellman_ford_path(G: ConvertedGraph, source: Any, weight: str | None = "weight") -> Any:
    return _multi_source(G, [source], None, None, weight)[1]


@serves(weight="weight")
def single_source_bellman_ford_path_length(
    G: ConvertedGraph, source: Any, weight: str | None = "weight"
) -> Any:
    return _lengths_from(G, [source], None, weight)


@serves(weight="weight")
def all_pairs_bellman_ford_path(G: ConvertedGraph, weight: str | None = "weight") -> Iterator[Any]:
    G.lengths(weight)  # refused here, where NetworkX can still take over
    return ((source, _multi_source(G, [source], None, None, weight)[1]) for source in G)


@serves(weight="weight")
def all_pairs_bellman_ford_path_length(G: ConvertedGraph, weight: str | None = "weight") -> Iterator[Any]:
    return _all_pairs_lengths(G, None, weight)


# One after another


@serves(weight="weight", not_for="multigraph")
def shortest_simple_paths(
    G: ConvertedGraph, source: Any, target: Any, weight: str | None = None
) -> Iterator[list[Any]]:
    if source not in G:
        raise nx.NodeNotFound(f"source node {source} not in graph")
    if target not in G:
        raise nx.NodeNotFound(f"target node {target} not in graph")
    start, end = G.position(source), G.position(target)
    if weight is None:
        tree = tree_of_edges(G, start)
        into = edges_into(G.graph, weight=None)
    else:
        tree = tree_from(G, [start], weight)
        into = edges_into(G.weighted(weight))
    if not tree.is_reached[end]:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    distances = np.where(tree.is_reached, tree.distances, np.inf)
    for path, _ in detours.simple_paths(detours.Tree(start, distances, tree.parents, into), end):
        yield [G.nodes[position] for position in path]


# Either


_METHODS = ("dijkstra", "bellman-ford")


def _check_method(method: str) -> None:
    if method not in _METHODS:
        raise ValueError(f"method not supported: {method}")


@serves(weight="weight")
def shortest_path_length(
    G: ConvertedGraph,
    source: Any = None,
    target: Any = None,
    weight: str | None = None,
    method: str = "dijkstra",
) -> Any:
    _check_method(method)
    if source is None and target is None:
        return _all_pairs_lengths(G, None, weight)
    if target is None or source is None:
        node, reverse = (source, False) if target is None else (target, True)
        if node not in G:
            raise nx.NodeNotFound(f"Node {node} is not in G")
        return _within(G, *distances_from(G, G.position(node), weight, reverse=reverse), None)
    if weight is not None:
        return _length_between(G, source, target, weight)
    start, end = _position(G, source, "Source"), _position(G, target, "Target")
    found = int(levels_from(G, [start])[end])
    if found < 0:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return found


@serves(weight="weight")
def shortest_path(
    G: ConvertedGraph,
    source: Any = None,
    target: Any = None,
    weight: str | None = None,
    method: str = "dijkstra",
) -> Any:
    _check_method(method)
    from_one: Callable[[Any], dict[Any, list[Any]]]
    if weight is None:
        from_one = lambda node: _queue_paths(G, _position(G, node, "Source"), None, reverse=False)  # noqa: E731
    else:
        from_one = lambda node: _multi_source(G, [node], None, None, weight)[1]  # noqa: E731
    if source is None and target is None:
        return ((node, from_one(node)) for node in G)
    if target is None:
        return from_one(source)
    if source is None:
        if weight is None:
            return _queue_paths(G, _position(G, target, "Target"), None, reverse=True)
        paths = _paths(G, tree_from(G, [_position(G, target, "Target")], weight, reverse=True))
        return {node: path[::-1] for node, path in paths.items()}
    if weight is None:
        return bidirectional_shortest_path(G, source, target)
    _position(G, source, "Source")
    return _multi_source(G, [source], target, None, weight)[1]


def _needs_known_method(given: dict[str, Any]) -> str | None:
    method = given["method"]
    return f"method={method!r} is none of searches" if str(method).startswith("floyd") else None


@serves(weight="weight", obstacle=_needs_known_method)
def average_shortest_path_length(
    G: ConvertedGraph, weight: str | None = None, method: str | None = None
) -> float:
    if method is not None and method not in (*_METHODS, "unweighted"):
        raise ValueError(f"method not supported: {method}")
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, and so no average of their lengths")
    if n == 1:
        return 0
    labels = strong_labels(G) if G.is_directed() else weak_labels(G)
    if (labels != labels[0]).any():
        raise nx.NetworkXError(f"Graph is not {'strongly ' if G.is_directed() else ''}connected.")
    by = None if method == "unweighted" else weight
    total = sum(distances.sum().item() for _, distances, _ in _from_each(G, by))
    return float(total / (n * (n - 1)))


@serves(weight="weight")
def wiener_index(G: ConvertedGraph, weight: str | None = None) -> float:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    labels = strong_labels(G) if G.is_directed() else weak_labels(G)
    if (labels != labels[0]).any():
        return float("inf")
    total = sum(distances.sum().item() for _, distances, _ in _from_each(G, weight))
    return float(total) if G.is_directed() else float(total / 2)


@serves(not_for="directed")
def global_efficiency(G: ConvertedGraph) -> float:
    n = len(G)
    if n < 2:
        return 0
    found = (distances[distances > 0] for _, distances, _ in _from_each(G, None))
    return sum(float((1.0 / distances).sum()) for distances in found) / (n * (n - 1))


def eccentricities(G: ConvertedGraph, sources: Sequence[int], weight: str | None) -> dict[Any, Any]:
    """Return the greatest distance from each source, by its node.

    Raises:
        networkx.NetworkXError: If a node is not reached.
    """
    why = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
    infinite = nx.NetworkXError(f"Found infinite path length because the {why}")
    if weight is None and not G.is_directed() and len(sources) == len(G) > 0:
        ends = sums_of_hops(G, farthest="max", reached="sum")
        if (ends["reached"] < len(G)).any():
            raise infinite
        return G.by_node(ends["farthest"])
    found = {}
    for source, distances, is_reached in from_each(G, sources, weight):
        if not is_reached.all():
            raise infinite
        found[G.nodes[source]] = distances.max().item()
    return found
