"""What in-edges take in tiles (`tiles.py`), counted on the host: to the byte, before they are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.gpu.layout import lay_out
from sigps.engine.gpu.tiling import LONG_PAIR, PIECE, Tiling, share_out
from sigps.native.kernel import compiled

__all__ = ["TileSizes", "measure_tiles"]


@dataclass(frozen=True)
class TileSizes:
    """The sizes of a layout.

    Attributes:
        num_slices: Slices of tiles.
        num_lines: Their lines, of 32 words.
        num_positions: Positions of what is left in rows.
        num_bytes: What tiles and rows take, without edge columns.
    """

    num_slices: int
    num_lines: int
    num_positions: int
    num_bytes: int


def measure_tiles(
    offsets: NDArray[np.uint64],
    sources: NDArray[np.unsignedinteger[Any]],
    lids: NDArray[np.uint32],
    tiling: Tiling,
) -> TileSizes:
    """Return the sizes of the layout of a whole graph, in O(edges) on one core.

    Args:
        offsets: [n + 1] of rows of in-edges.
        sources: [offsets[n]].
        lids: [n]: the number of each vertex in descending order of in-degrees.
        tiling: How they are to be laid out.

    >>> offsets, sources = np.array([0, 3, 4], np.uint64), np.array([0, 1, 1, 0], np.uint32)
    >>> found = measure_tiles(offsets, sources, np.array([0, 1], np.uint32), Tiling(32, 1, 4))
    >>> found.num_slices, found.num_lines, found.num_positions
    (1, 2, 32)
    """
    size = tiling.size
    num_segments = -(-lids.size // size)
    num_pairs, num_left = (np.zeros(lids.size, np.uint32) for _ in range(2))
    lanes = np.zeros((num_segments, LONG_PAIR), np.int64)
    pieces = np.zeros((num_segments, PIECE // 64 + 1), np.int64)
    counts = np.zeros(num_segments, np.int64), np.zeros(num_segments, np.int64)
    _count_edges_of_pairs(
        offsets,
        sources,
        lids,
        size,
        tiling.shortest_pair,
        LONG_PAIR,
        PIECE,
        *counts,
        num_pairs,
        num_left,
        lanes.ravel(),
        pieces.ravel(),
    )
    widths, are_pieces, segments = _slices(lanes, pieces)
    # Rows are numbered anew within their segments, by their pairs.
    order = np.lexsort((np.arange(lids.size), -num_pairs.astype(np.int64), np.arange(lids.size) // size))
    rows = lay_out(num_left[order], descending=False)
    num_slices, num_lines = widths.size, int(widths.sum())
    shares = share_out(widths, are_pieces, segments, tiling.num_shares)
    words = (
        32 * num_slices + num_slices + 1 + num_segments + max(1, 32 * num_lines) + max(1, rows.num_positions)
    )
    of_shares = sum(array.nbytes for array in (shares.first_tasks, shares.segments, shares.runs))
    return TileSizes(num_slices, num_lines, rows.num_positions, rows.nbytes + 4 * words + of_shares)


@compiled
def _count_edges_of_pairs(
    offsets: NDArray[np.uint64],
    sources: NDArray[np.unsignedinteger[Any]],
    lids: NDArray[np.uint32],
    size: int,
    shortest: int,
    long_pair: int,
    piece: int,
    counts: NDArray[np.int64],
    touched: NDArray[np.int64],
    num_pairs: NDArray[np.uint32],
    num_left: NDArray[np.uint32],
    lanes: NDArray[np.int64],
    pieces: NDArray[np.int64],
) -> None:
    """Count the pairs of each row, the ends that they leave in it, and how many pairs and pieces have a width.

    An edge that stays in its row is as good as a pair of its own.

    `lanes` is by segment and edges of a pair, `pieces` by segment and lines; both in one piece.
    """
    for row in range(lids.size):
        found = 0
        for edge in range(offsets[row], offsets[row + 1]):
            segment = lids[sources[edge]] // size
            if counts[segment] == 0:
                touched[found] = segment
                found += 1
            counts[segment] += 1
        pairs = left = found
        for i in range(found):
            segment = touched[i]
            count = counts[segment]
            counts[segment] = 0
            if count < shortest:
                pairs += count - 1
                left += count - 1
            elif count < long_pair:
                lanes[segment * long_pair + count] += 1
            else:
                left -= 1
                while count > 0:
                    of_piece = min(count, piece)
                    pieces[segment * (piece // 64 + 1) + (of_piece + 63) // 64] += 1
                    count -= of_piece
                    left += 1
        num_pairs[lids[row]] = pairs
        num_left[lids[row]] = left


def _slices(
    lanes: NDArray[np.int64], pieces: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Return the width of each slice, whether it is a piece, and its segment, in about their order.

    Pieces of a segment stand here by width, and there by rows.
    """
    widths, are_pieces, segments = [], [], []
    for segment, (of_lanes, of_pieces) in enumerate(zip(lanes, pieces, strict=True)):
        wide = np.repeat(np.arange(of_pieces.size), of_pieces)
        descending = of_lanes[:1:-1]  # shorter ones stay in rows
        ends = np.cumsum(descending)
        firsts = np.arange(0, ends[-1], 32)
        most = lanes.shape[1] - 1 - np.searchsorted(ends, firsts, side="right")
        widths += [wide, (most + 1) // 2]
        are_pieces.append(np.arange(wide.size + most.size) < wide.size)
        segments.append(np.full(wide.size + most.size, segment))
    return np.concatenate(widths), np.concatenate(are_pieces), np.concatenate(segments)
