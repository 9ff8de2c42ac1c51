"""`sigps run` and `sigps explain`: from a job file to a written result, and what the compiler derived."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sigps.errors import ConfigError, GraphError, SigpsError

if TYPE_CHECKING:
    from rich.console import Console

    from sigps.graph import Graph
    from sigps.group import Group
    from sigps.job.config import Job
    from sigps.job.result import Result
    from sigps.model.vertex import Vertex
    from sigps.system.checkpoint.state_log import Checkpoint

__all__ = ["explain", "load_graph", "prepare", "run"]


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
@click.option("--launcher", metavar="COMMAND", help="What starts the ranks, with options.  [default: mpirun]")
def run(
    job_file: str,
    assignments: tuple[str, ...],
    output: str | None,
    dry_run: bool,
    resume: bool,
    ranks: int | None,
    retries: int,
    launcher: str | None,
) -> int:
    """Run a job: load the graph, run the program, print and write the result.

    Paths in the job file start at its folder, paths typed here start at the current directory. With
    several ranks (--ranks N, or mpirun -n N sigps run JOB.yaml) the output is a folder with one part a rank.
    """
    from sigps.job.config import load_job

    if launcher is not None and ranks is None:
        raise ConfigError(f"--launcher {launcher!r} is for several ranks: say how many with --ranks N")
    job = load_job(job_file, assignments, output=output)
    for option in ["--resume"] * resume + ["--retries"] * (retries > 0):
        if job.checkpoint is None:
            raise ConfigError(
                f"{option}: {job.name} has no section 'checkpoint' that says where its logs are"
            )
    if ranks is None and not retries:
        _run_here(job, dry_run=dry_run, resume=resume)
        return 0
    from sigps.cli.relaunch import Launch, command_of, relaunch

    verbose = click.get_current_context().find_root().params.get("verbose", 0)
    words = command_of(job_file, assignments, output, dry_run, verbose)
    command = [*Launch(ranks, "mpirun" if launcher is None else launcher).command(), *words]
    logs = None if job.checkpoint is None else Path(job.checkpoint.dir)
    tell = partial(click.echo, err=True)
    return relaunch(command, retries, logs, resume=resume, name=job.name, tell=tell)


def _run_here(job: Job, *, dry_run: bool, resume: bool) -> None:
    """Run a job in this process, a rank of whoever started it."""
    from sigps.cli.report import console
    from sigps.group import world

    group = world()
    out = console(rank=group.rank)
    program = prepare(job, group_size=group.size)
    if dry_run:
        _print_job(job, out)
        return
    graph = load_graph(job, group)
    out.print(str(graph.report), markup=False)
    result = _run(job, program, graph, resume=resume)
    _print_result(job, result, group, out)
    if job.output.path is not None:
        result.write(job.output.path, job.output.fields)
        group.barrier()
        out.print(f"wrote {job.output.path}", markup=False)
    if job.output.edges is not None:
        result.edges.write(job.output.edges)
        group.barrier()
        out.print(f"wrote {job.output.edges}", markup=False)


def prepare(job: Job, *, group_size: int = 1) -> Vertex:
    """Check all that can be checked before the graph is read, and return the program.

    Raises:
        SigpsError: If something is wrong; of several wrong things a ConfigError that lists them.
    """
    problems: list[SigpsError] = []

    def attempt(check: Callable[[], Any]) -> Any:
        try:
            return check()
        except SigpsError as error:
            problems.append(error)
            return None

    program = attempt(lambda: _program(job))
    if program is not None:
        attempt(lambda: _check_fields(job, program))
        attempt(lambda: _check_engine(job, program))
    attempt(lambda: _check_graph(job))
    attempt(lambda: _check_output(job, group_size))
    if len(problems) > 1:
        raise ConfigError("\n  ".join([f"{job.name}: {len(problems)} problems", *map(str, problems)]))
    if problems:
        raise problems[0]
    found: Vertex = program
    return found


def load_graph(job: Job, group: Group | None = None) -> Graph:
    """Load or generate the job's graph. Collective."""
    if job.graph.path is not None:
        from sigps.graph.load import load

        return load(job.graph.path, group=group, **job.graph.load_options)
    from sigps.graph.generators.generate import generate

    name, options = job.graph.generator_call
    return generate(name, group=group, **options)


def _program(job: Job) -> Vertex:
    from sigps.job.importing import import_program

    return import_program(job.program, job.folder)(**job.params)


def _check_fields(job: Job, program: Vertex) -> None:
    known = [field.name for field in program.declaration.states]
    wrong = [field for field in job.output.fields or () if field not in known]
    if wrong:
        raise ConfigError(
            f"output.fields names {', '.join(wrong)}, "
            f"but {type(program).__name__} has the fields {', '.join(known)}"
        )
    if job.output.edges is not None and not program.declaration.edge_states:
        raise ConfigError(
            f"output.edges is given, but {type(program).__name__} keeps nothing on edges: it declares no EdgeState"
        )


def _check_engine(job: Job, program: Vertex) -> None:
    from sigps.job.run import check_checkpoint, check_device, check_program, check_schedule

    device = job.engine.device
    check_device(device)
    check_checkpoint(_checkpoint(job), False, traces=job.engine.trace is not None)
    if job.engine.trace is not None and device != "python":
        raise ConfigError(f"engine.trace needs engine.device: python; this job has {device!r}")
    prepared = check_program(program, device, job.engine.precision)
    check_schedule(job.engine.schedule, job.engine.direction, device, prepared)


def _check_graph(job: Job) -> None:
    if job.graph.path is None:
        from sigps.graph.generators.generate import edge_stream

        name, options = job.graph.generator_call
        edge_stream(name, **options)
        return
    from sigps.graph.formats.table import detect_format

    try:
        detect_format(Path(job.graph.path))
    except GraphError as error:
        if Path(job.graph.path).exists():
            raise
        raise GraphError(
            f"{error}. A path in the job file starts at the file's folder, one given by --set here"
        ) from None


def _check_output(job: Job, group_size: int) -> None:
    from sigps.job.table_file import check_output

    if job.output.path is not None and job.output.path == job.output.edges:
        raise ConfigError(f"output: path and edges are both {job.output.path}: give each a file of its own")
    for path in filter(None, (job.output.path, job.output.edges)):
        check_output(path, group_size=group_size)


def _run(job: Job, program: Vertex, graph: Graph, *, resume: bool) -> Result:
    from sigps.cli.report import progress_line
    from sigps.job.run import run as run_program
    from sigps.system.faults.watch import Faults

    engine = job.engine
    with progress_line(engine.max_supersteps, rank=graph.group.rank) as progress:
        return run_program(
            program,
            graph,
            device=engine.device,
            max_supersteps=engine.max_supersteps,
            deterministic=engine.deterministic,
            partitioner=job.partition.method,
            trace=engine.trace,
            gather=False,
            schedule=engine.schedule,
            direction=engine.direction,
            precision=engine.precision,
            asynchronous=engine.asynchronous,
            threads=engine.threads,
            transport=job.exchange.transport,
            progress=progress,
            checkpoint=_checkpoint(job),
            resume=resume,
            faults=Faults(**job.faults.model_dump()),
        )


def _checkpoint(job: Job) -> Checkpoint | None:
    from sigps.system.checkpoint.state_log import Checkpoint

    return None if job.checkpoint is None else Checkpoint(**job.checkpoint.model_dump())


def _print_job(job: Job, out: Console) -> None:
    import yaml

    text = yaml.safe_dump(job.model_dump(exclude_unset=True), sort_keys=False).rstrip()
    out.print(f"{text}\n{job.name} is good; nothing was run", markup=False)


def _print_result(job: Job, result: Result, group: Group, out: Console) -> None:
    """Print the account and the highest values. Collective: each rank brings its own highest."""
    from sigps.cli.report import superstep_table, top_table, trace_text
    from sigps.job.result import highest

    out.print(superstep_table(result.stats))
    ranks = f", {group.size} ranks" if group.size > 1 else ""
    out.print(result.summary() + ranks, markup=False)
    if result.aggregators:
        values = ", ".join(f"{name} {value}" for name, value in result.aggregators.items())
        out.print(f"aggregators at the end: {values}", markup=False)
    if job.engine.trace is not None:
        own = [(record["superstep"], record["id"], trace_text(record)) for record in result.trace or ()]
        for _, _, text in sorted(tuple(entry) for part in group.all_gather(own) for entry in part):
            out.print(text, markup=False)
    fields = job.output.fields or list(result.fields)
    if job.output.top and fields:
        everyone = [pair for part in group.all_gather(result.top(fields[0], job.output.top)) for pair in part]
        out.print(top_table(fields[0], highest(everyone, job.output.top)))


@click.command(short_help="Say what the compiler derives from a program.")
@click.argument("program", metavar="PROGRAM")
@click.option(
    "--param", "assignments", multiple=True, metavar="NAME=VALUE", help="A parameter of the program."
)
def explain(program: str, assignments: tuple[str, ...]) -> None:
    """Say what the compiler derives from a program, and why: combiner, outbox record, early exit.

    PROGRAM is package.module:Class or path/to/file.py:Class.
    """
    from sigps.compiler import explain as explain_program
    from sigps.job.importing import import_program
    from sigps.job.yaml_source import Source, override

    cls = import_program(program)
    params = override(Source("parameters", {}, {}), assignments, flag="--param").data
    click.echo(explain_program(cls, **params))
