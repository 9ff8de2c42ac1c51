"""Edge states on CPU cores: only the rows of vertices that wrote to their edges are committed, by all threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads
from sigps.engine.cpu.work import Span, cut_vertices
from sigps.engine.partition.edge_states import EdgeStates
from sigps.kernels.cpu.layout import copy_rows

__all__ = ["EdgeCommit"]

_WORTH_A_PART = 1 << 16
"""Edges for which a part more pays: they take 30 us."""


class EdgeCommit:
    """Commits what vertices wrote to their edges.

    Args:
        states: The edge states.
        offsets: Where each vertex's edges begin, [n + 1].
        threads: The crew.

    Attributes:
        wrote: 1 where a vertex wrote to its edges in this superstep, [n]; [0] where nothing is kept there.
    """

    def __init__(self, states: EdgeStates, offsets: NDArray[np.uint64], threads: Threads) -> None:
        self._states, self._offsets, self._threads = states, offsets, threads
        n = offsets.size - 1
        self.wrote = np.zeros(n if states.pending else 0, dtype=np.uint8)
        parts = max(1, min(4 * threads.count, int(offsets[n]) // _WORTH_A_PART))
        self._spans = cut_vertices(n, [offsets], parts)
        self._columns = [
            (np.uint64(pending[:1].size), _as_bits(pending), _as_bits(committed))
            for pending, committed in zip(states.pending, states.committed, strict=True)
        ]

    def __call__(self) -> int:
        """Commit, and forget who wrote; return the bytes that left this rank. Collective."""
        if self._states.is_mirrored:
            self.wrote.fill(0)
            return self._states.commit()
        if not self.wrote.any():
            return 0
        self._threads.map(self._copy, self._spans)
        self.wrote.fill(0)
        return 0

    def _copy(self, span: Span) -> None:
        for width, pending, committed in self._columns:
            copy_rows(*span, self._offsets, self.wrote, width, pending, committed)


def _as_bits(values: NDArray[np.generic]) -> NDArray[np.generic]:
    return values.reshape(-1).view(f"u{values.dtype.itemsize}")
