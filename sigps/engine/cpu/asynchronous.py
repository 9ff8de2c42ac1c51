"""Without barriers: a strategy that computes blocks of vertices in the order of their keys, until nothing changes.

`Asynchronous.run` stands in the place of all supersteps after the first, for programs whose results provably do not
depend on when a record is read (`compiler/proofs/asynchronous.py`). The loop is `kernels/cpu/asynchronous.py`: cores
take blocks by themselves, and come back now and then so that a run can be interrupted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.monotone import LastRecords
from sigps.engine.cpu.path_lengths import Parents
from sigps.engine.cpu.run_state import RunState
from sigps.engine.stats import WITHOUT_BARRIERS, SuperstepStats
from sigps.engine.superstep import Done
from sigps.errors import ConfigError
from sigps.kernels.cpu.asynchronous import ENDED, LEAVE, RUN, BlockLimits, Blocks
from sigps.native.kernel import LoopFaultError

__all__ = ["Asynchronous", "Schedule", "block_bits"]

_MOST_WORK = 1 << 22
"""Edges that a core reads before all come back, in some ten milliseconds, so that a run can be interrupted."""

_MOST_IDLE = 1 << 12
"""Searches for a block after which a core that finds none comes back."""


@dataclass(frozen=True)
class Schedule:
    """How blocks are chosen; results do not depend on it.

    Attributes:
        bits: Vertices of a block, as a power of two; None where the engine chooses.
        most_inside: Vertices that are computed in a block before another is taken; None where the engine chooses.
        seed: Of a random order of blocks, from 1 on; 0 for the best key first.
    """

    bits: int | None = None
    most_inside: int | None = None
    seed: int = 0


def block_bits(num_vertices: int, num_edges: int, num_threads: int) -> int:
    """Return how many vertices a block has, as a power of two: its edges stay in cache, and each core has some.

    >>> block_bits(250_000, 1_000_000, 2), block_bits(100, 400, 2)
    (12, 4)
    """
    by_cache = max(4, ((1 << 15) * num_vertices // max(1, num_edges)).bit_length() - 1)
    by_cores = max(4, (num_vertices // (8 * num_threads)).bit_length() - 1)
    return min(by_cache, by_cores, 12)


class Asynchronous:
    """Runs all supersteps after the first without barriers.

    Args:
        state: What the run keeps, of a program that needs no barriers.
        kept: The last records.
        schedule: How blocks are chosen.
    """

    def __init__(self, state: RunState, kept: LastRecords, schedule: Schedule) -> None:
        self._state, self._kept, self._schedule = state, kept, schedule
        claim = state.program.asynchronous
        self._parents = Parents(state) if claim is not None and claim.has_parents else None
        self._check()

    def run(self, most_supersteps: int) -> Done | None:
        """Run to the end; None before superstep 0.

        Raises:
            ComputeError: If arithmetic of compute() had no result.
        """
        state = self._state
        if state.superstep == 0:
            self._run_blocks(is_first=True)  # compiles
            return None
        began = time.perf_counter()
        if self._parents is not None:
            self._parents.begin()
        counts = self._run_blocks()
        if self._parents is not None:
            self._check()
            self._parents.find()
        state.end_at_once()
        seconds = time.perf_counter() - began
        ran, loaded, _, edges = counts
        stats = SuperstepStats(1, WITHOUT_BARRIERS, ran, edges, 0, seconds, 1.0, loaded, counts[2])
        return Done((stats,), 0, 0)

    def _check(self) -> None:
        obstacle = self._parents.obstacle if self._parents is not None else None
        if obstacle is not None:
            name = self._state.program.name
            raise ConfigError(
                f"{name} cannot run with asynchronous=True on this graph: {obstacle}, so that parents depend on the "
                "order of messages. Use asynchronous='auto'"
            )

    def _run_blocks(self, *, is_first: bool = False) -> tuple[int, int, int, int]:
        state, threads, given = self._state, self._state.threads, self._schedule
        n, edges = state.subgraph.num_owned, state.pull_edges
        bits = block_bits(n, edges.ends.size, threads.count) if given.bits is None else given.bits
        inside = (8 << bits) if given.most_inside is None else given.most_inside
        worst = self._kept.worst
        limits = BlockLimits(bits, inside, _MOST_WORK, _MOST_IDLE, worst, np.uint64(given.seed))
        blocks = self._blocks(bits, worst, is_empty=is_first)
        queues = [np.empty(1 << bits, dtype=np.uint32) for _ in range(threads.count)]
        loop, totals = state.loop("run_blocks"), np.zeros(4, dtype=np.int64)

        def work(core: int) -> tuple[int, int, int, int]:
            try:
                found: tuple[int, int, int, int] = loop(
                    core, threads.count, limits, state.arguments(), edges, state.push_edges, state.owned,
                    state.fields, state.read, state.native.empty, state.aggregates.given, state.aggregates.identity,
                    blocks, queues[core],
                )  # fmt: skip
            except BaseException:
                blocks.state[0] = LEAVE
                raise
            return found

        try:
            while blocks.state[0] != ENDED:
                blocks.state[0] = RUN
                for counts in threads.map(work, range(threads.count)):
                    totals += counts
        except LoopFaultError as fault:
            raise state.error_of(fault, state.superstep) from None
        ran, loaded, block_edges, read = totals.tolist()
        return ran, loaded, block_edges, read

    def _blocks(self, bits: int, worst: np.generic, *, is_empty: bool) -> Blocks:
        """Return the blocks; the vertices that last senders have edges to are dirty, or none."""
        state = self._state
        n = state.subgraph.num_owned
        dirty = np.zeros(n, np.uint8) if is_empty else _targets_of(state.last_senders(), state, n)
        num_blocks = (n + (1 << bits) - 1) >> bits
        marked = np.zeros(num_blocks, dtype=np.uint8)
        marked[np.flatnonzero(dirty) >> bits] = 1
        busy, takes = np.zeros((2, 16 * state.threads.count), dtype=np.int64)
        taken, run = np.zeros(num_blocks, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
        keys = np.full(num_blocks, worst, dtype=state.native.slots[0])
        return Blocks(dirty, marked, taken, keys, busy, takes, run)


def _targets_of(senders: NDArray[np.uint32], state: RunState, n: int) -> NDArray[np.uint8]:
    edges = state.push_edges
    if state.last.sent_edges > edges.ends.size // 4:
        return np.ones(n, dtype=np.uint8)
    dirty = np.zeros(n, dtype=np.uint8)
    first, counts = edges.offsets[senders].astype(np.int64), edges.stops[senders].astype(np.int64)
    counts -= first
    ends = np.cumsum(counts)
    along = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(first - ends + counts, counts)
    dirty[edges.ends[along]] = 1
    return dirty
