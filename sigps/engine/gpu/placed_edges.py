"""Edges at their positions in the memory of a GPU, by rows."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.device.cuda import Gpu, Kernel, Module, check_fits, free_bytes
from sigps.device.transfers import fill_with, send
from sigps.engine.gpu.layout import LOOKING_UP, Rows, rows_of_positions
from sigps.engine.gpu.memory_plan import ORDERING, SORTING, edges_at_a_time
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import columns_of

__all__ = ["PlacedEdges", "layout_kernel", "link_layout_ahead", "offsets_of"]


class PlacedEdges:
    """Edges at their positions.

    Sorted by the local id of the other end, edges of neighbouring lanes read records that lie together, the most read
    ones first. Where the order of in-edges means something, it is kept. They are sorted a piece of the host's rows at a
    time, which takes a fraction of the memory that they stay in.

    Args:
        edges: The edges, rows and ends by their numbers on the host.
        rows: The positions of rows, by local id, on the host.
        lids: [num_rows or more], uint32: the local id of each number on the host.
        gpu: The GPU.
        sorts_rows: Whether to sort each row by the local ids of ends.
    """

    def __init__(self, edges: EdgeList, rows: Rows, lids: Any, gpu: Gpu, sorts_rows: bool) -> None:
        import cupy

        self.rows, self.degrees_on_host = rows.on_device(cupy.asarray), rows.degrees
        self._edges, self._lids, self._gpu, self._sorts_rows = edges, lids, gpu, sorts_rows
        self._at_a_time = self._edges_at_a_time(4 * rows.num_positions + edges.offsets.nbytes, SORTING)
        sorting = self._at_a_time * SORTING if sorts_rows else 4 * edges.ends.size
        check_fits({"edges": 4 * rows.num_positions, "laying them out": edges.offsets.nbytes + sorting})
        self.ends = cupy.zeros(max(rows.num_positions, 1), dtype=cupy.uint32)
        self._columns: dict[str, Any] = {}
        if sorts_rows:
            for first, last, offsets, keys in self._sorted_by():
                keys.sort()
                self._move_piece("place_piece_ends", first, last, offsets, keys, self.ends)
        else:
            ends = send(edges.ends.astype(np.uint32, copy=False))
            self._launch("place_ends", lids, cupy.asarray(edges.offsets), ends, self.ends)

    def column(self, name: str) -> Any:
        """Return an edge column, by position; laid out at its first use."""
        import cupy

        if name not in self._columns:
            (values,) = columns_of(self._edges, (name,))
            size = values.dtype.itemsize * self.rows.num_positions
            self._at_a_time = self._edges_at_a_time(size, ORDERING)
            ordering = self._at_a_time * ORDERING if self._sorts_rows else values.nbytes
            check_fits({f"edge column {name}": size, "laying it out": ordering})
            moved = cupy.zeros(max(self.rows.num_positions, 1), dtype=values.dtype)
            if values.strides == (0,):
                fill_with(moved, values[:1].tobytes() or b"\0")
            elif self._sorts_rows:
                what = f"place_piece_column_{values.dtype.itemsize * 8}"
                for first, last, offsets, keys in self._sorted_by():
                    order = cupy.argsort(keys, kind="stable")
                    part = send(values[self._edges.offsets[first] : self._edges.offsets[last]])
                    self._move_piece(what, first, last, offsets, order, part, moved)
                    del order, part, keys
            else:
                offsets = cupy.asarray(self._edges.offsets)
                what = f"place_column_{values.dtype.itemsize * 8}"
                self._launch(what, self._lids, offsets, send(values), moved)
            self._columns[name] = moved
        return self._columns[name]

    @functools.cached_property
    def targets(self) -> Any:
        """The row of each position, as `rows_of_positions` returns it; laid out at its first use."""
        import cupy

        check_fits({"the targets of edges": 4 * self.rows.num_positions, "laying them out": LOOKING_UP})
        return rows_of_positions(cupy, self.rows)

    def replace(self, rows: Rows, ends: Any, columns: dict[str, Any]) -> None:
        """Let edges lie elsewhere: other positions of the same rows, and arrays in their order."""
        self.rows, self.ends, self._columns = rows, ends, columns

    def structure(self) -> Any:
        """Return what kernels take."""
        return self.rows.structure(self.ends)

    def _edges_at_a_time(self, besides: int, bytes_an_edge: int) -> int:
        """Return the most edges that are sorted at once, in what is free besides: a row is not divided."""
        longest, num_edges = int(self.degrees_on_host.max(initial=0)), self._edges.ends.size
        return max(edges_at_a_time(num_edges, free_bytes() - besides, bytes_an_edge), longest)

    def _sorted_by(self) -> Iterator[tuple[int, int, Any, Any]]:
        """Cut the host's rows into pieces; yield which rows, where they begin there, and what edges are sorted by.

        That is the number of their row there and the local id of their other end, as one number.
        """
        import cupy

        edges, first, done, most = self._edges, 0, 0, self._at_a_time
        while first < edges.offsets.size - 1:
            fitting = int(np.searchsorted(edges.offsets, np.uint64(done + most), side="right")) - 1
            last = max(first + 1, fitting)
            end = int(edges.offsets[last])
            offsets = cupy.asarray(edges.offsets[first : last + 1] - edges.offsets[first])
            ends = send(edges.ends[done:end].astype(np.uint32, copy=False))
            keys = cupy.empty(end - done, dtype=cupy.uint64)
            kernel = layout_kernel("make_piece_keys_warp_mapped", self._gpu)
            given = offsets, np.uint64(last - first), self._lids, ends, keys
            kernel.launch(self._blocks(last - first), 256, given)
            del ends
            yield first, last, offsets, keys
            first, done = last, end

    def _move_piece(self, what: str, first: int, last: int, offsets: Any, *arrays: Any) -> None:
        """Bring what has the order of a piece's keys to its positions."""
        self._launch(what, self._lids[first:last], offsets, np.uint64(last - first), *arrays)

    def _launch(self, what: str, *arrays: Any) -> None:
        kernel = layout_kernel(f"{what}_warp_mapped", self._gpu)
        kernel.launch(self._blocks(self.rows.degrees.size), 256, (self.structure(), *arrays))

    def _blocks(self, num_rows: int) -> int:
        return max(1, min(self._gpu.num_sms * 16, num_rows // 8))


def offsets_of(degrees: NDArray[np.uint32]) -> Any:
    """Return where rows of so many edges begin, one after another, [rows + 1], uint64, on the device."""
    import cupy

    offsets = np.zeros(degrees.size + 1, dtype=np.uint64)
    np.cumsum(degrees, out=offsets[1:], dtype=np.uint64)
    return cupy.asarray(offsets)


@functools.cache
@spent_on("compile")
def layout_kernel(name: str, gpu: Gpu, file: str = "layout") -> Kernel:
    """Return a kernel that lays edges out; its file is loaded once a GPU."""
    return _layout_module(file, gpu).kernel(name)


@functools.cache
def link_layout_ahead(gpu: Gpu, may_have_tiles: bool) -> None:
    """Begin to link the files that lay edges out, once a process."""
    from sigps.device.linking import link_ahead

    for file in ("layout", "tile_layout") if may_have_tiles else ("layout",):
        link_ahead(file, gpu.arch)


@functools.cache
def _layout_module(file: str, gpu: Gpu) -> Module:
    from sigps.device.linking import link_kernel

    return Module(link_kernel(file, gpu.arch))
