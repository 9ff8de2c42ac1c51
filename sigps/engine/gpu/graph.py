"""A partition's edges in the memory of a GPU, laid out once and kept as long as the partition is.

Places of ghosts follow those of owned vertices. In-edges are rows of owned vertices alone; out-edges are rows of
both, and lead to owned vertices.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from sigps.device.cuda import Gpu, Kernel, Module
from sigps.engine.gpu.layout import (
    LOOKING_UP,
    GhostPlaces,
    Rows,
    place,
    place_ghosts,
    rows_of_positions,
    sorted_by_degree,
)
from sigps.engine.gpu.memory_plan import ORDERING, SORTING
from sigps.engine.gpu.run_memory import check_fits
from sigps.engine.gpu.walked_rows import WalkedRows
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import Subgraph, columns_of
from sigps.kernels.cuda.lease import EDGES, HUB_DEGREE, NO_VERTEX

__all__ = ["GpuGraph", "graph_on_gpu"]


class GpuGraph:
    """The edges of a partition, by target and by source, in the order of degrees.

    Attributes:
        places: [num_owned], uint32: where a local id went.
        all_places: The same of owned vertices and ghosts; `places` is the beginning of it.
        num_places: Owned vertices; where there are other partitions, they and all places of ghosts.
        ghosts: Where ghosts went; None where there are no other partitions.
        incoming: In-edges; `columns` names what has been brought along so far.
        outgoing: The same edges by source; the very same object where the graph is symmetric.
        out_degrees: [num_owned], uint32; edges to other partitions count.
        could_send: Owned vertices with an out-edge.
        num_hubs: Vertices with so many out-edges that the whole grid pushes for them.
        most_out_edges: The most that a vertex has.
        has_narrow_ids: Whether every id that compute() sees fits an int32.
        is_sorted: Whether the edges of each row of `incoming` are in ascending order of places.
        kept: What runs leave for later runs on the graph.
    """

    def __init__(self, subgraph: Subgraph, gpu: Gpu, *, sorts_rows: bool) -> None:
        import cupy

        self._subgraph, self._gpu = weakref.ref(subgraph), gpu
        degrees = cupy.asarray(np.diff(subgraph.incoming.offsets).astype(np.uint32))
        order = sorted_by_degree(cupy, degrees)
        places = cupy.empty(degrees.size, dtype=cupy.uint32)
        places[order] = cupy.arange(degrees.size, dtype=cupy.uint32)
        self.num_places, self.all_places = places.size, places
        self.ghosts: GhostPlaces | None = None
        if subgraph.ghost_bounds is not None:
            self.ghosts = place_ghosts(places.size, subgraph.ghost_bounds)
            self.num_places = int(self.ghosts.cold[-1])
            of_ghosts = cupy.asarray(self.ghosts.places(subgraph.ghost_bounds))
            self.all_places = cupy.concatenate([places, of_ghosts])
        self.places = self.all_places[: degrees.size]
        rows = place(cupy, degrees[order])
        self.incoming = _PlacedEdges(subgraph.incoming, rows, self.all_places, gpu, sorts_rows)
        self.is_symmetric = subgraph.gids is None and _is_same(subgraph.incoming, subgraph.pushed)
        self.outgoing = self.incoming if self.is_symmetric else self._placed_by_source(subgraph.pushed)
        self.out_degrees = self.outgoing.rows.degrees
        if subgraph.gids is not None:
            self.out_degrees = cupy.asarray(subgraph.out_degrees.astype(np.uint32))[order]
        self.could_send = int((self.out_degrees > 0).sum())
        self.num_hubs = int((self.outgoing.rows.degrees > HUB_DEGREE).sum())
        self.most_out_edges = int(self.out_degrees.max()) if self.out_degrees.size else 0
        self.has_narrow_ids = _ids_fit_32_bits(subgraph)
        self.is_sorted = sorts_rows
        self.kept: dict[Any, Any] = {}
        self._arrays: dict[str, Any] = {}

    def _placed_by_source(self, edges: EdgeList) -> _PlacedEdges:
        """Lay edges out whose sources may be ghosts; places that are no vertex's get empty rows."""
        import cupy

        unused = cupy.ones(self.num_places, dtype=cupy.bool_)
        unused[self.all_places] = False
        places = cupy.concatenate([self.all_places, cupy.flatnonzero(unused).astype(cupy.uint32)])
        filled = np.full(self.num_places + 1, edges.offsets[-1], dtype=np.uint64)
        filled[: edges.offsets.size] = edges.offsets
        degrees = cupy.empty(self.num_places, dtype=cupy.uint32)
        degrees[places] = cupy.asarray(np.diff(filled).astype(np.uint32))
        rows = place(cupy, degrees, in_slices=False)
        return _PlacedEdges(EdgeList(filled, edges.ends, edges.columns), rows, places, self._gpu, False)

    def places_by_gid(self) -> Any:
        """Return the places of owned vertices in ascending order of their gids."""
        import cupy

        if self._partition().gids is None:
            return self.places
        return self.once("places by gid", lambda: self.places[cupy.asarray(self._partition().by_gid)])

    def places_of_gids(self) -> Any:
        """Return the place of each vertex of the whole graph, [num_vertices] by gid; NO_VERTEX for those of others."""
        import cupy

        def make() -> Any:
            partition = self._partition()
            check_fits({"where vertices are": 4 * partition.num_vertices})
            places = cupy.full(partition.num_vertices, NO_VERTEX, dtype=cupy.uint32)
            places[cupy.asarray(partition.owned_gids)] = self.places
            return places

        return self.once("places of gids", make)

    def ids(self, narrow: bool) -> Any:
        """Return the ids that compute() sees, [num_places] in the order of places, as int32 or int64."""
        import cupy

        dtype = "int32" if narrow else "int64"

        def make() -> Any:
            ids = cupy.asarray(self._partition().ids)
            by_place = cupy.zeros(self.num_places, dtype=dtype)
            by_place[self.all_places] = (ids if ids.size else cupy.arange(self.num_places)).astype(dtype)
            return by_place

        return self.once(f"ids {dtype}", make)

    def sorted_ids(self) -> tuple[int, int]:
        """Return where the ids that compute() sees lie, ascending, and the places they belong to; 0, 0 for lids."""
        import cupy

        if not self._partition().ids.size:
            return 0, 0
        ids = self.ids(narrow=False)[: self.places.size]
        order = self.once("places by id", lambda: cupy.argsort(ids).astype(cupy.uint32))
        return self.once("ids ascending", lambda: ids[order]).data.ptr, order.data.ptr

    def list_offsets(self) -> Any:
        """Return where each vertex's list of messages begins, one slot an in-edge, [num_owned + 1], uint64."""
        return _offsets_of(self.incoming.rows.degrees)

    @functools.cached_property
    def walked(self) -> WalkedRows:
        """The out-edges as compute() walks them; of a partition that has them."""
        import cupy

        return WalkedRows(cupy, self._partition(), self.places, self.out_degrees, check_fits)

    def _partition(self) -> Subgraph:
        subgraph = self._subgraph()
        assert subgraph is not None
        return subgraph

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what is made at its first use and kept as long as the graph is."""
        if name not in self._arrays:
            self._arrays[name] = make()
        return self._arrays[name]

    def forget(self, name: str) -> None:
        """Drop what `once` made, if it did: the next use makes it anew."""
        self._arrays.pop(name, None)


def _offsets_of(degrees: Any) -> Any:
    import cupy

    offsets = cupy.zeros(degrees.size + 1, dtype=cupy.uint64)
    cupy.cumsum(degrees, out=offsets[1:], dtype=cupy.uint64)
    return offsets


class _PlacedEdges:
    """Edges at their places.

    Sorted by the place of the other end, edges of neighbouring lanes read records that lie together, the often read
    ones first. Where the order of in-edges means something, it is kept.
    """

    def __init__(self, edges: EdgeList, rows: Rows, places: Any, gpu: Gpu, sorts_rows: bool) -> None:
        import cupy

        self.rows = rows
        self._edges, self._places, self._gpu, self._sorts_rows = edges, places, gpu, sorts_rows
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
            self._place_sorted(32, keys.astype(cupy.uint32), self.ends)
        else:
            ends = cupy.asarray(edges.ends.astype(np.uint32, copy=False))
            self._launch("place_ends", places, cupy.asarray(edges.offsets), ends, self.ends)

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
            placed = cupy.zeros(max(self.rows.num_positions, 1), dtype=values.dtype)
            if values.strides == (0,):
                placed.fill(values[0] if values.size else 0)
            elif self._sorts_rows:
                order = cupy.argsort(self._keys(), kind="stable")
                self._place_sorted(values.dtype.itemsize * 8, cupy.asarray(values)[order], placed)
            else:
                offsets = cupy.asarray(self._edges.offsets)
                what = f"place_column_{values.dtype.itemsize * 8}"
                self._launch(what, self._places, offsets, cupy.asarray(values), placed)
            self._columns[name] = placed
        return self._columns[name]

    @functools.cached_property
    def targets(self) -> Any:
        """The row of each position, as `rows_of_positions` tells it; laid out at its first use."""
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
        filled["num_csr_rows"], filled["num_rows"] = rows.num_heavy, rows.degrees.size
        return filled

    def _keys(self) -> Any:
        """Return for each edge the place of its row, and of its other end, as one number."""
        import cupy

        ends = cupy.asarray(self._edges.ends.astype(np.uint32, copy=False))
        keys = cupy.empty(ends.size, dtype=cupy.uint64)
        self._launch("make_keys", self._places, cupy.asarray(self._edges.offsets), ends, keys)
        return keys

    def _place_sorted(self, bits: int, values: Any, placed: Any) -> None:
        """Bring values that have the order of keys to their places."""
        import cupy

        places = cupy.arange(self.rows.degrees.size, dtype=cupy.uint32)
        self._launch(f"place_column_{bits}", places, _offsets_of(self.rows.degrees), values, placed)

    def _launch(self, what: str, *arrays: Any) -> None:
        kernel = _layout_kernel(f"{what}_warp_mapped", self._gpu)
        blocks = max(1, min(self._gpu.num_sms * 16, self.rows.degrees.size // 8))
        kernel.launch(blocks, 256, (self.structure(), *arrays))


@functools.cache
def _layout_kernel(name: str, gpu: Gpu) -> Kernel:
    from sigps.compiler.cuda.compile import link_plain

    return Module(link_plain("layout", gpu.arch)).kernel(name)


def _is_same(a: EdgeList, b: EdgeList) -> bool:
    return a.ends is b.ends or (
        a.ends.size > 0
        and a.ends.shape == b.ends.shape
        and a.ends.ctypes.data == b.ends.ctypes.data
        and a.offsets.ctypes.data == b.offsets.ctypes.data
    )


_on_gpu: weakref.WeakKeyDictionary[Subgraph, dict[bool, GpuGraph]] = weakref.WeakKeyDictionary()


def graph_on_gpu(subgraph: Subgraph, gpu: Gpu, *, sorts_rows: bool) -> GpuGraph:
    """Return a partition's edges on a GPU; laid out once, and dropped with the partition.

    Args:
        subgraph: The partition.
        gpu: The GPU; the current one.
        sorts_rows: Whether the order of in-edges means nothing, so that the faster one may be taken.
    """
    known = _on_gpu.setdefault(subgraph, {})
    if sorts_rows not in known:
        known[sorts_rows] = GpuGraph(subgraph, gpu, sorts_rows=sorts_rows)
    return known[sorts_rows]


def _ids_fit_32_bits(subgraph: Subgraph) -> bool:
    if subgraph.ids.size == 0:
        return subgraph.num_owned <= 2**31
    return bool(subgraph.ids.min() >= -(2**31) and subgraph.ids.max() < 2**31)
