"""Push, first half: the senders' messages combined into their targets' inboxes, on one thread or on many."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.cpu.rows import rows
from sigps.device.cpu import Threads
from sigps.kernels.cpu.arguments import Edges, Inbox, LoopArguments, Outbox, OwnedVertices, VertexFields

__all__ = ["Scatter", "pays_by_bins"]

_DIRECT_EDGES = 1 << 16
"""With fewer edges than this, one thread is done before the others have begun."""

_THREADS_FOR_BINS = 4
"""Through bins a message costs two to six times what it does without, so fewer threads gain nothing."""

_ROUND_EDGES = 1 << 18
"""About so many messages are in bins at a time: they stay in cache, and take no memory that grows with the graph."""

_PIECE = 1 << 16
"""Senders whose degrees are read at a time."""


def pays_by_bins(num_threads: int) -> bool:
    """Tell whether so many threads push faster than one."""
    return num_threads >= _THREADS_FOR_BINS


def _edges_upto(edges: Edges, senders: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return how many edges each sender and those before it have."""
    upto = np.empty(senders.size, dtype=np.int64)
    for begin in range(0, senders.size, _PIECE):
        part = senders[begin : begin + _PIECE].astype(np.int64)
        upto[begin : begin + _PIECE] = edges.stops[part] - edges.offsets[part]
    return np.cumsum(upto, out=upto)


class Scatter:
    """Combines messages into inboxes without an atomic: each thread sorts what it sends into bins of targets.

    Args:
        edges: In-edges by source: offsets, targets, columns.
        owned: What does not change of owned vertices.
        num_owned: Vertices that have an inbox.
        threads: The crew.
    """

    def __init__(self, edges: Edges, owned: OwnedVertices, num_owned: int, threads: Threads) -> None:
        self._edges, self._owned, self._num_owned, self._threads = edges, owned, num_owned, threads
        self._bins: dict[int, Any] = {}

    def run(
        self,
        native: NativeProgram,
        senders: NDArray[np.uint32],
        num_edges: int,
        arguments: LoopArguments,
        fields: VertexFields,
        outbox: Outbox,
        inbox: Inbox,
    ) -> list[NDArray[np.uint32]]:
        """Send along the senders' edges, `num_edges` of them; return lists of the vertices that got a message."""
        if num_edges < _DIRECT_EDGES or not pays_by_bins(self._threads.count):
            touched = np.empty(min(self._num_owned, num_edges) + 1, dtype=np.uint32)
            loop = native.loop("scatter_direct")
            count = loop(senders, arguments, self._edges, self._owned, fields, outbox, inbox, touched)
            return [touched[:count]]
        upto = _edges_upto(self._edges, senders)
        ends = np.unique(np.searchsorted(upto, np.arange(_ROUND_EDGES, num_edges, _ROUND_EDGES)))
        lists: list[NDArray[np.uint32]] = []
        for first, last in itertools.pairwise([0, *ends.tolist(), senders.size]):
            if first < last:
                work = upto[first:last] - (upto[first - 1] if first else 0)
                lists += self._binned(native, senders[first:last], work, arguments, fields, outbox, inbox)
        return lists

    def _binned(
        self,
        native: NativeProgram,
        senders: NDArray[np.uint32],
        work: NDArray[np.int64],
        arguments: LoopArguments,
        fields: VertexFields,
        outbox: Outbox,
        inbox: Inbox,
    ) -> list[NDArray[np.uint32]]:
        """Send through bins; `work` counts the edges of each sender and those before."""
        n, threads = self._num_owned, self._threads.count
        shift = max(0, (n - 1).bit_length() - (threads * 4 - 1).bit_length())
        num_bins = (n - 1 >> shift) + 1
        cuts = np.searchsorted(work, np.linspace(0, work[-1], threads + 1)[1:-1])
        parts = np.split(senders, cuts)
        ends = np.concatenate([[0], work])[np.concatenate([[0], cuts, [senders.size]])]
        scatter, apply = native.loop("scatter_binned"), native.loop("apply_bins")
        bins = [self._empty_bins(native, i, num_bins, int(ends[i + 1] - ends[i])) for i in range(threads)]

        def fill(i: int) -> None:
            scatter(parts[i], arguments, self._edges, self._owned, fields, outbox, np.uint32(shift), *bins[i])

        self._threads.map(fill, range(threads))

        def apply_bin(b: int) -> NDArray[np.uint32]:
            in_bin = sum(int(counts[b]) for counts, *_ in bins)
            touched = np.empty(min(in_bin, 1 << shift) + 1, dtype=np.uint32)
            count = 0
            for counts, targets, slots, capacity in bins:
                first, last = b * int(capacity), b * int(capacity) + int(counts[b])
                ends = np.uint64(first), np.uint64(last)
                count += apply(*ends, arguments, targets, slots, inbox, touched[count:])
            return touched[:count]

        return self._threads.map(apply_bin, range(num_bins))

    def _empty_bins(
        self, native: NativeProgram, thread: int, num_bins: int, capacity: int
    ) -> tuple[Any, ...]:
        """Return one thread's bins: counts, targets, slots, capacity. Memory that gets no message is never touched."""
        bins = self._bins.get(thread)
        if bins is None or bins[0].size < num_bins * capacity:
            size = max(1, num_bins * capacity)
            bins = np.empty(size, dtype=np.uint32), rows(native.slots, size)
            self._bins[thread] = bins
        return np.zeros(num_bins, dtype=np.uint64), *bins, np.uint64(capacity)
