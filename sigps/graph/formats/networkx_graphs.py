"""Edges and attributes of NetworkX graphs in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, compress, repeat
from operator import contains
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import edge_chunks, own_share
from sigps.graph.building.vertex_columns import as_vertex_column
from sigps.graph.formats.edge_input import EdgeInput
from sigps.graph.user_arrays import as_ids, as_numbers
from sigps.group import Group, own_range

if TYPE_CHECKING:
    import networkx

__all__ = ["read_networkx"]


def read_networkx(
    source: networkx.Graph[Any],
    weight: str | None,
    columns: Mapping[str, str],
    vertex_columns: Mapping[str, str],
    group: Group,
    by_position: bool = False,
) -> EdgeInput:
    """Return the edges of a NetworkX graph that all ranks have; see `Graph.from_networkx`."""
    edges = _WalkedEdges(source) if _is_plain(source) else _ListedEdges(source)
    values = {name: edges.attribute(key) for name, key in columns.items()}
    if weight is not None and any(map(contains, edges.data(), repeat(weight))):
        values = {"weight": edges.attribute(weight, default=1), **values}
    oids = np.arange(len(source)) if by_position else _oids(source)
    chunks = edge_chunks(oids[edges.sources], oids[edges.targets], values, group)
    result = EdgeInput("networkx", source.is_directed(), chunks, vertices=own_share(oids, group))
    result.num_vertices = len(source) if by_position else None
    own = own_range(len(source), group)
    for name, key in vertex_columns.items():
        result.vertex_columns[name] = _node_attributes(source, key)[own.start : own.stop]
    return result


def _oids(source: networkx.Graph[Any]) -> NDArray[Any]:
    try:
        return as_ids(np.fromiter(source.nodes, dtype=object, count=len(source)), "nodes")
    except GraphError as error:
        hint = "by_position=True takes nodes of every kind, by their positions"
        raise GraphError(f"{error}; {hint}") from error


def _is_plain(source: Any) -> bool:
    """Tell whether the dictionaries of a graph are its edges: views and subclasses may show others."""
    import networkx as nx

    kinds = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
    return type(source) in kinds and type(source._adj) is dict


class _Edges:
    """The edges of a graph in the order of `source.edges`, by the positions of their ends among its nodes."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]

    def data(self) -> Iterable[dict[Any, Any]]:
        """Return the attributes of each edge."""
        raise NotImplementedError

    def ends(self) -> list[tuple[Any, Any]]:
        """Return the nodes at the ends of each edge."""
        raise NotImplementedError

    def attribute(self, key: str, default: float | None = None) -> NDArray[Any]:
        """Return one attribute of every edge."""
        values = [data.get(key, default) for data in self.data()]
        if None in values:
            at = values.index(None)
            raise GraphError(f"edge {self.ends()[at]} has no attribute {key!r}; every edge needs it")
        return as_numbers(values, f"edges' {key}")


class _WalkedEdges(_Edges):
    """Edges read from the dictionaries of a graph: 0.3 to 0.9 s for a million, where `source.edges` takes 4.5."""

    def __init__(self, source: Any) -> None:
        self._source, self._adjacency = source, source._adj
        degrees = np.fromiter(map(len, self._adjacency.values()), np.int64, len(source))
        total = int(degrees.sum())
        sources = np.repeat(np.arange(len(source)), degrees)
        targets = np.fromiter(self._positions(), np.int64, total)
        # An undirected edge stands in the dictionaries of both ends; `source.edges` has it at the first.
        self._kept = np.ones(total, dtype=bool) if source.is_directed() else sources <= targets
        sources, targets = sources[self._kept], targets[self._kept]
        if source.is_multigraph():
            times = np.fromiter(map(len, self._between()), np.int64, sources.size)
            sources, targets = np.repeat(sources, times), np.repeat(targets, times)
        self.sources, self.targets = sources, targets

    def data(self) -> Iterable[dict[Any, Any]]:
        between = self._between()
        return chain.from_iterable(d.values() for d in between) if self._source.is_multigraph() else between

    def ends(self) -> list[tuple[Any, Any]]:
        nodes = list(self._source)
        return [
            (nodes[u], nodes[v]) for u, v in zip(self.sources.tolist(), self.targets.tolist(), strict=True)
        ]

    def _positions(self) -> Iterator[int]:
        """Yield the position of each neighbour; itself where nodes are their own positions."""
        neighbours = chain.from_iterable(self._adjacency.values())
        nodes = list(self._source)
        if nodes == list(range(len(nodes))):
            return neighbours
        return map({node: position for position, node in enumerate(nodes)}.__getitem__, neighbours)

    def _between(self) -> Iterator[Any]:
        """Yield what stands between the two ends: attributes, or a dictionary of the parallel edges'."""
        found = chain.from_iterable(neighbours.values() for neighbours in self._adjacency.values())
        return found if self._kept.all() else compress(found, self._kept.tolist())


class _ListedEdges(_Edges):
    """Edges of any graph, of which only the methods are known."""

    def __init__(self, source: networkx.Graph[Any]) -> None:
        self._source = source
        places = {node: place for place, node in enumerate(source.nodes)}
        pairs = np.array([[places[u], places[v]] for u, v in self.ends()], dtype=np.int64).reshape(-1, 2)
        self.sources, self.targets = pairs[:, 0], pairs[:, 1]

    def data(self) -> Iterable[dict[Any, Any]]:
        return (data for *_, data in self._source.edges(data=True))

    def ends(self) -> list[tuple[Any, Any]]:
        return list(self._source.edges())


def _node_attributes(source: networkx.Graph[Any], key: str) -> NDArray[Any]:
    """Return one attribute of every node."""
    values = [value for _, value in source.nodes(data=key)]
    if any(value is None for value in values):
        at = next(place for place, value in enumerate(values) if value is None)
        raise GraphError(f"node {list(source.nodes)[at]!r} has no attribute {key!r}; every node needs it")
    return as_vertex_column(values, key)
