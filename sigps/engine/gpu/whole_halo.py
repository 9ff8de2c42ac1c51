"""Halos as a whole, between GPUs that do not reach each other's memory (`kernels/cuda/staged_halo.cu`).

What a rank reads of another is a bit and a record for each vertex of the halo, sent or not. So its size is known, no
host counts anything, and nothing is allocated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sigps.device.cuda import Gpu, check_fits
from sigps.device.transfers import bring_small
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.peer_buffers import agreed
from sigps.engine.gpu.placed_edges import layout_kernel
from sigps.engine.gpu.run_memory import RunMemory

__all__ = ["StatusCount", "WholeHalo", "goes_whole"]

_ALWAYS_BYTES = 16 << 20
"""A halo of so many bytes crosses as a whole whatever was sent: that is sooner than to have hosts count what was."""

_SHARE = 8
"""A larger one does where one out of so many messages of all edges is sent."""


def goes_whole(halo_bytes: int, messages: int, num_edges: int) -> bool:
    """Return whether halos cross as a whole; the same on all ranks, as its arguments are.

    Args:
        halo_bytes: What the rank with the largest halo sends.
        messages: Sent in the superstep before, on all ranks.
        num_edges: In-edges of all ranks.

    >>> goes_whole(1000, 0, 100), goes_whole(1 << 30, 100, 1000), goes_whole(1 << 30, 500, 1000)
    (True, False, True)
    """
    return halo_bytes <= _ALWAYS_BYTES or _SHARE * messages >= num_edges


class WholeHalo:
    """A rank's halos on its GPU. Collective.

    Args:
        graph: The partition on the GPU.
        memory: The run's.
        exchange: The way to the other ranks, whose arrays are on GPUs.
        gpu: The GPU.
        record_bytes: The size of a record.
        has_narrow_ids: Whether ids in records have 32 bits.

    Attributes:
        most_bytes: What the rank with the largest halos sends in a superstep.
        num_edges: In-edges of all ranks.
        is_agreed: Whether records are the same on all ranks: else halos cannot cross so.
    """

    def __init__(
        self,
        graph: GpuGraph,
        memory: RunMemory,
        exchange: Exchange,
        gpu: Gpu,
        *,
        record_bytes: int,
        has_narrow_ids: bool,
    ) -> None:
        import cupy

        subgraph, bounds = graph.numbering.subgraph, graph.numbering.subgraph.ghost_bounds
        assert bounds is not None
        self._graph, self._memory, self._exchange, self._gpu = graph, memory, exchange, gpu
        self._record_bytes = record_bytes
        self._halo = [cupy.asarray(lids.astype(np.uint32)) for lids in graph.numbering.halo()]
        ghosts = graph.numbering.lids[graph.num_owned :]
        self._ghosts = [ghosts[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        sizes = [[self._size(lids.size) for lids in of] for of in (self._halo, self._ghosts)]
        self.num_bytes = sum(sizes[0])
        facts = [self.num_bytes, subgraph.incoming.num_edges, record_bytes, has_narrow_ids]
        gathered = exchange.gather(np.array(facts, dtype=np.int64))
        self.most_bytes, self.num_edges = int(gathered[:, 0].max()), int(gathered[:, 1].sum())
        self.is_agreed = bool((gathered[:, 2:] == gathered[0, 2:]).all())

        def take() -> list[list[Any]]:
            check_fits({"halos that cross": sum(map(sum, sizes))})
            return [[cupy.empty(n, dtype=cupy.uint8) for n in of] for of in sizes]

        self._packed, self._arrived = agreed(take, exchange)
        self._total = cupy.empty(1, dtype=cupy.uint64)

    def _size(self, count: int) -> int:
        return _bits_bytes(count) + count * self._record_bytes

    def exchange(self, parity: int) -> int:
        """Bring the records of ghosts, and who of them sent; return the bytes that left this rank. Collective."""
        sent, records = self._memory.array(f"sent{parity}", np.uint32), self._records(parity)
        for lids, part in zip(self._halo, self._packed, strict=True):
            self._move("pack_halo_thread_mapped", lids, [sent, records], part, packs=True)
        self._exchange.swap_whole(self._packed, self._arrived)
        first = -(-self._graph.num_owned // 32)
        sent[first:].data.memset_async(0, sent[first:].nbytes)
        for lids, part in zip(self._ghosts, self._arrived, strict=True):
            self._move("unpack_halo_thread_mapped", lids, [sent, records], part, packs=False)
        return self.num_bytes

    def sent_edges(self, parity: int) -> int:
        """Return the out-edges here of all vertices that sent, owned and ghosts. Waits for the device."""
        sent, degrees = self._memory.array(f"sent{parity}", np.uint32), self._graph.outgoing.rows.degrees
        self._total.data.memset_async(0, 8)
        given = sent, np.uint32(degrees.size), degrees, self._total
        self._launch("add_sent_edges_thread_mapped", degrees.size, given)
        return int(bring_small(self._total.data.ptr, 8).view(np.uint64)[0])

    def _records(self, parity: int) -> Any:
        return self._memory.array(f"records{parity}", np.uint8) if self._record_bytes else self._total

    def _move(self, name: str, lids: Any, arrays: list[Any], part: Any, *, packs: bool) -> None:
        if lids.size == 0:
            return
        at = _bits_bytes(lids.size)
        sides = [*arrays, part[:at], part[at:]] if packs else [part[:at], part[at:], *arrays]
        self._launch(name, lids.size, (lids, np.uint32(lids.size), np.uint32(self._record_bytes), *sides))

    def _launch(self, name: str, count: int, given: Any) -> None:
        _launch(self._gpu, name, count, given)


class StatusCount:
    """How many vertices have a status. Counted behind a lease, while the host waits for that.

    Args:
        gpu: The GPU, the current one.
        status: Which.
    """

    def __init__(self, gpu: Gpu, status: int) -> None:
        import cupy

        self._gpu, self._status = gpu, np.uint8(status)
        self._total = cupy.empty(1, dtype=cupy.uint64)

    def begin(self, statuses: Any) -> None:
        """Let the current stream count among `statuses`, [vertices], uint8 on the device; waits for nothing."""
        self._total.data.memset_async(0, 8)
        given = statuses, np.uint32(statuses.size), self._status, self._total
        _launch(self._gpu, "count_status_thread_mapped", statuses.size, given)

    def found(self) -> int:
        """Return what was counted last. Waits for the device."""
        return int(bring_small(self._total.data.ptr, 8).view(np.uint64)[0])


def _launch(gpu: Gpu, name: str, count: int, given: Any) -> None:
    if count:
        blocks = max(1, min(gpu.num_sms * 16, -(-count // 256)))
        layout_kernel(name, gpu, "staged_halo").launch(blocks, 256, given)


def _bits_bytes(count: int) -> int:
    """Return the bytes of so many bits, with those that align what follows."""
    return -(-count // 128) * 16
