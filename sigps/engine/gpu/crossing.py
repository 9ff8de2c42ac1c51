"""Messages of a push along packed rows that cross to other ranks (`kernels/cuda/crossing.cuh`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigps.device.cuda import check_fits
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.halo_layout import HaloLayout, lay_out_halo, slot_bounds
from sigps.engine.gpu.numbering import GhostLids
from sigps.engine.gpu.peer_buffers import agreed
from sigps.engine.gpu.run_memory import RunMemory
from sigps.kernels.cuda.lease import PEER

__all__ = ["ARRIVES", "StagedCrossing", "fill_arrivals", "name_ghosts"]

ARRIVES = ("num_arrived", "arrived_slots", "arrived_messages")
"""The arrays of a run to which other ranks' messages come."""


def name_ghosts(peer: Any, ghosts: GhostLids, rank: int) -> None:
    """Fill in which ghosts are a rank's vertices, in a `kernels.cuda.lease.PEER`."""
    peer["own_hot"], peer["num_own"] = ghosts.num_hot[rank], ghosts.sizes[rank]
    peer["first_own_hot"], peer["first_own_cold"] = ghosts.hot[rank], ghosts.cold[rank]


def fill_arrivals(halo: Any, memory: RunMemory) -> None:
    """Fill in where messages arrive here, in a lease's `halo`."""
    for name in (*ARRIVES, "num_crossed"):
        halo[name] = memory.array(name, np.uint8).data.ptr


class StagedCrossing:
    """What crosses between two launches, where GPUs do not reach each other's memory. Collective.

    Args:
        graph: The partition on the GPU.
        memory: The run's.
        exchange: The way to the other ranks, whose arrays are on GPUs.
        message_bytes: The size of a message in an inbox.
        has_atomics: Whether this GPU combines messages in memory.
        has_rows_on_host: Whether this GPU reads rows on its host.

    Attributes:
        pull_cost: In-edges and vertices that a pull passes, on all ranks.
        has_rows_on_host: Whether a GPU does.
        is_agreed: Whether all ranks combine messages in memory: else none pushes.
    """

    def __init__(
        self,
        graph: GpuGraph,
        memory: RunMemory,
        exchange: Exchange,
        *,
        message_bytes: int,
        has_atomics: bool,
        has_rows_on_host: bool,
    ) -> None:
        import cupy

        ghosts, subgraph = graph.numbering.ghosts, graph.numbering.subgraph
        assert ghosts is not None
        self._memory, self._exchange, self._message_bytes = memory, exchange, message_bytes
        own = subgraph.incoming.num_edges, graph.num_owned, has_atomics, has_rows_on_host
        edges, vertices, able, on_host = exchange.gather(np.array(own, dtype=np.int64)).sum(axis=0).tolist()
        self.pull_cost, self.has_rows_on_host = int(edges + vertices), on_host > 0
        self.is_agreed = able == exchange.size
        room = max(1, int(ghosts.listed[-1]))

        def take() -> tuple[Any, Any]:
            check_fits({"messages that cross": room * (4 + message_bytes)})
            return cupy.empty(room, cupy.uint32), cupy.empty(room * message_bytes, cupy.uint8)

        self._slots, self._messages = agreed(take, exchange)
        self._listed = ghosts.listed.tolist()
        self._bounds = slot_bounds(subgraph.halo).tolist()
        peers = np.zeros(exchange.size, dtype=PEER)
        for rank, peer in enumerate(peers):
            begin = self._listed[rank]
            peer["arrived_slots"] = self._slots.data.ptr + 4 * begin
            peer["arrived_messages"] = self._messages.data.ptr + message_bytes * begin
            name_ghosts(peer, ghosts, rank)
        self._peers = cupy.asarray(peers.view(np.uint8))
        self._layout: HaloLayout = graph.once(
            "halo", lambda: lay_out_halo(graph.numbering.halo(), graph.num_owned).on_device(cupy.asarray)
        )
        halo = memory.lease["halo"]
        halo["rank"], halo["num_ranks"] = exchange.rank, exchange.size
        halo["peers"] = self._peers.data.ptr
        halo["bounds"], halo["vertices"] = self._layout.bounds.data.ptr, self._layout.lids.data.ptr
        fill_arrivals(halo, memory)

    def exchange(self) -> int:
        """Bring what a launch has listed to its owners; return the bytes that left this rank. Collective.

        Waits for the device.
        """
        memory, rank, size = self._memory, self._exchange.rank, self._message_bytes
        crossed = memory.array("num_crossed", np.uint32)
        counts = crossed.get().astype(np.int64)
        gathered = self._exchange.gather(counts)[:, rank]
        slots, messages = (memory.array(name, np.uint8) for name in ("arrived_slots", "arrived_messages"))
        for mine, theirs, width in ((self._slots.view(np.uint8), slots, 4), (self._messages, messages, size)):
            parts, arrived = (
                [array[width * at : width * (at + count)] for at, count in zip(begins, of, strict=False)]
                for array, begins, of in (
                    (mine, self._listed, counts.tolist()),
                    (theirs, self._bounds, gathered.tolist()),
                )
            )
            self._exchange.swap_whole(parts, arrived)
        memory.array("num_arrived", np.uint64).set(gathered.astype(np.uint64))
        crossed.set(np.zeros_like(counts, dtype=np.uint32))
        memory.go_on_with_arrivals()
        return int(counts.sum()) * (4 + size)
