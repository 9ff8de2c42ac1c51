"""networkx.algorithms.link_analysis: PageRank, hubs and authorities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

from sigps.networkx.converted import ConvertedGraph, run
from sigps.networkx.programs import DampedSums, HubsAndAuthorities
from sigps.networkx.serving import serves

__all__: list[str] = []


@serves(weight="weight")
def pagerank(
    G: ConvertedGraph,
    alpha: float = 0.85,
    personalization: Mapping[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: str | None = "weight",
    dangling: Mapping[Any, float] | None = None,
) -> dict[Any, float]:
    n = len(G)
    if n == 0:
        return {}
    weights = G.lengths(weight)
    start = np.full(n, 1.0 / n) if nstart is None else _shares(G, nstart)
    personal = np.full(n, 1.0 / n)
    if personalization is not None:
        if not any(personalization.get(node, 0) for node in G):
            raise ZeroDivisionError
        personal = _shares(G, personalization)
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    initial = {
        "x": start,
        "base": (1.0 - alpha) * personal,
        "dangling": personal if dangling is None else _shares(G, dangling),
        "total": np.bincount(G.rows, weights, minlength=n),
    }
    program = DampedSums(damping=float(alpha), iterations=max_iter, tolerance=float(n * tol))
    result = run(program, G.weighted(weight), initial=initial)
    if result.aggregators["change"] >= n * tol:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return G.by_node(result["x"])


@serves(
    weight=None,
    obstacle=lambda given: (
        None if given["normalized"] else "normalized=False has the sign that ARPACK happens to find"
    ),
)
def hits(
    G: ConvertedGraph,
    max_iter: int = 100,
    tol: float = 1.0e-8,
    nstart: Mapping[Any, float] | None = None,
    normalized: bool = True,
) -> tuple[dict[Any, float], dict[Any, float]]:
    if len(G) == 0:
        return {}, {}
    weights = G.lengths("weight")
    if len(G) < 2 or not weights.any():
        raise NotImplementedError("sigps finds no hubs without edges")
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    # NetworkX's singular vectors are as exact as floats are; rounds of a power iteration are cheaper than ARPACK's.
    program = HubsAndAuthorities(rounds=100 * max_iter, tolerance=min(tol, 1e-8) * 1e-4)
    result = run(program, G.weighted("weight"))
    if result.supersteps > 2 * 100 * max_iter:
        raise NotImplementedError(f"hubs have not settled after {100 * max_iter} rounds of sigps")
    return G.by_node(result["scaled"]), G.by_node(result["authority"])


def _shares(G: ConvertedGraph, given: Mapping[Any, float]) -> Any:
    values = G.values(given)
    return values / values.sum()
