"""Without barriers: a strategy that computes blocks of vertices in the order of their keys, until nothing changes.

`Asynchronous.run` stands in the place of all supersteps after the first, for programs whose results provably do not
depend on when a record is read (`compiler/proofs/asynchronous.py`). The loop is `kernels/cpu/asynchronous.py`: cores
take blocks by themselves, and come back now and then so that a run can be interrupted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.monotone import LastRecords
from sigps.engine.cpu.path_lengths import Parents
from sigps.engine.cpu.run_state import RunState
from sigps.engine.fixed_points import FIRST_SUPERSTEPS
from sigps.engine.stats import WITHOUT_BARRIERS, SuperstepStats
from sigps.engine.superstep import Done, Fused
from sigps.errors import ConfigError
from sigps.kernels.cpu.arguments import HALTED, LoopArguments
from sigps.kernels.cpu.asynchronous import ENDED, LEAVE, RUN, BlockLimits, Blocks
from sigps.native.kernel import LoopFaultError

__all__ = ["Asynchronous", "Automatic", "Contraction", "Schedule", "block_bits"]

log = logging.getLogger(__name__)

_MOST_WORK = 1 << 22
"""Edges that a core reads before all come back, in some ten milliseconds, so that a run can be interrupted."""

MOST_TURNS = 4
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


def contraction_bits(num_vertices: int, num_threads: int) -> int:
    """Return how many vertices a block of a contraction has, as a power of two: as many as leave each core two blocks.

    Most edges are then within a block, and turns in it stand for sweeps.

    >>> contraction_bits(325_557, 2), contraction_bits(100, 2)
    (16, 4)
    """
    return min(16, max(4, (num_vertices // (2 * num_threads)).bit_length() - 1))


class Asynchronous:
    """Runs all supersteps after the first without barriers.

    Args:
        state: What the run keeps, of a program that is proved to need none.
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
        state, crew = self._state, Crew(self._state, self._schedule, "run_blocks")
        n, bits = state.subgraph.num_owned, crew.bits
        arguments, types = state.arguments(), state.native.slots
        queues = [np.empty(1 << bits, dtype=np.uint32) for _ in range(state.threads.count)]
        inside = (8 << bits) if self._schedule.most_inside is None else self._schedule.most_inside
        if state.superstep == 0:  # compiles
            none = crew.blocks(np.zeros(n, np.uint8), self._kept.worst, types[0])
            crew.run(none, self._kept.worst, inside, arguments, queues)
            return None
        began = time.perf_counter()
        if self._parents is not None:
            self._parents.begin()
        blocks = crew.blocks(_targets_of(state.last_senders(), state, n), self._kept.worst, types[0])
        ran, loaded, block_edges, edges = crew.run(blocks, self._kept.worst, inside, arguments, queues)
        if self._parents is not None:
            self._check()
            self._parents.find()
        superstep = state.superstep
        state.end_at_once()
        seconds = time.perf_counter() - began
        stats = SuperstepStats(superstep, WITHOUT_BARRIERS, ran, edges, 0, seconds, 1.0, loaded, block_edges)
        return Done((stats,), 0, 0)

    def _check(self) -> None:
        obstacle = self._parents.obstacle if self._parents is not None else None
        if obstacle is not None:
            name = self._state.program.name
            raise ConfigError(
                f"{name} cannot run with asynchronous=True on this graph: {obstacle}, so that parents depend on the "
                "order of messages. Use asynchronous='auto'"
            )


class Automatic:
    """Runs supersteps at first, and goes on without barriers where there are many.

    Args:
        supersteps: What runs several of the first at once, or None.
        free: What runs the others.
        state: What the run keeps.
        why: Why no barriers may pay, for the log.
    """

    def __init__(self, supersteps: Fused | None, free: Asynchronous, state: RunState, why: str) -> None:
        self._supersteps, self._free, self._state, self._why = supersteps, free, state, why

    def run(self, most_supersteps: int) -> Done | None:
        """Run at most so many of the first supersteps, or to the end; None where the loop is to run the next one."""
        left = FIRST_SUPERSTEPS - self._state.superstep
        if left > 0:
            return self._supersteps.run(min(most_supersteps, left)) if self._supersteps else None
        name = self._state.program.name
        log.info("%s goes on without barriers after %d supersteps: %s", name, FIRST_SUPERSTEPS, self._why)
        return self._free.run(most_supersteps)


class Contraction:
    """Runs all supersteps after the first of a declared contraction without barriers.

    A vertex that changes by less than the program counts as a change marks nobody, so small changes may add up unseen.
    Where no block is left, all are computed once more, until that changes nothing: then each vertex is what compute()
    makes of its neighbours, but for less than a change.

    Args:
        state: What the run keeps.
        schedule: How blocks are chosen.
    """

    def __init__(self, state: RunState, schedule: Schedule) -> None:
        self._state, self._schedule = state, schedule

    def run(self, most_supersteps: int) -> Done | None:
        """Run to the end; None before superstep 0.

        Raises:
            ComputeError: If arithmetic of compute() had no result.
        """
        state, crew = self._state, Crew(self._state, self._schedule, "run_contraction")
        n, zero = state.subgraph.num_owned, np.int64(0)
        counted = tuple(dtype.type(1) for dtype in state.program.aggregate_dtypes)
        arguments = state.arguments()._replace(superstep=2, aggregates=counted)
        touched = [np.zeros(crew.num_blocks, dtype=np.uint8) for _ in range(state.threads.count)]
        inside = MOST_TURNS if self._schedule.most_inside is None else self._schedule.most_inside
        some = np.ones(n, dtype=np.uint8)
        if state.superstep == 0:  # compiles
            crew.run(crew.blocks(np.zeros_like(some), zero, zero.dtype), zero, inside, arguments, touched)
            return None
        began, totals = time.perf_counter(), np.zeros(5, dtype=np.int64)
        changed = 1
        while changed > 0:
            found = crew.run(crew.blocks(some, zero, zero.dtype), zero, inside, arguments, touched)
            totals += found
            changed = found[4]
        state.fields.status.fill(HALTED)
        superstep = state.superstep
        state.end_at_once()
        seconds = time.perf_counter() - began
        ran, loaded, block_edges, edges, _ = totals.tolist()
        stats = SuperstepStats(superstep, WITHOUT_BARRIERS, ran, edges, 0, seconds, 1.0, loaded, block_edges)
        return Done((stats,), 0, 0)


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
        self._state, self._seed, self._loop = state, np.uint64(schedule.seed), state.loop(name)
        is_fixed = state.deterministic and name == "run_contraction"
        self._count = 1 if is_fixed else state.threads.count
        n, m = state.subgraph.num_owned, state.pull_edges.ends.size
        if schedule.bits is not None:
            self.bits = schedule.bits
        elif name == "run_contraction":
            self.bits = contraction_bits(n, self._count)
        else:
            self.bits = block_bits(n, m, state.threads.count)
        self.num_blocks = (n + (1 << self.bits) - 1) >> self.bits

    def blocks(self, dirty: NDArray[np.uint8], key: Any, dtype: np.dtype[Any]) -> Blocks:
        """Return the blocks, with these vertices to be computed, and keys that begin with this one."""
        count = self.num_blocks
        marked = np.zeros(count, dtype=np.uint8)
        marked[np.flatnonzero(dirty) >> self.bits] = 1
        busy, takes = np.zeros((2, 16 * self._count), dtype=np.int64)
        taken, run = np.zeros(count, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
        return Blocks(dirty, marked, taken, np.full(count, key, dtype=dtype), busy, takes, run)

    def run(
        self, blocks: Blocks, worst: Any, most_inside: int, arguments: LoopArguments, own: Sequence[Any]
    ) -> tuple[int, ...]:
        """Run until no block is left; return what the loop counts, of all cores."""
        state = self._state
        limits = BlockLimits(self.bits, most_inside, _MOST_WORK, _MOST_IDLE, worst, self._seed)

        def work(core: int) -> tuple[int, ...]:
            try:
                found: tuple[int, ...] = self._loop(
                    core, self._count, limits, arguments, state.pull_edges, state.push_edges, state.owned,
                    state.fields, state.read, state.native.empty, state.aggregates.given, state.aggregates.identity,
                    blocks, own[core],
                )  # fmt: skip
            except BaseException:
                blocks.state[0] = LEAVE
                raise
            return found

        totals: tuple[int, ...] = ()
        try:
            while blocks.state[0] != ENDED:
                blocks.state[0] = RUN
                for counts in state.threads.map(work, range(self._count)):
                    totals = tuple(map(sum, zip(totals, counts, strict=True))) if totals else counts
        except LoopFaultError as fault:
            raise state.error_of(fault, state.superstep) from None
        return totals


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
