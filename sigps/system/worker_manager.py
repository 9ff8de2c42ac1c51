"""A worker manager: one rank and its device. It registers, takes its partition, and runs what the master leases."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram
from sigps.compiler.program import Consumption, Delivery
from sigps.device import nccl
from sigps.device.cpu import Threads, available_cores
from sigps.engine.exchange import Exchange, NoExchange
from sigps.engine.gpu.engine import GpuEngine, GpuProgram
from sigps.engine.gpu.peers import GpuPeerEngine
from sigps.engine.gpu.triangles import count_share
from sigps.engine.interpreter.engine import InterpretedEngine
from sigps.engine.partition.degree_order import build_by_degree, gains_by_degree, with_rows
from sigps.engine.partition.neighbor_rows import build_neighbor_rows
from sigps.engine.partition.subgraph import Subgraph, build_subgraph
from sigps.engine.stats import SaveStats, StatsLog, SuperstepStats
from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.graph.measures.neighbourhood import CountShare, count_on_threads, neighbourhoods
from sigps.graph.partitioning.partition import Assignment, PartitionFunction, partition
from sigps.model.vertex import Vertex
from sigps.system.checkpoint.files import Manifest
from sigps.system.checkpoint.resume import Identity, find_log, read_snapshot, stats_of
from sigps.system.checkpoint.state_log import Checkpoint, StateLog
from sigps.system.data_locator import DataLocator, DeviceLocator
from sigps.system.faults.detector import FaultDetector
from sigps.system.faults.watch import Faults, WatchedExchange, watch
from sigps.system.master import Master, Reason
from sigps.system.message_center import MessageCenter
from sigps.system.transport import Transport, choose_transport, gpu_facts, needs_hosts
from sigps.system.worker import RunOptions, Worker

__all__ = ["Part", "Saving", "WorkerManager"]

log = logging.getLogger(__name__)


_KEPT_PARTITIONS = 4
_SILENCES = 10
"""How many times as long as for a heartbeat a GPU waits for another: that one may be saving, or be busy."""


class Part:
    """What a run left on one rank: the fields of the vertices it owns, and the run's end.

    Attributes:
        fields: [num_owned] each, aligned with `gids`.
        kept_on_edges: Edge states, aligned with `edge_ends`.
        reason: `"converged"`, `"stopped"` or `"max_supersteps"`.
        stats: One entry a superstep; the same supersteps on all ranks.
        aggregators: The values after the last superstep.
        trace: What was recorded of traced vertices on this rank.
        saves: One entry a state log.
    """

    def __init__(
        self,
        worker: Worker,
        names: Sequence[str],
        edge_names: Sequence[str],
        reason: Reason,
        stats: StatsLog,
        saves: Sequence[SaveStats] = (),
    ) -> None:
        self._subgraph = worker.subgraph
        self.fields: Mapping[str, NDArray[Any]]
        if isinstance(worker.engine, GpuEngine):
            self.fields = worker.engine.fields()
        else:
            self.fields = {name: worker.engine.state(name) for name in names}
            if self._subgraph.gids is not None:
                order = self._subgraph.by_gid
                self.fields = {name: values[order] for name, values in self.fields.items()}
        self.reason: Reason = reason
        self.stats = stats
        self.saves = tuple(saves)
        self.kept_on_edges = {name: worker.engine.edge_state(name) for name in edge_names}
        self.aggregators = worker.engine.aggregates.by_name()
        self.trace = worker.engine.traced if isinstance(worker.engine, InterpretedEngine) else None

    @property
    def gids(self) -> NDArray[np.int64]:
        """[num_owned], ascending."""
        return self._subgraph.sorted_gids

    @property
    def edge_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Gids of the owned vertices and of the other ends of their out-edges; each vertex's in ascending order."""
        edges = self._subgraph.outgoing
        assert edges is not None
        return self._subgraph.sources_of_edges(), edges.ends.astype(np.int64)

    def oids(self, graph: Graph) -> NDArray[Any]:
        """Return the users' ids of `gids`, made once a partition. Collective."""
        known = self._subgraph.__dict__
        if "_oids" not in known:
            known["_oids"] = graph.ids.to_oids(self.gids)
            known["_oids"].flags.writeable = False
        found: NDArray[Any] = known["_oids"]
        return found


@dataclass(frozen=True)
class Saving:
    """How a run saves its state.

    Attributes:
        checkpoint: When, and where.
        program: The program as the user made it: its vertex ids are the user's.
        precision: The array type of Python's `float`.
        device: What runs it.
        resumes: Whether the run goes on from the newest log.
    """

    checkpoint: Checkpoint
    program: Vertex
    precision: Literal["single", "double"]
    device: str
    resumes: bool


class WorkerManager:
    """One rank of a run.

    Args:
        graph: The graph, its rows spread over the ranks of the run.
        threads: Threads of this rank; None for its share of the host's cores.

    Attributes:
        rank_on_host: This rank's number among those of its host.
    """

    def __init__(self, graph: Graph, threads: int | None) -> None:
        self._group, self._graph = graph.group, graph
        hosts = self._group.all_gather(platform.node())
        self.rank_on_host = hosts[: self._group.rank].count(platform.node())
        share = max(1, available_cores() // hosts.count(platform.node()))
        self._num_threads = threads or share

    def run(
        self,
        program: Vertex,
        native: NativeProgram | GpuProgram | None,
        *,
        method: str | PartitionFunction,
        options: RunOptions,
        max_supersteps: int | None,
        on_progress: Callable[[Sequence[SuperstepStats]], None] | None,
        saving: Saving | None = None,
        faults: Faults | None = None,
        transport: Literal["auto", "mpi", "nccl", "peer"] = "auto",
    ) -> Part:
        """Run a program from superstep 0, or from a log, to its end. Collective.

        Args:
            program: The program, vertex ids in it as compute() sees them.
            native: Its compiled form; None to interpret.
            method: How to partition.
            options: How the run goes.
            max_supersteps: Where it stops at the latest.
            on_progress: For the master: called now and then with the statistics so far.
            saving: How its state is saved; None where it is not.
            faults: When a rank counts as lost; None where ranks are not watched.
            transport: How records cross between ranks.

        Raises:
            ConfigError: If that transport is not possible here, or ranks on these devices cannot work together.
        """
        state_log, found = self._logs(saving, max_supersteps)
        stats = StatsLog(stats_of(found) if found else ())
        registrations = self._group.all_gather(self._registration(native))
        by_hosts = native is not None and needs_hosts(native.program)
        chosen = choose_transport(registrations, transport, by_hosts=by_hosts)
        by_name = native is not None and native.program.delivery is Delivery.DIRECT
        if chosen == "nccl" and found and found.in_flight == "messages" and not by_name:
            chosen = "mpi"  # a CPU core reads what an interpreter sent, before a GPU goes on
        devices = [rank["device"] for rank in registrations]
        has_turns = options.deterministic or bool(saving and saving.resumes) or program.declaration.has_master
        _check_mixture(devices, native, has_turns=has_turns)
        master = None
        if self._group.rank == 0:
            checkpoint = saving.checkpoint if saving else None
            master = Master(registrations, max_supersteps, on_progress, checkpoint, stats)
        plan = self._group.broadcast({"capacities": master.capacities if master else []})
        if self._group.size > 1:
            patience = math.inf
            if faults is not None:
                patience = min(_SILENCES * faults.silent_seconds, faults.superstep_seconds)
            options = replace(options, has_peers=chosen == "peer", patience=patience)
            if chosen != "peer" and any(r["device"] == "cuda" for r in registrations):  # all do as these
                options = replace(options, asynchronous=False)
        needs_rows = native is None or native.program.reads_edges
        assignment, subgraph = self._partition(
            method,
            tuple(plan["capacities"]),
            needs_rows,
            self._needs_neighbors(program, native),
            self._num_threads if self._gains_by_degree(native) else 0,
        )
        last_log = functools.partial(_last_log, state_log)
        worker: Worker | None = None
        with (
            Threads(self._num_threads) as threads,
            watch(self._group, faults, last_log) as detector,
            _naming_the_log(state_log),
        ):
            exchange = self._exchange(assignment, subgraph, chosen)
            if detector is not None and state_log is not None:
                state_log.on_whole = detector.record_log
            if detector is not None:
                exchange = WatchedExchange(
                    exchange, detector, lambda: worker.engine.superstep if worker else 0
                )
            worker = Worker(program, native, subgraph, exchange, threads, options)
            if found is None:
                self._begin(worker, program, threads, native, devices)
            if found and saving:
                folder = saving.checkpoint.folder
                worker.restore(read_snapshot(folder, found, self._group, assignment))
                if detector is not None:
                    detector.waiting()
            reason = self._follow(worker, master, stats, state_log, detector)
            names = [f.name for f in program.declaration.states]
            kept = [f.name for f in program.declaration.edge_states]
            part = Part(worker, names, kept, reason, stats, state_log.saves if state_log else ())
            worker = None  # or the watched exchange would keep it, and all memory of the run
            return part

    def _registration(self, native: NativeProgram | GpuProgram | None) -> dict[str, Any]:
        """Return what this rank tells the master of itself."""
        cores = {"cores": self._num_threads}
        if isinstance(native, GpuProgram):
            facts = gpu_facts(native.gpu, alone=self._group.size == 1)
            return cores | {"gigabytes_per_second": native.gpu.gigabytes_per_second, **facts}
        return cores | {"device": "python" if native is None else "cpu"}

    def _begin(
        self,
        worker: Worker,
        program: Vertex,
        threads: Threads,
        native: NativeProgram | GpuProgram | None,
        devices: Sequence[str],
    ) -> None:
        """Give states what they begin with, where that is a measure of the graph.

        GPUs count where all ranks have one: each a share, or one all, from the edges that it has.
        """
        measures = {f.name: repr(f.measure) for f in program.declaration.states if f.measure}
        if not measures:
            return
        if self._group.size == 1 and isinstance(worker.engine, GpuEngine):
            worker.engine.begin_measured(measures, directed=self._graph.directed)
            return
        count: CountShare = functools.partial(count_on_threads, threads)
        if isinstance(native, GpuProgram) and set(devices) == {"cuda"}:
            count = functools.partial(count_share, native.gpu)
        found = neighbourhoods(self._graph, count)
        for field, measure in measures.items():
            worker.begin(field, getattr(found, measure)[worker.subgraph.owned_gids])

    def _logs(
        self, saving: Saving | None, max_supersteps: int | None
    ) -> tuple[StateLog | None, Manifest | None]:
        """Return what this run writes to, and the log that it goes on from."""
        if saving is None:
            return None, None
        identity = Identity.of(saving.program, self._graph, saving.precision)
        checkpoint, found = saving.checkpoint, None
        if saving.resumes:
            found = find_log(checkpoint.folder, identity, self._group, max_supersteps)
        if saving.resumes and self._group.rank == 0:
            where = (
                f"from {checkpoint.folder / found.name}" if found else "at superstep 0: there is no state log"
            )
            log.info("the run goes on %s", where)
        resumed = found.run if found else None
        return StateLog(checkpoint, identity, self._graph, saving.program, saving.device, resumed), found

    def _follow(
        self,
        worker: Worker,
        master: Master | None,
        stats: StatsLog,
        state_log: StateLog | None,
        detector: FaultDetector | None,
    ) -> Reason:
        """Do what the master orders until the run is over; return why it is."""
        while True:
            order = self._group.broadcast(master.next_order() if master else {})
            if order["verb"] == "stop":
                if state_log is not None:
                    state_log.close(worker.traced)
                reason: Reason = order["reason"]
                return reason
            if order["verb"] == "save":
                assert state_log is not None
                state_log.save(worker.save, stats, worker.traced)
                continue
            if detector is not None:
                detector.computing(worker.engine.superstep)
                if isinstance(
                    worker.engine, GpuPeerEngine
                ):  # which looks after itself: no host sees supersteps
                    detector.waiting()
            outcome = worker.lease(order["supersteps"])
            if detector is not None:
                detector.waiting()
            stats.extend(outcome.stats)
            if master is not None:
                master.record(outcome.ended, outcome.stats, stopped=outcome.stopped)

    def _needs_neighbors(self, program: Vertex, native: NativeProgram | GpuProgram | None) -> bool:
        """Tell whether the edges of neighbours are needed; one rank has them, and an interpreter may ask for them."""
        if native is not None:
            return native.program.reads_neighbors or native.program.reads_reverse
        declared = program.declaration
        return declared.reads_neighbors or bool(declared.edge_states) or self._group.size == 1

    def _partition(
        self,
        method: str | PartitionFunction,
        capacities: tuple[float, ...],
        needs_rows: bool,
        needs_neighbors: bool,
        num_threads: int,
    ) -> tuple[Assignment, Subgraph]:
        """Partition once a graph, method and ranks; a second run finds its partition laid out."""
        known: dict[Any, Any] = self._graph.__dict__.setdefault("_partitions", {})
        is_by_degree = num_threads > 0  # then rows are added where they are needed
        key = (method, capacities, needs_rows and not is_by_degree, needs_neighbors, is_by_degree)
        if key not in known:
            if len(known) >= _KEPT_PARTITIONS:  # a new function for every run would fill the memory
                del known[next(iter(known))]
            size = self._group.size
            assignment = partition(self._graph, size, method, capacities=capacities)
            if is_by_degree:
                subgraph = build_by_degree(self._graph, num_threads)
            else:
                with_outgoing = needs_rows or needs_neighbors
                subgraph = build_subgraph(self._graph, assignment, with_outgoing=with_outgoing)
            if needs_neighbors:
                rows = build_neighbor_rows(subgraph, assignment, self._group)
                subgraph = replace(subgraph, neighbor_rows=rows)
            known[key] = assignment, subgraph
        found: tuple[Assignment, Subgraph] = known[key]
        if needs_rows and found[1].outgoing is None:
            found = known[key] = found[0], with_rows(found[1], self._graph, num_threads)
        return found

    def _gains_by_degree(self, native: NativeProgram | GpuProgram | None) -> bool:
        """Tell whether a layout by degree may pay: one rank's CPU cores read records, and have done so before."""
        if not isinstance(native, NativeProgram) or self._group.size > 1:
            return False
        if native.program.delivery is not Delivery.RECORD or native.program.links_edges:
            return False
        kept = self._graph.__dict__
        if "_gains_by_degree" not in kept:
            kept["_gains_by_degree"] = None  # asked when the graph is read again
            return False
        if kept["_gains_by_degree"] is None:
            kept["_gains_by_degree"] = gains_by_degree(self._graph)
        return bool(kept["_gains_by_degree"])

    def _exchange(self, assignment: Assignment, subgraph: Subgraph, transport: Transport) -> Exchange:
        group = self._group
        if transport == "nccl":
            located = DeviceLocator(self._graph, assignment, subgraph)
            return MessageCenter(group, subgraph, located, nccl.connect(group))
        locator = DataLocator(self._graph, assignment, subgraph)
        return NoExchange(locator.gids) if group.size == 1 else MessageCenter(group, subgraph, locator)


def _check_mixture(
    devices: Sequence[str], native: NativeProgram | GpuProgram | None, *, has_turns: bool = False
) -> None:
    """Refuse ranks on devices of different kinds that do not pass the same things on, in the same order.

    Args:
        devices: Each rank's.
        native: What this rank runs.
        has_turns: Whether the run is deterministic, goes on from a log, or has master compute.
    """
    kinds = sorted(set(devices))
    if len(kinds) == 1:
        return
    hint = "Run all ranks on one kind of device"
    if "python" in kinds or native is None:
        raise ConfigError(
            f"ranks on {' and '.join(kinds)} cannot work together: one interprets, and that is slow. {hint}"
        )
    if has_turns:
        raise ConfigError(
            f"ranks on {' and '.join(kinds)} cannot work together in a run that is deterministic, goes on from a "
            f"log, or has a master() or next_phase(). {hint}"
        )
    program = native.program
    if program.delivery is Delivery.DIRECT and program.consumption is not Consumption.LISTED:
        raise ConfigError(
            f"ranks on {' and '.join(kinds)} cannot work together where what send_to() sends combines: "
            f"a CPU combines it before it crosses. {hint}"
        )


def _last_log(state_log: StateLog | None) -> str | None:
    found = state_log.find_last() if state_log is not None else None
    return None if found is None else str(found)


@contextlib.contextmanager
def _naming_the_log(state_log: StateLog | None) -> Iterator[None]:
    """Let a failure say from where the run can go on, when what is being written has been finished."""
    try:
        yield
    except Exception as error:
        if state_log is not None:
            state_log.settle()
        if name := _last_log(state_log):
            error.add_note(f"The last log is {name}: continue with --resume")
        raise
