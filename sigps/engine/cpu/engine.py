"""Supersteps of one partition in memory, on CPU cores.

`Engine.lease(k)` runs up to k supersteps without asking anybody but its `Exchange`. A superstep is one of

    pull     every owned vertex combines its in-neighbours' records and computes, in one loop
             (in monotone programs their last ones, for what is better than it knows: `monotone.py`)
    push     last superstep's senders combine into inboxes; only who got a message, or is active, computes
    mailbox  messages that no record can express are written out, sorted by target, and read
    edge     every in-edge brings its message into its target's inbox; then as a push (`schedule="edge"`)

Which of push and pull is `choose_direction`'s decision, made anew on each partition in each superstep: what
crosses partitions is the changed outbox records either way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram, rows
from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram
from sigps.device.cpu import Threads
from sigps.engine.aggregates import Aggregates
from sigps.engine.contract import by_gid
from sigps.engine.counters import Counters, Everywhere
from sigps.engine.cpu.direct_messages import DirectMessages, combine_into, list_by_target, new_queue
from sigps.engine.cpu.edge_schedule import EdgePass
from sigps.engine.cpu.fused import Fused, most_work_alone
from sigps.engine.cpu.monotone import Kept, has_order
from sigps.engine.cpu.priority import Buckets
from sigps.engine.cpu.push import Scatter
from sigps.engine.cpu.work import can_push, cut_vertices, split_list, walked_edges, with_marks
from sigps.engine.direction import Direction, Schedule, choose_direction, choose_sender_filter
from sigps.engine.exchange import Exchange
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.edge_states import EdgeStates, check_names
from sigps.engine.partition.subgraph import Subgraph, columns_of
from sigps.engine.snapshot import Snapshot, as_columns, fill_rows
from sigps.engine.stats import Outcome
from sigps.engine.superstep import Done, run_supersteps
from sigps.kernels.cpu.arguments import (
    ACTIVE,
    HALTED,
    RETIRED,
    SENDERS_BITMAP,
    SENDERS_TEST_EACH,
    UNLISTED,
    Edges,
    Inbox,
    LoopArguments,
    Outbox,
    OutboxBitmap,
    OwnedVertices,
    VertexFields,
)  # fmt: skip
from sigps.kernels.cpu.pull import PIECE

__all__ = ["Engine"]

Arrays = tuple[NDArray[Any], ...]
Span = tuple[np.uint64, np.uint64]

_NONE = np.empty(0, dtype=np.uint32)


class Engine:
    """A vertex program on one partition, from superstep 0 to the end.

    Args:
        native: The program, compiled for the CPU.
        params: The values of its parameters, in its order.
        subgraph: The partition.
        exchange: The way to the other partitions.
        threads: The crew that runs the loops.
        deterministic: Whether floating-point results must not depend on the number of ranks and threads.
        forced: A direction to use always, or None.
        asynchronous: Whether values may be sent out of turn where the result is provably the same.
        master: The program's master compute, or None.
        schedule: What a work item is. An edge: then nothing is sent out of turn, and every message is heard.
    """

    traced: list[dict[str, Any]] | None = None
    detects_lost_ranks = False

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
        master: MasterCompute | None = None,
        schedule: Schedule = "vertex",
    ) -> None:
        program = native.program
        n, reach = subgraph.num_owned, subgraph.num_owned + subgraph.num_ghosts
        self.superstep = 0
        self._goes_by_edge = schedule == "edge"
        self._is_priority_form = asynchronous and native.priority_form is not None and not self._goes_by_edge
        monotone = None if self._is_priority_form or self._goes_by_edge else native.monotone
        self._native, self._program, self._params = monotone or native, program, params
        self._plain, self._priority_form = native, native.priority_form or native
        self._subgraph, self._exchange, self._threads = subgraph, exchange, threads
        self._forced, self._master = forced, master
        self._buckets: Buckets | None = None
        self._can_push = can_push(native, deterministic) and forced != "pull"
        self._deterministic = deterministic
        self.aggregates = Aggregates(program.aggregators, deterministic, n)
        self._status = np.full(n, ACTIVE, dtype=np.uint8)
        initial = zip(program.states, program.state_dtypes, strict=True)
        states = tuple(np.full(n, field.default, dtype=dtype) for field, dtype in initial)
        self._fields = VertexFields(self._status, states)
        self._read, self._write = native.outbox(reach), native.outbox(reach)
        self._last = Counters(active=n)
        self._arrived: tuple[NDArray[np.int64], Arrays] | None = None
        self._senders: NDArray[Any] | None = None
        self._active: NDArray[Any] | None = None
        incoming = subgraph.incoming
        self._pull_edges = Edges(incoming.offsets, incoming.ends, columns_of(incoming, program.edge_columns))
        self._kept = Kept(monotone, self._pull_edges.columns, n, reach) if monotone else None
        self._has_order = monotone is None or has_order(monotone, params, self._pull_edges.columns, threads)
        self._edge_states = _edge_states(program, subgraph, exchange)
        self._edge_bytes = 0
        self._of_thread = threading.local()
        self._owned_by_all = OwnedVertices(
            subgraph.ids,
            incoming.offsets,
            subgraph.out_degrees,
            walked_edges(native.program, subgraph, self._edge_states),
        )
        self._may_fuse = (
            self._can_push
            and exchange.size == 1
            and (master is None or master.waits)
            and not (self._goes_by_edge or program.reads_edge_links or self.aggregates.given)
        )
        parts = threads.count * (32 if program.reads_neighbors else 8)
        self._ranges = cut_vertices(incoming.offsets, parts if threads.count > 1 else 1)
        self._num_out_edges = int(subgraph.out_degrees.sum(dtype=np.int64))
        self._num_with_out_edges = int(np.count_nonzero(subgraph.out_degrees))
        self._direct = (
            DirectMessages(native, subgraph, exchange, deterministic, self._edge_states)
            if native.program.delivery is Delivery.DIRECT
            else None
        )

    @property
    def _owned(self) -> OwnedVertices:
        """What loops read of owned vertices; where rows of neighbours are walked, with this thread's marks."""
        if not self._program.reads_neighbors:
            return self._owned_by_all
        if not hasattr(self._of_thread, "owned"):
            walked = with_marks(self._owned_by_all.walked, self._subgraph)
            self._of_thread.owned = self._owned_by_all._replace(walked=walked)
        owned: OwnedVertices = self._of_thread.owned
        return owned

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of a state field, [num_owned]; the engine's own array."""
        names = [f.name for f in self._program.states]
        return self._fields.states[names.index(name)]

    def edge_state(self, name: str) -> NDArray[Any]:
        """Return what is kept on out-edges, in the order of `Subgraph.outgoing`; the engine's own array."""
        assert self._edge_states is not None
        names = [f.name for f in self._program.edge_states]
        return self._edge_states.pending[names.index(name)]

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Let a state field begin with these values, [num_owned] by local id; before superstep 0."""
        self.state(name)[:] = values

    def begin_measured(self, measures: Mapping[str, str], *, directed: bool) -> bool:
        """Leave counting to the caller."""
        return False

    def fields(self) -> dict[str, NDArray[Any]]:
        """Return all state fields, [num_owned] each in ascending order of gids."""
        return by_gid(self._subgraph, {f.name: self.state(f.name) for f in self._program.states})

    def save(self) -> Snapshot:
        """Return what this partition needs to go on; between leases, and in no run in priority order."""
        assert not self._is_priority_form
        owned = self._subgraph.owned_gids
        if self._direct is not None:
            flying = self._direct.save()
        else:
            senders = self._last_senders()
            flying = "records", owned[senders], as_columns(self._read.records, senders)
        states = tuple(s.copy() for s in self._fields.states)
        kept = self._edge_states.save(self._subgraph) if self._edge_states is not None else ()
        return Snapshot(
            self.superstep, owned.copy(), self._status.copy(), states, *flying, self.aggregates.values, *kept
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from there: this partition's part of a snapshot of all. Collective, before the first superstep."""
        if self._master is not None:
            self._master.restore(snapshot.ends.size, self._exchange)
        lids = self._subgraph.local_ids(snapshot.gids)
        self._status[lids] = snapshot.status
        for state, values in zip(self._fields.states, snapshot.states, strict=True):
            state[lids] = values
        if self._edge_states is not None:
            self._edge_states.restore(self._subgraph, snapshot.sources, snapshot.edges)
        self.aggregates.restore(snapshot.aggregates)
        counters = Counters(active=int(np.count_nonzero(self._status == ACTIVE)))
        ends = self._subgraph.local_ids(snapshot.ends)
        if snapshot.in_flight == "records":
            self._write.sent[ends] = 1
            fill_rows(self._write.records, ends, snapshot.values)
            counters.senders = ends.size
            counters.sent_edges = int(self._subgraph.out_degrees[ends].sum(dtype=np.int64))
        self.superstep = snapshot.superstep - 1
        if self._exchange.gather(np.array([not self._has_order])).any():
            self._native, self._kept = self._plain, None
        self._turn(counters)
        if self._direct is not None:
            self._direct.restore(snapshot.in_flight, ends, snapshot.values, self._arguments())
        elif snapshot.in_flight == "messages":
            self._arrived = ends, snapshot.values

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps. Collective among the partitions.

        Returns:
            Whether the run has ended, and what happened in each superstep.
        """
        if self.superstep == 0 and self._direct is None:
            self._compile_loops()
        return run_supersteps(
            self, num_supersteps, self._exchange, master=self._master,
            fused=_FusedSupersteps(self) if self._may_fuse else None,
            order=_PriorityOrder(self) if self._is_priority_form else None,
        )  # fmt: skip

    def receive(self) -> int:
        """Bring here the records of ghosts; return the bytes that left this rank. Collective."""
        self._ghosts, num_bytes = self._exchange_records()
        return num_bytes + self._edge_bytes

    def compute(self) -> tuple[str, Counters, int]:
        """Run a superstep of this partition."""
        direction, counters, num_bytes = self._advance(self._ghosts)
        counters.is_unordered = not self._has_order
        return direction, counters, num_bytes

    def commit(self, counters: Counters, everywhere: Everywhere) -> None:
        """Make what was written readable, and empty what was read. Collective where edges keep values."""
        if not everywhere.has_order:
            self._native, self._kept = self._plain, None
        self._turn(counters)

    def is_idle_counted(self) -> bool:
        """Tell whether a superstep counts in which no vertex ran: a monotone program leaves vertices out."""
        return self._kept is not None

    def num_left(self) -> int:
        """Return how many vertices have not retired."""
        return int(np.count_nonzero(self._status != RETIRED))

    def wake_all(self) -> None:
        """Make all halted vertices active."""
        self._status[self._status == HALTED] = ACTIVE
        self._last.active = int(np.count_nonzero(self._status == ACTIVE))
        self._active = None

    def _fuses_next(self) -> bool:
        """Tell whether one core takes the next superstep, and those behind it, by itself."""
        return (
            self.superstep > 0
            and self._arrived is None
            and self._last.sent_edges + self._last.active <= most_work_alone(self._threads.count)
            and self._direction(self._last.sent_edges) == "push"
        )

    def _advance_fused(self, num_supersteps: int) -> Done:
        """Run small supersteps, at most so many."""
        inbox, zero, given = self._open_inbox(), self.aggregates.identity, self.aggregates.given
        assert self._active is not None
        row = self._fused.run(
            self._native, num_supersteps, self._forced, self._last_senders(), self._active, self._last.sent_edges,
            self._arguments(), self._owned, self._fields, self._read, self._write, inbox, self._native.empty, given,
            zero,
        )  # fmt: skip
        self._senders, self._active = row.senders, row.active
        self._last = Counters(active=row.active.size, senders=row.senders.size, sent_edges=row.sent_edges)
        self.superstep += len(row.stats)
        self.aggregates.restore(row.values)
        if self._kept:
            self._kept.note(row.senders)
        return Done(row.stats, row.active.size, row.sent_edges)

    def _compile_loops(self) -> None:
        """Run what comes first over no vertices: what has to be compiled is no superstep's time."""
        if self._goes_by_edge:
            arrays = self._arguments(), self._fields, self._read, self._inbox
            self._edge_pass.run(self._native, *arrays, along_none=True)
            self._compute_all([_NONE])
        else:
            self._gather(0)((np.uint64(0), np.uint64(0)))

    def _exchange_records(self) -> tuple[NDArray[np.int64], int]:
        if self.superstep == 0 or self._program.delivery is not Delivery.RECORD:
            return np.empty(0, dtype=np.int64), 0
        self._exchange.publish(*self._read)
        return self._exchange.collect(*self._read)

    def _advance(self, ghosts: NDArray[np.int64]) -> tuple[str, Counters, int]:
        """Compute one superstep of this partition."""
        counters = Counters()
        if self._direct is not None:
            arguments = self._arguments()
            moved = self._direct.step(
                arguments, lambda: self._owned, self._fields, self._write, self._threads, self.aggregates, counters
            )  # fmt: skip
            return "mailbox", counters, moved
        if self._arrived is not None:
            (targets, messages), self._arrived = self._arrived, None
            self._read_arrived(targets, messages, counters)
            return "push", counters, 0
        if self._goes_by_edge:
            self._go_by_edge(ghosts.size, counters)
            return "edge", counters, 0
        sender_edges = self._local_sender_edges(ghosts)
        direction = self._direction(sender_edges)
        if direction == "push":
            self._push(ghosts, sender_edges, counters)
        else:
            self._pull(ghosts, counters)
        return direction, counters, 0

    def _direction(self, sender_edges: int) -> Direction:
        return choose_direction(
            sender_edges=sender_edges,
            num_edges=self._subgraph.incoming.ends.size,
            num_active=self._last.active,
            num_vertices=self._subgraph.num_owned,
            can_push=self._can_push and self.superstep > 0,
            stops_early=self._native.program.early_exit is not EarlyExit.NEVER,
            forced=self._forced,
        )

    def _arguments(self) -> LoopArguments:
        sizes = self._subgraph.num_vertices, self._subgraph.num_edges
        return LoopArguments(self.superstep, *sizes, self._params, self.aggregates.values)

    def _pull(self, ghosts: NDArray[np.int64], counters: Counters) -> None:
        kept = self._kept if self.superstep > 0 else None
        gather = self._gather_better(kept, ghosts) if kept else self._gather(ghosts.size)
        for counts, total in self._threads.map(gather, self._ranges):
            counters.add(counts, total)
        self._senders = self._active = None

    def _gather_better(self, kept: Kept, ghosts: NDArray[np.int64]) -> Callable[[Span], Any]:
        name, reach = kept.pull(ghosts)
        loop = self._native.loop(name, self._deterministic)
        arguments, zero, given = self._arguments(), self.aggregates.identity, self.aggregates.given
        arrays = (self._pull_edges, self._owned, self._fields, self._read.records, self._write)
        return lambda span: loop(*span, arguments, *arrays, self._native.empty, reach, given, zero)

    def _gather(self, num_ghosts_sent: int) -> Callable[[Span], Any]:
        lists = self._program.consumption is Consumption.LISTED
        loop = self._native.loop("gather_listed" if lists else "gather_combined", self._deterministic)
        sender_filter = self._sender_filter(num_ghosts_sent)
        arguments, zero, given = self._arguments(), self.aggregates.identity, self.aggregates.given
        write = self._write
        reads_bits = sender_filter in (SENDERS_BITMAP, SENDERS_TEST_EACH)
        bits = np.packbits(self._read.sent, bitorder="little") if reads_bits else self._read.sent[:0]
        read = OutboxBitmap(bits, self._read.records)

        def work(span: Span) -> Any:
            combining = (self._native.empty, np.empty(int(PIECE), dtype=np.uint64))
            room = (self._scratch(span),) if lists else combining
            return loop(
                *span, arguments, self._pull_edges, self._owned, self._fields, read, write, *room, sender_filter,
                given, zero,
            )  # fmt: skip

        return work

    def _sender_filter(self, num_ghosts_sent: int) -> int:
        return choose_sender_filter(
            sent=self._last.senders + num_ghosts_sent,
            could_send=self._num_with_out_edges + self._subgraph.num_ghosts,
            sent_edges=self._last.sent_edges,
            num_edges=self._num_out_edges,
            stops_early=self._native.program.early_exit is not EarlyExit.NEVER,
        )

    def _scratch(self, span: Span) -> Arrays:
        offsets = self._subgraph.incoming.offsets
        degrees = np.diff(offsets[int(span[0]) : int(span[1]) + 1])
        longest = int(degrees.max()) if degrees.size else 0
        return tuple(np.empty(longest, dtype=d) for d in self._program.message_dtypes)

    def _push(self, ghosts: NDArray[np.int64], sender_edges: int, counters: Counters) -> None:
        senders, inbox = self._last_senders(), self._open_inbox()
        if ghosts.size:
            senders = np.concatenate([senders, ghosts])
        touched = self._scatter.run(
            self._native, senders.astype(np.uint32, copy=False), sender_edges, self._arguments(), self._fields,
            self._read, inbox,
        )  # fmt: skip
        self._compute_listed(touched, counters)

    def _go_by_edge(self, num_ghosts_sent: int, counters: Counters) -> None:
        touched: list[NDArray[np.uint32]] = []
        inbox = self._open_inbox()
        if self._last.senders or num_ghosts_sent:
            touched = self._edge_pass.run(self._native, self._arguments(), self._fields, self._read, inbox)
        self._compute_listed(touched, counters)

    def _read_arrived(self, targets: NDArray[np.int64], messages: Arrays, counters: Counters) -> None:
        """Compute from messages instead of records, in the first superstep after an interpreter's."""
        arguments, n = self._arguments(), self._subgraph.num_owned
        if self._program.consumption is not Consumption.LISTED:
            self._compute_listed(
                [combine_into(self._open_inbox(), self._native, targets, messages, arguments)], counters
            )
            return
        lists = list_by_target(targets, messages, n)
        _, (ran, active, _, _), total = self._native.loop("compute_direct", self._deterministic)(
            np.uint64(0), np.uint64(n), arguments, self._owned, self._fields, lists, self._native.empty, self._write,
            new_queue(0, self._program.message_dtypes), self.aggregates.given, self.aggregates.identity,
        )  # fmt: skip
        senders = np.flatnonzero(self._write.sent[:n])
        sent_edges = int(self._subgraph.out_degrees[senders].sum(dtype=np.int64))
        counters.add((ran, active, senders.size, sent_edges), total)
        self._senders = self._active = None

    def _compute_listed(self, touched: list[NDArray[np.uint32]], counters: Counters) -> None:
        """Compute those whose inbox was filled, and those who are active."""
        is_heavy = self._program.reads_neighbors
        assert self._active is not None
        parts = [
            part
            for whole in (np.concatenate([_NONE, *touched]), self._active)
            for part in split_list(whole, self._threads.count, is_heavy=is_heavy)
        ]
        results = self._compute_all(parts)
        for counts, total, _, _ in results:
            counters.add(counts, total)
        self._senders = np.concatenate([_NONE, *[r[2] for r in results]])
        self._active = np.concatenate([_NONE, *[r[3] for r in results]])

    def _compute_all(self, lists: list[NDArray[np.uint32]]) -> list[Any]:
        """Compute lists of vertices; return of each what it did, contributed, and who sent and stays active."""
        loop = self._native.loop("compute_listed", self._deterministic)
        arguments, zero, given = self._arguments(), self.aggregates.identity, self.aggregates.given

        def work(vertices: NDArray[np.uint32]) -> Any:
            new_senders, new_active = np.empty_like(vertices), np.empty_like(vertices)
            counts, total = loop(
                vertices, arguments, self._owned, self._fields, self._inbox, self._native.empty, self._write, given,
                zero, new_senders, new_active,
            )  # fmt: skip
            return counts, total, new_senders[: counts[2]], new_active[: counts[1]]

        return self._threads.map(work, lists)

    @cached_property
    def _inbox(self) -> Inbox:
        n = self._subgraph.num_owned
        return Inbox(np.zeros(n, dtype=np.uint8), rows(self._native.slots, n))

    @cached_property
    def _push_edges(self) -> Edges:
        pushed = self._subgraph.pushed
        return Edges(pushed.offsets, pushed.ends, columns_of(pushed, self._program.edge_columns))

    @cached_property
    def _scatter(self) -> Scatter:
        return Scatter(self._push_edges, self._owned, self._subgraph.num_owned, self._threads)

    @cached_property
    def _fused(self) -> Fused:
        return Fused(self._push_edges, self._subgraph.num_owned, self._threads.count)

    @cached_property
    def _edge_pass(self) -> EdgePass:
        return EdgePass(self._pull_edges, self._owned_by_all, self._threads)

    def _last_senders(self) -> NDArray[Any]:
        if self._senders is None:
            sent = self._read.sent[: self._subgraph.num_owned].view(np.bool_)
            self._senders = np.flatnonzero(sent).astype(np.uint32)
        return self._senders

    def _open_inbox(self) -> Inbox:
        """Return the inboxes, empty; and list who is active, if that is not known from a push before."""
        if self._active is None:
            np.multiply(self._status != HALTED, UNLISTED, out=self._inbox.state)
            self._active = _NONE
            if self._last.active:
                self._active = np.flatnonzero(self._status == ACTIVE).astype(np.uint32)
        return self._inbox

    def _local_sender_edges(self, ghosts: NDArray[np.int64]) -> int:
        """Count the edges from the last senders into this partition; all edges where the senders are too many."""
        if self._exchange.size == 1:
            return self._last.sent_edges
        if not self._can_push or self.superstep == 0 or self._last.senders * 4 > self._subgraph.num_owned:
            return self._subgraph.incoming.ends.size
        offsets = self._subgraph.pushed.offsets
        senders = np.concatenate([self._last_senders().astype(np.int64), ghosts])
        return int((offsets[senders + 1] - offsets[senders]).sum())

    def _turn(self, counters: Counters) -> None:
        """Make what was written readable, and empty what was read."""
        old, new = self._read, self._write
        self._read, self._write = new, old
        if self._kept:
            self._kept.keep(new, self._senders, self._ranges, self._threads)
            self._read = Outbox(new.sent, self._kept.records)
            self._write = Outbox(old.sent, new.records)
        if self._last.senders or self._subgraph.num_ghosts:
            old.sent.fill(0)
        if self._edge_states is not None:
            self._edge_bytes = self._edge_states.commit()
        self._last = counters
        self.superstep += 1

    def _release(self) -> int:
        """Let the best value withheld spread alone, or all of them; return how many messages that makes.

        Collective. What a vertex sends in a priority-order form is the value it keeps, so records are made anew.
        """
        sent, (records,) = self._read
        n = self._subgraph.num_owned
        values = self._fields.states[0]
        if self._buckets is None:
            self._buckets = Buckets(
                self._native, sent[:n], self._subgraph.out_degrees, self._exchange, self._threads
            )
        next_ = self._buckets.release(self._status, values, self._subgraph.num_edges)
        sent.fill(0)
        sent[next_.senders] = 1
        records[next_.senders] = values[next_.senders]
        self._senders = next_.senders
        self._last = Counters(senders=next_.senders.size, sent_edges=next_.num_edges)
        self._native = self._plain if next_.is_last else self._priority_form
        self._is_priority_form = not next_.is_last
        return next_.num_edges_everywhere


def _edge_states(program: VertexProgram, subgraph: Subgraph, exchange: Exchange) -> EdgeStates | None:
    if not program.reads_edge_links:
        return None
    edges = subgraph.outgoing
    assert edges is not None
    check_names(program.edge_states, edges.columns)
    rows = subgraph.neighbor_rows
    return EdgeStates(program.edge_states, program.edge_state_dtypes, edges.ends.size, rows, exchange)


@dataclass(frozen=True)
class _FusedSupersteps:
    """Small supersteps, which one core runs by itself (`fused.py`)."""

    engine: Engine

    def run(self, most_supersteps: int) -> Done | None:
        return self.engine._advance_fused(most_supersteps) if self.engine._fuses_next() else None


@dataclass(frozen=True)
class _PriorityOrder:
    """The best value first, in buckets (`priority.py`)."""

    engine: Engine

    def release(self, done: Done) -> int:
        began = bool(done.stats) and done.stats[-1].superstep == 0
        if self.engine._is_priority_form and (began or done.in_flight == 0):
            return self.engine._release()
        return done.in_flight
