"""Rows of out-edges as compute() walks them on a GPU.

First come those of owned vertices by local id, then the mirrors of remote neighbours' rows, in the order of
`NeighborRows`. So a mirrored edge has the same position on a GPU and on CPU cores, and what crosses ranks depends on
no device. In a part of a graph the owned rows have the host's order, too, unless it was renamed; then there are no
mirrors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.transfers import send
from sigps.engine.gpu.memory_plan import bytes_of_mirrors
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.gpu.row_moves import HostMoves, RowMoves
from sigps.engine.partition.subgraph import columns_of

__all__ = ["WalkedRows"]


class WalkedRows:
    """The out-edges of a partition; each array is laid out at its first use, and kept.

    Args:
        xp: NumPy or CuPy, whose arrays these are.
        numbering: The local ids of the partition, which has out-edges.
        check_fits: Refuses what there is no memory for: bytes by what they are for.
        moves: Brings rows into another order, by kernels; None: by NumPy.

    Attributes:
        num_edges: Out-edges of owned vertices.
        num_mirrored: Mirrors of the edges of remote neighbours, which follow them.
        num_sent: Edges that others mirror, once for each rank.
        mirror_bounds: [size + 1]: the mirrors of rank r's edges are mirror_bounds[r] : mirror_bounds[r + 1]; None where
            there are none.
    """

    def __init__(
        self,
        xp: Any,
        numbering: Numbering,
        check_fits: Callable[[Mapping[str, int]], None],
        moves: RowMoves | None = None,
    ) -> None:
        subgraph = numbering.subgraph
        assert subgraph.outgoing is not None
        self._xp, self._numbering, self._check_fits = xp, numbering, check_fits
        self._moves = moves or HostMoves()
        self._edges, self._rows = subgraph.outgoing, subgraph.neighbor_rows
        self._ids, self._num_vertices = subgraph.outgoing_ids(), subgraph.num_vertices
        self._columns: dict[str, Any] = {}
        self.num_edges = self._edges.ends.size
        self.num_mirrored = self.num_sent = 0
        self.mirror_bounds: NDArray[np.int64] | None = None
        if self._rows is not None and self._rows.mirror_bounds is not None:
            self.mirror_bounds = self._rows.mirror_bounds
            self.num_mirrored = self._rows.targets.size - self.num_edges
            self.num_sent = sum(entries.size for entries in self._rows.send_lists)
            num_rows = self._rows.offsets.size - self._edges.offsets.size
            needed = bytes_of_mirrors(num_rows, self.num_mirrored, self.num_sent)
            check_fits({"the edges of neighbours on other ranks": needed})

    @cached_property
    def offsets(self) -> Any:
        """[rows + 1], uint64: where each row begins."""
        before = (self._rows or self._edges).offsets
        if self._numbering.is_hosts:
            return self._xp.asarray(before)
        lengths = np.empty(before.size - 1, dtype=np.uint64)
        lengths[self._numbering.owned_on_host] = before[1:] - before[:-1]
        offsets = np.zeros(before.size, dtype=np.uint64)
        np.cumsum(lengths, out=offsets[1:])
        return self._xp.asarray(offsets)

    @cached_property
    def gids(self) -> Any:
        """[edges and mirrors], uint32: targets, ascending in each row."""
        targets = self._edges.ends if self._rows is None else self._rows.targets
        return self.from_host(targets.astype(np.uint32, copy=False))

    @cached_property
    def ids(self) -> Any:
        """[edges], int64: targets as compute() names them."""
        found = self.from_host(self._ids)
        return found if found.dtype == np.int64 else self._moves.widened(found)

    def column(self, name: str) -> Any:
        """Return an edge column, [edges]."""
        if name not in self._columns:
            (values,) = columns_of(self._edges, (name,))
            self._columns[name] = self.from_host(values)
        return self._columns[name]

    @cached_property
    def rows(self) -> Any:
        """[edges], uint32: the row of each edge's target, owned or mirrored; where neighbours' edges are read."""
        assert self._rows is not None
        rows = self.from_host(self._rows.row_of.astype(np.uint32, copy=False))
        return rows if self._numbering.is_hosts else self._moves.taken(self._numbering.lids, rows)

    @cached_property
    def reverse(self) -> Any:
        """[edges], int64: the position of each edge's reverse; of an undirected graph."""
        self._check_fits({"the reverse of edges": 8 * self.num_edges})
        gids = self._numbering.gids()
        return self._moves.reverse(self.offsets, self.gids, self.rows, gids, self._num_vertices)

    @cached_property
    def send_lists(self) -> tuple[Any, ...]:
        """For each rank, the edges that it mirrors, in its order."""
        if self._rows is None:
            return ()
        dtype = np.uint32 if self.num_edges < 2**32 else np.int64
        return tuple(self._xp.asarray(entries.astype(dtype)) for entries in self._rows.send_lists)

    def from_host(self, values: NDArray[Any]) -> Any:
        """Bring values of out-edges from the order of the partition on the host."""
        values = np.ascontiguousarray(values)
        sent = values if self._xp is np else send(values)
        return sent if self._numbering.is_hosts else self._moves.moved(sent, *self._orders(self._xp))

    def in_host_order(self, values: Any, xp: Any) -> Any:
        """Return a copy of values, [edges], in the order of the partition on the host.

        Args:
            values: An array of `xp`.
            xp: The module of the device's arrays; or NumPy, where the device has no memory for it.
        """
        if self._numbering.is_hosts:
            return values.copy()
        moves = self._moves if xp is self._xp else HostMoves()
        return moves.moved(values, *self._orders(xp), backwards=True)

    def _orders(self, xp: Any) -> tuple[Any, Any, Any]:
        """Return where rows begin on the host and here, and the number that each has there; arrays of `xp`."""
        after, numbers = self.offsets, self._numbering.host_lids()
        if xp is not self._xp:
            after, numbers = self._xp.asnumpy(after), self._xp.asnumpy(numbers)
        return xp.asarray(self._edges.offsets), after, numbers
