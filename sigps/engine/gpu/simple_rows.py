"""The simple graph in which triangles are counted, and how that work is cut (`kernels/cuda/triangles.cu`).

The functions take NumPy or CuPy arrays and return the like. Vertices are numbered in descending order of their
degree, edges in both directions together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.engine.gpu.numbering import sorted_by_degree

__all__ = [
    "COUNTED",
    "Counting",
    "SimpleRows",
    "Tasks",
    "bytes_while_copied",
    "bytes_while_counted",
    "cut",
    "numbered",
    "simple_rows",
]

COUNTED = 33
"""The most bytes an edge to make the graph simple: keys, what sorts or compares them, and the simple graph."""


@dataclass(frozen=True)
class Counting:
    """The schedule of `kernels/cuda/triangles.cu`.

    Attributes:
        threads: Threads of a block.
        blocks_per_sm: Blocks that a multiprocessor must be able to hold.
        lanes: Lanes that share a row.
        loads: Reads that each of them has under way.
        bitmap: Numbers that a bitmap in shared memory covers; a multiple of 32.
        keys: Lower neighbours of a task at most.
        chunk: Higher neighbours of a task at most.
        block_mapped: Higher neighbours from which on a vertex is block-mapped; others are warp-mapped.
    """

    threads: int = 256
    blocks_per_sm: int = 8
    lanes: int = 8
    loads: int = 4
    bitmap: int = 1 << 16
    keys: int = 2048
    chunk: int = 1024
    block_mapped: int = 64

    def macros(self, *, directed: bool) -> dict[str, str]:
        """Return what the kernels are compiled with."""
        return {
            "SIGPS_DIRECTED": str(int(directed)),
            "SIGPS_THREADS": str(self.threads),
            "SIGPS_BLOCKS": str(self.blocks_per_sm),
            "SIGPS_LANES": str(self.lanes),
            "SIGPS_LOADS": str(self.loads),
            "SIGPS_BITMAP": str(self.bitmap),
            "SIGPS_KEYS": str(self.keys),
            "SIGPS_CHUNK": str(self.chunk),
            "SIGPS_BLOCK_MAPPED": str(self.block_mapped),
        }


@dataclass(frozen=True, eq=False)
class SimpleRows:
    """Each vertex's distinct neighbours, in ascending order of their numbers.

    Attributes:
        offsets: [num_vertices + 1], uint64.
        ends: [offsets[-1]], uint32: twice the neighbour's number, and 1 more where there are arcs both ways.
        num_lower: [num_vertices], uint32: neighbours of a lower number.
    """

    offsets: Any
    ends: Any
    num_lower: Any

    @property
    def num_neighbors(self) -> Any:
        """[num_vertices], int64."""
        return self.offsets[1:].astype(np.int64) - self.offsets[:-1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Tasks:
    """Tasks that blocks take one by one, those of the vertices of the highest degrees first.

    Attributes:
        vertices: [num_tasks], uint32.
        parts: [num_tasks], uint32: part p of a vertex with c chunks of higher neighbours has the chunk p mod c of
            them, and the lower neighbours from p // c * `Counting.keys` on.
    """

    vertices: Any
    parts: Any


def bytes_while_counted(num_vertices: int, num_keys: int) -> int:
    """Return the bytes that a GPU needs free to count links, with tasks and results.

    Args:
        num_vertices: Vertices.
        num_keys: Edges as stored; of a directed graph twice as many.

    >>> bytes_while_counted(1000, 10_000)
    394000
    """
    return COUNTED * num_keys + 64 * num_vertices


def bytes_while_copied(num_vertices: int, num_edges: int) -> int:
    """Return the same where rows are simple as they are; each edge of both ends counts twice.

    >>> bytes_while_copied(1000, 10_000)
    104000
    """
    return 4 * num_edges + 64 * num_vertices


def numbered(xp: Any, degrees: Any) -> Any:
    """Return each vertex's number, uint32: its rank in descending order of degrees; equal ones keep theirs."""
    numbers = xp.empty(degrees.size, dtype=xp.uint32)
    numbers[sorted_by_degree(xp, degrees)] = xp.arange(degrees.size, dtype=xp.uint32)
    return numbers


def simple_rows(xp: Any, keys: Any, num_vertices: int) -> SimpleRows:
    """Drop loops, and all but one of parallel edges.

    Args:
        xp: NumPy or CuPy.
        keys: [edges], uint64, ascending: the number of the row in the upper half; the neighbour's and a bit in the
            lower, which differs between the directions of an edge and is 0 where there are none.
        num_vertices: At most 2**31 - 1.
    """
    if keys.size == 0:
        return _no_edges(xp, num_vertices)
    is_kept = xp.ones(keys.size, dtype=xp.bool_)
    differs = keys[1:] ^ keys[:-1]
    is_kept[1:] = differs > 1
    turned = keys[1:][differs == 1]  # the first arc of each pair that goes the other way than those before
    del differs
    is_kept &= ~_are_loops(xp, keys)
    keys = keys[is_kept]
    turned = turned[~_are_loops(xp, turned)]
    if keys.size == 0:
        return _no_edges(xp, num_vertices)
    ends = keys.astype(xp.uint32)
    ends &= np.uint32(0xFFFFFFFE)
    if turned.size:
        ends[xp.searchsorted(keys, turned - np.uint64(1))] |= np.uint32(1)
    rows = xp.arange(num_vertices + 1, dtype=xp.uint64)
    offsets = xp.searchsorted(keys, rows << np.uint64(32))
    above = xp.searchsorted(keys, (rows << np.uint64(32) | rows << np.uint64(1))[:-1])
    return SimpleRows(offsets.astype(xp.uint64), ends, (above - offsets[:-1]).astype(xp.uint32))


def _no_edges(xp: Any, num_vertices: int) -> SimpleRows:
    offsets = xp.zeros(num_vertices + 1, dtype=xp.uint64)
    return SimpleRows(offsets, xp.zeros(0, dtype=xp.uint32), xp.zeros(num_vertices, dtype=xp.uint32))


def _are_loops(xp: Any, keys: Any) -> Any:
    return (keys >> np.uint64(32)).astype(xp.uint32) == keys.astype(xp.uint32) >> np.uint32(1)


def cut(xp: Any, rows: SimpleRows, counting: Counting) -> Tasks:
    """Cut the work of block-mapped vertices.

    Args:
        xp: NumPy or CuPy.
        rows: The graph.
        counting: How large a task is.
    """
    lower = rows.num_lower.astype(np.int64)
    upper = rows.num_neighbors - lower
    vertices = xp.flatnonzero((upper >= counting.block_mapped) & (lower > 0))
    if vertices.size == 0:
        return Tasks(*(xp.zeros(0, dtype=xp.uint32) for _ in range(2)))
    chunks = -(-upper[vertices] // counting.chunk)
    slices = -(-lower[vertices] // counting.keys)
    begins = xp.zeros(vertices.size + 1, dtype=xp.int64)
    xp.cumsum(chunks * slices, out=begins[1:])
    numbers = xp.arange(int(begins[-1]))
    which = xp.searchsorted(begins, numbers, side="right") - 1
    return Tasks(vertices[which].astype(xp.uint32), (numbers - begins[which]).astype(xp.uint32))
