"""The execution configuration of the GPU engine: how many threads and blocks, as a pure function of counts."""

from __future__ import annotations

__all__ = ["BLOCKS_PER_SM", "THREADS", "num_blocks"]

THREADS = 256
"""Threads of a block."""

BLOCKS_PER_SM = 4
"""Blocks that a multiprocessor must be able to hold: what the compiler may spend registers for."""


def num_blocks(resident: int, num_vertices: int, num_edges: int) -> int:
    """Return how many blocks a lease takes: all that fit at once, and fewer where they would only wait.

    Args:
        resident: Blocks that the device holds at once.
        num_vertices: Vertices of the partition.
        num_edges: Its in-edges.

    >>> num_blocks(396, 100, 1000), num_blocks(396, 4_000_000, 100_000_000)
    (1, 396)
    """
    work = num_vertices + num_edges // 8
    return max(1, min(resident, -(-work // THREADS)))
