"""The contract between engines and the rest of sigps: `Engine` runs, `EngineSpec` says what an engine is.

An engine runs supersteps of one partition on one device. The system above it partitions the graph, decides how long
to run and collects what a run left; it knows engines only by the two classes of this page. An engine is a folder of
`sigps/engine/` with a `spec.py`, and one line of `table.py`; nothing else names it.

A run on one rank, in this order:

    spec.obstacle(program, facts)      may the program run there at all?
    spec.compile(program, graph, ...)  once the graph's column types are known
    spec.needs(code, graph, ...)       what of a partition it reads; the system lays that out, or finds it laid out
    engine = spec.make(context)        allocates what the run keeps; refuses with DeviceError what does not fit
    engine.begin_measured / begin      states that begin with values of the graph, or
    engine.restore(snapshot)           ... the state of a log
    engine.lease(n), engine.lease(n)   until an outcome says that the run has ended; save() between two leases
    engine.fields(), edge_state(...)   what the run left; valid after the engine is gone

Engines without supersteps. An asynchronous engine runs the same verbs: a lease of n is n rounds, of whatever
length the engine gives a round; `Outcome.stats` has an entry for each round that ended, with
`direction="async"`, `active` the number of vertex runs and `messages` the edges that were read. It ends a lease with
fewer entries than asked for only where the run has ended. Nothing is under way between rounds: `save()` has all last
records in flight, so that supersteps or rounds go on from its snapshot.

Engines whose edges are never all present. A streaming engine asks in `needs` for blocks, and gets a partition whose
edge lists are `None`; it reads blocks from the store itself. Its supersteps have the usual entries: `bytes_moved` stays
what crossed between ranks, and bytes read from host memory or disk are a field of their own in its entries.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.device.cpu import Threads
from sigps.device.cuda import Gpu
from sigps.engine.aggregates import Aggregates
from sigps.engine.direction import Direction, Schedule
from sigps.engine.exchange import Exchange
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import Outcome, StatsLog
from sigps.graph.graph import Graph
from sigps.graph.measures.neighbourhood import CountShare, count_on_threads
from sigps.model.vertex import Vertex

if TYPE_CHECKING:
    from sigps.graph.packing.unpacker import PackedRows

__all__ = [
    "DeviceKind",
    "Engine",
    "EngineSpec",
    "Executable",
    "LaneRun",
    "LanesFailedError",
    "ManyRuns",
    "Needs",
    "RunContext",
    "RunFacts",
    "RunOptions",
    "Share",
    "by_gid",
]


DeviceKind = Literal["h200", "cpu"]
"""The kinds of device whose times `sigps plan` predicts."""


class Engine(Protocol):
    """Supersteps of a vertex program on one partition, from superstep 0, or a snapshot, to the end.

    Verbs marked collective are called on all ranks, in the same order; the others involve this rank alone. All wait
    for the device before they return, except `fields`. Between `lease` calls the device is idle.

    Attributes:
        aggregates: Values of aggregators and shared values; between leases those that the next superstep reads.
        traced: What was recorded of traced vertices, in order; None where the engine traces nothing.
        detects_lost_ranks: Whether a lease itself notices that another rank does not come, and raises ExchangeError.
            Then the host may be silent for a whole lease, and is not counted as computing too long.
    """

    aggregates: Aggregates
    traced: list[dict[str, Any]] | None
    detects_lost_ranks: bool

    @property
    def superstep(self) -> int:
        """The next superstep to run, counted from 0."""
        ...

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Set the initial values of a state field: [num_owned] by local id. Only before superstep 0."""
        ...

    def begin_measured(self, measures: Mapping[str, str], *, directed: bool) -> bool:
        """Set fields to measures of the graph, where the engine counts these itself from the edges that it has.

        Only before superstep 0.

        Args:
            measures: A measure (an attribute of `Neighbourhoods`) by the name of a field.
            directed: Whether a stored edge of the graph is one arc.

        Returns:
            Whether it did; if not the caller counts, and calls `begin`.

        Raises:
            DeviceError: If the device has too little memory to count; it names the bytes.
        """
        ...

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the run ends, or for so many supersteps, at least 1. Collective.

        Raises:
            ComputeError: If arithmetic of compute() has no result.
            ExchangeError: If a message names a vertex that is not in the graph, or another rank is lost.
            DeviceError: If messages need more memory than the device has.
        """
        ...

    def limit_time(self, seconds: float, awaited: NDArray[np.uint32]) -> bool:
        """End each lease before so many seconds are over, but for its first superstep; return whether this engine can.

        One that cannot is given as many supersteps as should take so long.

        Args:
            seconds: How many.
            awaited: [1]; while it is not 0 a lease ends after the superstep that it is in, or soon after.
        """
        ...

    def save(self) -> Snapshot:
        """Return copies of what this partition needs to go on; between leases, where `RunOptions.saves` was set."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from this partition's part of a snapshot of any engine. Collective; before the first lease.

        Raises:
            DeviceError: If what is in flight has a form that this engine cannot read.
        """
        ...

    def fields(self) -> Mapping[str, NDArray[Any]]:
        """Return all state fields, [num_owned] each in ascending order of gids.

        An engine may return a mapping that copies a field from the device when it is first read.
        """
        ...

    def edge_state(self, name: str) -> Any:
        """Return what is kept on out-edges, in the order of `Subgraph.outgoing`: an array, or what becomes one."""
        ...


_NO_VALUES: Mapping[str, NDArray[Any]] = MappingProxyType({})


class RunOptions(NamedTuple):
    """How a run goes; the same on all ranks.

    Attributes:
        deterministic: Whether floating-point results must not depend on ranks, threads and directions.
        forced: A direction to use always, or None.
        precision: The array type of Python's `float`.
        asynchronous: Whether values may be sent out of turn where the result is provably the same; True where there
            are to be no barriers at all.
        trace: Ids, as compute() sees them, of vertices to record.
        saves: Whether `save` is called between leases.
        has_peers: Whether GPUs write into each other's memory.
        patience: Seconds that a GPU waits for another.
        schedule: What a work item of a superstep's messages is.
        cache_bytes: What a run that streams may keep of its edges, unpacked.
        value_bytes: What it may keep in memory of values on edges; the others are in a file. None for all.
        device_memory: The bytes that it may take of each GPU; None: all there are.
        stream: Whether edges may stay on the host of a GPU: `"auto"`, where graph and run do not fit.
        host_memory: The bytes that packed pages may take of the host's memory beside a GPU; None for no limit.
        transfer: How edges on the host of a GPU come to it.
        tiles: Whether in-edges lie in tiles on a GPU: `"auto"`, where that pays.
        initial: The values that states begin with, where they are given: [num_vertices] by gid, by name.
        columns: Those that the graph's vertex columns give: of this rank's rows, [num_rows], by name of the state.
    """

    deterministic: bool = False
    forced: Direction | None = None
    precision: Literal["single", "double"] = "double"
    asynchronous: bool | Literal["auto"] = False
    trace: tuple[int, ...] = ()
    saves: bool = False
    has_peers: bool = False
    patience: float = math.inf
    schedule: Schedule = "vertex"
    cache_bytes: int = 0
    value_bytes: int | None = None
    device_memory: int | None = None
    stream: Literal["auto", "always", "never"] = "auto"
    host_memory: int | None = None
    transfer: Literal["auto", "bulk", "rows"] = "auto"
    tiles: Literal["auto", "always", "never"] = "auto"
    initial: Mapping[str, NDArray[Any]] = _NO_VALUES
    columns: Mapping[str, NDArray[Any]] = _NO_VALUES


class RunFacts(NamedTuple):
    """What is known of a run before anything is compiled, laid out or allocated.

    Attributes:
        num_vertices: Of the whole graph.
        num_edges: Stored edges of the whole graph.
        num_ranks: Ranks that share it.
        deterministic: As in `RunOptions`.
        resumes: Whether the run goes on from a state log, which another engine may have written.
        schedule: As in `RunOptions`.
        without_barriers: Whether the run is to have no barriers (`asynchronous=True`).
    """

    num_vertices: int
    num_edges: int
    num_ranks: int = 1
    deterministic: bool = False
    resumes: bool = False
    schedule: Schedule = "vertex"
    without_barriers: bool = False


class Needs(NamedTuple):
    """What an engine reads of a partition. In-edges of owned vertices, ghosts and degrees are always there.

    Attributes:
        out_edges: Whether compute() walks out-edges, so that `Subgraph.outgoing` must be laid out.
        neighbor_rows: Whether it reads rows of neighbours, remote ones included.
        streamed: Whether edges stay in the packed store that the graph was opened from: then there is nothing of them.
        degree_order: Whether owned vertices are numbered by descending in-degree on one rank too. (On several they
            always are.)
        ascending: Whether in-edges of a vertex may be in the order of local ids then, which is faster.
        gpu: The GPU that may put a part in order; None where cores do.
    """

    out_edges: bool = False
    neighbor_rows: bool = False
    degree_order: bool = False
    ascending: bool = False
    streamed: bool = False
    gpu: Gpu | None = None


class Executable(NamedTuple):
    """A program made ready by an engine's `compile`, for one graph's column types and this rank's device.

    Attributes:
        spec: The engine.
        program: What the compiler derived; None where the class runs as it is.
        code: What the engine's own modules run; nobody else looks inside.
    """

    spec: EngineSpec
    program: VertexProgram | None
    code: Any


class RunContext(NamedTuple):
    """All that an engine is made from.

    Attributes:
        program: The program with its parameters, vertex ids among them as compute() sees them.
        executable: The same, made ready.
        subgraph: The partition, with what `needs` named.
        exchange: The way to the other partitions.
        threads: Threads of this rank on the CPU.
        options: How the run goes.
    """

    program: Vertex
    executable: Executable
    subgraph: Subgraph
    exchange: Exchange
    threads: Threads
    options: RunOptions

    def params(self) -> tuple[Any, ...]:
        """Return the values of the compiled program's parameters, in its order: `Field.argument` of each."""
        derived = self.executable.program
        assert derived is not None
        precision = self.options.precision
        return tuple(f.argument(getattr(self.program, f.name), precision) for f in derived.params)


@dataclass(frozen=True)
class Share:
    """The part of a graph that one rank runs, in numbers.

    Attributes:
        num_vertices: Owned vertices.
        num_edges: Stored edges into them, or out of them: a rank's share of both.
        num_columns: Edge columns.
        directed: Whether the graph is.
        num_ranks: Ranks that share it.
        edges_everywhere: Stored edges of the whole graph.
    """

    num_vertices: int
    num_edges: int
    num_columns: int
    directed: bool
    num_ranks: int
    edges_everywhere: int


@dataclass(frozen=True, eq=False)
class ManyRuns:
    """Runs of one class, and one compiled code, that an engine shall run side by side.

    Attributes:
        programs: The class with the parameters of each run, vertex ids among them as compute() sees them.
        begins: The values with which states begin, [num_owned] by local id.
        max_supersteps: Where each stops at the latest.
        wanted: The fields of results; None for all.
        ranks_here: The ranks of this host that run some of their own, and share its memory.
        rank_on_host: This rank's number among them.
        on_ready: Called once, when what all share is compiled and allocated, before the first superstep.
    """

    programs: Sequence[Vertex]
    begins: Mapping[str, NDArray[Any]]
    max_supersteps: int | None
    wanted: Container[str] | None
    ranks_here: int = 1
    rank_on_host: int = 0
    on_ready: Callable[[], None] = lambda: None


@dataclass(frozen=True, eq=False)
class LaneRun:
    """What one of several runs left that an engine ran side by side.

    Attributes:
        fields: [num_vertices] each, in ascending order of gids.
        reason: Why it ended.
        stats: One entry a superstep.
        aggregators: The values after the last superstep.
        kept_on_edges: Edge states, by name, in the order of the graph's rows.
    """

    fields: Mapping[str, NDArray[Any]]
    reason: Literal["converged", "max_supersteps", "stopped"]
    stats: StatsLog
    aggregators: Mapping[str, Any]
    kept_on_edges: Mapping[str, Any] = field(default_factory=dict)


class LanesFailedError(Exception):
    """Arithmetic had no result in one of several runs, or it named no vertex; by itself it says which, and where."""


class EngineSpec(ABC):
    """What an engine is: a stateless object, made without importing LLVM, CuPy or mpi4py.

    Attributes:
        device: The name by which `device=` and `engine: {device: ...}` ask for it.
        is_compiled: Whether it runs what the compiler derived; else the class as it is.
        traces: Whether it records vertices (`trace=`).
        crosses_devices: Whether several ranks pay only where records cross from device to device.
        pays_from_edges: Stored edges a rank from which `device="auto"` considers it.
        shares_runs: Whether ranks may each have the whole graph, and run some of many runs by themselves.
        predicted_as: The kind of device for which `sigps plan` predicts its times; None where it predicts none.
    """

    device: str
    is_compiled: bool = True
    traces: bool = False
    crosses_devices: bool = False
    pays_from_edges: int = 0
    shares_runs: bool = False
    predicted_as: DeviceKind | None = None

    def missing(self) -> str:
        """Say what this machine lacks to run programs there; empty where it lacks nothing."""
        return ""

    def check_machine(self) -> None:
        """Raise DeviceError where the machine lacks something; it says what to install."""
        return

    def first_device(self) -> int:
        """Return the number from which this thread counts devices of the kind: what is made for one is no other's."""
        return 0

    def obstacle(self, program: VertexProgram | None, facts: RunFacts) -> str | None:
        """Name what of a run the engine cannot do, whoever asked for it; None where it can do all of it. Pure.

        Args:
            program: What the compiler derived; None for an engine that is not compiled.
            facts: The run.
        """
        return None

    def reasons_against(
        self, program: VertexProgram, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Iterator[str]:
        """Yield why `device="auto"` should not choose it, in the order of what it costs to know; empty texts count not.

        The caller stops at the first reason. An engine that is never chosen unasked yields that at once.
        """
        yield f"device={self.device!r} is chosen by name only"

    @abstractmethod
    def compile(
        self, program: VertexProgram | None, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Executable:
        """Make a program ready for the graph's column types and for this rank's device. Local.

        Raises:
            CompileError: If it cannot be compiled for that device.
            ConfigError: If it cannot run with the options in `facts`; it says which.
            DeviceError: If the device is not there.
        """

    @abstractmethod
    def needs(self, executable: Executable, program: Vertex, graph: Graph, num_ranks: int) -> Needs:
        """Say what of a partition a run reads, on so many ranks. May be asked once a run."""

    @abstractmethod
    def make(self, context: RunContext) -> Engine:
        """Make the engine of a run: allocate states and messages. Collective.

        Raises:
            DeviceError: If the run does not fit; it names the bytes and the ways out.
        """

    @property
    def streaming(self) -> EngineSpec | None:
        """The engine of the same device whose edges stay in a packed store; None where there is none."""
        return None

    def explained(self, program: VertexProgram, graph: Graph) -> dict[str, str]:
        """Return what a run would choose by counts of a graph of one process, and why, in rows of a name and a text."""
        return {}

    def streaming_obstacle(self, program: VertexProgram, graph: Graph, options: RunOptions) -> str:
        """Say why an engine that streams cannot run a program; empty where it can. Pure."""
        return ""

    def bytes_beside_edges(
        self,
        program: VertexProgram,
        graph: Graph,
        options: RunOptions,
        rows: PackedRows,
        num_ranks: int = 1,
    ) -> dict[str, int]:
        """Return what a run takes of the device's own memory beside edges that stream, by what it is for. Pure.

        Args:
            program: The program.
            graph: The graph.
            options: How the run goes.
            rows: Those of its rows that a rank has.
            num_ranks: How many ranks share it.
        """
        return {}

    def bytes_of_values(self, program: VertexProgram, num_edges: int, num_ranks: int) -> tuple[int, ...]:
        """Return the bytes of arrays of values on edges that stream, each of which may be on the device or its host.

        On several ranks they are the most that there may be, with copies of what others have on edges that lead here.
        """
        return ()

    def room(
        self,
        program: VertexProgram,
        graph: Graph,
        options: RunOptions,
        *,
        num_ranks: int = 1,
        rank_on_host: int = 0,
    ) -> tuple[int, int]:
        """Return the bytes that a rank needs of the device's own memory with all its edges there, and has.

        Both are 0 where that memory is the host's. The first is 0, too, where edges of an earlier run may stay there.
        """
        return 0, 0

    def lanes_obstacle(
        self,
        program: VertexProgram | None,
        facts: RunFacts,
        options: RunOptions,
        num_runs: int,
        num_threads: int,
    ) -> str:
        """Say why so many runs of a program cannot go side by side on one rank; empty where they can. Pure."""
        return f"device={self.device!r} has one run at a time"

    def run_lanes(self, context: RunContext, many: ManyRuns) -> Iterator[LaneRun]:
        """Run programs side by side on one rank; yield their results in order.

        Args:
            context: As for `make`; its program is the first.
            many: The runs.

        Raises:
            LanesFailedError: If arithmetic of compute() has no result in one of them.
        """
        raise NotImplementedError(f"device={self.device!r} has no lanes")

    def num_bytes(self, program: VertexProgram, share: Share) -> dict[str, int]:
        """Return what a run takes of the device's own memory, by purpose; empty where that is the host's. Pure."""
        return {}

    def memory_of_rank(self, rank_on_host: int, ranks_here: int) -> int | None:
        """Return what a rank may take of the device's own memory, which others share; None where that is the host's.

        Args:
            rank_on_host: This rank's number among those of its host.
            ranks_here: The ranks of this host.
        """
        return None

    def held_bytes(self) -> int:
        """Return what this process holds of the device's own memory; 0 where that is the host's."""
        return 0

    def facts_of_rank(self, rank_on_host: int, num_threads: int, *, alone: bool) -> dict[str, Any]:
        """Return what a rank says of itself to the master, msgpack's types only.

        Keys: `device`; `cores`, its threads; `priority_by`, the transports by which a run in priority order is
        possible; of a GPU `gigabytes_per_second` of its memory, and what `system.transport` chooses by.

        Args:
            rank_on_host: This rank's number among those of its host.
            num_threads: Its threads.
            alone: Whether there is one rank.
        """
        return {"device": self.device, "cores": num_threads, "priority_by": ["mpi", "nccl", "peer"]}

    def count_share(self, executable: Executable, threads: Threads) -> CountShare:
        """Return the function that counts a share of the measures that states may begin with."""
        return functools.partial(count_on_threads, threads)


def by_gid(subgraph: Subgraph, fields: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return fields, [num_owned] each by local id, in ascending order of gids; no copies where that is the same."""
    if subgraph.gids is None:
        return dict(fields)
    order: NDArray[np.int64] = subgraph.by_gid
    return {name: values[order] for name, values in fields.items()}
