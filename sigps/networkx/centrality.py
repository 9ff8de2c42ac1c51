"""networkx.algorithms.centrality: degrees, distances, shortest paths, and eigenvectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import sigps
from sigps.apps import Dependencies
from sigps.networkx.brandes import dependencies_from_each
from sigps.networkx.converted import ConvertedGraph, batches, run, settings
from sigps.networkx.neighbour_order import edges_in_order
from sigps.networkx.programs import DampedSums, NormedSums
from sigps.networkx.searches import distances_from, from_each, sums_of_hops
from sigps.networkx.serving import serves

__all__: list[str] = []


# Degrees


def _share_of_others(G: ConvertedGraph, degrees: NDArray[np.int64]) -> dict[Any, float]:
    return dict.fromkeys(G, 1) if len(G) <= 1 else G.by_node(degrees * (1.0 / (len(G) - 1.0)))


@serves()
def degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    return _share_of_others(G, G.degrees)


@serves(not_for="undirected")
def in_degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    return _share_of_others(G, np.bincount(G.targets, minlength=len(G)))


@serves(not_for="undirected")
def out_degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    return _share_of_others(G, G.graph.out_degrees())


# Distances


@serves(weight="distance")
def closeness_centrality(
    G: ConvertedGraph, u: Any = None, distance: str | None = None, wf_improved: bool = True
) -> Any:
    if u is not None:
        if u not in G:
            raise nx.NodeNotFound(f"Source {u} is not in G")
        found, is_reached = distances_from(G, G.position(u), distance, reverse=True)
        total, reached = found[is_reached].sum(keepdims=True), is_reached.sum(keepdims=True)
        return float(_closeness(len(G), total, reached, wf_improved)[0])
    total, reached = _inward_distances(G, distance)
    return G.by_node(_closeness(len(G), total, reached, wf_improved))


def _closeness(
    n: int, total: NDArray[Any], reached: NDArray[np.int64], wf_improved: bool
) -> NDArray[np.float64]:
    """Return the reciprocal of the mean distance from all that reach a node, scaled by their share of the others."""
    others = reached - 1.0
    near: NDArray[np.float64] = np.divide(others, total, out=np.zeros(len(total)), where=total > 0)
    if wf_improved and n > 1:
        near *= others / (n - 1)
    return near


def _inward_distances(G: ConvertedGraph, distance: str | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sum of the distances from all that reach each node, and how many these are, [nodes] each."""
    n = len(G)
    total, reached = np.zeros(n, np.int64 if distance is None else np.float64), np.zeros(n, np.int64)
    if distance is not None:
        for _, found, is_reached in from_each(G, range(n), distance):
            total += np.where(is_reached, found, 0)
            reached += is_reached
        return total, reached
    sums = sums_of_hops(G, distance="sum", reached="sum")
    return sums["distance"], sums["reached"]


@serves(weight="distance")
def harmonic_centrality(
    G: ConvertedGraph, nbunch: Any = None, distance: str | None = None, sources: Any = None
) -> dict[Any, float]:
    nodes = list(dict.fromkeys(G.source.nbunch_iter(nbunch)))
    starts = list(dict.fromkeys(G.source.nbunch_iter(sources)))
    transposed = len(nodes) < len(starts)
    ends = np.array(G.positions(starts if transposed else nodes), dtype=np.int64)
    near = np.zeros(len(G))
    for start, found, is_reached in from_each(
        G, G.positions(nodes if transposed else starts), distance, reverse=transposed
    ):
        inverse = np.divide(1.0, found, out=np.zeros(len(G)), where=is_reached & (found != 0))
        if transposed:
            near[start] = inverse[ends].sum()
        else:
            near[ends] += inverse[ends]
    return {node: float(near[G.position(node)]) for node in nodes}


# Shortest paths


def _sampled(G: ConvertedGraph, k: int | None, seed: Any) -> Sequence[int]:
    """Return the positions of the nodes that NetworkX draws; of all for None."""
    if k is None:
        return range(len(G))
    return G.positions(nx.utils.create_py_random_state(seed).sample(G.nodes, k))


@serves(weight="weight", multigraph=False)
def betweenness_centrality(
    G: ConvertedGraph,
    k: int | None = None,
    normalized: bool = True,
    weight: str | None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    n = len(G)
    sources = _sampled(G, None if k == n else k, seed)
    between = np.zeros(n)
    if weight is None and not endpoints and not G.is_directed():
        for some in batches(G.graph, sources):
            options: dict[str, Any] = {"reduce": {"dependency": "sum"}, "device": settings().device}
            between += sigps.run_many(Dependencies, G.graph, source=list(some), **options).reduced[
                "dependency"
            ]
    else:
        for found in dependencies_from_each(G, sources, weight):
            between += found.of_nodes
            between[found.source] -= found.of_nodes[found.source]
            if endpoints:
                between += found.is_reached
                between[found.source] += found.is_reached.sum() - 2
    is_source = None if len(sources) == n or endpoints else np.isin(np.arange(n), sources)
    return G.by_node(between * _scale(G, len(sources), normalized, endpoints, is_source))


@serves(weight="weight", multigraph=False)
def edge_betweenness_centrality(
    G: ConvertedGraph,
    k: int | None = None,
    normalized: bool = True,
    weight: str | None = None,
    seed: Any = None,
) -> dict[Any, float]:
    n = len(G)
    sources = _sampled(G, k, seed)
    scale = _scale(G, len(sources), normalized, True, None)
    nodes, others = edges_in_order(G)
    if weight is None and sources:
        options: dict[str, Any] = {"normalised": normalized, "device": settings().device}
        found = sigps.apps.edge_betweenness(G.graph, sources=sources, **options).edges
        keys, values = found.sources * n + found.targets, found["centrality"]
    else:
        keys, values = G.rows * n + G.targets, np.zeros(len(G.rows))
        for one in dependencies_from_each(G, sources, weight):
            values[one.edges] += one.of_edges * scale
        if not G.is_directed():  # both directions of an edge count
            values += values[np.searchsorted(keys, G.targets * n + G.rows)]
    in_order = values[np.searchsorted(keys, nodes * n + others)].tolist()
    ends = zip(nodes.tolist(), others.tolist(), strict=True)
    return {(G.nodes[a], G.nodes[b]): value for (a, b), value in zip(ends, in_order, strict=True)}


def _scale(
    G: ConvertedGraph,
    num_sources: int,
    normalized: bool,
    endpoints: bool,
    is_source: NDArray[np.bool_] | None,
) -> Any:
    """Return what sums over some sources are multiplied by, so that they estimate those over all.

    Normalised, these are shares of the pairs of nodes that a path may join; else each pair of an undirected graph
    counts once. Of paths that end elsewhere a source is between those from the other sources only (`is_source`).
    """
    ends = len(G) if endpoints else len(G) - 1  # nodes at which paths through a node may begin
    if ends < 2:
        return 1.0
    if num_sources == 0:
        raise ZeroDivisionError("nothing is known of paths from no source")
    pairs = ends - 1 if normalized else (1.0 if G.is_directed() else 2.0) / ends
    if is_source is None:
        begins = num_sources if endpoints or num_sources < len(G) else ends
        return 1.0 / (begins * pairs)
    others = np.where(is_source, num_sources - 1.0, float(num_sources))
    return np.divide(1.0, others * pairs, out=np.full(len(G), math.nan), where=others > 0)


# Eigenvectors


@serves(weight="weight", multigraph=False)
def katz_centrality(
    G: ConvertedGraph,
    alpha: float = 0.1,
    beta: Any = 1.0,
    max_iter: int = 1000,
    tol: float = 1.0e-6,
    nstart: Mapping[Any, float] | None = None,
    normalized: bool = True,
    weight: str | None = None,
) -> dict[Any, float]:
    n = len(G)
    if n == 0:
        return {}
    try:
        base = np.full(n, float(beta))
    except (TypeError, ValueError, AttributeError) as error:
        if set(beta) != set(G):
            raise nx.NetworkXError("beta dictionary must have a value for every node") from error
        base = G.values(beta)
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    program = DampedSums(damping=float(alpha), iterations=max_iter, tolerance=float(n * tol))
    initial = {"x": _start(G, nstart, 0.0), "base": base}
    result = run(program, G.weighted(weight), initial=initial)
    if not result.aggregators["change"] < n * tol:
        raise nx.PowerIterationFailedConvergence(max_iter)
    norm = math.hypot(*result["x"].tolist()) if normalized else 1.0
    return G.by_node(result["x"] / (norm or 1.0))


@serves(weight="weight", multigraph=False)
def eigenvector_centrality(
    G: ConvertedGraph,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: str | None = None,
) -> dict[Any, float]:
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    start = _start(G, nstart, 1.0)
    if not start.any():
        raise nx.NetworkXError("initial vector cannot have all zero values")
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    program = NormedSums(iterations=max_iter, tolerance=float(n * tol))
    result = run(program, G.weighted(weight), initial={"x": start / start.sum()})
    if not result.aggregators["change"] < n * tol:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return G.by_node(result["x"])


def _start(G: ConvertedGraph, nstart: Mapping[Any, float] | None, default: float) -> NDArray[np.float64]:
    if nstart is None:
        return np.full(len(G), default)
    _check_all(G, nstart)
    return G.values(nstart)


def _check_all(G: ConvertedGraph, given: Iterable[Any]) -> None:
    if set(given) != set(G):
        raise NotImplementedError("nstart= of sigps has a value for every node")
