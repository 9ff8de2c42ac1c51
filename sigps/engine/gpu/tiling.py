"""When in-edges go into tiles (`kernels/cuda/edges.cuh`), how large segments are, and who combines which slices.

Pure functions of counts. A pull over tiles reads most records from shared memory: what is left to read from the
second-level cache is one number for each pair of a row and a segment, where a pull over rows reads one for each edge
whose source is not among those that every block keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.adapters import num_cells
from sigps.compiler.cuda.compile import CudaProgram
from sigps.compiler.program import Consumption, EarlyExit

__all__ = [
    "FEWEST_EDGES",
    "LONG_PAIR",
    "NEAR",
    "PIECE",
    "Shares",
    "Tiling",
    "can_tile",
    "choose_tiling",
    "pays",
    "record_bytes_of",
    "segment_size",
    "share_out",
    "shared_bytes_of",
]

LONG_PAIR = 512
"""Pairs of so many edges are combined by warps, piece by piece."""

PIECE = 2048
"""The most edges of a piece."""

NEAR = 45_000
"""About the records of 4 bytes that a block keeps in a pull over rows."""

_LEFT_TO_STATIC = 4096
"""Bytes of shared memory that are left to what kernels declare."""

_MOST_CELLS = 8
"""The most numbers that aggregators have, which a block keeps of each warp."""

FEWEST_EDGES = 8_000_000
"""Edges from which on tiles are laid out."""

_MOST_LEFT = 0.5
"""The most pairs, as a share of the edges whose source no block keeps."""


def choose_tiling(compiled: CudaProgram, *, shared_bytes: int, num_blocks: int) -> Tiling | None:
    """Return how in-edges go into tiles for a program; None where its pulls may read only some of them.

    Args:
        compiled: The program.
        shared_bytes: The shared memory that a block may have.
        num_blocks: Multiprocessors.
    """
    if not can_tile(compiled):
        return None
    return Tiling(segment_size(record_bytes_of(compiled), shared_bytes), num_blocks)


def can_tile(compiled: CudaProgram) -> bool:
    """Return whether a program's pulls always read all in-edges, of records of 1 to 4 words, and inboxes of as many.

    And no edge column: HITS and heat, which read one, take 1.15 times as long over tiles as over rows on kron-22
    (NVIDIA H200, driver 580.159.04).
    """
    program = compiled.program
    combines = program.consumption in (Consumption.COMBINED, Consumption.SINGLE)
    reads_all = program.early_exit is EarlyExit.NEVER and not (
        program.reads_edge_links or program.edge_columns
    )
    is_alone = compiled.defines["SIGPS_BY_TEAM"] == "0" and not any(f.measure for f in program.states)
    record, slots = (int(compiled.defines[f"SIGPS_{row}_BYTES"]) for row in ("RECORD", "SLOTS"))
    has_room = num_cells(program.aggregate_dtypes) <= _MOST_CELLS
    return (
        combines
        and reads_all
        and is_alone
        and has_room
        and program.sends_together
        and record == slots
        and record in (4, 8, 12, 16)
    )


def record_bytes_of(compiled: CudaProgram) -> int:
    """Return the size of a program's records."""
    return int(compiled.defines["SIGPS_RECORD_BYTES"])


def segment_size(record_bytes: int, shared_bytes: int) -> int:
    """Return how many records of a segment fit the shared memory of a block, with their sent bits.

    Args:
        record_bytes: The size of a record.
        shared_bytes: What a block may have.

    >>> [segment_size(record_bytes, 232448) for record_bytes in (4, 8, 16)]
    [55296, 27648, 13312]
    """
    room = (shared_bytes - _LEFT_TO_STATIC) * 8 // (8 * record_bytes + 1)
    return min(63 << 10, room // 1024 * 1024)


def shared_bytes_of(size: int, record_bytes: int) -> int:
    """Return the shared memory that a segment of so many records takes."""
    return size * record_bytes + size // 8


def pays(num_edges: int, num_far: int, num_pairs: int) -> bool:
    """Tell whether a pull over tiles reads so much less from the second-level cache that it is faster.

    Args:
        num_edges: In-edges.
        num_far: Those of them whose source is not among the first `NEAR`.
        num_pairs: Pairs of a row and a segment.
    """
    return num_edges >= FEWEST_EDGES and num_pairs <= _MOST_LEFT * num_far


@dataclass(frozen=True)
class Tiling:
    """How in-edges are to be laid out in tiles.

    Attributes:
        size: Sources of a segment.
        num_shares: Blocks that are resident at once.
        always: Whether also where it does not pay.
    """

    size: int
    num_shares: int
    always: bool = False


@dataclass(frozen=True)
class Cost:
    """What a slice takes beside another, in half lines.

    Attributes:
        line: A line of 32 words.
        slice: A slice.
        piece: A slice that is a piece, more.
        segment: To load a segment.
    """

    line: float = 2.0
    slice: float = 4.0
    piece: float = 6.0
    segment: float = 6000.0


@dataclass(frozen=True, eq=False)
class Shares:
    """Who combines which slices, as `Tiles` has it in `kernels/cuda/edges.cuh`: arrays of uint32.

    Attributes:
        first_tasks: [num_shares + 1].
        segments: [tasks].
        runs: [tasks, 33].
    """

    first_tasks: NDArray[np.uint32]
    segments: NDArray[np.uint32]
    runs: NDArray[np.uint32]


def share_out(
    widths: NDArray[np.int64],
    are_pieces: NDArray[np.bool_],
    segments: NDArray[np.int64],
    num_shares: int,
    cost: Cost | None = None,
) -> Shares:
    """Cut slices into stretches of equal cost, in the order of segments, and each task into runs for 32 warps.

    Args:
        widths: [slices]: lines.
        are_pieces: [slices].
        segments: [slices], ascending.
        num_shares: Blocks that are resident at once.
        cost: What slices take.

    >>> shares = share_out(np.array([4, 4, 4]), np.zeros(3, np.bool_), np.array([0, 0, 1]), 2)
    >>> shares.first_tasks.tolist(), shares.segments.tolist(), shares.runs[:, [0, 32]].tolist()
    ([0, 1, 2], [0, 1], [[0, 2], [2, 3]])
    """
    cost = cost or Cost()
    own = cost.line * widths + cost.slice + cost.piece * are_pieces
    begins = np.ones(widths.size, dtype=np.bool_)
    begins[1:] = segments[1:] != segments[:-1]
    ends = np.cumsum(own + cost.segment * begins)
    share = np.minimum((ends - own / 2) * (num_shares / ends[-1]), num_shares - 1).astype(np.int64)
    begins[1:] |= share[1:] != share[:-1]
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], widths.size)
    first_tasks = np.searchsorted(share[firsts], np.arange(num_shares + 1))
    before = np.append(0.0, np.cumsum(own))
    wanted = before[firsts, None] + (before[lasts] - before[firsts])[:, None] * (np.arange(33) / 32)
    runs = np.searchsorted(before, wanted.ravel()).reshape(wanted.shape)
    runs = np.clip(runs, firsts[:, None], lasts[:, None])
    runs[:, 0], runs[:, 32] = firsts, lasts
    return Shares(first_tasks.astype(np.uint32), segments[firsts].astype(np.uint32), runs.astype(np.uint32))
