"""Supersteps in which messages are outbox records: pulled by their targets, or pushed by their senders.

    pull   every owned vertex combines its in-neighbours' records and computes, in one loop
    push   the last superstep's senders combine into inboxes; vertices with a message, or active ones, compute

`choose_direction` decides between them, on each partition in each superstep: what crosses partitions is the records
of vertices that sent, either way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import Consumption, EarlyExit
from sigps.engine.counters import Counters
from sigps.engine.cpu.direct_messages import combine_into, new_queue, new_table
from sigps.engine.cpu.message_lists import list_by_target
from sigps.engine.cpu.monotone import LastRecords
from sigps.engine.cpu.push import Scatter
from sigps.engine.cpu.run_state import RunState
from sigps.engine.cpu.work import Span, can_push, cut_vertices, longest_first
from sigps.engine.direction import Direction, choose_direction, choose_sender_filter, pull_gain
from sigps.engine.partition.subgraph import Subgraph
from sigps.kernels.cpu.arguments import (
    SENDERS_BITMAP,
    SENDERS_TEST_EACH,
    Edges,
    KeyTable,
    Outbox,
    OutboxBitmap,
)
from sigps.native.kernel import Kernel

__all__ = ["Records"]

Arrays = tuple[NDArray[Any], ...]

_LOOPS = {Consumption.LISTED: "gather_listed", Consumption.GROUPED: "gather_grouped"}
_WORTH_A_PART = 1 << 15
"""Edges and vertices for which a part of its own pays. With 2^12 PageRank takes 11 ms on kron-12, with this 4.2, and
3.5 and 1.5 on kron-10 (2 cores): threads that end often wait for the interpreter's lock."""


class Records:
    """Pull and push of one partition.

    Args:
        state: What the run keeps.
        forced: A direction to use always, or None.
        kept: The last records of a monotone program; None for any other.

    Attributes:
        can_push: Whether the program has a push form that this run may use.
        kept: As given, until a partition finds that values have no order.
    """

    def __init__(self, state: RunState, forced: Direction | None, kept: LastRecords | None) -> None:
        self._state, self._forced, self.kept = state, forced, kept
        self.can_push = can_push(state.native, state.deterministic) and forced != "pull"
        self._arrived: tuple[NDArray[np.int64], Arrays] | None = None
        subgraph, num_threads = state.subgraph, state.threads.count
        offsets = subgraph.incoming.offsets
        parts = _num_parts(state, num_threads)

        def cut() -> list[Span]:
            return longest_first(cut_vertices(offsets.size - 1, [offsets], parts), offsets)

        self._ranges = list(subgraph.derived(f"ranges of vertices {parts}", cut))
        self._num_out_edges, senders = subgraph.derived("out-edges and senders", lambda: _senders(subgraph))
        self._could_send = senders + subgraph.num_ghosts

    def compile(self) -> None:
        """Run superstep 0's loop over no vertices: compiling it is no superstep's time."""
        if not self._gather_loop.has_code:
            self._gather(0)((np.uint64(0), np.uint64(0)))

    def compute(self, ghosts: NDArray[np.int64], counters: Counters) -> str:
        """Run one superstep; return its direction.

        Args:
            ghosts: Local ids of ghosts that sent.
            counters: What was done is added to it.
        """
        if self._arrived is not None:
            self._read_arrived(counters)
            return "push"
        sender_edges = self._local_sender_edges(ghosts)
        direction = self.direction(sender_edges)
        if direction == "push":
            self._push(ghosts, sender_edges, counters)
        else:
            self._pull(ghosts, counters)
        return direction

    def direction(self, sender_edges: int) -> Direction:
        """Choose the direction of the next superstep, to which vertices sent along so many local edges."""
        state = self._state
        return choose_direction(
            sender_edges=sender_edges,
            num_edges=state.subgraph.incoming.num_edges,
            num_active=state.last.active,
            num_vertices=state.subgraph.num_owned,
            can_push=self.can_push and state.superstep > 0,
            pull_gain=pull_gain(self._stops_early),
            forced=self._forced,
        )

    def commit(self) -> None:
        """Make the records that were written readable, and empty the other outbox."""
        state = self._state
        state.swap_outboxes()
        if self.kept is not None:
            new = state.read
            self.kept.store(new, state.senders, self._ranges, state.threads)
            state.read = Outbox(new.sent, self.kept.records)
            state.write = Outbox(state.write.sent, new.records)
        if state.last.senders or state.subgraph.num_ghosts:
            state.write.sent.fill(0)

    def grow(self, num_owned: int) -> None:
        """Take so many owned vertices: new ones are of the last range, and all of them could send."""
        last = max(range(len(self._ranges)), key=lambda i: self._ranges[i][1])
        begin, end = self._ranges[last]
        self._ranges[last] = begin, np.uint64(num_owned)
        self._could_send += num_owned - int(end)

    def put(self, targets: NDArray[np.int64], messages: Arrays) -> None:
        """Let the next superstep read messages, by local id, instead of records: those of an interpreter's log."""
        self._arrived = targets, messages

    @property
    def has_arrived(self) -> bool:
        """Whether the next superstep reads messages instead of records."""
        return self._arrived is not None

    @property
    def _gather_loop(self) -> Kernel:
        return self._state.loop(_LOOPS.get(self._state.program.consumption, "gather_combined"))

    @property
    def _stops_early(self) -> bool:
        return self._state.native.program.early_exit is not EarlyExit.NEVER

    def _pull(self, ghosts: NDArray[np.int64], counters: Counters) -> None:
        state = self._state
        kept = self.kept if state.superstep > 0 else None
        gather = self._gather_better(kept, ghosts) if kept else self._gather(ghosts.size)
        for counts, total in state.threads.map(gather, self._ranges):
            counters.add(counts, total)
        state.senders = state.active = None

    def _gather_better(self, kept: LastRecords, ghosts: NDArray[np.int64]) -> Callable[[Span], Any]:
        state = self._state
        name, bound = kept.pull(ghosts)
        loop, arguments = state.loop(name), state.arguments()
        zero, given = state.aggregates.identity, ()
        arrays = (self._state.pull_edges, state.owned, state.fields, state.read.records, state.write)
        run = loop.over(arguments, *arrays, state.native.empty, bound, given, zero)
        return lambda span: run(*span)

    def _gather(self, num_ghosts_sent: int) -> Callable[[Span], Any]:
        return self._gather_along(self._sender_filter(num_ghosts_sent))(self._state.pull_edges)

    def _gather_along(self, sender_filter: int) -> Callable[[Edges], Callable[[Span], Any]]:
        """Return a function of in-edges, and this of a range of vertices that have them, which then pull."""
        state = self._state
        consumption = state.program.consumption
        loop = self._gather_loop
        arguments, zero, given = state.arguments(), state.aggregates.identity, ()
        reads_bits = sender_filter in (SENDERS_BITMAP, SENDERS_TEST_EACH)
        bits = np.packbits(state.read.sent, bitorder="little") if reads_bits else state.read.sent[:0]
        read = OutboxBitmap(bits, state.read.records)

        def others(edges: Edges, empty: Any) -> tuple[Any, ...]:
            arrays = edges, state.owned, state.fields, read, state.write
            return arguments, *arrays, empty, sender_filter, given, zero

        def grouped(span: Span, edges: Edges) -> Any:
            arrays = edges, state.owned, state.fields, read, state.write
            rest = state.native.empty, sender_filter, given, zero
            return loop(*span, arguments, *arrays, self._table(span), *rest)

        if consumption is Consumption.LISTED:
            return lambda edges: lambda span: loop(*span, *others(edges, self._lists(span)))
        if consumption is Consumption.GROUPED:
            return lambda edges: lambda span: grouped(span, edges)
        if state.program.reads_neighbors:  # each thread has marks of its own
            return lambda edges: lambda span: loop(*span, *others(edges, state.native.empty))

        def prepared(edges: Edges) -> Callable[[Span], Any]:
            run = loop.over(*others(edges, state.native.empty))
            return lambda span: run(*span)

        return prepared

    def _sender_filter(self, num_ghosts_sent: int) -> int:
        last = self._state.last
        return choose_sender_filter(
            sent=last.senders + num_ghosts_sent,
            could_send=self._could_send,
            sent_edges=last.sent_edges,
            num_edges=self._num_out_edges,
            stops_early=self._stops_early,
        )

    def _lists(self, span: Span) -> Arrays:
        """Return arrays that hold the messages of any one vertex of a range; twice, where they are sorted."""
        program = self._state.program
        size = self._longest(span) * (2 if program.sorts_by else 1)
        return tuple(np.empty(size, dtype=d) for d in program.message_dtypes)

    def _table(self, span: Span) -> KeyTable:
        return new_table(self._state.native, self._longest(span))

    def _longest(self, span: Span) -> int:
        """Return the most in-edges of a vertex of a range."""
        offsets = self._state.subgraph.incoming.offsets
        degrees = np.diff(offsets[int(span[0]) : int(span[1]) + 1])
        return int(degrees.max()) if degrees.size else 0

    def _push(self, ghosts: NDArray[np.int64], sender_edges: int, counters: Counters) -> None:
        state = self._state
        senders, inbox = state.last_senders(), state.open_inbox()
        if ghosts.size:
            senders = np.concatenate([senders, ghosts.astype(np.uint32)])
        touched = self._scatter.run(
            state.native, senders, sender_edges, state.arguments(), state.fields, state.read, inbox
        )
        state.compute_listed(touched, counters)

    @cached_property
    def _scatter(self) -> Scatter:
        state = self._state
        return Scatter(state.push_edges, state.owned, state.subgraph.num_owned, state.threads)

    def _local_sender_edges(self, ghosts: NDArray[np.int64]) -> int:
        """Count the edges from the last senders into this partition; all edges where the senders are too many."""
        state = self._state
        last, subgraph = state.last, state.subgraph
        if state.exchange.size == 1:
            return last.sent_edges
        if not self.can_push or state.superstep == 0 or last.senders * 4 > subgraph.num_owned:
            return subgraph.incoming.num_edges
        edges = subgraph.pushed
        stops = edges.offsets[1:] if edges.stops is None else edges.stops
        senders = np.concatenate([state.last_senders().astype(np.int64), ghosts])
        return int((stops[senders] - edges.offsets[senders]).sum())

    def _read_arrived(self, counters: Counters) -> None:
        """Compute from messages instead of records, in the first superstep after an interpreter's."""
        assert self._arrived is not None
        (targets, messages), self._arrived = self._arrived, None
        state = self._state
        arguments, n = state.arguments(), state.subgraph.num_owned
        if state.program.consumption is not Consumption.LISTED:
            touched = combine_into(state.open_inbox(), state.native, targets, messages, arguments)
            state.compute_listed([touched], counters)
            return
        lists = list_by_target(targets, messages, n, state.threads, twice=bool(state.program.sorts_by))
        _, (ran, active, _, _), total = state.loop("compute_direct")(
            np.uint64(0), np.uint64(n), arguments, state.owned, state.fields, lists, state.native.empty, state.write,
            new_queue(0, state.program.message_dtypes), (), state.aggregates.identity,
        )  # fmt: skip
        senders = np.flatnonzero(state.write.sent[:n])
        sent_edges = int(state.subgraph.out_degrees[senders].sum(dtype=np.int64))
        counters.add((ran, active, senders.size, sent_edges), total)
        state.senders = state.active = None


def _senders(subgraph: Subgraph) -> tuple[int, int]:
    """Return how many out-edges the owned vertices have, and how many of them have some. O(num_owned)."""
    degrees = subgraph.out_degrees
    return int(degrees.sum(dtype=np.int64)), int(np.count_nonzero(degrees))


def _num_parts(state: RunState, num_threads: int) -> int:
    """Return into how many parts vertices are cut: of small graphs fewer, since a call costs some 10 us."""
    if num_threads == 1:
        return 1
    if state.program.reads_neighbors:
        return 32 * num_threads
    work = state.subgraph.num_owned + state.subgraph.incoming.num_edges
    return min(8 * num_threads, max(1, work // _WORTH_A_PART))
