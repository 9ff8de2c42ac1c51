"""The cores of a rank that compute blocks of vertices without barriers (`kernels/cpu/asynchronous.py`).

They take blocks by themselves, and come back now and then so that a run can be interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.run_state import RunState
from sigps.kernels.cpu.arguments import Edges, LoopArguments
from sigps.kernels.cpu.asynchronous import ENDED, LEAVE, RUN, BlockLimits, Blocks
from sigps.native.kernel import LoopFaultError

__all__ = ["MOST_TURNS", "Crew", "Schedule", "block_bits", "contraction_bits"]

_MOST_WORK = 1 << 22
"""Edges that a core reads before all come back, in some ten milliseconds, so that a run can be interrupted."""

MOST_TURNS = 1
"""Turns of a contraction in a block before another is taken."""

_MOST_IDLE = 1 << 12
"""Searches for a block after which a core that finds none comes back."""


@dataclass(frozen=True)
class Schedule:
    """How blocks are chosen; results do not depend on it.

    Attributes:
        bits: Vertices of a block, as a power of two; None where the engine chooses.
        most_inside: Vertices that are computed in a block before another is taken; None where the engine chooses.
        seed: Of a random order of blocks, from 1 on; 0 for the best key first.
        most_edges: Edges of a rank, inwards or outwards, after which records cross; None where the engine chooses.
    """

    bits: int | None = None
    most_inside: int | None = None
    seed: int = 0
    most_edges: int | None = None


def block_bits(num_vertices: int, num_edges: int, num_threads: int) -> int:
    """Return how many vertices a block has, as a power of two: its edges stay in cache, and each core has some.

    >>> block_bits(250_000, 1_000_000, 2), block_bits(100, 400, 2)
    (12, 4)
    """
    by_cache = max(4, ((1 << 15) * num_vertices // max(1, num_edges)).bit_length() - 1)
    by_cores = max(4, (num_vertices // (8 * num_threads)).bit_length() - 1)
    return min(by_cache, by_cores, 12)


_SMALL_BITS, _MOST_BLOCKS = 9, 1500  # blocks are searched one by one
_SAMPLE = 1 << 14


def small_bits(bits: int, num_vertices: int) -> int:
    """Return how many vertices a small block has, as a power of two, where a large one has `1 << bits`.

    >>> small_bits(12, 114_599), small_bits(12, 1_524_453), small_bits(7, 3_353)
    (9, 10, 7)
    """
    return min(bits, max(_SMALL_BITS, (num_vertices // _MOST_BLOCKS).bit_length()))


def takes_small_blocks(*, leave_small: float, leave_large: float) -> bool:
    """Tell whether keys to which edges add numbers are computed in small blocks, of which fewer vertices wait.

    A large block is flooded with keys that fall again when others arrive; it pays only where far fewer edges leave it,
    as where it has several rows of a grid. Lengths, milliseconds of two busy cores in large and in small blocks:
    luxembourg_osm 29 and 15, USA-road-NY 87 and 53, USA-road-NE 685 and 423, delaunay_n16 74 and 36, wave 104 and 82
    (1.1 to 1.75 times the edges leave small blocks); grid-500 38 and 119, grid-200 2.8 and 3.5 (8 and 4 times).

    Args:
        leave_small: Share of the edges that leave small blocks.
        leave_large: Share of the edges that leave large ones.
    """
    return leave_small < 2.5 * leave_large


def share_of_leaving(edges: Edges, bits: int) -> float:
    """Return how many of the edges join vertices of different blocks, from 0 to 1; of a sample."""
    if edges.ends.size == 0:
        return 0.0
    at = np.random.default_rng(0).integers(
        0, edges.ends.size, _SAMPLE
    )  # every so many could be all of one kind
    targets = np.searchsorted(edges.offsets, at, side="right") - 1
    return float(np.mean(targets >> bits != edges.ends[at].astype(np.int64) >> bits))


_EDGES_OF_A_CORE = 100_000


def most_cores(num_edges: int) -> int:
    """Return how many cores share the blocks of so many edges: fewer where they would mostly look for one.

    PageRank, milliseconds of the clock by supersteps on two cores, without barriers on two, and on one: email-Eu-core
    (26,000 edges) 4.0, 3.6 to 8.7, 2.6; facebook_combined (176,000) 9.7 to 12.8, 10.1 to 34.7, 8.0 to 8.9; grid-200
    (159,000) 11.0 to 15.9, 6.4 to 7.4, 6.4 to 7.2; luxembourg_osm (239,000) 34 to 41, 21, 28; USA-road-NY (730,000)
    102, 57, 90.

    >>> most_cores(26_000), most_cores(239_000)
    (1, 2)
    """
    return max(1, num_edges // _EDGES_OF_A_CORE)


def contraction_bits(num_vertices: int, num_threads: int) -> int:
    """Return how many vertices a block of a contraction has, as a power of two: as many as leave each core 32 blocks.

    With two a core that has the light blocks computes them over and over, while another is at the heavy ones. Blocks of
    more than 4,096 vertices read more (USA-road-NE 35.9 sweeps, of 8,192 36.2), unless blocks would be over 1,500.

    >>> [contraction_bits(n, 2) for n in (325_557, 100, 1_524_453, 10**8)]
    [12, 4, 12, 16]
    """
    by_cores = max(4, (num_vertices // (32 * num_threads)).bit_length() - 1)
    return min(16, by_cores, max(12, (num_vertices // _MOST_BLOCKS).bit_length()))


class Crew:
    """The cores of a run that take blocks.

    Args:
        state: What the run keeps.
        schedule: How blocks are chosen.
        name: Of the loop. Where floats must not depend on the order, one core takes blocks in a fixed order.

    Attributes:
        bits: Vertices of a block, as a power of two.
        num_blocks: How many blocks there are.
    """

    def __init__(self, state: RunState, schedule: Schedule, name: str) -> None:
        self._state, self._seed, self._loop = state, schedule.seed, state.loop(name)
        self._num_runs = 0
        is_fixed = state.deterministic and name == "run_contraction"
        n, m = state.subgraph.num_owned, state.pull_edges.ends.size
        self._count = 1 if is_fixed else state.threads.count
        if schedule == Schedule():
            self._count = min(self._count, most_cores(m))
        if schedule.bits is not None:
            self.bits = schedule.bits
        elif name == "run_contraction":
            self.bits = contraction_bits(n, self._count)
        else:
            self.bits = self._chosen_bits(block_bits(n, m, state.threads.count), n)
        self.num_blocks = (n + (1 << self.bits) - 1) >> self.bits

    def _chosen_bits(self, large: int, num_vertices: int) -> int:
        claim, small = self._state.native.program.monotone, small_bits(large, num_vertices)
        if claim is None or claim.column is None or small == large:
            return large
        leave_small, leave_large = self._share_of_leaving(small), self._share_of_leaving(large)
        return small if takes_small_blocks(leave_small=leave_small, leave_large=leave_large) else large

    def _share_of_leaving(self, bits: int) -> float:
        edges = self._state.pull_edges
        return self._state.subgraph.derived(f"leaving {bits}", lambda: share_of_leaving(edges, bits))

    def blocks(self, dirty: NDArray[np.uint8], key: Any, dtype: np.dtype[Any]) -> Blocks:
        """Return the blocks, with these vertices to be computed, and keys that begin with this one."""
        count = self.num_blocks
        marked = np.zeros(count, dtype=np.uint8)
        marked[np.flatnonzero(dirty) >> self.bits] = 1
        busy, takes = np.zeros((2, 16 * self._count), dtype=np.int64)
        taken, run = np.zeros(count, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
        return Blocks(dirty, marked, taken, np.full(count, key, dtype=dtype), busy, takes, run)

    def blocks_of(self, vertices: Any) -> Any:
        """Return the blocks of vertices, either as an index."""
        return vertices if isinstance(vertices, slice) else vertices >> self.bits

    def run(
        self,
        blocks: Blocks,
        worst: Any,
        most_inside: int,
        arguments: LoopArguments,
        own: Sequence[Any],
        *,
        most_edges: int | None = None,
    ) -> NDArray[np.int64]:
        """Run until no block is marked, or so many edges were read; return what the loop counts."""
        state, most_work = self._state, _MOST_WORK
        if most_edges is not None:
            most_work = min(most_work, max(1, most_edges // self._count))
        seed = np.uint64(
            self._seed and self._seed + self._num_runs
        )  # else each round would begin with the same draws
        self._num_runs += 1
        limits = BlockLimits(self.bits, most_inside, most_work, _MOST_IDLE, worst, seed)

        def work(core: int) -> tuple[int, ...]:
            try:
                found: tuple[int, ...] = self._loop(
                    core, self._count, limits, arguments, state.pull_edges, state.push_edges, state.owned,
                    state.fields, state.read, state.native.empty, (), state.aggregates.identity,
                    blocks, own[core],
                )  # fmt: skip
            except BaseException:
                blocks.state[0] = LEAVE
                raise
            return found

        totals = np.zeros(5, dtype=np.int64)
        blocks.state[0] = LEAVE
        try:
            while blocks.state[0] != ENDED and (most_edges is None or totals[3] < most_edges):
                blocks.state[0] = RUN
                for counts in state.threads.map(work, range(self._count)):
                    totals[: len(counts)] += counts
        except LoopFaultError as fault:
            raise state.error_of(fault, state.superstep) from None
        return totals
