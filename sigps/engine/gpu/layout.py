"""Where the edges of rows lie on a GPU: rows in descending order of their degree (`kernels/cuda/edges.cuh`).

Rows are laid out on the host, which knows their degrees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.kernels.cuda.lease import EDGES, NO_VERTEX
from sigps.native.kernel import compiled

__all__ = [
    "BLOCK_DEGREE",
    "LONG_DEGREE",
    "LOOKING_UP",
    "Rows",
    "end_of_above",
    "lay_out",
    "lay_out_slices",
    "rows_of_positions",
    "warp_degree",
]

BLOCK_DEGREE = 4096
"""Rows of more edges than this are block-mapped."""

LONG_DEGREE = 192
"""Rows of more edges than this are in one piece in every graph. With messages grouped by key they are a block's: a warp
takes the others wherever they lie, since a block for each of over 32 edges takes 2.4 times as long on cnr-2000."""


THREAD_DEGREE = 64
"""Where every row lies in one piece, rows of more edges than this, when they are laid out, take a warp."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The position of each row's edges.

    Attributes:
        degrees: [num_rows], uint32.
        offsets: [num_csr_rows + 1], uint64.
        slices: [num_slices + 1], uint64.
        num_csr_rows: Rows that lie in one piece (CSR), and not in slices; a multiple of 32.
        num_block_rows: Block-mapped rows among them; a multiple of 32.
        num_long_rows: Rows of more than LONG_DEGREE edges among them; a multiple of 32.
        num_warp_rows: Rows that no thread takes alone; a multiple of 32, and all that lie in one piece, but where
            every row does.
        num_positions: Positions of edges, padding among them.
    """

    degrees: Any
    offsets: Any
    slices: Any
    num_csr_rows: int
    num_block_rows: int
    num_long_rows: int
    num_positions: int
    num_warp_rows: int

    def on_device(self, asarray: Callable[[Any], Any]) -> Rows:
        """Return the same with arrays as this makes them."""
        moved = {name: asarray(getattr(self, name)) for name in ("degrees", "offsets", "slices")}
        return replace(self, **moved)

    def structure(self, ends: Any) -> Any:
        """Return what kernels take of rows on a device (`EDGES`); `ends` by position, None where they stay packed."""
        filled = np.zeros((), dtype=EDGES)
        arrays = {"offsets": self.offsets, "slices": self.slices, "ends": ends, "degrees": self.degrees}
        for name, array in arrays.items():
            filled[name] = 0 if array is None else array.data.ptr
        filled["num_csr_rows"], filled["num_rows"] = self.num_csr_rows, self.degrees.size
        return filled

    @property
    def nbytes(self) -> int:
        return int(self.degrees.nbytes + self.offsets.nbytes + self.slices.nbytes)


def warp_degree(num_edges: int) -> int:
    """Return above how many edges rows are warp-mapped, the others being thread-mapped.

    A thread takes no longer for a row than for an average share of the edges of 2**18 threads, about those of a large
    GPU, but always 32 edges and never over 192. On one NVIDIA H200, beside 192 for all: a superstep of PageRank on
    web-NotreDame, cnr-2000, dblp-2010 and kron-18 takes 0.55, 0.59, 0.43 and 0.71 of the time, SSSP 0.62 to 0.74; at 32
    PageRank on kron-22 and kron-24 takes 1.12 and 1.06.

    >>> [warp_degree(edges) for edges in (0, 10**7, 3 * 10**7, 10**9)]
    [32, 38, 114, 192]
    """
    return min(LONG_DEGREE, max(32, num_edges >> 18))


def lay_out(
    degrees: NDArray[np.uint32],
    *,
    in_slices: bool = True,
    descending: bool = True,
    is_pulled: bool | None = None,
) -> Rows:
    """Lay rows out, on the host.

    Args:
        degrees: [num_rows].
        in_slices: Whether thread-mapped rows are interleaved; otherwise every row lies in one piece.
        descending: Whether degrees are; where rows go into slices and degrees only tend to be, slices are as wide as
            their longest row, and rows before one that is warp-mapped are, too.
        is_pulled: Whether a pull goes along them, so that the first may be block-mapped; None: if some are in slices.
    """
    num_rows = degrees.size
    degrees = degrees.astype(np.uint32, copy=False)
    if not descending:
        assert in_slices
        most = np.zeros(-(-num_rows // 32), dtype=np.uint32)
        _find_most(degrees, most)
        return lay_out_slices(degrees, most, int(degrees.sum(dtype=np.int64)), lambda end: degrees[:end])
    csr_rows = num_rows
    is_pulled = in_slices if is_pulled is None else is_pulled
    if in_slices:
        csr_rows = _num_above(degrees, warp_degree(int(degrees.sum(dtype=np.int64))))
    csr_rows = _up_to_warps(csr_rows)
    blocks, long = (
        _up_to_warps(_num_above(degrees, bound)) if is_pulled else 0 for bound in (BLOCK_DEGREE, LONG_DEGREE)
    )
    widths = degrees[csr_rows::32]  # of a slice's first row, which is its longest
    warps = (
        None if in_slices else min(csr_rows, max(blocks, _up_to_warps(_num_above(degrees, THREAD_DEGREE))))
    )
    return _placed(degrees, degrees[:csr_rows], widths, csr_rows, blocks, long, warps)


def lay_out_slices(
    degrees: Any,
    most: NDArray[np.uint32],
    num_edges: int,
    first_degrees: Callable[[int], NDArray[np.uint32]],
) -> Rows:
    """Lay rows out whose degrees only tend to descend: slices are as wide as their longest row.

    Rows before one that is warp-mapped are warp-mapped, too. O(slices) and rows of many edges.

    Args:
        degrees: [num_rows], which the layout has as they are, on the host or the device.
        most: [slices]: the most edges of each 32 rows.
        num_edges: Of all rows.
        first_degrees: Returns the first so many degrees on the host, or all where there are fewer.
    """
    bounds = warp_degree(num_edges), BLOCK_DEGREE, LONG_DEGREE
    csr_rows, blocks, long = (32 * end_of_above(most, bound) for bound in bounds)
    return _placed(degrees, first_degrees(csr_rows), most[csr_rows // 32 :], csr_rows, blocks, long)


def _placed(
    degrees: Any,
    in_pieces: NDArray[np.uint32],
    widths: NDArray[np.uint32],
    csr_rows: int,
    blocks: int,
    long: int,
    warps: int | None = None,
) -> Rows:
    """Return the layout of rows that lie in pieces and, behind them, of slices of these widths."""
    offsets = np.zeros(csr_rows + 1, dtype=np.uint64)
    np.cumsum(in_pieces, out=offsets[1 : in_pieces.size + 1], dtype=np.uint64)
    offsets[in_pieces.size + 1 :] = offsets[in_pieces.size]
    slices = np.zeros(widths.size + 1, dtype=np.uint64)
    np.cumsum(widths.astype(np.uint64) * np.uint64(32), out=slices[1:])
    slices += offsets[-1]
    return Rows(
        degrees,
        offsets,
        slices,
        csr_rows,
        blocks,
        long,
        int(slices[-1]),
        csr_rows if warps is None else warps,
    )


def _num_above(descending: NDArray[np.uint32], bound: int) -> int:
    return descending.size - int(np.searchsorted(descending[::-1], np.uint32(bound), side="right"))


def end_of_above(counts: NDArray[np.uint32], bound: int) -> int:
    """Return behind which number none is above a bound."""
    above = np.flatnonzero(counts > bound)
    return int(above[-1]) + 1 if above.size else 0


@compiled
def _find_most(degrees: NDArray[np.uint32], most: NDArray[np.uint32]) -> None:
    """Find the largest of each 32 degrees; `most` begins as zeros."""
    for row in range(degrees.size):
        if degrees[row] > most[row // 32]:
            most[row // 32] = degrees[row]


LOOKING_UP = 64 << 20
"""Temporary bytes of `rows_of_positions`, beside what it returns."""


def rows_of_positions(xp: Any, rows: Rows, piece: int = LOOKING_UP // 64) -> Any:
    """Return the row that each position is of, or NO_VERTEX where it is no edge's: [num_positions], uint32.

    Args:
        xp: NumPy or CuPy.
        rows: The layout.
        piece: Positions that are looked up at a time.
    """
    found = xp.full(rows.num_positions, NO_VERTEX, dtype=xp.uint32)
    end_of_csr = int(rows.offsets[-1])
    for first in range(0, end_of_csr, piece):
        positions = xp.arange(first, min(first + piece, end_of_csr), dtype=xp.uint64)
        row = xp.searchsorted(rows.offsets, positions, side="right") - 1
        found[first : first + positions.size] = row.astype(xp.uint32)
    for first in range(end_of_csr, rows.num_positions, piece):
        positions = xp.arange(first, min(first + piece, rows.num_positions), dtype=xp.uint64)
        at = xp.searchsorted(rows.slices, positions, side="right") - 1
        inside = (positions - rows.slices[at]).astype(xp.int64)
        row = rows.num_csr_rows + at * 32 + inside % 32
        last = rows.degrees.size - 1
        is_edge = (row <= last) & (inside // 32 < rows.degrees[xp.minimum(row, last)])
        found[first : first + positions.size] = xp.where(is_edge, row, NO_VERTEX).astype(xp.uint32)
    return found


def _up_to_warps(count: int) -> int:
    return -(-count // 32) * 32
