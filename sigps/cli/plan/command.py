"""`sigps plan`: what a job would take of each rank's memory, and its predicted times, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from sigps.compiler.program import VertexProgram
    from sigps.costs.sizes import PartitionSize, Size
    from sigps.engine.contract import DeviceKind
    from sigps.graph import Graph
    from sigps.job.config import JobConfig
    from sigps.job.streaming import Streaming
    from sigps.model.vertex import Vertex

__all__ = ["plan"]


@click.command(short_help="Say what memory a job takes, and predict its time.")
@click.argument("job_file", metavar="JOB.yaml")
@click.option("-n", "num_ranks", default=1, show_default=True, type=click.IntRange(min=1), help="Ranks.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a key, as for run.")
@click.option("--load", "loads", is_flag=True, help="Load the graph and divide it: exact cut and ghosts.")
@click.option(
    "--device-kind",
    type=click.Choice(["h200", "cpu"]),
    help="Predict for NVIDIA H200 GPUs, or for the cores of this machine.  [default: what the job would run on]",
)
def plan(
    job_file: str, num_ranks: int, assignments: tuple[str, ...], loads: bool, device_kind: DeviceKind | None
) -> None:
    """Print the bytes that graph, state and messages take on each rank, before anything is loaded, and predict times.

    The size of the graph is exact for native stores, generators and files that state it at the top; for other
    files it is estimated by their first rows, and the output says so. Times are predicted from what was measured on
    the device that is named, for this number of ranks and smaller ones. No GPU is needed.
    """
    from sigps.cli.checks import prepare
    from sigps.cli.plan import forecast
    from sigps.cli.plan.forecast import rank_counts, steps_of_generator
    from sigps.cli.plan.size import measure
    from sigps.costs.memory import bytes_of_states, bytes_of_tables, memory
    from sigps.costs.sizes import even_partition, turned_size
    from sigps.errors import ConfigError
    from sigps.graph.report import bytes_text
    from sigps.host_memory import machine_memory
    from sigps.job.config import load_job
    from sigps.job.preparing import precision_of
    from sigps.model.vertex import Vertex

    job = load_job(job_file, assignments)
    program = prepare(_on_any_machine(job), group_size=num_ranks)
    if not isinstance(program, Vertex):
        raise ConfigError(
            f"{job.program} is a function, which decides what it runs: plan a program that it runs"
        )
    counts, loaded = rank_counts(num_ranks), measure(job)
    size = turned_size(loaded, program)
    supersteps: int | None
    if loads:
        loaded, size, partitions, supersteps = _count(job, program, counts)
    else:
        partitions = {n: even_partition(size.num_vertices, size.num_edges, n) for n in counts}
        supersteps = steps_of_generator(job)
    derived = _derived(job, program)
    state_bytes = bytes_of_states(program, precision_of(program, job.engine.precision))
    kind = device_kind or forecast.kind_of(job, size.num_edges, num_ranks)
    rows = memory(
        size,
        derived,
        num_ranks,
        state_bytes,
        partitions[num_ranks] if loads else None,
        loaded=loaded,
        table_bytes=bytes_of_tables(program),
        num_threads=_threads_of(job, num_ranks) if kind == "cpu" and _may_reorder(job) else 0,
    )
    streaming = _streaming(job, program, derived, num_ranks)
    if streaming is not None:
        on_edges = {"on edges": streaming.resident.get("on edges", 0) + streaming.values}
        rows = {**streaming.resident, **(on_edges if streaming.values else {}), "cached": streaming.cached}
    for line in _memory_lines(job, program, size, rows, num_ranks, loads=loads):
        click.echo(line)
    if streaming is not None:
        click.echo(f"  streamed   {bytes_text(streaming.streamed):>12}  a superstep at most")
        if streaming.spilled:
            where = streaming.where_spilled + ", in TMPDIR" * (streaming.where_spilled == "in files")
            click.echo(
                f"  spilled    {bytes_text(streaming.spilled):>12}  of values on edges at most, {where}"
            )
        if streaming.changes:
            click.echo(
                f"  {'of these':<10} {bytes_text(streaming.changes):>12}  if every value changes in every superstep, "
                "and nothing if none does"
            )
        if streaming.direct:
            click.echo(
                f"  {'and up to':<10} {bytes_text(streaming.direct):>12}  of direct messages, if one goes along every "
                "edge"
            )
        click.echo(f"it streams: {streaming}")
    if job.many is not None:
        click.echo("  of one run; side by side, of each thread up to 64 times state and messages")
    needed, memory_here = num_ranks * sum(rows.values()), machine_memory()
    if kind != "h200" and needed > memory_here:
        here = f"{num_ranks} rank{'s' * (num_ranks > 1)} on this machine need {bytes_text(needed)}"
        click.echo(f"{here}, and it has {bytes_text(memory_here)}: use more machines")
    for line in _time_lines(job, derived, size, partitions, state_bytes, supersteps, device_kind, streaming):
        click.echo(line)
    if num_ranks > 1 and not loads:
        click.echo("cut is that of chance, and ghosts are at their most: --load counts them")


def _streaming(
    job: JobConfig, program: Vertex, derived: VertexProgram | None, num_ranks: int
) -> Streaming | None:
    """Return what the job takes where it streams; None where it does not.

    Raises:
        SigpsError: If it is to stream and cannot, or does not fit its limit.
    """
    from sigps.engine.contract import RunOptions
    from sigps.graph.load import open_store
    from sigps.group import Alone
    from sigps.host_memory import bytes_of
    from sigps.job.preparing import precision_of
    from sigps.job.streaming import decide_streaming, device_limit

    engine, paths = job.engine, job.graph.paths
    on_gpu = engine.device == "cuda"
    limit = engine.device_memory if on_gpu else engine.host_memory
    may_stream = (on_gpu and num_ranks == 1) or limit is not None or engine.stream == "always"
    if not may_stream or not paths or not Path(paths[0]).is_dir():
        return None
    return decide_streaming(
        program,
        derived,
        open_store(paths, Alone(), verify="none"),
        engine.device,
        RunOptions(
            deterministic=engine.deterministic,
            precision=precision_of(program, engine.precision),
            schedule=engine.schedule,
            asynchronous=_may_reorder(job),
            saves=job.checkpoint is not None,
            stream=engine.stream,
            transfer=engine.transfer,
            host_memory=bytes_of(engine.host_memory, "host_memory")
            if on_gpu and engine.host_memory
            else None,
            device_memory=device_limit(engine.device_memory, engine.device, num_ranks),
        ),
        host_memory=engine.host_memory,
        stream=engine.stream,
        threads=[_threads_of(job, num_ranks)] * num_ranks,
    )


def _may_reorder(job: JobConfig) -> bool | Literal["auto"]:
    from sigps.engine.fixed_points import may_reorder

    engine = job.engine
    asked: bool | Literal["auto"] = "auto" if engine.asynchronous == "auto" else bool(engine.asynchronous)
    saves = job.checkpoint is not None
    return may_reorder(asked, max_supersteps=engine.max_supersteps, saves=saves, schedule=engine.schedule)


def _threads_of(job: JobConfig, num_ranks: int) -> int:
    """Return the threads of each rank, where all are on one host."""
    from sigps.device.cpu import available_cores

    return job.engine.threads or max(1, available_cores() // num_ranks)


def _on_any_machine(job: JobConfig) -> JobConfig:
    """Return the job with `auto` for a device that is not here, so that it can be planned without it."""
    from sigps.engine.table import engine_of

    if job.engine.device == "auto" or not engine_of(job.engine.device).missing():
        return job
    return job.model_copy(update={"engine": job.engine.model_copy(update={"device": "auto"})})


def _count(
    job: JobConfig, program: Vertex, counts: Sequence[int]
) -> tuple[Size, Size, dict[int, PartitionSize], int]:
    """Load the job's graph, and divide it.

    Returns:
        Its size as it is, and as the program takes it; the largest partitions by numbers of ranks; and how many
        supersteps a search takes.
    """
    from sigps.cli.checks import load_graph
    from sigps.costs.sizes import PartitionSize, size_of
    from sigps.errors import GraphError
    from sigps.graph.partitioning import bfs_kernel
    from sigps.graph.partitioning import report as partition_report
    from sigps.graph.partitioning.partition import partition
    from sigps.group import Alone
    from sigps.job.preparing import turned

    graph = load_graph(job, Alone())
    if not graph.num_vertices:
        raise GraphError("the graph has no vertices, so nothing can run. Check the file")
    loaded, graph = size_of(graph), turned(graph, program)
    partitions = {}
    for n in counts:
        report = partition_report.measure(graph, partition(graph, n, job.partition.method))
        shares = (report.vertices, report.in_edges, report.cut_edges, report.ghosts)
        partitions[n] = PartitionSize(*(int(share.max()) for share in shares))
    return (
        loaded,
        size_of(graph),
        partitions,
        int(bfs_kernel.count_levels(graph.offsets, graph.targets, _source(graph, program))),
    )


def _source(graph: Graph, program: Vertex) -> int:
    """Return the gid at which a search begins: the vertex that a parameter names, else one of highest degree."""
    import numpy as np

    from sigps.job.preparing import bind_ids
    from sigps.model.vector import Vector

    bind_ids(program, graph)  # raises for a wrong id, as a run does
    values = (getattr(program, field.name) for field in program.declaration.params if field.is_vertex_id)
    named = next((value for value in values if value is not None), None)
    named = named[0] if isinstance(named, Vector) else named
    return int(np.argmax(graph.out_degrees()) if named is None else graph.ids.to_gids([named])[0])


def _time_lines(
    job: JobConfig,
    program: VertexProgram | None,
    size: Size,
    partitions: Mapping[int, PartitionSize],
    state_bytes: int,
    supersteps: int | None,
    device_kind: DeviceKind | None,
    streaming: Streaming | None,
) -> Iterator[str]:
    """Yield the lines about the predicted times."""
    from sigps.cli.plan import forecast
    from sigps.costs.work import work_of
    from sigps.device.cpu import available_cores

    num_ranks = max(partitions)
    kind = device_kind or forecast.kind_of(job, size.num_edges, num_ranks)
    against = (
        forecast.obstacle(program, job.engine.schedule)
        if kind
        else "the job interprets (engine.device: python)"
    )
    if against or kind is None or program is None:
        yield f"no times are predicted: {against}"
        return
    if streaming is not None and kind == "h200":
        yield f"predicted for NVIDIA H200, {forecast.basis(kind, num_ranks)}:"
        yield f"  {forecast.crossing_line(streaming)}"
        if beside := forecast.cores_line(
            streaming, work_of(program, size, state_bytes).record, available_cores()
        ):
            yield f"  {beside}"
        return
    limit, is_search = job.engine.max_supersteps, forecast.is_search(program)
    if supersteps is not None and limit is not None:
        supersteps = min(supersteps, limit)
    transport = forecast.transport_of(job.exchange.transport, program)
    by_count = forecast.devices(kind, partitions, transport)
    known = supersteps if is_search else None
    is_skewed = job.graph.generator is not None and job.graph.generator_call[0] == "rmat"
    rows = forecast.forecasts(program, size, partitions, by_count, state_bytes, known, is_skewed=is_skewed)
    yield f"predicted for {by_count[num_ranks].name}, {forecast.basis(kind, num_ranks, transport)}:"
    yield from (f"  {line}" for line in forecast.table(rows))
    if streaming is not None:
        yield forecast.streamed_line(rows[-1], streaming, _threads_of(job, num_ranks))
    if advice := forecast.advise(rows, size.num_edges, known, is_search=is_search):
        yield advice
    may_reorder = job.engine.asynchronous == "auto" and limit is None and job.checkpoint is None
    if may_reorder and forecast.may_end_at_once(program, size):
        yield "if no vertex has over 64 edges, one rank finds the result at once: its time is not predicted"


def _memory_lines(
    job: JobConfig, program: Vertex, size: Size, rows: Mapping[str, int], num_ranks: int, *, loads: bool
) -> Iterator[str]:
    """Yield the lines about the graph's size and a rank's memory."""
    from sigps.graph.report import bytes_text

    kind = "directed" if size.directed else "undirected"
    yield (
        f"{type(program).__name__} on a graph of {size.num_vertices:,} vertices, {size.num_edges:,} stored "
        f"edges, {kind}, by {size.basis}"
    )
    ghosts = "; ghosts at their most, which a partitioner makes fewer" if num_ranks > 1 else ""
    divided = f"the largest by {job.partition.method!r}" if loads else f"the edges evenly divided{ghosts}"
    yield f"a rank of {num_ranks}, {divided}:"
    for name, num_bytes in [*rows.items(), ("all", sum(rows.values()))]:
        yield f"  {name:<10} {bytes_text(num_bytes):>12}"


def _derived(job: JobConfig, program: Vertex) -> VertexProgram | None:
    from sigps.compiler.frontend.analysis import analyse
    from sigps.errors import CompileError
    from sigps.job.preparing import precision_of

    try:
        return analyse(program, precision_of(program, job.engine.precision))
    except CompileError:  # the interpreter runs it, with direct messages
        return None
