"""A monotone program that goes on from its last states when edges are inserted and deleted, on one GPU.

As `engine/cpu/live.py`, where what a vertex sends is its key, and nothing else. So a batch is a few kernels
(`kernels/cuda/live.cu`) and a lease that begins where they leave off:

* rows are changed where they lie (`edited_rows.py`);
* vertices that a deleted edge held up are given back their states of superstep 0, and what they held up, and so on:
  a round a step, by keys, which grow along edges;
* the sources of new edges that improve their targets send their keys again, and so do all in-neighbours of what was
  given back.

Without numbers on edges keys do not grow, and hold each other up in circles: what loses an edge gets a full run.

What a batch costs is counted in messages (`Spending`), launches among it, which here take as long as many of these.
Where new edges alone come, no run costs much more than a full one, which passes the same messages and others. So what
comes on top is bounded: trimming may cost a quarter of a full run, and all together no more than one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.compiler.program import VertexProgram
from sigps.compiler.proofs.incremental import Incremental
from sigps.device.cuda import Gpu, Kernel, Module, fits
from sigps.engine.aggregates import Aggregates
from sigps.engine.cpu.following import Arrays, EdgeChanges, LiveRows
from sigps.engine.cpu.spending import Spending
from sigps.engine.direction import PULL_GAIN
from sigps.engine.exchange import Exchange
from sigps.engine.gpu import snapshot as gpu_snapshot
from sigps.engine.gpu.components import gpu_components
from sigps.engine.gpu.edited_rows import THREADS, Counts, EditedRows, RowEdges, num_blocks
from sigps.engine.gpu.engine import GpuEngine, GpuProgram
from sigps.engine.gpu.numbering import DeviceFields
from sigps.engine.gpu.path_lengths import gpu_path_lengths
from sigps.engine.gpu.placed_edges import PlacedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import AT_ONCE, StatsLog, SuperstepStats
from sigps.graph.graph import Graph
from sigps.kernels.cuda.lease import HUB_DEGREE

__all__ = ["GpuLiveEngine", "find_live_obstacle", "live_macros"]

_TO_THE_END = 1 << 62

_BEGIN, _SUPERSTEP, _ROUND = 64_000_000, 300_000, 5_000_000
"""To begin a full run, a superstep and a round of trimming take as long as so many messages on one NVIDIA H200."""
_FOUND_AT_ONCE = 32
"""A message of what is found at once takes as long as so many of supersteps."""
_TRIMMING = 4
"""Trimming may cost one part in so many of what a run may."""
_AT_A_TIME = 64
"""Supersteps between two looks at what a run has cost; as many as before each time after that."""


def find_live_obstacle(program: VertexProgram, found: Incremental, graph: Graph) -> str | None:
    """Return why a monotone program does not go on from version to version on a GPU; None where it does."""
    claim = program.monotone
    assert claim is not None
    if not found.record_is_key:
        return "on a GPU incremental runs are built for programs that send their keys, and nothing else"
    if program.edge_columns and (claim.column is None or len(program.edge_columns) > 1):
        return "on a GPU incremental runs are built for programs that read one number of an edge, which adds to keys"
    if claim.column is not None:
        is_double = program.state_dtypes[claim.current] == np.float64
        if not is_double or program.slots[0].op != "min":
            return "on a GPU keys that edges add to are followed where they are doubles, and less is better"
    return None


class GpuLiveEngine:
    """A monotone program whose states stay on a GPU, as its edges do, which follow the versions of a graph.

    Args:
        native: The program and the GPU.
        params: The values of its parameters.
        subgraph: The whole graph, and this engine's own.
        exchange: The way to the users' ids.
        has_witnesses: Whether the program keeps states beside its key that come with it.
        at_once: Whether full runs may find the fixed point out of turn.

    Attributes:
        obstacle: Why it cannot go on; empty where it can.
        refused: Why the last incremental run was not begun.
    """

    gives_up = True
    grows = False

    def __init__(
        self,
        native: GpuProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        *,
        has_witnesses: bool,
        at_once: bool = False,
    ) -> None:
        claim = native.program.monotone
        assert claim is not None
        self.refused = ""
        self._native, self._params, self._subgraph, self._exchange = native, params, subgraph, exchange
        self._has_witnesses, self._key, self._at_once = has_witnesses, claim.current, at_once
        self.full_cost = 0
        self._column = None if claim.column is None else native.program.edge_columns[claim.column]
        self._last: list[Any] = []
        self._begin: dict[str, NDArray[Any]] = {}
        self._engine = self._made()
        self.obstacle = self._find_obstacle()
        if self.obstacle:
            return
        graph, gpu = self._engine._graph, native.gpu
        key, weight = self._keys.dtype.name, "uint8"
        if self._column is not None:
            weight = graph.incoming.column(self._column).dtype.name
        takes_min = native.program.slots[0].op == "min"
        self._kernels = _kernels(gpu, key, weight, takes_min, self._column is not None)
        assert isinstance(graph.incoming, PlacedEdges)
        assert isinstance(graph.outgoing, PlacedEdges)
        self._incoming = EditedRows(graph.incoming, self._column, self._kernels, gpu)
        self._outgoing = (
            self._incoming
            if graph.outgoing is graph.incoming
            else EditedRows(graph.outgoing, self._column, self._kernels, gpu)
        )
        self._num_edges = subgraph.incoming.ends.size
        self._num_hubs = int(np.count_nonzero(self._outgoing.degrees > HUB_DEGREE))
        self._counts = Counts()
        self._prepare_trimming()
        self._point()

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """See `Following`."""
        self._begin[name] = values

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of a state field, [num_owned]; a copy."""
        return self._engine.state(name)

    def kept(self) -> DeviceFields | None:
        """Return the fields as they are now, kept on the device; None where there is no room."""
        if not fits(sum(values.nbytes for values in self._states)):
            return None
        return self._engine.kept_states()

    def run(self) -> StatsLog:
        """Run from superstep 0 to the end."""
        import cupy

        if self.obstacle:
            return StatsLog()
        if self._engine.superstep:
            del self._engine  # its memory is taken again
            self._engine = self._made()
            self._point()
        engine = self._engine
        for name, values in self._begin.items():
            engine.begin(name, values)
        at_least_one = cupy.maximum(engine._graph.out_degrees, 1)  # who sends to nobody now may get an edge
        for arguments in ("in", "out"):
            engine._lease[arguments]["out_degrees"] = at_least_one.data.ptr
        outcome = engine.lease(1)
        for arguments in ("in", "out"):
            engine._lease[arguments]["out_degrees"] = engine._graph.out_degrees.data.ptr
        self._first = [values.copy() for values in self._states]
        self._sent = gpu_snapshot.senders(engine._memory, engine._control).astype(cupy.uint8)
        stats = StatsLog(outcome.stats)
        keys, sent = self._keys, self._sent
        at_first = engine._memory.array("records1", keys.dtype)[: keys.size]
        if bool(((at_first != keys) & (sent == 1)).any()):
            self.obstacle = "what vertices send in superstep 0 is not their key"
            return stats
        self._fates[:] = 0
        if not outcome.ended:
            found = self._found_at_once(stats[-1].messages)
            if found is None:
                stats.extend(engine.lease(_TO_THE_END).stats)
            else:
                stats.append(found)
                engine.superstep += 1
        more = (_FOUND_AT_ONCE - 1) * sum(s.messages for s in stats if s.direction == AT_ONCE)
        self.full_cost = _BEGIN + len(stats) * _SUPERSTEP + more
        if not self._last:
            self._last = [values.copy() for values in self._states]
        return stats

    def _found_at_once(self, sent_edges: int) -> SuperstepStats | None:
        """Find the fixed point after superstep 0, as the engine does; None where that does not pay."""
        if not self._at_once:
            return None
        engine, program, gpu = self._engine, self._native.program, self._native.gpu
        graph, memory = engine._graph, engine._memory
        if self._column is not None:
            graph.forget(f"weights {self._column}")  # new edges may have others
            paths = gpu_path_lengths(program, graph, gpu)
            if paths is None:
                return None
            sent = memory.array(f"sent{engine.superstep & 1}", np.uint32)
            narrow = engine._variant.compiled.defines["SIGPS_ID"] == "int32_t"
            return paths.run(memory.states, sent, graph.numbering.ids(narrow=narrow))
        if program.priority_form is None or sent_edges < self._num_edges:
            return None
        components = gpu_components(program, graph, gpu)
        return components.run(memory.states[0]) if components is not None else None

    def take(self, states: Arrays) -> bool:
        """Take nothing: graphs are not laid out twice."""
        return False

    def grow(self, num_owned: int, ids: NDArray[np.int64]) -> None:
        """See `grows`."""
        raise AssertionError("it does not take new vertices")

    def note(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take note of nothing: what a batch does is seen afterwards."""

    def follow(self, rows: LiveRows) -> None:
        """Change rows as a batch changed the graph's. Does not wait for the device."""
        assert rows.changes is not None
        inserts, deletes = (self._on_device(edges) for edges in rows.changes)
        if inserts.weights is not None and inserts.weights.size and not inserts.weights.min() >= 0:
            self.obstacle = "an edge's number is below 0, so keys do not grow along edges"
        hubs = np.unique(np.concatenate([inserts.rows, deletes.rows]))
        before = int(np.count_nonzero(self._outgoing.degrees[hubs] > HUB_DEGREE))
        self._counts.set()
        replaced = self._outgoing.edit(inserts, deletes, self._counts)
        if self._incoming is not self._outgoing:
            turned = [RowEdges(edges.ends, edges.rows, edges.weights) for edges in (inserts, deletes)]
            replaced |= self._incoming.edit(turned[0], turned[1], self._counts)
        self._num_hubs += int(np.count_nonzero(self._outgoing.degrees[hubs] > HUB_DEGREE)) - before
        self._num_edges += inserts.rows.size - deletes.rows.size
        if self._num_hubs > self._engine._graph.num_hubs:
            self.obstacle = "more vertices have become hubs than there is room for"
        if replaced:
            self._engine._graph.kept.clear()  # of later runs
        self._point()

    def widen(self, inserts: EdgeChanges) -> None:
        """Take note of nothing: no bound depends on edges."""

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Go on to the next fixed point; None where deleted edges may part what holds itself up."""
        import cupy

        self.refused = ""
        if self.obstacle:
            return None
        if deletes.sources.size and self._column is None:
            self.refused = "an edge was deleted, and keys that edges do not add to hold each other up"
            return None
        engine, added = self._engine, self._on_device(inserts)
        marks = cupy.zeros(engine._graph.num_owned, dtype=cupy.uint8)
        if deletes.sources.size:
            listed = self._trim(self._on_device(deletes), spending)
            if listed is None:
                return None
            for values, first in zip(self._states, self._first, strict=True):
                values[listed] = first[listed]
            self._fates[listed] = 0
            self._launch(
                "mark_sources_warp_mapped", listed.size, 32, listed, np.uint32(listed.size),
                *self._incoming.arrays[:3], *self._senders, marks,
            )  # fmt: skip
        if added.rows.size:
            self._launch(
                "mark_improving_thread_mapped", added.rows.size, 1, *self._edges(added), *self._senders, marks,
                self._counts.on_device,
            )  # fmt: skip
        sent = marks.astype(cupy.bool_)
        edges = int((engine._graph.out_degrees[: marks.size] * marks).sum(dtype=cupy.uint64))
        if self._counts.read()["missing"]:
            self.obstacle = "an edge that was deleted is not there"
            return None
        if not edges:
            return StatsLog()
        if not spending.take(edges):
            return None
        superstep, memory = engine.superstep, engine._memory
        memory.array(f"records{superstep & 1}", self._keys.dtype)[: marks.size] = self._keys
        memory.set_senders(superstep & 1, sent)
        engine._control = memory.set_next(superstep, edges, engine._variant.pull_gain, has_retired=False)
        engine._num_small = 0
        stats, ended = StatsLog(), False
        while not ended:
            outcome = engine.lease(max(_AT_A_TIME, len(stats)))
            ended = outcome.ended
            stats.extend(outcome.stats)
            messages = sum(done.messages for done in outcome.stats)
            if not ended and not spending.take(messages + len(outcome.stats) * _SUPERSTEP):
                return None
        return stats

    def changed(self) -> Callable[[], NDArray[np.int64]]:
        """Return what brings the local ids of vertices whose states differ from the fixed point before, once.

        O(vertices); does not wait for the device.
        """
        import cupy

        differs = cupy.zeros(self._engine._graph.num_owned, dtype=cupy.bool_)
        for now, before in zip(self._states, self._last, strict=True):
            differs |= _bits(now) != _bits(before)
            before[:] = now
        return lambda: np.sort(self._order[cupy.asnumpy(cupy.flatnonzero(differs))])

    @functools.cached_property
    def _order(self) -> NDArray[np.int64]:
        """The local id on the host of each on the device."""
        lids = self._engine._graph.numbering.lids_on_host
        order = np.empty(lids.size, dtype=np.int64)
        order[lids] = np.arange(lids.size)
        return order

    @property
    def _states(self) -> list[Any]:
        return self._engine._memory.states

    @property
    def _keys(self) -> Any:
        return self._states[self._key]

    @property
    def _senders(self) -> tuple[Any, Any, Any]:
        """Keys, those of superstep 0, and who sent there, as kernels take them."""
        return self._keys, self._first[self._key], self._sent

    def _made(self) -> GpuEngine:
        engine = GpuEngine(
            self._native,
            self._params,
            self._subgraph,
            self._exchange,
            stream="never",
            tiles="never",
            is_edited=True,
        )
        self.aggregates: Aggregates = engine.aggregates
        return engine

    def _find_obstacle(self) -> str:
        compiled = self._engine._variant.compiled
        numbers = [float(p) for p in self._params if np.ndim(p) == 0 and np.asarray(p).dtype.kind == "f"]
        if any(np.isnan(numbers)):
            return "a parameter is NaN, so keys have no order"
        if compiled.record[0] != compiled.states[self._key]:
            return "on a GPU what is sent must have the type of the key"
        if self._column is not None and self._subgraph.incoming.ends.size:
            weights = self._engine._graph.incoming.column(self._column)
            if weights.dtype.kind not in "iuf":
                return "an edge's number is none that adds to keys"
            given = self._subgraph.incoming.columns.get(self._column)
            if given is not None and not given.min() >= 0:
                return "an edge's number is below 0, so keys do not grow along edges"
        return ""

    def _point(self) -> None:
        """Tell the lease where edges are, and how many."""
        graph, lease = self._engine._graph, self._engine._lease
        lease["in_edges"], lease["out_edges"] = graph.incoming.structure(), graph.outgoing.structure()
        for arguments, edges in (("in", graph.incoming), ("out", graph.outgoing)):
            if self._column is not None:
                lease[arguments]["columns"][0] = edges.column(self._column).data.ptr
        lease["could_send"] = 0xFFFFFFFF  # nobody counts them
        lease["num_in_edges"], lease["pull_cost"] = self._num_edges, self._num_edges + graph.num_owned

    def _prepare_trimming(self) -> None:
        import cupy

        n = self._engine._graph.num_owned
        self._round = 0
        self._stamps, self._fates = cupy.zeros(n, dtype=cupy.uint32), cupy.zeros(n, dtype=cupy.uint8)
        self._queues = [cupy.empty(n, dtype=cupy.uint32) for _ in range(2)]
        self._listed, self._expanding = (cupy.empty(n, dtype=cupy.uint32) for _ in range(2))

    def _trim(self, deleted: RowEdges, spending: Spending) -> Any:
        """Return the vertices that nothing holds up any more; and those whose other states may have lost their source.

        They are on the device, each once. None where there is an obstacle, or too little is left to spend.
        """
        queue, following = self._queues
        self._round += 1
        self._launch(
            "find_tight_thread_mapped", deleted.rows.size, 1, *self._edges(deleted), *self._senders,
            np.uint32(self._round), self._stamps, queue, self._counts.on_device,
        )  # fmt: skip
        found = self._counts.read()
        if found["missing"]:
            self.obstacle = "an edge that was deleted is not there"
            return None
        num_queued = int(found["queued"])
        num_listed = 0
        most = spending.left // _TRIMMING
        while num_queued:
            self._counts.set(listed=num_listed)
            self._launch(
                "judge_queued_warp_mapped", num_queued, 32, queue, np.uint32(num_queued), *self._incoming.arrays,
                *self._senders, np.uint32(self._has_witnesses), self._fates, self._listed, self._expanding,
                self._counts.on_device,
            )  # fmt: skip
            found = self._counts.read()
            num_listed, num_expanding = int(found["listed"]), int(found["expanding"])
            cost = _ROUND + int(found["edges"]) // PULL_GAIN
            most -= cost
            if most < 0 or not spending.take(cost):
                return None
            if not num_expanding:
                break
            self._round += 1
            self._launch(
                "queue_dependent_warp_mapped", num_expanding, 32, self._expanding, np.uint32(num_expanding),
                *self._outgoing.arrays, self._keys, self._fates, np.uint32(self._round), self._stamps, following,
                self._counts.on_device,
            )  # fmt: skip
            num_queued = int(self._counts.read()["queued"])
            queue, following = following, queue
        return self._listed[:num_listed]

    def _on_device(self, edges: EdgeChanges) -> RowEdges:
        """Return edges by the local ids of the device, on the host."""
        lids = self._engine._graph.numbering.lids_on_host
        weights = None
        if self._column is not None:
            dtype = np.dtype(self._engine._graph.incoming.column(self._column).dtype.name)
            weights = edges.columns.get(self._column, np.ones(edges.sources.size)).astype(dtype, copy=False)
        return RowEdges(lids[edges.sources], lids[edges.targets], weights)

    def _edges(self, edges: RowEdges) -> tuple[Any, Any, Any, np.uint32]:
        """Return edges as kernels take them: sources, targets, numbers, and how many."""
        import cupy

        sources, targets = cupy.asarray(edges.rows), cupy.asarray(edges.ends)
        weights = targets if edges.weights is None else cupy.asarray(edges.weights)
        return sources, targets, weights, np.uint32(edges.rows.size)

    def _launch(self, name: str, work_items: int, threads_of_item: int, *arguments: Any) -> None:
        blocks = num_blocks(self._native.gpu, work_items, threads_of_item)
        self._kernels[name].launch(blocks, THREADS, arguments)


def _bits(values: Any) -> Any:
    return values.view(f"u{values.dtype.itemsize}")


@functools.cache
@spent_on("compile")
def _kernels(gpu: Gpu, key: str, weight: str, takes_min: bool, has_column: bool) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("live", gpu.arch, live_macros(key, weight, takes_min, has_column)))
    names = (
        "copy_rows_warp_mapped",
        "move_rows_block_mapped",
        "find_deleted_block_mapped",
        "edit_rows_thread_mapped",
        "find_tight_thread_mapped",
        "judge_queued_warp_mapped",
        "queue_dependent_warp_mapped",
        "mark_sources_warp_mapped",
        "mark_improving_thread_mapped",
    )
    return {name: module.kernel(name) for name in names}


def live_macros(key: str, weight: str, takes_min: bool, has_column: bool) -> dict[str, str]:
    """Return what `kernels/cuda/live.cu` is compiled with, of the names of NumPy's types."""
    return {
        "SIGPS_KEY": _c_type(key),
        "SIGPS_WEIGHT": _c_type(weight),
        "SIGPS_TAKES_MIN": str(int(takes_min)),
        "SIGPS_ADDS": str(int(has_column)),
        "SIGPS_COLUMNS": str(int(has_column)),
    }


def _c_type(name: str) -> str:
    return {"float32": "float", "float64": "double"}.get(name) or f"{name}_t"
