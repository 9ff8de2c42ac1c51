"""Messages that no outbox record can express: written out, combined or sorted by target, and read next superstep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram, rows
from sigps.compiler.program import TO_ID, Consumption
from sigps.device.cpu import Threads, available_memory
from sigps.engine.aggregates import Aggregates
from sigps.engine.cpu.arrivals import combine_into, list_by_target
from sigps.engine.exchange import Exchange
from sigps.engine.partition.edge_states import EdgeStates
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.snapshot import InFlight, as_columns, fill_rows
from sigps.errors import ExchangeError

__all__ = ["DirectMessages"]

Arrays = tuple[NDArray[Any], ...]
_FIRST_ROOM = 1 << 12


class DirectMessages:
    """One partition's mail: what arrived for this superstep, and what is being written for the next."""

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
        n = subgraph.num_owned
        self._boxes: tuple[Any, Any]
        if self._lists:
            nothing = tuple(np.empty(0, dtype=d) for d in native.program.message_dtypes)
            self._boxes = np.zeros(n + 1, dtype=np.int64), nothing
        else:
            self._boxes = np.zeros(n, dtype=np.uint8), rows(native.slots, n)

    def step(
        self,
        job: tuple[Any, ...],
        own: Callable[[], tuple[Any, ...]],
        fields: tuple[Any, ...],
        write: tuple[Any, ...],
        threads: Threads,
        aggregates: Aggregates,
        counters: Any,
    ) -> int:
        """Read the mail, compute, send; returns the bytes that left this rank. Collective.

        `own` gives what a thread's loop knows of owned vertices; the other arguments are as in `kernels/cpu.py`.
        """
        n = self._subgraph.num_owned
        parts = threads.count if n > 1024 else 1
        if self._native.program.reads_neighbors and threads.count > 1:  # a vertex may be much work
            parts = max(1, min(n, 32 * threads.count))
        bounds = np.linspace(0, n, parts + 1).astype(np.uint64)

        def work(i: int) -> tuple[list[Any], Arrays]:
            return self._write(bounds[i], bounds[i + 1], job, own, fields, write, aggregates)

        results = threads.map(work, range(parts))
        for tallies, _ in results:
            for counts, total in tallies:
                counters.add(counts, total)
        mail = tuple(np.concatenate(columns) for columns in zip(*[r[1] for r in results], strict=True))
        counters.sent_edges = mail[0].size
        return self._deliver(mail, job)

    def save(self) -> tuple[InFlight, NDArray[np.int64], Arrays]:
        """Return copies of what arrived for the next superstep: what it is, targets (gids), values."""
        gids = self._subgraph.owned_gids
        if self._lists:
            offsets, messages = self._boxes
            return "messages", np.repeat(gids, np.diff(offsets)), tuple(m.copy() for m in messages)
        has, slots = self._boxes
        targets = np.flatnonzero(has)
        return "slots", gids[targets], as_columns(slots, targets)

    def restore(self, in_flight: InFlight, lids: NDArray[np.int64], values: Arrays, job: Any) -> None:
        """Put in place what has arrived for the superstep of `job`."""
        if self._lists:
            self._boxes = list_by_target(lids, values, self._subgraph.num_owned)
        elif in_flight == "slots":
            self._boxes[0][lids] = 1
            fill_rows(self._boxes[1], lids, values)
        else:
            combine_into(self._boxes, self._native, lids, values, job)

    def _write(
        self,
        begin: np.uint64,
        end: np.uint64,
        job: tuple[Any, ...],
        own: Callable[[], tuple[Any, ...]],
        fields: tuple[Any, ...],
        write: tuple[Any, ...],
        aggregates: Aggregates,
    ) -> tuple[list[Any], Arrays]:
        """Run a range of vertices; where the mail overflows, make room and go on from that vertex."""
        loop = self._native.loop("read_direct", bool(aggregates.given))
        room, num_mails = _FIRST_ROOM, 0
        tallies, written = [], []
        at = begin
        while at < end:
            self._check_memory(num_mails + room, job[0][0])
            mail = self._room(room)
            stopped, counts, total = loop(
                at, end, job, own(), fields, self._boxes, self._native.empty, write, mail, aggregates.given,
                aggregates.identity,
            )  # fmt: skip
            tallies.append((counts, total))
            count = int(mail[0][0])
            num_mails += count
            written.append(tuple(column[:count] for column in mail[1:]))
            room = room * 4
            at = np.uint64(stopped)
            if at < end and self._edge_states is not None:
                assert self._subgraph.outgoing is not None
                offsets = self._subgraph.outgoing.offsets
                self._edge_states.undo(int(offsets[stopped]), int(offsets[stopped + 1]))
        if not written:
            written.append(self._room(0)[1:])
        columns = tuple(np.concatenate(parts) for parts in zip(*written, strict=True))
        return tallies, columns

    def _room(self, size: int) -> Arrays:
        dtypes = self._native.program.message_dtypes
        return (
            np.zeros(1, dtype=np.int64),
            np.empty(size, dtype=np.uint8),
            np.empty(size, dtype=np.int64),
            np.empty(size, dtype=np.uint32),
            *[np.empty(size, dtype=d) for d in dtypes],
        )

    def _check_memory(self, num_mails: int, superstep: int) -> None:
        """Refuse mail that would not fit, before it is written.

        Raises:
            ExchangeError: If written and delivered mail together would take more than the machine has free.
        """
        message = sum(d.itemsize for d in self._native.program.message_dtypes)
        needed = 2 * num_mails * (message + 13)  # written, and sorted by target
        free = available_memory()
        if num_mails > _FIRST_ROOM and needed > free:
            raise ExchangeError(
                f"the messages of this superstep need {needed:,} bytes and {free:,} are free. Reduce them in "
                "compute() (sum, min, max) so that they combine, send along edges once, or use more ranks",
                rank=self._exchange.rank,
                superstep=superstep,
            )

    def _deliver(self, mail: Arrays, job: tuple[Any, ...]) -> int:
        kinds, targets, messages = mail[0], mail[1], mail[3:]
        by_id = np.flatnonzero(kinds == TO_ID)
        targets[by_id] = self._exchange.find(targets[by_id], job[0][0])
        senders = self._subgraph.owned_gids[mail[2]] if self._in_order else None
        if not self._lists:
            targets, messages = self._combined(targets, messages, job)
        lids, messages, num_bytes = self._exchange.route(targets, senders, messages)
        if self._lists:
            self._boxes = list_by_target(lids, messages, self._subgraph.num_owned)
        else:
            self._merge(lids, messages)
        return num_bytes

    def _combined(
        self, targets: NDArray[np.int64], messages: Arrays, job: tuple[Any, ...]
    ) -> tuple[Any, Arrays]:
        """Combine before sending: one value of every slot for each target.

        Where the order of the sum matters, messages only become slots here, and their target combines them.
        """
        order = np.arange(targets.size) if self._in_order else np.argsort(targets, kind="stable")
        keys = order if self._in_order else targets
        room = np.empty(order.size, dtype=np.int64)
        slots = rows(self._native.slots, order.size)
        loop = self._native.loop("combine_mail", self._in_order)
        (superstep, *sizes), *rest = job
        reader = ((superstep + 1, *sizes), *rest)
        count = loop(order, keys, messages, reader, self._native.empty, room, slots)
        return targets if self._in_order else room[:count], tuple(s[:count] for s in slots)

    def _merge(self, lids: NDArray[np.int64], slots: Arrays) -> None:
        self._boxes[0].fill(0)
        touched = np.empty(min(lids.size, self._subgraph.num_owned) + 1, dtype=np.uint32)
        loop = self._native.loop("apply_bins", self._in_order)
        loop(np.uint64(0), np.uint64(lids.size), lids.astype(np.uint32), slots, self._boxes, touched)
