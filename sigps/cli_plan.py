"""`sigps plan`: what a job would take of each rank's memory, said before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from sigps.cli_size import Size
    from sigps.vertex import Field, Vertex

__all__ = ["memory", "plan"]

Precision = Literal["single", "double"]


@click.command()
@click.argument("job_file", metavar="JOB.yaml")
@click.option("-n", "num_ranks", default=1, show_default=True, type=click.IntRange(min=1), help="Ranks.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a key, as for run.")
def plan(job_file: str, num_ranks: int, assignments: tuple[str, ...]) -> None:
    """Print the bytes that graph, state and messages take on each rank, before anything is loaded."""
    from sigps.cli_run import prepare
    from sigps.cli_size import measure
    from sigps.config import load_job
    from sigps.report import bytes_text

    job = load_job(job_file, assignments)
    program = prepare(job, group_size=num_ranks)
    size = measure(job)
    rows = memory(size, program, num_ranks, job.engine.precision)
    kind = "directed" if size.directed else "undirected"
    click.echo(
        f"{type(program).__name__} on a graph of {size.num_vertices:,} vertices, {size.num_edges:,} stored "
        f"edges, {kind}, by {size.basis}"
    )
    click.echo(f"each of {num_ranks} ranks, evenly divided:" if num_ranks > 1 else "one rank:")
    for name, num_bytes in [*rows.items(), ("all", sum(rows.values()))]:
        click.echo(f"  {name:<9} {bytes_text(num_bytes):>12}")


def memory(size: Size, program: Vertex, num_ranks: int, precision: Precision = "double") -> dict[str, int]:
    """Return the bytes a rank needs for each purpose, if the edges are divided evenly. O(1).

    Ghosts, which a partitioner makes few, are counted at their most: one a remote in-edge, and no more
    than there are remote vertices.
    """
    owned = -(-size.num_vertices // num_ranks)
    edges = -(-size.num_edges // num_ranks)
    ghosts = min(size.num_vertices - owned, edges) if num_ranks > 1 else 0
    index = 4 if size.num_vertices < 2**32 else 8
    directions = 2 if size.directed else 1
    state = _num_bytes(program.declaration.states, precision)
    message = _num_bytes(program.declaration.message, precision)
    return {
        "graph": edges * directions * (index + size.column_bytes) + 40 * owned + 16 * ghosts,
        "state": owned * state,
        "messages": 2 * (owned + ghosts) * (message + 1) if message else 0,
    }


def _num_bytes(fields: Iterable[Field], precision: Precision) -> int:
    return sum(field.dtype(precision).itemsize for field in fields)
