"""Rows of out-edges as compute() walks them on a GPU (NumPy or CuPy).

First come those of owned vertices, in the order of places, then the copied ones of remote neighbours, in the order in
which `NeighborRows` has them. So what is kept on a copied edge lies where it lies on CPU cores, and other ranks need
not know on what device it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.gpu.layout import edges_back, edges_before
from sigps.engine.gpu.memory_plan import SEARCHING_BACK, bytes_of_copies
from sigps.engine.partition.subgraph import Subgraph, columns_of

__all__ = ["WalkedRows"]


class WalkedRows:
    """The out-edges of a partition; each array is laid out when somebody first asks, and kept.

    Args:
        xp: NumPy or CuPy.
        subgraph: The partition.
        places: [num_owned], uint32: where a local id went.
        degrees: [num_owned], uint32: out-edges, by place.
        check_fits: Refuses what there is no memory for: bytes by what they are for.

    Attributes:
        num_edges: Out-edges of owned vertices.
        num_copies: Copied edges of remote neighbours, which follow them.
        num_asked: Edges of which others have copies, once for each rank.
        bounds: [size + 1]: the copies of rank r's edges are bounds[r] : bounds[r + 1]; None where there are none.
    """

    def __init__(
        self,
        xp: Any,
        subgraph: Subgraph,
        places: Any,
        degrees: Any,
        check_fits: Callable[[Mapping[str, int]], None],
    ) -> None:
        assert subgraph.outgoing is not None
        self._xp, self._check_fits = xp, check_fits
        self._places, self._degrees = places, degrees
        self._edges, self._rows = subgraph.outgoing, subgraph.neighbor_rows
        self._ids = subgraph.outgoing_ids()
        self._owned, self._num_vertices = subgraph.gids, subgraph.num_vertices
        self._columns: dict[str, Any] = {}
        self.num_edges = self._edges.ends.size
        self.num_copies = self.num_asked = 0
        self.bounds: NDArray[np.int64] | None = None
        if self._rows is not None and self._rows.bounds is not None:
            self.bounds = self._rows.bounds
            self.num_copies = self._rows.targets.size - self.num_edges
            self.num_asked = sum(entries.size for entries in self._rows.asked)
            num_rows = self._rows.offsets.size - self._edges.offsets.size
            needed = bytes_of_copies(num_rows, self.num_copies, self.num_asked)
            check_fits({"the edges of neighbours on other ranks": needed})

    @cached_property
    def offsets(self) -> Any:
        """[rows + 1], uint64: where each row begins."""
        lengths = self._degrees
        if self._rows is not None and self.bounds is not None:
            copied = np.diff(self._rows.offsets[self._places.size :])  # rows there are, edges perhaps none
            lengths = self._xp.concatenate([lengths, self._xp.asarray(copied.astype(np.uint32))])
        offsets = self._xp.zeros(lengths.size + 1, dtype=np.uint64)
        self._xp.cumsum(lengths, out=offsets[1:], dtype=np.uint64)
        return offsets

    @cached_property
    def gids(self) -> Any:
        """[edges and copies], uint32: targets, ascending in each row."""
        gids = self._by_place(self._edges.ends).astype(np.uint32)
        if self._rows is not None and self.num_copies:
            copied = self._rows.targets[self.num_edges :].astype(np.uint32)
            gids = self._xp.concatenate([gids, self._xp.asarray(copied)])
        return gids

    @cached_property
    def ids(self) -> Any:
        """[edges], int64: targets as compute() names them."""
        return self._by_place(self._ids).astype(np.int64)

    def column(self, name: str) -> Any:
        """Return an edge column, [edges]."""
        if name not in self._columns:
            (values,) = columns_of(self._edges, (name,))
            self._columns[name] = self._by_place(values)
        return self._columns[name]

    @cached_property
    def rows(self) -> Any:
        """[edges], uint32: the row of each edge's target, a place or a copied row. Where neighbours are looked at."""
        assert self._rows is not None
        num_rows = self._rows.offsets.size - 1
        copied = self._xp.arange(self._places.size, num_rows, dtype=np.uint32)
        known = self._xp.concatenate([self._places, copied])
        return known[self._by_place(self._rows.row_of)]

    @cached_property
    def back(self) -> Any:
        """[edges], int64: where the edge back is; of an undirected graph."""
        self._check_fits({"the edges back": 8 * self.num_edges + SEARCHING_BACK * self.gids.size})
        gids = self.order()
        if self._owned is not None:
            gids = self._xp.asarray(self._owned)[gids]
        return edges_back(self._xp, self.offsets, self.gids, self.rows, gids, self._num_vertices)

    @cached_property
    def asked(self) -> tuple[Any, ...]:
        """For each rank, the edges that it has copies of, in its order."""
        if self._rows is None or self.bounds is None:
            return ()
        now = self._xp.empty(self.num_edges, dtype=np.uint32 if self.num_edges < 2**32 else np.int64)
        now[self.before(self._xp)] = self._xp.arange(self.num_edges, dtype=now.dtype)
        return tuple(now[self._xp.asarray(entries)] for entries in self._rows.asked)

    def before(self, xp: Any) -> Any:
        """Return where each edge is among the partition's rows, [edges], int64; made each time.

        Args:
            xp: The module that the arrays are of; or NumPy, where the device has no memory for it.
        """
        after, order = self.offsets[: self._places.size + 1], self.order()
        if xp is not self._xp:
            after, order = self._xp.asnumpy(after), self._xp.asnumpy(order)
        return edges_before(xp, xp.asarray(self._edges.offsets), after, order)

    def order(self) -> Any:
        """Return the local id of each place, [num_owned]."""
        order = self._xp.empty(self._places.size, dtype=np.int64)
        order[self._places] = self._xp.arange(self._places.size)
        return order

    def _by_place(self, values: Any) -> Any:
        """Bring out-edges' values from the order of the partition's rows to that of places."""
        return self._xp.asarray(np.ascontiguousarray(values))[self.before(self._xp)]
