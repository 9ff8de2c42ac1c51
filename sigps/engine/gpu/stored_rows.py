"""Out-edges that stay packed, as values on them need them: by their positions in the store, on one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import check_fits
from sigps.device.pinned_block import PinnedBlock
from sigps.device.transfers import send
from sigps.engine.gpu.columns import array_at
from sigps.engine.partition.streamed import StreamedEdges

__all__ = ["StoredRows"]


class StoredRows:
    """What `WalkedRows` is of edges in memory: here positions are the same on the host and on the device.

    Args:
        edges: The edges, of an undirected graph with rows in the given order.

    Attributes:
        num_edges: Out-edges.
        num_mirrored: Those of other ranks' vertices: none.
        num_sent: Likewise.
        mirror_bounds: None, as there are none.
        send_lists: For each rank, what it mirrors: nothing.
    """

    num_mirrored = num_sent = 0
    mirror_bounds = None
    send_lists: tuple[Any, ...] = ()

    def __init__(self, edges: StreamedEdges) -> None:
        self._edges = edges
        self.num_edges = edges.num_edges

    def from_host(self, values: NDArray[Any]) -> Any:
        """Bring values of out-edges to the device."""
        return send(np.ascontiguousarray(values))

    def in_host_order(self, values: Any, xp: Any) -> Any:
        """Return a copy of values, [edges], in the order of the partition on the host: the same."""
        return values.copy()

    def reverse(self, *, on_host: bool) -> Any:
        """Return the position of each edge's reverse, [edges], int64, in the device's memory or the host's pinned.

        Raises:
            DeviceError: If there is no room for it.
            GraphError: If an edge has none.
        """
        import cupy

        what, size = "where values of other ends lie", 8 * self.num_edges
        if on_host:
            block = PinnedBlock(size, what)
            found = block.array(0, self.num_edges, np.dtype(np.int64))
            for first, part in self._edges.each_reverse():
                found[first : first + part.size] = part
            return array_at(block.pointer, self.num_edges, np.dtype(np.int64))
        check_fits({what: size})
        placed = cupy.empty(max(1, self.num_edges), dtype=cupy.int64)
        for first, part in self._edges.each_reverse():
            placed[first : first + part.size] = send(part)
        return placed
