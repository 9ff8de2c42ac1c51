"""Supersteps of one of several partitions, in the memory of a GPU: hosts direct what crosses.

A lease is a launch for each superstep. Between launches the partitions exchange records and agree, in the verbs of
`Exchange` and in the order in which the engine for CPU cores calls them, so that partitions of one run may be on
devices of both kinds. Records and mail go through host memory, or stay on the GPU where the exchange moves them there.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sigps.compiler.program import Delivery
from sigps.engine.counters import Counters, reduce_counters
from sigps.engine.gpu import snapshot as gpu_snapshot
from sigps.engine.gpu.engine import GpuEngine
from sigps.engine.stats import Outcome
from sigps.kernels.cuda.lease import ACTIVE, CONTROL, FRONTIER_BITS

__all__ = ["GpuPartEngine"]


class GpuPartEngine(GpuEngine):
    """A vertex program on one of several partitions. Arguments as `GpuEngine`'s."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lease["persistent"] = 0  # then a launch leaves this partition's totals, and no more
        self._lease["wrote"] = 0  # and shows nobody what was written to edges
        self._sender_edges = self._edge_bytes = 0

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps. Collective among the partitions."""
        outcome = Outcome(ended=False)
        if self._arrived is not None:
            self._read_arrived(outcome)
        while not outcome.ended and len(outcome.stats) < num_supersteps:
            began = time.perf_counter()
            num_bytes = self._exchange_records() + self._edge_bytes
            direction, counters, mail_bytes = self._advance()
            counts_idle = self._master is not None and self._master.in_flight
            everywhere = reduce_counters(
                self._exchange,
                self.aggregates,
                counters,
                num_bytes=num_bytes + mail_bytes,
                seconds=time.perf_counter() - began,
                counts_idle=counts_idle,
            )
            counted = everywhere.ran > 0 or counts_idle
            if counted:
                seconds = time.perf_counter() - began
                outcome.stats.append(everywhere.as_stats(self.superstep, direction, seconds))
                self.superstep += 1
                self._note_senders(counters)
                self._edge_bytes = self._show_edges()
                self._memory.set_aggregates(self.aggregates.values)
            outcome.ended = not counted or (everywhere.active == 0 and everywhere.messages == 0)
            if self._master is not None:
                self._run_master(self._master, outcome, counted=counted)
        return outcome

    def _gids_of(self, ids: Any) -> Any:
        return ids  # of mail that has arrived: local ids

    def _exchange_records(self) -> int:
        """Bring records to the ranks that have ghosts of their senders; return the bytes that left this one."""
        import cupy

        if self.superstep == 0 or self._program.delivery is not Delivery.RECORD:
            return 0
        assert self._control is not None
        on_device = self._exchange.on_device
        numpy = cupy if on_device else np
        graph, memory, compiled = self._graph, self._memory, self._form.compiled
        parity, n = self.superstep & 1, graph.places.size
        by_place = cupy.zeros(graph.num_places, dtype=cupy.bool_)
        by_place[:n] = gpu_snapshot.senders(memory, graph, self._control)
        num_ghosts = self._subgraph.num_ghosts
        sent = numpy.zeros(n + num_ghosts, dtype=np.uint8)
        mine = by_place[graph.places]
        sent[:n] = mine if on_device else cupy.asnumpy(mine)
        records = tuple(
            numpy.concatenate([column, numpy.zeros(num_ghosts, dtype=column.dtype)])
            for column in gpu_snapshot.records_by_lid(memory, compiled, graph, parity, on_device=on_device)
        )
        self._exchange.publish(sent, records)
        ghosts, num_bytes = self._exchange.collect(sent, records)
        places = graph.all_places[cupy.asarray(ghosts)]
        gpu_snapshot.fill_records(memory, compiled, parity, places, tuple(r[ghosts] for r in records))
        by_place[places] = True
        memory.set_senders(parity, by_place)
        self._sender_edges = int(graph.outgoing.rows.degrees[by_place].sum(dtype=cupy.uint64))
        return num_bytes

    def _advance(self) -> tuple[str, Counters, int]:
        """Run one superstep; return its direction, what it did, and the bytes of mail that left this rank."""
        memory, superstep = self._memory, self.superstep
        memory.plan(
            superstep,
            self._sender_edges,
            self._form.push_gain,
            has_retired=True,
            has_active=self._num_active() > 0,
        )
        mine = Outcome(ended=False)
        self._launch(superstep + 1, mine)
        self.superstep = superstep
        counters, direction = Counters(active=self._num_active()), self._directions[0]
        for done in mine.stats:  # of one superstep, or none where nobody ran
            counters.ran, counters.sent_edges, direction = done.active, done.messages, done.direction
            counters.totals = [memory.aggregate_values(self.aggregates.values)]
        return direction, counters, self._post() if self._program.delivery is Delivery.DIRECT else 0

    def _num_active(self) -> int:
        return int((self._memory.array("status", np.uint8) == ACTIVE).sum())

    def _post(self) -> int:
        """Bring mail to its targets' owners."""
        find = self._exchange.find
        gids, messages = gpu_snapshot.take_mail(
            self._memory,
            self._form.compiled,
            lambda ids: find(ids, self.superstep),
            on_device=self._exchange.on_device,
        )
        lids, arrived, num_bytes = self._exchange.post(gids, None, messages)
        gpu_snapshot.put_mail(self._memory, self._form.compiled, lids, arrived)
        return num_bytes

    def _note_senders(self, counters: Counters) -> None:
        """Keep who sent as bits, whichever way the superstep went: the next one asks for them, and so does a log."""
        import cupy

        graph, memory, parity = self._graph, self._memory, self.superstep & 1
        if self._program.delivery is not Delivery.DIRECT:
            ran = counters.ran > 0
            sent = gpu_snapshot.senders(memory, graph, self._control) if ran else cupy.zeros(0, dtype=bool)
            memory.set_senders(parity, sent)
        control = np.zeros((), dtype=CONTROL)
        control["next"]["superstep"], control["next"]["frontier"] = self.superstep, FRONTIER_BITS
        self._control = control
