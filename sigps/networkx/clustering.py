"""networkx.algorithms.cluster: triangles, and how many of the possible ones there are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.apps import Triangles
from sigps.networkx.converted import ConvertedGraph, run
from sigps.networkx.serving import serves

__all__: list[str] = []


def _refuses(given: dict[str, Any]) -> str | None:
    if given["G"].is_directed():
        return "directed triangles"
    return None if given.get("weight") is None else "weighted triangles"


def _triangles(G: ConvertedGraph) -> NDArray[np.int64]:
    found: NDArray[np.int64] = run(Triangles(), G.graph)["triangles"]
    return found


def _pairs(G: ConvertedGraph) -> NDArray[np.int64]:
    """Return how many pairs of neighbours, in order, each node has; a loop makes no neighbour."""
    degrees = np.bincount(G.rows[G.rows != G.targets], minlength=len(G))
    return degrees * (degrees - 1)


def _coefficients(G: ConvertedGraph) -> NDArray[np.float64]:
    pairs = _pairs(G)
    found: NDArray[np.float64] = np.divide(2.0 * _triangles(G), pairs, out=np.zeros(len(G)), where=pairs > 0)
    return found


def _of(G: ConvertedGraph, values: NDArray[Any], nodes: Any) -> Any:
    """Return values by nodes: of all for None, else of some, or of one alone."""
    if nodes is None:
        return G.by_node(values)
    if nodes in G:
        return values[G.position(nodes)].item()
    return {node: values[G.position(node)].item() for node in G.source.nbunch_iter(nodes)}


@serves(multigraph=False, not_for="directed")
def triangles(G: ConvertedGraph, nodes: Any = None) -> Any:
    return _of(G, _triangles(G), nodes) if len(G) else {}


@serves(multigraph=False, weight="weight", obstacle=_refuses)
def clustering(G: ConvertedGraph, nodes: Any = None, weight: str | None = None) -> Any:
    return _of(G, _coefficients(G), nodes) if len(G) else {}


@serves(multigraph=False, weight="weight", obstacle=_refuses)
def average_clustering(
    G: ConvertedGraph, nodes: Any = None, weight: str | None = None, count_zeros: bool = True
) -> float:
    found = _of(G, _coefficients(G), nodes).values() if len(G) else []
    counted = [value for value in found if count_zeros or value != 0]
    return float(sum(counted) / len(counted))


@serves(multigraph=False, obstacle=_refuses)
def transitivity(G: ConvertedGraph) -> float:
    if len(G) == 0:
        return 0
    corners = 2 * int(_triangles(G).sum())
    return corners / int(_pairs(G).sum()) if corners else 0
