"""Fused supersteps: many small pushes in one compiled loop on one core (`kernels/cpu/fused.py`).

`FusedLoop.run` takes the senders and active vertices that a superstep left, and returns those that the last one left,
with one entry of statistics a superstep; they are the supersteps that would have run one by one.

Gain (2 cores, milliseconds a run, fused and not): KCore on kron-18 50.8 and 108; on grid-500 BFS 14.4 and 50.0, WCC
16.5 and 54.6, SSSP 18.5 and 71.2. Searches of kron-18, in 5 to 13 supersteps, take the same
(`scripts/bench/fused.py`).
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.program import EarlyExit
from sigps.engine.cpu.push import pays_by_bins
from sigps.engine.direction import Direction, pull_gain
from sigps.engine.stats import FusedStats
from sigps.kernels.cpu.arguments import Edges, FusedAccount, FusedLimits, FusedLists, LoopArguments
from sigps.kernels.direction import FORCED

__all__ = ["MOST_WORK_OF_ALL", "FusedLoop", "FusedResult", "most_work_alone"]

_WORK_BEFORE_OTHERS = 1 << 16
"""Messages and active vertices of a superstep that one core has processed before other threads have woken."""

_WORK_OF_ONE = 1 << 18
"""The same where there are too few threads for a faster push; it bounds the capacity of the lists."""

MOST_WORK_OF_ALL = 1 << 22
"""The loop does no more work before it returns, in some ten milliseconds, so that a run can be interrupted."""

_MOST_SUPERSTEPS = 1024


def most_work_alone(num_threads: int) -> int:
    """Return how many messages and active vertices a superstep may have that one core runs alone.

    >>> most_work_alone(2) > most_work_alone(8)
    True
    """
    return _WORK_BEFORE_OTHERS if pays_by_bins(num_threads) else _WORK_OF_ONE


class FusedResult(NamedTuple):
    """What fused supersteps left.

    Attributes:
        stats: One entry a superstep.
        senders: Local ids of the vertices that sent in the last one.
        active: Local ids of the vertices that stay active.
        sent_edges: Out-edges of the senders.
        values: The aggregators' values.
    """

    stats: FusedStats
    senders: NDArray[np.uint32]
    active: NDArray[np.uint32]
    sent_edges: int
    values: tuple[Any, ...]


class FusedLoop:
    """Runs small supersteps on one core, for one partition that is the whole graph. Its lists are allocated once.

    Args:
        edges: In-edges by source: offsets, targets, columns.
        num_owned: Vertices of the partition, which is the whole graph.
        num_threads: How many threads would share a large superstep.
    """

    def __init__(self, edges: Edges, num_owned: int, num_threads: int) -> None:
        self._edges = edges
        self._most_work = most_work_alone(num_threads)
        capacity = min(num_owned, self._most_work)
        senders, active, touched = np.empty((3, capacity + 1), dtype=np.uint32)
        self._lists = FusedLists(senders, active, touched, sizes=np.zeros(2, dtype=np.int64))
        self._counts = np.empty((3, _MOST_SUPERSTEPS), dtype=np.int64)
        self._account = FusedAccount(*self._counts)

    def run(
        self,
        native: NativeProgram,
        num_supersteps: int,
        forced: Direction | None,
        senders: NDArray[np.uint32],
        active: NDArray[np.uint32],
        sent_edges: int,
        arguments: LoopArguments,
        *arrays: Any,
        num_edges: int,
        most_work_of_all: int = MOST_WORK_OF_ALL,
    ) -> FusedResult:
        """Run at most so many supersteps; none where the next one is large or better pulled.

        Args:
            native: The program.
            num_supersteps: How many.
            forced: A direction to use always, or None.
            senders: Local ids of the vertices that sent in the last superstep.
            active: Local ids of the active vertices.
            sent_edges: Out-edges of the senders.
            arguments: Those of the next superstep.
            arrays: What `run_fused` takes from `owned` to `identity`.
            num_edges: By which `choose_direction` decides.
            most_work_of_all: How much work, in messages and active vertices.
        """
        lists = self._lists
        lists.senders[: senders.size], lists.active[: active.size] = senders, active
        lists.sizes[:] = senders.size, active.size
        first = arguments.superstep
        gain = pull_gain(native.program.early_exit is not EarlyExit.NEVER)
        limits = FusedLimits(
            first + num_supersteps,
            self._most_work,
            min(most_work_of_all, MOST_WORK_OF_ALL),
            num_edges,
            gain,
            FORCED[forced],
        )
        others = sent_edges, self._edges, *arrays, lists, self._account
        loop = native.loop("run_fused")
        if not loop.has_code:  # compiled before the clock starts
            loop(arguments, limits._replace(end=first), *others)
        began = time.perf_counter()
        done, sent_edges, values = loop(arguments, limits, *others)
        seconds = time.perf_counter() - began
        num_senders, num_active = lists.sizes
        return FusedResult(
            FusedStats(first, self._counts[:, :done].copy(), seconds),
            lists.senders[:num_senders].copy(),
            lists.active[:num_active].copy(),
            sent_edges,
            values,
        )
