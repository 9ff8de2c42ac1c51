"""A program whose edges follow the versions of a graph on one GPU: rows change where they lie, and all runs anew.

To lay a version out anew takes seconds where a run takes a millisecond. What changes are the rows' order and places
(`edited_rows.py`), so a program is followed whose messages combine in any order: no sums of floats, no lists. Where a
pull may stop at the sender of the lowest id, rows of in-edges keep the order of ids. Others go on from the last states
besides: monotone programs (`live.py`), those of a first arrival (`arrivals.py`), and measures (`measures.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram
from sigps.device.cuda import Gpu, Kernel, Module, fits
from sigps.device.transfers import bring_small
from sigps.engine.aggregates import Aggregates
from sigps.engine.cpu.following import Arrays, EdgeChanges, LiveRows
from sigps.engine.cpu.spending import Spending
from sigps.engine.exchange import Exchange
from sigps.engine.gpu import edited_rows
from sigps.engine.gpu.device_fields import DeviceFields
from sigps.engine.gpu.edited_rows import THREADS, BatchMemory, EditedRows, RowEdges, num_blocks
from sigps.engine.gpu.engine import GpuEngine, GpuProgram
from sigps.engine.gpu.given_edges import columns_to_keep, edges_on_gpu, take_edges
from sigps.engine.gpu.placed_edges import PlacedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import StatsLog
from sigps.errors import DeviceError
from sigps.kernels.cuda.abi import structure
from sigps.kernels.cuda.lease import HUB_DEGREE

__all__ = ["MOST_STATES", "TO_THE_END", "GpuFollowingEngine", "find_rows_obstacle", "live_macros"]

TO_THE_END = 1 << 62

_LIVE = structure("Live").dtype
MOST_STATES = _LIVE["states"].shape[0]
_IN_ANY_ORDER = {"min", "max", "any", "all", "or", "and", "xor", "exact"}


def find_rows_obstacle(program: VertexProgram) -> str | None:
    """Return why edges of a program do not follow the versions of a graph on a GPU; None where they do."""
    if program.delivery is not Delivery.RECORD or program.consumption not in (
        Consumption.COMBINED,
        Consumption.SINGLE,
    ):
        return "messages do not combine along edges"
    if program.takes_one or not _IN_ANY_ORDER.issuperset(program.slot_ops):
        return "what messages come to depends on the order of edges"
    if program.reads_edges or program.read_columns or program.reads_edge_links:
        return "compute() reads edges"
    if len(program.edge_columns) > 1:
        return "messages are made of several numbers of an edge"
    if program.aggregators or program.has_master:
        return "it has aggregators, or master()"
    if any(field.measure for field in program.states):
        return "states begin with measures of the graph"
    if len(program.states) > MOST_STATES:
        return f"it has over {MOST_STATES} states"
    return None


class GpuFollowingEngine:
    """A program that runs in full on a GPU, where its edges follow the versions of a graph.

    Args:
        native: The program and the GPU.
        params: The values of its parameters.
        subgraph: The whole graph, and this engine's own.
        exchange: The way to the users' ids.
        refused: Why it does not go on from its last states.

    Attributes:
        obstacle: Why it cannot follow; empty where it can.
        refused: Why the last incremental run was not begun.
    """

    gives_up = True
    grows = False
    full_cost = 0
    _is_read, _num_edges = True, 0  # where nothing is laid out
    _key_type, _takes_min, _adds = "uint32", True, False

    def __init__(
        self,
        native: GpuProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        *,
        refused: str,
    ) -> None:
        self.refused = refused
        self._num_ordered = int(native.program.early_exit is EarlyExit.LOWEST)
        self._native, self._params, self._subgraph, self._exchange = native, params, subgraph, exchange
        self._column = next(iter(native.program.edge_columns), None)
        self._last: list[Any] = []
        self._begin: dict[str, NDArray[Any]] = {}
        self._engine = self._made()
        self.obstacle = self._find_obstacle()
        if not self.obstacle:
            self._lay_out()

    def _lay_out(self) -> None:
        self._lay_out_rows()

    def _lay_out_rows(self) -> None:
        """Give rows room to change in."""
        graph, gpu = self._engine._graph, self._native.gpu
        weight = "uint8"
        if self._column is not None:
            weight = graph.incoming.column(self._column).dtype.name
        self._kernels = _kernels(
            gpu,
            self._key_type,
            weight,
            self._takes_min,
            self._column is not None,
            self._adds,
            self._num_ordered,
        )
        assert isinstance(graph.incoming, PlacedEdges)
        assert isinstance(graph.outgoing, PlacedEdges)
        incoming = outgoing = EditedRows(graph.incoming, self._column, self._kernels, gpu)
        if graph.outgoing is not graph.incoming:
            outgoing = EditedRows(graph.outgoing, self._column, self._kernels, gpu)
        self._num_edges = self._subgraph.incoming.ends.size
        self._num_hubs = int(np.count_nonzero(graph.outgoing.degrees_on_host > HUB_DEGREE))
        sides = (outgoing,) if incoming is outgoing else (outgoing, incoming)
        self._batches = BatchMemory(sides, HUB_DEGREE, self._row_order() if self._num_ordered else None)
        self._is_read = self._changes = True
        self._size = 0
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
        self._read()
        if self.obstacle:
            return StatsLog()
        engine = self._begun()
        stats = StatsLog(engine.lease(TO_THE_END).stats)
        self._end_run()
        return stats

    def _agree(self) -> None:
        """Let all ranks have an obstacle that one has. Collective; here there are no others."""

    def _begun(self) -> GpuEngine:
        """Return an engine in front of superstep 0."""
        if self._engine.superstep:
            del self._engine  # its memory is taken again
            self._engine = self._made()
            self._point()
        for name, values in self._begin.items():
            self._engine.begin(name, values)
        return self._engine

    def _end_run(self) -> None:
        """Take note of states that are others than before."""
        if not self._last:
            self._last = [values.copy() for values in self._states]
        self._changes = True
        self._fill_live()

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
        new, old = (self._by_lid(edges) for edges in rows.changes)
        self._size = max(new.rows.size, old.rows.size)
        self._batches.send(new, old)
        self._is_read = False
        self._edit()

    @property
    def column(self) -> str | None:
        """The name of the number that edges have; None where the program reads none."""
        return self._column

    def taken(
        self, inserts: Any, deletes: Any, types: Mapping[str, np.dtype[Any]], num_vertices: int
    ) -> tuple[EdgeChanges, EdgeChanges, dict[str, Any]] | None:
        """Take a batch that lies in the memory of the GPU; waits for the device.

        Args:
            inserts: Edges as they are given, and so are the next.
            deletes: See there.
            types: The graph's columns.
            num_vertices: Its vertices, whose ids are the numbers below.

        Returns:
            Edges by gid, as `follow_ends` takes them, and the numbers of new ones in these types; None of other
            batches, and of what the host is to look at.

        Raises:
            GraphError: If a number does not fit.
            MemoryError: If the device has no room for the batch.
        """
        gpu, column = self._native.gpu, None
        found = [None if part is None else edges_on_gpu(part, gpu) for part in (inserts, deletes)]
        new, old = found
        are_all = [part is None for part in (inserts, deletes)] == [part is None for part in found]
        if not are_all or new is old or (old is not None and old.columns):
            return None
        if new is not None and new.columns.keys() != types.keys():
            return None
        if self._column is not None and self._column in types:
            column = self._column, self._batches.sides[0].weight_type
        kernel = self._kernels["take_edges_thread_mapped"]
        taken = take_edges(kernel, gpu, new, old, column=column, num_vertices=num_vertices)
        if taken is None:
            return None
        inserted, deleted, wrong = taken
        kept = {name: np.empty(0, dtype) for name, dtype in types.items()}
        if new is not None:
            kept = columns_to_keep(new, inserted, types, gpu)
        # All copies are made when this is: others may write to what was given, and read what is kept.
        is_wrong = bring_small(wrong.data.ptr, wrong.nbytes).any()
        return None if is_wrong else (inserted, deleted, kept)

    def staged(self, num_inserts: int, num_deletes: int) -> tuple[Any, Any, NDArray[Any]]:
        """Return where the next batch may be written, from where it crosses: see `BatchMemory.staged`."""
        return self._batches.staged(num_inserts, num_deletes)

    def follow_ends(
        self,
        inserts: EdgeChanges,
        deletes: EdgeChanges,
        *,
        drops_loops: bool,
        drops_repeats: bool,
        beside: Sequence[tuple[tuple[Any, str], NDArray[Any]]] = (),
    ) -> None:
        """Change rows as a batch asks for, whose edges are found on the device. Does not wait for it.

        Args:
            inserts: Edges to insert, on the host or on the device.
            deletes: Ends between which all edges are deleted before, likewise; there need not be any.
            drops_loops: Whether no edge is inserted from a vertex to itself.
            drops_repeats: Whether no edge is inserted that is there already, or a second time.
            beside: As `BatchMemory.send_ends` takes it.
        """
        mirrors, weights = len(self._batches.sides) == 1, None
        if self._column is not None:
            weights = inserts.columns.get(self._column)
            if weights is None:
                weights = np.ones(inserts.sources.size, np.uint8)
        self._size = max(inserts.sources.size, deletes.sources.size) * (1 + mirrors)
        self._batches.send_ends(
            inserts,
            deletes,
            weights,
            lids=self._lids_of_given,
            mirrors=mirrors,
            drops_loops=drops_loops,
            drops_repeats=drops_repeats,
            beside=beside,
        )
        self._is_read = False
        self._edit()

    @property
    def _lids_of_given(self) -> Any:
        """The local ids on the device of the numbers that batches name, uint32; None where these are such."""
        return self._engine._graph.numbering.lids

    def _edit(self) -> None:
        blocks = num_blocks(self._native.gpu, self._size, 32)
        self._kernels["edit_rows"].launch(blocks, THREADS, (self._batches.batch,), cooperative=True)

    def _read(self) -> Any:
        """Return what a batch came to, after rows have been made room for; waits for the device."""
        if self._is_read:
            return None
        found = self._batches.read()
        while found["is_full"]:
            if not self._make_room(found):
                return found
            self._launch_again()
            found = self._batches.read()
        self._note_changes(found)
        return found

    def _make_room(self, found: Any) -> bool:
        """Let a batch change rows for which there was no room; return whether there is now, else there is an obstacle.

        Does not wait for the device.
        """
        try:
            for side, rows in enumerate(self._batches.sides):
                if found["num_used"][side] > rows.used:
                    rows.copy_rows(2 * (int(found["num_used"][side]) - rows.used))
        except (DeviceError, MemoryError) as error:
            self._is_read, self.obstacle = True, f"rows that follow do not fit the GPU: {error}"
            return False
        self._batches.point()
        self._point()
        self._engine._graph.kept.clear()  # of later runs
        self._batches.begin_anew(found)
        self._edit()
        return True

    def _note_changes(self, found: Any) -> None:
        """Take note of what a batch did to rows."""
        self._is_read = True
        for side, rows in enumerate(self._batches.sides):
            rows.used = int(found["num_used"][side])
        self._num_edges += int(found["num_added"]) - int(found["num_removed"][0])
        self._note_edges()
        self._num_hubs += int(found["more_hubs"]) - int(found["fewer_hubs"])
        if found["missing"]:
            self.obstacle = "an edge that was deleted is not there"
        elif self._num_hubs > self._engine._graph.num_hubs:
            self.obstacle = "more vertices have become hubs than there is room for"

    def _launch_again(self) -> None:
        """Launch what followed the change of rows, which had no room."""

    def widen(self, inserts: EdgeChanges) -> None:
        """Take note of nothing: no bound depends on edges."""

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Leave it to `run`."""
        return None

    def changed(self) -> Callable[[], NDArray[np.int64]] | NDArray[np.int64]:
        """Return what brings the local ids of vertices whose states differ from the fixed point before, once.

        O(vertices), where anything was sent or given back; does not wait for the device.
        """
        import cupy

        if not self._changes:
            return np.empty(0, dtype=np.int64)
        changed, live = cupy.empty(1 + self._num_owned, dtype=cupy.uint32), self._live
        changed.data.memset_async(0, changed.itemsize)
        live["changed"] = changed.data.ptr
        blocks = num_blocks(self._native.gpu, self._num_owned)
        self._kernels["compare_states_thread_mapped"].launch(blocks, THREADS, (live,))

        def bring() -> NDArray[np.int64]:
            count = int(cupy.asnumpy(changed[:1])[0])
            return np.sort(self._order[cupy.asnumpy(changed[1 : 1 + count])])

        return bring

    def _row_order(self) -> NDArray[np.uint32]:
        """Return by what the in-edges of a row ascend, where they do, of each local id on the device."""
        return self._order.astype(np.uint32)

    @functools.cached_property
    def _order(self) -> NDArray[np.int64]:
        """The local id on the host of each owned vertex on the device."""
        lids = self._engine._graph.numbering.owned_on_host
        order = np.empty(lids.size, dtype=np.int64)
        order[lids] = np.arange(lids.size)
        return order

    @property
    def _states(self) -> list[Any]:
        return self._engine._memory.states

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
        states = self._states
        if any(values.ndim > 1 or values.itemsize not in (1, 2, 4, 8) for values in states):
            return "on a GPU states that follow the versions of a graph are numbers"
        return ""

    def _point(self) -> None:
        """Tell the lease where edges are, and how many."""
        graph, lease = self._engine._graph, self._engine._lease
        lease["in_edges"], lease["out_edges"] = graph.incoming.structure(), graph.outgoing.structure()
        for arguments, edges in (("in", graph.incoming), ("out", graph.outgoing)):
            if self._column is not None:
                lease[arguments]["columns"][0] = edges.column(self._column).data.ptr
        lease["could_send"] = 0xFFFFFFFF  # nobody counts them
        self._note_edges()

    def _note_edges(self) -> None:
        """Tell the lease how many edges there are."""
        lease = self._engine._lease
        lease["num_in_edges"], lease["pull_cost"] = self._num_edges, self._num_edges + self._num_owned

    def _fill_live(self) -> None:
        """Tell kernels where states are."""
        self._live = live = np.zeros((), dtype=_LIVE)
        for name, arrays in (("states", self._states), ("before", self._last)):
            for i, array in enumerate(arrays):
                live[name][i] = array.data.ptr
        live["num_states"], live["num_rows"] = len(self._states), self._num_owned
        live["bytes"][: len(self._states)] = [values.itemsize for values in self._states]

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
def _kernels(
    gpu: Gpu, key: str, weight: str, takes_min: bool, has_column: bool, adds: bool, num_ordered: int
) -> dict[str, Kernel]:
    from sigps.device.linking import link_kernel

    module = Module(
        link_kernel("live", gpu.arch, live_macros(key, weight, takes_min, has_column, adds, num_ordered))
    )
    names = (
        "make_room_thread_mapped",
        "copy_rows_warp_mapped",
        "take_edges_thread_mapped",
        "edit_rows",
        "begin_again",
        "find_numbers",
        "compare_states_thread_mapped",
    )
    return {name: module.kernel(name) for name in names}


def live_macros(
    key: str, weight: str, takes_min: bool, has_column: bool, adds: bool, num_ordered: int
) -> dict[str, str]:
    """Return what `kernels/cuda/live.cu` is compiled with, of the names of NumPy's types.

    `num_ordered`: of how many directions rows ascend, those of in-edges first.
    """
    return {
        "SIGPS_KEY": _c_type(key),
        "SIGPS_WEIGHT": _c_type(weight),
        "SIGPS_TAKES_MIN": str(int(takes_min)),
        "SIGPS_ADDS": str(int(adds)),
        "SIGPS_COLUMNS": str(int(has_column)),
        "SIGPS_ORDERED": str(int(num_ordered)),
        "SIGPS_PART": str(edited_rows.PART),
    }


def _c_type(name: str) -> str:
    return {"float32": "float", "float64": "double"}.get(name) or f"{name}_t"
