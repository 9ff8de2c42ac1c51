"""`sigps plan`: what a job would take of each rank's memory, and its predicted times, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sigps.cli.plan.forecast import Kind
    from sigps.cli.plan.prediction import Part
    from sigps.cli.plan.size import Size
    from sigps.compiler.program import VertexProgram
    from sigps.graph import Graph
    from sigps.job.config import Job
    from sigps.model.vertex import Vertex

__all__ = ["memory", "plan", "turned_size"]

_VALUE_BYTES = 8  # a record's or a slot's value: its type is known only once the program is compiled


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
    job_file: str, num_ranks: int, assignments: tuple[str, ...], loads: bool, device_kind: Kind | None
) -> None:
    """Print the bytes that graph, state and messages take on each rank, before anything is loaded, and predict times.

    The size of the graph is exact for native stores, generators and files that state it at the top; for other
    files it is estimated by their first rows, and the output says so. Times are predicted from what was measured on
    the device that is named, for this number of ranks and smaller ones. No GPU is needed.
    """
    from sigps.cli.plan.forecast import rank_counts, steps_of_generator
    from sigps.cli.plan.prediction import even_part
    from sigps.cli.plan.size import measure
    from sigps.cli.report import bytes_text
    from sigps.cli.run import prepare
    from sigps.job.config import load_job

    job = load_job(job_file, assignments)
    program = prepare(_anywhere(job), group_size=num_ranks)
    counts, size = rank_counts(num_ranks), turned_size(measure(job), program)
    supersteps: int | None
    if loads:
        size, parts, supersteps = _count(job, program, counts)
    else:
        parts = {n: even_part(size.num_vertices, size.num_edges, n) for n in counts}
        supersteps = steps_of_generator(job)
    derived, state_bytes = _derived(job, program), _state_bytes(job, program)
    rows = memory(size, derived, num_ranks, state_bytes, parts[num_ranks] if loads else None)
    kind = "directed" if size.directed else "undirected"
    click.echo(
        f"{type(program).__name__} on a graph of {size.num_vertices:,} vertices, {size.num_edges:,} stored "
        f"edges, {kind}, by {size.basis}"
    )
    ghosts = "; ghosts at their most, which a partitioner makes fewer" if num_ranks > 1 else ""
    divided = f"the largest by {job.partition.method!r}" if loads else f"the edges evenly divided{ghosts}"
    click.echo(f"a rank of {num_ranks}, {divided}:")
    for name, num_bytes in [*rows.items(), ("all", sum(rows.values()))]:
        click.echo(f"  {name:<9} {bytes_text(num_bytes):>12}")
    for line in _times(job, derived, size, parts, state_bytes, supersteps, device_kind):
        click.echo(line)
    if num_ranks > 1 and not loads:
        click.echo("cut is that of chance, and ghosts are at their most: --load counts them")


def _anywhere(job: Job) -> Job:
    """Return the job as it is checked: one for a GPU may be planned where there is none."""
    if job.engine.device != "cuda":
        return job
    return job.model_copy(update={"engine": job.engine.model_copy(update={"device": "auto"})})


def _count(job: Job, program: Vertex, counts: Sequence[int]) -> tuple[Size, dict[int, Part], int]:
    """Load the job's graph, and return its size, the largest parts, and the supersteps of a search through it."""
    from sigps.cli.plan.prediction import Part
    from sigps.cli.plan.size import Size
    from sigps.cli.run import load_graph
    from sigps.errors import GraphError
    from sigps.graph.partitioning import bfs_kernel
    from sigps.graph.partitioning import report as partition_report
    from sigps.graph.partitioning.partition import partition
    from sigps.group import Alone
    from sigps.job.run import turned

    graph = load_graph(job, Alone())
    if not graph.num_vertices:
        raise GraphError("the graph has no vertices, so nothing can run. Check the file")
    graph = turned(graph, program)
    parts = {}
    for n in counts:
        report = partition_report.measure(graph, partition(graph, n, job.partition.method))
        shares = (report.vertices, report.in_edges, report.cut_edges, report.ghosts)
        parts[n] = Part(*(int(share.max()) for share in shares))
    columns = sum(column.dtype.itemsize for column in graph.columns.values())
    size = Size(graph.num_vertices, graph.num_edges, graph.directed, columns, "counting it")
    return size, parts, int(bfs_kernel.count_levels(graph.offsets, graph.targets, _source(graph, program)))


def _source(graph: Graph, program: Vertex) -> int:
    """Return where a search begins: at the vertex that a parameter names, else at one of highest degree."""
    import numpy as np

    from sigps.job.run import bind_ids

    bind_ids(program, graph)  # says what is wrong with an id, as a run does
    values = (getattr(program, field.name) for field in program.declaration.params if field.is_vertex_id)
    named = next((value for value in values if value is not None), None)
    return int(np.argmax(graph.out_degrees()) if named is None else graph.ids.to_gids([named])[0])


def _times(
    job: Job,
    program: VertexProgram | None,
    size: Size,
    parts: Mapping[int, Part],
    state_bytes: int,
    supersteps: int | None,
    asked: Kind | None,
) -> Iterator[str]:
    """Yield the lines of the prediction."""
    from sigps.cli.plan import forecast

    num_ranks = max(parts)
    kind = asked or forecast.kind_of(job, size.num_edges, num_ranks)
    against = (
        forecast.obstacle(program, job.engine.schedule)
        if kind
        else "the job interprets (engine.device: python)"
    )
    if against or kind is None or program is None:
        yield f"no times are predicted: {against}"
        return
    limit, is_search = job.engine.max_supersteps, forecast.is_search(program)
    if supersteps is not None and limit is not None:
        supersteps = min(supersteps, limit)
    transport = forecast.transport_of(job.exchange.transport, program)
    by_count = forecast.devices(kind, parts, transport)
    known = supersteps if is_search else None
    rows = forecast.forecasts(program, size, parts, by_count, state_bytes, known)
    yield f"predicted for {by_count[num_ranks].name}, {forecast.basis(kind, num_ranks, transport)}:"
    yield from (f"  {line}" for line in forecast.table(rows))
    if advice := forecast.advise(rows, size.num_edges, known, is_search=is_search):
        yield advice


def turned_size(size: Size, program: Vertex) -> Size:
    """Return how large a graph is with its edges in the directions in which a program takes them.

    An edge that is there in both directions already counts as two: the edges of an undirected graph are at most these.
    """
    declared = program.declaration
    if declared.both_ways:
        doubled = size.num_edges * (2 if size.directed else 1)
        return replace(size, num_edges=doubled, column_bytes=size.column_bytes + 2)  # leads_out, leads_in
    if declared.directed or not size.directed:
        return size
    return replace(size, num_edges=2 * size.num_edges, directed=False)


def memory(
    size: Size, program: VertexProgram | None, num_ranks: int, state_bytes: int, part: Part | None = None
) -> dict[str, int]:
    """Return the bytes that a rank keeps for each purpose while a program runs. O(1).

    Args:
        size: The graph.
        program: What the compiler derived; None counts a message an edge, written out.
        num_ranks: Ranks that share the graph.
        state_bytes: Bytes of one vertex's fields.
        part: What the rank has; None for an even share, with as many ghosts as there can be.
    """
    from sigps.cli.plan.prediction import even_part

    part = part or even_part(size.num_vertices, size.num_edges, num_ranks)
    owned, edges, ghosts = part.vertices, part.edges, part.ghosts
    purposes = {
        "graph": _graph_bytes(size, program, owned, edges, ghosts),
        "state": owned * (state_bytes + 1),
        "messages": _message_bytes(program, owned, edges, ghosts),
    }
    if program is not None and program.reads_edge_links:
        purposes["on edges"] = _link_bytes(size, program, edges, is_part=owned < size.num_vertices)
    return purposes


def _graph_bytes(size: Size, program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    """One process shares the graph's own arrays; a partition has copies of them beside the graph's rows."""
    an_edge = (4 if size.num_vertices < 2**32 else 8) + size.column_bytes
    is_part = owned < size.num_vertices
    copies = 3 if is_part else 2 if size.directed else 1
    if is_part and (program is None or program.reads_edges):
        copies += 1
    offsets = 8 * (copies * owned + ghosts)
    numbering = (4 + 8 + 8) * owned + (8 + 8) * ghosts if is_part else 4 * owned
    return copies * edges * an_edge + offsets + numbering


def _link_bytes(size: Size, program: VertexProgram, edges: int, *, is_part: bool) -> int:
    """Values kept on edges, written and read, and rows of remote neighbours: at their most those of all edges."""
    kept = sum(dtype.itemsize for dtype in program.edge_state_dtypes)
    needs_rows = program.reads_neighbors or program.reads_reverse
    copies = size.num_edges - edges if is_part and needs_rows else 0
    rows = (4 + 8) * copies + 4 * edges if copies else 0  # targets, whose they are to send, and rows by edge
    return 2 * kept * edges + kept * copies + rows + 8 * edges * program.reads_reverse


def _message_bytes(program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    from sigps.compiler.program import Consumption, Delivery

    if program is not None and program.delivery is Delivery.NONE:
        return 0
    if program is None or program.delivery is Delivery.DIRECT:
        a_message = sum(d.itemsize for d in program.message_dtypes) if program else _VALUE_BYTES
        return 2 * edges * (a_message + 1 + 8 + 4)  # and its kind, target and sender; sent and arrived
    outbox = 2 * (owned + ghosts) * (1 + _VALUE_BYTES * len(program.record))
    if program.consumption is Consumption.LISTED:
        return outbox  # lists are made from the records, one vertex at a time
    return outbox + owned * (1 + _VALUE_BYTES * sum(len(slot.names) for slot in program.slots))


def _derived(job: Job, program: Vertex) -> VertexProgram | None:
    from sigps.compiler.frontend.analysis import analyse
    from sigps.errors import CompileError

    try:
        return analyse(program, job.engine.precision)
    except CompileError:  # device python runs it all the same, with messages written out
        return None


def _state_bytes(job: Job, program: Vertex) -> int:
    return sum(field.dtype(job.engine.precision).itemsize for field in program.declaration.states)
