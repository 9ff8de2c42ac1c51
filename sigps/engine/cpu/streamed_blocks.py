"""Without barriers along edges that stay in a packed store: a block that was unpacked is computed until it is quiet.

Unpacking, and reading from a disk, cost more than computing. So the vertices of a block are computed several times,
from the last records of all their in-neighbours, before the block is left; records are published at once. Then the
blocks wait that have a source among those that changed, as far as is known (`Blocks.may_read`), and a sweep unpacks
those that wait.

On several ranks each has its pages. Between two sweeps the records of vertices that changed cross, and let the blocks
wait that may read them; the end is no block that waits on any rank after that.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.blocks import Blocks
from sigps.engine.cpu.crew import Schedule
from sigps.engine.cpu.crossing import Crossing
from sigps.engine.cpu.run_state import RunState
from sigps.engine.superstep import Done
from sigps.errors import ConfigError
from sigps.kernels.cpu.arguments import HALTED
from sigps.native.kernel import LoopFaultError

__all__ = ["StreamedBlocks"]

_MOST_TURNS = 4
"""Turns in a block before it is left."""


class StreamedBlocks:
    """Runs all supersteps after the first without barriers.

    Of a contraction, changes below the program's tolerance let no block wait and may add up: so when none waits on any
    rank all records cross and all are computed once more, until that changes nothing.

    Args:
        state: What the run keeps; of a program that needs no barriers, and has no parents.
        blocks: The edges.
        schedule: How often a block is computed (`most_inside`, in turns), and in which order (`seed`).
    """

    def __init__(self, state: RunState, blocks: Blocks, schedule: Schedule) -> None:
        self._state, self._blocks = state, blocks
        claim = state.program.asynchronous
        self._is_contraction = claim is not None and claim.factor is not None
        self._loop = state.loop("settle_contraction" if self._is_contraction else "settle_fold")
        self._most_turns = _MOST_TURNS if schedule.most_inside is None else schedule.most_inside
        self._draw = np.random.default_rng(schedule.seed) if schedule.seed else None
        self._spans = [*blocks.spans, *(blocks.spans_without if self._is_contraction else [])]
        self._waits = np.ones(len(self._spans), dtype=np.bool_)
        self._changed = np.zeros(state.subgraph.num_owned, dtype=np.uint8)
        self._to_cross = np.zeros(state.read.sent.size, dtype=np.uint8)  # changed since records crossed
        self._crossing = Crossing(state)
        self._is_quiet, self._is_over, self._num_changes = True, False, 0
        self._marking = threading.Lock()
        numbers = (value for value in state.params if not isinstance(value, tuple))
        if not self._is_contraction and any(np.isnan(value) for value in numbers):
            raise ConfigError(
                f"{state.program.name} cannot run with asynchronous=True: a parameter is no number"
            )

    def run(self, most_supersteps: int) -> Done | None:
        """Run to the end, or on several ranks a round; None where superstep 0 comes first. Collective.

        Raises:
            ComputeError: If arithmetic of compute() had no result.
            GraphError: If the store is damaged.
        """
        state, blocks, is_alone = self._state, self._blocks, self._state.exchange.size == 1
        if state.superstep == 0:
            self._settle(self._blocks.nothing(), (np.uint64(0), np.uint64(0)))  # compiles
            return None
        self._crossing.begin()
        state.senders = None
        counts = np.zeros(6, dtype=np.int64)
        try:
            while not self._is_over:
                counts += self._turn()
                if not is_alone:
                    break
        except LoopFaultError as fault:
            raise state.error_of(fault, state.superstep) from None
        given = counts, 0 if self._is_over else 1
        done = self._crossing.end(*given, read=blocks.take_bytes_read(), skipped=int(counts[5]))
        if not self._is_over:
            state.superstep += 1
            return done
        if self._is_contraction:
            state.aggregates.take(self._cells(0))
        state.fields.status.fill(HALTED)
        state.end_at_once()
        return done

    def _turn(self) -> NDArray[np.int64]:
        """Compute the blocks that wait once, and let records cross; find out whether that was the end. Collective."""
        state, crossing = self._state, self._crossing
        if self._is_quiet:
            crossing.cross(*state.read)
            self._waits.fill(True)
            self._num_changes = 0
        waiting = np.flatnonzero(self._waits)
        self._blocks.require_files()
        counts = self._sweep(waiting)
        if state.exchange.size > 1:
            ghosts = crossing.cross(self._to_cross, state.read.records)
            self._to_cross.fill(0)
            state.read.sent[ghosts] = 1
            if ghosts.size:
                readers = self._blocks.may_read(self._blocks.buckets_with(ghosts))
                self._waits[: readers.size] |= readers
        found = state.exchange.gather(np.array([np.count_nonzero(self._waits), counts[4]]))
        self._is_quiet = not found[:, 0].any()
        self._num_changes += int(found[:, 1].sum())
        self._is_over = self._is_quiet and (not self._is_contraction or self._num_changes == 0)
        return counts

    def _sweep(self, waiting: NDArray[np.int64]) -> NDArray[np.int64]:
        """Compute these blocks.

        Returns:
            Vertices that computed, blocks unpacked, the edges of these, edges read, changes, and blocks left out.
        """
        if self._draw is not None:
            waiting = self._draw.permutation(waiting)
        one_by_one = self._state.deterministic and self._is_contraction
        map_all = map if one_by_one else self._state.threads.map
        counts = np.zeros(6, dtype=np.int64)
        for found in map_all(self._compute, waiting.tolist()):
            counts[:5] += found
        counts[5] = len(self._blocks) - counts[1]
        return counts

    def _compute(self, number: int) -> NDArray[np.int64]:
        """Compute a block that waits, and let those wait that may read what changed."""
        span, has_edges = self._spans[number], number < len(self._blocks)
        with self._marking:
            self._waits[number] = False
        edges = self._blocks.block(number) if has_edges else self._blocks.nothing()
        first, end = int(span[0]), int(span[1])
        num_arcs = int(edges.offsets[end]) - int(edges.offsets[first])
        ran, num_edges, num_changed, moved = self._settle(edges, span)
        changed = first + np.flatnonzero(self._changed[first:end])
        if changed.size:
            self._changed[changed] = 0
            self._to_cross[changed] = 1
            readers = self._blocks.may_read(self._blocks.buckets_with(changed))
            if has_edges:
                readers[number] = moved > 0
            with self._marking:
                self._waits[: readers.size] |= readers
        return np.array([ran, has_edges, num_arcs, num_edges, num_changed])

    def _settle(self, edges: Any, span: tuple[np.uint64, np.uint64]) -> Any:
        state = self._state
        arguments = state.arguments()._replace(superstep=2)
        if self._is_contraction:
            arguments = arguments._replace(aggregates=self._cells(1))
        return self._loop(
            span, self._most_turns, arguments, edges, state.owned, state.fields, state.read, state.native.empty, (),
            state.aggregates.identity, self._changed,
        )  # fmt: skip

    def _cells(self, count: int) -> tuple[Any, ...]:
        return tuple(dtype.type(count) for dtype in self._state.program.aggregate_dtypes)
