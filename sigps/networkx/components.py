"""networkx.algorithms.components: connected, weakly connected, strongly connected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from sigps.apps import SCC, WCC
from sigps.networkx.converted import ConvertedGraph, run
from sigps.networkx.serving import serves

__all__: list[str] = []


def weak_labels(G: ConvertedGraph) -> NDArray[np.int64]:
    """Return the first position of each node's component, whatever the directions of edges, [nodes]."""
    made: NDArray[np.int64] = G.graph.derived(
        "networkx, components", lambda: run(WCC(), G.graph)["component"]
    )
    return made


def strong_labels(G: ConvertedGraph) -> NDArray[np.int64]:
    """Return the first position of each node's strongly connected component, [nodes]."""
    made: NDArray[np.int64] = G.graph.derived(
        "networkx, strong components", lambda: run(SCC(), G.graph)["component"]
    )
    return made


def sets_of(G: ConvertedGraph, labels: NDArray[np.int64]) -> Iterator[set[Any]]:
    """Yield the nodes of each label, in the order of their first nodes."""
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    nodes = [G.nodes[position] for position in order.tolist()]
    for begin, end in zip([0, *ends.tolist()], [*ends.tolist(), len(nodes)], strict=True):
        yield set(nodes[begin:end])


def _is_one(G: ConvertedGraph, labels: NDArray[np.int64]) -> bool:
    return bool((labels == labels[0]).all())


def _number(labels: NDArray[np.int64]) -> int:
    return int((labels == np.arange(len(labels))).sum())


@serves(not_for="directed")
def connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    if len(G):
        yield from sets_of(G, weak_labels(G))


@serves(not_for="directed")
def number_connected_components(G: ConvertedGraph) -> int:
    return _number(weak_labels(G)) if len(G) else 0


@serves(not_for="directed")
def is_connected(G: ConvertedGraph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return _is_one(G, weak_labels(G))


@serves(not_for="directed")
def node_connected_component(G: ConvertedGraph, n: Any) -> set[Any]:
    position = G.position(n)
    labels = weak_labels(G)
    return set(G.nodes_where(labels == labels[position]))


@serves(not_for="undirected")
def weakly_connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    if len(G):
        yield from sets_of(G, weak_labels(G))


@serves(not_for="undirected")
def number_weakly_connected_components(G: ConvertedGraph) -> int:
    return _number(weak_labels(G)) if len(G) else 0


@serves(not_for="undirected")
def is_weakly_connected(G: ConvertedGraph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return _is_one(G, weak_labels(G))


@serves(not_for="undirected")
def strongly_connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    if len(G):
        yield from sets_of(G, strong_labels(G))


@serves(not_for="undirected")
def number_strongly_connected_components(G: ConvertedGraph) -> int:
    return _number(strong_labels(G)) if len(G) else 0


@serves(not_for="undirected")
def is_strongly_connected(G: ConvertedGraph) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return _is_one(G, strong_labels(G))


def _attracting(G: ConvertedGraph) -> NDArray[np.bool_]:
    """Return whether each node's component has no edge out of it, [nodes]."""
    labels = strong_labels(G)
    leaves = labels[G.rows] != labels[G.targets]
    return ~np.isin(labels, labels[G.rows[leaves]])


@serves(not_for="undirected")
def attracting_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    if len(G):
        stays = _attracting(G)
        labels = np.where(stays, strong_labels(G), -1)
        skipped = 0 if stays.all() else 1
        yield from list(sets_of(G, labels))[skipped:]


@serves(not_for="undirected")
def number_attracting_components(G: ConvertedGraph) -> int:
    return len(np.unique(strong_labels(G)[_attracting(G)])) if len(G) else 0


@serves()
def isolates(G: ConvertedGraph) -> Iterator[Any]:
    yield from G.nodes_where(G.degrees == 0)


@serves()
def number_of_isolates(G: ConvertedGraph) -> int:
    return int((G.degrees == 0).sum())
