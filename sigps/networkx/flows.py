"""networkx.algorithms.flow: maximum flows and minimum cuts.

Of several maximum flows NetworkX may return another one. The cut is the same: both take the one with the fewest nodes
on the target's side.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import sigps
from sigps.apps import BFS
from sigps.apps import maximum_flow as flow_of_sigps
from sigps.networkx.converted import ConvertedGraph, run, settings
from sigps.networkx.serving import serves

__all__: list[str] = []


def _obstacle(given: dict[str, Any]) -> str | None:
    return None if given["flow_func"] is None else "flow_func= names another algorithm"


def _capacities(values: list[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return what edges carry, as whole numbers where all are, and which carry any amount; 0 for what is below.

    Raises:
        NotImplementedError: If one is no number, or they are too large, so that NetworkX takes over.
    """
    try:
        unbounded = np.array([value == math.inf for value in values], dtype=bool)
        finite = [0 if value == math.inf else max(0, value) for value in values]
        if all(isinstance(value, Integral) for value in finite):
            found = np.array([int(value) for value in finite], dtype=np.int64)
            enough: Any = sum(map(int, finite)) + 1
        elif all(isinstance(value, Integral | float | np.floating) for value in finite):
            found = np.array(finite, dtype=np.float64)
            enough = 2.0 * math.fsum(found) or 1.0
        else:
            raise TypeError("a capacity is a number of another kind than int or float")
        found[unbounded] = enough  # more than any finite cut has, so that none of these is in a minimum cut
    except (TypeError, ValueError, OverflowError) as error:
        raise NotImplementedError(f"sigps cannot take these capacities: {error}") from error
    return found, unbounded


def _flow(
    G: ConvertedGraph, s: Any, t: Any, capacity: str, flow_func: Any, options: dict[str, Any]
) -> sigps.Result:
    """Return a maximum flow, whose vertices are the positions of nodes."""
    if options:
        raise nx.NetworkXError(
            "You have to explicitly set a flow_func if you need to pass parameters via kwargs."
        )
    for node in (s, t):
        if node not in G:
            raise nx.NetworkXError(f"node {node!s} not in graph")
    if s == t:
        raise nx.NetworkXError("source and sink are the same node")
    edges = list(G.source.edges(data=capacity, default=math.inf))
    tails, heads = (np.array(G.positions(edge[end] for edge in edges), dtype=np.int64) for end in (0, 1))
    capacities, unbounded = _capacities([edge[2] for edge in edges])
    first, last = G.position(s), G.position(t)
    kept: dict[str, Any] = {"vertices": range(len(G)), "directed": G.is_directed()}
    if unbounded.any():
        paths = sigps.Graph.from_edges(tails[unbounded], heads[unbounded], **kept)
        if run(BFS(source=first), paths)["level"][last] >= 0:
            raise nx.NetworkXUnbounded("Infinite capacity path, flow unbounded above.")
    graph = sigps.Graph.from_edges(tails, heads, capacities, **kept)
    try:
        found: sigps.Result = flow_of_sigps(graph, first, last, device=settings().device)
    except sigps.GraphError as error:
        raise NotImplementedError(f"sigps cannot take these capacities: {error}") from error
    return found


@serves(multigraph=False, obstacle=_obstacle)
def maximum_flow(
    flowG: ConvertedGraph, _s: Any, _t: Any, capacity: str = "capacity", flow_func: Any = None, **kwargs: Any
) -> tuple[Any, dict[Any, dict[Any, Any]]]:
    found = _flow(flowG, _s, _t, capacity, flow_func, kwargs)
    flows = {node: dict.fromkeys(near, 0) for node, near in flowG.source.adjacency()}
    nodes, edges = flowG.nodes, found.edges
    moved = np.flatnonzero(edges["flow"])
    columns = (part[moved].tolist() for part in (edges.sources, edges.targets, edges["flow"]))
    for tail, head, flow in zip(*columns, strict=True):
        if flow > 0:
            flows[nodes[tail]][nodes[head]] = flow
        else:
            flows[nodes[head]][nodes[tail]] = -flow
    return found.aggregators["flow"], flows


@serves(multigraph=False, obstacle=_obstacle)
def maximum_flow_value(
    flowG: ConvertedGraph, _s: Any, _t: Any, capacity: str = "capacity", flow_func: Any = None, **kwargs: Any
) -> Any:
    return _flow(flowG, _s, _t, capacity, flow_func, kwargs).aggregators["flow"]


@serves(multigraph=False, obstacle=_obstacle)
def minimum_cut(
    flowG: ConvertedGraph, _s: Any, _t: Any, capacity: str = "capacity", flow_func: Any = None, **kwargs: Any
) -> tuple[Any, tuple[set[Any], set[Any]]]:
    found = _flow(flowG, _s, _t, capacity, flow_func, kwargs)
    sides = found["is_source_side"]
    return found.aggregators["flow"], (set(flowG.nodes_where(sides)), set(flowG.nodes_where(~sides)))


@serves(multigraph=False, obstacle=_obstacle)
def minimum_cut_value(
    flowG: ConvertedGraph, _s: Any, _t: Any, capacity: str = "capacity", flow_func: Any = None, **kwargs: Any
) -> Any:
    return _flow(flowG, _s, _t, capacity, flow_func, kwargs).aggregators["flow"]
