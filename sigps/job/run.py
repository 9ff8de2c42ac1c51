"""The one path by which a program runs: from Python, from YAML, alone or under `mpirun`."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from sigps.account import spans_since, spent_on, spent_since
from sigps.costs.sizes import size_of
from sigps.engine.direction import Schedule
from sigps.engine.stats import SuperstepStats
from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.graph.partitioning.partition import PartitionFunction
from sigps.group.limits import DEFAULT_FAULTS
from sigps.group.status import Status
from sigps.job.alike import prepared_alike
from sigps.job.preparing import Precision
from sigps.job.result import Result
from sigps.job.streaming import Stream, Transfer
from sigps.model.vertex import Vertex
from sigps.report.progress import live_progress
from sigps.report.record import RunRecord, plain_options

if TYPE_CHECKING:
    from sigps.group.limits import Faults
    from sigps.system.checkpoint.state_log import Checkpoint

__all__ = ["run", "run_options"]


def run(
    program: Vertex,
    graph: Graph,
    *,
    device: str = "auto",
    max_supersteps: int | None = None,
    deterministic: bool = False,
    partitioner: str | PartitionFunction = "edges",
    trace: Iterable[Any] | None = None,
    gather: bool = True,
    schedule: Schedule = "vertex",
    direction: Literal["auto", "push", "pull"] = "auto",
    precision: Precision = "auto",
    asynchronous: bool | Literal["auto"] = "auto",
    threads: int | None = None,
    transport: Literal["auto", "mpi", "nccl", "peer"] = "auto",
    progress: Callable[[Sequence[SuperstepStats]], None] | bool | None = None,
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
    faults: Faults | None = None,
    seed: int = 0,
    initial: Mapping[str, Any] | Result | None = None,
    host_memory: int | str | None = None,
    device_memory: int | str | None = None,
    stream: Stream = "auto",
    transfer: Transfer = "auto",
    tiles: Literal["auto", "always", "never"] = "auto",
) -> Result:
    """Run a vertex program on a graph until it ends. Collective under `mpirun`.

    Results are the same for every number of ranks, partitioner, direction and device: integers bit for bit,
    floats up to the rounding of their sums, and with `deterministic=True` these bit for bit too.

    Args:
        program: An instance of a `Vertex` subclass: the class and its parameters.
        graph: The graph.
        device: `"python"` interprets the class unmodified, `"cpu"` compiles it, `"cuda"` compiles it for a GPU,
            `"auto"` is the GPU where there is one, the graph is large enough for it to pay, the program can run
            there, and of several ranks each has a GPU of its own; else the CPU. It logs which and why.
        max_supersteps: Stop after so many; None for no limit.
        deterministic: Whether sums of floats must not depend on ranks, threads and directions. Slower.
        partitioner: `"edges"`, `"vertices"`, `"hash"`, `"bfs"`, `"metis"`, or a function of an array of ids.
        trace: Ids of vertices to record, superstep by superstep, in `result.trace`; with `device="python"`. On
            several ranks each keeps what it recorded of its own vertices.
        gather: Whether rank 0 gets the whole result; otherwise every rank keeps its part.
        schedule: What a work item is. `"vertex"`: a vertex with its edges, which are pulled or pushed. `"edge"`: one
            edge; every superstep goes along all edges, in equal pieces, and asks each whether its source sent. The
            result is the same; no search ends early, and no message is left out. For comparison: it is slower.
        direction: Force `"push"` or `"pull"`; the result is the same.
        precision: The array type of Python's `float`: float32 for `"single"`, in which a GPU also computes; `"auto"` is
            what the program declares (`class Ranks(Vertex, precision="single")`), `"double"` where it does not.
        asynchronous: False: the supersteps of the program model. `"auto"`: values may be sent out of turn where the
            result is provably the same: then the supersteps are other ones, and cheaper, or the result is found at
            once; a declared contraction goes on without barriers where supersteps progress slowly; with
            `max_supersteps`, `checkpoint`, `schedule="edge"` and on `"python"` as False. True: no barriers at all:
            cores compute blocks of vertices until nothing changes, with the same result (`sigps explain` says of which
            programs). On a GPU only where edges are streamed: declared contractions, and shortest paths.
        threads: Threads of each rank on the CPU; None for its share of the host's cores.
        transport: How records cross between ranks: `"peer"` writes them into the memory of other GPUs of the host,
            `"nccl"` lets NCCL move them between GPUs of one host or several, `"mpi"` brings them through host
            memory; `"auto"` is the first of these that is possible. Every rank needs a GPU of its own for
            `"nccl"`, and these must reach each other for `"peer"`. Programs that keep values on edges or look
            through rows of neighbours take one of the others instead of `"peer"`.
        progress: Called on rank 0 now and then with the statistics so far. True shows a line about them, with rates and
            what is left until `max_supersteps`, in a terminal or a notebook; elsewhere it shows nothing.
        checkpoint: When the state is saved, and where: `Checkpoint("log", every=10)`. Then nothing is sent out
            of turn. What `trace` recorded is written there too, as Parquet.
        resume: Whether to go on from the newest log in `checkpoint.dir`, on any number of ranks, with any
            partitioner and device; where there is none the run begins at superstep 0.
        faults: When a rank counts as lost, so that the run ends instead of waiting for it; None for the defaults
            of `sigps.Faults`.
        seed: Of the random numbers that vertices draw (`self.random()`): another seed, other numbers.
        initial: What states begin with instead of their defaults: `{"seed": values}`, an array of one value a vertex in
            ascending order of ids, or the values of some vertices by their ids, `{"seed": {7: 1.0}}`; or an earlier
            result on the same vertices, whose states of the same names are taken. The same on all ranks.
        host_memory: The most bytes that the run may take of a rank's memory, a number or a text such as `"8GB"`; with
            `device="cuda"` what packed edges may take of it, the others are read from disk again and again. None for no
            limit.
        device_memory: The most bytes that a rank may take of its GPU, likewise. CuPy's pool keeps to it until the next
            run. Fields of earlier results, which a GPU keeps as long as they are held, come to the host where the run
            has no room without theirs.
        stream: Whether edges stay in the packed store from which `sigps.load` opened the graph, and are unpacked
            while they are used, with equal results: `"auto"`, where the run does not fit `host_memory`, `"always"` or
            `"never"`. Where `compute()` walks out-edges, the store's rows must be in the given
            order (`Graph.save(..., packed=True, order="given")`). On one GPU of any graph, on several of a packed
            store: whether edges that do not fit it, or `device_memory`, stay in the host's memory.
        transfer: How edges on a GPU's host come to it. `"bulk"`: the pages of a packed store cross as they are, all
            of them each superstep, and are unpacked on the GPU, for programs whose messages are combined, listed or
            grouped by key and that read eight columns of edges at most, for direct messages, and for programs whose
            `compute()` walks edges of an undirected graph. `"rows"`: kernels read unpacked rows there, those that
            matter. `"auto"`: of undirected graphs from a packed store the packed rows or pages that a superstep needs,
            and all pages where all vertices send in the same supersteps; else `"rows"`.
        tiles: Whether in-edges lie in tiles on GPUs: `"auto"`, where a pull always reads all of them and that pays
            (`sigps explain --graph` says so), `"always"` or `"never"`. Sums are rounded in another order.

    Raises:
        CompileError: If compute() cannot be compiled.
        ComputeError: If arithmetic of compute() has no result: a whole number beyond its type, a division by zero.
        ConfigError: If an option is wrong.
        DeviceError: If there is no GPU, it is not built for what the program does, or has too little memory; or the run
            does not fit `host_memory` or `device_memory` and cannot stream.
        GraphError: If the graph is empty or lacks a vertex or column that the program names.
        StateLogError: If there are logs, and all are damaged or another job's.

    >>> from sigps.apps import BFS
    >>> result = run(BFS(source=0), Graph.from_edges([0, 1], [1, 2]), device="python")
    >>> result["level"].tolist(), result.reason
    ([0, 1, 2], 'converged')
    """
    begun, before, began = time.perf_counter(), spent_since(), time.time()
    if "sigps.job.collect" not in sys.modules:
        with spent_on("import"):
            importlib.import_module("sigps.job.collect")
    from sigps.job.collect import collect
    from sigps.system.worker_manager import Saving

    options: dict[str, Any] = {
        "device": device,
        "max_supersteps": max_supersteps,
        "deterministic": deterministic,
        "trace": trace,
        "gather": gather,
        "schedule": schedule,
        "direction": direction,
        "precision": precision,
        "asynchronous": asynchronous,
        "threads": threads,
        "transport": transport,
        "progress": progress,
        "checkpoint": checkpoint,
        "resume": resume,
        "faults": faults,
        "seed": seed,
        "initial": initial,
        "host_memory": host_memory,
        "device_memory": device_memory,
        "stream": stream,
        "transfer": transfer,
        "tiles": tiles,
    }
    status = (
        graph.group.status if isinstance(graph, Graph) else Status.create()
    )  # `prepared` refuses what is none
    with status.during("preparing the run"):
        made = prepared_alike(program, graph, options)
    given = graph
    program, graph, spec = made.program, made.graph, made.executable.spec
    shown = (
        live_progress(max_supersteps, rank=graph.group.rank)
        if progress is True
        else contextlib.nullcontext(progress or None)
    )
    with shown as on_progress:
        part = made.manager.run(
            made.bound,
            made.executable,
            method=partitioner,
            options=made.options,
            max_supersteps=max_supersteps,
            on_progress=on_progress,
            faults=faults or DEFAULT_FAULTS,
            transport=transport,
            saving=Saving(checkpoint, program, made.options.precision, spec.device, resume)
            if checkpoint
            else None,
        )
    with graph.group.status.during("collecting the result"):
        result = collect(part, program, graph, spec.device, gather=gather)
    result.account = spent_since(before)
    options["partitioner"] = partitioner
    result.record = RunRecord(
        program=program,
        derived=made.executable.program,
        spec=spec,
        why_device=made.why_device,
        options=plain_options(options, _DEFAULTS),
        ranks=part.ranks,
        leases=part.leases,
        spans=spans_since(begun),
        size=graph.derived("size", lambda: size_of(graph)),
        loaded_size=given.derived("size", lambda: size_of(given)),
        num_columns=graph.derived("number of columns", lambda: len(graph.column_types())),
        graph=weakref.ref(given),
        loaded=given.report,
        began=began,
        precision=made.options.precision,
        reorders=bool(made.options.asynchronous),
        arguments=tuple(sys.argv),
    )
    return result


def run_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that `job.preparing.prepared` takes, with the defaults of `run` for those not given.

    Raises:
        ConfigError: If `run` has no such option.
    """
    known = _DEFAULTS.keys() - {"program", "graph"}
    if unknown := given.keys() - known:
        raise ConfigError(f"sigps.run has no option {min(unknown)!r}; it has: {', '.join(sorted(known))}")
    return {name: given.get(name, _DEFAULTS[name]) for name in known - {"partitioner"}}


_DEFAULTS = {name: option.default for name, option in inspect.signature(run).parameters.items()}
