"""Greedy colours, matchings and independent sets: what going through nodes or edges in an order gives.

Colours of a strategy with a given order, and the matching, are NetworkX's. An independent set is maximal, as NetworkX
promises, and the same for the same seed, but another one: NetworkX draws each node from those that are left.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

import sigps
from sigps.apps import MaximalIndependentSet
from sigps.networkx.components import weak_labels
from sigps.networkx.converted import ConvertedGraph, run
from sigps.networkx.neighbour_order import edges_in_order
from sigps.networkx.programs import OrderedColours, OrderedMatching
from sigps.networkx.searches import levels_from
from sigps.networkx.serving import serves

__all__: list[str] = []

_STRATEGIES = {"largest_first", "random_sequential"}


def _refuses_strategy(given: dict[str, Any]) -> str | None:
    if given["G"].is_directed():
        return "a node of a directed graph looks at its successors only"
    if given["interchange"]:
        return "interchange=True"
    strategy = given["strategy"]
    return None if isinstance(strategy, str) and strategy in _STRATEGIES else f"strategy={strategy!r}"


@serves(obstacle=_refuses_strategy)
def greedy_color(
    G: ConvertedGraph, strategy: str = "largest_first", interchange: bool = False
) -> dict[Any, int]:
    n = len(G)
    if n == 0:
        return {}
    if strategy == "largest_first":
        order = np.argsort(-G.degrees, kind="stable")
    else:
        positions = list(range(n))
        nx.utils.create_py_random_state(None).shuffle(positions)
        order = np.array(positions)
    places = np.empty(n, np.int64)
    places[order] = np.arange(n)
    colours = run(OrderedColours(), G.graph, initial={"place": places})["colour"]
    return {G.nodes[at]: colour for at, colour in zip(order.tolist(), colours[order].tolist(), strict=True)}


@serves(multigraph=False, not_for="directed")
def maximal_matching(G: ConvertedGraph) -> set[tuple[Any, Any]]:
    nodes, others = edges_in_order(G)
    no_loops = nodes != others
    nodes, others = nodes[no_loops], others[no_loops]
    if len(nodes) == 0:
        return set()
    places = np.arange(len(nodes))
    ordered = sigps.Graph.from_edges(nodes, others, places, directed=False, vertices=np.arange(len(G)))
    mates = np.ma.filled(run(OrderedMatching(), ordered)["mate"], -1)
    kept = mates[nodes] == others
    ends = zip(nodes[kept].tolist(), others[kept].tolist(), strict=True)
    return {(G.nodes[a], G.nodes[b]) for a, b in ends}


def _has_loops_or_nodes(given: dict[str, Any]) -> str | None:
    return None if given["nodes"] is None else "nodes= that are to be in the set"


@serves(not_for="directed", obstacle=_has_loops_or_nodes)
def maximal_independent_set(G: ConvertedGraph, nodes: Any = None, seed: Any = None) -> list[Any]:
    drawn = nx.utils.create_py_random_state(seed)
    if len(G) == 0:
        raise IndexError("Cannot choose from an empty sequence")
    if G.num_loops:
        raise NotImplementedError("sigps puts a node with a loop in no set, and NetworkX may")
    program = MaximalIndependentSet(seed=drawn.randrange(1 << 31))
    return G.nodes_where(run(program, G.graph)["chosen"])


@serves(obstacle=lambda given: "a directed graph" if given["G"].is_directed() else None)
def is_bipartite(G: ConvertedGraph) -> bool:
    if len(G) == 0:
        return True
    labels = weak_labels(G)
    sides = levels_from(G, np.flatnonzero(labels == np.arange(len(G))).tolist()) % 2
    return not bool((sides[G.rows] == sides[G.targets]).any())
