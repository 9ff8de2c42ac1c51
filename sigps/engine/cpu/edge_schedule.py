"""The edge schedule's first half: every in-edge brings its message into its target's inbox, whosever edge it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram, rows
from sigps.device.cpu import Threads
from sigps.engine.cpu.work import cut_edges
from sigps.kernels.cpu.arguments import (
    CarriedRows,
    Edges,
    Inbox,
    LoopArguments,
    Outbox,
    OutboxBitmap,
    OwnedVertices,
    VertexFields,
)

__all__ = ["EdgePass"]

_PIECES_OF_THREAD = 8


class EdgePass:
    """Combines messages into inboxes in one pass over all in-edges, cut into equal pieces without regard to rows.

    No atomic is needed: a row's inbox belongs to the piece that has its first edge, and what later pieces have of the
    row is carried and merged when all are done.

    Args:
        edges: In-edges by target: offsets, sources, columns.
        owned: What does not change of owned vertices.
        threads: The crew.
    """

    def __init__(self, edges: Edges, owned: OwnedVertices, threads: Threads) -> None:
        self._edges, self._owned, self._threads = edges, owned, threads
        parts = threads.count * _PIECES_OF_THREAD if threads.count > 1 else 1
        self._pieces = cut_edges(edges.offsets, parts)

    def run(
        self,
        native: NativeProgram,
        arguments: LoopArguments,
        fields: VertexFields,
        outbox: Outbox,
        inbox: Inbox,
        *,
        along_none: bool = False,
    ) -> list[NDArray[np.uint32]]:
        """Go along all edges, or none, which compiles the loop; return the vertices that got a message, each once."""
        pieces = [(np.uint64(0), np.uint64(0), np.uint64(0))] if along_none else self._pieces
        num_rows = self._edges.offsets.size - 1
        bitmap = OutboxBitmap(np.packbits(outbox.sent, bitorder="little"), outbox.records)
        carried = CarriedRows(np.zeros(len(pieces), dtype=np.uint32), rows(native.slots, len(pieces)))
        loop = native.loop("combine_edges")

        def go(piece: int) -> tuple[NDArray[np.uint32], bool]:
            begin, end, row = pieces[piece]
            touched = np.empty(min(num_rows, int(end - begin)) + 1, dtype=np.uint32)
            count, carries = loop(
                begin, end, row, piece, arguments, self._edges, self._owned, fields, bitmap, native.empty, inbox,
                touched, carried,
            )  # fmt: skip
            return touched[:count], carries

        found = self._threads.map(go, range(len(pieces)))
        heard = [touched for touched, _ in found]
        late = np.flatnonzero([carries for _, carries in found])
        if late.size:
            touched = np.empty(late.size + 1, dtype=np.uint32)
            shares = tuple(slots[late] for slots in carried.slots)
            apply = native.loop("apply_bins")
            count = apply(np.uint64(0), np.uint64(late.size), carried.rows[late], shares, inbox, touched)
            heard.append(touched[:count])
        return heard
