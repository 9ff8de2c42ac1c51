"""The object that NetworkX's dispatcher talks to."""

from __future__ import annotations

import importlib
from typing import Any

from sigps.networkx.converted import ConvertedGraph, converted, known_conversion, settings
from sigps.networkx.expected_failures import mark
from sigps.networkx.serving import SERVED, graph_of, reason_against

__all__ = ["BACKEND", "Backend"]

for _topic in (
    "bridges",
    "centrality",
    "clustering",
    "colouring_and_matching",
    "components",
    "directed_acyclic",
    "distance_measures",
    "flows",
    "link_analysis",
    "shortest_paths",
    "spanning_trees",
    "subgraphs",
    "traversal",
):
    importlib.import_module(f"sigps.networkx.{_topic}")


class Backend:
    """The served functions by their names as attributes, conversions, and which calls are taken."""

    def __getattr__(self, name: str) -> Any:
        if name not in SERVED:
            raise AttributeError(f"sigps serves no networkx.{name}")
        return SERVED[name].function

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SERVED]

    @staticmethod
    def convert_from_nx(
        graph: Any, *, edge_attrs: dict[str, Any] | None = None, name: str | None = None, **_: Any
    ) -> ConvertedGraph:
        """Return a NetworkX graph as programs run on it; O(edges), 0.7 s for a million.

        Raises:
            NotImplementedError: If weights are no finite numbers.
        """
        served = SERVED.get(name or "")
        attributes = list(edge_attrs or ()) if served is None or served.weight else []
        return converted(graph, attributes[0] if attributes else None)

    @staticmethod
    def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
        """Return a graph as NetworkX has it; what is none as it is."""
        return result.source if isinstance(result, ConvertedGraph) else result

    @staticmethod
    def can_run(name: str, args: Any, kwargs: dict[str, Any]) -> bool | str:
        """Return True, or why a call is not served."""
        return reason_against(name, args, kwargs) or True

    @staticmethod
    def should_run(name: str, args: Any, kwargs: dict[str, Any]) -> bool | str:
        """Return True, or why a call would not pay that nobody asked to be served: the graph is small."""
        graph, least = graph_of(name, args, kwargs), settings().min_edges
        if isinstance(graph, ConvertedGraph) or known_conversion(graph) is not None:
            return True
        edges = graph.number_of_edges()
        return edges >= least or f"the graph has {edges} edges, fewer than min_edges = {least}"

    @staticmethod
    def on_start_tests(items: list[Any]) -> None:
        """Mark what is expected to fail of NetworkX's own tests, which it runs with NETWORKX_TEST_BACKEND=sigps."""
        mark(items)


BACKEND = Backend()
