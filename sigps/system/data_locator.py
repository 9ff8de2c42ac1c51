"""Where a vertex is: from the id that compute() sees to the gid, and from the gid to (rank, local id)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import check_fits
from sigps.engine.exchange import checked_gids
from sigps.engine.partition.subgraph import Subgraph
from sigps.graph.graph import Graph
from sigps.graph.partitioning.assignment import Assignment, Contiguous

__all__ = ["DataLocator", "DeviceLocator"]


class DataLocator:
    """One rank's tables, NumPy arrays on the host. `gids` is collective; `ranks` and `local_ids` are not."""

    def __init__(self, graph: Graph, assignment: Assignment, subgraph: Subgraph) -> None:
        self._graph, self._assignment = graph, assignment
        self._subgraph = subgraph

    def gids(self, ids: NDArray[np.int64], superstep: int) -> NDArray[np.int64]:
        """Return the gids of ids as compute() sees them, [ids.size], which may differ by rank. Collective.

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
        """Return the ranks that own vertices, [gids.size], int32."""
        return self._assignment.owner_of(gids)

    def local_ids(self, gids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local ids of vertices, all of which this rank owns, [gids.size]. O(log num_owned) each."""
        return self._subgraph.local_ids(gids)


class DeviceLocator(DataLocator):
    """The same with tables on the GPU, of at most 4 bytes for each vertex of the graph and 16 for each owned one.

    `gids` takes and returns NumPy arrays; `ranks` and `local_ids` CuPy arrays, and they do not wait for the device.

    Raises:
        DeviceError: If the GPU has no memory for them; it names the bytes.
    """

    def __init__(self, graph: Graph, assignment: Assignment, subgraph: Subgraph) -> None:
        import cupy

        super().__init__(graph, assignment, subgraph)
        assert subgraph.gids is not None
        a_vertex = 0 if isinstance(assignment, Contiguous) else 4
        check_fits({"where vertices are": a_vertex * graph.num_vertices + 16 * subgraph.num_owned})
        self._bounds, self._owners = None, None
        if isinstance(assignment, Contiguous):
            self._bounds = cupy.asarray(assignment.bounds)
        else:
            owners = assignment.owner_of(np.arange(assignment.num_vertices))
            self._owners = cupy.asarray(owners.astype(np.min_scalar_type(assignment.num_partitions)))
        self._sorted_gids, self._by_gid = cupy.asarray(subgraph.sorted_gids), cupy.asarray(subgraph.by_gid)

    def ranks(self, gids: Any) -> Any:
        if self._owners is not None:
            return self._owners[gids].astype(np.int32)
        import cupy

        return (cupy.searchsorted(self._bounds, gids, side="right") - 1).astype(np.int32)

    def local_ids(self, gids: Any) -> Any:
        import cupy

        return self._by_gid[cupy.searchsorted(self._sorted_gids, gids)]
