"""The layout of a partition's edges on a GPU: rows in descending order of their degree (`kernels/edges.cuh`).

The functions take NumPy or CuPy arrays and return the like. Ids before are those of the partition (lid); ids
after are places in the new order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BLOCK_DEGREE", "WARP_DEGREE", "Rows", "place", "sorted_by_degree"]

WARP_DEGREE = 192
"""Rows of more edges than this are walked by a warp each, the others by a lane."""

BLOCK_DEGREE = 4096
"""Rows of more edges than this are walked by a block."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Where each row's edges lie.

    Attributes:
        degrees: [num_rows], uint32.
        offsets: [num_heavy + 1], uint64.
        slices: [num_slices + 1], uint64.
        num_heavy: Rows that lie in one piece; a multiple of 32.
        num_block_rows: Those of them that are walked by a block each; a multiple of 32.
        num_positions: Places for edges, padding among them.
    """

    degrees: Any
    offsets: Any
    slices: Any
    num_heavy: int
    num_block_rows: int
    num_positions: int

    @property
    def nbytes(self) -> int:
        return int(self.degrees.nbytes + self.offsets.nbytes + self.slices.nbytes)


def sorted_by_degree(xp: Any, degrees: Any) -> Any:
    """Return the new order: `order[place]` is a lid. Rows of one degree keep theirs."""
    largest = int(degrees.max()) if degrees.size else 0
    return xp.argsort(largest - degrees.astype(xp.int64), kind="stable")


def place(xp: Any, degrees: Any, *, in_slices: bool = True) -> Rows:
    """Lay rows out.

    Args:
        xp: NumPy or CuPy.
        degrees: [num_rows]; descending where rows go into slices.
        in_slices: Whether light rows are interleaved; otherwise every row lies in one piece.
    """
    num_rows = degrees.size
    degrees = degrees.astype(xp.uint32)
    heavy = _up_to_warps(int((degrees > WARP_DEGREE).sum())) if in_slices else _up_to_warps(num_rows)
    blocks = _up_to_warps(int((degrees > BLOCK_DEGREE).sum())) if in_slices else 0
    padded = xp.zeros(max(heavy, _up_to_warps(num_rows)), dtype=xp.uint64)
    padded[:num_rows] = degrees
    offsets = xp.zeros(heavy + 1, dtype=xp.uint64)
    xp.cumsum(padded[:heavy], out=offsets[1:])
    widths = padded[heavy:].reshape(-1, 32).max(axis=1) if padded.size > heavy else padded[:0]
    slices = xp.zeros(widths.size + 1, dtype=xp.uint64)
    xp.cumsum(widths * np.uint64(32), out=slices[1:])
    slices += offsets[-1]
    return Rows(degrees, offsets, slices, heavy, blocks, int(slices[-1]))


def _up_to_warps(count: int) -> int:
    return -(-count // 32) * 32
