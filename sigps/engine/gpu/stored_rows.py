"""Out-edges that stay packed, as values on them need them: by their positions in the store, and on ranks in a part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import check_fits
from sigps.device.pinned_block import PinnedBlock
from sigps.device.transfers import send
from sigps.engine.gpu.columns import array_at
from sigps.engine.partition.crossing_edges import CrossingEdges
from sigps.engine.partition.streamed import StreamedEdges

__all__ = ["StoredRows"]


class StoredRows:
    """What `WalkedRows` is of edges in memory: here positions are the same on the host and on the device.

    Args:
        edges: The edges, of an undirected graph with rows in the given order.

    Attributes:
        num_edges: Out-edges.
        crossing: Those that lead to other ranks, while a program reads values of other ends; else None.
        mirror_bounds: None: nothing crosses by the lists that edges in memory have (`crossing_values.py`).
        send_lists: Likewise nothing.
    """

    mirror_bounds = None
    send_lists: tuple[Any, ...] = ()
    crossing: CrossingEdges | None = None

    def __init__(self, edges: StreamedEdges) -> None:
        self._edges = edges
        self.num_edges = edges.num_edges

    @property
    def num_mirrored(self) -> int:
        """Copies of edges of other ranks that lead here."""
        return 0 if self.crossing is None else self.crossing.num_copies

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
            for first, part in self._each_reverse():
                found[first : first + part.size] = part
            return array_at(block.pointer, self.num_edges, np.dtype(np.int64))
        check_fits({what: size})
        placed = cupy.empty(max(1, self.num_edges), dtype=cupy.int64)
        for first, part in self._each_reverse():
            placed[first : first + part.size] = send(part)
        return placed

    def _each_reverse(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        if self.crossing is None:
            return self._edges.each_reverse()
        return self._edges.each_reverse(*self.crossing.places(self._edges.rows.offsets))
