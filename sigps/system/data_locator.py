"""Where a vertex lives: from the user's id to the global id, and from there to (rank, local id)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exchange import checked_gids
from sigps.engine.subgraph import Subgraph
from sigps.graph.graph import Graph
from sigps.graph.partition import Assignment

__all__ = ["DataLocator"]


class DataLocator:
    """One rank's tables. Finding a user's id may be collective; the rest is local.

    Args:
        graph: The graph whose ids are looked up.
        assignment: Which rank owns which vertex.
        subgraph: This rank's partition.
    """

    def __init__(self, graph: Graph, assignment: Assignment, subgraph: Subgraph) -> None:
        self._graph, self._assignment = graph, assignment
        self._subgraph = subgraph

    def gids(self, ids: NDArray[np.int64], superstep: int) -> NDArray[np.int64]:
        """Return the gids of ids as compute() sees them. Collective.

        Raises:
            ExchangeError: If an id is not in the graph.
        """
        graph = self._graph
        if graph.ids.kind == "strings":
            found = np.where((ids >= 0) & (ids < graph.num_vertices), ids, -1)
        else:
            found = graph.ids.to_gids(ids)
        return checked_gids(ids, found, graph.group.rank, superstep)

    def ranks(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the owners."""
        return self._assignment.owner_of(gids)

    def local_ids(self, gids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local ids of vertices that this rank owns. O(log owned) each."""
        return self._subgraph.local_ids(gids)
