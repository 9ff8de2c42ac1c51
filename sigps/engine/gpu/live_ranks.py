"""A monotone program that goes on from its last states on several GPUs that write into each other's memory.

Rows follow as `ranked_rows.py` says. Each rank keeps the keys of its ghosts, which their owners write there after every
fixed point. So what a batch needs is known where the target of an edge is:

* Trimming goes in rounds. In each a rank trims until it finds nothing more, with the keys of ghosts as they were; then
  ghosts of what was trimmed are looked at, until no rank has any.
* Who is to send to a vertex of this rank is marked here, ghosts too, and no other rank needs to know: it has read what
  they send. So the lease of all ranks begins with marks in bits, and nothing crosses before its first superstep.

All that is one launch, in which GPUs meet (`kernels/cuda/meeting.cuh`), and one reading of what all came to together;
hosts do not meet.

Where edges add nothing to keys, vertices are numbered as on one GPU, before the first batch with deletes, and those
that lost their numbers before the next one: each rank numbers what it can, and then on from ghosts that their owners
numbered, until none has any.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from sigps.account import spent_on
from sigps.device.cuda import Gpu, Kernel, Module
from sigps.device.transfers import copy_within
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.engine.direction import PULL_GAIN
from sigps.engine.gpu.edited_rows import THREADS, num_blocks
from sigps.engine.gpu.following import live_macros
from sigps.engine.gpu.live import AT_A_TIME, MOST_STAMP, ROUND, SUPERSTEP, TRIMMING, GpuLiveEngine
from sigps.engine.gpu.ranked_rows import GpuRankedEngine
from sigps.engine.stats import StatsLog
from sigps.kernels.cuda.abi import copy_into

__all__ = ["GpuRankedLiveEngine"]


class GpuRankedLiveEngine(GpuRankedEngine, GpuLiveEngine):
    """A monotone program on one of several ranks.

    Args:
        args: As `GpuRankedEngine`'s.
        options: As its, and `has_witnesses` of `GpuLiveEngine`.
    """

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Go on to the next fixed point; None where it costs too much, or cannot be done."""
        engine, live, parity = self._engine, self._live, self._engine.superstep & 1
        if self._stamp > MOST_STAMP:
            self._stamps[:] = 0
            self._stamp = 1
        live["stamp"], live["most_cost"] = self._stamp, spending.left // TRIMMING
        live["senders"], live["records"] = engine._lease["sent"][parity], engine._lease["records"][parity]
        found = self._come_to_terms()
        self._stamp += int(found["num_rounds"]) + 1
        everywhere = found["everywhere"]
        if everywhere["states"]:
            return None
        edges = int(everywhere["num_sent_edges"])
        cost = int(everywhere["num_rounds"]) * ROUND + int(everywhere["num_read"]) // PULL_GAIN
        if not spending.take(cost + edges):
            return None
        self._changes = bool(found["num_listed"] or edges)
        if self._has_witnesses and everywhere["num_listed"]:  # those that are held up lose their numbers
            self._has_numbers = False
        if not edges:
            return StatsLog()
        engine.set_marked(edges)
        stats, ended = StatsLog(), False
        while not ended:
            outcome = engine.lease(max(AT_A_TIME, len(stats)))
            ended = outcome.ended
            stats.extend(outcome.stats)
            cost = outcome.stats.num_messages + len(outcome.stats) * SUPERSTEP
            if not ended and not spending.take(cost):
                return None
        self._tell(tells_all=False)
        return stats

    def _begin_batch(self) -> None:
        """Number vertices that have no number, from the fixed point of before and its rows. Does not wait."""
        live = self._live
        if self._adds or not live["has_deletes"]:
            return
        copy_into("batch", live, self._batches.batch)
        live["numbers_anew"] = not self._has_numbers
        self._has_numbers = True
        blocks = num_blocks(self._native.gpu, self._num_owned)
        self._rank_kernels["number_among_ranks"].launch(blocks, THREADS, (live,), cooperative=True)

    def _launch_together(self, states: np.uint32) -> None:
        blocks = num_blocks(self._native.gpu, max(32 * self._size, int(self._live["num_words"]) // 8))
        self._rank_kernels["go_on_among_ranks"].launch(
            blocks, THREADS, (self._live, states), cooperative=True
        )

    def _tell(self, *, tells_all: bool) -> None:
        """Write keys to the ranks that have ghosts. Does not wait: others read them after GPUs have met."""
        self._launch_plain("tell_keys_thread_mapped", self._num_owned, np.uint32(tells_all))
        self._launch_plain("take_keys_thread_mapped", self._num_owned)

    def _note_first(self, states: list[Any]) -> None:
        super()._note_first(states)
        n = self._num_owned
        copy_within(self._first_keys[:n], states[self._key])
        copy_within(self._all_sent[:n], self._sent)
        self._first[self._key], self._sent = self._first_keys, self._all_sent

    def _end_run(self) -> None:
        super()._end_run()
        self._tell(tells_all=True)

    def _number(self, *, anew: bool = False) -> None:
        """Number nothing now: see `_begin_batch`."""

    def _make_room_for_trimming(self) -> None:
        import cupy

        super()._make_room_for_trimming()
        self._fates = cupy.zeros(self._engine._graph.num_lids, dtype=cupy.uint8)  # of ghosts, too
        self._share(np.dtype(self._keys.dtype.name), has_numbers=not self._adds)

    def _link(self, weight: str) -> dict[str, Kernel]:
        given = self._key_type, weight, self._takes_min, self._column is not None, self._adds
        return _kernels(self._native.gpu, *given)


@functools.cache
@spent_on("compile")
def _kernels(
    gpu: Gpu, key: str, weight: str, takes_min: bool, has_column: bool, adds: bool
) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    macros = live_macros(key, weight, takes_min, has_column, adds, 0)
    module = Module(link_kernel("live_ranks", gpu.arch, macros))
    names = (
        "go_on_among_ranks",
        "tell_keys_thread_mapped",
        "take_slots_thread_mapped",
        "take_keys_thread_mapped",
        "number_among_ranks",
    )
    return {name: module.kernel(name) for name in names}
