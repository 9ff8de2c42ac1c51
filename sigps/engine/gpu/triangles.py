"""What a graph looks like around each vertex (`graph/measures/neighbourhood.py`), counted on a GPU."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import Gpu, Kernel, Module, check_fits
from sigps.device.transfers import bring_small
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.simple_rows import (
    Counting,
    SimpleRows,
    bytes_while_copied,
    bytes_while_counted,
    cut,
    numbered,
    simple_rows,
)
from sigps.errors import DeviceError
from sigps.kernels.cuda.abi import structure
from sigps.kernels.cuda.lease import EDGES

__all__ = ["Around", "count_around", "count_share"]

_MOST_VERTICES = 2**31 - 1
_WARP_MAPPED_THREADS = 256


@dataclass(frozen=True, eq=False)
class Around:
    """Measures of vertices, in GPU memory.

    Attributes:
        num_neighbors: [num_vertices], int64.
        neighbor_links: [num_vertices], int64.
    """

    num_neighbors: Any
    neighbor_links: Any


def count_around(graph: GpuGraph, gpu: Gpu, *, directed: bool, counting: Counting | None = None) -> Around:
    """Count for a graph that one GPU has, by local id; its edges are read where they are.

    Time is that of reading, for each edge from a higher to a lower degree, the row of the lower up to the higher:
    O(m sqrt(m)) at most.

    Args:
        graph: The graph.
        gpu: The GPU; the current one.
        directed: Whether an edge is one arc.
        counting: The schedule.

    Raises:
        DeviceError: If the GPU has no memory for it; it names the bytes.
    """
    edges, numbers = _edges_of(graph, directed)
    return _counted(edges, numbers, gpu, counting or Counting())


def count_share(
    gpu: Gpu,
    offsets: NDArray[np.uint64],
    targets: NDArray[Any],
    *,
    directed: bool,
    share: int,
    num_shares: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count a share of the links of a graph whose rows lie on the host; other GPUs count the others.

    Args:
        gpu: The GPU; the current one.
        offsets: [num_vertices + 1] of the out-edges of vertices.
        targets: [edges].
        directed: Whether an edge is one arc.
        share: Which.
        num_shares: Of how many.

    Returns:
        Every vertex's neighbours, all of them, and its links, those of the share.

    Raises:
        DeviceError: If the GPU has no memory for it; it names the bytes.
    """
    import cupy

    check_fits({"edges": offsets.nbytes + 4 * targets.size})
    ends = cupy.asarray(targets.astype(np.uint32, copy=False))
    degrees = cupy.asarray(np.diff(offsets).astype(np.int64))
    rows = np.zeros((), dtype=EDGES)  # all in one piece
    before, widths = cupy.asarray(offsets), degrees.astype(cupy.uint32)
    for name, array in {"offsets": before, "ends": ends, "degrees": widths}.items():
        rows[name] = array.data.ptr
    rows["num_csr_rows"] = rows["num_rows"] = degrees.size
    if directed and ends.size:
        degrees += cupy.bincount(ends, minlength=degrees.size)
    edges = _Edges(rows, before, directed, False)
    found = _counted(edges, numbered(cupy, degrees), gpu, Counting(), share, num_shares)
    return cupy.asnumpy(found.num_neighbors), cupy.asnumpy(found.neighbor_links)


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges on the GPU.

    Attributes:
        rows: What kernels take (`EDGES`).
        offsets: [num_rows + 1], uint64: edges of the rows before.
        directed: Whether an edge is one arc.
        are_sorted: Whether rows and ends are their own numbers, and the ends of each row ascend.
    """

    rows: Any
    offsets: Any
    directed: bool
    are_sorted: bool


def _edges_of(graph: GpuGraph, directed: bool) -> tuple[_Edges, Any]:
    """Return the edges that a GPU has, and the numbers of their ends."""
    import cupy

    degrees = graph.incoming.rows.degrees
    numbers = cupy.arange(degrees.size, dtype=cupy.uint32)
    if directed:  # local ids follow the in-degrees alone
        numbers = numbered(cupy, degrees.astype(cupy.int64) + graph.out_degrees)
    offsets = cupy.zeros(degrees.size + 1, dtype=cupy.uint64)
    cupy.cumsum(degrees, dtype=cupy.uint64, out=offsets[1:])  # a core takes 95 ms for 16 M vertices
    are_sorted = graph.is_sorted and not directed
    return _Edges(graph.incoming.structure(), offsets, directed, are_sorted), numbers


def _counted(
    edges: _Edges, numbers: Any, gpu: Gpu, counting: Counting, share: int = 0, num_shares: int = 1
) -> Around:
    import cupy

    rows = _made_simple(edges, numbers, gpu, counting)
    links = _links(rows, gpu, counting, directed=edges.directed, share=share, num_shares=num_shares)
    arcs = links.astype(cupy.int64) * (1 if edges.directed else 2)
    if edges.are_sorted:  # their ends are the numbers
        return Around(rows.num_neighbors, arcs)
    return Around(rows.num_neighbors[numbers], arcs[numbers])


def _made_simple(edges: _Edges, numbers: Any, gpu: Gpu, counting: Counting) -> SimpleRows:
    import cupy

    n, num_keys = numbers.size, int(edges.offsets[-1]) * (2 if edges.directed else 1)
    if n > _MOST_VERTICES:
        raise DeviceError(
            f"a GPU counts the links among neighbours of at most {_MOST_VERTICES:,} vertices, not of {n:,}; "
            "use device='cpu'"
        )
    if edges.are_sorted:
        found = _copied(edges, n, num_keys, gpu, counting)
        if found is not None:
            return found
    check_fits({"counting links": bytes_while_counted(n, num_keys)})
    keys = cupy.empty(num_keys, dtype=cupy.uint64)
    list_arcs = _kernels(gpu, edges.directed, counting).list_arcs
    list_arcs.launch(gpu.num_sms * 16, 256, (edges.rows, edges.offsets, numbers, keys))
    if num_keys and not edges.are_sorted:
        keys.sort()
    return simple_rows(cupy, keys, n)


def _copied(
    edges: _Edges, num_vertices: int, num_edges: int, gpu: Gpu, counting: Counting
) -> SimpleRows | None:
    """Return the rows as they are where they are simple: no keys are made, which take eight times their bytes."""
    import cupy

    check_fits({"counting links": bytes_while_copied(num_vertices, num_edges)})
    ends, num_lower = (cupy.empty(count, dtype=cupy.uint32) for count in (num_edges, num_vertices))
    num_wrong = cupy.empty(1, dtype=cupy.uint64)
    num_wrong.data.memset_async(0, 8)
    copy_rows = _kernels(gpu, edges.directed, counting).copy_rows
    copy_rows.launch(gpu.num_sms * 16, 256, (edges.rows, edges.offsets, ends, num_lower, num_wrong))
    is_simple = not bring_small(num_wrong.data.ptr, 8).view(np.uint64)[0]
    return SimpleRows(edges.offsets, ends, num_lower) if is_simple else None


def _links(
    rows: SimpleRows, gpu: Gpu, counting: Counting, *, directed: bool, share: int = 0, num_shares: int = 1
) -> Any:
    """Return a share of the links by number, uint64; of an undirected graph half of them."""
    import cupy

    kernels, n = _kernels(gpu, directed, counting), rows.num_lower.size
    tasks = cut(cupy, rows, counting)
    vertices, parts = (cupy.ascontiguousarray(a[share::num_shares]) for a in (tasks.vertices, tasks.parts))
    links = cupy.zeros(n, dtype=cupy.uint64)
    next_task = cupy.zeros(1, dtype=cupy.uint32)
    graph = np.zeros((), dtype=structure("SimpleRows").dtype)
    for name in ("offsets", "ends", "num_lower"):
        graph[name] = getattr(rows, name).data.ptr
    graph["num_vertices"] = n
    of_blocks = graph, vertices, parts, np.uint32(vertices.size), next_task, links
    blocks = gpu.num_sms * kernels.blocks_per_sm
    kernels.count_block_mapped.launch(blocks, counting.threads, of_blocks)
    of_warps = graph, np.uint32(share), np.uint32(num_shares), links
    kernels.count_warp_mapped.launch(gpu.num_sms * 16, _WARP_MAPPED_THREADS, of_warps)
    return links


@dataclass(frozen=True)
class _Kernels:
    list_arcs: Kernel
    copy_rows: Kernel
    count_block_mapped: Kernel
    count_warp_mapped: Kernel
    blocks_per_sm: int


@functools.cache
def _kernels(gpu: Gpu, directed: bool, counting: Counting) -> _Kernels:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("triangles", gpu.arch, counting.macros(directed=directed)))
    block_mapped = module.kernel("count_block_mapped")
    return _Kernels(
        module.kernel("list_arcs_warp_mapped"),
        module.kernel("copy_rows_warp_mapped"),
        block_mapped,
        module.kernel("count_warp_mapped"),
        block_mapped.blocks_per_sm(counting.threads),
    )
