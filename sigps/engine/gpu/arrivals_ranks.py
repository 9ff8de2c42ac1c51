"""A first-arrival program that goes on on several GPUs that write into each other's memory.

Rows follow as `ranked_rows.py` says, and levels are settled as on one GPU (`arrivals.py`), in a launch of all ranks.
Each has the levels of its ghosts, and passes the edges that end in its vertices; ranks meet once a step, for each
level at which something is, and once a round of trimming. Then each lets its vertices compute again: their messages
follow from the levels of in-neighbours, and from ids, so nothing else crosses.
"""

from __future__ import annotations

import functools
import time

import numpy as np

from sigps.account import spent_on
from sigps.device.cuda import Gpu, Kernel, Module
from sigps.device.transfers import copy_within
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.engine.gpu.arrivals import MOST_STAMP, PART, ROUND, GpuArrivalEngine, arrival_macros
from sigps.engine.gpu.edited_rows import THREADS, num_blocks
from sigps.engine.gpu.ranked_rows import GpuRankedEngine
from sigps.engine.stats import AT_ONCE, StatsLog, SuperstepStats

__all__ = ["GpuRankedArrivalEngine"]


class GpuRankedArrivalEngine(GpuRankedEngine, GpuArrivalEngine):
    """A first-arrival program on one of several ranks.

    Args:
        args: As `GpuRankedEngine`'s.
        options: As its, and `level` of `GpuArrivalEngine`.
    """

    def _lay_out(self) -> None:
        import cupy

        super()._lay_out()
        if self.obstacle:
            return
        self._fates = cupy.zeros(self._engine._graph.num_lids, dtype=cupy.uint8)  # of ghosts, too
        self._share(np.dtype(np.uint32), has_numbers=True)
        self._levels = self._all_keys

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Settle the levels anew; None where that costs too much, or cannot be done, and `run` is to be called."""
        self.refused, live, began = "", self._live, time.perf_counter()
        if self._stamp > MOST_STAMP:
            self._stamps[:] = 0
            self._stamp = 1
        live["stamp"], live["most_cost"] = self._stamp, spending.left // PART
        found = self._come_to_terms()
        self._stamp += int(found["num_rounds"]) + 3
        everywhere = found["everywhere"]
        if everywhere["states"]:
            return None
        ran, edges = int(everywhere["num_listed"]), int(everywhere["num_sent_edges"])
        cost = edges + int(everywhere["num_rounds"]) * ROUND
        cost += int(everywhere["num_read"]) // self._reads_of_message
        if not spending.take(cost):
            return None
        self._changes = int(found["num_again"]) > 0
        if not ran:
            return StatsLog()
        return StatsLog([SuperstepStats(1, AT_ONCE, ran, edges, 0, time.perf_counter() - began, 1.0)])

    def _launch_together(self, states: np.uint32) -> None:
        blocks = num_blocks(self._native.gpu, max(32 * self._size, self._num_owned // 8))
        self._rank_kernels["settle_among_ranks"].launch(
            blocks, THREADS, (self._live, states), cooperative=True
        )
        self._launch_computing()

    def _note_first(self) -> None:
        super()._note_first()
        copy_within(self._all_sent[: self._num_owned], self._sent)
        self._sent = self._all_sent

    def _take_levels(self) -> None:
        self._launch_plain("tell_levels_thread_mapped", self._num_owned)

    def _link(self, weight: str) -> dict[str, Kernel]:
        return _kernels(self._native.gpu, weight, self._column is not None, self._num_ordered)


@functools.cache
@spent_on("compile")
def _kernels(gpu: Gpu, weight: str, has_column: bool, num_ordered: int) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("arrivals_ranks", gpu.arch, arrival_macros(weight, has_column, num_ordered)))
    names = "settle_among_ranks", "tell_levels_thread_mapped", "take_slots_thread_mapped"
    return {name: module.kernel(name) for name in names}
