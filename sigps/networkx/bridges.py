"""networkx.algorithms.bridges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from sigps.apps import Bridges
from sigps.networkx.converted import ConvertedGraph, run
from sigps.networkx.neighbour_order import edges_in_order
from sigps.networkx.serving import serves

__all__: list[str] = []


@serves(not_for="directed", multigraph=False)
def bridges(G: ConvertedGraph, root: Any = None) -> Iterator[tuple[Any, Any]]:
    if root is not None and root not in G:
        raise nx.NodeNotFound(f"Root node {root} is not in graph")
    if len(G) == 0:
        return
    found = G.graph.derived("networkx, bridges", lambda: run(Bridges(), G.graph))
    parents = np.where(found["is_bridge"], np.ma.filled(found["parent"], -1), -1)
    nodes, others = edges_in_order(G)
    cut = (parents[nodes] == others) | (parents[others] == nodes)
    if root is not None:
        cut &= found["root"][nodes] == found["root"][G.position(root)]
    for u, v in zip(nodes[cut].tolist(), others[cut].tolist(), strict=True):
        yield G.nodes[u], G.nodes[v]


@serves(not_for="directed", multigraph=False)
def has_bridges(G: ConvertedGraph, root: Any = None) -> bool:
    return next(bridges(G, root), None) is not None
