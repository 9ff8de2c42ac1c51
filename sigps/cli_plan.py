"""`sigps plan`: what a job would take of each rank's memory, said before anything is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sigps.cli_size import Size
    from sigps.compiler.program import VertexProgram
    from sigps.config import Job
    from sigps.vertex import Vertex

__all__ = ["memory", "plan"]

_VALUE_BYTES = 8  # a record's or a slot's value: its type is known only once the program is compiled


@click.command(short_help="Say what memory a job takes.")
@click.argument("job_file", metavar="JOB.yaml")
@click.option("-n", "num_ranks", default=1, show_default=True, type=click.IntRange(min=1), help="Ranks.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a key, as for run.")
def plan(job_file: str, num_ranks: int, assignments: tuple[str, ...]) -> None:
    """Print the bytes that graph, state and messages take on each rank, before anything is loaded.

    The size of the graph is exact for native stores, generators and files that state it at the top; for other
    files it is estimated by their first rows, and the output says so.
    """
    from sigps.cli_run import prepare
    from sigps.cli_size import measure
    from sigps.config import load_job
    from sigps.report import bytes_text

    job = load_job(job_file, assignments)
    program = prepare(job, group_size=num_ranks)
    size = measure(job)
    rows = memory(size, _derived(job, program), num_ranks, _state_bytes(job, program))
    kind = "directed" if size.directed else "undirected"
    click.echo(
        f"{type(program).__name__} on a graph of {size.num_vertices:,} vertices, {size.num_edges:,} stored "
        f"edges, {kind}, by {size.basis}"
    )
    ghosts = "; ghosts at their most, which a partitioner makes fewer" if num_ranks > 1 else ""
    click.echo(f"a rank of {num_ranks}, the edges evenly divided{ghosts}:")
    for name, num_bytes in [*rows.items(), ("all", sum(rows.values()))]:
        click.echo(f"  {name:<9} {bytes_text(num_bytes):>12}")


def memory(size: Size, program: VertexProgram | None, num_ranks: int, state_bytes: int) -> dict[str, int]:
    """Return the bytes that a rank keeps for each purpose while a program runs. O(1).

    Ghosts are counted at their most: one a remote in-edge, and no more than there are remote vertices.

    Args:
        size: The graph.
        program: What the compiler derived; None counts a message an edge, written out.
        num_ranks: Ranks that share the graph.
        state_bytes: Bytes of one vertex's fields.
    """
    owned = -(-size.num_vertices // num_ranks)
    edges = -(-size.num_edges // num_ranks)
    ghosts = min(size.num_vertices - owned, edges) if num_ranks > 1 else 0
    return {
        "graph": _graph_bytes(size, program, owned, edges, ghosts),
        "state": owned * (state_bytes + 1),
        "messages": _message_bytes(program, owned, edges, ghosts),
    }


def _graph_bytes(size: Size, program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    """One process shares the graph's own arrays; a partition has copies of them beside the graph's rows."""
    an_edge = (4 if size.num_vertices < 2**32 else 8) + size.column_bytes
    is_part = ghosts > 0
    copies = 3 if is_part else 2 if size.directed else 1
    if is_part and (program is None or program.reads_edges):
        copies += 1
    offsets = 8 * (copies * owned + ghosts)
    numbering = (4 + 8 + 8) * owned + (8 + 8) * ghosts if is_part else 4 * owned
    return copies * edges * an_edge + offsets + numbering


def _message_bytes(program: VertexProgram | None, owned: int, edges: int, ghosts: int) -> int:
    from sigps.compiler.program import Consumption, Delivery

    if program is not None and program.delivery is Delivery.NONE:
        return 0
    if program is None or program.delivery is Delivery.MAILBOX:
        a_message = sum(d.itemsize for d in program.message_dtypes) if program else _VALUE_BYTES
        return 2 * edges * (a_message + 1 + 8 + 4)  # and its kind, target and sender; sent and arrived
    outbox = 2 * (owned + ghosts) * (1 + _VALUE_BYTES * len(program.record))
    if program.consumption is Consumption.LISTED:
        return outbox  # lists are made from the records, one vertex at a time
    return outbox + owned * (1 + _VALUE_BYTES * sum(len(slot.names) for slot in program.slots))


def _derived(job: Job, program: Vertex) -> VertexProgram | None:
    from sigps.compiler.frontend import analyse
    from sigps.errors import CompileError

    try:
        return analyse(program, job.engine.precision)
    except CompileError:  # device python runs it all the same, with messages written out
        return None


def _state_bytes(job: Job, program: Vertex) -> int:
    return sum(field.dtype(job.engine.precision).itemsize for field in program.declaration.states)
