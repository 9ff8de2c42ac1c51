"""Direct messages, which no outbox record can express: written out, combined or sorted by target, then read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.cpu.rows import rows
from sigps.compiler.program import TO_ID, Consumption
from sigps.device.cpu import Threads
from sigps.engine.aggregates import Aggregates
from sigps.engine.cpu.message_lists import joined, list_by_target
from sigps.engine.cpu.work import Span, cut_vertices, even_ranges
from sigps.engine.exchange import Exchange
from sigps.engine.partition.edge_states import EdgeStates
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.snapshot import InFlight, as_columns, fill_rows
from sigps.errors import ExchangeError
from sigps.host_memory import available_memory
from sigps.kernels.cpu.arguments import (
    DirectMessageQueue,
    Inbox,
    KeyTable,
    LoopArguments,
    MessageLists,
    Outbox,
    OwnedVertices,
    VertexFields,
)

__all__ = ["DirectMessages", "combine_into", "new_queue", "new_table"]

Arrays = tuple[NDArray[Any], ...]
_FIRST_CAPACITY = 1 << 12
"""Messages that a queue takes at first; one that overflows is followed by one of four times its capacity."""
_BYTES_UNASKED = 1 << 21
"""Messages of fewer bytes are written without asking how much memory is free, which takes half a millisecond."""
_PARTS_OF_THREAD = 8
_WORTH_A_PART = 1 << 20
"""Messages, edges and vertices for which a part beyond one a thread pays: each takes 1.6 to 12 ns, a call 0.1 ms."""


class DirectMessages:
    """One partition's direct messages: those that arrived for this superstep, and those written for the next.

    Args:
        native: The program.
        subgraph: The partition.
        exchange: The way to the other partitions.
        deterministic: Whether messages of a target combine, or are listed, in the order of their senders' gids.
        edge_states: What the program keeps on edges, or None.
    """

    def __init__(
        self,
        native: NativeProgram,
        subgraph: Subgraph,
        exchange: Exchange,
        deterministic: bool,
        edge_states: EdgeStates | None = None,
    ) -> None:
        self._edge_states = edge_states
        self._native, self._subgraph, self._exchange = native, subgraph, exchange
        self._in_order = deterministic
        self._lists = native.program.consumption is Consumption.LISTED
        self._dtypes = native.program.message_dtypes
        self._spans_of_few: Sequence[Span] = ()
        n = subgraph.num_owned
        self._inbox: Any
        if self._lists:
            nothing = tuple(np.empty(0, dtype=d) for d in self._dtypes)
            self._inbox = self._listed(np.empty(0, dtype=np.int64), nothing, Threads(1))
        else:
            self._inbox = Inbox(np.zeros(n, dtype=np.uint8), rows(native.slots, n))

    def step(
        self,
        arguments: LoopArguments,
        owned: Callable[[], OwnedVertices],
        fields: VertexFields,
        outbox: Outbox,
        threads: Threads,
        aggregates: Aggregates,
        counters: Any,
    ) -> int:
        """Compute from the messages that arrived, and send; return the bytes that left this rank. Collective.

        `owned` is called by each thread, and returns what its loops read of owned vertices.
        """
        written = self._written_by_all(arguments, owned, fields, outbox, threads, aggregates, counters)
        if self._lists:
            self._inbox = None  # all have read it: what arrives next has its room
        return self._deliver(written, arguments, threads, counters)

    def save(self) -> tuple[InFlight, NDArray[np.int64], Arrays]:
        """Return copies of what arrived for the next superstep: what it is, targets (gids), values."""
        gids = self._subgraph.owned_gids
        if self._lists:
            lists: MessageLists = self._inbox
            return (
                "messages",
                np.repeat(gids, np.diff(lists.offsets)),
                tuple(m[: lists.offsets[-1]].copy() for m in lists.messages),
            )
        inbox: Inbox = self._inbox
        targets = np.flatnonzero(inbox.state)
        return "slots", gids[targets], as_columns(inbox.slots, targets)

    def restore(
        self, in_flight: InFlight, lids: NDArray[np.int64], values: Arrays, arguments: LoopArguments
    ) -> None:
        """Put in place the messages that arrived for the superstep of `arguments`."""
        if self._lists:
            self._inbox = self._listed(lids, values, Threads(1))
        elif in_flight == "slots":
            self._inbox.state[lids] = 1
            fill_rows(self._inbox.slots, lids, values)
        else:
            combine_into(self._inbox, self._native, lids, values, arguments)

    def _spans(self, threads: Threads) -> Sequence[Span]:
        """Return the vertices that are computed in one go: of about equal work, but where one vertex has more."""
        n, program = self._subgraph.num_owned, self._native.program
        if threads.count == 1:
            return even_ranges(n, 1)
        if program.reads_neighbors:  # a vertex may be much work
            return even_ranges(n, max(1, min(n, 32 * threads.count)))
        walks = program.reads_edges and self._subgraph.outgoing is not None
        work = [self._subgraph.outgoing.offsets] if walks else []  # type: ignore[union-attr]
        total = n + sum(int(offsets[n]) for offsets in work)
        num_messages = int(self._inbox.offsets[n]) if self._lists else 0
        has_few = 8 * num_messages <= total
        if has_few and self._spans_of_few:
            return self._spans_of_few
        if not has_few:
            work.append(self._inbox.offsets)
        parts = min(_PARTS_OF_THREAD * threads.count, (total + num_messages) // _WORTH_A_PART)
        spans = cut_vertices(n, work, max(parts, threads.count if n > 1024 else 1)) or even_ranges(n, 1)
        if has_few:  # of many supersteps each has few messages: to cut again takes 0.1 ms
            self._spans_of_few = spans
        return spans

    def _is_open(self, number: int, fields: VertexFields) -> bool:
        """Tell whether a vertex of a span may run; then its edges are there for this thread."""
        return True

    def _listed(self, lids: NDArray[np.int64], messages: Arrays, threads: Threads) -> MessageLists:
        twice = bool(self._native.program.sorts_by)
        return list_by_target(lids, messages, self._subgraph.num_owned, threads, twice=twice)

    def _written_by_all(
        self,
        arguments: LoopArguments,
        owned: Callable[[], OwnedVertices],
        fields: VertexFields,
        outbox: Outbox,
        threads: Threads,
        aggregates: Aggregates,
        counters: Any,
    ) -> list[Arrays]:
        """Compute all vertices; return the columns of their messages, part by part."""
        spans = self._spans(threads)

        def work(i: int) -> tuple[list[Any], list[Arrays]]:
            if not self._is_open(i, fields):
                return [], []
            return self._write(*spans[i], arguments, owned, fields, outbox, aggregates)

        written = [_columns(new_queue(0, self._dtypes))]
        for calls, parts in threads.map(work, range(len(spans))):
            written += parts
            for counts, total in calls:
                counters.add(counts, total)
        return written

    def _write(
        self,
        begin: np.uint64,
        end: np.uint64,
        arguments: LoopArguments,
        owned: Callable[[], OwnedVertices],
        fields: VertexFields,
        outbox: Outbox,
        aggregates: Aggregates,
    ) -> tuple[list[Any], list[Arrays]]:
        """Compute a range of vertices; where a queue overflows, go on from that vertex with a larger one.

        Returns what each call did and contributed, and the columns of the messages of each that sent some: kinds,
        targets, senders, fields.
        """
        loop = self._native.loop("compute_direct", False)
        capacity, num_messages = _FIRST_CAPACITY, 0
        calls, written = [], []
        at = begin
        while at < end:
            self._check_memory(num_messages + capacity, arguments.superstep)
            queue = new_queue(capacity, self._dtypes)
            stopped, counts, total = loop(
                at, end, arguments, owned(), fields, self._inbox, self._native.empty, outbox, queue, (),
                aggregates.identity,
            )  # fmt: skip
            calls.append((counts, total))
            if queue.size[0]:
                written.append(_columns(queue))
            num_messages += int(queue.size[0])
            capacity *= 4
            at = np.uint64(stopped)
            if at < end:
                self._undo(int(stopped))
        return calls, written

    def _undo(self, vertex: int) -> None:
        """Drop what a vertex wrote on its edges in this superstep: it computes once more."""
        if self._edge_states is not None:
            assert self._subgraph.outgoing is not None
            offsets = self._subgraph.outgoing.offsets
            self._edge_states.undo(int(offsets[vertex]), int(offsets[vertex + 1]))

    def _check_memory(self, num_messages: int, superstep: int) -> None:
        """Refuse messages that would not fit, before they are written.

        Raises:
            ExchangeError: If written and delivered messages together would take more than the machine has free.
        """
        message = sum(d.itemsize for d in self._dtypes)
        needed = num_messages * (3 * message + 50)  # written by threads, joined, and sorted by target
        needed += num_messages * (message + 8) if self._native.program.sorts_by else 0
        if needed > _BYTES_UNASKED and needed > (free := available_memory()):
            raise ExchangeError(
                f"the messages of this superstep need {needed:,} bytes and {free:,} are free. Reduce them in "
                "compute() (sum, min, max) so that they combine, send along edges once, or use more ranks",
                rank=self._exchange.rank,
                superstep=superstep,
            )

    def _deliver(
        self,
        written: list[Arrays],
        arguments: LoopArguments,
        threads: Threads,
        counters: Any,
    ) -> int:
        """Bring messages to the vertices that read them in the next superstep, and empty `written`, the only list."""
        parts = [list(column) for column in zip(*written, strict=True)]
        written.clear()  # messages are many: only one column at a time is kept twice
        kinds, targets, senders, *columns = (joined(parts.pop(0), threads) for _ in range(len(parts)))
        messages, counters.sent_edges = tuple(columns), kinds.size
        is_by_id = kinds == TO_ID
        if is_by_id.all():
            targets = self._exchange.find(targets, arguments.superstep)
        else:
            by_id = np.flatnonzero(is_by_id)
            targets[by_id] = self._exchange.find(targets[by_id], arguments.superstep)
        gids = self._subgraph.owned_gids[senders] if self._in_order else None
        if not self._lists:
            targets, messages = self._combined(targets, messages, arguments)
        del kinds, senders, columns
        lids, messages, num_bytes = self._exchange.route(targets, gids, messages)
        del targets, gids
        if self._lists:
            self._inbox = self._listed(lids, messages, threads)
        else:
            self._merge(lids, messages, arguments)
        return num_bytes

    def _combined(
        self, targets: NDArray[np.int64], messages: Arrays, arguments: LoopArguments
    ) -> tuple[Any, Arrays]:
        """Combine before sending: one value of every slot for each target.

        Where the order of the sum matters, messages only become slots here, and their target combines them.
        """
        order = np.arange(targets.size) if self._in_order else np.argsort(targets, kind="stable")
        keys = order if self._in_order else targets
        found, slots = np.empty(order.size, dtype=np.int64), rows(self._native.slots, order.size)
        loop = self._native.loop("combine_messages", self._in_order)
        reader = arguments._replace(superstep=arguments.superstep + 1)
        count = loop(order, keys, messages, reader, self._native.empty, found, slots)
        return targets if self._in_order else found[:count], tuple(s[:count] for s in slots)

    def _merge(self, lids: NDArray[np.int64], slots: Arrays, arguments: LoopArguments) -> None:
        self._inbox.state.fill(0)
        touched = np.empty(min(lids.size, self._subgraph.num_owned) + 1, dtype=np.uint32)
        loop = self._native.loop("apply_bins", self._in_order)
        ends = np.uint64(0), np.uint64(lids.size)
        loop(*ends, arguments, lids.astype(np.uint32), slots, self._inbox, touched)


def new_queue(capacity: int, dtypes: Sequence[np.dtype[Any]]) -> DirectMessageQueue:
    """Return an empty queue for so many messages, whose fields have these types."""
    return DirectMessageQueue(
        np.zeros(1, dtype=np.int64),
        np.empty(capacity, dtype=np.uint8),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.uint32),
        tuple(np.empty(capacity, dtype=d) for d in dtypes),
    )


def _columns(queue: DirectMessageQueue) -> Arrays:
    columns: Arrays = queue.kinds, queue.targets, queue.senders, *queue.messages
    return tuple(column[: int(queue.size[0])] for column in columns)


def new_table(native: NativeProgram, num_messages: int) -> KeyTable:
    """Return a table for the keys of a vertex with so many messages."""
    places = max(4, 1 << (2 * num_messages - 1).bit_length()) if num_messages else 4
    stamps = np.zeros(places, dtype=np.uint32)
    return KeyTable(stamps, rows(native.slots, places), np.empty(num_messages, dtype=np.uint32))


def combine_into(
    inbox: Inbox,
    native: NativeProgram,
    targets: NDArray[np.int64],
    messages: Arrays,
    arguments: LoopArguments,
) -> NDArray[np.uint32]:
    """Combine messages in their order into an empty inbox, or find their keys; return the vertices that are listed.

    `arguments` are those of the superstep that reads the messages.
    """
    order = np.argsort(targets, kind="stable")
    found = np.empty(order.size, dtype=np.int64)
    slots = rows(native.slots, order.size)
    if native.program.consumption is Consumption.GROUPED:
        most = int(np.unique(targets, return_counts=True)[1].max(initial=0))
        given = order, targets, messages, arguments, native.empty, new_table(native, most)
        count = native.loop("group_messages")(*given, found, slots)
    else:
        combine = native.loop("combine_messages", True)
        count = combine(order, targets, messages, arguments, native.empty, found, slots)
    touched = np.empty(count + 1, dtype=np.uint32)
    apply = native.loop("apply_bins", True)
    ends = np.uint64(0), np.uint64(count)
    listed = apply(*ends, arguments, found[:count].astype(np.uint32), slots, inbox, touched)
    return touched[:listed]
