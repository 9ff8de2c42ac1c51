"""The layout of a partition's edges on a GPU: rows in descending order of their degree (`kernels/edges.cuh`).

The functions take NumPy or CuPy arrays and return the like. Ids before are those of the partition (lid); ids
after are places in the new order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.kernels.cuda.lease import NO_VERTEX

__all__ = [
    "BLOCK_DEGREE",
    "LOOKING_UP",
    "WARP_DEGREE",
    "GhostPlaces",
    "Rows",
    "edges_back",
    "edges_before",
    "place",
    "place_ghosts",
    "rows_of_positions",
    "sorted_by_degree",
]

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


LOOKING_UP = 64 << 20
"""Bytes that `rows_of_positions` takes for a while, beside what it returns."""


def rows_of_positions(xp: Any, rows: Rows, piece: int = LOOKING_UP // 64) -> Any:
    """Return the row that each position is of, or NO_VERTEX where it is no edge's: [num_positions], uint32.

    Args:
        xp: NumPy or CuPy.
        rows: The layout.
        piece: Positions that are looked up at a time.
    """
    found = xp.full(rows.num_positions, NO_VERTEX, dtype=xp.uint32)
    end_of_heavy = int(rows.offsets[-1])
    for first in range(0, end_of_heavy, piece):
        positions = xp.arange(first, min(first + piece, end_of_heavy), dtype=xp.uint64)
        row = xp.searchsorted(rows.offsets, positions, side="right") - 1
        found[first : first + positions.size] = row.astype(xp.uint32)
    for first in range(end_of_heavy, rows.num_positions, piece):
        positions = xp.arange(first, min(first + piece, rows.num_positions), dtype=xp.uint64)
        at = xp.searchsorted(rows.slices, positions, side="right") - 1
        inside = (positions - rows.slices[at]).astype(xp.int64)
        row = rows.num_heavy + at * 32 + inside % 32
        last = rows.degrees.size - 1
        is_edge = (row <= last) & (inside // 32 < rows.degrees[xp.minimum(row, last)])
        found[first : first + positions.size] = xp.where(is_edge, row, NO_VERTEX).astype(xp.uint32)
    return found


def edges_before(xp: Any, before: Any, after: Any, order: Any) -> Any:
    """Return where each edge stood before rows were brought into another order, [num_edges]; by its new position.

    Args:
        xp: NumPy or CuPy.
        before: [num_rows + 1]: where rows began.
        after: [num_rows + 1]: where they begin now.
        order: [num_rows]: what each row's number was.

    >>> edges_before(np, np.array([0, 2, 3, 6]), np.array([0, 3, 5, 6]), np.array([2, 0, 1])).tolist()
    [3, 4, 5, 0, 1, 2]
    """
    after = after.astype(xp.int64)
    moved = before.astype(xp.int64)[order] - after[:-1]
    positions = xp.arange(int(after[-1]))
    return positions + moved[_row_of(xp, after, positions)]


def edges_back(xp: Any, offsets: Any, targets: Any, rows: Any, gids: Any, num_vertices: int) -> Any:
    """Return the edge back of each edge of an undirected graph, [num_edges]; of parallel ones the first. By search.

    Args:
        xp: NumPy or CuPy.
        offsets: [num_rows + 1]: where rows begin.
        targets: [entries] gids, ascending in each row; those of the edges come first.
        rows: [num_edges]: the row of each edge's target.
        gids: [num_owned]: whose the rows of the edges are.
        num_vertices: Of the whole graph: gids are below it.
    """
    sources = _row_of(xp, offsets.astype(xp.int64), xp.arange(targets.size))
    known = sources * num_vertices + targets
    return xp.searchsorted(known, rows.astype(xp.int64) * num_vertices + gids[sources[: rows.size]])


def _row_of(xp: Any, offsets: Any, positions: Any) -> Any:
    return xp.searchsorted(offsets[1:], positions, side="right")


MOST_HOT = 36864
"""Records that a block keeps near are shared out among owned vertices and the ghosts of each rank."""


@dataclass(frozen=True, eq=False)
class GhostPlaces:
    """Where ghosts go: after the owned vertices, first those of each rank that are read most often, then the rest.

    All begin at multiples of 32, so that a word of bits has ghosts of one rank only.

    Attributes:
        num_hot: [ranks]: how many of each rank's are among the first.
        hot: [ranks + 1]: where these begin, and where the last ones end.
        cold: [ranks + 1]: where the others begin; the last number is how many places there are.
        listed: [ranks + 1]: where a list of each rank's ghosts begins among such lists.
    """

    num_hot: NDArray[np.int64]
    hot: NDArray[np.int64]
    cold: NDArray[np.int64]
    listed: NDArray[np.int64]

    def places(self, bounds: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the place of each ghost, [num_ghosts], in their order."""
        sizes = np.diff(bounds)
        in_group = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
        is_hot = in_group < np.repeat(self.num_hot, sizes)
        begins = np.where(
            is_hot, np.repeat(self.hot[:-1], sizes), np.repeat(self.cold[:-1] - self.num_hot, sizes)
        )
        found: NDArray[np.uint32] = (begins + in_group).astype(np.uint32)
        return found


def place_ghosts(num_owned: int, bounds: NDArray[np.int64], most_hot: int = MOST_HOT) -> GhostPlaces:
    """Lay ghosts out.

    Args:
        num_owned: Owned vertices.
        bounds: [ranks + 1]: rank r's are the ghosts bounds[r] : bounds[r + 1], in descending order of their edges.
        most_hot: What a block can keep near, owned vertices among it.

    >>> bounds = np.array([0, 34, 34, 36])
    >>> found = place_ghosts(40, bounds, most_hot=96)
    >>> found.num_hot.tolist(), found.hot.tolist(), found.cold.tolist()
    ([32, 0, 2], [64, 96, 96, 128], [128, 160, 160, 160])
    >>> found.places(bounds)[[0, 31, 32, 33, 34, 35]].tolist()
    [64, 95, 128, 129, 96, 97]
    """
    sizes = np.diff(bounds).astype(np.int64)
    num_hot = np.minimum(sizes, most_hot // sizes.size // 32 * 32)
    hot = np.cumsum([_up_to_warps(num_owned), *map(_up_to_warps, num_hot.tolist())])
    cold = np.cumsum([hot[-1], *map(_up_to_warps, (sizes - num_hot).tolist())])
    listed = np.cumsum([0, *map(_up_to_warps, sizes.tolist())])
    return GhostPlaces(num_hot, hot, cold, listed)


def _up_to_warps(count: int) -> int:
    return -(-count // 32) * 32
