"""`sigps serve`, and what asks a server: `sigps submit`, `jobs`, `cancel`, `result`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from sigps.errors import ConfigError, ServerError

if TYPE_CHECKING:
    from sigps.job.config import JobConfig
    from sigps.job.result import Result
    from sigps.serve.client import RemoteJob
    from sigps.serve.server import Server

__all__ = ["cancel", "jobs", "result", "resume", "serve", "submit", "suspend"]

_socket = click.option("--socket", metavar="PATH", help="The server's socket, if not the default.")


@click.command(short_help="Serve jobs on graphs that stay in memory.")
@click.argument("pool_file", metavar="POOL.yaml")
@_socket
def serve(pool_file: str, socket: str | None) -> int:
    """Serve jobs on graphs that stay in memory, to programs of this user, until Ctrl-C or SIGTERM."""
    from sigps.serve.pool_file import read_pool_file
    from sigps.serve.supervisor import keep_serving

    file = read_pool_file(pool_file, socket)

    def announce(server: Server | None, is_ending: bool) -> None:
        if server is None:
            click.echo(f"reading {', '.join(file.graphs) or 'no graphs'}", err=True)
            return
        if is_ending:
            click.echo("ending: jobs with a name are suspended, others cancelled before their next lease")
            return
        also = f" and {server.http.address} (token in {server.http.token_path})" if server.http else ""
        click.echo(f"serving {', '.join(server.file.graphs)} at {server.file.socket}{also}; Ctrl-C ends it")

    keep_serving(file, announce)
    return 0


@click.command(short_help="Run a job on a server.")
@click.argument("job_file", metavar="JOB.yaml")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a key: params.source=5.")
@click.option("-o", "--output", metavar="PATH", help="Write the result here: a .parquet or .csv file.")
@click.option("--graph", metavar="NAME", help="Run on this graph of the server, not the job's.")
@click.option("--tenant", default="", metavar="NAME", help="Whose job it is.")
@click.option("--priority", type=int, default=0, metavar="N", help="Among the tenant's jobs.")
@click.option("--name", metavar="NAME", help="Save its state: submitted with this name again, it goes on.")
@click.option(
    "--ranks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run it on so many of the server's devices together.",
)
@click.option("--no-wait", is_flag=True, help="Print the job's number and end.")
@_socket
def submit(
    job_file: str,
    assignments: tuple[str, ...],
    output: str | None,
    graph: str | None,
    tenant: str,
    priority: int,
    name: str | None,
    ranks: int | None,
    no_wait: bool,
    socket: str | None,
) -> int:
    """Run a job on a server that has its graph in memory; print and write the result as `sigps run` does.

    Ctrl-C cancels the job.
    """
    from sigps.job.config import load_job
    from sigps.job.table_file import check_output
    from sigps.serve.client import connect

    job = load_job(job_file, assignments, output=output)
    _check(job)
    for path in filter(None, (job.output.path, job.output.edges)):
        check_output(path, group_size=1)
    options = job.engine.model_dump(exclude_unset=True)
    if "partition" in job.model_fields_set:
        options["partitioner"] = job.partition.method
    asked = connect(socket).submit(
        job.program,
        graph or job.graph.model_dump(exclude_unset=True),
        params=job.params,
        folder=job.folder,
        tenant=tenant,
        priority=priority,
        name=name,
        ranks=ranks,
        **options,
    )
    if no_wait:
        click.echo(f"job {asked.number}")
        return 0
    click.echo(f"job {asked.number}; Ctrl-C cancels it", err=True)
    try:
        found = _result_of(asked)
    except KeyboardInterrupt:
        asked.cancel()
        raise
    _show(found, job)
    return 0


@click.command(short_help="List the jobs of a server.")
@click.option(
    "--page", metavar="PATH", help="Write a page about jobs, devices and tenants here instead: an .html file."
)
@_socket
def jobs(page: str | None, socket: str | None) -> int:
    """List the jobs of a server, newest first."""
    from rich.markup import escape
    from rich.table import Table

    from sigps.account import seconds_text
    from sigps.cli.report import console
    from sigps.graph.report import bytes_text
    from sigps.serve.client import connect

    if page is not None:
        from sigps.serve.page import write_page

        write_page(connect(socket).overview(), page)
        click.echo(f"wrote {page}")
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    numbers = ("job", "supersteps", "leases", "memory", "joined")
    for name in ("job", "program", "graph", "tenant", "state", *numbers[1:4], "device", "joined"):
        table.add_column(name, justify="right" if name in numbers else "left")
    for row in (rows := connect(socket).jobs()):
        about = (str(row.number), row.program, row.graph, row.tenant, row.state, f"{row.supersteps:,}")
        took = seconds_text(row.lease_seconds), bytes_text(row.num_bytes)
        rest = (*took, row.device or "", str(row.joined or ""))
        table.add_row(*map(escape, (*about, *rest)))
    console().print(table)
    for row in rows:
        if row.why:
            click.echo(f"job {row.number} failed: {row.why}")
    return 0


@click.command(short_help="Cancel a job of a server.")
@click.argument("number", type=click.IntRange(min=0), metavar="JOB")
@_socket
def cancel(number: int, socket: str | None) -> int:
    """Cancel a job: it ends before its next lease."""
    from sigps.serve.client import connect

    was_there = connect(socket).job(number).cancel()
    click.echo(f"job {number} is cancelled" if was_there else f"job {number} had ended before")
    return 0


@click.command(short_help="Suspend a job of a server.")
@click.argument("number", type=click.IntRange(min=0), metavar="JOB")
@_socket
def suspend(number: int, socket: str | None) -> int:
    """Let a job that has a name save its state and give back its memory, before its next lease."""
    from sigps.serve.client import connect

    does = connect(socket).job(number).suspend()
    click.echo(f"job {number} is to be suspended" if does else f"job {number} does not run now")
    return 0


@click.command(short_help="Let a suspended job go on.")
@click.argument("number", type=click.IntRange(min=0), metavar="JOB")
@_socket
def resume(number: int, socket: str | None) -> int:
    """Let a suspended job go on from its state."""
    from sigps.serve.client import connect

    was = connect(socket).job(number).resume()
    click.echo(f"job {number} goes on" if was else f"job {number} was not suspended")
    return 0


@click.command(short_help="Fetch the result of a job.")
@click.argument("number", type=click.IntRange(min=0), metavar="JOB")
@click.option("-o", "--output", metavar="PATH", help="Write the result here: a .parquet or .csv file.")
@_socket
def result(number: int, output: str | None, socket: str | None) -> int:
    """Wait for a job's result; print it, and write it."""
    from sigps.job.table_file import check_output
    from sigps.serve.client import connect

    if output is not None:
        output = os.path.abspath(output)
        check_output(output, group_size=1)
    found = _result_of(connect(socket).job(number))
    click.echo(found.summary())
    if output is not None:
        found.write(output)
        click.echo(f"wrote {output}")
    return 0


def _result_of(job: RemoteJob) -> Result:
    """Wait for the result of a job that others may cancel meanwhile."""
    from concurrent.futures import CancelledError

    try:
        return job.result()
    except CancelledError:
        raise ServerError(f"job {job.number} was cancelled: submit it again for a result") from None


def _check(job: JobConfig) -> None:
    """Check that a server can do what the job asks for."""
    default = type(job).model_fields
    for key in ("many", "checkpoint", "updates", "exchange", "faults"):
        if getattr(job, key) != default[key].default:
            raise ConfigError(f"{job.name}: {key} is not for a server's jobs: leave it out, or use sigps run")


def _show(found: Result, job: JobConfig) -> None:
    from sigps.cli.report import console, superstep_table, top_table

    out = console()
    out.print(superstep_table(found.stats))
    out.print(found.summary(), markup=False)
    fields = [name for name in job.output.fields or found.fields if found[name].ndim == 1]
    if job.output.top and fields:
        out.print(top_table(fields[0], found.top(fields[0], job.output.top)))
    if job.output.path is not None:
        found.write(job.output.path, job.output.fields)
        out.print(f"wrote {job.output.path}", markup=False)
    if job.output.edges is not None:
        found.edges.write(job.output.edges)
        out.print(f"wrote {job.output.edges}", markup=False)
