"""Rows of edges in the memory of a GPU that change where they lie (`kernels/cuda/live.cu`).

Each row lies in one piece with some room behind it, in any order. A batch finds the edges that it deletes, fills the
holes with those that it inserts, and moves a row that outgrows its room behind all others. When these have used what
was left there, all rows are copied to larger arrays. The host knows where rows are, and how long: it plans, and waits
for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import Gpu, Kernel, check_fits
from sigps.engine.gpu.placed_edges import PlacedEdges
from sigps.kernels.cuda.abi import structure

__all__ = ["THREADS", "Counts", "EditedRows", "RowEdges", "num_blocks"]

_ROW_SLACK = 16
"""A row gets room for one part in so many more edges when rows are copied."""
_MOVED_SLACK, _MOVED_ROOM = 8, 4
"""A row that is moved gets room for one part in so many more edges, and for so many."""
_SLACK, _LEAST_ROOM = 8, 1 << 12
"""Arrays have room for one part in so many more edges behind all rows, and for so many at least."""
THREADS = 256


@dataclass(frozen=True, eq=False)
class RowEdges:
    """Edges by local ids on the device.

    Attributes:
        rows: [edges], uint32: whose row an edge is in.
        ends: [edges], uint32: its other end.
        weights: [edges], of the type of the column; None where rows have none.
    """

    rows: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    weights: NDArray[Any] | None


class Counts:
    """Counters that kernels add to."""

    def __init__(self) -> None:
        import cupy

        self._dtype = structure("LiveCounts").dtype
        self.on_device = cupy.zeros(self._dtype.itemsize, dtype=cupy.uint8)

    def set(self, **counts: int) -> None:
        """Set them to these numbers, the others to 0."""
        values = np.zeros(1, dtype=self._dtype)
        for name, count in counts.items():
            values[name] = count
        self.on_device.set(values.view(np.uint8))

    def read(self) -> Any:
        """Wait for the device, and return them."""
        import cupy

        return cupy.asnumpy(self.on_device).view(self._dtype)[0]


def num_blocks(gpu: Gpu, work_items: int, threads_of_item: int = 1) -> int:
    """Return how many blocks to launch."""
    return max(1, min(gpu.num_sms * 8, -(-work_items * threads_of_item // THREADS)))


class EditedRows:
    """Rows that change.

    Args:
        placed: Where they lie at first; its arrays are changed, and replaced where they become too small.
        column: The name of the number that edges have; None where they have none.
        kernels: Those of `live.cu`.
        gpu: The GPU.

    Attributes:
        degrees: [rows], on the host.
    """

    def __init__(
        self, placed: PlacedEdges, column: str | None, kernels: Mapping[str, Kernel], gpu: Gpu
    ) -> None:
        self.placed, self._column, self._kernels, self._gpu = placed, column, kernels, gpu
        self.degrees = placed.degrees_on_host.copy()
        self._copy_rows(0)

    @property
    def arrays(self) -> tuple[Any, Any, Any, Any]:
        """Begins, degrees, ends and weights, as kernels take them."""
        placed = self.placed
        return placed.rows.offsets, placed.rows.degrees, placed.ends, self._weights

    @property
    def weight_type(self) -> np.dtype[Any] | None:
        """The type of the number that edges have."""
        return None if self._column is None else np.dtype(self._weights.dtype.name)

    @property
    def _weights(self) -> Any:
        return self.placed.ends if self._column is None else self.placed.column(self._column)

    def edit(self, inserts: RowEdges, deletes: RowEdges, counts: Counts) -> bool:
        """Change rows; return whether arrays were replaced. Does not wait.

        Where an edge to delete is not there it is counted in `counts`, and rows are as before but for holes.
        """
        import cupy

        touched = np.unique(np.concatenate([inserts.rows, deletes.rows]))
        if not touched.size:
            return False
        order = np.argsort(inserts.rows, kind="stable")
        first_inserts = np.searchsorted(inserts.rows[order], np.append(touched, ~np.uint32(0)))
        kinds, first_of_kinds = _kinds(deletes)
        first_holes = np.searchsorted(np.sort(deletes.rows), np.append(touched, ~np.uint32(0)))
        before = self.degrees[touched]
        degrees = before + np.diff(first_inserts).astype(np.uint32) - np.diff(first_holes).astype(np.uint32)
        is_replaced = self._make_room(touched, degrees)
        holes = cupy.empty(max(1, deletes.rows.size), dtype=cupy.uint32)
        begins, on_device, ends, weights = self.arrays
        if deletes.rows.size:
            num_kinds = kinds.rows.size
            self._launch(
                "find_deleted_block_mapped", num_kinds, THREADS, cupy.asarray(kinds.rows), cupy.asarray(kinds.ends),
                self._sent(kinds), cupy.asarray(first_of_kinds), np.uint32(num_kinds), begins, on_device, ends,
                weights, cupy.zeros(num_kinds, dtype=cupy.uint32), holes, counts.on_device,
            )  # fmt: skip
        at = RowEdges(
            inserts.rows[order],
            inserts.ends[order],
            None if inserts.weights is None else inserts.weights[order],
        )
        self._launch(
            "edit_rows_thread_mapped", touched.size, 1, cupy.asarray(touched),
            cupy.asarray(first_holes.astype(np.uint32)), cupy.asarray(first_inserts.astype(np.uint32)),
            np.uint32(touched.size), holes, cupy.asarray(at.ends), self._sent(at), begins, on_device, ends, weights,
            counts.on_device,
        )  # fmt: skip
        self.degrees[touched] = degrees
        return is_replaced

    def _sent(self, edges: RowEdges) -> Any:
        """Return the numbers of edges on the device."""
        import cupy

        return cupy.asarray(edges.ends if edges.weights is None else edges.weights)

    def _make_room(self, rows: NDArray[np.uint32], degrees: NDArray[np.uint32]) -> bool:
        """Move rows that are to have more edges than room; return whether arrays were replaced."""
        import cupy

        sizes = degrees.astype(np.int64)
        needed = sizes + sizes // _MOVED_SLACK + _MOVED_ROOM
        moved = np.flatnonzero(degrees > self._room[rows])
        replaced = self._used + int(needed[moved].sum()) > self._size
        if replaced:
            self._copy_rows(int(needed.sum()))
            moved = np.flatnonzero(degrees > self._room[rows])  # what had more room has less now
        if not moved.size:
            return replaced
        room = needed[moved]
        places = self._used + np.cumsum(room) - room
        self._used += int(room.sum())
        self._room[rows[moved]] = room
        self._launch(
            "move_rows_block_mapped", moved.size, THREADS, cupy.asarray(rows[moved]),
            cupy.asarray(places.astype(np.uint64)), np.uint32(moved.size), *self.arrays,
        )  # fmt: skip
        return replaced

    def _copy_rows(self, more: int) -> None:
        """Copy all rows to arrays with room behind each, and for so many more edges behind all."""
        import cupy

        rows = self.placed.rows
        degrees = self.degrees.astype(np.int64)
        room = degrees + degrees // _ROW_SLACK
        stops = np.cumsum(room)
        used = int(stops[-1]) if room.size else 0
        self._used, self._room = used, room.astype(np.uint32)
        self._size = used + max(used // _SLACK, _LEAST_ROOM) + more
        begins = np.full(rows.num_csr_rows + 1, used, dtype=np.uint64)
        begins[: room.size] = stops - room
        old = self.arrays
        weight_bytes = 0 if self._column is None else self._weights.itemsize
        check_fits({"rows with room behind them": (4 + weight_bytes) * self._size})
        ends, placed = cupy.empty(self._size, dtype=cupy.uint32), cupy.asarray(begins)
        weights = ends if self._column is None else cupy.empty(self._size, dtype=self._weights.dtype)
        self._launch(
            "copy_rows_warp_mapped", room.size, 32, np.uint32(room.size), *old, placed, ends, weights
        )
        self.placed.replace(
            replace(rows, offsets=placed, num_positions=self._size),
            ends,
            {} if self._column is None else {self._column: weights},
        )

    def _launch(self, name: str, work_items: int, threads_of_item: int, *arguments: Any) -> None:
        blocks = num_blocks(self._gpu, work_items, threads_of_item)
        self._kernels[name].launch(blocks, THREADS, arguments)


def _kinds(edges: RowEdges) -> tuple[RowEdges, NDArray[np.uint32]]:
    """Return edges that are equal in all once, in the order of rows, and where each kind's begin; and their number."""
    keys = (edges.ends, edges.rows) if edges.weights is None else (edges.weights, edges.ends, edges.rows)
    order = np.lexsort(keys)
    is_new = np.zeros(order.size, dtype=np.bool_)
    is_new[:1] = True
    for key in keys:
        is_new[1:] |= key[order][1:] != key[order][:-1]
    first = np.flatnonzero(is_new)
    at = order[first]
    kinds = RowEdges(edges.rows[at], edges.ends[at], None if edges.weights is None else edges.weights[at])
    return kinds, np.append(first, order.size).astype(np.uint32)
