"""Supersteps of one of several partitions, in the memory of a GPU; what crosses ranks is exchanged between launches.

A lease is a launch for each superstep. Between launches the partitions exchange records and reduce counters, in the
verbs of `Exchange` and in the order in which the engine for CPU cores calls them, so that partitions of one run may be
on devices of both kinds. Records and direct messages go through host memory, or from GPU to GPU by NCCL.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sigps.compiler.cuda.compile import find_atomics_obstacle
from sigps.compiler.program import Delivery
from sigps.engine.counters import Counters, Everywhere
from sigps.engine.direction import GPU_ROW_COST
from sigps.engine.gpu import snapshot as gpu_snapshot
from sigps.engine.gpu.columns import BY_HOST, copies_on_device
from sigps.engine.gpu.crossing import StagedCrossing
from sigps.engine.gpu.crossing_values import CrossingValues
from sigps.engine.gpu.engine import GpuEngine
from sigps.engine.gpu.packed_edges import PackedGraph
from sigps.engine.gpu.peer_buffers import agreed
from sigps.engine.gpu.variant import Packing
from sigps.engine.gpu.whole_halo import StatusCount, WholeHalo, goes_whole
from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import Outcome
from sigps.engine.superstep import run_supersteps
from sigps.kernels.cpu.arguments import ACTIVE
from sigps.kernels.cuda.lease import CONTROL, FRONTIER_BITS
from sigps.kernels.direction import FORCED, PULL, PUSH

__all__ = ["GpuStagedEngine"]


class GpuStagedEngine(GpuEngine):
    """A vertex program on one of several partitions. Arguments as `GpuEngine`'s."""

    runs_alone = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lease["carries_on"] = 0  # then a launch leaves this partition's totals, and no more
        self._values: CrossingValues | None = None
        if self._is_packed and self._program.edge_states:  # and commits no edge states
            assert isinstance(self._graph, PackedGraph)
            given = self._program, self._graph, self._memory, self._exchange, self._gpu
            self._values = agreed(lambda: CrossingValues(*given), self._exchange)
        else:
            self._lease["wrote"] = 0
        self._sender_edges = self._edge_bytes = 0
        self._active: int | None = None  # vertices, where they are counted
        self._active_count = StatusCount(self._gpu, ACTIVE)
        self._crossing = self._staged_crossing()
        self._messages: int | None = None  # of the superstep before, on all ranks, where they are counted
        self._pushes = False
        self._halo, self._is_whole = self._whole_halo(), False
        if self._halo is not None:
            self._is_whole = goes_whole(self._halo.most_bytes, 0, self._halo.num_edges)

    def _staged_crossing(self) -> StagedCrossing | None:
        """Return what brings messages of pushes along packed rows, where ranks push. Collective."""
        if self._packing is not Packing.PUSHED_PART or not self._memory.has("num_arrived"):
            return None
        compiled = self._variant.compiled
        crossing = StagedCrossing(
            self._graph,
            self._memory,
            self._exchange,
            message_bytes=len(compiled.neutral or b""),
            has_atomics=find_atomics_obstacle(compiled, self._gpu.arch) is None,
            has_rows_on_host=self._pages.has_rows_on_host,
        )
        if crossing.is_agreed:
            return crossing
        self._lease["forced"] = FORCED["pull"]
        return None

    def _whole_halo(self) -> WholeHalo | None:
        """Return what brings halos as a whole, where records go from GPU to GPU along edges. Collective."""
        if not self._exchange.on_device or self._program.delivery is not Delivery.RECORD:
            return None
        halo = WholeHalo(
            self._graph,
            self._memory,
            self._exchange,
            self._gpu,
            record_bytes=int(self._variant.compiled.defines["SIGPS_RECORD_BYTES"]),
            has_narrow_ids=self._placed.has_narrow_ids,
        )
        return halo if halo.is_agreed else None

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps. Collective among the partitions."""
        outcome = Outcome(ended=False)
        if self._arrived is not None:
            self._read_arrived(outcome)
        if not outcome.ended and len(outcome.stats) < num_supersteps:
            left = num_supersteps - len(outcome.stats)
            done = run_supersteps(self, left, self._exchange, master=self._master)
            outcome.stats.extend(done.stats)
            outcome.ended, outcome.stopped = done.ended, done.stopped
        return outcome

    def receive(self) -> int:
        """Bring records to the ranks that have ghosts of their senders; return the bytes that left. Collective."""
        self._memory.set_aggregates(self.aggregates.values)
        if self._crossing is not None and self._plan_next(self._crossing):
            return self._edge_bytes  # a push needs no records of ghosts
        return self._exchange_records() + self._edge_bytes

    def _plan_next(self, crossing: StagedCrossing) -> bool:
        """Plan the superstep at hand, alike on all ranks; return whether it is a push. Collective."""
        if self._messages is None and self.superstep > 0:  # a log was put in place
            parity = self.superstep & 1
            bits = self._memory.array(f"sent{parity}", np.uint8)
            self._messages = int(self._exchange.gather(np.array([self._count_sent(bits)])).sum())
        cost = self._messages or 0
        if crossing.has_rows_on_host and 0 < cost * self._variant.pull_gain < crossing.pull_cost:
            own = int(gpu_snapshot.senders(self._memory, self._control).sum())
            cost += GPU_ROW_COST * int(self._exchange.gather(np.array([own])).sum())
        planned = self._memory.set_next(
            self.superstep,
            cost,
            self._variant.pull_gain,
            has_retired=True,
            has_active=self._num_active() > 0,
            pull_cost=crossing.pull_cost,
            crosses=True,
        )
        self._pushes = bool(planned["next"]["direction"] == PUSH)
        return self._pushes

    def _count_sent(self, bits: Any) -> int:
        """Return the out-edges of owned vertices whose bits are set."""
        import cupy

        n = self._graph.num_owned
        sent = cupy.unpackbits(bits, bitorder="little")[:n].view(cupy.bool_)
        return int(self._graph.out_degrees[:n][sent].sum(dtype=cupy.uint64))

    def commit(self, counters: Counters, everywhere: Everywhere) -> None:
        """Keep the senders for the next superstep, and commit what was written on edges. Collective."""
        self.superstep += 1
        self._note_senders(counters)
        self._messages = everywhere.messages
        if self._halo is not None:
            self._is_whole = goes_whole(self._halo.most_bytes, everywhere.messages, self._halo.num_edges)
        self._edge_bytes = self._commit_edges()

    def is_idle_counted(self) -> bool:
        """No: a superstep in which no vertex ran is none."""
        return False

    def num_left(self) -> int:
        """Return how many vertices have not retired."""
        return self._memory.num_left()

    def wake_all(self) -> None:
        """Make all halted vertices active."""
        self._memory.wake_all(self._control)
        self._active = None

    def _commit_edges(self) -> int:
        return super()._commit_edges() if self._values is None else self._values.commit()

    def _gids_of(self, ids: Any) -> Any:
        return ids  # of messages that have arrived: local ids

    def save(self) -> Snapshot:
        """Return copies of what this partition needs to go on; between leases."""
        snapshot = super().save()
        if snapshot.in_flight == "records":
            return snapshot
        return replace(snapshot, ends=self._subgraph.owned_gids[np.asarray(snapshot.ends)])

    def _put(self, snapshot: Snapshot) -> None:
        if snapshot.in_flight != "records":
            snapshot = replace(snapshot, ends=self._subgraph.local_ids(snapshot.ends))
        if self._values is not None:
            self._values.note_all()
        super()._put(snapshot)
        self._active = self._messages = None

    def _exchange_records(self) -> int:
        """Bring records to the ranks that have ghosts of their senders; return the bytes that left this one."""
        import cupy

        if self.superstep == 0 or self._program.delivery is not Delivery.RECORD:
            return 0
        assert self._control is not None
        if self._halo is not None and self._is_whole:
            num_bytes = self._halo.exchange(self.superstep & 1)
            if self._graph.tiles is None and not self._is_packed:  # else all is pulled, whatever was sent
                self._sender_edges = self._halo.sent_edges(self.superstep & 1)
            return num_bytes
        copier = copies_on_device() if self._exchange.on_device else BY_HOST
        numpy = copier.numpy
        graph, memory, compiled = self._graph, self._memory, self._variant.compiled
        parity, n, num_ghosts = self.superstep & 1, graph.num_owned, self._subgraph.num_ghosts
        have_sent = cupy.zeros(graph.num_lids, dtype=cupy.bool_)
        have_sent[:n] = gpu_snapshot.senders(memory, self._control)
        sent = numpy.zeros(n + num_ghosts, dtype=np.uint8)
        sent[:n] = copier.take(have_sent[graph.numbering.host_order])
        records = tuple(
            numpy.concatenate([column, numpy.zeros((num_ghosts, *column.shape[1:]), dtype=column.dtype)])
            for column in gpu_snapshot.owned_records(memory, compiled, parity, copier)
        )
        self._exchange.publish(sent, records)
        ghosts, num_bytes = self._exchange.collect(sent, records)
        lids = graph.numbering.lids[cupy.asarray(ghosts)]
        gpu_snapshot.fill_records(memory, compiled, parity, lids, tuple(r[ghosts] for r in records))
        have_sent[lids] = True
        memory.set_senders(parity, have_sent)
        if graph.tiles is None and not self._is_packed:  # else nobody asks for a direction
            self._sender_edges = int(graph.outgoing.rows.degrees[have_sent].sum(dtype=cupy.uint64))
        return num_bytes

    def compute(self) -> tuple[str, Counters, int]:
        """Run one superstep; return its direction, what it did, and the bytes of direct messages that left."""
        memory, superstep = self._memory, self.superstep
        crossed_bytes = 0
        if self._crossing is None:
            memory.set_next(
                superstep,
                self._sender_edges,
                self._variant.pull_gain,
                has_retired=True,
                has_active=self._num_active() > 0,
            )
        elif self._pushes:
            self._variant.launch(self._lease, *self._fill_in(superstep + 1))
            crossed_bytes = self._crossing.exchange()
        mine = Outcome(ended=False)
        for _ in self._launches(superstep + 1, mine):
            self._begin_count()
        self._active = self._active_count.found()
        self.superstep = superstep
        counters, direction = Counters(active=self._active), self._directions[PUSH if self._pushes else PULL]
        for done in mine.stats:  # of one superstep, or none where no vertex ran
            counters.ran, counters.sent_edges, direction = done.active, done.messages, done.direction
            counters.bytes_read, counters.blocks_skipped = done.bytes_read, done.blocks_skipped
            counters.totals = [memory.aggregate_values(self.aggregates.values)]
        posts = self._program.delivery is Delivery.DIRECT
        return direction, counters, self._post_direct() if posts else crossed_bytes

    def _begin_count(self) -> None:
        self._active_count.begin(self._memory.array("status", np.uint8))

    def _num_active(self) -> int:
        if self._active is None:
            self._begin_count()
            self._active = self._active_count.found()
        return self._active

    def _post_direct(self) -> int:
        """Bring direct messages to their targets' owners; return the bytes that left this rank."""
        direct, exchange = self._memory.direct, self._exchange
        copier = copies_on_device() if exchange.on_device else BY_HOST
        gids, messages = direct.copy(copier, lambda ids: exchange.find(ids, self.superstep))
        lids, arrived, num_bytes = exchange.route(gids, None, messages)
        direct.put(lids, arrived)
        return num_bytes

    def _note_senders(self, counters: Counters) -> None:
        """Keep the senders as bits, whatever the superstep's direction: the next one reads them, and so does a log."""
        import cupy

        memory, parity = self._memory, self.superstep & 1
        is_noted = counters.ran > 0 and int(self._control["next"]["frontier"]) == FRONTIER_BITS
        if self._program.delivery is not Delivery.DIRECT and not is_noted:
            ran = counters.ran > 0
            sent = gpu_snapshot.senders(memory, self._control) if ran else cupy.zeros(0, dtype=bool)
            memory.set_senders(parity, sent)
        control = np.zeros((), dtype=CONTROL)
        control["next"]["superstep"], control["next"]["frontier"] = self.superstep, FRONTIER_BITS
        self._control = control
