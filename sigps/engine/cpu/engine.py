"""Supersteps of one partition in memory, on CPU cores.

A superstep's messages take one of three ways, each a module with the same few verbs:

    records.py            along edges as outbox records, pulled or pushed
    edge_schedule.py      along edges, one edge a work item (`schedule="edge"`)
    direct_messages.py    one by one, as no record can express them

Four strategies change which supersteps are run, where the result is provably the same: `fused.py`, `priority.py`,
`path_lengths.py` and `components.py`.
What a run keeps is `run_state.py`; the loop is `engine/superstep.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.program import Delivery, VertexProgram
from sigps.device.cpu import Threads
from sigps.engine.contract import by_gid
from sigps.engine.counters import Counters, Everywhere
from sigps.engine.cpu.direct_messages import DirectMessages
from sigps.engine.cpu.fused import MOST_WORK_OF_ALL, FusedLoop, most_work_alone
from sigps.engine.cpu.monotone import LastRecords, has_order
from sigps.engine.cpu.priority import Buckets
from sigps.engine.cpu.records import Records
from sigps.engine.cpu.run_state import RunState
from sigps.engine.direction import Direction, Schedule, pays_in_priority_order
from sigps.engine.exchange import Exchange
from sigps.engine.fixed_points import pays_without_barriers
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.edge_states import EdgeStates
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.snapshot import Snapshot, as_columns, fill_rows
from sigps.engine.stats import Outcome
from sigps.engine.superstep import Done, Fused, LeaseLimit, run_supersteps
from sigps.errors import ConfigError
from sigps.native.interrupt import watching
from sigps.native.kernel import LoopFaultError

if TYPE_CHECKING:
    from sigps.engine.cpu.crew import Schedule as BlockSchedule
    from sigps.engine.cpu.edge_schedule import EdgePass

__all__ = ["Engine"]


class Engine:
    """A vertex program on one partition, from superstep 0 to the end: the engine contract on CPU cores.

    Args:
        native: The program, compiled for the CPU.
        params: The values of its parameters, in its order.
        subgraph: The partition.
        exchange: The way to the other partitions.
        threads: Threads that run the loops.
        deterministic: Whether floating-point results must not depend on the number of ranks and threads.
        forced: A direction to use always, or None.
        asynchronous: Whether values may be sent in priority order where the result is provably the same.
        blocks: How blocks are chosen, where the run goes without barriers; None where it has supersteps.
        master: The program's master compute, or None.
        saves: Whether `save` is called between leases.
        schedule: What a work item is. By `"edge"` nothing is sent in another order, and no message is left out.
    """

    traced: list[dict[str, Any]] | None = None
    detects_lost_ranks = False
    is_streaming = False
    _begins_fused = True

    def __init__(
        self,
        native: NativeProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        exchange: Exchange,
        threads: Threads,
        *,
        deterministic: bool = False,
        forced: Direction | None = None,
        asynchronous: bool = False,
        blocks: BlockSchedule | None = None,
        master: MasterCompute | None = None,
        saves: bool = False,
        schedule: Schedule = "vertex",
    ) -> None:
        program, by_edge = native.program, schedule == "edge"
        self._master, self._exchange = master, exchange
        self._limit: LeaseLimit | None = None
        self._state = state = RunState(native, params, subgraph, exchange, threads, deterministic)
        may_reorder = asynchronous and not by_edge
        has_form = may_reorder and native.priority_form is not None and blocks is None
        at_once = may_reorder and forced is None and exchange.size == 1
        has_components = at_once and has_form and subgraph.is_mesh and subgraph.goes_both_ways
        sizes = {"num_vertices": subgraph.num_vertices, "num_edges": subgraph.num_edges}
        is_ordered = has_form and (has_components or pays_in_priority_order(**sizes))
        self._order = PriorityOrder(state) if is_ordered and not has_components else None
        monotone = None if is_ordered or by_edge or self.is_streaming else native.monotone
        kept = None
        self._has_order = True
        if monotone is not None:
            columns, num_records = state.pull_edges.columns, subgraph.num_owned + subgraph.num_ghosts
            self._has_order = has_order(monotone, params, subgraph, columns, threads)
            kept = LastRecords(monotone, columns, subgraph.num_owned, num_records)
            state.native = monotone
        self._plain = native
        self._records = self._make_records(state, forced, kept)
        self._by_edge = self._make_pass(state) if by_edge else None
        self._direct: DirectMessages | None = None
        if program.delivery is Delivery.DIRECT:
            self._direct = self._make_direct(state)
        may_fuse = self._records.can_push and exchange.size == 1 and (master is None or master.waits)
        if by_edge or self.is_streaming or program.reads_edge_links:
            may_fuse = False
        self._fused: Fused | None = FusedSupersteps(state, self._records, forced) if may_fuse else None
        if blocks is not None:
            self._fused = self._without_barriers(blocks, saves)
        elif has_components:
            from sigps.engine.cpu.components import Components

            self._fused = Components(state, self._fused)
        elif at_once:
            self._fused = self._at_once(program, self._fused, may_be_automatic=kept is not None)
        if isinstance(self._fused, FusedSupersteps):
            self._fused.begins = self._begins_fused and self._has_order and self._order is None
        self._ghosts = np.empty(0, dtype=np.int64)
        self._edge_bytes = 0
        self.aggregates = state.aggregates

    def _make_pass(self, state: RunState) -> EdgePass:
        """Return what goes along all edges."""
        from sigps.engine.cpu.edge_schedule import EdgePass

        return EdgePass(state.pull_edges, state.owned_by_all, state.threads)

    def _make_direct(self, state: RunState) -> DirectMessages:
        """Return what computes where messages are direct ones."""
        on_edges = state.edge_states
        assert on_edges is None or isinstance(on_edges, EdgeStates)
        made = state.native, state.subgraph, state.exchange, state.deterministic
        return DirectMessages(*made, on_edges)

    def _make_records(self, state: RunState, forced: Direction | None, kept: LastRecords | None) -> Records:
        """Return what pulls and pushes."""
        return Records(state, forced, kept)

    def _at_once(
        self, program: VertexProgram, supersteps: Fused | None, *, may_be_automatic: bool
    ) -> Fused | None:
        """Return what finds a proved or declared fixed point without supersteps; these where nothing does."""
        state = self._state
        if program.asynchronous is not None and program.asynchronous.factor is not None:
            from sigps.engine.cpu.progress import contraction

            return contraction(state, self._records, supersteps)
        if program.path_lengths is not None and state.subgraph.is_mesh_of_lengths:
            from sigps.engine.cpu.path_lengths import path_lengths

            found = path_lengths(state, program.path_lengths, supersteps)
            if found is not supersteps:
                return found
        return self._automatic(supersteps) if may_be_automatic and self._has_order else supersteps

    def _automatic(self, supersteps: Fused | None) -> Fused | None:
        why = _why_no_barriers(self._state)
        if not why:
            return supersteps
        from sigps.engine.cpu.asynchronous import Asynchronous, Automatic
        from sigps.engine.cpu.crew import Schedule as BlockSchedule

        free = Asynchronous(self._state, self._records, BlockSchedule())
        return Automatic(supersteps, free, self._state, why)

    def _without_barriers(self, blocks: BlockSchedule, saves: bool) -> Fused:
        """Return what runs without barriers. Collective."""
        from sigps.engine.cpu.asynchronous import Asynchronous, Contraction

        state, claim = self._state, self._state.program.asynchronous
        if claim is not None and claim.factor is not None:
            return Contraction(state, self._records, blocks, saves=saves)
        can_run = self._records.kept is not None and self._has_order
        if not self._exchange.gather(np.array([can_run])).all():
            raise ConfigError(
                f"{state.program.name} cannot run with asynchronous=True: a parameter is no number, or an edge column "
                "has infinite numbers or NaN"
            )
        return Asynchronous(state, self._records, blocks, saves=saves)

    @property
    def superstep(self) -> int:
        """The next superstep."""
        return self._state.superstep

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of a state field, [num_owned] by local id; the engine's own array."""
        names = [f.name for f in self._state.program.states]
        return self._state.fields.states[names.index(name)]

    def edge_state(self, name: str) -> Any:
        """Return what is kept on out-edges, in the order of `Subgraph.outgoing`; the engine's own array.

        Where edges stream, it becomes an array when it is read as one.
        """
        assert self._state.edge_states is not None
        names = [f.name for f in self._state.program.edge_states]
        return self._state.edge_states.kept(names.index(name))

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Let a state field begin with these values, [num_owned] by local id; before superstep 0."""
        self.state(name)[:] = values

    def begin_measured(self, measures: Mapping[str, str], *, directed: bool) -> bool:
        """Leave counting to the caller."""
        return False

    def fields(self) -> dict[str, NDArray[Any]]:
        """Return all state fields, [num_owned] each in ascending order of gids."""
        state = self._state
        fields = zip(state.program.states, state.fields.states, strict=True)
        return by_gid(state.subgraph, {field.name: values for field, values in fields})

    def limit_time(self, seconds: float, awaited: NDArray[np.uint32]) -> bool:
        if self._exchange.size == 1:
            self._limit = LeaseLimit(seconds, awaited)
        return self._limit is not None

    def save(self) -> Snapshot:
        """Return what this partition needs to go on; between leases, and in no run in priority order."""
        assert self._order is None
        state = self._state
        owned = state.subgraph.owned_gids
        if self._direct is not None:
            in_flight = self._direct.save()
        else:
            senders = state.last_senders()
            in_flight = "records", owned[senders], as_columns(state.read.records, senders)
        states = tuple(s.copy() for s in state.fields.states)
        on_edges = state.edge_states.save(state.subgraph) if state.edge_states is not None else ()
        status = state.fields.status.copy()
        values = self.aggregates.saved_values()
        return Snapshot(state.superstep, owned.copy(), status, states, *in_flight, values, *on_edges)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from there: this partition's part of a snapshot of all. Collective, before the first superstep."""
        state = self._state
        if self._master is not None:
            self._master.restore(snapshot.ends.size, self._exchange)
        lids = state.subgraph.local_ids(snapshot.gids)
        state.fields.status[lids] = snapshot.status
        for field, values in zip(state.fields.states, snapshot.states, strict=True):
            field[lids] = values
        if state.edge_states is not None:
            state.edge_states.restore(state.subgraph, snapshot.sources, snapshot.edges)
        self.aggregates.restore(snapshot.aggregates)
        counters = Counters(active=state.num_active())
        ends = state.subgraph.local_ids(snapshot.ends)
        if snapshot.in_flight == "records":
            state.write.sent[ends] = 1
            fill_rows(state.write.records, ends, snapshot.values)
            counters.senders = ends.size
            counters.sent_edges = int(state.subgraph.out_degrees[ends].sum(dtype=np.int64))
        state.superstep = snapshot.superstep - 1
        self._keep_order(not self._exchange.gather(np.array([not self._has_order])).any())
        self._finish(counters)
        if self._direct is not None:
            self._direct.restore(snapshot.in_flight, ends, snapshot.values, state.arguments())
        elif snapshot.in_flight == "messages":
            self._records.put(ends, snapshot.values)

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps. Collective."""
        if self.superstep == 0:
            self._compile()
        with watching() if self._plain.has_open_loops else nullcontext():
            return run_supersteps(
                self,
                num_supersteps,
                self._exchange,
                master=self._master,
                fused=self._fused,
                order=self._order,
                limit=self._limit,
            )

    def receive(self) -> int:
        """Bring here the records of ghosts; return the bytes that left this rank. Collective."""
        state, num_bytes = self._state, 0
        if state.superstep > 0 and state.program.delivery is Delivery.RECORD:
            self._exchange.publish(*state.read)
            self._ghosts, num_bytes = self._exchange.collect(*state.read)
        return num_bytes + self._edge_bytes

    def compute(self) -> tuple[str, Counters, int]:
        """Run a superstep of this partition, by the way that its messages take.

        Raises:
            ComputeError: If arithmetic of compute() had no result.
        """
        try:
            return self._compute()
        except LoopFaultError as fault:
            raise self._state.error_of(fault, self._state.superstep) from None

    def _compute(self) -> tuple[str, Counters, int]:
        state, counters = self._state, Counters(is_unordered=not self._has_order)
        if self._direct is not None:
            given = state.arguments(), lambda: state.owned, state.fields, state.write
            num_bytes = self._direct.step(*given, state.threads, self.aggregates, counters)
            return "mailbox", counters, num_bytes
        if self._by_edge is None or self._records.has_arrived:
            return self._records.compute(self._ghosts, counters), counters, 0
        touched: list[NDArray[np.uint32]] = []
        inbox = state.open_inbox()
        if state.last.senders or self._ghosts.size:
            touched = self._by_edge.run(state.native, state.arguments(), state.fields, state.read, inbox)
        state.compute_listed(touched, counters)
        return "edge", counters, 0

    def commit(self, counters: Counters, everywhere: Everywhere) -> None:
        """Make what was written readable, and empty what was read. Collective where edges keep values."""
        self._keep_order(everywhere.has_order)
        self._finish(counters)

    def is_idle_counted(self) -> bool:
        """Tell whether a superstep counts in which no vertex ran: a monotone program leaves vertices out."""
        return self._records.kept is not None

    def num_left(self) -> int:
        """Return how many vertices have not retired."""
        return self._state.num_left()

    def wake_all(self) -> None:
        """Make all halted vertices active."""
        self._state.wake_all()

    def _keep_order(self, has_order: bool) -> None:
        """Take the plain loops, where values of a monotone program have no order on any partition."""
        if not has_order:
            self._state.native, self._records.kept = self._plain, None

    def _finish(self, counters: Counters) -> None:
        self._records.commit()
        if self._state.commit_edges is not None:
            self._edge_bytes = self._state.commit_edges()
        self._state.last = counters
        self._state.superstep += 1

    def _compile(self) -> None:
        """Run the loops that come first over no vertices: compiling them is no superstep's time."""
        state = self._state
        if self._by_edge is not None:
            arrays = state.arguments(), state.fields, state.read, state.inbox
            self._by_edge.run(state.native, *arrays, along_none=True)
            state.compute_lists([np.empty(0, dtype=np.uint32)])
        elif self._direct is None:
            self._records.compile()


def _why_no_barriers(state: RunState) -> str:
    """Say why a run goes without barriers though nobody asked for that; empty where it has supersteps."""
    claim, monotone = state.program.asynchronous, state.native.program.monotone
    if claim is None or claim.factor is not None or claim.has_parents or monotone is None:
        return ""
    adds_column, is_mesh = monotone.column is not None, state.subgraph.is_mesh
    are_equal = False
    if monotone.column is not None and is_mesh:
        column, name = state.pull_edges.columns[monotone.column], state.program.edge_columns[monotone.column]
        are_equal = state.subgraph.derived(f"equal {name}", lambda: _are_equal(column))
    return pays_without_barriers(is_mesh=is_mesh, adds_column=adds_column, are_equal=are_equal)


def _are_equal(column: NDArray[Any]) -> bool:
    return column.strides == (0,) or column.size == 0 or bool((column == column[0]).all())


_TINY = 1 << 13
"""Vertices and edges that are pushed in less time than one superstep takes that is pulled (some 50 us)."""


class FusedSupersteps:
    """Small supersteps, which one core runs one after another in one compiled loop (`fused.py`).

    From the second run on a tiny graph these are all, whatever direction would be chosen: a first run does not wait for
    one more loop to be compiled.

    Args:
        state: What the run keeps.
        records: Pull and push.
        forced: A direction to use always, or None.

    Attributes:
        begins: Whether superstep 0 of a tiny graph is one of them.
    """

    begins = False

    def __init__(self, state: RunState, records: Records, forced: Direction | None) -> None:
        self._state, self._records, self._forced = state, records, forced
        self._most_work = most_work_alone(state.threads.count)
        self._loop: FusedLoop | None = None
        size = state.subgraph.num_owned + state.subgraph.incoming.num_edges
        self._always = size <= _TINY and next(state.subgraph.derived("runs", itertools.count)) > 0

    def run(self, most_supersteps: int, most_work: int = MOST_WORK_OF_ALL) -> Done | None:
        """Run at most so many, and so much work; None where the next one is large, or better pulled."""
        state, last = self._state, self._state.last
        is_small = last.sent_edges + last.active <= self._most_work
        if self._records.has_arrived or not is_small:
            return None
        if state.superstep == 0 and not (self.begins and self._always):
            return None
        if not self._always and self._records.direction(last.sent_edges) != "push":
            return None
        if self._loop is None:
            self._loop = FusedLoop(state.push_edges, state.subgraph.num_owned, state.threads.count)
        if state.superstep == 0:
            state.list_all()
            if self._records.kept is not None:
                state.read = state.read._replace(records=self._records.kept.records)
        inbox, aggregates = state.open_inbox(), state.aggregates
        assert state.active is not None
        try:
            row = self._loop.run(
                state.native, most_supersteps, "push" if self._always else self._forced, state.last_senders(),
                state.active, last.sent_edges, state.arguments(), state.owned, state.fields, state.read, state.write,
                inbox, state.native.empty, (), aggregates.identity, most_work_of_all=most_work,
                num_edges=state.subgraph.incoming.num_edges,
            )  # fmt: skip
        except LoopFaultError as fault:
            num_done, *_ = fault.result
            raise state.error_of(fault, state.superstep + num_done - 1) from None
        state.senders, state.active = row.senders, row.active
        state.last = Counters(active=row.active.size, senders=row.senders.size, sent_edges=row.sent_edges)
        state.superstep += len(row.stats)
        aggregates.take(row.values)
        if self._records.kept is not None:
            self._records.kept.note_senders(row.senders)
        return Done(row.stats, row.active.size, row.sent_edges)


class PriorityOrder:
    """The best value of all first, then the best of the rest, in buckets (`priority.py`).

    Superstep 0 runs as written. What it sends is held back, and sent bucket by bucket in the program's priority-order
    form, until little is left, which is sent at once in plain supersteps.

    Args:
        state: What the run keeps, of a program that has a priority-order form.
    """

    def __init__(self, state: RunState) -> None:
        self._state, self._plain = state, state.native
        self._buckets: Buckets | None = None
        self._is_over = False

    def release(self, done: Done) -> int:
        """Return the messages in flight, with those of the bucket that is sent now. Collective."""
        was_first = bool(done.stats) and done.stats[-1].superstep == 0
        if self._is_over or not (was_first or done.in_flight == 0):
            return done.in_flight
        state = self._state
        sent, (records,) = state.read
        values, subgraph = state.fields.states[0], state.subgraph
        if self._buckets is None:
            wanted = sent[: subgraph.num_owned]
            self._buckets = Buckets(self._plain, wanted, subgraph.out_degrees, state.exchange, state.threads)
        bucket = self._buckets.release(state.fields.status, values, subgraph.num_edges)
        sent.fill(0)
        sent[bucket.senders] = 1
        records[bucket.senders] = values[bucket.senders]  # what it sends is the value that it keeps
        state.senders = bucket.senders
        state.last = Counters(senders=bucket.senders.size, sent_edges=bucket.num_edges)
        form = self._plain.priority_form
        assert form is not None
        state.native, self._is_over = (self._plain, True) if bucket.is_last else (form, False)
        return bucket.num_edges_everywhere
