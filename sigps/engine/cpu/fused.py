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

    def __init__(self, edges: tuple[Any, ...], num_owned: int, num_threads: int) -> None:
        self._edges, self._pull_cost = edges, edges[1].size + num_owned
        self._most_work = most_work_alone(num_threads)
        room = min(num_owned, self._most_work)
        self._lists = tuple(np.empty(size, dtype=np.uint32) for size in (room, room, room + 1))
        self._counts = np.zeros(2, dtype=np.int64)
        self._account = np.empty((_MOST_SUPERSTEPS, 3), dtype=np.int64)

    def run(
        self,
        native: NativeProgram,
        num_supersteps: int,
        forced: Direction | None,
        senders: NDArray[np.uint32],
        active: NDArray[np.uint32],
        sent_edges: int,
        job: tuple[Any, ...],
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
            job: As loops have it.
            arrays: What a push and compute() work on, from `own` to `zero`.
        """
        for at, (room, given) in enumerate(zip(self._lists, (senders, active), strict=False)):
            room[: given.size] = given
            self._counts[at] = given.size
        first = job[0][0]
        gain = pull_gain(native.program.early_exit is not EarlyExit.NEVER, forced)
        limits = first + num_supersteps, self._most_work, _MOST_WORK_OF_ALL, gain, self._pull_cost
        others = sent_edges, self._edges, *arrays, self._lists, self._counts, self._account
        loop: Any = native.loop("run_fused")
        if not loop.signatures:  # compile it: that is no superstep's time
            loop(job, (first, *limits[1:]), *others)
        began = time.perf_counter()
        done, sent_edges, values = loop(job, limits, *others)
        account = self._account[:done]
        seconds = shared_out(time.perf_counter() - began, account[:, 2])
        stats = [
            SuperstepStats(first + i, "push", ran, messages, 0, share, 1.0)
            for i, ((ran, messages, _), share) in enumerate(zip(account.tolist(), seconds, strict=True))
        ]
        last_senders, still_active = (
            room[:count].copy() for room, count in zip(self._lists, self._counts, strict=False)
        )
        return Row(stats, last_senders, still_active, int(sent_edges), values)
