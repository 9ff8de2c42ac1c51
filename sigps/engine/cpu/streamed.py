"""Supersteps whose edges stay in a packed store: `records.py` and `direct_messages.py` block by block (`blocks.py`).

Vertex fields, outboxes and inboxes stay in memory. A row is in one block, in the order that it has in memory, so what
its messages combine to is the same bit for bit; where rows are by degree it is so where order does not matter.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import Delivery
from sigps.device.cpu import Threads
from sigps.engine.counters import Counters
from sigps.engine.cpu.blocks import Blocks
from sigps.engine.cpu.crew import Schedule
from sigps.engine.cpu.direct_messages import DirectMessages
from sigps.engine.cpu.engine import Engine
from sigps.engine.cpu.progress import SlowContraction, can_decide
from sigps.engine.cpu.records import Records
from sigps.engine.cpu.run_state import RunState
from sigps.engine.cpu.streamed_blocks import StreamedBlocks
from sigps.engine.cpu.value_blocks import ValueBlocks
from sigps.engine.cpu.work import can_push
from sigps.engine.direction import Direction
from sigps.engine.partition.streamed import StreamedEdges
from sigps.kernels.cpu.arguments import ACTIVE, RETIRED, SENDERS_NONE, Edges, VertexFields

__all__ = ["StreamingEngine"]


class StreamedRecords(Records):
    """Pull and push of one partition whose edges stay packed.

    A pull unpacks the blocks with a sender among their sources, as far as is known (`Blocks.may_have_sender`), unless
    all their vertices have retired. A push, where one rank's rows serve both directions and the order
    in which messages combine does not matter, unpacks those with a sender.
    """

    def __init__(
        self, state: RunState, forced: Direction | None, blocks: Blocks, values: ValueBlocks | None = None
    ) -> None:
        super().__init__(state, forced, None)
        program, self.blocks, self._values = state.program, blocks, values
        in_any_order = can_push(state.native, deterministic=True) and not program.reads_edges
        self.can_push = self.can_push and state.subgraph.is_symmetric and in_any_order
        self._combining = threading.Lock()

    def compile(self) -> None:
        """Run superstep 0's loop over no vertices: compiling it is no superstep's time."""
        nothing = self._nothing()
        self._gather_along(SENDERS_NONE)(nothing)((np.uint64(0), np.uint64(0)))

    def _nothing(self) -> Edges:
        """Return the edges of no block; compute() walks them in this thread from now on."""
        edges = self.blocks.nothing()
        if self._state.program.reads_edges:
            on_edges = () if self._values is None else (self._values.nothing(),)
            self._state.let_walk((*self.blocks.walked, *on_edges))
        return edges

    def _pull(self, ghosts: NDArray[np.int64], counters: Counters) -> None:
        state, blocks = self._state, self.blocks
        blocks.require_files()
        sender_filter = self._sender_filter(ghosts.size)
        gather_along, gather_nothing = self._gather_along(sender_filter), self._gather_along(SENDERS_NONE)
        status, walks = state.fields.status, state.program.reads_edges
        no_messages = sender_filter == SENDERS_NONE
        buckets = blocks.buckets_of(state.read.sent)

        spans = [*blocks.spans, *blocks.spans_without]

        def gather(number: int) -> tuple[Any, bool]:
            span, has_edges = spans[number], number < len(blocks)
            own = status[int(span[0]) : int(span[1])]
            if (own == RETIRED).all():
                return None, not has_edges
            has_sender = has_edges and not no_messages and blocks.may_have_sender(number, buckets)
            if not has_sender and not (own == ACTIVE).any():
                return None, not has_edges
            reads = has_edges and (walks or has_sender)
            edges = _opened(state, blocks, self._values, number) if reads else self._nothing()
            found = (gather_along if reads else gather_nothing)(edges)(span)
            if reads and self._values is not None:
                self._values.close()
            return found, reads or not has_edges

        for found, was_read in state.threads.map(gather, range(len(spans))):
            if found is not None:
                counters.add(*found)
            counters.blocks_skipped += not was_read
        counters.bytes_read += _bytes_moved(blocks, self._values)
        state.senders = state.active = None

    def _push(self, ghosts: NDArray[np.int64], sender_edges: int, counters: Counters) -> None:
        state, blocks = self._state, self.blocks
        blocks.require_files()
        senders, inbox = np.sort(state.last_senders()), state.open_inbox()
        cuts = np.searchsorted(senders, [int(span[0]) for span in blocks.spans] + [state.subgraph.num_owned])
        arguments, scatter = state.arguments(), state.loop("scatter_direct")
        degrees = state.subgraph.out_degrees

        def push(number: int) -> NDArray[np.uint32]:
            own = senders[cuts[number] : cuts[number + 1]]
            most = min(state.subgraph.num_owned, int(degrees[own].sum(dtype=np.int64)))
            touched = np.empty(most + 1, dtype=np.uint32)
            edges = blocks.block(number)
            with self._combining:
                count = scatter(own, arguments, edges, state.owned, state.fields, state.read, inbox, touched)
            return touched[:count]

        with_senders = np.flatnonzero(np.diff(cuts)).tolist()
        touched = state.threads.map(push, with_senders)
        counters.blocks_skipped += len(blocks) - len(with_senders)
        counters.bytes_read += blocks.take_bytes_read()
        state.compute_listed(touched, counters)


class StreamedDirectMessages(DirectMessages):
    """Direct messages of programs whose compute() may walk out-edges that stay packed."""

    def __init__(self, state: RunState, blocks: Blocks, values: ValueBlocks | None) -> None:
        super().__init__(state.native, state.subgraph, state.exchange, state.deterministic)
        self._state, self._blocks, self._values = state, blocks, values
        self._counting, self._num_skipped = threading.Lock(), 0
        self._walks = self._native.program.reads_edges and len(blocks) > 0

    def _spans(self, threads: Threads) -> Sequence[tuple[np.uint64, np.uint64]]:
        return self._blocks.spans if self._walks else super()._spans(threads)

    def step(self, *given: Any) -> int:
        counters: Counters = given[-1]
        self._blocks.require_files()
        num_bytes = super().step(*given)
        counters.bytes_read += _bytes_moved(self._blocks, self._values)
        counters.blocks_skipped += self._num_skipped
        self._num_skipped = 0
        return num_bytes

    def _is_open(self, number: int, fields: VertexFields) -> bool:
        if not self._walks:
            return True
        first, end = map(int, self._blocks.spans[number])
        own, is_open = fields.status[first:end], False
        if not (own == RETIRED).all():
            arrived = self._inbox.offsets[first : end + 1] if self._lists else self._inbox.state[first:end]
            is_open = bool((own == ACTIVE).any() or (np.diff(arrived) if self._lists else arrived).any())
        if is_open:
            _opened(self._state, self._blocks, self._values, number)
        else:
            with self._counting:
                self._num_skipped += 1
        return is_open

    def _write(self, *given: Any) -> tuple[list[Any], list[Any]]:
        written = super()._write(*given)
        if self._walks and self._values is not None:
            self._values.close()
        return written

    def _undo(self, vertex: int) -> None:
        if self._walks and self._values is not None:
            self._values.undo(vertex)


def _opened(state: RunState, blocks: Blocks, values: ValueBlocks | None, number: int) -> Edges:
    """Return a block's edges, unpacked; this thread's compute() walks them from now on, with the values on them."""
    edges = blocks.block(number)
    if state.program.reads_edges:
        on_edges = () if values is None else (values.open(number),)
        state.let_walk((*blocks.walked, *on_edges))
    return edges


def _bytes_moved(blocks: Blocks, values: ValueBlocks | None) -> int:
    return blocks.take_bytes_read() + (0 if values is None else values.take_moved_bytes())


class StreamingEngine(Engine):
    """A vertex program on one partition whose edges stay in a packed store.

    Args:
        given: As for `Engine`.
        cache_bytes: What unpacked blocks may take that are kept.
        value_bytes: What values on edges may take of memory; the others are in a file. None for no limit.
        contracts: Whether a declared contraction may go on without barriers by itself.
        options: As for `Engine`.
    """

    is_streaming = True

    def __init__(
        self,
        *given: Any,
        cache_bytes: int,
        value_bytes: int | None,
        contracts: bool = False,
        **options: Any,
    ) -> None:
        self._cache_bytes, self._value_bytes = cache_bytes, value_bytes
        super().__init__(*given, **options)
        state, records = self._state, self._records
        if contracts and can_decide(state):
            assert isinstance(records, StreamedRecords)
            blocks = records.blocks
            near = blocks.share_of_near_sources
            self._fused = SlowContraction(
                None, state, lambda: StreamedBlocks(state, blocks, Schedule()), near
            )

    def _make_records(self, state: RunState, forced: Direction | None, kept: Any) -> Records:
        if state.program.delivery is Delivery.DIRECT:
            return StreamedRecords(state, forced, self._blocks_of(state, 0))
        blocks = self._blocks_of(state, self._cache_bytes)
        return StreamedRecords(state, forced, blocks, self._values_of(state, blocks))

    def _make_direct(self, state: RunState) -> DirectMessages:
        blocks = self._blocks_of(state, self._cache_bytes)
        return StreamedDirectMessages(state, blocks, self._values_of(state, blocks))

    def _without_barriers(self, blocks: Schedule, saves: bool) -> StreamedBlocks:
        records = self._records
        assert isinstance(records, StreamedRecords)
        return StreamedBlocks(self._state, records.blocks, blocks)

    def _blocks_of(self, state: RunState, cache_bytes: int) -> Blocks:
        edges = state.subgraph.incoming
        assert isinstance(edges, StreamedEdges)
        return Blocks(edges, state.program, state.subgraph.ids, state.read.sent.size, cache_bytes)

    def _values_of(self, state: RunState, blocks: Blocks) -> ValueBlocks | None:
        edges = state.subgraph.incoming
        assert isinstance(edges, StreamedEdges)
        if not state.program.edge_states:
            return None
        given = state.program, edges, blocks, state.threads, state.exchange
        values = ValueBlocks(*given, self._value_bytes)
        state.keep_values(values)
        return values
