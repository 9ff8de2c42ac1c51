"""When in-edges go into tiles (`kernels/cuda/edges.cuh`), how large segments are, and who combines which slices.

Pure functions of counts. A pull over tiles reads most records from shared memory: what is left to read from the
second-level cache is one number for each pair of a row and a segment, where a pull over rows reads one for each edge
whose source is not among those that every block keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.adapters import num_cells
from sigps.compiler.cuda.compile import CudaProgram
from sigps.compiler.program import Consumption, EarlyExit, VertexProgram
from sigps.errors import ConfigError
from sigps.native.kernel import compiled

__all__ = [
    "FEWEST_EDGES",
    "LONG_PAIR",
    "MANY_EDGES",
    "NEAR",
    "PIECE",
    "SHORTEST_PAIRS",
    "Shares",
    "Tiles",
    "Tiling",
    "TilingCounts",
    "choose_tiling",
    "count_on_host",
    "find_reason_against",
    "find_tiling_obstacle",
    "plan_tiling",
    "record_bytes_of",
    "segment_size",
    "share_out",
    "shared_bytes_of",
]

Tiles = Literal["auto", "always", "never"]
"""Whether in-edges lie in tiles: where that pays, wherever they can, or not."""

LONG_PAIR = 512
"""Pairs of so many edges are combined by warps, piece by piece."""

PIECE = 2048
"""The most edges of a piece."""

SHORTEST_PAIRS = {4: 2, 8: 2, 12: 2, 16: 2}
"""From how many edges on pairs go into tiles, by the bytes of a record; shorter ones are left in their rows.

A pair takes a place in a slice and a partial, which is written and read, and saves its row all reads but one. Of
records of 16 bytes kron-22 has 9.2 million pairs in segments of 12,032, 3.3 million of which have two edges. Left in
rows, these are 3.3 million reads more (25.8 for 22.5), and 106 MB less of partials, written or read.
"""

NEAR = 45_000
"""About the records of 4 bytes that a block keeps in a pull over rows."""

_LEFT_TO_STATIC = 4096
"""Bytes of shared memory that are left to what kernels declare."""

_LEFT_TO_L1 = 32 << 10
"""Bytes that are left to the first-level cache, beside those that shared memory never takes.

The pass over rows reads partials that lie close together, and finds them there. A superstep of PageRank with all shared
memory and without these bytes (NVIDIA H100, driver 580.159.04): kron-22 0.315 and 0.266 ms, kron-24 1.82 and 1.41;
in double precision 0.491 and 0.403, 2.85 and 2.33. With 64 KB it is about the same.
"""

_STEP = 4096
"""About by how many bytes segments may differ in size.

Of records of 16 bytes kron-22 leaves 22.5 million ends in rows with segments of 12,032, and 23.1 with 11,264, as they
were by steps of 1,024 records; of 8 bytes 17.0 with 24,064, and 17.1 with 23,552.
"""

_MOST_CELLS = 8
"""The most numbers that aggregators have, which a block keeps of each warp."""

FEWEST_EDGES = 8_000_000
"""Edges from which on tiles are laid out."""

_MOST_LEFT = 0.5
"""The most pairs, as a share of the edges whose source no block keeps."""


def choose_tiling(
    compiled: CudaProgram,
    *,
    shared_bytes: int,
    num_blocks: int,
    varying: Collection[str] = (),
    num_edges: int = 0,
    tiles: Tiles = "auto",
) -> Tiling | None:
    """Return how in-edges go into tiles for a program; None where its pulls may read only some of them.

    Args:
        compiled: The program.
        shared_bytes: The shared memory that a block may have.
        num_blocks: Multiprocessors.
        varying: The graph's edge columns that do not have one value throughout.
        num_edges: In-edges; 0 on several ranks, where programs that read edges were not measured.
        tiles: Whether they are to.

    Raises:
        ConfigError: If they are to go into tiles, and the program cannot read them there.
    """
    if tiles == "never":
        return None
    if obstacle := find_tiling_obstacle(compiled.program, compiled.defines):
        if tiles == "always":
            raise ConfigError(
                f"{compiled.program.name} cannot run with tiles='always': {obstacle}. Use tiles='auto'"
            )
        return None
    if tiles == "auto" and find_reason_against(compiled.program, compiled.defines, varying, num_edges):
        return None
    record_bytes = record_bytes_of(compiled)
    return plan_tiling(record_bytes, shared_bytes, num_blocks, always=tiles == "always")


def plan_tiling(record_bytes: int, shared_bytes: int, num_blocks: int, *, always: bool = False) -> Tiling:
    """Return how in-edges go into tiles for records of so many bytes.

    >>> plan_tiling(16, 232448, 132)
    Tiling(size=12032, num_shares=132, record_bytes=16, always=False, shortest_pair=2)
    """
    size = segment_size(record_bytes, shared_bytes)
    return Tiling(size, num_blocks, record_bytes, always, SHORTEST_PAIRS[record_bytes])


MANY_EDGES = 1 << 26
"""From so many in-edges on programs that read edges, or go through them, take tiles.

On one NVIDIA H200 a superstep of heat took 0.49 ms over tiles and 0.71 over rows on kron-22, of 128 million in-edges,
and 0.16 and 0.17 on kron-20, of 32 million; HITS along the arcs of kron-20 0.21 and 0.17.
"""


def find_reason_against(
    program: VertexProgram, defines: Mapping[str, str], varying: Collection[str], num_edges: int
) -> str:
    """Return why a program's in-edges do not go into tiles unless that is asked for; empty where they may.

    Args:
        program: The program.
        defines: Its macros, as a `CudaProgram` has them.
        varying: The graph's edge columns that do not have one value throughout.
        num_edges: The graph's in-edges.
    """
    if obstacle := find_tiling_obstacle(program, defines):
        return obstacle
    if num_edges >= MANY_EDGES:
        return ""
    if not set(varying).isdisjoint(program.edge_columns):
        return "it reads values of edges, which vary, and they are few"
    if defines["SIGPS_BY_TEAM"] != "0":
        return "compute() goes through edges, and they are few"
    return ""


def find_tiling_obstacle(program: VertexProgram, defines: Mapping[str, str]) -> str:
    """Return why a program's in-edges cannot go into tiles; empty where they can.

    They can where pulls always read all in-edges, of records of 1 to 4 words, and inboxes of as many.

    Args:
        program: The program.
        defines: Its macros, as a `CudaProgram` has them.
    """
    record, slots = (int(defines[f"SIGPS_{row}_BYTES"]) for row in ("RECORD", "SLOTS"))
    if program.consumption not in (Consumption.COMBINED, Consumption.SINGLE):
        return "its messages are not combined"
    if program.early_exit is not EarlyExit.NEVER:
        return "a pull ends where its result is known"
    if not program.sends_together:
        return "its vertices do not all send in the same supersteps, as far as the compiler can prove"
    if program.reads_edge_links:
        return "it keeps values on edges, or reads those of neighbours"
    if any(f.measure for f in program.states):
        return "it begins with measures that are counted along rows"
    if num_cells(program.aggregate_dtypes) > _MOST_CELLS:
        return f"its aggregators have more than {_MOST_CELLS} numbers"
    if record != slots or record not in (4, 8, 12, 16):
        return (
            f"an outbox record has {record} bytes and an inbox {slots}, which must be one number from 4 to 16"
        )
    return ""


def record_bytes_of(compiled: CudaProgram) -> int:
    """Return the size of a program's records."""
    return int(compiled.defines["SIGPS_RECORD_BYTES"])


def segment_size(record_bytes: int, shared_bytes: int) -> int:
    """Return how many records of a segment fit the shared memory of a block, with their sent bits.

    Args:
        record_bytes: The size of a record.
        shared_bytes: What a block may have.

    >>> [segment_size(record_bytes, 232448) for record_bytes in (4, 8, 16)]
    [47104, 24064, 12032]
    """
    room = (shared_bytes - _LEFT_TO_L1 - _LEFT_TO_STATIC) * 8 // (8 * record_bytes + 1)
    step = _STEP // record_bytes // 32 * 32
    return min(63 << 10, room // step * step)


def shared_bytes_of(size: int, record_bytes: int) -> int:
    """Return the shared memory that a segment of so many records takes."""
    return size * record_bytes + size // 8


@dataclass(frozen=True)
class TilingCounts:
    """What decides whether tiles pay.

    Attributes:
        num_edges: In-edges.
        num_far: Those of them whose source is not among the first `NEAR`, in descending order of degrees.
        num_pairs: Pairs of a row and a segment from which an edge leads to it.
    """

    num_edges: int
    num_far: int
    num_pairs: int

    @property
    def reason_against(self) -> str:
        """Why a pull over tiles would not be faster; empty where it is, for it reads less beyond shared memory."""
        if self.num_edges < FEWEST_EDGES:
            return f"it has fewer than {FEWEST_EDGES:,} edges"
        if self.num_pairs > _MOST_LEFT * self.num_far:
            return f"there may be {int(_MOST_LEFT * self.num_far):,} pairs at most"
        return ""

    def __str__(self) -> str:
        return (
            f"{self.num_pairs:,} pairs of a vertex and a segment for {self.num_edges:,} edges, "
            f"of which {self.num_far:,} come from others than the first {NEAR:,}"
        )


def count_on_host(
    offsets: NDArray[np.uint64],
    sources: NDArray[np.unsignedinteger[Any]],
    lids: NDArray[np.uint32],
    size: int,
    near: int = NEAR,
) -> TilingCounts:
    """Count as `tile_layout.cu` does, on one core, in O(edges).

    Args:
        offsets: [n + 1] of rows of in-edges.
        sources: [offsets[n]].
        lids: [n]: the number of each vertex in descending order of in-degrees.
        size: Sources of a segment.
        near: The first sources, which are near.

    >>> offsets, sources = np.array([0, 2, 5], np.uint64), np.array([0, 1, 0, 0, 1], np.uint32)
    >>> count_on_host(offsets, sources, np.array([1, 0], np.uint32), size=1)
    TilingCounts(num_edges=5, num_far=0, num_pairs=4)
    """
    last = np.zeros(-(-lids.size // size) + 1, np.int64)
    found = np.zeros(2, np.int64)
    _count(offsets, sources, lids, size, near, last, found)
    return TilingCounts(sources.size, int(found[0]), int(found[1]))


@compiled
def _count(
    offsets: NDArray[np.uint64],
    sources: NDArray[np.unsignedinteger[Any]],
    lids: NDArray[np.uint32],
    size: int,
    near: int,
    last: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Count edges that are far, and pairs: `last` has one more than the last row that each segment led to."""
    for row in range(lids.size):
        for edge in range(offsets[row], offsets[row + 1]):
            lid = lids[sources[edge]]
            if lid >= near:
                found[0] += 1
            segment = lid // size
            if last[segment] != row + 1:
                last[segment] = row + 1
                found[1] += 1


@dataclass(frozen=True)
class Tiling:
    """How in-edges are to be laid out in tiles.

    Attributes:
        size: Sources of a segment.
        num_shares: Blocks that are resident at once.
        record_bytes: The size of a record.
        always: Whether also where it does not pay.
        shortest_pair: From how many edges on pairs go into tiles; 2 or more.
    """

    size: int
    num_shares: int
    record_bytes: int
    always: bool = False
    shortest_pair: int = 2

    def may_pay(self, num_edges: int) -> bool:
        """Whether so many edges are laid out in tiles, or at least counted for it."""
        return self.always or num_edges >= FEWEST_EDGES

    @property
    def num_banks(self) -> int:
        """How many records lie in different banks of shared memory, and how many lanes read theirs at once.

        >>> [Tiling(32, 1, record_bytes).num_banks for record_bytes in (4, 8, 12, 16)]
        [32, 16, 32, 8]
        """
        return {4: 32, 8: 16, 12: 32, 16: 8}[self.record_bytes]


@dataclass(frozen=True)
class Cost:
    """What a slice takes beside another, in half lines.

    These are of an NVIDIA H200, on which the slowest block of PageRank's tiles took 109, 406 and 632 us (kron-22,
    kron-24, and that in double precision), and one on average 85, 324 and 456, when edges lay in ascending order. With
    6,000 for a segment the slowest took 114, 440 and 658, with 1,500 137, 521 and 607, and with 8 for a slice 127, 471
    and 748.

    Attributes:
        line: A line of 32 words.
        slice: A slice.
        piece: A slice that is a piece, more.
        segment: To load a segment.
    """

    line: float = 2.0
    slice: float = 4.0
    piece: float = 6.0
    segment: float = 3000.0


@dataclass(frozen=True, eq=False)
class Shares:
    """Who combines which slices, as `Tiles` has it in `kernels/cuda/edges.cuh`: arrays of uint32.

    Attributes:
        first_tasks: [shares + 1].
        segments: [tasks].
        runs: [tasks, 33].
        num_early: The first shares, whose segments have no ghosts, where they are apart.
    """

    first_tasks: NDArray[np.uint32]
    segments: NDArray[np.uint32]
    runs: NDArray[np.uint32]
    num_early: int = 0


def share_out(
    widths: NDArray[Any],
    are_pieces: NDArray[np.bool_],
    segments: NDArray[Any],
    num_blocks: int,
    num_own: int = 0,
    cost: Cost | None = None,
) -> Shares:
    """Cut slices into stretches of equal cost, in the order of segments, and each task into runs for 32 warps.

    Args:
        widths: [slices]: lines.
        are_pieces: [slices].
        segments: [slices], ascending.
        num_blocks: Blocks that are resident at once; each has a share.
        num_own: Of the first segments, of owned vertices alone, each block has a share of its own; 0: of all slices.
        cost: What slices take.

    >>> given = np.array([4, 4, 4]), np.zeros(3, np.bool_), np.array([0, 0, 1])
    >>> shares = share_out(*given, 2, cost=Cost(segment=6000.0))
    >>> shares.first_tasks.tolist(), shares.segments.tolist(), shares.runs[:, [0, 32]].tolist()
    ([0, 1, 2], [0, 1], [[0, 2], [2, 3]])
    >>> shares = share_out(*given, 2, num_own=1)
    >>> shares.first_tasks.tolist(), shares.num_early, shares.runs[:, [0, 32]].tolist()
    ([0, 0, 1, 1, 2], 2, [[0, 2], [2, 3]])
    """
    cost = cost or Cost()
    if num_own == 0:
        return _share_out(widths, are_pieces, segments, num_blocks, cost)
    end = int(np.searchsorted(segments, num_own))
    parts = [
        _share_out(widths[part], are_pieces[part], segments[part], num_blocks, cost)
        for part in (slice(0, end), slice(end, None))
    ]
    own, others = parts
    firsts = np.concatenate([own.first_tasks[:-1], others.first_tasks + own.first_tasks[-1]])
    runs = np.concatenate([own.runs, others.runs + np.uint32(end)])
    return Shares(firsts, np.concatenate([own.segments, others.segments]), runs, num_blocks)


def _share_out(
    widths: NDArray[Any],
    are_pieces: NDArray[np.bool_],
    segments: NDArray[Any],
    num_shares: int,
    cost: Cost,
) -> Shares:
    if not widths.size:  # every pair of a row and a segment has one edge
        nobodys = np.zeros((0, 33), np.uint32)
        return Shares(np.zeros(num_shares + 1, np.uint32), nobodys[:, 0], nobodys)
    num_segments = int(segments[-1]) - int(segments[0]) + 1
    firsts, of_shares = (np.empty(num_segments + num_shares, np.uint32) for _ in range(2))
    runs = np.empty((firsts.size, 33), np.uint32)
    found = np.zeros(1, np.int64)
    costs = cost.line, cost.slice, cost.piece, cost.segment
    _cut_shares(widths, are_pieces, segments, num_shares, *costs, firsts, of_shares, runs.ravel(), found)
    num_tasks = int(found[0])
    first_tasks = np.searchsorted(of_shares[:num_tasks], np.arange(num_shares + 1)).astype(np.uint32)
    return Shares(first_tasks, segments[firsts[:num_tasks]].astype(np.uint32), runs[:num_tasks].copy())


@compiled
def _cut_shares(
    widths: NDArray[Any],
    are_pieces: NDArray[np.bool_],
    segments: NDArray[Any],
    num_shares: int,
    line: float,
    a_slice: float,
    piece: float,
    segment: float,
    firsts: NDArray[np.uint32],
    shares: NDArray[np.uint32],
    runs: NDArray[np.uint32],
    found: NDArray[np.int64],
) -> None:
    """Find the first slice and the share of each task, its 32 runs, and how many tasks there are."""
    total, count = 0.0, widths.size
    for i in range(count):
        total += line * widths[i] + a_slice + (piece if are_pieces[i] else 0.0)
        if i == 0 or segments[i] != segments[i - 1]:
            total += segment
    before, tasks, last_share = 0.0, 0, -1
    for i in range(count):
        own = line * widths[i] + a_slice + (piece if are_pieces[i] else 0.0)
        begins = i == 0 or segments[i] != segments[i - 1]
        if begins:
            before += segment
        before += own
        share = min(int((before - own / 2) * (num_shares / total)), num_shares - 1)
        if begins or share != last_share:
            firsts[tasks], shares[tasks] = i, share
            tasks += 1
        last_share = share
    found[0] = tasks
    for task in range(tasks):
        first, end = int(firsts[task]), count if task + 1 == tasks else int(firsts[task + 1])
        whole = 0.0
        for i in range(first, end):
            whole += line * widths[i] + a_slice + (piece if are_pieces[i] else 0.0)
        at, before = first, 0.0
        for run in range(32):
            while at < end and before < whole * (run / 32):
                before += line * widths[at] + a_slice + (piece if are_pieces[at] else 0.0)
                at += 1
            runs[33 * task + run] = at
        runs[33 * task + 32] = end
