"""A run before it runs: options checked, engine chosen, program compiled, ids looked up."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sigps.account import spent_on
from sigps.engine.contract import Executable, RunFacts, RunOptions
from sigps.engine.direction import Schedule
from sigps.engine.fixed_points import may_reorder
from sigps.engine.stats import SuperstepStats
from sigps.engine.table import engine_of, tracing_devices
from sigps.errors import ConfigError, GraphError
from sigps.graph.graph import Graph
from sigps.group import together
from sigps.host_memory import bytes_of
from sigps.job.device_choice import choose_engine
from sigps.job.importing import stop_if_imported
from sigps.job.initial import check_ids, column_values, initial_values, with_initial
from sigps.job.result import Result
from sigps.job.streaming import Stream, Transfer, decide_streaming, device_limit
from sigps.model.vector import VectorType
from sigps.model.vertex import Vertex

if TYPE_CHECKING:
    from sigps.compiler.program import VertexProgram
    from sigps.group.limits import Faults
    from sigps.system.checkpoint.state_log import Checkpoint
    from sigps.system.worker_manager import WorkerManager

__all__ = [
    "Precision",
    "Prepared",
    "bind_all",
    "bind_ids",
    "check_checkpoint",
    "check_device",
    "check_program",
    "check_schedule",
    "check_without_barriers",
    "precision_of",
    "prepared",
    "seeded",
    "turned",
    "warn_of_rounding",
]

log = logging.getLogger(__name__)

Precision = Literal["auto", "single", "double"]
"""As a run is asked for: `"auto"` is what the program declares."""


class Prepared(NamedTuple):
    """A run whose options are good, made ready for a graph and a device.

    Attributes:
        program: The program with the run's seed; vertex ids in it are the user's.
        bound: The same, vertex ids in it as compute() sees them.
        graph: The graph with its edges in the directions in which the program takes them.
        manager: This rank.
        facts: What is known of the run.
        executable: The program, compiled for its engine.
        options: How it goes.
        why_device: Why it is this engine.
    """

    program: Vertex
    bound: Vertex
    graph: Graph
    manager: WorkerManager
    facts: RunFacts
    executable: Executable
    options: RunOptions
    why_device: str


def prepared(
    program: Vertex,
    graph: Graph,
    *,
    device: str,
    max_supersteps: int | None,
    deterministic: bool,
    trace: Iterable[Any] | None,
    gather: bool,
    schedule: Schedule,
    direction: Literal["auto", "push", "pull"],
    precision: Precision,
    asynchronous: bool | Literal["auto"],
    threads: int | None,
    transport: Literal["auto", "mpi", "nccl", "peer"],
    progress: Callable[[Sequence[SuperstepStats]], None] | bool | None,
    checkpoint: Checkpoint | None,
    resume: bool,
    faults: Faults | None,
    seed: int,
    initial: Mapping[str, Any] | Result | None,
    host_memory: int | str | None,
    device_memory: int | str | None,
    stream: Stream,
    transfer: Transfer,
    tiles: Literal["auto", "always", "never"],
) -> Prepared:
    """Check the options of a run, choose its engine, and compile the program; options and errors are those of `run`."""
    from sigps.group.limits import Faults
    from sigps.system.worker_manager import WorkerManager

    stop_if_imported()
    _check_options(max_supersteps, schedule, direction, precision, threads, transport, asynchronous, tiles)
    _check_kinds(
        graph,
        trace,
        progress,
        deterministic=deterministic,
        gather=gather,
        resume=resume,
    )
    together(lambda: check_checkpoint(checkpoint, resume, traces=trace is not None), graph.group)
    if asynchronous != "auto":
        asynchronous = bool(asynchronous)
    if not isinstance(faults, (Faults, type(None))):
        raise ConfigError(f"faults={faults!r} must be a sigps.Faults, or None")
    check_device(device)
    if trace is not None and device not in (able := tracing_devices()):
        raise ConfigError(f"trace= works on device={able[0]!r}; this run has {device!r}")
    program = seeded(program, seed)
    width = precision_of(program, precision)
    if isinstance(program, Vertex):
        given = together(lambda: initial_values(program, graph, initial, width), graph.group)
        program = with_initial(program, given)
    derived = check_program(program, device, width)
    check_schedule(schedule, direction, device, derived)
    if asynchronous is True:
        of_supersteps = {
            "max_supersteps": max_supersteps is not None,
            "schedule": schedule != "vertex",
            "direction": direction != "auto",
        }
        check_without_barriers(
            derived, graph, device, of_supersteps, deterministic=deterministic, saves=checkpoint is not None
        )
    if graph.num_vertices == 0:
        raise GraphError(
            "the graph has no vertices, so nothing can run. Check the file or the vertices= option"
        )
    manager = WorkerManager(graph, threads)
    limit = device_limit(device_memory, device, graph.group.size)
    options = RunOptions(
        deterministic=deterministic,
        forced=None if direction == "auto" else direction,
        precision=width,
        asynchronous=may_reorder(
            asynchronous, max_supersteps=max_supersteps, saves=checkpoint is not None, schedule=schedule
        ),
        saves=checkpoint is not None,
        schedule=schedule,
        initial=given,
        stream=stream,
        device_memory=limit,
        host_memory=bytes_of(host_memory, "host_memory")
        if host_memory is not None and device == "cuda"
        else None,
        transfer=transfer,
        tiles=tiles,
    )
    threads_of_ranks, devices = zip(*graph.group.all_gather((manager.num_threads, device)), strict=True)
    streams = decide_streaming(
        program, derived, graph, device, options, host_memory=host_memory, stream=stream,
        threads=threads_of_ranks, rank=graph.group.rank, rank_on_host=manager.rank_on_host,
        are_alike=len(set(devices)) == 1,
    )  # fmt: skip
    settles_pages = streams is not None and asynchronous is True and device == "cuda"
    if settles_pages:
        given_there = {"checkpoint": checkpoint is not None, "resume": resume, "deterministic": deterministic}
        of_pages = {"transfer": transfer != "auto", "host_memory": host_memory is not None}
        _check_settled_pages(derived, graph, given_there, of_pages)
    if streams is not None and graph.group.rank == 0:
        log.info("streaming: %s", streams)
    if streams is None:
        graph = manager.graph = turned(graph, program)
    bound = bind_ids(program, graph)
    if any(isinstance(f.type, VectorType) and f.is_vertex_id for f in bound.declaration.params):
        derived = check_program(bound, device, width)  # vectors are constants: strings are numbers only now
    check_ids(program, graph)
    _check_columns(derived, graph)
    if not streams:
        warn_of_rounding(program, graph, derived)
    columns = together(lambda: column_values(program, graph, width), graph.group)
    facts = RunFacts(
        graph.num_vertices,
        graph.num_edges,
        graph.group.size,
        deterministic,
        resume,
        schedule,
        without_barriers=asynchronous is True and not settles_pages,
    )
    asked = "cpu" if streams and device != "cuda" else device
    spec, why = choose_engine(asked, derived, graph, facts, rank_on_host=manager.rank_on_host)
    if streams:
        assert spec.streaming is not None
        spec, why = spec.streaming, "its edges are streamed"
    if tiles == "always":
        _check_tiles(spec.device, why, schedule, direction)
    with spent_on("compile"):
        executable = spec.compile(derived, graph, facts, manager.rank_on_host)
    seen = () if trace is None else tuple(_seen_ids(graph, list(trace), "trace="))
    if seen or columns or streams:
        cached, values = (streams.cached, streams.room_on_edges) if streams else (0, None)
        options = options._replace(trace=seen, columns=columns, cache_bytes=cached, value_bytes=values)
    return Prepared(program, bound, graph, manager, facts, executable, options, why)


def precision_of(program: object, asked: Precision) -> Literal["single", "double"]:
    """Return the precision of a run: as it is asked for, or what the program declares."""
    if asked != "auto":
        return asked
    return program.declaration.precision if isinstance(program, Vertex) else "double"


def seeded(program: Vertex, seed: int) -> Vertex:
    """Return a program whose random numbers follow a seed."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise ConfigError(f"seed={seed!r} must be a whole number from 0 to 2**63 - 1")
    if not isinstance(program, Vertex):  # which check_program says
        return program
    seeded = copy.copy(program)
    object.__setattr__(seeded, "random_seed", int(seed))
    return seeded


@spent_on("compile")
def check_program(program: Vertex, device: str, precision: Precision = "auto") -> VertexProgram | None:
    """Compile what can be compiled before any graph is read; None for the interpreter.

    Raises:
        CompileError: If compute() cannot be compiled.
    """
    if not isinstance(program, Vertex):
        hint = f": write {program.__name__}(...)" if isinstance(program, type) else ""
        raise ConfigError(f"run() takes an instance of a Vertex subclass, not {program!r}{hint}")
    if device != "auto" and not engine_of(device).is_compiled:
        return None
    from sigps.compiler.frontend.analysis import analyse

    return analyse(program, precision_of(program, precision))


def check_device(device: str) -> None:
    """Check that a device is known, and that programs can run on it where it is asked for by name.

    Raises:
        ConfigError: If there is no device of that name.
        DeviceError: If that device cannot run programs.
    """
    if device != "auto":
        engine_of(device).check_machine()


def check_schedule(schedule: str, direction: str, device: str, prepared: Any) -> None:
    """Check that a program, as `check_program` returned it, can run by a schedule on a device.

    Raises:
        ConfigError: If it cannot.
    """
    if schedule == "vertex":
        return
    if direction != "auto":
        raise ConfigError(
            f"direction={direction!r} is of schedule='vertex'; edges are neither pushed nor pulled"
        )
    if prepared is None:
        raise ConfigError(
            f"schedule={schedule!r} is of compiled code; device={device!r} goes from vertex to vertex. "
            "Use device='cpu', or schedule='vertex'"
        )
    if prepared.edge_obstacle is not None:
        raise ConfigError(
            f"{prepared.name} cannot run with schedule={schedule!r}: {prepared.edge_obstacle} "
            "(sigps explain tells why). Use schedule='vertex'"
        )


def check_without_barriers(
    program: VertexProgram | None,
    graph: Graph,
    device: str,
    options: Mapping[str, bool],
    *,
    deterministic: bool,
    saves: bool,
) -> None:
    """Check that a program, as `check_program` returned it, can run with `asynchronous=True`.

    Args:
        program: The program.
        graph: What it runs on.
        device: What was asked for.
        options: By name, those that are of supersteps: whether they were given.
        deterministic: Whether floating-point results must not depend on ranks and threads.
        saves: Whether state logs are written.

    Raises:
        ConfigError: If it cannot.
    """
    instead = "Use asynchronous='auto', which takes supersteps where they are needed"
    if program is None:
        raise ConfigError(
            f"asynchronous=True is of compiled code; device={device!r} runs supersteps. {instead}"
        )
    if program.asynchronous is None:
        raise ConfigError(
            f"{program.name} ({program.file}) cannot run with asynchronous=True: {program.barrier_reason}. "
            f"{instead}"
        )
    if of_supersteps := [name for name, value in options.items() if value]:
        raise ConfigError(
            f"{of_supersteps[0]}= is of supersteps, and asynchronous=True runs none. Leave one of the two out"
        )
    if saves and program.asynchronous.has_parents:
        raise ConfigError(
            f"{program.name} cannot write state logs with asynchronous=True: its parents follow from what superstep 0 "
            f"left, which no log has. Leave checkpoint= out. {instead}"
        )
    if deterministic and program.asynchronous.factor is not None and (saves or graph.group.size > 1):
        where = "with state logs" if saves else f"on {graph.group.size} ranks"
        raise ConfigError(
            f"{program.name} cannot run with asynchronous=True and deterministic=True {where}: rounds between which "
            f"records cross or are saved change the order of its blocks. Leave deterministic out. {instead}"
        )


def _check_settled_pages(
    program: VertexProgram | None, graph: Graph, options: Mapping[str, bool], of_pages: Mapping[str, bool]
) -> None:
    """Check that a program can run with `asynchronous=True` along edges that are streamed to a GPU.

    Args:
        program: The program.
        graph: What it runs on.
        options: Whether those were given that do not go with it.
        of_pages: Whether those were that do not go with paths whose pages are taken by what waits in them.
    """
    assert program is not None
    assert program.asynchronous is not None
    where, instead = "along edges that are streamed to a GPU", "Use device='cpu', or asynchronous='auto'"
    if program.asynchronous.factor is None:
        if program.path_lengths is None or graph.directed:
            raise ConfigError(
                f"{where} asynchronous=True is built for declared contractions, and for shortest paths in undirected "
                f"graphs. {instead}"
            )
        options = {**options, **of_pages}
    elif not program.sends_together:
        raise ConfigError(
            f"{program.name} cannot run with asynchronous=True {where}: its vertices do not all send in each "
            f"superstep. {instead}"
        )
    if graph.group.size > 1:
        raise ConfigError(f"asynchronous=True is built for one rank {where}. {instead}")
    if refused := [name for name, value in options.items() if value]:
        raise ConfigError(f"{refused[0]}= does not go with asynchronous=True {where}. {instead}")


def _check_tiles(device: str, why: str, schedule: str, direction: str) -> None:
    """Check that in-edges can lie in tiles, as far as the options say."""
    instead = "Use tiles='auto'"
    if device != "cuda":
        raise ConfigError(f"tiles='always' is of GPUs; this run is on device {device!r}: {why}. {instead}")
    if schedule != "vertex" or direction == "push":
        other = "schedule='edge'" if schedule != "vertex" else "direction='push'"
        raise ConfigError(f"tiles='always' is of pulls, and {other} has none. Leave one of the two out")


def check_checkpoint(checkpoint: Checkpoint | None, resume: bool, *, traces: bool) -> None:
    """Check that the state can be saved as asked for.

    Raises:
        ConfigError: If there is nothing to resume from, or the folder cannot be written.
    """
    if checkpoint is None:
        if resume:
            raise ConfigError("resume: there is nothing to go on from without a checkpoint and its folder")
        return
    from sigps.system.checkpoint.state_log import Checkpoint, check_folder
    from sigps.system.checkpoint.trace import check_writable

    if not isinstance(checkpoint, Checkpoint):
        raise ConfigError(f"checkpoint={checkpoint!r} must be a sigps.Checkpoint, or None")
    check_folder(checkpoint.folder)
    if traces:
        check_writable()


def _check_options(
    max_supersteps: int | None,
    schedule: str,
    direction: str,
    precision: str,
    threads: int | None,
    transport: str,
    asynchronous: Any,
    tiles: str,
) -> None:
    choices = {
        "schedule": (schedule, ("vertex", "edge")),
        "direction": (direction, ("auto", "push", "pull")),
        "precision": (precision, ("auto", "single", "double")),
        "transport": (transport, ("auto", "mpi", "nccl", "peer")),
        "tiles": (tiles, ("auto", "always", "never")),
    }
    if not isinstance(asynchronous, (bool, np.bool_)) and asynchronous != "auto":
        raise ConfigError(f"asynchronous={asynchronous!r} must be True, False or 'auto'")
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ConfigError(f"{name}={value!r} is not one of {', '.join(allowed)}")
    for name, count in (("max_supersteps", max_supersteps), ("threads", threads)):
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
            raise ConfigError(f"{name}={count!r} must be a whole number, at least 1, or None")


def _check_kinds(graph: Any, trace: Any, progress: Any, **flags: Any) -> None:
    if not isinstance(graph, Graph):
        raise ConfigError(
            f"run() takes a Graph, not {graph!r:.80}: make one with sigps.load or Graph.from_edges"
        )
    if trace is not None and (isinstance(trace, (str, bytes)) or not isinstance(trace, Iterable)):
        raise ConfigError(f"trace={trace!r} must be a list of vertex ids: trace=[{trace!r}]")
    if not isinstance(progress, (bool, type(None))) and not callable(progress):
        raise ConfigError(
            f"progress={progress!r} must be True, False, or a function of a list of SuperstepStats"
        )
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ConfigError(f"{name}={value!r} must be True or False")


def turned(graph: Graph, program: Vertex) -> Graph:
    """Return the graph with its edges in the directions in which a program takes them. Collective."""
    declared = program.declaration
    return graph if declared.directed and not declared.both_ways else _turned(graph, program)


@spent_on("build")
def _turned(graph: Graph, program: Vertex) -> Graph:
    if program.declaration.both_ways:
        return graph.both_ways()
    found = graph.undirected(simple=program.declaration.simple)
    if graph.directed:
        log.info(
            "%s runs on undirected graphs: every edge is taken in both directions", type(program).__name__
        )
    if program.declaration.simple and found is not graph:
        log.info("%s runs on simple graphs: loops and repeats are left out", type(program).__name__)
    return found


def _check_columns(derived: VertexProgram | None, graph: Graph) -> None:
    """Refuse edge columns that the graph lacks, before code is compiled for columns that are floats.

    Raises:
        GraphError: If the program reads one; a missing weight is 1.0.
    """
    from sigps.engine.partition.subgraph import missing_column

    if derived is not None:
        types = graph.column_types()
        for name in (*derived.edge_columns, *derived.read_columns):
            if name not in types:
                missing_column(name, 0, types)


def warn_of_rounding(program: Vertex, graph: Graph, derived: VertexProgram | None) -> None:
    """Log a warning where a program that keeps floats reads whole weights that these round. Collective."""
    weights = graph.columns.get("weight")
    if weights is None or weights.dtype.kind != "i":
        return
    declared = program.declaration
    kept = (*declared.states, *declared.message, *declared.edge_states)
    is_read = derived is None or "weight" in (*derived.edge_columns, *derived.read_columns)
    if is_read and any(field.element.dtype().kind == "f" for field in kept):

        def find_largest() -> float:
            ends = np.array([weights.max(initial=0), -weights.min(initial=0)], np.float64)
            return float(graph.group.all_reduce(ends, "max").max())

        largest = graph.derived("largest weight", find_largest)
        if largest > 2**53 and graph.group.rank == 0:
            text = (
                "%s computes with floats, which round whole weights beyond 2**53; there are some up to %.3g"
            )
            log.warning(text, type(program).__name__, largest)


def bind_ids(program: Vertex, graph: Graph) -> Vertex:
    """Return the program with its vertex ids as compute() sees them, each checked to be in the graph."""
    if not any(field.is_vertex_id for field in program.declaration.params):
        return program
    return bind_all([program], graph)[0]


def bind_all(programs: Sequence[Vertex], graph: Graph) -> list[Vertex]:
    """Do it for programs of one class."""
    bound = [copy.copy(program) for program in programs]
    for field in bound[0].declaration.params:
        if field.is_vertex_id:
            where = f"{type(bound[0]).__name__}({field.name}=)"
            named = [p for p in bound if field.type is not None or getattr(p, field.name) is not None]
            values = [getattr(program, field.name) for program in named]
            is_vector = isinstance(field.type, VectorType)
            oids = [oid for value in values for oid in (value if is_vector else [value])]
            seen = iter(_seen_ids(graph, oids, where))
            for program, value in zip(named, values, strict=True):
                vertex = field.type([next(seen) for _ in value]) if is_vector else next(seen)  # type: ignore[misc]
                object.__setattr__(program, field.name, vertex)
    return bound


def _seen_ids(graph: Graph, oids: list[Any], where: str) -> list[int]:
    if not oids:
        return []
    for oid in oids:
        if not np.isscalar(oid):
            raise GraphError(f"{where}: {oid!r} is not an id: ids are whole numbers or strings")
    try:
        gids = _counted(oids, graph) or graph.ids.to_gids(np.asarray(oids)).tolist()
    except GraphError as error:
        raise GraphError(f"{where}: {error}") from None
    for oid, gid in zip(oids, gids, strict=True):
        if gid < 0:
            kind = "strings" if graph.ids.kind == "strings" else "whole numbers"
            raise GraphError(
                f"{where}: there is no vertex {oid!r} in the graph; its {graph.num_vertices:,} ids are {kind}"
                f"{_id_range(graph)}"
            )
    return gids if graph.ids.kind == "strings" else [int(o) for o in oids]


def _counted(oids: list[Any], graph: Graph) -> list[int]:
    """Return the gids of ids that need no table, as `Ids.to_gids`; [] where that is to look them up.

    One id takes 0.3 us so, and 10 as an array.
    """
    ids = graph.ids
    if ids.table is not None or len(oids) > 8 or not all(type(oid) is int for oid in oids):
        return []
    return [oid - ids.base if 0 <= oid - ids.base < graph.num_vertices else -1 for oid in oids]


def _id_range(graph: Graph) -> str:
    if graph.ids.kind in ("identity", "range"):
        return f" {graph.ids.base} to {graph.ids.base + graph.num_vertices - 1}"
    return ""
