"""A NetworkX graph as programs run on it: vertices are the positions of its nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import sigps

__all__ = ["ConvertedGraph", "batches", "converted", "known_conversion", "run", "settings"]

Weights = NDArray[Any]


class ConvertedGraph:
    """The arrays of a NetworkX graph, its nodes, and the graph itself, whose attributes results have.

    Attributes:
        source: The NetworkX graph.
        nodes: Its nodes, in their order: vertex i is nodes[i].
    """

    __networkx_backend__: ClassVar[str] = "sigps"

    def __init__(self, source: Any) -> None:
        self.source = source
        self.nodes: list[Any] = list(source)
        self._by_weight: dict[str | None, sigps.Graph] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        try:
            return node in self._positions
        except TypeError:  # what cannot be hashed is no node
            return False

    def __repr__(self) -> str:
        return f"<ConvertedGraph of {self.source}>"

    def is_directed(self) -> bool:
        """Tell whether edges have a direction."""
        return bool(self.source.is_directed())

    def is_multigraph(self) -> bool:
        """Tell whether there may be parallel edges."""
        return bool(self.source.is_multigraph())

    @property
    def graph(self) -> sigps.Graph:
        """The graph; with weights only if a conversion with weights was there first."""
        return next(iter(self._by_weight.values())) if self._by_weight else self.weighted(None)

    def weighted(self, weight: str | None) -> sigps.Graph:
        """Return the graph whose weights are that attribute, 1 for edges without it; None: without weights.

        Raises:
            NotImplementedError: If a weight is no finite number, so that NetworkX takes over.
        """
        if weight not in self._by_weight:
            try:
                made = sigps.Graph.from_networkx(self.source, weight=weight, by_position=True)
            except sigps.GraphError as error:
                raise NotImplementedError(f"sigps cannot convert the graph: {error}") from error
            self._by_weight[weight] = made
        return self._by_weight[weight]

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {node: position for position, node in enumerate(self.nodes)}

    def position(self, node: Hashable) -> int:
        """Return a node's position; KeyError if there is none."""
        return self._positions[node]

    def positions(self, nodes: Iterable[Any]) -> list[int]:
        """Return the positions of nodes; KeyError if there is none."""
        return [self._positions[node] for node in nodes]

    def values(self, given: Mapping[Any, Any], default: float = 0.0) -> NDArray[np.float64]:
        """Return an array of values by nodes, in the order of nodes."""
        return np.array([given.get(node, default) for node in self.nodes], dtype=float)

    def by_node(self, values: NDArray[Any] | Sequence[Any]) -> dict[Any, Any]:
        """Return values by their nodes, as plain Python numbers."""
        found = values.tolist() if isinstance(values, np.ndarray) else values
        return dict(zip(self.nodes, found, strict=True))

    def nodes_where(self, mask: NDArray[np.bool_]) -> list[Any]:
        """Return the nodes of which that is true, in their order."""
        return [self.nodes[position] for position in np.flatnonzero(mask).tolist()]

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The source of each stored edge of `graph`, [num_edges]: an undirected edge is stored in both directions."""
        return np.repeat(np.arange(len(self)), self.graph.out_degrees())

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """The target of each stored edge of `graph`, [num_edges]."""
        return self.graph.targets.astype(np.int64)

    def weights(self, weight: str | None) -> Weights:
        """Return the weight of each stored edge, [num_edges], whole or float; ones where none has any."""
        graph = self.weighted(weight)
        return graph.columns["weight"] if graph.has_weights else np.ones(len(self.targets), np.int64)

    def lengths(self, weight: str | None) -> Weights:
        """Return weights that are lengths of edges.

        Raises:
            NotImplementedError: If one is negative, so that NetworkX takes over.
        """
        found = self.weights(weight)
        if found.size and found.min() < 0:
            raise NotImplementedError("sigps takes no negative weights")
        return found

    @cached_property
    def num_loops(self) -> int:
        """How many edges lead from a node to itself."""
        return int((self.rows == self.targets).sum())

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """The ends of edges at each node, as `degree` of NetworkX counts them: a loop has two."""
        at = np.bincount(self.rows, minlength=len(self))
        if self.is_directed():
            return at + np.bincount(self.targets, minlength=len(self))
        return at + np.bincount(self.rows[self.rows == self.targets], minlength=len(self))

    @cached_property
    def num_edges(self) -> int:
        """The edges, as NetworkX counts them."""
        return int(self.degrees.sum()) // 2

    def reversed_graph(self) -> sigps.Graph:
        """Return the graph, without weights, with all edges turned around; itself where they have no direction."""
        return self.reversed_weighted(None)

    def reversed_weighted(self, weight: str | None) -> sigps.Graph:
        """Return the graph with all edges turned around."""
        graph = self.graph if weight is None else self.weighted(weight)
        if not self.is_directed():
            return graph

        def turned() -> sigps.Graph:
            values = graph.columns["weight"] if weight is not None and graph.has_weights else None
            return sigps.Graph.from_edges(self.targets, self.rows, values, vertices=np.arange(len(self)))

        return graph.derived(("networkx, turned around", weight), turned)


def converted(graph: Any, weight: str | None = None) -> ConvertedGraph:
    """Return a graph converted, once for all weights."""
    known = known_conversion(graph)
    made = ConvertedGraph(graph) if known is None else known
    if weight is None:
        made.graph  # noqa: B018  it is made now, not when the graph may have changed
    else:
        made.weighted(weight)
    return made


def known_conversion(graph: Any) -> ConvertedGraph | None:
    """Return what NetworkX's cache of a graph holds of it since it last changed; None if there is nothing."""
    cache = getattr(graph, "__networkx_cache__", None)
    if not cache or not nx.config.cache_converted_graphs:
        return None
    known = cache.get("backends", {}).get("sigps", {}).values()
    return next((made for made in known if isinstance(made, ConvertedGraph)), None)


def run(program: sigps.Vertex, graph: sigps.Graph, **options: Any) -> sigps.Result:
    """Run a program on the device that `networkx.config.backends.sigps` names."""
    return sigps.run(program, graph, device=settings().device, **options)


def settings() -> Any:
    """Return `networkx.config.backends.sigps`."""
    return nx.config.backends["sigps"]


_BATCH_VALUES = 1 << 24


def batches(graph: sigps.Graph, sources: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield sources in groups whose results, one value a vertex and source, take some hundred megabytes at most."""
    size = max(1, min(256, _BATCH_VALUES // max(1, graph.num_vertices)))
    for start in range(0, len(sources), size):
        yield sources[start : start + size]
