"""A worker manager: one rank and its device. It registers, takes its partition, and runs what the master leases."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram
from sigps.device.cpu import Threads, available_cores
from sigps.engine.exchange import Exchange, NoExchange
from sigps.engine.gpu_in_memory import GpuEngine, GpuProgram
from sigps.engine.interpreted import InterpretedEngine
from sigps.engine.stats import StatsLog, SuperstepStats
from sigps.engine.subgraph import Subgraph, build_subgraph
from sigps.graph.graph import Graph
from sigps.graph.partition import Assignment, PartitionFunction, partition
from sigps.system.communicator import Communicator
from sigps.system.data_locator import DataLocator
from sigps.system.master import Master
from sigps.system.message_center import MessageCenter
from sigps.system.worker import RunOptions, Worker
from sigps.vertex import Vertex

__all__ = ["Part", "WorkerManager"]


_KEPT_PARTITIONS = 4


class Part:
    """What a run left on one rank: the fields of the vertices it owns, and the run's end.

    Attributes:
        fields: [num_owned] each, aligned with `gids`.
        reason: `"converged"` or `"max_supersteps"`.
        stats: One entry a superstep; the same supersteps on all ranks.
        aggregators: The values after the last superstep.
        trace: What was recorded of traced vertices on this rank.
    """

    def __init__(self, worker: Worker, names: Sequence[str], reason: str, stats: StatsLog) -> None:
        self._subgraph = worker.subgraph
        self.fields: Mapping[str, NDArray[Any]]
        if isinstance(worker.engine, GpuEngine):
            self.fields = worker.engine.fields()
        else:
            self.fields = {name: worker.engine.state(name) for name in names}
        if self._subgraph.gids is not None:
            order = np.argsort(self._subgraph.owned_gids)
            self.fields = {name: values[order] for name, values in self.fields.items()}
        self.reason = reason
        self.stats = stats
        self.aggregators = worker.engine.aggregates.by_name()
        self.trace = worker.engine.traced if isinstance(worker.engine, InterpretedEngine) else None

    @property
    def gids(self) -> NDArray[np.int64]:
        """[num_owned], ascending."""
        return np.sort(self._subgraph.owned_gids)


class WorkerManager:
    """One rank of a run.

    Args:
        communicator: The control plane.
        graph: The graph, its rows spread over the same ranks.
        threads: Threads of this rank; None for its share of the host's cores.
    """

    def __init__(self, communicator: Communicator, graph: Graph, threads: int | None) -> None:
        self._communicator, self._graph = communicator, graph
        hosts = communicator.group.all_gather(platform.node())
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
    ) -> Part:
        """Run a program from superstep 0 to its end. Collective.

        Args:
            program: The program, vertex ids in it as compute() sees them.
            native: Its compiled form; None to interpret.
            method: How to partition.
            options: How the run goes.
            max_supersteps: Where it stops at the latest.
            on_progress: For the master: called now and then with the statistics so far.
        """
        registrations = self._communicator.report({"cores": self._num_threads, "device": "cpu"})
        master = Master(registrations, max_supersteps, on_progress) if self._communicator.is_master else None
        plan = self._communicator.order({"capacities": master.capacities} if master else None)
        needs_rows = native is None or native.program.reads_edges
        assignment, subgraph = self._partition(method, tuple(plan["capacities"]), needs_rows)
        exchange = self._exchange(assignment, subgraph)
        stats = StatsLog()
        with Threads(self._num_threads) as threads:
            worker = Worker(program, native, subgraph, exchange, threads, options)
            while True:
                order = self._communicator.order(master.next_order() if master else None)
                if order["verb"] == "stop":
                    names = [f.name for f in program.declaration.states]
                    return Part(worker, names, order["reason"], stats)
                outcome = worker.lease(order["supersteps"])
                stats.extend(outcome.stats)
                if master is not None:
                    master.hear(outcome.ended, outcome.stats)

    def _partition(
        self, method: str | PartitionFunction, capacities: tuple[float, ...], needs_rows: bool
    ) -> tuple[Assignment, Subgraph]:
        """Partition once a graph, method and ranks; a second run finds its partition laid out."""
        known: dict[Any, Any] = self._graph.__dict__.setdefault("_partitions", {})
        key = (method, capacities, needs_rows)
        if key not in known:
            if len(known) >= _KEPT_PARTITIONS:  # a new function for every run would fill the memory
                del known[next(iter(known))]
            size = self._communicator.size
            assignment = partition(self._graph, size, method, capacities=capacities)
            known[key] = assignment, build_subgraph(self._graph, assignment, with_outgoing=needs_rows)
        found: tuple[Assignment, Subgraph] = known[key]
        return found

    def _exchange(self, assignment: Assignment, subgraph: Subgraph) -> Exchange:
        locator = DataLocator(self._graph, assignment, subgraph)
        if self._communicator.size == 1:
            return NoExchange(locator.gids)
        return MessageCenter(self._communicator.group, subgraph, locator)
