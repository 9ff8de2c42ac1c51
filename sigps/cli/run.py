"""`sigps run`: from a job file to a written result."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sigps.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from sigps.cli.run_files import RunFiles
    from sigps.graph import Graph
    from sigps.group import Group
    from sigps.group.limits import Faults
    from sigps.job.config import JobConfig
    from sigps.job.result import Result
    from sigps.model.vertex import Vertex

__all__ = ["run"]


@click.command(short_help="Run a job.")
@click.argument("job_file", metavar="JOB.yaml")
@click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a key: engine.device=python."
)
@click.option("-o", "--output", metavar="PATH", help="Write the result here: a .parquet or .csv file.")
@click.option("--dry-run", is_flag=True, help="Check everything, then stop before the graph is read.")
@click.option("--resume", is_flag=True, help="Go on from the newest state log in checkpoint.dir.")
@click.option("--ranks", type=click.IntRange(min=1), metavar="N", help="Start N ranks, as mpirun -n N does.")
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    default=0,
    metavar="R",
    help="After a failure go on from the newest log, up to R times.",
)
@click.option("--report", metavar="FILE", help="Write a page about the run here: run.html.")
@click.option("--timeline", metavar="FILE", help="Write a timeline for Perfetto here: run.json.")
@click.option(
    "--metrics", metavar="FILE", help="Write Prometheus metrics here, also while it runs: run.prom."
)
@click.option("--launcher", metavar="COMMAND", help="What starts the ranks, with options.  [default: mpirun]")
def run(
    job_file: str,
    assignments: tuple[str, ...],
    output: str | None,
    dry_run: bool,
    resume: bool,
    ranks: int | None,
    retries: int,
    report: str | None,
    timeline: str | None,
    metrics: str | None,
    launcher: str | None,
) -> int:
    """Run a job: load the graph, run the program, print and write the result.

    Paths in the job file start at its folder, paths typed here start at the current directory. With
    several ranks (--ranks N, or mpirun -n N sigps run JOB.yaml) the output is a folder with one part a rank.
    """
    from sigps.account import spent_on

    with spent_on("import"):
        from sigps.cli.run_files import RunFiles
        from sigps.job.config import load_job

    if launcher is not None and ranks is None:
        raise ConfigError(f"--launcher {launcher!r} is for several ranks: say how many with --ranks N")
    job = load_job(job_file, assignments, output=output)
    for option in ["--resume"] * resume + ["--retries"] * (retries > 0):
        if job.checkpoint is None:
            raise ConfigError(
                f"{option}: {job.name} has no section 'checkpoint' that says where its logs are"
            )
    if job.updates is not None and retries:
        raise ConfigError(f"--retries is of single runs; start {job.name} again with --resume")
    files = RunFiles(report, timeline, metrics)
    files.check(job)
    if ranks is None and not retries:
        _run_here(job, files, dry_run=dry_run, resume=resume)
        return 0
    from sigps.cli.relaunch import command_of, launch_command, relaunch

    verbose = click.get_current_context().find_root().params.get("verbose", 0)
    words = command_of(job_file, assignments, output, dry_run, verbose, files.words)
    command = [*launch_command(ranks, "mpirun" if launcher is None else launcher), *words]
    logs = None if job.checkpoint is None else Path(job.checkpoint.dir)
    say = partial(click.echo, err=True)
    return relaunch(command, retries, logs, resume=resume, name=job.name, report=say)


def _run_here(job: JobConfig, files: RunFiles, *, dry_run: bool, resume: bool) -> None:
    """Run a job in this process, which may be one of several ranks. Collective."""
    from sigps.account import spent_on, spent_since

    with spent_on("import"):
        from sigps.cli.checks import load_graph, prepare
        from sigps.cli.report import account_text, console
        from sigps.group import world
        from sigps.group.limits import Faults
        from sigps.model.vertex import Vertex

    group = world()
    status, limits = group.status, Faults(**job.faults.model_dump())
    out = console(rank=group.rank)
    with status.limits(limits.silent_seconds, limits.superstep_seconds):
        with status.during("checking the job"):
            program = prepare(job, group_size=group.size)
            files.check_program(job, program)
        if dry_run:
            _print_job(job, out)
            return
        if job.updates is not None:
            from sigps.cli.updates import run_updates

            _check_updates(job, program, files)
            assert isinstance(program, Vertex)
            result = run_updates(job, program, group, out, resume=resume)
            _print_result(job, result, group, out)
            _write(job, result, out)
            out.print(account_text(spent_since()), markup=False)
            return
        graph = load_graph(job, group)
        out.print(str(graph.report), markup=False)
        if not isinstance(program, Vertex):
            from sigps.cli.many import run_function

            run_function(job, program, graph, out)
        elif job.many is not None:
            from sigps.cli.many import run_runs

            run_runs(job, program, graph, limits, out)
        else:
            result = _run(job, program, graph, limits, files, resume=resume)
            with status.during("writing the result"), spent_on("answer"):
                _print_result(job, result, group, out)
                _write(job, result, out)
                files.write(job, result, graph, out)
        out.print(account_text(spent_since()), markup=False)


def _check_updates(job: JobConfig, program: object, files: RunFiles) -> None:
    from sigps.model.vertex import Vertex

    if not isinstance(program, Vertex):
        raise ConfigError(f"{job.name}: updates are of a vertex program, and {job.program} is a function")
    if files.words:
        raise ConfigError(
            f"{files.words[0]} is about one run, and {job.name} runs after each batch of updates"
        )


def _write(job: JobConfig, result: Result, out: Console) -> None:
    """Write what the job asks for. Collective."""
    if job.output.path is not None:
        result.write(job.output.path, job.output.fields)
        out.print(f"wrote {job.output.path}", markup=False)
    if job.output.edges is not None:
        result.edges.write(job.output.edges)
        out.print(f"wrote {job.output.edges}", markup=False)


def _run(
    job: JobConfig, program: Vertex, graph: Graph, faults: Faults, files: RunFiles, *, resume: bool
) -> Result:
    from sigps.cli.checks import checkpoint_of
    from sigps.job.run import run as run_program
    from sigps.report.progress import live_progress

    rank = graph.group.rank
    with (
        live_progress(job.engine.max_supersteps, rank=rank) as show,
        files.observing(program, show, rank) as progress,
    ):
        return run_program(
            program,
            graph,
            **job.engine.model_dump(),
            partitioner=job.partition.method,
            gather=False,
            transport=job.exchange.transport,
            progress=progress,
            checkpoint=checkpoint_of(job),
            resume=resume,
            faults=faults,
        )


def _print_job(job: JobConfig, out: Console) -> None:
    import yaml

    text = yaml.safe_dump(job.model_dump(exclude_unset=True), sort_keys=False).rstrip()
    out.print(f"{text}\n{job.name} is good; nothing was run", markup=False)


def _precision_text(result: Result) -> str:
    """Say in which precision floats were computed; nothing of programs without floats, and of the interpreter."""
    record = result.record
    derived = None if record is None else record.derived
    if record is None or derived is None or not any(d.base.kind == "f" for d in derived.state_dtypes):
        return ""
    return f", in {record.precision} precision"


def _print_result(job: JobConfig, result: Result, group: Group, out: Console) -> None:
    """Print the statistics and the highest values. Collective: each rank sends its own highest."""
    from sigps.cli.report import superstep_table, top_table, trace_text
    from sigps.job.result import highest_of_ranks

    out.print(superstep_table(result.stats))
    ranks = f", {group.size} ranks" if group.size > 1 else ""
    out.print(result.summary() + ranks + _precision_text(result), markup=False)
    if result.aggregators:
        values = ", ".join(f"{name} {value}" for name, value in result.aggregators.items())
        out.print(f"aggregators at the end: {values}", markup=False)
    if job.engine.trace is not None:
        own = [(record["superstep"], record["id"], trace_text(record)) for record in result.trace or ()]
        for _, _, text in sorted(tuple(entry) for part in group.all_gather(own) for entry in part):
            out.print(text, markup=False)
    fields = [
        name for name in job.output.fields or result.fields if result[name].ndim == 1
    ]  # vectors have no order
    if job.output.top and fields:
        out.print(top_table(fields[0], highest_of_ranks(result, fields[0], job.output.top, group)))
