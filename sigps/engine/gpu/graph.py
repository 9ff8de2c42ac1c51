"""A partition's edges in the memory of a GPU, laid out once and kept as long as the partition is.

In-edges are rows of owned vertices alone; out-edges are rows of owned vertices and ghosts, and lead to owned vertices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import Gpu, check_fits
from sigps.engine.gpu.layout import Rows, lay_out
from sigps.engine.gpu.memory_plan import SORTING, bytes_while_laid_out
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.gpu.placed_edges import PlacedEdges, layout_kernel, offsets_of
from sigps.engine.gpu.pushed_edges import pushed_edges
from sigps.engine.gpu.resident import graphs_on_gpu, make_room
from sigps.engine.gpu.row_moves import KernelMoves
from sigps.engine.gpu.spilled_edges import SpilledEdges
from sigps.engine.gpu.spilling import Spilling
from sigps.engine.gpu.stored_rows import StoredRows
from sigps.engine.gpu.tiles import AddUp, Sources, TiledEdges, number_by_degree, tiled_edges
from sigps.engine.gpu.tiling import Tiling
from sigps.engine.gpu.walked_rows import WalkedRows
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import Subgraph
from sigps.kernels.cuda.lease import HUB_DEGREE

__all__ = [
    "PACKED",
    "PAGELESS",
    "GpuGraph",
    "division_on_gpu",
    "graph_on_gpu",
    "put_rows",
    "take_rows",
]


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
        spilling: How edges are divided between the device and the host; None where all are on the device.
        kept: What runs leave for later runs on the graph.
    """

    incoming: PlacedEdges | TiledEdges
    outgoing: PlacedEdges | TiledEdges

    def __init__(
        self,
        subgraph: Subgraph,
        gpu: Gpu,
        *,
        sorts_rows: bool,
        tiling: Tiling | None = None,
        spilling: Spilling | None = None,
        is_edited: bool = False,
        spare: Sequence[int] = (),
        add_up: AddUp = list,
    ) -> None:
        import cupy

        self._gpu, self.spilling = gpu, spilling
        self.numbering = numbering = self._numbered(subgraph, tiling, spare)
        self.num_owned, self.num_lids = numbering.num_owned, numbering.num_lids
        self.is_symmetric = subgraph.gids is None and subgraph.goes_both_ways
        self.tiles = self._in_tiles(tiling, add_up) if tiling is not None else None
        if self.tiles is not None:
            self.incoming = self.outgoing = self.tiles
            self.in_degrees = cupy.asarray(numbering.in_degrees)
        else:
            rows = lay_out(numbering.in_degrees, in_slices=not is_edited, is_pulled=True)
            self.incoming = self._placed(subgraph.incoming, rows, numbering.lids_on_host, sorts_rows)
            self.outgoing = (
                self.incoming if self.is_symmetric else self._by_source(pushed_edges(subgraph, gpu))
            )
            self.in_degrees = self.incoming.rows.degrees
        self.out_degrees, degrees = self._out_degrees()
        self.num_hubs = int(np.count_nonzero(degrees > HUB_DEGREE)) + (_MORE_HUBS if is_edited else 0)
        if (
            subgraph.gids is not None and self.tiles is None
        ):  # rows of a part have no edges to other partitions
            degrees = self._by_lid(subgraph.out_degrees)
            self.out_degrees = cupy.asarray(degrees)
        self.could_send = int(np.count_nonzero(degrees))
        self.most_out_edges = int(degrees.max(initial=0))
        self.has_narrow_ids = subgraph.ids_fit_32_bits
        self.is_sorted = sorts_rows
        self.kept: dict[Any, Any] = {}
        self._arrays: dict[str, Any] = {}

    @property
    def gpu(self) -> Gpu:
        """The GPU that has it."""
        return self._gpu

    def _numbered(self, subgraph: Subgraph, tiling: Tiling | None, spare: Sequence[int]) -> Numbering:
        """Return local ids; of a whole graph that may lie in tiles they are found on the device."""
        import cupy

        if tiling is None or subgraph.gids is not None or not tiling.may_pay(subgraph.incoming.num_edges):
            return Numbering(cupy, subgraph, spare=spare)
        return Numbering(cupy, subgraph, lambda offsets: number_by_degree(offsets, self._launch_for_tiles))

    def _launch_for_tiles(self, name: str, num_threads: int, *arguments: Any) -> None:
        kernel = layout_kernel(name, self._gpu, "layout" if name in _OF_ROWS else "tile_layout")
        kernel.launch(_grid(self._gpu, num_threads), 256, arguments)

    def _in_tiles(self, tiling: Tiling, add_up: AddUp) -> TiledEdges | None:
        """Lay in-edges out in tiles, and number owned vertices anew; None where that does not pay."""
        numbering = self.numbering
        sources = Sources(numbering.num_lids)
        if (ghosts := numbering.ghosts) is not None:
            sources = Sources(numbering.num_lids, int(ghosts.hot[0]), int(ghosts.hot[-1] - ghosts.hot[0]))

        given = numbering.subgraph.incoming, numbering.lids, self._launch_for_tiles, tiling
        tiles = tiled_edges(*given, sources, add_up)
        if tiles is not None:
            lids = take_rows(self._gpu, tiles.renamed.numbers, numbering.lids)
            numbering.rename(lids, tiles.renamed.degrees)
        return tiles

    def _out_degrees(self) -> tuple[Any, NDArray[np.uint32]]:
        """Return the out-edges of each local id on the device, and of each vertex in some order on the host."""
        import cupy

        if isinstance(self.outgoing, PlacedEdges):
            return self.outgoing.rows.degrees, self.outgoing.degrees_on_host
        degrees = self.numbering.subgraph.out_degrees.astype(np.uint32, copy=False)
        if self.is_symmetric:
            return self.in_degrees, degrees
        return cupy.asarray(self._by_lid(degrees)), degrees

    def _by_lid(self, values: NDArray[Any]) -> NDArray[np.uint32]:
        """Return values of owned vertices, in the host's order, by local id."""
        if self.numbering.is_hosts:
            return values.astype(np.uint32)
        found = np.empty(self.num_owned, np.uint32)
        found[self.numbering.owned_on_host] = values
        return found

    def _by_source(self, edges: EdgeList, *, sorts_rows: bool = False) -> PlacedEdges:
        """Lay edges out whose sources may be ghosts; local ids of no vertex get empty rows."""
        unused = np.ones(self.num_lids, dtype=np.bool_)
        unused[self.numbering.lids_on_host] = False
        lids = np.concatenate([self.numbering.lids_on_host, np.flatnonzero(unused).astype(np.uint32)])
        filled = np.full(self.num_lids + 1, edges.offsets[-1], dtype=np.uint64)
        filled[: edges.offsets.size] = edges.offsets
        degrees = np.empty(self.num_lids, dtype=np.uint32)
        degrees[lids] = np.diff(filled).astype(np.uint32)
        rows = lay_out(degrees, in_slices=False)
        on_host = EdgeList(filled, edges.ends, edges.columns)
        return self._placed(on_host, rows, lids, sorts_rows)

    def _placed(self, edges: EdgeList, rows: Rows, lids: NDArray[np.uint32], sorts_rows: bool) -> PlacedEdges:
        """Bring edges to their positions; `lids` is the local id of each row on the host, and of ends."""
        import cupy

        on_device = self.numbering.lids if lids is self.numbering.lids_on_host else cupy.asarray(lids)
        if self.spilling is None:
            return PlacedEdges(edges, rows, on_device, self._gpu, sorts_rows)
        order = np.empty(lids.size, dtype=np.int64)
        order[lids] = np.arange(lids.size)
        return SpilledEdges(edges, rows, on_device, order, self._gpu, sorts_rows, self.spilling)

    def sort_outgoing(self) -> None:
        """Lay out-edges out anew, of which each row then ascends by local id; of a directed graph without ghosts."""
        self.outgoing = self._by_source(pushed_edges(self.numbering.subgraph, self._gpu), sorts_rows=True)
        self.out_degrees, _ = self._out_degrees()
        self.kept.clear()  # what reads the rows of before

    def list_offsets(self) -> Any:
        """Return where each vertex's list of messages begins, one slot an in-edge, [num_owned + 1], uint64."""
        return offsets_of(self.numbering.in_degrees)

    @property
    def bytes_in_spare_room(self) -> int:
        """What edges take of the device that are on it because there was room."""
        spilled = {id(e): e for e in (self.incoming, self.outgoing) if isinstance(e, SpilledEdges)}
        return sum(edges.divided[0] for edges in spilled.values())

    @property
    def has_values_on_host(self) -> bool:
        """Whether the next run has its values on edges in memory of the host."""
        return False

    @functools.cached_property
    def walked(self) -> WalkedRows | StoredRows:
        """The out-edges as compute() walks them; of a partition that has them."""
        import cupy

        def launch(name: str, num_threads: int, *arguments: Any) -> None:
            layout_kernel(name, self._gpu).launch(_grid(self._gpu, num_threads), 256, arguments)

        return WalkedRows(cupy, self.numbering, check_fits, KernelMoves(launch))

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what is made at its first use and kept as long as the graph is."""
        if name not in self._arrays:
            self._arrays[name] = make()
        return self._arrays[name]

    def forget(self, name: str) -> None:
        """Drop what `once` made, if it did: the next use makes it anew."""
        self._arrays.pop(name, None)


def _grid(gpu: Gpu, num_threads: int) -> int:
    return max(1, min(gpu.num_sms * 16, -(-num_threads // 256)))


def take_rows(gpu: Gpu, values: Any, order: Any) -> Any:
    """Return some rows of an array on the device, [rows] or [rows, length], as another.

    Args:
        gpu: The GPU.
        values: The array, in one piece.
        order: The numbers of the rows, uint32.
    """
    import cupy

    found = cupy.empty((order.size, *values.shape[1:]), dtype=values.dtype)
    if order.size and values[:1].size:
        length = np.uint64(values[:1].size)
        kernel = layout_kernel(f"take_rows_{values.itemsize * 8}_thread_mapped", gpu)
        given = values, order, np.uint64(order.size), length, found
        kernel.launch(_grid(gpu, found.size), 256, given)
    return found


def take_ids(gpu: Gpu, values: Any, order: Any | None, *, finds_none: bool) -> tuple[Any, Any | None]:
    """Return some rows of ids as another array, int64, and which of them are None, bool, where that is asked for.

    Args:
        gpu: The GPU.
        values: The array, [rows] or [rows, length], int32 or int64, in one piece; the least number is None.
        order: The numbers of the rows, uint32; None for all as they are.
        finds_none: Whether that is asked for.
    """
    import cupy

    rows = values.shape[0] if order is None else order.size
    found = cupy.empty((rows, *values.shape[1:]), dtype=cupy.int64)
    is_none = cupy.empty(found.shape, dtype=cupy.bool_) if finds_none else None
    if found.size:
        length = np.uint64(found.size // rows)
        kernel = layout_kernel(f"take_ids_{values.itemsize * 8}_thread_mapped", gpu)
        given = values, _or_null(order), np.uint64(rows), length, found, _or_null(is_none)
        kernel.launch(_grid(gpu, found.size), 256, given)
    return found, is_none


def _or_null(array: Any | None) -> Any:
    return np.uint64(0) if array is None else array


def put_rows(gpu: Gpu, values: Any, order: Any, target: Any) -> None:
    """Write rows of an array on the device to those rows of another that an order names.

    Args:
        gpu: The GPU.
        values: The array, [rows] or [rows, length], in one piece.
        order: The numbers of the rows in `target`, uint32, each once.
        target: Another such array of the same type.
    """
    if values[:1].size:
        length = np.uint64(values[:1].size)
        kernel = layout_kernel(f"put_rows_{values.itemsize * 8}_thread_mapped", gpu)
        given = values, order, np.uint64(values.shape[0]), length, target
        kernel.launch(_grid(gpu, values.size), 256, given)


_MORE_HUBS = 1 << 12
"""Vertices that may become hubs where rows change."""

_OF_ROWS = ("make_keys_warp_mapped", "take_rows_32_thread_mapped")
"""What tiles take of `layout.cu`."""


def graph_on_gpu(
    subgraph: Subgraph,
    gpu: Gpu,
    *,
    sorts_rows: bool,
    tiling: Tiling | None = None,
    spilling: Spilling | None = None,
    is_edited: bool = False,
    spare: Sequence[int] = (),
    add_up: AddUp = list,
) -> GpuGraph:
    """Return a partition's edges on a GPU; laid out once, and dropped with the partition.

    Args:
        subgraph: The partition.
        gpu: The GPU; the current one.
        sorts_rows: Whether the order of in-edges means nothing, so that the faster one may be taken.
        tiling: How to lay in-edges out in tiles, where that pays; None: in rows.
        spilling: How to divide edges between the device and the host; None: all are on the device. Once they are
            divided they stay so for later runs.
        is_edited: Whether rows are going to change: each lies in one piece.
        spare: [ranks]: how many vertices of each rank may become ghosts besides; empty for none.
        add_up: Adds numbers up over the ranks that decide together whether tiles pay.
    """
    known = graphs_on_gpu(subgraph, gpu)
    if spilling is not None:
        key: Any = sorts_rows, "spilled"
        if key not in known:
            known[key] = GpuGraph(subgraph, gpu, sorts_rows=sorts_rows, spilling=spilling)
        return known[key]
    key = sorts_rows if tiling is None else tiling
    is_there = key in known
    if tiling is not None:  # where one rank's has gone, all decide again
        num_ranks, num_there = add_up([1, int(is_there)])
        is_there = num_there == num_ranks
    if not is_there:
        num_edges = subgraph.incoming.num_edges
        sizes = subgraph.num_owned, num_edges * (1 if subgraph.goes_both_ways else 2), 0
        in_rows, in_tiles = bytes_while_laid_out(*sizes), num_edges * (4 + SORTING)
        wanted = bytes_while_laid_out(*sizes, is_fast=True) if tiling is None else in_tiles
        room = make_room(wanted, gpu, besides=(subgraph,), needed=0)
        if room < in_rows:
            room = make_room(in_rows, gpu)
        if tiling is not None and room < in_tiles and add_up is list and not tiling.always:
            key, tiling = sorts_rows, None  # for now: there may be room another time
            if key in known:
                return known[key]
        options: dict[str, Any] = {
            "tiling": tiling,
            "is_edited": is_edited,
            "spare": spare,
            "add_up": add_up,
        }
        made = GpuGraph(subgraph, gpu, sorts_rows=sorts_rows, **options)
        if tiling is not None and made.tiles is None:  # it does not pay
            made = known.setdefault(sorts_rows, made)
        known[key] = made
        return made
    return known[key]


def division_on_gpu(subgraph: Subgraph, gpu: Gpu, *, sorts_rows: bool) -> Spilling | Literal["whole"] | None:
    """Return how the edges of a partition that is laid out on a GPU lie; None where it is not."""
    known = graphs_on_gpu(subgraph, gpu)
    if (spilled := known.get((sorts_rows, "spilled"))) is not None:
        return spilled.spilling
    laid_out = (graph for key, graph in known.items() if key not in (PACKED, PAGELESS))
    return "whole" if any(graph.spilling is None for graph in laid_out) else None


PACKED, PAGELESS = "packed", "without pages"
"""How a `PackedGraph` and a `StreamedGraph` are laid out."""
