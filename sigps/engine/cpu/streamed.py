"""Supersteps whose edges stay in a packed store: `records.py` block by block (`blocks.py`).

Vertex fields, outboxes and inboxes stay in memory. A row is in one block, in the order that it has in memory, so what
its messages combine to is the same bit for bit.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.counters import Counters
from sigps.engine.cpu.blocks import Blocks
from sigps.engine.cpu.engine import Engine
from sigps.engine.cpu.records import Records
from sigps.engine.cpu.run_state import RunState
from sigps.engine.cpu.work import can_push
from sigps.engine.direction import Direction
from sigps.engine.partition.streamed import StreamedEdges
from sigps.kernels.cpu.arguments import RETIRED, SENDERS_NONE

__all__ = ["StreamingEngine"]


class StreamedRecords(Records):
    """Pull and push of one partition whose edges stay packed.

    A pull unpacks the blocks in which a vertex has not retired. A push, where rows serve both directions and the order
    in which messages combine does not matter, unpacks those with a sender.
    """

    def __init__(self, state: RunState, forced: Direction | None) -> None:
        super().__init__(state, forced, None)
        edges = state.subgraph.incoming
        assert isinstance(edges, StreamedEdges)
        has_rows_of_senders = state.subgraph.is_symmetric
        self.can_push = self.can_push and has_rows_of_senders and can_push(state.native, deterministic=True)
        self._blocks = Blocks(edges, state.program.edge_columns)
        self._combining = threading.Lock()

    def compile(self) -> None:
        """Run superstep 0's loop over no vertices: compiling it is no superstep's time."""
        self._gather_along(0)(self._blocks.nothing())((np.uint64(0), np.uint64(0)))

    def _pull(self, ghosts: NDArray[np.int64], counters: Counters) -> None:
        state, blocks = self._state, self._blocks
        gather_along = self._gather_along(ghosts.size)
        reads_edges = self._sender_filter(ghosts.size) != SENDERS_NONE
        status = state.fields.status

        def gather(number: int) -> Any:
            span = blocks.spans[number]
            if (status[int(span[0]) : int(span[1])] == RETIRED).all():
                return None
            edges = blocks.block(number) if reads_edges else blocks.nothing()
            return gather_along(edges)(span)

        for found in state.threads.map(gather, range(len(blocks.spans))):
            if found is not None:
                counters.add(*found)
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

        with_senders = np.flatnonzero(np.diff(cuts)).tolist()
        state.compute_listed(state.threads.map(push, with_senders), counters)


class StreamingEngine(Engine):
    """A vertex program on one partition whose edges stay in a packed store."""

    is_streaming = True

    @staticmethod
    def _make_records(state: RunState, forced: Direction | None, kept: Any) -> Records:
        return StreamedRecords(state, forced)
