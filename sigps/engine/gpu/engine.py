"""Supersteps of one partition in the memory of a GPU.

`GpuEngine.lease(k)` is a launch of `kernels/cuda/lease.cu`, or a few: the device counts, chooses directions and ends
a run itself, and the host reads statistics when a launch is over.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.compile import key_bytes
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.device.cuda import Gpu, on_gpu
from sigps.device.transfers import copy_within, fill_with, send
from sigps.engine.compute_errors import KeptFault, error_of, id_of
from sigps.engine.direction import GPU_ROW_COST, Direction, Schedule
from sigps.engine.exchange import Exchange, checked_gids
from sigps.engine.gpu import snapshot as gpu_snapshot
from sigps.engine.gpu.columns import cast
from sigps.engine.gpu.components import GpuComponents, gpu_components
from sigps.engine.gpu.device_fields import DeviceFields
from sigps.engine.gpu.edge_states import commit_edge_states, kept_edge_state
from sigps.engine.gpu.graph import GpuGraph, put_rows
from sigps.engine.gpu.launch import NO_CLUSTER, SharedCache
from sigps.engine.gpu.memory_plan import MOST_SUPERSTEPS
from sigps.engine.gpu.open_loops import wait_for_stream, watching_loops
from sigps.engine.gpu.packed_edges import PackedEdges, PackedGraph
from sigps.engine.gpu.packed_lengths import NOT_BY_PAGES, PackedPathLengths, packed_path_lengths
from sigps.engine.gpu.path_lengths import GpuPathLengths, gpu_path_lengths
from sigps.engine.gpu.placed_program import PlacedProgram, column_types
from sigps.engine.gpu.placement import Placement
from sigps.engine.gpu.priority import GpuPriorityOrder
from sigps.engine.gpu.rank_components import RankComponents
from sigps.engine.gpu.resident import runs_on_gpu
from sigps.engine.gpu.run_memory import RunMemory
from sigps.engine.gpu.spilling import Stream
from sigps.engine.gpu.tiling import Tiles
from sigps.engine.gpu.triangles import count_around
from sigps.engine.gpu.variant import Packing, Variant
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.edge_states import check_names
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import Outcome
from sigps.errors import ConfigError, DeviceError, ExchangeError
from sigps.kernels.cuda.lease import (
    FAULT_BITS,
    FAULTED,
    FINISHED,
    MASTER_FAULTED,
    NO_CAPACITY,
    NO_VERTEX,
    OF_SENDER,
    PEER_LOST,
    RUNNING,
    SMALL_BEFORE_SWITCH,
    STOPPED,
    SUPERSTEP_AT,
    UNKNOWN_TARGET,
)
from sigps.kernels.direction import FORCED, PULL, PUSH

__all__ = ["GpuEngine", "GpuProgram"]


@dataclass(frozen=True)
class GpuProgram:
    """A vertex program that is to run on a GPU; compiled when the graph's types are known."""

    program: VertexProgram
    gpu: Gpu


class GpuEngine:
    """A vertex program on one partition on one GPU, from superstep 0 to the end.

    Args:
        native: The program and the GPU.
        params: The values of its parameters, in its order.
        subgraph: The partition.
        exchange: The way to the users' ids. Where there are others, `GpuStagedEngine` or `GpuPeerEngine` runs
            this one.
        forced: A direction to use always, or None.
        asynchronous: Whether values may be sent out of turn where the result is provably the same.
        master: The program's master compute, or None. Where it is no plain Python, the device runs it between
            supersteps; else the host does, `master()` after launches of one superstep.
        saves: Whether `save` is called now and then: then no cluster delivers what is in flight.
        stream: Whether edges may stay on the host (`choose_spilling`).
        is_limited: Whether the user limits what the run takes of the GPU.
        tiles: Whether in-edges lie in tiles (`choose_tiling`).
        is_edited: Whether rows are going to change (`edited_rows.py`); of a partition that no other engine has.
        is_bulk: Whether all packed pages are to cross in every superstep.
        host_bytes: What packed pages may take of the host; the others stay on disk. None for no limit.
        without_barriers: Whether a run along packed edges is to have none, on one rank: a contraction, whose vertices
            send together, computes each page several times from the last records before it is left; path lengths are
            found by pages in which something waits.
        schedule: What a work item is. An edge: then nothing is sent out of turn, and there is no cluster.
    """

    has_peers = False
    runs_alone = True
    """Whether a launch may run many supersteps."""
    detects_lost_ranks = False
    traced: list[dict[str, Any]] | None = None
    goes_by_pages = True
    """Whether path lengths along packed edges are found so without being asked for (DESIGN.md has what that gains)."""
    num_at_once = 1
    """How many runs share the GPU: this one takes its part of the blocks."""

    def __init__(
        self,
        native: GpuProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        *,
        forced: Direction | None = None,
        asynchronous: bool = False,
        master: MasterCompute | None = None,
        saves: bool = False,
        schedule: Schedule = "vertex",
        stream: Stream = "auto",
        is_limited: bool = False,
        tiles: Tiles = "auto",
        is_edited: bool = False,
        is_bulk: bool = False,
        host_bytes: int | None = None,
        without_barriers: bool = False,
    ) -> None:
        if subgraph.outgoing is not None:
            check_names(native.program.edge_states, subgraph.outgoing.columns)
        elif isinstance(subgraph.incoming, StreamedEdges):
            check_names(native.program.edge_states, subgraph.incoming.rows.packed.columns)
        self.superstep = 0
        self._gpu, self._program = native.gpu, native.program
        self._params, self._subgraph, self._exchange = params, subgraph, exchange
        self._master = master
        self._asks_master = self.runs_alone and master is not None and master.is_compiled
        self._goes_by_edge = schedule == "edge"
        self._has_turns = False
        self._control: Any = None
        self._arrived: Snapshot | None = None
        alone = exchange.size == 1
        claim = native.program.asynchronous
        self._settles = without_barriers and claim is not None and claim.factor is not None
        can_wait = asynchronous and not self._goes_by_edge and not is_bulk and host_bytes is None
        may_keep = (alone or self.has_peers) and not is_limited and not is_edited
        kept = runs_on_gpu(subgraph, native.gpu) if may_keep else {}
        key = native.program, schedule, asynchronous, forced, stream, tiles, without_barriers
        is_kept = key in kept
        if not (is_kept if alone else may_keep and self._everywhere(is_kept)):  # else all place it anew
            placement = Placement(
                native.program,
                native.gpu,
                subgraph,
                column_types(subgraph),
                exchange=exchange,
                has_peers=self.has_peers,
                goes_by_edge=self._goes_by_edge,
                can_wait=can_wait,
                forced=forced,
                stream=stream,
                is_limited=is_limited,
                tiles=tiles,
                is_edited=is_edited,
                is_bulk=is_bulk,
                host_bytes=host_bytes,
                without_barriers=self._settles,
            )
            graph = placement.graph()
            if self._is_packed or graph.spilling is not None:  # which asks each time what fits
                kept = {}
            kept[key] = PlacedProgram.of(placement, graph, self._everywhere(graph.has_narrow_ids))
        self._placed: PlacedProgram = kept[key]
        self._graph: GpuGraph = self._placed.graph
        self._packing = self._placed.packing
        self.aggregates = self._placed.aggregates.again()
        self._running = native.program
        self._variant = self._variant_of(self._running)
        self._num_edges = subgraph.incoming.num_edges  # on all GPUs
        may_wait = can_wait and self._packing is not Packing.PART
        self._is_priority_form = may_wait and native.program.priority_form is not None
        self._num_small = 0
        self._most_seconds, self._is_time_up = math.inf, False
        self._answers: list[Any] = []
        self._is_answered = False
        self._order = GpuPriorityOrder(native.gpu, native.program)
        posts = native.program.delivery is Delivery.DIRECT
        pulled = (
            "mailbox" if posts else "edge" if self._goes_by_edge else "async" if self._settles else "pull"
        )
        self._directions = {PULL: pulled, PUSH: "push"}
        by_host = master is not None and not (self._asks_master and master.waits)
        may_have_cluster = alone and not saves and not by_host
        self._has_cluster = may_have_cluster and self._variant.cluster != NO_CLUSTER
        self._components: GpuComponents | RankComponents | None = None
        self._path_lengths: GpuPathLengths | None = None
        if can_wait and alone and forced is None and not self._is_packed:
            self._path_lengths = gpu_path_lengths(native.program, self._graph, native.gpu)
            if self._is_priority_form:
                self._components = gpu_components(native.program, self._graph, native.gpu)
        self._packed_lengths: PackedPathLengths | None = None
        self._is_by_pages_alone = without_barriers and not self._settles
        if self._is_by_pages_alone or (self.goes_by_pages and can_wait and alone and forced is None):
            self._packed_lengths = packed_path_lengths(
                native.program,
                self._graph,
                native.gpu,
                self._variant.record_bytes,
                is_asked=self._is_by_pages_alone,
            )
            if self._is_by_pages_alone and self._packed_lengths is None:
                raise ConfigError(NOT_BY_PAGES)
        self._memory = self._run_memory()
        self._lease = self._memory.lease
        if self._is_packed and native.program.delivery is Delivery.DIRECT:
            held = 0
            if self._packing.reads_pages:
                assert isinstance(self._graph, PackedGraph)
                held = self._graph.packed.host_bytes + self._graph.values_on_host
            self._memory.direct.host_room = None if host_bytes is None else max(0, host_bytes - held)
        has_tiles, packing = self._graph.tiles is not None, self._packing
        pulls_alone = self._goes_by_edge or has_tiles or packing.pulls_alone
        self._lease["forced"] = FORCED["pull" if pulls_alone else forced]
        if self._settles:  # what is sent is read at once
            self._lease["records"][0] = self._lease["records"][1]
        self._lease["row_cost"] = self._row_cost()
        self._lease["asks_master"] = self._asks_master
        self._lease["counts_messages"] = master is not None and master.counts_messages
        # Blocks that read packed pages, and the memory that is theirs.
        self._readers: tuple[int, Any] = 0, None

    @property
    def _is_packed(self) -> bool:
        return self._subgraph.incoming.is_streamed

    @property
    def _pages(self) -> PackedEdges:
        assert isinstance(self._graph, PackedGraph)
        return self._graph.packed

    def _row_cost(self) -> int:
        """Return what a sender's row costs a push, in messages: alike on all GPUs, where one has rows on its host."""
        if not self._packing.reads_pages or self._packing.pulls_alone:
            return 0
        return 0 if self._everywhere(not self._pages.has_rows_on_host) else GPU_ROW_COST

    def _run_memory(self) -> RunMemory:
        return RunMemory(
            self._variant.compiled,
            self._graph,
            self._params,
            has_cluster=self._has_cluster,
            goes_by_edge=self._goes_by_edge,
            pulls_alone=self._packing.pulls_alone,
        )

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps."""
        return _last(self.launches(num_supersteps))

    def limit_time(self, seconds: float, awaited: NDArray[np.uint32]) -> bool:
        """See `engine.contract`. The small-frontier kernel has no clock, nor has what hosts do between launches."""
        by_host = self._master is not None and not self._asks_master
        if (
            self._exchange.size > 1
            or self._has_cluster
            or by_host
            or self._program.delivery is Delivery.DIRECT
        ):
            return False
        self._most_seconds, self._lease["most_time"] = seconds, max(1, int(seconds * 1e9))
        self._lease["awaited"] = on_gpu(self._gpu, awaited.ctypes.data)
        if not self._has_turns:
            self._has_turns = True
            self._variant = self._variant_of(self._running)
        self._ask_for_answers()
        return True

    def _ask_for_answers(self) -> None:
        """Let leases leave states by gid, too, where there is memory: a kernel would wait for leases of others."""
        states = self._memory.states
        are_scalars = all(values.ndim == 1 and values.itemsize <= 8 for values in states)
        if len(states) > self._lease["answers"].size or not are_scalars:
            return
        found = self._memory.make_answers()
        if found is not None:
            self._answers = found
            self._lease["by_gid"], self._lease["num_answers"] = self._by_gid.data.ptr, len(found)
            for i, values in enumerate(found):
                self._lease["answers"][i], self._lease["answer_bytes"][i] = values.data.ptr, values.itemsize

    def launches(self, num_supersteps: int) -> Generator[None, None, Outcome]:
        """Run as `lease` does, on CuPy's current stream; yield after each launch, before the host waits for it."""
        outcome = Outcome(ended=False)
        last = self.superstep + num_supersteps
        by_host = None if self._asks_master else self._master
        if self._arrived is not None:
            self._read_arrived(outcome)
        self._is_time_up = False
        while not outcome.ended and not self._is_time_up and self.superstep < last:
            end = min(last, self.superstep + MOST_SUPERSTEPS)
            before = self.superstep
            if self._waits_after_first and before == 0:
                end = 1
            if by_host is not None and not by_host.waits:
                end, self._lease["counts_idle"] = before + 1, by_host.in_flight
            ending = yield from self._launches(end, outcome)
            outcome.stopped = ending == STOPPED
            outcome.ended = outcome.stopped or ending == FINISHED
            if by_host is not None:
                self._run_master(by_host, outcome, counted=self.superstep > before)
            if self._waits_after_first and self.superstep == 1 and not outcome.ended:
                outcome.ended = self._end_at_once(outcome)
            if self._is_priority_form and (outcome.ended or self.superstep == 1):
                outcome.ended = not self._release()
                if self._most_seconds < math.inf:
                    self._is_time_up |= sum(done.seconds for done in outcome.stats) > self._most_seconds
        self._read_aggregates()
        return outcome

    @property
    def _waits_after_first(self) -> bool:
        """Whether superstep 0 is a launch of its own: what it sends goes another way."""
        is_at_once = self._path_lengths is not None or self._packed_lengths is not None
        return self._is_priority_form or is_at_once

    def _end_at_once(self, outcome: Outcome) -> bool:
        """Find the fixed point at once, after superstep 0; return whether that was possible."""
        memory, found, parity = self._memory, None, self.superstep & 1
        if self._path_lengths is not None:
            sent = memory.array(f"sent{parity}", np.uint32)
            found = self._path_lengths.run(memory.states, sent, self._ids)
        elif self._packed_lengths is not None:
            blocks, reading = self._readers
            reader = blocks, self._lease["packed"], reading["num_read"]
            found = self._packed_lengths.run(memory, parity, self._ids, reader)
            if found is None and self._is_by_pages_alone:
                raise ConfigError(NOT_BY_PAGES)
        elif self._components is not None and outcome.stats[-1].messages == self._num_edges:
            found = self._components.run(memory.states[0])
        if found is None:
            return False
        outcome.stats.append(found)
        self.superstep += 1
        self._is_priority_form = self._is_answered = False
        return True

    @property
    def _ids(self) -> Any:
        """The ids that compute() sees, on the device."""
        narrow = self._variant.compiled.defines["SIGPS_ID"] == "int32_t"
        return self._graph.numbering.ids(narrow=narrow)

    def _read_aggregates(self) -> None:
        if self.aggregates.values:
            self.aggregates.values = self._memory.aggregate_values(self.aggregates.values)

    def _run_master(self, master: MasterCompute, outcome: Outcome, *, counted: bool) -> None:
        if master.waits and not outcome.ended:
            return
        self._read_aggregates()
        messages = outcome.stats[-1].messages if counted else 0
        told = outcome, self.superstep - 1, messages, self.aggregates, self._exchange
        wakes = master.run(*told, counted=counted, num_left=self._memory.num_left)
        self._memory.set_aggregates(self.aggregates.values)
        if wakes:
            self._memory.wake_all(self._control)

    def _read_arrived(self, outcome: Outcome) -> None:
        """Run the superstep that reads an interpreter's messages on the CPU: edges have no records of them."""
        from sigps.compiler.cpu.native import compile_for_cpu
        from sigps.device.cpu import Threads
        from sigps.engine.cpu.engine import Engine

        arrived, self._arrived = self._arrived, None
        assert arrived is not None
        native = compile_for_cpu(self._program, dict(self._placed.columns))
        with Threads(1) as threads:
            engine = Engine(
                native, self._params, self._subgraph, self._exchange, threads, master=self._master
            )
            engine.restore(arrived)
            done = engine.lease(1)
            snapshot = engine.save()
        outcome.stats.extend(done.stats)
        outcome.ended, outcome.stopped = done.ended, done.stopped
        self._put(snapshot)

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of a state field, [num_owned], by the host's local ids; a copy on the host."""
        return self._fields(self._memory.states, self._graph.numbering.host_order)[name]

    def kept_states(self) -> DeviceFields:
        """Return all state fields as they are now, by the host's local ids: copies that stay on the device."""
        return self._fields(
            [values.copy() for values in self._memory.states], self._graph.numbering.host_order
        )

    def kept_fields(self) -> DeviceFields:
        """Return the same in the order of gids."""
        return self._fields([values.copy() for values in self._memory.states], self._by_gid)

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Let a state field begin with these values, [num_owned] by the host's local ids; before superstep 0."""
        state = self._memory.states[[f.name for f in self._program.states].index(name)]
        dtype, numbering = np.dtype(state.dtype.name), self._graph.numbering
        if values.strides[0] == 0:  # one row for all
            fill_with(state, cast(values[:1], dtype).tobytes())
            return
        given = send(cast(np.ascontiguousarray(values), dtype))
        if numbering.is_hosts:
            copy_within(state, given)
        else:  # by a core the order takes 16 ms for 2.4 M vertices
            put_rows(self._gpu, given, numbering.lids, state)

    def begin_anew(self) -> None:
        """Stand before superstep 0 again, in the same memory: of a program that sends nothing, alone on its GPU."""
        assert self._program.delivery is Delivery.NONE
        self.superstep = self._num_small = 0
        self._control = None
        self.aggregates = self._placed.aggregates.again()
        self._memory.begin()

    def begin_measured(self, measures: Mapping[str, str], *, directed: bool) -> bool:
        """Let state fields begin with measures of the graph, counted here once a graph; before superstep 0.

        On several ranks it leaves counting to the caller.

        Args:
            measures: Attributes of `Around`, by the names of the fields.
            directed: Whether an edge of the graph is one arc.

        Raises:
            DeviceError: If the GPU has no memory to count; it names the bytes.
        """
        if self._exchange.size > 1:
            return False
        found = self._graph.once("around", lambda: count_around(self._graph, self._gpu, directed=directed))
        names = [f.name for f in self._program.states]
        for name, measure in measures.items():
            self._memory.states[names.index(name)][:] = getattr(found, measure)
        return True

    def save(self) -> Snapshot:
        """Return copies of what this partition needs to go on; between leases, and in no run in priority order."""
        assert not self._is_priority_form
        assert not self._has_cluster
        assert self._control is not None
        snapshot = gpu_snapshot.save(
            self._memory,
            self._variant.compiled,
            self._control,
            self.aggregates.saved_values(),
            self._subgraph.owned_gids,
            self._gids_of,
        )
        if self._program.edge_states:
            snapshot = replace(snapshot, sources=self._subgraph.sources_of_edges())
        return snapshot

    def _gids_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._exchange.find(ids, self.superstep - 1)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from there, before the first superstep.

        Raises:
            DeviceError: If what is in flight is in a form that a GPU cannot read.
        """
        if self._master is not None:
            self._master.restore(snapshot.ends.size, self._exchange)
        if snapshot.in_flight == "messages" and self._program.delivery is not Delivery.DIRECT:
            if self._is_packed:
                raise DeviceError(
                    "the log has messages of device='python', which no run on packed edges reads: use transfer='rows'",
                    rank=0,
                )
            self._arrived = snapshot
            self.superstep = snapshot.superstep
        else:
            self._put(snapshot)

    def _put(self, snapshot: Snapshot) -> None:
        variant = self._variant
        mine = replace(snapshot, sources=self._subgraph.local_ids(snapshot.sources))
        self._control = gpu_snapshot.restore(
            mine,
            self._memory,
            variant.compiled,
            variant.pull_gain,
            asks_master=self._asks_master,
            counts_idle=self._asks_master and self._master is not None and self._master.in_flight,
        )
        self._commit_edges()
        self.aggregates.restore(snapshot.aggregates)
        self._memory.set_aggregates(self.aggregates.values)
        self.superstep = snapshot.superstep

    def _commit_edges(self) -> int:
        """Commit what was written on edges; return the bytes that left this rank. Collective."""
        return commit_edge_states(self._memory, self._exchange)

    def edge_state(self, name: str) -> Any:
        """Return an edge state, [num_out_edges] in the order of `Subgraph.outgoing`; it crosses when NumPy reads it."""
        pending, _ = self._memory.edge_states()
        values = pending[[f.name for f in self._program.edge_states].index(name)]
        if self._memory.has_values_on_host:
            return self._graph.walked.in_host_order(values, np)
        return kept_edge_state(values, self._graph.walked)

    def fields(self) -> DeviceFields:
        """Return all state fields, in the order of gids; they stay on the device, the run's other memory may go."""
        if self._is_answered:
            return self._fields(self._answers, slice(None))
        return self._fields(self._memory.states, self._by_gid)

    @property
    def _by_gid(self) -> Any:
        return self._graph.numbering.by_gid

    def _fields(self, values_of_states: Sequence[Any], order: Any) -> DeviceFields:
        kept = zip(self._program.states, values_of_states, self._program.state_dtypes, strict=True)
        states = {f.name: (values, dtype) for f, values, dtype in kept}
        optional = frozenset(f.name for f in self._program.states if f.may_be_none)
        return DeviceFields(self._gpu, states, order, optional)

    def _launches(self, end: int, outcome: Outcome) -> Generator[None, None, int]:
        """Run up to a superstep; return how the last launch ended.

        Another launch follows where direct messages need more capacity, and where supersteps become small, or large.
        """
        variant = self._variant
        blocks, cache = self._fill_in(end)
        ending = RUNNING
        while ending in (RUNNING, NO_CAPACITY) and self.superstep < end and not self._is_time_up:
            with self._feeding(), self._watching():
                if self._num_small < SMALL_BEFORE_SWITCH:
                    variant.launch(self._lease, blocks, cache)
                else:
                    variant.launch_small_frontier(self._lease)
                yield
                if variant.compiled.has_open_loops or self._most_seconds < math.inf:
                    wait_for_stream()  # a copy that waits would hold up the watch's own, and other runs of a pool
                control, stats = self._memory.read_back()
            if self._packing.reads_pages:
                self._pages.require_whole()
            outcome.stats.append_rows(stats, self._directions)
            self._control, upcoming = control, control["next"]
            self.superstep, self._num_small = int(upcoming["superstep"]), int(upcoming["num_small"])
            ending, self._is_time_up = int(upcoming["ending"]), bool(upcoming["is_time_up"])
            self._is_answered = bool(self._answers) and ending in (FINISHED, STOPPED)
            if ending == NO_CAPACITY:
                self._grow_direct(control)
        self._raise_if_faulted(ending)
        return ending

    def _fill_in(self, end: int) -> tuple[int, SharedCache]:
        """Fill in what launches up to a superstep are given; return how many blocks they have, and their cache."""
        variant = self._variant
        self._lease["end"], self._lease["pull_gain"] = end, variant.pull_gain
        cluster = variant.cluster if self._has_cluster else NO_CLUSTER
        self._lease["small_frontier_messages"] = cluster.most_messages
        self._lease["small_frontier_places"] = cluster.places
        blocks, cache = self._placed.launch_shape(variant, self._lease, self.num_at_once)
        if self._packing.reads_pages and self._readers[0] != blocks:
            self._take_readers(blocks)
        lease = self._lease
        lease["num_cached_bits"] = cache.num_bits
        lease["num_cached_records"] = 0 if self._settles else cache.num_records
        lease["num_cached_ghosts"] = cache.num_ghosts
        return blocks, cache

    def _take_readers(self, blocks: int) -> None:
        """Take the memory by which so many blocks read packed pages."""
        program, lease = self._program, self._lease
        compiled = self._variant_of(program).compiled
        is_listed = program.consumption is Consumption.LISTED and program.delivery is not Delivery.DIRECT
        message = compiled.message if is_listed else ()
        key = key_bytes(compiled) if program.consumption is Consumption.GROUPED else None
        lease["packed"], reading = self._pages.reader(
            blocks,
            slots_bytes=int(compiled.defines["SIGPS_SLOTS_BYTES"]),
            message=message,
            sorts=bool(message and program.sorts_by),
            key=key,
        )
        lease["packed"]["absent_columns"] = self._absent_columns()
        for i, own in enumerate(reading["lists"]):
            lease["in"]["lists"][i] = lease["out"]["lists"][i] = own.data.ptr
        if "list_keys" in reading:
            lease["num_listed"] = reading["list_keys"].size
            for name in ("list_keys", "list_order"):
                lease[name] = reading[name].data.ptr
        if program.reads_edges:
            assert isinstance(self._graph, PackedGraph)
            walker = self._graph.walker(blocks, compiled.columns[1])
            for name, array in walker.items():
                if name == "gids":
                    lease["packed"]["gids"] = array.data.ptr
                elif name == "out_columns":
                    for i, column in enumerate(array):
                        lease["in"][name][i] = column.data.ptr
                else:
                    lease["in"][name] = array.data.ptr
            if program.reads_reverse:
                reading["reverse"] = (
                    self._graph.reverse()
                )  # which the graph forgets where a later run has it elsewhere
                lease["in"]["reverse"] = reading["reverse"].data.ptr
            reading |= walker
        self._readers = blocks, reading

    def _absent_columns(self) -> int:
        """Return which of the columns of edges are not there, as bits: all weights are 1."""
        assert isinstance(self._graph, PackedGraph)
        names = enumerate(self._program.columns_of_edges)
        return sum(1 << i for i, name in names if name not in self._graph.columns)

    def _raise_if_faulted(self, ending: int) -> None:
        """Raise the error of a launch that ended by one."""
        control = self._control
        if ending == FAULTED:
            self._raise_fault(int(control["faults"][self.superstep & 1]))
        if ending == MASTER_FAULTED:
            assert self._master is not None
            find_site = self._variant.compiled.find_master_site
            raise self._master.error_of(int(control["lost_id"]), find_site, self.superstep - 1)
        if ending == UNKNOWN_TARGET:
            self._refuse_unknown_target(control)
        if ending == PEER_LOST:
            lost_rank = int(control["lost_id"])
            raise ExchangeError(
                "it did not come to the end of this superstep in time: it hangs, or its process is lost",
                rank=lost_rank,
                superstep=self.superstep,
            )

    def _feeding(self) -> contextlib.AbstractContextManager[None]:
        """Bring packed pages from disk during a launch, where some are there."""
        return self._pages.feeding() if self._packing.reads_pages else contextlib.nullcontext()

    def _watching(self) -> contextlib.AbstractContextManager[None]:
        """Watch a launch whose loops may never end."""
        if not self._variant.compiled.has_open_loops:
            return contextlib.nullcontext()
        superstep_at = int(self._lease["control"]) + SUPERSTEP_AT
        return watching_loops(self._program.name, self._gpu, superstep_at)

    def _raise_fault(self, word: int) -> None:
        """Raise the error of a fault as `faults.cuh` keeps it; 0 where it is another partition's."""
        compiled, vertex = self._variant.compiled, ~(word >> FAULT_BITS) & NO_VERTEX
        is_of_one = bool(word) and vertex != NO_VERTEX
        vertex_id = id_of(self._subgraph, self._graph.numbering.host_lid(vertex)) if is_of_one else 0
        number, superstep = word & (1 << FAULT_BITS) - 1, self.superstep - bool(word & OF_SENDER)
        first = self._first_fault(KeptFault(number, superstep, is_of_one, vertex_id))
        site = compiled.find_site(self._running, first.number)
        vertex_named = first.vertex_id if first.is_of_one else None
        raise error_of(site, vertex_named, first.superstep, self._program.aggregators)

    def _first_fault(self, mine: KeptFault) -> KeptFault:
        """Return the first fault of all partitions, by superstep and then by partition."""
        return mine

    def _grow_direct(self, control: Any) -> None:
        """Make capacity for the direct messages of a superstep that ran out of it, and let it go on."""
        self._memory.direct.grow(int(control["next"]["superstep"]))
        self._memory.resume(control)

    def _refuse_unknown_target(self, control: Any) -> None:
        """Raise the error of a direct message to an id that is not in the graph."""
        lost = np.array([control["lost_id"]], dtype=np.int64)
        checked_gids(lost, np.array([-1]), 0, self.superstep - 1)

    def _variant_of(self, program: VertexProgram) -> Variant:
        return self._placed.variant(program, has_turns=self._has_turns)

    def _release(self) -> bool:
        """Release the bucket of the best value, or all buckets; return whether there was one."""
        released = self._order.release(
            self._memory, self._graph.out_degrees, self.superstep, self._num_edges, self._best_of_all
        )
        if released is None:
            return False
        program = self._program.priority_form if released.spreads_alone else self._program
        assert program is not None
        self._running, self._variant = program, self._variant_of(program)
        self._is_priority_form = released.spreads_alone
        self._set_released(released.num_senders, released.edges)
        self._num_small = 0
        return True

    def _set_released(self, num_senders: int, edges: int) -> None:
        """Let the next launch begin with the messages of so many senders, along so many edges."""
        self._memory.set_next(self.superstep, edges, self._variant.pull_gain, has_retired=True)

    def _everywhere(self, holds: bool) -> bool:
        """Return whether something holds on all partitions that share kernels' arrays."""
        return holds

    def _best_of_all(self, waiting_edges: int, best: int, takes_min: bool) -> tuple[int, int]:
        """Return what `GpuBuckets.find` would return of all partitions together."""
        return waiting_edges, best


_T = TypeVar("_T")


def _last(steps: Generator[None, None, _T]) -> _T:
    """Return what a generator returns, all of whose steps are taken."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: _T = done.value
            return value
