"""A worker manager: one rank and its device. It registers, takes its partition, and runs what the master leases."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.device.cpu import Threads, available_cores
from sigps.engine.contract import Engine, Executable, Needs, RunContext, RunOptions
from sigps.engine.exchange import Exchange, NoExchange
from sigps.engine.laid_out import partition_of
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import SaveStats, StatsLog, SuperstepStats
from sigps.engine.table import ENGINES, engine_of
from sigps.errors import ConfigError, StateLogError
from sigps.graph.building.vertex_columns import values_of
from sigps.graph.graph import Graph
from sigps.graph.partitioning.partition import Assignment, PartitionFunction
from sigps.group.limits import Faults
from sigps.model.vertex import Vertex
from sigps.system.data_locator import DataLocator, DeviceLocator
from sigps.system.master import Master, Reason, capacity_of
from sigps.system.rank_facts import RankFacts, ranks_of_run
from sigps.system.transport import Transport, choose_transport, needs_hosts
from sigps.system.turns import current_turns
from sigps.system.worker import Worker

if TYPE_CHECKING:
    from sigps.system.checkpoint.files import Manifest
    from sigps.system.checkpoint.state_log import Checkpoint, StateLog

__all__ = ["RankResult", "Saving", "WorkerManager", "bound_cores"]

log = logging.getLogger(__name__)


_NOTHING = contextlib.nullcontext()
_UNWATCHED = Faults(math.inf)

_SILENCES = 10
"""How many times as long as for a heartbeat a GPU waits for another: that one may be saving, or be busy."""


def bound_cores(cores: int, of_host: int, num_ranks: int, environment: Mapping[str, str]) -> str | None:
    """Return what to say of a rank that Open MPI bound to one core, though its host has more for it; None if nothing.

    Args:
        cores: What this process may use.
        of_host: Cores of its host.
        num_ranks: Ranks there.
        environment: Of this process.
    """
    if cores > 1 or num_ranks == 1 or of_host // num_ranks < 2 or "OMPI_COMM_WORLD_SIZE" not in environment:
        return None
    return (
        f"mpirun bound each rank to one of {of_host} cores, so graphs are built and laid out by one thread a rank; "
        "mpirun --bind-to none gives them all"
    )


class RankResult:
    """What a run left on one rank: the fields of the vertices it owns, and the run's end.

    Attributes:
        fields: [num_owned] each, aligned with `gids`.
        kept_on_edges: Edge states, aligned with `edge_ends`.
        reason: `"converged"`, `"stopped"` or `"max_supersteps"`.
        stats: One entry a superstep; the same supersteps on all ranks.
        aggregators: The values after the last superstep.
        trace: What was recorded of traced vertices on this rank; None where the engine records none.
        saves: One entry a state log.
        ranks: What each rank ran, by rank.
        leases: When each lease began (`time.perf_counter()`), and how many supersteps it ran.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        engine: Engine,
        edge_names: Sequence[str],
        reason: Reason,
        stats: StatsLog,
        saves: Sequence[SaveStats] = (),
        ranks: Sequence[RankFacts] = (),
        leases: Sequence[tuple[float, int]] = (),
    ) -> None:
        self._subgraph = subgraph
        self.fields = engine.fields()
        self.reason: Reason = reason
        self.stats = stats
        self.saves = tuple(saves)
        self.ranks, self.leases = tuple(ranks), tuple(leases)
        self.kept_on_edges = {name: engine.edge_state(name) for name in edge_names}
        self.aggregators = engine.aggregates.by_name()
        self.trace = engine.traced

    @property
    def gids(self) -> NDArray[np.int64]:
        """[num_owned], ascending."""
        return self._subgraph.sorted_gids

    @property
    def edge_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Gids of the owned vertices and of the other ends of their out-edges; each vertex's in ascending order."""
        return self._subgraph.sources_of_edges(), self._subgraph.targets_of_edges()

    def oids(self, graph: Graph) -> NDArray[Any]:
        """Return the users' ids of `gids`, made once a partition. Collective."""

        def make() -> NDArray[Any]:
            oids = graph.ids.to_oids(self.gids)
            oids.flags.writeable = False
            return oids

        return self._subgraph.derived("oids", make)


@dataclass(frozen=True)
class Saving:
    """How a run saves its state.

    Attributes:
        checkpoint: When, and where.
        program: The program as the user made it: its vertex ids are the user's.
        precision: The array type of Python's `float`.
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
        graph: As given; it may be replaced by another form of it before the run.
        rank_on_host: This rank's number among those of its host.
        num_threads: The threads that this rank uses.
    """

    def __init__(self, graph: Graph, threads: int | None) -> None:
        self._group, self.graph = graph.group, graph
        if graph.group.size == 1:
            self.rank_on_host, self.num_threads = 0, threads or available_cores()
            return
        # Asked for once a graph: a collective takes some 30 microseconds, in each of thousands of small runs.
        hosts: list[str] = graph.derived("hosts of ranks", self._find_hosts)
        self.rank_on_host = hosts[: self._group.rank].count(platform.node())
        share = max(1, available_cores() // hosts.count(platform.node()))
        self.num_threads = threads or share

    def _find_hosts(self) -> list[str]:
        """Return the host of each rank; say it where the launcher leaves most of a host's cores idle. Collective."""
        hosts = self._group.all_gather(platform.node())
        here = hosts.count(platform.node())
        note = bound_cores(available_cores(), os.cpu_count() or 1, here, os.environ)
        if note and self._group.rank == 0:
            log.warning(note)
        return hosts

    def run(
        self,
        program: Vertex,
        executable: Executable,
        *,
        method: str | PartitionFunction,
        options: RunOptions,
        max_supersteps: int | None,
        on_progress: Callable[[Sequence[SuperstepStats]], None] | None,
        saving: Saving | None = None,
        faults: Faults | None = None,
        transport: Literal["auto", "mpi", "nccl", "peer"] = "auto",
    ) -> RankResult:
        """Run a program from superstep 0, or from a log, to its end. Collective.

        Args:
            program: The program, vertex ids in it as compute() sees them.
            executable: The same, made ready by an engine.
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
        limits = _UNWATCHED if faults is None else faults
        own_logs: contextlib.AbstractContextManager[None] = _NOTHING
        if saving is not None:
            from sigps.system.checkpoint.lock import locked

            own_logs = locked(saving.checkpoint.folder, self._group, type(saving.program).__qualname__)
        with self._group.status.limits(limits.silent_seconds, limits.superstep_seconds), own_logs:
            status = self._group.status
            with status.during("preparing the run"):
                state_log, found = self._logs(saving, max_supersteps, options.initial)
                stats = StatsLog()
                if found is not None:
                    from sigps.system.checkpoint.resume import stats_of

                    stats.extend(stats_of(found))
                registrations = self._register(program, executable, options, saving)
                chosen = self._transport(executable, registrations, transport, found)
                options = self._options(options, registrations, chosen, faults)
                master = None
                if self._group.rank == 0:
                    checkpoint = saving.checkpoint if saving else None
                    master = _master(max_supersteps, on_progress, checkpoint, stats)
                needs = self._needs(program, executable, options)
                capacities = tuple(capacity_of(rank) for rank in registrations)
            with status.during("partitioning"):
                assignment, subgraph = partition_of(self.graph, method, capacities, needs, self.num_threads)
            status.record_log(_last_log(state_log))
            if state_log is not None:
                state_log.on_whole = status.record_log
            with (
                Threads(self.num_threads) as threads,
                _naming_the_log(state_log) if state_log is not None else _NOTHING,
                status.during("running"),
            ):
                with spent_on("transfer"):
                    exchange = self._exchange(assignment, subgraph, chosen)
                    context = RunContext(program, executable, subgraph, exchange, threads, options)
                    worker = Worker(context)
                    if found is None:
                        self._begin(worker, context, registrations)
                    elif saving is not None:
                        self._restore(worker, saving, found, assignment)
                leases: list[tuple[float, int]] = []
                reason = self._follow(worker, master, stats, state_log, leases)
                ranks = ranks_of_run(self._group, executable.spec, registrations, worker.subgraph)
                kept = [f.name for f in program.declaration.edge_states]
                with spent_on("answer"):
                    saves = state_log.saves if state_log else ()
                    return RankResult(
                        worker.subgraph, worker.engine, kept, reason, stats, saves, ranks, leases
                    )

    def _register(
        self, program: Vertex, executable: Executable, options: RunOptions, saving: Saving | None
    ) -> list[dict[str, Any]]:
        """Return what each rank says of itself, by rank. Collective.

        Raises:
            ConfigError: If ranks on these devices cannot work together.
        """
        alone = self._group.size == 1
        facts = executable.spec.facts_of_rank(self.rank_on_host, self.num_threads, alone=alone)
        if alone:
            return [facts]
        registrations = self._group.all_gather(facts)
        in_fixed_order = options.deterministic or bool(saving and saving.resumes)
        _check_mixture(
            [rank["device"] for rank in registrations],
            executable.program,
            has_fixed_order=in_fixed_order or program.declaration.has_master,
        )
        return registrations

    def _transport(
        self,
        executable: Executable,
        registrations: Sequence[dict[str, Any]],
        asked: Literal["auto", "mpi", "nccl", "peer"],
        found: Manifest | None,
    ) -> Transport:
        """Choose how records cross between ranks; the same on all."""
        program = executable.program
        chosen = choose_transport(registrations, asked, by_hosts=program is not None and needs_hosts(program))
        is_direct = program is not None and program.delivery is Delivery.DIRECT
        if chosen == "nccl" and found and found.in_flight == "messages" and not is_direct:
            return "mpi"  # a CPU core reads what an interpreter sent, before a GPU goes on
        return chosen

    def met(
        self,
        program: Vertex,
        executable: Executable,
        options: RunOptions,
        transport: Literal["auto", "mpi", "nccl", "peer"],
        faults: Faults | None,
    ) -> RunOptions:
        """Return how a run goes among these ranks that is led by the caller. Arguments as `run`'s. Collective."""
        registrations = self._register(program, executable, options, None)
        chosen = self._transport(executable, registrations, transport, None)
        return self._options(options, registrations, chosen, faults)

    def _options(
        self,
        options: RunOptions,
        registrations: Sequence[dict[str, Any]],
        transport: Transport,
        faults: Faults | None,
    ) -> RunOptions:
        """Return how the run goes among these ranks."""
        if self._group.size == 1:
            return options
        patience = math.inf
        if faults is not None:
            patience = min(_SILENCES * faults.silent_seconds, faults.superstep_seconds)
        has_order = all(transport in r["priority_by"] for r in registrations)
        asynchronous = options.asynchronous if has_order else False
        return options._replace(has_peers=transport == "peer", patience=patience, asynchronous=asynchronous)

    def _needs(self, program: Vertex, executable: Executable, options: RunOptions) -> Needs:
        """Return what the engine reads of a partition in this run."""
        needs = executable.spec.needs(executable, program, self.graph, self._group.size)
        if options.asynchronous is True:  # its blocks are of neighbouring ids, which edges join
            needs = needs._replace(degree_order=False)
        if options.deterministic:  # floats may have to add up in the order of gids
            needs = needs._replace(ascending=False)
        if options.device_memory is not None:
            needs = needs._replace(gpu=None)
        return needs

    def _begin(self, worker: Worker, context: RunContext, registrations: Sequence[dict[str, Any]]) -> None:
        """Give states what they begin with, where that is no number of the class. Collective."""
        self._count_measures(worker, context, registrations)
        for name, values in context.options.initial.items():
            worker.engine.begin(name, worker.subgraph.of_owned(values))
        for name, values in context.options.columns.items():
            worker.engine.begin(name, self._own_values(values, worker))

    def _restore(self, worker: Worker, saving: Saving, found: Manifest, assignment: Assignment) -> None:
        """Go on from a state log. Collective.

        Raises:
            StateLogError: If it does not fit the program.
        """
        from sigps.system.checkpoint.resume import read_snapshot

        with self._group.status.during("reading the state log"):
            folder = saving.checkpoint.folder
            snapshot = read_snapshot(folder, found, self._group, assignment)
            try:
                worker.engine.restore(snapshot)
            except (TypeError, ValueError, IndexError) as error:
                raise StateLogError(
                    f"the state log {folder / found.name} does not fit its program: {error}"
                ) from error

    def _count_measures(
        self, worker: Worker, context: RunContext, registrations: Sequence[dict[str, Any]]
    ) -> None:
        """Give states what they begin with, where that is a measure of the graph. Collective.

        Devices count where all ranks have one of the same kind: each a share, or one all, from the edges that it has.
        """
        measures = {f.name: repr(f.measure) for f in context.program.declaration.states if f.measure}
        if not measures or worker.engine.begin_measured(measures, directed=self.graph.directed):
            return
        is_one_kind = len({rank["device"] for rank in registrations}) == 1
        counting = context.executable.spec if is_one_kind else ENGINES[-1]
        from sigps.graph.measures.neighbourhood import neighbourhoods

        found = neighbourhoods(self.graph, counting.count_share(context.executable, context.threads))
        for field, measure in measures.items():
            worker.engine.begin(field, getattr(found, measure)[worker.subgraph.owned_gids])

    def _own_values(self, values: NDArray[Any], worker: Worker) -> NDArray[Any]:
        """Return the values of own vertices by local id, of those of each rank's rows. Collective."""
        if self._group.size == 1:
            return worker.subgraph.of_owned(values)
        return values_of(self.graph, np.ascontiguousarray(values), worker.subgraph.owned_gids)

    def _logs(
        self, saving: Saving | None, max_supersteps: int | None, initial: Mapping[str, NDArray[Any]]
    ) -> tuple[StateLog | None, Manifest | None]:
        """Return what this run writes to, and the log that it goes on from."""
        if saving is None:
            return None, None
        from sigps.system.checkpoint.resume import Identity, find_log
        from sigps.system.checkpoint.state_log import StateLog

        identity = Identity.of(saving.program, self.graph, saving.precision, initial)
        checkpoint, found = saving.checkpoint, None
        if saving.resumes:
            found = find_log(checkpoint.folder, identity, self._group, max_supersteps)
        if saving.resumes and self._group.rank == 0:
            where = (
                f"from {checkpoint.folder / found.name}" if found else "at superstep 0: there is no state log"
            )
            log.info("the run goes on %s", where)
        resumed = found.run if found else None
        return StateLog(checkpoint, identity, self.graph, saving.program, saving.device, resumed), found

    def _follow(
        self,
        worker: Worker,
        master: Master | None,
        stats: StatsLog,
        state_log: StateLog | None,
        leases: list[tuple[float, int]],
    ) -> Reason:
        """Do what the master orders until the run is over; return why it is. Adds to `leases`."""
        status, engine, turns = self._group.status, worker.engine, current_turns()
        if turns is not None and master is not None and engine.limit_time(turns.lease_seconds, turns.awaited):
            master.let_engine_end_leases()

        def save() -> bool:
            assert state_log is not None
            if not stats:
                return True  # it goes on from superstep 0
            with status.during("writing a state log"):
                state_log.save(engine.save, stats, engine.traced)
                state_log.close(engine.traced)
            return bool(state_log.saves) and state_log.saves[-1].superstep == len(stats)

        while True:
            order = self._group.broadcast(master.next_order() if master else {})
            if order["verb"] == "stop":
                if state_log is not None:
                    with status.during("finishing the state log"):
                        state_log.close(engine.traced)
                reason: Reason = order["reason"]
                return reason
            if order["verb"] == "save":
                assert state_log is not None
                with status.during("writing a state log"):
                    state_log.save(engine.save, stats, engine.traced)
                continue
            if turns is not None:
                turns.wait(save if state_log is not None else None)
            waits = status.waiting if engine.detects_lost_ranks else _NOTHING
            with spent_on("supersteps"), status.in_supersteps(lambda: engine.superstep), waits:
                began = time.perf_counter()
                outcome = worker.lease(order["supersteps"])
            stats.extend(outcome.stats)
            leases.append((began, len(outcome.stats)))
            if turns is not None and outcome.ended:
                turns.end()
            if master is not None:
                master.record(outcome.ended, outcome.stats, stopped=outcome.stopped)

    def _exchange(self, assignment: Assignment, subgraph: Subgraph, transport: Transport) -> Exchange:
        group = self._group
        if group.size == 1 and transport != "nccl":
            return NoExchange(DataLocator(self.graph, assignment, subgraph).gids)
        from sigps.device import nccl
        from sigps.system.message_center import MessageCenter

        if transport == "nccl":
            located = DeviceLocator(self.graph, assignment, subgraph)
            return MessageCenter(group, subgraph, located, nccl.connect(group))
        return MessageCenter(group, subgraph, DataLocator(self.graph, assignment, subgraph))


def _master(
    max_supersteps: int | None,
    on_progress: Callable[[Sequence[SuperstepStats]], None] | None,
    checkpoint: Checkpoint | None,
    stats: StatsLog,
) -> Master:
    """Return the master of a run, whose leases are as long as the turns of a device that other runs share."""
    turns = current_turns()
    return Master(
        max_supersteps,
        on_progress,
        checkpoint,
        stats,
        lease_seconds=turns.lease_seconds if turns else None,
        first_lease=turns.first_lease() if turns else 1,
    )


def _check_mixture(
    devices: Sequence[str], program: VertexProgram | None, *, has_fixed_order: bool = False
) -> None:
    """Refuse ranks on devices of different kinds that do not pass the same things on, in the same order.

    Args:
        devices: Each rank's.
        program: What the compiler derived; None where this rank interprets.
        has_fixed_order: Whether the run is deterministic, goes on from a log, or has master compute.
    """
    kinds = sorted(set(devices))
    if len(kinds) == 1:
        return
    hint = "Run all ranks on one kind of device"
    if program is None or not all(engine_of(kind).is_compiled for kind in kinds):
        raise ConfigError(
            f"ranks on {' and '.join(kinds)} cannot work together: one interprets, and that is slow. {hint}"
        )
    if has_fixed_order:
        raise ConfigError(
            f"ranks on {' and '.join(kinds)} cannot work together in a run that is deterministic, goes on from a "
            f"log, or has a master() or next_phase(). {hint}"
        )
    if program.delivery is Delivery.DIRECT and program.consumption is not Consumption.LISTED:
        raise ConfigError(
            f"ranks on {' and '.join(kinds)} cannot work together where what send_to() sends combines: "
            f"a CPU combines it before it crosses. {hint}"
        )


def _last_log(state_log: StateLog | None) -> str | None:
    found = state_log.find_last() if state_log is not None else None
    return None if found is None else str(found)


@contextlib.contextmanager
def _naming_the_log(state_log: StateLog) -> Iterator[None]:
    """Let a failure say from where the run can go on, when what is being written has been finished."""
    try:
        yield
    except Exception as error:
        state_log.settle()
        if name := _last_log(state_log):
            error.add_note(f"The last log is {name}: continue with --resume")
        raise
