"""What crosses ranks in a run without barriers, and what all ranks did in one of its rounds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.run_state import RunState
from sigps.engine.stats import WITHOUT_BARRIERS, SuperstepStats
from sigps.engine.superstep import Done

__all__ = ["Crossing"]


class Crossing:
    """Lets records cross in rounds, and counts.

    Args:
        state: What the run keeps.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state

    def begin(self) -> None:
        """Begin to count time and bytes."""
        self._began, self._waited, self._num_bytes = time.perf_counter(), 0.0, 0

    def cross(self, sent: NDArray[np.uint8], records: tuple[NDArray[Any], ...]) -> NDArray[np.int64]:
        """Send the records of these owned vertices to their ghosts; return the ghosts that got one. Collective."""
        began = time.perf_counter()
        self._state.exchange.publish(sent, records)
        ghosts, num_bytes = self._state.exchange.collect(sent, records)
        self._num_bytes += num_bytes
        self._waited += time.perf_counter() - began
        return ghosts

    def end(self, counts: NDArray[np.int64], num_marked: int, *, read: int = 0, skipped: int = 0) -> Done:
        """Return what a round came to on all ranks; active is what is marked. Collective.

        Args:
            counts: Vertices that computed, blocks taken, the edges that these have, and the edges that were read.
            num_marked: Blocks of this rank that are still to be computed.
            read: Packed bytes that this rank unpacked.
            skipped: Streamed blocks of this rank that were left out.
        """
        busy = time.perf_counter() - self._began - self._waited
        own = np.array([*counts[:4], self._num_bytes, num_marked, read, skipped, int(busy * 1e9)])
        found = self._state.exchange.gather(own.astype(np.int64))
        ran, loaded, block_edges, edges, num_bytes, marked, *streamed, all_busy = found.sum(axis=0).tolist()
        imbalance = int(found[:, -1].max()) * len(found) / max(1, all_busy)
        seconds = time.perf_counter() - self._began
        stats = SuperstepStats(
            self._state.superstep,
            WITHOUT_BARRIERS,
            ran,
            edges,
            num_bytes,
            seconds,
            imbalance,
            loaded,
            block_edges,
            *streamed,
        )
        return Done((stats,), marked, 0)
