"""Supersteps of one of several partitions, each on a GPU that can write into the memory of the others.

A lease runs on all GPUs with no host in it: kernels pass records, count and decide (`kernels/cuda/halo.cuh`). Before a
run the hosts exchange the addresses of arrays, in peer-mapped buffers (`peer_buffers.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.compile import find_atomics_obstacle
from sigps.compiler.program import Delivery
from sigps.device.cuda import check_fits
from sigps.engine.compute_errors import KeptFault
from sigps.engine.gpu.crossing import ARRIVES, fill_arrivals, name_ghosts
from sigps.engine.gpu.engine import GpuEngine
from sigps.engine.gpu.halo_layout import HaloLayout, lay_out_halo, slot_bounds
from sigps.engine.gpu.memory_plan import direct_arrays
from sigps.engine.gpu.peer_buffers import PeerBuffers, agreed, peer_buffers
from sigps.engine.gpu.rank_components import rank_components
from sigps.engine.gpu.run_memory import RunMemory
from sigps.engine.gpu.variant import Packing
from sigps.engine.snapshot import Snapshot
from sigps.errors import ExchangeError
from sigps.kernels.cpu.arguments import ACTIVE
from sigps.kernels.cuda.lease import CONTROL, FRONTIER_BITS, PEER, PUBLISHING, WHOLE
from sigps.kernels.direction import FORCED, PULL

__all__ = ["GpuPeerEngine"]

T = TypeVar("T")

_LONGEST_WAIT = 3600.0

_COUNTED = ("could_send", "pull_cost", "num_in_edges")

_WRITTEN_TO = ("records0", "records1", "sent0", "sent1", "listed0", "listed1", "reports0", "reports1")

_ENQUEUED = ("direct_kinds", "direct_targets", "direct_messages")


class GpuPeerEngine(GpuEngine):
    """A vertex program on one of several partitions.

    Args:
        *args: As `GpuEngine`'s.
        patience: Seconds that a kernel waits for another GPU's.
        buffers: What its arrays lie in; None for what all runs of these processes have in turn.
        **options: As `GpuEngine`'s.
    """

    has_peers = True
    detects_lost_ranks = True

    def __init__(
        self, *args: Any, patience: float = math.inf, buffers: PeerBuffers | None = None, **options: Any
    ) -> None:
        self._given_buffers = buffers
        super().__init__(*args, **options)
        if self._packing is Packing.PUSHED_PART and not self._may_push:  # in which all ranks take part
            self._lease["forced"] = FORCED["pull"]
        self._lease["halo"]["timeout"] = int(min(patience, _LONGEST_WAIT) * 1e9)
        if self._is_priority_form and options.get("forced") is None and not self._is_packed:
            given = self._program, self._graph, self._memory, self._exchange, self._gpu
            self._components = rank_components(*given, written_to=self._written_to, lists=self._lists)

    def _run_memory(self) -> RunMemory:
        graph, exchange = self._graph, self._exchange
        self._buffers = self._direct_buffers = self._given_buffers or peer_buffers(exchange)

        def take(num_bytes: int, beside: Callable[[], T]) -> tuple[Any, T]:
            taken = self._buffers.make(num_bytes, exchange, beside)
            return self._buffers.own, taken

        memory = RunMemory(
            self._variant.compiled,
            graph,
            self._params,
            has_cluster=False,
            goes_by_edge=self._goes_by_edge,
            num_peers=exchange.size,
            pulls_alone=self._packing.pulls_alone,
            take=take,
        )
        self._fill_lease(memory)
        self.wait_for_hosts()  # no GPU writes into arrays that are not filled yet
        return memory

    def _fill_lease(self, memory: RunMemory) -> None:
        """Fill in what kernels need of the other GPUs. Collective."""
        lease, exchange = memory.lease, self._exchange
        counts = [int(lease[name]) for name in _COUNTED]
        places = [] if self._is_direct else self._places_of_ghosts(memory)
        has_atomics = find_atomics_obstacle(self._variant.compiled, self._gpu.arch) is None
        gathered = exchange.gather(np.array([*counts, has_atomics, *places], dtype=np.int64))
        self._may_push = bool(gathered[:, len(counts)].all())
        lease["could_send"], lease["pull_cost"], self._num_edges = (
            gathered[:, : len(counts)].sum(axis=0).tolist()
        )
        halo = lease["halo"]
        halo["rank"], halo["num_ranks"], halo["could_send"] = exchange.rank, exchange.size, counts[0]
        for name in ("peers", "num_published", "num_barriers"):
            halo[name] = memory.array(name, np.uint8).data.ptr
        for parity in range(2):
            halo["reports"][parity] = memory.array(f"reports{parity}", np.uint8).data.ptr
        if self._is_direct:
            self._fill_direct(memory)
        else:
            self._fill_halo(memory, gathered[:, len(counts) + 1 :])

    def _fill_direct(self, memory: RunMemory) -> None:
        """Fill in where the other GPUs have their direct messages. Collective."""
        exchange, rank = self._exchange, self._exchange.rank
        arrays: list[tuple[str, PeerBuffers, Any]] = [
            *(
                (name, self._buffers, memory.array(name, np.uint8))
                for name in ("reports0", "reports1", "num_direct")
            ),
            *((name, self._direct_buffers, memory.direct.array(name, np.uint8)) for name in _ENQUEUED),
        ]
        offsets = [array.data.ptr - buffers.addresses[rank] for _, buffers, array in arrays]
        gathered = exchange.gather(np.array(offsets, dtype=np.int64))
        peers = np.zeros(exchange.size, dtype=PEER)
        for other, peer in enumerate(peers):
            for (name, buffers, _), offset in zip(arrays, gathered[other].tolist(), strict=True):
                at = buffers.addresses[other] + offset
                if name.startswith("reports"):
                    peer["reports"][int(name[-1])] = at
                else:
                    peer[name] = at
        memory.array("peers", np.uint8).set(peers.view(np.uint8))

    def _places_of_ghosts(self, memory: RunMemory) -> list[int]:
        """Return where others write in this rank's memory, and of each which ghosts are its vertices."""
        numbering = self._graph.numbering
        ghosts = numbering.ghosts
        assert ghosts is not None
        arrives = ARRIVES if memory.has("num_arrived") else ()
        offsets = [memory.offset(name) for name in (*_WRITTEN_TO, *arrives)]
        bounds = slot_bounds(numbering.subgraph.halo)[:-1]
        begins = np.stack(
            [ghosts.num_hot, ghosts.hot[:-1], ghosts.cold[:-1], ghosts.listed[:-1], bounds], axis=1
        )
        return [*offsets, *begins.ravel().tolist()]

    def _fill_halo(self, memory: RunMemory, gathered: NDArray[np.int64]) -> None:
        """Fill in where records go, and come from.

        Args:
            memory: This rank's.
            gathered: What `_places_of_ghosts` returns on each rank.
        """
        import cupy

        graph, exchange, lease = self._graph, self._exchange, memory.lease
        ghosts = graph.numbering.ghosts
        assert ghosts is not None
        crosses = memory.has("num_arrived")
        names = _WRITTEN_TO + (ARRIVES if crosses else ())
        first = len(names)
        peers = np.zeros(exchange.size, dtype=PEER)
        self._written_to: list[dict[str, int]] = []
        for rank, (peer, address) in enumerate(zip(peers, self._buffers.addresses, strict=True)):
            found = (address + gathered[rank, :first]).tolist()
            theirs = dict(zip(names, found, strict=True))
            self._written_to.append(theirs)
            *lids, listed, bound = gathered[rank, first:].reshape(exchange.size, 5)[exchange.rank].tolist()
            peer["num_hot"], peer["first_hot"], peer["first_cold"] = lids
            for parity in range(2):
                for name in ("records", "sent", "reports"):
                    peer[name][parity] = theirs[f"{name}{parity}"]
                peer["listed"][parity] = theirs[f"listed{parity}"] + 4 * listed
            if crosses:
                message = len(self._variant.compiled.neutral or b"")
                peer["num_arrived"] = theirs["num_arrived"]
                peer["arrived_slots"] = theirs["arrived_slots"] + 4 * bound
                peer["arrived_messages"] = theirs["arrived_messages"] + message * bound
                name_ghosts(peer, ghosts, rank)
        memory.array("peers", np.uint8).set(peers.view(np.uint8))
        self._lists: list[int] = peers["listed"][:, 0].tolist()
        layout = self.halo_layout()
        listed = graph.once("lists of ghosts", lambda: cupy.asarray(ghosts.listed.astype(np.uint32)))
        lease["first_hot"], lease["num_hot"] = ghosts.hot[0], ghosts.hot[-1] - ghosts.hot[0]
        halo = lease["halo"]
        arrays = {
            "bounds": layout.bounds,
            "vertices": layout.lids,
            "copy_offsets": layout.copy_offsets,
            "copies": layout.copies,
            "list_begins": listed,
        }
        for name, array in arrays.items():
            halo[name] = array.data.ptr
        for parity in range(2):
            halo["listed"][parity] = memory.array(f"listed{parity}", np.uint8).data.ptr
        if crosses:
            fill_arrivals(halo, memory)

    def halo_layout(self) -> HaloLayout:
        """Return the slots in which vertices go to other ranks, on the device; laid out once a graph."""
        import cupy

        graph = self._graph
        beside = self._exchange.rank if graph.numbering.spare else None

        def lay_out() -> HaloLayout:
            halo = graph.numbering.halo()
            return lay_out_halo(halo, graph.num_owned, beside).on_device(cupy.asarray)

        found: HaloLayout = graph.once("halo", lay_out)
        return found

    def set_marked(self, edges: int) -> None:
        """Let the next launch begin with what all ranks marked in bits, along so many edges of all ranks together.

        Marked are vertices and ghosts, each only to those that have its edges here. Collective, as the launch is.
        """
        everywhere = int(self._lease["pull_cost"])
        self._control = self._memory.set_next(
            self.superstep, edges, self._variant.pull_gain, has_retired=False, pull_cost=everywhere
        )
        self._num_small = 0

    def _put(self, snapshot: Snapshot) -> None:
        """Put a snapshot in place; records as of a superstep that is done, but for publishing them."""
        if self._is_direct:
            capacity = self._memory.direct.capacity
            wanted = max(snapshot.ends.size, capacity)
            if self._sum(int(wanted > capacity)):
                self._move_direct(wanted)
            super()._put(snapshot)
            self.wait_for_hosts()
            return
        super()._put(snapshot)
        lids: NDArray[np.int64] = self._subgraph.local_ids(snapshot.ends)
        degrees = self._subgraph.out_degrees[lids]
        self._publish_first(int((degrees > 0).sum()), int(degrees.sum(dtype=np.int64)))
        self.wait_for_hosts()

    @property
    def _is_direct(self) -> bool:
        return self._program.delivery is Delivery.DIRECT

    def _grow_direct(self, control: Any) -> None:
        self._move_direct(self._memory.direct.wanted_capacity())
        self._memory.resume(control)

    def _move_direct(self, capacity: int) -> None:
        """Move what was enqueued to a buffer of this capacity, which the other GPUs read. Collective."""
        import cupy

        exchange, memory = self._exchange, self._memory
        arrays = direct_arrays(self._variant.compiled, capacity, self._sum(capacity))
        enqueued = {name: size for name, size in arrays.items() if name.startswith("direct_")}
        ends = np.cumsum([-(-size // 256) * 256 for size in enqueued.values()]).tolist()

        def take() -> dict[str, Any]:
            own = {name: size for name, size in arrays.items() if name not in enqueued}
            check_fits({"direct messages": sum(own.values())})
            return {name: cupy.empty(size, dtype=cupy.uint8) for name, size in own.items()}

        copies = agreed(memory.direct.copy_enqueued, exchange)  # before what they lie in may go
        self._direct_buffers = peer_buffers(exchange, "direct messages")
        taken = self._direct_buffers.make(ends[-1], exchange, take)
        for (name, size), begin in zip(enqueued.items(), [0, *ends], strict=False):
            taken[name] = self._direct_buffers.own[begin : begin + size]
        memory.direct.move(capacity, copies, taken)
        self._fill_direct(memory)
        self.wait_for_hosts()

    def _refuse_unknown_target(self, control: Any) -> None:
        """Raise the error of a direct message to an id that is not in the graph, on all ranks. Collective."""
        direct, exchange, superstep = self._memory.direct, self._exchange, self.superstep - 1
        count = direct.count
        by_id = direct.array("direct_kinds", np.uint8)[:count] == 1
        error = None
        try:
            exchange.find(direct.array("direct_targets", np.int64)[:count][by_id].get(), superstep)
        except ExchangeError as found:
            error = found
        failed = np.flatnonzero(exchange.gather(np.array([error is not None], dtype=np.int64)))
        raise error or ExchangeError(
            "a message names a vertex that is not in the graph", rank=int(failed[0]), superstep=superstep
        )

    def wait_for_hosts(self) -> None:
        """Wait until all hosts have written to their GPUs: from then on others may write there. Collective."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()
        self._exchange.gather(np.zeros(1, dtype=np.int64))

    def _publish_first(self, num_senders: int, sent_edges: int) -> None:
        """Let the next launch begin by publishing the senders to the superstep at hand, as bits, and their records."""
        control = np.zeros((), dtype=CONTROL)
        upcoming, done = control["next"], control["counters"]
        upcoming["superstep"], upcoming["remaining"] = self.superstep - 1, PUBLISHING
        upcoming["direction"], upcoming["frontier"] = PULL, FRONTIER_BITS
        # Where nobody asks, it is unknown, so not 0: vertices may have retired.
        retired = self._memory.retired_edges() if self._asks_master else 1
        done["ran"], done["retired_edges"] = 1, retired
        done["active"] = int((self._memory.array("status", np.uint8) == ACTIVE).sum())
        done["senders"], done["sent_edges"] = num_senders, sent_edges
        self._memory.array("control", np.uint8).set(np.frombuffer(control.tobytes(), np.uint8))
        # A log that is written before the launch reads these.
        upcoming["superstep"], upcoming["remaining"] = self.superstep, WHOLE
        self._control = control

    def _set_released(self, num_senders: int, edges: int) -> None:
        self._publish_first(num_senders, edges)
        self.wait_for_hosts()  # none publishes to a GPU that has yet to clear the bits of its ghosts

    def _first_fault(self, mine: KeptFault) -> KeptFault:
        rows = self._exchange.gather(np.array(mine, dtype=np.int64)).tolist()
        first = min((KeptFault(*row) for row in rows if row[0]), key=lambda kept: kept.superstep)
        return first._replace(is_of_one=bool(first.is_of_one))

    def _everywhere(self, holds: bool) -> bool:
        return bool(self._exchange.gather(np.array([holds], dtype=np.int64)).all())

    def _sum(self, value: int) -> int:
        return int(self._exchange.gather(np.array([value], dtype=np.int64)).sum())

    def _best_of_all(self, waiting_edges: int, best: int, takes_min: bool) -> tuple[int, int]:
        edges, values = self._exchange.gather(np.array([waiting_edges, best], dtype=np.int64)).T
        return int(edges.sum()), int(values.min() if takes_min else values.max())
