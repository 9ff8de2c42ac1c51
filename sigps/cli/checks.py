"""What can be checked of a job before its graph is read, and the graph itself; for `sigps run` and `sigps plan`."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sigps.errors import ConfigError, GraphError, SigpsError, nearest

if TYPE_CHECKING:
    from sigps.graph import Graph
    from sigps.graph.building.place import BuildDevice
    from sigps.group import Group
    from sigps.job.config import JobConfig
    from sigps.job.result import Result
    from sigps.model.fields import Field
    from sigps.model.vertex import Vertex
    from sigps.system.checkpoint.state_log import Checkpoint

__all__ = ["checkpoint_of", "given_options", "load_graph", "load_option", "prepare"]

load_option = click.option(
    "--opt",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="How to read it: format=snap, directed=false, ...",
)
"""Of commands that load a graph; the values are for `sigps.job.config.load_options`."""


def prepare(job: JobConfig, *, group_size: int = 1) -> Vertex | Callable[..., Result]:
    """Check all that can be checked before the graph is read, and return the program.

    A function of a graph that stands in the program's place is returned with its parameters.

    Raises:
        SigpsError: If something is wrong; of several wrong things a ConfigError that lists them.
    """
    from sigps.job.importing import import_named

    problems: list[SigpsError] = []

    def attempt(check: Callable[[], Any]) -> Any:
        try:
            return check()
        except SigpsError as error:
            problems.append(error)
            return None

    named = attempt(lambda: import_named(job.program, job.folder))
    is_function = named is not None and not isinstance(named, type)
    program = (
        attempt(lambda: _with_params(job, named) if is_function else _program(job, named)) if named else None
    )
    if program is not None and not is_function:
        attempt(lambda: _check_fields(job, program))
        attempt(lambda: _check_engine(job, program))
    attempt(lambda: _check_graph(job))
    attempt(lambda: _check_output(job, 1 if is_function or job.many is not None else group_size))
    if len(problems) > 1:
        raise ConfigError(
            "\n  ".join(
                [f"{job.name}: {len(problems)} problems", *(str(p).replace("\n", "\n  ") for p in problems)]
            )
        )
    if problems:
        raise problems[0]
    assert program is not None
    found: Vertex | Callable[..., Result] = program
    return found


def load_graph(job: JobConfig, group: Group | None = None) -> Graph:
    """Load or generate the job's graph, on the device that the job names. Collective."""
    from sigps.graph.building.place import building_on
    from sigps.group import launched_rank
    from sigps.report.progress import live_wait

    paths, generator = job.graph.paths, job.graph.generator
    what = f"generating {next(iter(generator))}" if generator else f"reading {', '.join(paths)}"
    rank = launched_rank(os.environ) if group is None else group.rank
    with live_wait(what, rank=rank), building_on(_builder(job.engine.device)):
        if job.graph.path is not None:
            from sigps.graph.load import load

            return load(job.graph.path, group=group, **job.graph.load_options)
        from sigps.graph.generators.generate import generate

        name, options = job.graph.generator_call
        return generate(name, group=group, **options)


def _builder(device: str) -> BuildDevice:
    """Return what builds the graph of a run on a device."""
    return "auto" if device == "auto" else "cuda" if device == "cuda" else "cpu"


def given_options(job: JobConfig) -> dict[str, Any]:
    """Return the options of runs that a job gives a function: those that it says, and not their defaults."""
    from sigps.group.limits import Faults

    options = job.engine.model_dump(exclude_unset=True, exclude={"trace"})
    if "partition" in job.model_fields_set:
        options["partitioner"] = job.partition.method
    if "exchange" in job.model_fields_set:
        options["transport"] = job.exchange.transport
    if "faults" in job.model_fields_set:
        options["faults"] = Faults(**job.faults.model_dump())
    return {name: value for name, value in options.items() if name not in job.params}


def _with_params(job: JobConfig, function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a job's function with its parameters; check the names of all that it will be given."""
    for key, is_given in (
        ("many", job.many is not None),
        ("checkpoint", job.checkpoint is not None),
        ("engine.trace", job.engine.trace is not None),
        ("output.reduce", job.output.reduce is not None),
    ):
        if is_given:
            raise ConfigError(f"{job.name}: {key} is of a vertex program, and {job.program} is a function")
    _, *parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    given = {**job.params, **given_options(job)}
    takes_any = len(names) < len(parameters)
    for name in given:
        if name not in names and (name in job.params or not takes_any):
            has = f"It has: {', '.join(names) or 'none'}"
            raise ConfigError(
                f"{job.name}: {job.program} has no parameter {name!r}{nearest(name, names)} {has}"
            )
    missing = [p.name for p in parameters if p.default is p.empty and p.name in names and p.name not in given]
    if missing:
        raise ConfigError(f"{job.name}: {job.program} needs params.{missing[0]}")
    return functools.partial(function, **job.params)


def _program(job: JobConfig, cls: type[Vertex]) -> Vertex:
    from sigps.job.tables import read_tables
    from sigps.model.declaration import checked

    params = read_tables(cls, job.params, job.param_folders)
    known = {field.name for field in cls.declaration.params}
    has = ", ".join(field.name for field in cls.declaration.params) or "none"
    problems = [
        f"{job.param_origins.get(name, 'params')}: {cls.__name__} has no parameter {name!r}{nearest(name, known)} "
        f"It has: {has}"
        for name in params
        if name not in known
    ]
    for field in cls.declaration.params:
        for value in [params[field.name]] if field.name in params else _values_of_runs(job, field):
            try:
                checked(cls.__name__, field, value)
            except ConfigError as error:
                problems.append(f"{job.param_origins.get(field.name, 'many')}: {error}")
    if problems:
        raise ConfigError("\n  ".join([f"{job.name}: parameters are wrong", *problems]))
    first = {
        name: 0 if values == "all" else values[0]
        for name, values in (job.many or {}).items()
        if name in known or name != "seed"  # which may be the run's
    }
    return cls(**params, **first)


def _values_of_runs(job: JobConfig, field: Field) -> list[Any]:
    """Return the values that runs give a parameter; of one that takes every vertex none, as the graph has them."""
    values = (job.many or {}).get(field.name, [])
    if values == "all" and not field.is_vertex_id:
        raise ConfigError(
            f"{job.name}: many.{field.name} is 'all', every vertex, and it names none: give a list"
        )
    return [] if values == "all" else list(values)


def _check_fields(job: JobConfig, program: Vertex) -> None:
    known = [field.name for field in program.declaration.states]
    wrong = [field for field in job.output.fields or () if field not in known]
    if wrong:
        raise ConfigError(
            f"output.fields names {', '.join(wrong)}, "
            f"but {type(program).__name__} has the fields {', '.join(known)}"
        )
    reduced = job.output.reduce or {}
    if wrong := [field for field in reduced if field not in known]:
        raise ConfigError(
            f"output.reduce names {', '.join(wrong)}, "
            f"but {type(program).__name__} has the fields {', '.join(known)}"
        )
    if reduced and (wrong := [field for field in job.output.fields or () if field not in reduced]):
        raise ConfigError(f"output.fields names {', '.join(wrong)}, which output.reduce leaves out")
    if job.output.edges is not None and not program.declaration.edge_states:
        raise ConfigError(
            f"output.edges is given, but {type(program).__name__} keeps nothing on edges: it declares no EdgeState"
        )


def _check_engine(job: JobConfig, program: Vertex) -> None:
    from sigps.engine.table import tracing_devices
    from sigps.job.preparing import check_checkpoint, check_device, check_program, check_schedule

    device = job.engine.device
    check_device(device)
    check_checkpoint(checkpoint_of(job), False, traces=job.engine.trace is not None)
    if job.engine.trace is not None and device not in (able := tracing_devices()):
        raise ConfigError(f"engine.trace needs engine.device: {able[0]}; this job has {device!r}")
    prepared = check_program(program, device, job.engine.precision)
    check_schedule(job.engine.schedule, job.engine.direction, device, prepared)


def _check_graph(job: JobConfig) -> None:
    if job.graph.path is None:
        from sigps.graph.generators.generate import edge_stream

        name, options = job.graph.generator_call
        edge_stream(name, **options)
        return
    from sigps.graph.formats.blocks import require_file
    from sigps.graph.formats.store_header import read_header
    from sigps.graph.formats.table import detect_format

    vertices, paths = job.graph.vertices_path, job.graph.paths
    try:
        if len(paths) > 1:
            read_header(paths)
        else:
            detect_format(Path(paths[0]))
        if vertices is not None:
            require_file(Path(vertices))
    except GraphError as error:
        if all(Path(path).exists() for path in (*paths, vertices) if path is not None):
            raise
        raise GraphError(
            f"{error}. A path in the job file starts at the file's folder, one given by --set here"
        ) from None


def _check_output(job: JobConfig, group_size: int) -> None:
    from sigps.job.table_file import check_output

    if job.output.path is not None and job.output.path == job.output.edges:
        raise ConfigError(f"output: path and edges are both {job.output.path}: give each a file of its own")
    for path in filter(None, (job.output.path, job.output.edges)):
        check_output(path, group_size=group_size)


def checkpoint_of(job: JobConfig) -> Checkpoint | None:
    """Return when and where the job saves its state; None where it does not."""
    from sigps.system.checkpoint.state_log import Checkpoint

    return None if job.checkpoint is None else Checkpoint(**job.checkpoint.model_dump())
