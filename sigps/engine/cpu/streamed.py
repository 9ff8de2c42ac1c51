"""Supersteps whose edges stay in a packed store: `records.py` and `direct_messages.py` block by block (`blocks.py`).

Vertex fields, outboxes and inboxes stay in memory. A row is in one block, in the order that it has in memory, so what
its messages combine to is the same bit for bit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads
from sigps.engine.counters import Counters
from sigps.engine.cpu.blocks import Blocks
from sigps.engine.cpu.direct_messages import DirectMessages
from sigps.engine.cpu.engine import Engine
from sigps.engine.cpu.records import Records
from sigps.engine.cpu.run_state import RunState
from sigps.engine.cpu.work import can_push
from sigps.engine.direction import Direction
from sigps.engine.partition.streamed import StreamedEdges
from sigps.kernels.cpu.arguments import ACTIVE, RETIRED, SENDERS_NONE, Edges, VertexFields

__all__ = ["StreamingEngine"]


class StreamedRecords(Records):
    """Pull and push of one partition whose edges stay packed.

    A pull unpacks the blocks in which a vertex has not retired. A push, where rows serve both directions and the order
    in which messages combine does not matter, unpacks those with a sender.
    """

    def __init__(self, state: RunState, forced: Direction | None, blocks: Blocks) -> None:
        super().__init__(state, forced, None)
        program, self._blocks = state.program, blocks
        in_any_order = can_push(state.native, deterministic=True) and not program.reads_edges
        self.can_push = self.can_push and state.subgraph.is_symmetric and in_any_order
        self._combining = threading.Lock()

    def compile(self) -> None:
        """Run superstep 0's loop over no vertices: compiling it is no superstep's time."""
        self._gather_along(0)(self._walkable(self._blocks.nothing()))((np.uint64(0), np.uint64(0)))

    def _walkable(self, block: Edges) -> Edges:
        """Return this thread's last block, whose out-edges compute() may walk from now on."""
        if self._state.program.reads_edges:
            self._state.let_walk(self._blocks.walked)
        return block

    def _pull(self, ghosts: NDArray[np.int64], counters: Counters) -> None:
        state, blocks = self._state, self._blocks
        gather_along = self._gather_along(ghosts.size)
        status, walks = state.fields.status, state.program.reads_edges
        no_messages = self._sender_filter(ghosts.size) == SENDERS_NONE

        def gather(number: int) -> tuple[Any, bool]:
            span = blocks.spans[number]
            own = status[int(span[0]) : int(span[1])]
            if (own == RETIRED).all() or (no_messages and not (own == ACTIVE).any()):
                return None, False
            reads = walks or not no_messages
            edges = self._walkable(blocks.block(number)) if reads else blocks.nothing()
            return gather_along(edges)(span), reads

        for number, (found, was_read) in enumerate(state.threads.map(gather, range(len(blocks)))):
            if found is not None:
                counters.add(*found)
            _count_block(counters, blocks, number, was_read=was_read)
        state.senders = state.active = None

    def _push(self, ghosts: NDArray[np.int64], sender_edges: int, counters: Counters) -> None:
        state, blocks = self._state, self._blocks
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

        has_senders = np.diff(cuts) > 0
        for number, was_read in enumerate(has_senders.tolist()):
            _count_block(counters, blocks, number, was_read=was_read)
        state.compute_listed(state.threads.map(push, np.flatnonzero(has_senders).tolist()), counters)


class StreamedDirectMessages(DirectMessages):
    """Direct messages of programs whose compute() may walk out-edges that stay packed."""

    def __init__(self, state: RunState, blocks: Blocks) -> None:
        super().__init__(state.native, state.subgraph, state.exchange, state.deterministic)
        self._state, self._blocks = state, blocks

    def _spans(self, threads: Threads) -> Sequence[tuple[np.uint64, np.uint64]]:
        return self._blocks.spans if self._native.program.reads_edges else super()._spans(threads)

    def _is_open(self, number: int, fields: VertexFields, counters: Counters) -> bool:
        if not self._native.program.reads_edges:
            return True
        first, end = map(int, self._blocks.spans[number])
        own, is_open = fields.status[first:end], False
        if not (own == RETIRED).all():
            arrived = self._inbox.offsets[first : end + 1] if self._lists else self._inbox.state[first:end]
            is_open = bool((own == ACTIVE).any() or (np.diff(arrived) if self._lists else arrived).any())
        if is_open:
            self._blocks.block(number)
            self._state.let_walk(self._blocks.walked)
        with self._blocks.counting:
            _count_block(counters, self._blocks, number, was_read=is_open)
        return is_open


class StreamingEngine(Engine):
    """A vertex program on one partition whose edges stay in a packed store."""

    is_streaming = True

    def _make_records(self, state: RunState, forced: Direction | None, kept: Any) -> Records:
        return StreamedRecords(state, forced, _blocks_of(state))

    def _make_direct(self, state: RunState) -> DirectMessages:
        return StreamedDirectMessages(state, _blocks_of(state))


def _blocks_of(state: RunState) -> Blocks:
    edges = state.subgraph.incoming
    assert isinstance(edges, StreamedEdges)
    return Blocks(edges, state.program, state.subgraph.ids)


def _count_block(counters: Counters, blocks: Blocks, number: int, *, was_read: bool) -> None:
    if was_read:
        counters.bytes_read += blocks.packed_bytes[number]
    else:
        counters.blocks_skipped += 1
