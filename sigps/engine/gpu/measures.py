"""A program whose states begin with measures of a graph that changes, on one GPU.

Measures stay on the device (`num_neighbors`, `neighbor_links`), by local id. A batch changes rows where they lie, in
ascending order of local ids (`following.py`), and the measures along the pairs of vertices that it links or parts
(`kernels/cuda/changed_links.cu`): as many launches, and one reading of what they came to. Then the program runs from
superstep 0, in the memory of the run before, which for vertices that send nothing takes a pass over them. A full run
counts anew.

To count costs what is known before it begins: the edges of the ends of lower degree, of the batch's pairs and of all
edges, and how many edges such an end lost. So what is given up has cost next to nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from sigps.account import spent_on
from sigps.compiler.program import Delivery, VertexProgram
from sigps.compiler.proofs.incremental import Incremental
from sigps.compiler.proofs.rounds import reads_rows
from sigps.device.cuda import Gpu, Kernel, Module
from sigps.device.transfers import copy_within
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.engine.gpu import edited_rows
from sigps.engine.gpu.edited_rows import THREADS, num_blocks
from sigps.engine.gpu.following import MOST_STATES, TO_THE_END, GpuFollowingEngine, live_macros
from sigps.engine.gpu.triangles import Around, count_around
from sigps.engine.stats import StatsLog
from sigps.errors import DeviceError, KernelError
from sigps.kernels.cuda.abi import copy_into, structure

__all__ = ["GpuMeasuresEngine", "find_measures_obstacle", "link_macros"]

_BEGIN = 50_000_000
"""To begin a full run, in messages that take as long."""
_READS_OF_MESSAGE = 10
"""Edges that are read in order in the time of a message."""
_SEARCHED = 8
"""A neighbour that is searched for takes as long as so many that are read in order where all edges are counted. Not
measured by itself."""

_LINKS = structure("ChangedLinks").dtype


def find_measures_obstacle(program: VertexProgram, found: Incremental) -> str | None:
    """Return why measures of the graph do not follow its versions on a GPU; None where they do."""
    if found.kind != "local measures":
        return "states begin with measures of the graph"
    if program.delivery is not Delivery.NONE or program.reads_edges or program.edge_columns:
        return "states begin with measures of the graph, and vertices send, or read their edges"
    if len(program.states) > MOST_STATES:
        return f"it has over {MOST_STATES} states"
    return None


class GpuMeasuresEngine(GpuFollowingEngine):
    """A program that begins with measures of the graph, which follow its versions on a GPU.

    Args:
        *args: As `GpuFollowingEngine`'s.
    """

    def __init__(self, *args: Any) -> None:
        self._found: Around | None = None
        native, *_ = args
        self._reads_degrees = reads_rows(native.program)
        super().__init__(*args, refused="")

    def _lay_out(self) -> None:
        import cupy

        graph = self._engine._graph
        self._directed = graph.outgoing is not graph.incoming
        if self._directed:
            graph.sort_outgoing()
            del self._engine  # which reads the rows of before
            self._engine = self._made()
        self._num_ordered = 1 + self._directed
        super()._lay_out()
        self._counting = _counting_kernels(self._native.gpu, self._directed)
        n = self._num_owned
        self._heads = cupy.zeros(n, dtype=cupy.uint32)
        self._num_hung = cupy.zeros(n, dtype=cupy.uint32)
        self._touched = cupy.zeros(-(-n // 32), dtype=cupy.uint32)
        self._work = cupy.zeros(1, dtype=cupy.uint64)
        self._links = np.zeros((), dtype=_LINKS)
        self._links["num_rows"] = n
        for name in ("heads", "num_hung", "touched", "work"):
            self._links[name] = getattr(self, f"_{name}").data.ptr
        self._table: list[Any] = []
        self._launched = -1

    def run(self) -> StatsLog:
        """Count measures, and run from superstep 0 to the end."""
        import cupy

        self._read()
        if self.obstacle:
            return StatsLog()
        engine = self._begun()
        try:
            self._found = count_around(engine._graph, self._native.gpu, directed=self._directed)
        except KernelError:
            raise
        except (DeviceError, MemoryError) as error:
            self.obstacle = f"there is no room to count beside rows that follow: {error}"
            return StatsLog()
        for name in ("num_neighbors", "neighbor_links"):
            self._links[name] = getattr(self._found, name).data.ptr
        copy_into("batch", self._links, self._batches.batch)
        self._work[:] = 0
        blocks = num_blocks(self._native.gpu, self._num_owned, 32)
        self._counting["add_up_work_warp_mapped"].launch(blocks, THREADS, (self._links,))
        stats = self._run_measured()
        self.full_cost = _BEGIN + int(cupy.asnumpy(self._work)[0]) // _READS_OF_MESSAGE
        self._end_run()
        return stats

    def _run_measured(self) -> StatsLog:
        """Run an engine that stands before superstep 0."""
        engine, found = self._engine, self._found
        assert found is not None
        for values, field in zip(self._states, self._native.program.states, strict=True):
            if not field.measure:
                continue
            measure = getattr(found, repr(field.measure))
            if values.dtype == measure.dtype:
                copy_within(values, measure)
            else:
                values[:] = measure
        return StatsLog(engine.lease(TO_THE_END).stats)

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Let the measures follow, and run; None where that costs too much."""
        self.refused = ""
        if self.obstacle:
            return None
        try:
            self._count(spending.left * _READS_OF_MESSAGE // _SEARCHED)
        except (DeviceError, MemoryError) as error:
            self.obstacle = f"there is no room for the pairs of a batch beside rows that follow: {error}"
            return None
        found = self._read()
        self._launched = -1
        if self.obstacle:
            return None
        if found["is_given_up"] or not spending.take(int(found["num_read"]) * _SEARCHED // _READS_OF_MESSAGE):
            return None
        self._changes = bool(found["num_begun"]) or self._reads_degrees
        if not self._changes:
            return StatsLog()
        self._engine.begin_anew()
        self.aggregates = self._engine.aggregates
        return self._run_measured()

    def _count(self, most_cost: int) -> None:
        """Let the measures follow a batch. Does not wait for the device."""
        links, batch = self._links, self._batches.batch
        num_changes = int(batch["most_removed"]) + int(batch["num_inserts"])  # of an undirected graph twice
        num_slots = 1 << (num_changes << self._directed).bit_length()
        if not self._table or self._table[0].size < num_slots:
            self._make_table(num_slots)
        copy_into("batch", links, batch)
        links["num_slots"], links["most_cost"] = num_slots, min(most_cost, TO_THE_END)
        blocks = num_blocks(self._native.gpu, max(num_slots, 32 * self._size))
        self._counting["follow_links"].launch(blocks, THREADS, (links,), cooperative=True)
        self._launched = most_cost

    def _make_table(self, num_slots: int) -> None:
        import cupy

        self._table.clear()
        table = []
        # Pairs that take more parts than all edges together are not worth it.
        most_parts = num_slots + self._num_edges // edited_rows.PART
        for name, dtype, count in (
            ("keys", np.uint64, num_slots), ("removed", np.uint32, 2 * num_slots), ("added", np.uint32, 2 * num_slots),
            ("became", np.uint32, num_slots), ("pairs", np.uint32, num_slots), ("nexts", np.uint32, 2 * num_slots),
            ("parts", np.uint64, most_parts),
        ):  # fmt: skip
            table.append(cupy.empty(count, dtype=dtype))
            self._links[name] = table[-1].data.ptr
        self._table, self._links["most_parts"] = table, most_parts

    def _launch_again(self) -> None:
        if self._launched >= 0:
            self._count(self._launched)

    def _row_order(self) -> Any:
        return np.arange(self._num_owned, dtype=np.uint32)


@functools.cache
@spent_on("compile")
def _counting_kernels(gpu: Gpu, directed: bool) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("changed_links", gpu.arch, link_macros(directed)))
    return {name: module.kernel(name) for name in ("follow_links", "add_up_work_warp_mapped")}


def link_macros(directed: bool) -> dict[str, str]:
    """Return what `kernels/cuda/changed_links.cu` is compiled with."""
    macros = live_macros("uint32", "uint8", True, False, False, 1 + directed)
    return macros | {"SIGPS_DIRECTED": str(int(directed))}
