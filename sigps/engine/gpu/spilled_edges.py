"""Edges of a graph that is larger than the GPU's memory: their first positions there, the others on the host.

The first rows are those of most edges, so what is on the device is what pushes and searches read most. Rows go to
their positions a piece at a time: threads of the host bring its rows together, the device sorts and places them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import available_cores
from sigps.device.cuda import Gpu, check_fits
from sigps.device.spilled_memory import Spilled
from sigps.device.transfers import send
from sigps.engine.gpu.layout import Rows
from sigps.engine.gpu.memory_plan import ORDERING, SORTING
from sigps.engine.gpu.placed_edges import PlacedEdges, layout_kernel, offsets_of
from sigps.engine.gpu.spilling import Spilling
from sigps.engine.partition.edge_list import EdgeList, in_order
from sigps.engine.partition.subgraph import columns_of
from sigps.errors import DeviceError
from sigps.host_memory import available_memory
from sigps.kernels.cuda.lease import EDGES

__all__ = ["SpilledEdges"]


class SpilledEdges(PlacedEdges):
    """Edges at their positions, of which those behind the first ones are on the host.

    Args:
        edges: The edges, rows and ends by their numbers on the host.
        rows: The positions of rows, by local id, on the host.
        lids: [num_rows or more], uint32: the local id of each number on the host; on the device.
        order: [num_rows], int64: the number on the host of each local id.
        gpu: The GPU.
        sorts_rows: Whether to sort each row by the local ids of ends.
        spilling: How they are divided.

    Attributes:
        divided: Bytes of ends and columns on the device, and on the host.
    """

    def __init__(
        self,
        edges: EdgeList,
        rows: Rows,
        lids: Any,
        order: NDArray[np.int64],
        gpu: Gpu,
        sorts_rows: bool,
        spilling: Spilling,
    ) -> None:
        import cupy

        self.rows, self.degrees_on_host = rows.on_device(cupy.asarray), rows.degrees
        self._on_host = rows
        self._edges, self._lids, self._gpu, self._sorts_rows = edges, lids, gpu, sorts_rows
        self._order, self._spilling = order, spilling
        self._columns: dict[str, Any] = {}
        self.divided = 0, 0
        self.ends = self._moved(None)

    def column(self, name: str) -> Any:
        """Return an edge column, by position; laid out at its first use."""
        if name not in self._columns:
            (values,) = columns_of(self._edges, (name,))
            self._columns[name] = self._moved(values)
        return self._columns[name]

    def _moved(self, values: NDArray[Any] | None) -> Any:
        """Return ends, or a column of the edges, at their positions."""
        import cupy

        dtype = np.dtype(np.uint32) if values is None else values.dtype
        size = max(1, self.rows.num_positions) * dtype.itemsize
        resident = int(self._spilling.share * size)
        if size - resident > available_memory():
            raise DeviceError(
                f"the edges that do not fit the GPU take {size - resident:,} bytes of this host's memory, and "
                f"{available_memory():,} are free. More GPUs (mpirun), precision='single' and fewer columns take less",
                rank=0,
            )
        pieces = list(self._pieces())
        most = max((int(self.degrees_on_host[f:e].sum(dtype=np.int64)) for f, e in pieces), default=0)
        check_fits(
            {"edges": resident, "laying out a piece": most * (SORTING if values is None else ORDERING)}
        )
        room = Spilled(size, resident)
        for first, last in pieces:
            begin, end = self._position(first), self._position(last)
            placed = cupy.zeros(end - begin, dtype=dtype)
            self._place(first, last, begin, values, placed)
            room.write(begin * dtype.itemsize, placed)
        cupy.cuda.get_current_stream().synchronize()
        self.divided = self.divided[0] + room.on_device, self.divided[1] + room.on_host
        return room.bytes[:size].view(dtype)

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """Cut rows into pieces of about so many edges, at multiples of 32."""
        num_rows = self.degrees_on_host.size
        ends = np.cumsum(self.degrees_on_host, dtype=np.int64)[31::32]  # of whole slices
        first = done = 0
        while first < num_rows:
            last = 32 * int(np.searchsorted(ends, done + self._spilling.piece, side="right"))
            last = min(num_rows, max(last, first + 32))
            yield first, last
            first = last
            done = int(ends[last // 32 - 1]) if last < num_rows else 0

    def _position(self, row: int) -> int:
        """Return where a row, a multiple of 32, begins; of the end of all, where the last one ends."""
        rows = self._on_host
        if row >= rows.degrees.size:
            return rows.num_positions
        if row < rows.num_csr_rows:
            return int(rows.offsets[row])
        return int(rows.slices[(row - rows.num_csr_rows) // 32])

    def _place(self, first: int, last: int, begin: int, values: NDArray[Any] | None, placed: Any) -> None:
        """Bring rows to `placed`, which has the positions from `begin` on."""
        import cupy

        columns = {} if values is None else {"moved": values}
        rows = self._order[first:last]
        part = in_order(
            EdgeList(self._edges.offsets, self._edges.ends, columns), rows, num_threads=available_cores()
        )
        structure = self._structure_of(first, last)
        offsets = offsets_of(self.degrees_on_host[first:last])
        keys = cupy.empty(part.ends.size, dtype=cupy.uint64)
        ends = send(part.ends.astype(np.uint32, copy=False))
        self._launch_over(
            last - first, "make_piece_keys", offsets, np.uint64(last - first), self._lids, ends, keys
        )
        target = np.uint64(placed.data.ptr - begin * placed.itemsize)  # as if all positions were there
        if values is None:
            if self._sorts_rows:
                keys.sort()
            self._launch_over(last - first, "place_sorted_ends", structure, offsets, keys, target)
            return
        order = (
            cupy.argsort(keys, kind="stable")
            if self._sorts_rows
            else cupy.arange(keys.size, dtype=cupy.int64)
        )
        what = f"place_sorted_column_{placed.itemsize * 8}"
        self._launch_over(last - first, what, structure, offsets, order, send(part.columns["moved"]), target)

    def _structure_of(self, first: int, last: int) -> Any:
        """Return some rows as kernels take them: numbered from 0, at the positions that they have among all."""
        rows, filled = self.rows, np.zeros((), dtype=EDGES)
        csr_rows = max(0, rows.num_csr_rows - first)
        filled["offsets"] = rows.offsets[min(first, rows.num_csr_rows) :].data.ptr
        filled["slices"] = rows.slices[max(0, first - rows.num_csr_rows) // 32 :].data.ptr
        filled["degrees"] = rows.degrees[first:].data.ptr
        filled["num_csr_rows"], filled["num_rows"] = csr_rows, last - first
        return filled

    def _launch_over(self, num_rows: int, what: str, *arguments: Any) -> None:
        kernel = layout_kernel(f"{what}_warp_mapped", self._gpu)
        kernel.launch(max(1, min(self._gpu.num_sms * 16, num_rows // 8)), 256, arguments)
