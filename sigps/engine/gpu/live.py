"""A monotone program that goes on from its last states when edges are inserted and deleted, on one GPU.

As `engine/cpu/live.py`, where what a vertex sends is its key, and nothing else. So a batch is two launches of
`kernels/cuda/live.cu` and a lease that begins where they leave off:

* rows are changed where they lie (`edited_rows.py`), without waiting for the device;
* vertices that a deleted edge held up are given back their states of superstep 0, and what they held up, and so on:
  a round a step, by keys, which grow along edges;
* the sources of new edges that improve their targets send their keys again, and so do all in-neighbours of what was
  given back.

The host reads once what they came to, and launches the lease only if there is something to send.

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
from sigps.engine.gpu.edited_rows import THREADS, BatchMemory, EditedRows, RowEdges, num_blocks
from sigps.engine.gpu.engine import GpuEngine, GpuProgram
from sigps.engine.gpu.numbering import DeviceFields
from sigps.engine.gpu.path_lengths import gpu_path_lengths
from sigps.engine.gpu.placed_edges import PlacedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import AT_ONCE, StatsLog, SuperstepStats
from sigps.graph.graph import Graph
from sigps.kernels.cuda.abi import structure
from sigps.kernels.cuda.lease import HUB_DEGREE

__all__ = ["GpuLiveEngine", "find_live_obstacle", "live_macros"]

_TO_THE_END = 1 << 62

_BEGIN, _SUPERSTEP, _ROUND = 50_000_000, 600_000, 400_000
"""To begin a full run, a superstep and a round of trimming take as long as so many messages on one NVIDIA H200."""
_FOUND_AT_ONCE = 32
"""A message of what is found at once takes as long as so many of supersteps."""
_TRIMMING = 4
"""Trimming may cost one part in so many of what a run may."""
_AT_A_TIME = 64
"""Supersteps between two looks at what a run has cost; as many as before each time after that."""
_LIVE = structure("Live").dtype
_MOST_STATES = _LIVE["states"].shape[0]
_MOST_STAMP = 1 << 31


def find_live_obstacle(program: VertexProgram, found: Incremental, graph: Graph) -> str | None:
    """Return why a monotone program does not go on from version to version on a GPU; None where it does."""
    claim = program.monotone
    assert claim is not None
    if len(program.states) > _MOST_STATES:
        return f"on a GPU incremental runs are built for programs with up to {_MOST_STATES} states"
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
        self._num_hubs = int(np.count_nonzero(graph.outgoing.degrees_on_host > HUB_DEGREE))
        sides = (self._outgoing,) if self._incoming is self._outgoing else (self._outgoing, self._incoming)
        self._batches = BatchMemory(sides, HUB_DEGREE)
        self._is_read = self._changes = True
        self._size, self._stamp = 0, 1
        self._launched: int | None = None  # with which limit, and not read yet
        self._make_room_for_trimming()
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

        self._read()
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
        self._changes = True
        self._fill_live()
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
        inserts, deletes = (self._by_lid(edges) for edges in rows.changes)
        if inserts.weights is not None and inserts.weights.size and not inserts.weights.min() >= 0:
            self.obstacle = "an edge's number is below 0, so keys do not grow along edges"
        self._num_edges += inserts.rows.size - deletes.rows.size
        lease = self._engine._lease
        lease["num_in_edges"], lease["pull_cost"] = self._num_edges, self._num_edges + self._num_owned
        self._size = max(inserts.rows.size, deletes.rows.size)
        self._batches.send(inserts, deletes)
        self._is_read = False
        self._edit()

    def _edit(self) -> None:
        blocks = num_blocks(self._native.gpu, self._size, 32)
        self._kernels["edit_rows"].launch(blocks, THREADS, (self._batches.batch,), cooperative=True)

    def _read(self) -> Any:
        """Return what a batch came to, after rows have been made room for; waits for the device."""
        if self._is_read:
            return None
        found = self._batches.read()
        while found["is_full"]:
            for side, rows in enumerate(self._batches.sides):
                rows.copy_rows(2 * (int(found["num_used"][side]) - rows.used))
            self._batches.point()
            self._point()
            self._engine._graph.kept.clear()  # of later runs
            self._batches.begin_anew()
            self._edit()
            if self._launched is not None:
                self._begin_again(self._launched)
            found = self._batches.read()
        self._is_read, self._launched = True, None
        for side, rows in enumerate(self._batches.sides):
            rows.used = int(found["num_used"][side])
        self._num_hubs += int(found["more_hubs"]) - int(found["fewer_hubs"])
        if found["missing"]:
            self.obstacle = "an edge that was deleted is not there"
        elif self._num_hubs > self._engine._graph.num_hubs:
            self.obstacle = "more vertices have become hubs than there is room for"
        return found

    def widen(self, inserts: EdgeChanges) -> None:
        """Take note of nothing: no bound depends on edges."""

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Go on to the next fixed point; None where deleted edges part what holds itself up, or it costs too much."""
        self.refused = ""
        if self.obstacle:
            return None
        if deletes.sources.size and self._column is None:
            self.refused = "an edge was deleted, and keys that edges do not add to hold each other up"
            return None
        engine, memory, superstep = self._engine, self._engine._memory, self._engine.superstep
        self._begin_again(spending.left // _TRIMMING)
        found = self._read()
        if self.obstacle:
            return None
        self._stamp += int(found["num_rounds"]) + 1
        edges = int(found["num_sent_edges"])
        cost = edges + int(found["num_rounds"]) * _ROUND + int(found["num_read"]) // PULL_GAIN
        if found["is_given_up"] or not spending.take(cost):
            return None
        self._changes = bool(found["num_listed"] or edges)
        if not edges:
            return StatsLog()
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

    def _begin_again(self, most_cost: int) -> None:
        """Find who is to send, for the superstep that comes. Does not wait for the device."""
        live, memory, parity = self._live, self._engine._memory, self._engine.superstep & 1
        if self._stamp > _MOST_STAMP:
            self._stamps[:] = 0
            self._stamp = 1
        senders = memory.array(f"sent{parity}", np.uint32)
        live["batch"], live["stamp"], live["most_cost"] = self._batches.batch, self._stamp, most_cost
        live["senders"], live["num_words"] = senders.data.ptr, senders.size
        live["records"] = memory.array(f"records{parity}", self._keys.dtype).data.ptr
        blocks = num_blocks(self._native.gpu, max(32 * self._size, senders.size // 8))
        self._kernels["begin_again"].launch(blocks, THREADS, (live,), cooperative=True)
        self._launched = most_cost

    def changed(self) -> Callable[[], NDArray[np.int64]] | NDArray[np.int64]:
        """Return what brings the local ids of vertices whose states differ from the fixed point before, once.

        O(vertices), where anything was sent or given back; does not wait for the device.
        """
        import cupy

        if not self._changes:
            return np.empty(0, dtype=np.int64)
        differs, live = cupy.empty(self._num_owned, dtype=cupy.bool_), self._live
        live["differs"] = differs.data.ptr
        blocks = num_blocks(self._native.gpu, self._num_owned)
        self._kernels["compare_states_thread_mapped"].launch(blocks, THREADS, (live,))
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
    def _num_owned(self) -> int:
        return self._engine._graph.num_owned

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

    def _make_room_for_trimming(self) -> None:
        import cupy

        n = self._num_owned
        self._stamps, self._fates = cupy.zeros(n, dtype=cupy.uint32), cupy.zeros(n, dtype=cupy.uint8)
        self._lists = [cupy.empty(n, dtype=cupy.uint32) for _ in range(5)]

    def _fill_live(self) -> None:
        """Tell kernels where states are."""
        self._live = live = np.zeros((), dtype=_LIVE)
        arrays: tuple[tuple[str, list[Any]], ...] = (
            ("states", self._states),
            ("first", self._first),
            ("before", self._last),
            ("queues", self._lists[:2]),
            ("expanding", self._lists[2:4]),
        )
        for name, values in arrays:
            for i, array in enumerate(values):
                live[name][i] = array.data.ptr
        for name, array in (
            ("sent", self._sent), ("fates", self._fates), ("stamps", self._stamps), ("listed", self._lists[4]),
        ):  # fmt: skip
            live[name] = array.data.ptr
        live["num_states"], live["num_rows"], live["key"] = len(self._states), self._num_owned, self._key
        live["bytes"][: len(self._states)] = [values.itemsize for values in self._states]
        live["lists_held"] = self._has_witnesses
        live["cost_of_round"], live["edges_of_message"] = _ROUND, PULL_GAIN

    def _by_lid(self, edges: EdgeChanges) -> RowEdges:
        """Return edges by the local ids of the device, on the host."""
        lids = self._engine._graph.numbering.lids_on_host
        weights = None
        if self._column is not None:
            dtype = np.dtype(self._engine._graph.incoming.column(self._column).dtype.name)
            weights = edges.columns.get(self._column, np.ones(edges.sources.size)).astype(dtype, copy=False)
        return RowEdges(lids[edges.sources], lids[edges.targets], weights)


@functools.cache
@spent_on("compile")
def _kernels(gpu: Gpu, key: str, weight: str, takes_min: bool, has_column: bool) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(link_kernel("live", gpu.arch, live_macros(key, weight, takes_min, has_column)))
    names = "copy_rows_warp_mapped", "edit_rows", "begin_again", "compare_states_thread_mapped"
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
