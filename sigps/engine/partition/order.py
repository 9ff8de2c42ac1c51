"""The order of a rank's part of an undirected graph: owned vertices, ghosts, and edges by both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import Gpu, Kernel, Module, free_bytes
from sigps.device.linking import link_kernel
from sigps.device.transfers import bring, send
from sigps.engine.partition.edge_list import EdgeList

__all__ = ["PartOrder", "order_of_part", "order_on_gpu"]

MoveRows = Callable[[Any, Any, Any, Any], Any]
"""Brings values of edges into another order of rows, of where these begin before, their order, and where after."""


class PartOrder(NamedTuple):
    """How a part lies; arrays of NumPy, or of CuPy while it is found.

    Attributes:
        by_degree: [num_owned], int64: which owned vertex, by gid, has each local id: in descending order of degrees,
            equal ones in that of gids.
        ghosts: [num_ghosts], int64: their gids, each rank's together, in descending order of their edges here.
        ghost_bounds: [ranks + 1], int64: where those of each rank begin.
        local_of: [num_vertices], uint32: the local id of each vertex of the part.
        ends: [edges], uint32: the local ids of the ends of edges, by row in the order of local ids; None where they
            were not brought there.
    """

    by_degree: Any
    ghosts: Any
    ghost_bounds: Any
    local_of: Any
    ends: Any


def order_of_part(xp: Any, offsets: Any, ends: Any, bounds: Any, rank: int, move_rows: MoveRows) -> PartOrder:
    """Find how a part lies: what `subgraph` finds on cores.

    Args:
        xp: NumPy or CuPy.
        offsets: [num_owned + 1], uint64: where rows of owned vertices begin.
        ends: [edges], uint32: gids.
        bounds: [ranks + 1], int64: where the gids of each rank begin.
        rank: The rank.
        move_rows: Brings ends into another order of rows.
    """
    first, num_owned = int(bounds[rank]), offsets.size - 1
    degrees = xp.diff(offsets).astype(xp.uint32)
    by_degree = xp.argsort(~degrees, kind="stable")
    local_of = xp.zeros(int(bounds[-1]), dtype=xp.uint32)
    uses = xp.bincount(ends, minlength=local_of.size)
    uses[first : first + num_owned] = 0
    ghosts = xp.flatnonzero(uses)
    owners = xp.searchsorted(bounds, ghosts, side="right") - 1
    keys = (owners.astype(xp.uint64) << xp.uint64(32)) + (
        xp.uint64(0xFFFFFFFF) - uses[ghosts].astype(xp.uint64)
    )
    del uses
    ghosts = ghosts[xp.argsort(keys, kind="stable")]
    ghost_bounds = xp.zeros(bounds.size, dtype=xp.int64)
    ghost_bounds[1:] = xp.cumsum(xp.bincount(owners, minlength=bounds.size - 1))
    del keys, owners
    local_of[first + by_degree] = xp.arange(num_owned, dtype=xp.uint32)
    local_of[ghosts] = xp.arange(num_owned, num_owned + ghosts.size, dtype=xp.uint32)
    after = xp.zeros(offsets.size, dtype=xp.uint64)
    after[1:] = xp.cumsum(degrees[by_degree], dtype=xp.uint64)
    moved = move_rows(offsets, by_degree, after, ends)
    return PartOrder(by_degree, ghosts, ghost_bounds, local_of, local_of[moved])


def order_on_gpu(gpu: Gpu, rows: EdgeList, bounds: NDArray[np.int64], rank: int) -> PartOrder | None:
    """Return how a part lies, found on a GPU; None where that has no room for it now.

    With it, parts of kron-26 are built in 5.2 s on two ranks and 2.8 on four, by 16 cores each in 12.7 and 8.5; of
    kron-27 on four in 10.5, not 25.7 (NVIDIA H200).

    Args:
        gpu: The GPU.
        rows: The rows of owned vertices, with gids as ends.
        bounds: As `order_of_part` takes them.
        rank: The rank.
    """
    import cupy

    num_edges, num_vertices = rows.ends.size, int(bounds[-1])
    needed = _BYTES_AN_EDGE * num_edges + _BYTES_A_VERTEX * num_vertices
    if rows.ends.dtype != np.uint32 or num_edges < _FEW_EDGES:
        return None
    with cupy.cuda.Device(gpu.ordinal):
        if free_bytes(needed) < needed:
            return None
        try:
            return _found_on(gpu, rows, bounds, rank)
        except MemoryError:  # a rank on the same GPU has taken what was free
            return None
        finally:
            cupy.get_default_memory_pool().free_all_blocks()


def _found_on(gpu: Gpu, rows: EdgeList, bounds: NDArray[np.int64], rank: int) -> PartOrder:
    import cupy

    def move_rows(before: Any, order: Any, after: Any, values: Any) -> Any:
        moved, num_rows = cupy.empty_like(values), order.size
        given = before, after, order, np.uint64(num_rows), np.uint64(1), np.uint8(False), values, moved
        _mover(gpu).launch(max(1, min(gpu.num_sms * 16, num_rows // 8)), 256, given)
        return moved

    found = order_of_part(cupy, send(rows.offsets), send(rows.ends), cupy.asarray(bounds), rank, move_rows)
    return PartOrder(*(bring(array, np.dtype(array.dtype.name)) for array in found))


_FEW_EDGES = 1 << 20
"""Of fewer, cores find it in less time than the kernel takes to load."""

_BYTES_AN_EDGE, _BYTES_A_VERTEX = 12, 40
"""At most, while it is found: ends three times, and of vertices counts, keys and orders."""


@functools.cache
def _mover(gpu: Gpu) -> Kernel:
    return Module(link_kernel("layout", gpu.arch)).kernel("move_rows_32_warp_mapped")
