"""A first-arrival program that goes on when edges are inserted and deleted, on one GPU.

Each vertex acts in one superstep, its level, and sends in that one alone (`compiler/proofs/arrival.py`). Where any
message makes a vertex act, and all edges bring one, a level is the least of those of in-neighbours, and one more. So
levels are settled by themselves, as keys that edges add 1 to (`kernels/cuda/arrivals.cu`): a batch is two launches
behind the one that changes rows (`following.py`), and one reading of what they came to:

* vertices that a deleted edge left without a level are found as those of monotone programs are (`live.py`);
* targets of new edges, and these, go out in ascending order of levels, so no vertex is lowered twice;
* those whose level or messages are others run compute() again, with the messages of the superstep that is their level
  (`kernels/cuda/recompute.cu`): all states are a full run's.

All of this is besides a full run where it is given up for one, so it may cost a quarter of it. A full run that pulls
stops at the first message, where that decides: a message counts as a part of one then.
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from sigps.account import spent_on
from sigps.compiler.cuda.compile import CudaProgram, link
from sigps.compiler.program import EarlyExit
from sigps.compiler.proofs.incremental import Incremental
from sigps.device.cuda import Gpu, Kernel, Module
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.engine.direction import GPU_PULL_GAIN, GPU_PULL_GAIN_EARLY
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.edited_rows import THREADS, num_blocks
from sigps.engine.gpu.engine import GpuProgram
from sigps.engine.gpu.following import TO_THE_END, GpuFollowingEngine, live_macros
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import AT_ONCE, StatsLog, SuperstepStats
from sigps.kernels.cuda.abi import copy_into, structure

__all__ = ["MOST_STAMP", "PART", "ROUND", "GpuArrivalEngine", "arrival_macros", "find_arrival_obstacle"]

_BEGIN, _SUPERSTEP, ROUND = 50_000_000, 375_000, 400_000
"""To begin a full run, a superstep, and a round of trimming or a step of levels, in messages that take as long. A
superstep is what grid-4000 takes in full for each of its 8,000 (51.5 ms on one NVIDIA H200)."""
_OF_SEARCH = 8
"""Of a search that stops at the first message one of so many counts: kron-22 takes 0.88 ms, 0.85 of it to begin."""
PART = 4
"""What may be given up costs one part in so many of a full run at most."""
MOST_STAMP = 1 << 31

_AGAIN, _COUNTS = structure("Again").dtype, structure("LiveCounts").dtype


def find_arrival_obstacle(found: Incremental) -> str | None:
    """Return why a first-arrival program whose edges follow runs in full on a GPU; None where it goes on."""
    if not found.is_nearest:
        return (
            "on a GPU incremental runs are built for vertices that act when any message comes, of all edges"
        )
    return None


class GpuArrivalEngine(GpuFollowingEngine):
    """A first-arrival program whose states stay on a GPU, as its edges do, which follow the versions of a graph.

    Args:
        native: As `GpuFollowingEngine`'s, and so are the next three.
        params: See there.
        subgraph: See there.
        exchange: See there.
        level: Position among the states of the superstep in which a vertex acts.
    """

    def __init__(
        self,
        native: GpuProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        *,
        level: int,
    ) -> None:
        self._level = level
        self._stops_early = native.program.early_exit is not EarlyExit.NEVER
        super().__init__(native, params, subgraph, exchange, refused="")

    def _lay_out(self) -> None:
        import cupy

        self._lay_out_rows()
        if self.obstacle:
            return
        engine, gpu, n = self._engine, self._native.gpu, self._num_owned
        weight = "uint8" if self._column is None else engine._graph.incoming.column(self._column).dtype.name
        self._settling = _settling_kernels(gpu, weight, self._column is not None, self._num_ordered)
        self._computing = _computing_kernel(engine._variant.compiled, gpu)
        self._stamp, self._launched = 1, -1
        self._levels, self._stamps = cupy.empty(n, dtype=cupy.uint32), cupy.zeros(n, dtype=cupy.uint32)
        self._fates = cupy.zeros(n, dtype=cupy.uint8)
        self._lists = [cupy.empty(n, dtype=cupy.uint32) for _ in range(5)]
        self._first: list[Any] = []

    def run(self) -> StatsLog:
        """Run from superstep 0 to the end."""
        self._read()
        self._agree()
        if self.obstacle:
            return StatsLog()
        engine, stats = self._begun(), StatsLog()
        ended = False
        if not self._first:  # does not depend on edges
            outcome = engine.lease(1)
            ended = outcome.ended
            stats.extend(outcome.stats)
            self._note_first()
        if not ended:
            stats.extend(engine.lease(TO_THE_END).stats)
        messages = stats.num_messages
        counted = messages // _OF_SEARCH if self._stops_early else messages
        self.full_cost = _BEGIN + len(stats) * _SUPERSTEP + counted - messages
        self._end_run()
        self._take_levels()
        return stats

    def _note_first(self) -> None:
        """Keep the states of superstep 0, and who sent then."""
        import cupy

        self._first = [values.copy() for values in self._states]
        self._sent = (self._states[self._level] == 0).astype(cupy.uint8)

    def _take_levels(self) -> None:
        """Take the levels of a full run. Does not wait for the device."""
        blocks = num_blocks(self._native.gpu, self._num_owned)
        self._settling["copy_levels_thread_mapped"].launch(blocks, THREADS, (self._live,))

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Settle the levels anew; None where that costs too much, and `run` is to be called."""
        self.refused = ""
        if self.obstacle:
            return None
        began = time.perf_counter()
        self._settle(spending.left // PART)
        found = self._read()
        self._launched = -1
        if self.obstacle:
            return None
        self._stamp += int(found["num_rounds"]) + 3
        ran, edges = int(found["num_again"]), int(found["num_sent_edges"])
        rounds = int(found["num_rounds"]) + int(found["num_steps"])
        cost = edges + rounds * ROUND + int(found["num_read"]) // self._reads_of_message
        if found["is_given_up"] or not spending.take(cost):
            return None
        self._changes = ran > 0
        if not ran:
            return StatsLog()
        return StatsLog([SuperstepStats(1, AT_ONCE, ran, edges, 0, time.perf_counter() - began, 1.0)])

    @property
    def _reads_of_message(self) -> int:
        """How many edges are read in the time of a message."""
        return GPU_PULL_GAIN_EARLY if self._stops_early else GPU_PULL_GAIN

    def _settle(self, most_cost: int) -> None:
        """Settle levels, and let vertices compute again. Does not wait for the device."""
        live, gpu = self._live, self._native.gpu
        if self._stamp > MOST_STAMP:
            self._stamps[:] = 0
            self._stamp = 1
        batch = self._batches.batch
        copy_into("batch", live, batch)
        live["stamp"], live["most_cost"] = self._stamp, most_cost
        blocks = num_blocks(gpu, max(32 * self._size, self._num_owned // 8))
        self._settling["settle_arrivals"].launch(blocks, THREADS, (live,), cooperative=True)
        self._launch_computing()
        self._launched = most_cost

    def _launch_computing(self) -> None:
        again, batch, gpu = self._again, self._batches.batch, self._native.gpu
        assert _COUNTS.fields is not None
        for name, field in (("count", "num_again"), ("is_given_up", "is_given_up")):
            again[name] = batch["counts"] + np.uint64(_COUNTS.fields[field][1])
        incoming = batch["sides"][len(self._batches.sides) - 1]
        for name in ("begins", "degrees", "ends"):
            again[name] = incoming[name]
        self._computing.launch(num_blocks(gpu, self._num_owned), THREADS, (self._engine._lease["in"], again))

    def _launch_again(self) -> None:
        if self._launched >= 0:
            self._settle(self._launched)

    def _find_obstacle(self) -> str:
        if obstacle := super()._find_obstacle():
            return obstacle
        if self._engine._variant.compiled.defines["SIGPS_FAULTS"] == "1":
            return "on a GPU incremental runs are built for programs whose arithmetic always has a result"
        return ""

    def _fill_live(self) -> None:
        super()._fill_live()
        live, self._again = self._live, np.zeros((), dtype=_AGAIN)
        for name, arrays in (
            ("first", self._first), ("queues", self._lists[:2]), ("expanding", self._lists[2:4]),
        ):  # fmt: skip
            for i, array in enumerate(arrays):
                live[name][i] = array.data.ptr
        for name, array in (
            ("sent", self._sent), ("fates", self._fates), ("stamps", self._stamps), ("listed", self._lists[4]),
            ("keys", self._levels),
        ):  # fmt: skip
            live[name] = array.data.ptr
        live["key"], live["cost_of_round"] = self._level, ROUND
        live["edges_of_message"] = self._reads_of_message
        for name in ("states", "first", "bytes", "num_states"):
            self._again[name] = live[name]
        self._again["vertices"], self._again["levels"] = live["queues"][1], live["keys"]


@functools.cache
@spent_on("compile")
def _settling_kernels(gpu: Gpu, weight: str, has_column: bool, num_ordered: int) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("arrivals", gpu.arch, arrival_macros(weight, has_column, num_ordered)))
    return {name: module.kernel(name) for name in ("settle_arrivals", "copy_levels_thread_mapped")}


@functools.lru_cache(maxsize=64)
@spent_on("compile")
def _computing_kernel(compiled: CudaProgram, gpu: Gpu) -> Kernel:
    return Module(link(compiled, "recompute", gpu.arch)).kernel("compute_again_warp_mapped")


def arrival_macros(weight: str, has_column: bool, num_ordered: int) -> dict[str, str]:
    """Return what `kernels/cuda/arrivals.cu` is compiled with, of the name of NumPy's type."""
    macros = live_macros("uint32", weight, True, has_column, True, num_ordered)
    return macros | {"SIGPS_STEPS": "1"}
