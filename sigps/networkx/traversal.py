"""networkx.algorithms.traversal: breadth-first searches, in the order of NetworkX's queue; and what can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from sigps.networkx.converted import ConvertedGraph
from sigps.networkx.neighbour_order import finders
from sigps.networkx.searches import levels_from
from sigps.networkx.serving import serves

__all__: list[str] = []


def _start(G: ConvertedGraph, node: Any) -> int:
    if node not in G:
        raise nx.NetworkXError(f"The node {node} is not in the {'di' if G.is_directed() else ''}graph.")
    return G.position(node)


def _tree_edges(
    G: ConvertedGraph, source: Any, reverse: bool, depth_limit: int | None
) -> Iterator[tuple[Any, Any]]:
    start = _start(G, source)
    levels = levels_from(G, [start], reverse=reverse)
    found = finders(G, levels, np.array([start]), reverse=reverse)
    for depth, (parents, children) in enumerate(found):
        if depth_limit is not None and depth >= depth_limit:
            return
        for parent, child in zip(parents.tolist(), children.tolist(), strict=True):
            yield G.nodes[parent], G.nodes[child]


def _sorts(given: dict[str, Any]) -> str | None:
    return None if given["sort_neighbors"] is None else "sort_neighbors= is a function"


@serves(obstacle=_sorts)
def bfs_edges(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: int | None = None,
    sort_neighbors: Any = None,
) -> Iterator[tuple[Any, Any]]:
    yield from _tree_edges(G, source, reverse, depth_limit)


@serves(obstacle=_sorts)
def bfs_tree(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: int | None = None,
    sort_neighbors: Any = None,
) -> Any:
    tree: Any = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(_tree_edges(G, source, reverse, depth_limit))
    return tree


@serves(obstacle=_sorts)
def bfs_predecessors(
    G: ConvertedGraph, source: Any, depth_limit: int | None = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, Any]]:
    for parent, child in _tree_edges(G, source, False, depth_limit):
        yield child, parent


@serves(obstacle=_sorts)
def bfs_successors(
    G: ConvertedGraph, source: Any, depth_limit: int | None = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, list[Any]]]:
    last = source
    children: list[Any] = []
    for parent, child in _tree_edges(G, source, False, depth_limit):
        if parent != last:
            yield last, children
            last, children = parent, []
        children.append(child)
    yield last, children


@serves()
def bfs_layers(G: ConvertedGraph, sources: Any) -> Iterator[list[Any]]:
    first = list({sources}) if sources in G else list(set(sources))
    starts = [_start(G, node) for node in first]
    if not starts:
        return
    yield first
    for _, children in finders(G, levels_from(G, starts), np.array(starts)):
        yield [G.nodes[child] for child in children.tolist()]


@serves()
def descendants_at_distance(G: ConvertedGraph, source: Any, distance: int) -> set[Any]:
    levels = levels_from(G, [_start(G, source)])
    return set(G.nodes_where((levels == distance) & (levels >= 0)))


@serves()
def descendants(G: ConvertedGraph, source: Any) -> set[Any]:
    return set(G.nodes_where(levels_from(G, [_start(G, source)]) > 0))


@serves()
def ancestors(G: ConvertedGraph, source: Any) -> set[Any]:
    return set(G.nodes_where(levels_from(G, [_start(G, source)], reverse=True) > 0))
