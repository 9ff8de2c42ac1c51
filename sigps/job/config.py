"""The job file: YAML in, a checked `JobConfig` out, and every mistake in it named at once.

    job = load_job("job.yaml", overrides=["engine.device=python"])
    program = import_program(job.program, job.folder)(**job.params)

A job names its program, its graph, its schedule and resources, and where the result is written; the algorithm itself
is in the class that it names. No other code comes from a job: YAML is loaded as plain data.

One rule for relative paths: those written in the job file start at the job file's folder, those typed on
the command line (`--set`, `-o`) start at the current directory.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError
from pydantic_core import ErrorDetails

from sigps.engine.table import device_names
from sigps.errors import ConfigError, nearest
from sigps.host_memory import bytes_of
from sigps.job.yaml_source import Source, override, read_yaml

__all__ = ["GraphSection", "JobConfig", "Section", "check_job", "load_job", "load_options", "validated"]

Count = Annotated[int, Field(ge=1)]
M = TypeVar("M", bound=BaseModel)


def _column(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str):
        return (_column(value[0]), value[1])
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        return value
    raise ValueError("a column's name, its number counted from 0, or [column, type]")


def _weights(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    try:
        return _column(value)
    except ValueError as error:
        raise ValueError(f"true, false, {error}") from None


def _vertex_id(value: Any) -> Any:
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        return value
    raise ValueError("a vertex id: a whole number or text")


def _runs(value: Any) -> Any:
    if value == "all" or (isinstance(value, list) and value):
        return value
    raise ValueError("a list of values, one for each run, or all: every vertex")


def _reduction(value: Any) -> Any:
    if value in ("sum", "min", "max"):
        return value
    raise ValueError("sum, min or max")


Column = Annotated[Any, AfterValidator(_column)]
Reduction = Annotated[Any, AfterValidator(_reduction)]
Runs = Annotated[Any, AfterValidator(_runs)]
Weights = Annotated[Any, AfterValidator(_weights)]
VertexId = Annotated[Any, AfterValidator(_vertex_id)]


class Section(BaseModel):
    """A part of a file: keys that are not known are wrong, and types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _paths(value: Any) -> Any:
    if isinstance(value, str) or (
        value and isinstance(value, list) and all(isinstance(p, str) for p in value)
    ):
        return value
    raise ValueError("a path, or a list of paths")


def _path_or_none(value: Any) -> Any:
    return None if value is None else _paths(value)


class GraphSection(Section):
    """The graph: a file or a native store (`path`), or a `generator` with its options.

    The path of a packed store in several folders is a list of them. Every other key belongs to `path` and is an
    argument of `sigps.load`, with the same default.
    """

    path: Annotated[Any, AfterValidator(_path_or_none)] = None
    format: str = "auto"
    directed: bool | None = None
    weights: Weights = None
    columns: dict[str, Column] | None = None
    source: Column = None
    target: Column = None
    duplicates: Literal["keep", "drop", "sum", "min", "max"] = "keep"
    self_loops: Literal["keep", "drop"] = "keep"
    delimiter: str | None = None
    comment: str | None = None
    header: bool | None = None
    ids: Literal["int", "string"] | None = None
    vertices: str | None = None
    vertex_id: Column = None
    vertex_columns: dict[str, Column] | None = None
    verify: Literal["auto", "full", "bounds", "none"] | None = None
    generator: dict[str, dict[str, Any] | None] | None = None

    @property
    def paths(self) -> list[str]:
        """The path, or the paths; none of a generator."""
        return [] if self.path is None else [self.path] if isinstance(self.path, str) else list(self.path)

    @property
    def load_options(self) -> dict[str, Any]:
        """The keyword arguments for `sigps.load`: the keys that were given."""
        return {k: v for k, v in self if k in self.model_fields_set and k not in ("path", "generator")}

    @property
    def vertices_path(self) -> str | None:
        """The file of vertices; None without one, as where `vertices` is `1..1000`."""
        from sigps.graph.formats.vertex_table import id_range

        return None if self.vertices is None or id_range(self.vertices) is not None else self.vertices

    @property
    def generator_call(self) -> tuple[str, dict[str, Any]]:
        """The generator's name and its options."""
        ((name, options),) = (self.generator or {}).items()
        return name, options or {}


if TYPE_CHECKING:
    _Device = str
else:
    _Device = Literal[device_names()]


def _asynchronous(value: Any) -> Any:
    if isinstance(value, bool) or value == "auto":
        return value
    raise ValueError("must be true, false or auto")


def _bytes(value: Any) -> Any:
    try:
        bytes_of(value, "it")
    except ConfigError as error:
        raise ValueError(str(error)[str(error).index("must be") :]) from None
    return value


Bytes = Annotated[Any, AfterValidator(_bytes)]
"""A number of bytes above 0, or a text such as `8GB`; kept as it was given."""


class EngineSection(Section):
    """The engine: arguments of `sigps.run` of the same names."""

    device: _Device = "auto"
    max_supersteps: Count | None = None
    deterministic: bool = False
    schedule: Literal["vertex", "edge"] = "vertex"
    direction: Literal["auto", "push", "pull"] = "auto"
    precision: Literal["auto", "single", "double"] = "auto"
    asynchronous: Annotated[Any, AfterValidator(_asynchronous)] = "auto"
    threads: Count | None = None
    trace: list[VertexId] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    host_memory: Bytes | None = None
    device_memory: Bytes | None = None
    stream: Literal["auto", "always", "never"] = "auto"
    transfer: Literal["auto", "bulk", "rows"] = "auto"
    tiles: Literal["auto", "always", "never"] = "auto"


class PartitionSection(Section):
    """How the vertices are divided among the ranks."""

    method: Literal["edges", "vertices", "hash", "bfs", "metis"] = "edges"


class ExchangeSection(Section):
    """How records and messages cross between ranks."""

    transport: Literal["auto", "mpi", "nccl", "peer"] = "auto"


class CheckpointSection(Section):
    """When the state is saved, and where: the arguments of `sigps.Checkpoint`."""

    dir: str
    every: Count | None = None
    seconds: Annotated[float, Field(gt=0)] | None = None
    keep: Count = 2


class FaultsSection(Section):
    """When a rank counts as lost: the arguments of `sigps.Faults`; `.inf` is no limit."""

    silent_seconds: Annotated[float, Field(gt=0)] = 20.0
    superstep_seconds: Annotated[float, Field(gt=0)] = math.inf


def _guard(value: Any) -> Any:
    if value in ("auto", "incremental", "full") or (
        isinstance(value, dict) and value.keys() == {"field", "below", "fraction"}
    ):
        return value
    raise ValueError("auto, incremental, full, or {field, below, fraction}")


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def _window(value: Any) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if (is_number and value > 0) or (isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?[smhdw]", value)):
        return value
    raise ValueError("a time above 0, such as 3600, 90m or 7d")


class UpdatesSection(Section):
    """Batches of updates that the result follows: arguments of `sigps.read_updates` and `sigps.stream`.

    A `window` with a unit (s, m, h, d, w) is for times that are timestamps, or seconds. `output_every` counts batches,
    as `checkpoint.every` does.
    """

    path: Annotated[Any, AfterValidator(_paths)]
    batch: Count = 100_000
    columns: dict[str, str] | None = None
    window: Annotated[Any, AfterValidator(_window)] = None
    guard: Annotated[Any, AfterValidator(_guard)] = "auto"
    missing: Literal["count", "error"] = "count"
    tolerance: Annotated[float, Field(ge=1e-12, lt=1)] | None = None
    output_every: Count | None = None

    @property
    def window_length(self) -> float | None:
        """The window in the unit of the times."""
        if not isinstance(self.window, str):
            return None if self.window is None else float(self.window)
        return float(self.window[:-1]) * _UNITS[self.window[-1]]


class OutputSection(Section):
    """Where the result is written: a `.parquet` or `.csv` file, and how many of the highest values are printed.

    `edges` is another such file, for the values that the program keeps on edges, or a function finds of them. `reduce`
    brings fields together over many runs, as in `sigps.run_many`.
    """

    path: str | None = None
    edges: str | None = None
    fields: list[str] | None = None
    top: Annotated[int, Field(ge=0)] = 10
    reduce: dict[str, Reduction] | None = None


class JobConfig(Section):
    """One run, or many of one program, checked. Paths are absolute.

    Attributes:
        program: A vertex class, or a function of a graph, the parameters and the options of runs that are given, which
            returns a `Result`.
        many: Of several runs the parameters that vary, and their values: as many of each as there are runs.
        folder: The folder at which a relative path of the program starts: that of the job file, or the current one
            where `--set` names the program.
        name: The job file's name, for messages.
    """

    program: str
    params: dict[str, Any] = {}
    many: dict[str, Runs] | None = None
    graph: GraphSection
    engine: EngineSection = EngineSection()
    partition: PartitionSection = PartitionSection()
    exchange: ExchangeSection = ExchangeSection()
    checkpoint: CheckpointSection | None = None
    faults: FaultsSection = FaultsSection()
    updates: UpdatesSection | None = None
    output: OutputSection = OutputSection()

    _folder: Path = PrivateAttr(default_factory=Path.cwd)
    _param_folders: dict[str, Path] = PrivateAttr(default_factory=dict)
    _param_origins: dict[str, str] = PrivateAttr(default_factory=dict)
    _name: str = PrivateAttr(default="job")

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def name(self) -> str:
        return self._name

    @property
    def param_folders(self) -> Mapping[str, Path]:
        """The folders at which relative paths that are parameters start, by the parameters' names."""
        return self._param_folders

    @property
    def param_origins(self) -> Mapping[str, str]:
        """Where parameters were written, by their names: `"line 4"` or `"--set params.damping=2"`."""
        return self._param_origins


def load_job(
    path: str | Path, overrides: Iterable[str] = (), *, output: str | Path | None = None
) -> JobConfig:
    """Read and check a job file. Reads no graph and runs no code.

    Args:
        path: The YAML file.
        overrides: `key.path=value` assignments, applied in order; values are YAML.
        output: Replaces `output.path`.

    Raises:
        ConfigError: If the file cannot be read, is not YAML, or breaks a rule; all broken rules are listed.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the job file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the job file {path}: it is not UTF-8 text") from None
    source = override(read_yaml(text, str(path)), overrides)
    if output is not None:
        quoted = str(output).replace("'", "''")
        source = override(source, [f"output.path='{quoted}'"])
    return check_job(source, path.resolve().parent)


def load_options(assignments: Iterable[str]) -> dict[str, Any]:
    """Return the keyword arguments for `sigps.load` that `--opt key=value` assignments give, checked.

    Raises:
        ConfigError: If an assignment breaks a rule; all broken rules are listed.
    """
    source = Source("graph options", {"program": "none:None", "graph": {"path": "none"}}, {})
    source = override(source, assignments, flag="--opt", section=("graph",))
    return check_job(source, Path()).graph.load_options


def check_job(source: Source, folder: Path) -> JobConfig:
    """Return the job that the source describes; `folder` is where its relative paths start.

    Raises:
        ConfigError: If it breaks a rule; all broken rules are listed.
    """
    data = _given(source.data)
    return _rooted(validated(JobConfig, source, data, list(_contradictions(data, source))), source, folder)


def validated(model: type[M], source: Source, data: Mapping[str, Any], problems: Sequence[str] = ()) -> M:
    """Return what the data of a file describe.

    Args:
        model: Its class.
        source: Says where a key was written.
        data: Those of the source, or what was made of them.
        problems: More of them.

    Raises:
        ConfigError: If it breaks a rule; all broken rules are listed, then the problems.
    """
    found, broken = None, []
    try:
        found = model.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        told: set[str] = set()  # what a section has, which is said once
        broken = [_problem(source, detail, model, told) for detail in details]
    broken += problems
    if broken or found is None:
        count = "1 problem" if len(broken) == 1 else f"{len(broken)} problems"
        raise ConfigError("\n  ".join([f"{source.name}: {count}", *broken]))
    return found


def _contradictions(data: Mapping[str, Any], source: Source) -> Iterator[str]:
    """Yield the problems between keys; values of a wrong type are left out, since pydantic reports them."""
    checkpoint = data.get("checkpoint")
    if isinstance(checkpoint, dict) and not {"every", "seconds"} & checkpoint.keys():
        yield _located(
            source, ("checkpoint",), "says not when: give 'every' (supersteps), 'seconds', or both"
        )
    yield from _contradictions_of_runs(data, source)
    yield from _contradictions_of_updates(data, source)
    engine = data.get("engine")
    chosen = (engine.get("schedule"), engine.get("direction")) if isinstance(engine, dict) else ()
    if chosen in (("edge", "push"), ("edge", "pull")):
        yield _located(source, ("engine", "direction"), "is of schedule 'vertex'; edges have none")
    graph = data.get("graph")
    if not isinstance(graph, dict):
        return
    generator = graph.get("generator")
    if ("path" in graph) == ("generator" in graph):
        what = "both 'path' and 'generator'" if "path" in graph else "neither 'path' nor 'generator'"
        yield _located(source, ("graph",), f"has {what}: give exactly one")
    elif isinstance(generator, dict):
        if len(generator) != 1:
            names = ", ".join(map(str, generator)) or "none"
            yield _located(
                source, ("graph", "generator"), f"names {names}: give exactly one, with its options"
            )
        for key in graph:
            if key in GraphSection.model_fields and key != "generator":
                rule = "belongs to 'path'; a generator's options stand below its name"
                yield _located(source, ("graph", key), rule)


def _contradictions_of_runs(data: Mapping[str, Any], source: Source) -> Iterator[str]:
    """Yield the problems between `many` and other keys."""
    many, output = data.get("many"), data.get("output")
    if not isinstance(many, dict):
        if isinstance(output, dict) and "reduce" in output:
            yield _located(
                source, ("output", "reduce"), "brings many runs together, and there is no key 'many'"
            )
        return
    lengths = {name: len(values) for name, values in many.items() if isinstance(values, list)}
    if not many or len(set(lengths.values())) > 1 or (lengths and len(lengths) < len(many)):
        text = ", ".join(f"{name} has {lengths.get(name, 'all')}" for name in many) or "it has none"
        yield _located(source, ("many",), f"gives parameters as many values as there are runs: {text}")
    params = data.get("params")
    for name in many:
        if isinstance(params, dict) and name in params:
            yield _located(source, ("params", str(name)), "is given in 'many', too: leave one out")
    for section, key in (("engine", "trace"), ("output", "edges")):
        if isinstance(found := data.get(section), dict) and key in found:
            yield _located(source, (section, key), "is for one run, and 'many' asks for several")
    if "checkpoint" in data:
        yield _located(source, ("checkpoint",), "is for one run, and 'many' asks for several")


def _contradictions_of_updates(data: Mapping[str, Any], source: Source) -> Iterator[str]:
    """Yield the problems between `updates` and other keys."""
    updates, output = data.get("updates"), data.get("output")
    if not isinstance(updates, dict):
        return
    if "many" in data:
        yield _located(source, ("many",), "asks for several runs, and 'updates' is of one")
    if updates.get("output_every") is not None and not (isinstance(output, dict) and output.get("path")):
        yield _located(source, ("updates", "output_every"), "has nowhere to write: give output.path")
    for section, key in (("engine", "trace"), ("output", "edges")):
        if isinstance(found := data.get(section), dict) and found.get(key) is not None:
            yield _located(source, (section, key), "is of a run without 'updates'")


def _problem(source: Source, detail: ErrorDetails, model: type[BaseModel], told: set[str]) -> str:
    path = _keys(source.data, detail["loc"])
    value = reprlib.repr(detail["input"])
    section = _section(path[:-1], model)
    where = ".".join(path[:-1]) or ("a job" if model is JobConfig else "the file")
    match detail["type"]:
        case "extra_forbidden":
            known = "" if where in told else f" {where} has {', '.join(section)}"
            problem = f"(value {value}) is no known key{nearest(path[-1], section)}{known}"
            told.add(where)
        case "missing":
            problem = f"is missing: {where} needs it"
        case "literal_error":
            choices = _choices(section[path[-1]].annotation)
            problem = f"is {value}{nearest(detail['input'], choices)} It must be one of {', '.join(choices)}"
        case "model_type" | "dict_type":
            problem = f"is {value}, but it must be a mapping ('key: value' lines)"
        case _:
            problem = f"is {value}, but it {_rule(detail['msg'])}"
    return _located(source, path, problem)


def _choices(annotation: Any) -> list[str]:
    """Return the texts that a Literal, or one in a union, allows."""
    if get_origin(annotation) is Literal:
        return list(map(str, get_args(annotation)))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _rule(message: str) -> str:
    """Return a rule of pydantic in the words of a job file."""
    for theirs, ours in _WORDS:
        message = message.replace(theirs, ours)
    return message if message.startswith("must be") else f"must be {message}"


_WORDS = [
    ("Value error, ", ""),
    ("Input should be", "must be"),
    ("a valid integer", "a whole number"),
    ("a valid boolean", "true or false"),
    ("a valid string", "text"),
    ("a valid list", "a list"),
    ("greater than or equal to", "at least"),
    ("greater than", "above"),
]


def _located(source: Source, path: Sequence[str], problem: str) -> str:
    origin = source.origin(tuple(path))
    return f"{origin + ': ' if origin else ''}{'.'.join(path)} {problem}"


def _keys(data: Any, location: Sequence[int | str]) -> tuple[str, ...]:
    """Return the keys of the data in an error's location, without the names of a union's branches."""
    path: list[str] = []
    for position, part in enumerate(location):
        if isinstance(data, Mapping) and (part in data or position == len(location) - 1):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part]
        else:
            continue
        path.append(str(part))
    return tuple(path)


def _section(path: Sequence[str], model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the fields of the section at a key path."""
    for key in path:
        if key not in model.model_fields:  # the key of a mapping of sections
            continue
        annotation = model.model_fields[key].annotation
        models = [t for t in (annotation, *get_args(annotation)) if isinstance(t, type)]
        found = [t for t in models if issubclass(t, BaseModel)]
        if not found:
            return {}
        model = found[0]
    return model.model_fields


def _given(data: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the keys of the job and its sections that hold null: they keep their defaults."""
    given = {key: value for key, value in data.items() if value is not None}
    for key, value in given.items():
        if isinstance(value, dict) and key not in ("params", "many"):
            given[key] = {k: v for k, v in value.items() if v is not None}
    return given


def _rooted(job: JobConfig, source: Source, folder: Path) -> JobConfig:
    """Return the job with absolute paths."""

    def absolute(path: str, *keys: str) -> str:
        typed = source.origin(keys).startswith("--")
        return str((Path.cwd() if typed else folder) / Path(path).expanduser())

    def all_absolute(path: Any, *keys: str) -> Any:
        """Return a path, or each of a list of them."""
        return absolute(path, *keys) if isinstance(path, str) else [absolute(each, *keys) for each in path]

    sections = {name: getattr(job, name) for name in ("graph", "output", "checkpoint")}
    for name, key in (
        ("graph", "path"),
        ("graph", "vertices"),
        ("output", "path"),
        ("output", "edges"),
        ("checkpoint", "dir"),
    ):
        path = getattr(sections[name], key, None)
        if path is not None and (key != "vertices" or job.graph.vertices_path):
            sections[name] = sections[name].model_copy(update={key: all_absolute(path, name, key)})
    if job.updates is not None:
        sections["updates"] = job.updates.model_copy(
            update={"path": all_absolute(job.updates.path, "updates", "path")}
        )
    rooted = job.model_copy(update=sections)
    rooted._folder = Path.cwd() if source.origin(("program",)).startswith("--") else folder
    rooted._name = source.name
    for name in job.params:
        rooted._param_origins[name] = origin = source.origin(("params", name))
        typed = origin.startswith("--")
        rooted._param_folders[name] = Path.cwd() if typed else folder
    return rooted
