"""Core numbers, and the parts of a graph that are found by them, by triangles and around a node."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx
import numpy as np

from sigps.apps import BiTriDN, KCore
from sigps.networkx.converted import ConvertedGraph, run
from sigps.networkx.searches import distances_from
from sigps.networkx.serving import serves

__all__: list[str] = []


def _refuses(given: dict[str, Any]) -> str | None:
    is_directed = given["G"].is_directed()
    return "edges in both directions are two in cores of directed graphs" if is_directed else None


def _no_loops(G: ConvertedGraph) -> None:
    if G.num_loops:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; consider G.remove_edges_from(nx.selfloop_edges(G))."
        )


def _core_numbers(G: ConvertedGraph) -> dict[Any, int]:
    _no_loops(G)
    return G.by_node(run(KCore(), G.graph)["core"]) if len(G) else {}


def _induced(G: ConvertedGraph, nodes: Iterable[Any]) -> Any:
    """Return the NetworkX graph of some nodes and all edges among them, with their attributes."""
    return G.source.subgraph(nodes).copy()


@serves(multigraph=False, obstacle=_refuses)
def core_number(G: ConvertedGraph) -> dict[Any, int]:
    return _core_numbers(G)


Cores = Mapping[Any, int] | None


@serves(multigraph=False, obstacle=_refuses)
def k_core(G: ConvertedGraph, k: int | None = None, core_number: Cores = None) -> Any:
    cores = _core_numbers(G) if core_number is None else core_number
    least = max(cores.values()) if k is None else k
    return _induced(G, [node for node, core in cores.items() if core >= least])


@serves(multigraph=False, obstacle=_refuses)
def k_shell(G: ConvertedGraph, k: int | None = None, core_number: Cores = None) -> Any:
    cores = _core_numbers(G) if core_number is None else core_number
    wanted = max(cores.values()) if k is None else k
    return _induced(G, [node for node, core in cores.items() if core == wanted])


@serves(multigraph=False, obstacle=_refuses)
def k_crust(G: ConvertedGraph, k: int | None = None, core_number: Cores = None) -> Any:
    cores = _core_numbers(G) if core_number is None else core_number
    most = max(cores.values()) - 1 if k is None else k
    return _induced(G, [node for node, core in cores.items() if core <= most])


@serves(multigraph=False, obstacle=_refuses)
def k_corona(G: ConvertedGraph, k: int, core_number: Cores = None) -> Any:
    cores = _core_numbers(G) if core_number is None else core_number
    of_nodes = np.array([cores[node] for node in G], dtype=np.int64)
    inside = np.bincount(G.rows[of_nodes[G.targets] >= k], minlength=len(G))
    return _induced(G, G.nodes_where((of_nodes == k) & (inside == k)))


@serves(multigraph=False, not_for="directed")
def k_truss(G: ConvertedGraph, k: int) -> Any:
    _no_loops(G)
    found = G.source.copy()
    if G.num_edges:
        edges = run(BiTriDN(), G.graph).edges
        goes = edges["bound"] < k - 2
        ends = zip(edges.sources[goes].tolist(), edges.targets[goes].tolist(), strict=True)
        found.remove_edges_from([(G.nodes[a], G.nodes[b]) for a, b in ends])
    found.remove_nodes_from([node for node, others in found._adj.items() if not others])
    return found


def _has_other_edges(given: dict[str, Any]) -> str | None:
    return "undirected=True of a directed graph" if given["undirected"] and given["G"].is_directed() else None


@serves(weight="distance", obstacle=_has_other_edges)
def ego_graph(
    G: ConvertedGraph,
    n: Any,
    radius: float = 1,
    center: bool = True,
    undirected: bool = False,
    distance: str | None = None,
) -> Any:
    if n not in G:
        raise nx.NodeNotFound(f"Source {n} is not in G")
    distances, is_reached = distances_from(G, G.position(n), distance)
    # A search by edges goes to whole levels, so that half an edge is one.
    most = math.ceil(radius) if distance is None and radius is not None and math.isfinite(radius) else radius
    inside = is_reached if most is None else is_reached & (distances <= most)
    return _induced(G, [node for node in G.nodes_where(inside) if center or node != n])
