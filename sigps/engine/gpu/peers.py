"""Supersteps of one of several partitions, each on a GPU that can write into the memory of the others.

A lease runs on all GPUs with no host in it: kernels pass records, count and decide (`kernels/halo.cuh`). Before a
run the hosts tell each other where things lie, in memory that they keep open for each other (`peer_windows.py`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import Delivery
from sigps.engine.gpu.engine import GpuEngine
from sigps.engine.gpu.halo_layout import HaloLayout, lay_out_halo
from sigps.engine.gpu.memory_plan import mail_arrays
from sigps.engine.gpu.peer_buffers import Windows, windows_of
from sigps.engine.gpu.run_memory import RunMemory, check_fits
from sigps.engine.snapshot import Snapshot
from sigps.errors import ExchangeError
from sigps.kernels.cuda.lease import ACTIVE, CONTROL, FRONTIER_BITS, PEER, PUBLISHING, PULL, WHOLE

__all__ = ["GpuPeerEngine"]

_LONGEST_WAIT = 3600.0

_COUNTED = ("could_send", "pull_cost", "num_in_edges")

_WRITTEN_TO = ("records0", "records1", "sent0", "sent1", "listed0", "listed1", "reports0", "reports1")

_POSTED = ("direct_kinds", "direct_targets", "direct_messages")


class GpuPeerEngine(GpuEngine):
    """A vertex program on one of several partitions.

    Args:
        *args: As `GpuEngine`'s.
        patience: Seconds that a kernel waits for another GPU's.
        **options: As `GpuEngine`'s.
    """

    has_peers = True

    def __init__(self, *args: Any, patience: float = math.inf, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lease["halo"]["timeout"] = int(min(patience, _LONGEST_WAIT) * 1e9)

    def _run_memory(self) -> RunMemory:
        graph, exchange = self._graph, self._exchange
        self._windows = self._mail_windows = windows_of(exchange)

        def take(num_bytes: int) -> Any:
            self._windows.make(num_bytes, exchange)
            return self._windows.own

        memory = RunMemory(
            self._form.compiled,
            graph,
            self._params,
            self._subgraph,
            has_cluster=False,
            goes_by_edge=self._goes_by_edge,
            num_peers=exchange.size,
            take=take,
        )
        self._fill_lease(memory)
        self._meet()  # nobody writes into what is not empty yet
        return memory

    def _fill_lease(self, memory: RunMemory) -> None:
        """Tell kernels of the other GPUs. Collective."""
        lease, exchange = memory.lease, self._exchange
        counts = [int(lease[name]) for name in _COUNTED]
        everywhere = exchange.gather(np.array(counts, dtype=np.int64)).sum(axis=0)
        lease["could_send"], lease["pull_cost"], self._num_edges = everywhere.tolist()
        halo = lease["halo"]
        halo["rank"], halo["num_ranks"] = exchange.rank, exchange.size
        for name in ("peers", "num_published", "num_barriers"):
            halo[name] = memory.array(name, np.uint8).data.ptr
        for parity in range(2):
            halo["reports"][parity] = memory.array(f"reports{parity}", np.uint8).data.ptr
        if self._posts:
            self._tell_mail(memory)
        else:
            self._fill_halo(memory)

    def _tell_mail(self, memory: RunMemory) -> None:
        """Tell kernels where the other GPUs have their mail. Collective."""
        exchange, rank = self._exchange, self._exchange.rank
        arrays: list[tuple[str, Windows, Any]] = [
            *(
                (name, self._windows, memory.array(name, np.uint8))
                for name in ("reports0", "reports1", "num_direct")
            ),
            *((name, self._mail_windows, memory.mail(name, np.uint8)) for name in _POSTED),
        ]
        offsets = [array.data.ptr - windows.addresses[rank] for _, windows, array in arrays]
        told = exchange.gather(np.array(offsets, dtype=np.int64))
        peers = np.zeros(exchange.size, dtype=PEER)
        for other, peer in enumerate(peers):
            for (name, windows, _), offset in zip(arrays, told[other].tolist(), strict=True):
                at = windows.addresses[other] + offset
                if name.startswith("reports"):
                    peer["reports"][int(name[-1])] = at
                else:
                    peer[name] = at
        memory.array("peers", np.uint8).set(peers.view(np.uint8))

    def _fill_halo(self, memory: RunMemory) -> None:
        """Tell kernels where records go, and come from. Collective."""
        import cupy

        graph, exchange, lease = self._graph, self._exchange, memory.lease
        ghosts = graph.ghosts
        assert ghosts is not None
        offsets = [memory.offset(name) for name in _WRITTEN_TO]
        begins = np.stack([ghosts.num_hot, ghosts.hot[:-1], ghosts.cold[:-1], ghosts.listed[:-1]], axis=1)
        told = exchange.gather(np.array([*offsets, *begins.ravel()], dtype=np.int64))
        first = len(offsets)
        peers = np.zeros(exchange.size, dtype=PEER)
        for rank, (peer, address) in enumerate(zip(peers, self._windows.addresses, strict=True)):
            found = (address + told[rank, :first]).tolist()
            theirs = dict(zip(_WRITTEN_TO, found, strict=True))
            *places, listed = told[rank, first:].reshape(exchange.size, 4)[exchange.rank].tolist()
            peer["num_hot"], peer["first_hot"], peer["first_cold"] = places
            for parity in range(2):
                for name in ("records", "sent", "reports"):
                    peer[name][parity] = theirs[f"{name}{parity}"]
                peer["listed"][parity] = theirs[f"listed{parity}"] + 4 * listed
        memory.array("peers", np.uint8).set(peers.view(np.uint8))
        layout: HaloLayout = graph.once("halo", lambda: lay_out_halo(cupy, self._subgraph.halo, graph.places))
        listed = graph.once("lists of ghosts", lambda: cupy.asarray(ghosts.listed.astype(np.uint32)))
        lease["first_hot"], lease["num_hot"] = ghosts.hot[0], ghosts.hot[-1] - ghosts.hot[0]
        halo = lease["halo"]
        arrays = {
            "bounds": layout.bounds,
            "vertices": layout.places,
            "copy_offsets": layout.copy_offsets,
            "copies": layout.copies,
            "list_begins": listed,
        }
        for name, array in arrays.items():
            halo[name] = array.data.ptr
        for parity in range(2):
            halo["listed"][parity] = memory.array(f"listed{parity}", np.uint8).data.ptr

    def _put(self, snapshot: Snapshot) -> None:
        """Put a snapshot in place; records as a superstep that is done, but for telling the others."""
        if self._posts:
            wanted = max(snapshot.ends.size, self._memory.mail_room)
            if self._sum(int(wanted > self._memory.mail_room)):
                self._move_mail(wanted)
            super()._put(snapshot)
            self._meet()
            return
        super()._put(snapshot)
        lids: NDArray[np.int64] = self._subgraph.local_ids(snapshot.ends)
        degrees = self._subgraph.out_degrees[lids]
        self._announce(int((degrees > 0).sum()), int(degrees.sum(dtype=np.int64)))
        self._meet()

    @property
    def _posts(self) -> bool:
        return self._program.delivery is Delivery.DIRECT

    def _gids_of_ends(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        return ends if self._posts else super()._gids_of_ends(ends)

    def _ends_of(self, gids: NDArray[np.int64]) -> NDArray[np.int64]:
        return gids if self._posts else super()._ends_of(gids)

    def _make_mail_room(self, control: Any) -> None:
        self._move_mail(self._memory.wanted_mail_room())
        self._memory.resume(control)

    def _move_mail(self, room: int) -> None:
        """Bring what was posted to where this rank may post so much, and the others read it. Collective."""
        import cupy

        exchange, memory = self._exchange, self._memory
        arrays = mail_arrays(self._form.compiled, room, self._sum(room))
        posted = {name: size for name, size in arrays.items() if name.startswith("direct_")}
        ends = np.cumsum([-(-size // 256) * 256 for size in posted.values()]).tolist()

        def take() -> dict[str, Any]:
            self._mail_windows = windows_of(exchange, "mail")
            self._mail_windows.make(ends[-1], exchange)
            check_fits({"mail": sum(arrays.values()) - sum(posted.values())})
            begins = dict(zip(posted, [0, *ends], strict=False))
            return {
                name: self._mail_windows.own[begins[name] : begins[name] + size]
                if name in posted
                else cupy.empty(size, dtype=cupy.uint8)
                for name, size in arrays.items()
            }

        memory.move_mail(room, take)
        self._tell_mail(memory)
        self._meet()

    def _refuse_lost_mail(self, control: Any) -> None:
        """Tell whose message named nobody. Collective."""
        memory, exchange, superstep = self._memory, self._exchange, self.superstep - 1
        count = min(memory.mail_room, int(memory.mail("num_direct", np.uint64)[0]))
        by_id = memory.mail("direct_kinds", np.uint8)[:count] == 1
        error = None
        try:
            exchange.find(memory.mail("direct_targets", np.int64)[:count][by_id].get(), superstep)
        except ExchangeError as found:
            error = found
        who = np.flatnonzero(exchange.gather(np.array([error is not None], dtype=np.int64)))
        raise error or ExchangeError(
            "a message names a vertex that is not in the graph", rank=int(who[0]), superstep=superstep
        )

    def _meet(self) -> None:
        """Wait for all hosts, once what this one put on its GPU is there: from then on others may write to it."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()
        self._exchange.gather(np.zeros(1, dtype=np.int64))

    def _announce(self, num_senders: int, sent_edges: int) -> None:
        """Let a launch begin by telling the others who sent, as bits, to the superstep at hand."""
        control = np.zeros((), dtype=CONTROL)
        plan, done = control["next"], control["counters"]
        plan["superstep"], plan["direction"], plan["remaining"] = self.superstep - 1, PULL, PUBLISHING
        plan["frontier"] = FRONTIER_BITS
        done["ran"], done["retired_edges"] = 1, 1  # nobody in particular, and perhaps somebody
        done["active"] = int((self._memory.array("status", np.uint8) == ACTIVE).sum())
        done["senders"], done["sent_edges"] = num_senders, sent_edges
        self._memory.array("control", np.uint8).set(np.frombuffer(control.tobytes(), np.uint8))
        plan["superstep"], plan["remaining"] = self.superstep, WHOLE  # as a log has it that is written before
        self._control = control

    def _plan_release(self, num_senders: int, edges: int) -> None:
        self._announce(num_senders, edges)

    def _everywhere(self, holds: bool) -> bool:
        return bool(self._exchange.gather(np.array([holds], dtype=np.int64)).all())

    def _sum(self, value: int) -> int:
        return int(self._exchange.gather(np.array([value], dtype=np.int64)).sum())

    def _best_of_all(self, waiting_edges: int, best: int, takes_min: bool) -> tuple[int, int]:
        edges, values = self._exchange.gather(np.array([waiting_edges, best], dtype=np.int64)).T
        return int(edges.sum()), int(values.min() if takes_min else values.max())
