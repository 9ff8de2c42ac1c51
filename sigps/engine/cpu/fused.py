"""fused supersteps on one CPU core: what lies between two of them is not asked of the interpreter."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram
from sigps.compiler.program import EarlyExit
from sigps.engine.cpu.push import pays_by_bins
from sigps.engine.direction import Direction, pull_gain
from sigps.engine.stats import SuperstepStats, shared_out
from sigps.kernels.cpu.arguments import Edges, FusedLimits, FusedLists, LoopArguments

__all__ = ["Fused", "Row", "most_work_alone"]

_WORK_BEFORE_OTHERS = 1 << 16
"""Messages and active vertices of a superstep that one core has done before others are awake."""

_WORK_OF_ONE = 1 << 18
"""The same where there are too few others to push faster: so many vertices have room in the lists."""

_MOST_WORK_OF_ALL = 1 << 22
"""After so much the interpreter is asked: some ten milliseconds."""

_MOST_SUPERSTEPS = 1024


def most_work_alone(num_threads: int) -> int:
    """Return how many messages and active vertices a superstep may have that one core does alone.

    >>> most_work_alone(2) > most_work_alone(8)
    True
    """
    return _WORK_BEFORE_OTHERS if pays_by_bins(num_threads) else _WORK_OF_ONE


@dataclass(frozen=True)
class Row:
    """What fused supersteps came to.

    Attributes:
        stats: One entry a superstep; what they took together is shared out by what they did.
        senders: Who sent in the last one.
        active: Who stays active.
        sent_edges: Edges of the senders.
        values: The aggregators' values.
    """

    stats: list[SuperstepStats]
    senders: NDArray[np.uint32]
    active: NDArray[np.uint32]
    sent_edges: int
    values: tuple[Any, ...]


class Fused:
    """Runs supersteps that one core has done before others are awake. Room for what it lists is taken once.

    Args:
        edges: In-edges by source: offsets, targets, columns.
        num_owned: Vertices of the partition, which is the whole graph.
        num_threads: How many threads would share a large superstep.
    """

    def __init__(self, edges: Edges, num_owned: int, num_threads: int) -> None:
        self._edges, self._pull_cost = edges, edges.ends.size + num_owned
        self._most_work = most_work_alone(num_threads)
        capacity = min(num_owned, self._most_work)
        senders, active, touched = (np.empty(capacity + more, dtype=np.uint32) for more in (0, 0, 1))
        self._lists = FusedLists(senders, active, touched, sizes=np.zeros(2, dtype=np.int64))
        self._compiled: NativeProgram | None = None
        self._account = np.empty((_MOST_SUPERSTEPS, 3), dtype=np.int64)

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
    ) -> Row:
        """Run at most so many; none where the next one is large.

        Args:
            native: The program.
            num_supersteps: How many.
            forced: A direction to use always, or None.
            senders: Who sent in the last superstep.
            active: Who is active.
            sent_edges: Edges of the senders.
            arguments: As loops have them.
            arrays: What a push and compute() work on, from `owned` to `identity`.
        """
        lists = self._lists
        for at, (listed, given) in enumerate(((lists.senders, senders), (lists.active, active))):
            listed[: given.size] = given
            lists.sizes[at] = given.size
        first = arguments.superstep
        gain = pull_gain(native.program.early_exit is not EarlyExit.NEVER, forced)
        limits = FusedLimits(
            first + num_supersteps, self._most_work, _MOST_WORK_OF_ALL, gain, self._pull_cost
        )
        others = sent_edges, self._edges, *arrays, lists, self._account
        loop = native.loop("run_fused")
        if self._compiled is not native:  # compile it: that is no superstep's time
            self._compiled = native
            loop(arguments, limits._replace(end=first), *others)
        began = time.perf_counter()
        done, sent_edges, values = loop(arguments, limits, *others)
        account = self._account[:done]
        seconds = shared_out(time.perf_counter() - began, account[:, 2])
        stats = [
            SuperstepStats(first + i, "push", ran, messages, 0, share, 1.0)
            for i, ((ran, messages, _), share) in enumerate(zip(account.tolist(), seconds, strict=True))
        ]
        num_senders, num_active = lists.sizes
        last = lists.senders[:num_senders].copy(), lists.active[:num_active].copy()
        return Row(stats, *last, int(sent_edges), values)
