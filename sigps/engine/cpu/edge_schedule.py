"""The edge schedule (`schedule="edge"`): a strategy whose work item is an edge, to compare the others with.

`EdgePass.run` passes over all in-edges, tests for each whether its source sent, and combines messages into inboxes;
the vertices that it returns compute as after a push.

It gains nothing but on a mesh with weights (2 cores, milliseconds, against pulls of all vertices): SSSP on grid-500
1,525 instead of 1,979. On kron-18 PageRank takes 10.3 a superstep instead of 8.9, BFS 23.2 a run instead of 15.8, WCC
76.4 instead of 39.3, SSSP 208 instead of 99.4 (`scripts/bench/schedules.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.cpu.rows import rows
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
    """Combines messages into inboxes in one pass over all in-edges, cut into equal pieces wherever rows begin.

    No atomic is needed: only the piece that has a row's first edge writes its inbox. What later pieces have for the
    row is carried, and merged when all are done.

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
        """Pass over all edges, or none, which compiles the loop; return the vertices that got a message, each once."""
        pieces = [(np.uint64(0), np.uint64(0), np.uint64(0))] if along_none else self._pieces
        num_rows = self._edges.offsets.size - 1
        bitmap = OutboxBitmap(np.packbits(outbox.sent, bitorder="little"), outbox.records)
        carried = CarriedRows(np.zeros(len(pieces), dtype=np.uint32), rows(native.slots, len(pieces)))
        loop = native.loop("combine_edges")

        def combine(piece: int) -> tuple[NDArray[np.uint32], bool]:
            begin, end, row = pieces[piece]
            touched = np.empty(min(num_rows, int(end - begin)) + 1, dtype=np.uint32)
            count, carries = loop(
                begin, end, row, piece, arguments, self._edges, self._owned, fields, bitmap, native.empty, inbox,
                touched, carried,
            )  # fmt: skip
            return touched[:count], carries

        found = self._threads.map(combine, range(len(pieces)))
        lists = [touched for touched, _ in found]
        late = np.flatnonzero([carries for _, carries in found])
        if late.size:
            touched = np.empty(late.size + 1, dtype=np.uint32)
            shares = tuple(slots[late] for slots in carried.slots)
            apply = native.loop("apply_bins")
            ends = np.uint64(0), np.uint64(late.size)
            count = apply(*ends, arguments, carried.rows[late], shares, inbox, touched)
            lists.append(touched[:count])
        return lists
