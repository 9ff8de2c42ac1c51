"""Without barriers along edges that stay in a packed store: a block that was unpacked is computed until it is quiet.

Unpacking, and reading from a disk, cost more than computing. So the vertices of a block are computed several times,
from the last records of all their in-neighbours, before the block is left; records are published at once. Then the
blocks wait that have a source among those that changed, as far as is known (`Blocks.may_read`), and a sweep unpacks
those that wait.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.blocks import Blocks
from sigps.engine.cpu.crew import Schedule
from sigps.engine.cpu.run_state import RunState
from sigps.engine.stats import WITHOUT_BARRIERS, SuperstepStats
from sigps.engine.superstep import Done
from sigps.errors import ConfigError
from sigps.kernels.cpu.arguments import HALTED
from sigps.native.kernel import LoopFaultError

__all__ = ["StreamedBlocks"]

_MOST_TURNS = 4
"""Turns in a block before it is left."""


class StreamedBlocks:
    """Runs all supersteps after the first without barriers, on one rank.

    Of a contraction, changes below the program's tolerance let no block wait and may add up: so when none waits all are
    computed once more, until that changes nothing.

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
        self._marking = threading.Lock()
        numbers = (value for value in state.params if not isinstance(value, tuple))
        if not self._is_contraction and any(np.isnan(value) for value in numbers):
            raise ConfigError(
                f"{state.program.name} cannot run with asynchronous=True: a parameter is no number"
            )

    def run(self, most_supersteps: int) -> Done | None:
        """Run to the end; None where superstep 0 comes first.

        Raises:
            ComputeError: If arithmetic of compute() had no result.
            GraphError: If the store is damaged.
        """
        state, blocks = self._state, self._blocks
        if state.superstep == 0:
            self._settle(self._blocks.nothing(), (np.uint64(0), np.uint64(0)))  # compiles
            return None
        began, totals = time.perf_counter(), np.zeros(5, dtype=np.int64)
        num_changes, num_skipped = 0, 0
        try:
            while True:
                waiting = np.flatnonzero(self._waits)
                if waiting.size == 0:
                    if not self._is_contraction or num_changes == 0:
                        break
                    self._waits.fill(True)
                    num_changes = 0
                    continue
                blocks.require_files()
                counts = self._sweep(waiting)
                totals += counts
                num_changes += int(counts[4])
                num_skipped += len(blocks) - int(np.count_nonzero(waiting < len(blocks)))
        except LoopFaultError as fault:
            raise state.error_of(fault, state.superstep) from None
        state.senders = None
        if self._is_contraction:
            state.aggregates.take(self._cells(0))
        state.fields.status.fill(HALTED)
        superstep = state.superstep
        state.end_at_once()
        ran, edges, loaded, block_edges = totals[:4].tolist()
        stats = SuperstepStats(
            superstep,
            WITHOUT_BARRIERS,
            ran,
            edges,
            0,
            time.perf_counter() - began,
            1.0,
            loaded,
            block_edges,
            blocks.take_bytes_read(),
            num_skipped,
        )
        return Done((stats,), 0, 0)

    def _sweep(self, waiting: NDArray[np.int64]) -> NDArray[np.int64]:
        """Compute these blocks; return vertices that computed, edges read, blocks, their edges, and changes."""
        if self._draw is not None:
            waiting = self._draw.permutation(waiting)
        one_by_one = self._state.deterministic and self._is_contraction
        map_all = map if one_by_one else self._state.threads.map
        found: NDArray[np.int64] = np.sum(list(map_all(self._compute, waiting.tolist())), axis=0)
        return found

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
            readers = self._blocks.may_read(self._blocks.buckets_with(changed))
            if has_edges:
                readers[number] = moved > 0
            with self._marking:
                self._waits[: readers.size] |= readers
        return np.array([ran, num_edges, has_edges, num_arcs, num_changed])

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
