"""A partition's edges in the memory of a GPU, laid out once and kept as long as the partition is.

In-edges are rows of owned vertices alone; out-edges are rows of owned vertices and ghosts, and lead to owned vertices.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.device.cuda import Gpu, Kernel, Module, check_fits
from sigps.device.transfers import fill_with, send
from sigps.engine.gpu.layout import LOOKING_UP, Rows, lay_out, rows_of_positions
from sigps.engine.gpu.memory_plan import ORDERING, SORTING
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.gpu.row_moves import KernelMoves
from sigps.engine.gpu.tiles import TiledEdges, tiled_edges
from sigps.engine.gpu.tiling import Tiling
from sigps.engine.gpu.walked_rows import WalkedRows
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import Subgraph, columns_of
from sigps.kernels.cuda.lease import EDGES, HUB_DEGREE

__all__ = ["GpuGraph", "graph_on_gpu", "ids_fit_32_bits"]


class GpuGraph:
    """The edges of a partition, by target and by source.

    Attributes:
        numbering: The local ids of vertices.
        num_owned: Owned vertices.
        num_lids: Local ids, those of ghosts among them.
        incoming: In-edges.
        outgoing: The same edges by source; the very same object where the graph is symmetric.
        out_degrees: [num_owned], uint32; edges to other partitions count.
        in_degrees: [num_owned], uint32.
        could_send: Owned vertices with an out-edge.
        num_hubs: Vertices with so many out-edges that the whole grid pushes for them.
        most_out_edges: The most that a vertex has.
        has_narrow_ids: Whether every id that compute() sees fits an int32.
        is_sorted: Whether the edges of each row of `incoming` are in ascending order of their sources' local ids.
        tiles: In-edges in tiles and rows, which `incoming` then is; for programs that pull alone. Else None.
        kept: What runs leave for later runs on the graph.
    """

    incoming: _EdgesOnGpu | TiledEdges
    outgoing: _EdgesOnGpu | TiledEdges

    def __init__(
        self, subgraph: Subgraph, gpu: Gpu, *, sorts_rows: bool, tiling: Tiling | None = None
    ) -> None:
        import cupy

        self._gpu = gpu
        self.numbering = numbering = Numbering(cupy, subgraph)
        self.num_owned, self.num_lids = numbering.num_owned, numbering.num_lids
        self.is_symmetric = subgraph.gids is None and subgraph.goes_both_ways
        self.tiles = self._in_tiles(tiling) if tiling is not None else None
        if self.tiles is not None:
            self.incoming = self.outgoing = self.tiles
            self.in_degrees = cupy.asarray(numbering.in_degrees)
        else:
            rows = lay_out(numbering.in_degrees)
            self.incoming = _EdgesOnGpu(subgraph.incoming, rows, numbering.lids, gpu, sorts_rows)
            self.outgoing = self.incoming if self.is_symmetric else self._by_source(subgraph.pushed)
            self.in_degrees = self.incoming.rows.degrees
        self.out_degrees, degrees = self._out_degrees()
        self.num_hubs = int(np.count_nonzero(degrees > HUB_DEGREE))
        if numbering.is_hosts:
            degrees = subgraph.out_degrees.astype(np.uint32)
            self.out_degrees = cupy.asarray(degrees)
        self.could_send = int(np.count_nonzero(degrees))
        self.most_out_edges = int(degrees.max(initial=0))
        self.has_narrow_ids = ids_fit_32_bits(subgraph)
        self.is_sorted = sorts_rows
        self.kept: dict[Any, Any] = {}
        self._arrays: dict[str, Any] = {}

    def _in_tiles(self, tiling: Tiling) -> TiledEdges | None:
        """Lay in-edges out in tiles, and number vertices anew; None where that does not pay."""
        numbering = self.numbering

        def launch(name: str, num_threads: int, *arguments: Any) -> None:
            kernel = _layout_kernel(name, self._gpu, "layout" if name in _OF_ROWS else "tile_layout")
            kernel.launch(_grid(self._gpu, num_threads), 256, arguments)

        given = numbering.subgraph.incoming, numbering.lids, numbering.in_degrees, launch
        tiles = tiled_edges(*given, tiling)
        if tiles is not None:
            lids = self.take_rows(tiles.renamed.numbers, numbering.lids)
            numbering.rename(lids, tiles.renamed.degrees)
        return tiles

    def _out_degrees(self) -> tuple[Any, NDArray[np.uint32]]:
        """Return the out-edges of each local id, on the device and on the host."""
        import cupy

        if isinstance(self.outgoing, _EdgesOnGpu):
            return self.outgoing.rows.degrees, self.outgoing.degrees_on_host
        if self.is_symmetric:
            return self.in_degrees, self.numbering.in_degrees
        degrees = np.empty(self.num_owned, np.uint32)
        degrees[self.numbering.lids_on_host] = self.numbering.subgraph.out_degrees
        return cupy.asarray(degrees), degrees

    def _by_source(self, edges: EdgeList) -> _EdgesOnGpu:
        """Lay edges out whose sources may be ghosts; local ids of no vertex get empty rows."""
        import cupy

        unused = np.ones(self.num_lids, dtype=np.bool_)
        unused[self.numbering.lids_on_host] = False
        lids = np.concatenate([self.numbering.lids_on_host, np.flatnonzero(unused).astype(np.uint32)])
        filled = np.full(self.num_lids + 1, edges.offsets[-1], dtype=np.uint64)
        filled[: edges.offsets.size] = edges.offsets
        degrees = np.empty(self.num_lids, dtype=np.uint32)
        degrees[lids] = np.diff(filled).astype(np.uint32)
        rows = lay_out(degrees, in_slices=False)
        on_host = EdgeList(filled, edges.ends, edges.columns)
        return _EdgesOnGpu(on_host, rows, cupy.asarray(lids), self._gpu, False)

    def list_offsets(self) -> Any:
        """Return where each vertex's list of messages begins, one slot an in-edge, [num_owned + 1], uint64."""
        return _offsets_of(self.numbering.in_degrees)

    def take_rows(self, values: Any, order: Any) -> Any:
        """Return some rows of an array on the device, [rows] or [rows, length], as another.

        Args:
            values: The array, in one piece.
            order: The numbers of the rows, uint32.
        """
        import cupy

        found = cupy.empty((order.size, *values.shape[1:]), dtype=values.dtype)
        if order.size and values[:1].size:
            length = np.uint64(values[:1].size)
            kernel = _layout_kernel(f"take_rows_{values.itemsize * 8}_thread_mapped", self._gpu)
            given = values, order, np.uint64(order.size), length, found
            kernel.launch(_grid(self._gpu, found.size), 256, given)
        return found

    @functools.cached_property
    def walked(self) -> WalkedRows:
        """The out-edges as compute() walks them; of a partition that has them."""
        import cupy

        def launch(name: str, num_threads: int, *arguments: Any) -> None:
            _layout_kernel(name, self._gpu).launch(_grid(self._gpu, num_threads), 256, arguments)

        return WalkedRows(cupy, self.numbering, check_fits, KernelMoves(launch))

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what is made at its first use and kept as long as the graph is."""
        if name not in self._arrays:
            self._arrays[name] = make()
        return self._arrays[name]

    def forget(self, name: str) -> None:
        """Drop what `once` made, if it did: the next use makes it anew."""
        self._arrays.pop(name, None)


def _offsets_of(degrees: NDArray[np.uint32]) -> Any:
    import cupy

    offsets = np.zeros(degrees.size + 1, dtype=np.uint64)
    np.cumsum(degrees, out=offsets[1:], dtype=np.uint64)
    return cupy.asarray(offsets)


def _grid(gpu: Gpu, num_threads: int) -> int:
    return max(1, min(gpu.num_sms * 16, -(-num_threads // 256)))


class _EdgesOnGpu:
    """Edges at their positions.

    Sorted by the local id of the other end, edges of neighbouring lanes read records that lie together, the most read
    ones first. Where the order of in-edges means something, it is kept.

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
        check_fits(
            {
                "edges": 4 * rows.num_positions,
                "laying them out": edges.ends.size * (SORTING if sorts_rows else 4) + edges.offsets.nbytes,
            }
        )
        self.ends = cupy.zeros(max(rows.num_positions, 1), dtype=cupy.uint32)
        self._columns: dict[str, Any] = {}
        if sorts_rows:
            keys = self._keys()
            keys.sort()
            self._move_sorted("place_sorted_ends", keys, self.ends)
        else:
            ends = send(edges.ends.astype(np.uint32, copy=False))
            self._launch("place_ends", lids, cupy.asarray(edges.offsets), ends, self.ends)

    def column(self, name: str) -> Any:
        """Return an edge column, by position; laid out at its first use."""
        import cupy

        if name not in self._columns:
            (values,) = columns_of(self._edges, (name,))
            check_fits(
                {
                    f"edge column {name}": values.dtype.itemsize * self.rows.num_positions,
                    "laying it out": values.size * (ORDERING if self._sorts_rows else values.dtype.itemsize),
                }
            )
            moved = cupy.zeros(max(self.rows.num_positions, 1), dtype=values.dtype)
            if values.strides == (0,):
                fill_with(moved, values[:1].tobytes() or b"\0")
            elif self._sorts_rows:
                order = cupy.argsort(self._keys(), kind="stable")
                what = f"place_sorted_column_{values.dtype.itemsize * 8}"
                self._move_sorted(what, order, send(values), moved)
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

    def structure(self) -> Any:
        """Return what kernels take."""
        filled = np.zeros((), dtype=EDGES)
        rows = self.rows
        arrays = {"offsets": rows.offsets, "slices": rows.slices, "ends": self.ends, "degrees": rows.degrees}
        for name, array in arrays.items():
            filled[name] = array.data.ptr
        filled["num_csr_rows"], filled["num_rows"] = rows.num_csr_rows, rows.degrees.size
        return filled

    def _keys(self) -> Any:
        """Return for each edge the local ids of its row and of its other end, as one number."""
        import cupy

        ends = send(self._edges.ends.astype(np.uint32, copy=False))
        keys = cupy.empty(ends.size, dtype=cupy.uint64)
        self._launch("make_keys", self._lids, cupy.asarray(self._edges.offsets), ends, keys)
        return keys

    def _move_sorted(self, what: str, *arrays: Any) -> None:
        """Bring what has the order of keys to its positions."""
        self._launch(what, _offsets_of(self.degrees_on_host), *arrays)

    def _launch(self, what: str, *arrays: Any) -> None:
        kernel = _layout_kernel(f"{what}_warp_mapped", self._gpu)
        blocks = max(1, min(self._gpu.num_sms * 16, self.rows.degrees.size // 8))
        kernel.launch(blocks, 256, (self.structure(), *arrays))


_OF_ROWS = ("make_keys_warp_mapped", "take_rows_32_thread_mapped")
"""What tiles take of `layout.cu`."""


@functools.cache
@spent_on("compile")
def _layout_kernel(name: str, gpu: Gpu, file: str = "layout") -> Kernel:
    from sigps.device.linking import link_kernel

    return Module(link_kernel(file, gpu.arch)).kernel(name)


_on_gpu: weakref.WeakKeyDictionary[Subgraph, dict[Any, GpuGraph]] = weakref.WeakKeyDictionary()


def graph_on_gpu(subgraph: Subgraph, gpu: Gpu, *, sorts_rows: bool, tiling: Tiling | None = None) -> GpuGraph:
    """Return a partition's edges on a GPU; laid out once, and dropped with the partition.

    Args:
        subgraph: The partition.
        gpu: The GPU; the current one.
        sorts_rows: Whether the order of in-edges means nothing, so that the faster one may be taken.
        tiling: How to lay in-edges out in tiles, where that pays; None: in rows.
    """
    known = _on_gpu.setdefault(subgraph, {})
    key = sorts_rows if tiling is None else tiling
    if key not in known:
        made = GpuGraph(subgraph, gpu, sorts_rows=sorts_rows, tiling=tiling)
        if tiling is not None and made.tiles is None:  # it does not pay
            made = known.setdefault(sorts_rows, made)
        known[key] = made
    return known[key]


def ids_fit_32_bits(subgraph: Subgraph) -> bool:
    """Return whether every id that compute() sees fits an int32."""
    if subgraph.ids.size == 0:
        return subgraph.num_owned <= 2**31
    return bool(subgraph.ids.min() > -(2**31) and subgraph.ids.max() < 2**31)
