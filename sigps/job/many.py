"""Many runs of one program on one graph: side by side where the engine has lanes for it, else one after another."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import drawing
from sigps.costs.sizes import size_of
from sigps.engine.contract import EngineSpec, LaneRun, LanesFailedError, Share
from sigps.errors import ConfigError, nearest
from sigps.graph.graph import Graph
from sigps.graph.report import bytes_text
from sigps.graph.whole import whole_graph
from sigps.group.limits import Faults
from sigps.host_memory import available_memory, bytes_of
from sigps.job.collect import all_ids, as_string_ids, on_edges, optional_fields, to_rank_0, writers_of
from sigps.job.many_results import REDUCTIONS, Reduction, Results, reduced
from sigps.job.preparing import Prepared, bind_all, prepared, seeded
from sigps.job.result import EdgeFields, Result
from sigps.job.run import run
from sigps.model.vertex import Vertex
from sigps.system.shared_out import FailedRunsError, ranks_here, run_shared_out
from sigps.system.side_by_side import run_side_by_side

__all__ = ["run_lanes", "run_many"]

log = logging.getLogger(__name__)

_OPTIONS = {
    name: option.default
    for name, option in inspect.signature(run).parameters.items()
    if option.kind is option.KEYWORD_ONLY
}
_OF_ONE_RUN = ("progress", "checkpoint", "resume", "trace")


def run_many(
    program: type[Vertex] | Vertex,
    graph: Graph,
    *,
    reduce: Mapping[str, Reduction] | None = None,
    **keywords: Any,
) -> Results:
    """Run a program many times on one graph, with other parameters each time. Collective under `mpirun`.

    A keyword that is a list or an array gives one value for each run, in order; any other value is for all runs. Each
    run's result is that of `run` by itself: integers bit for bit, its supersteps, reason and aggregators among them;
    floats add up in the order of senders, as in the interpreter, and with `deterministic=True` as there.

    Runs go side by side (in lanes). On CPU cores states and messages become k wide, and a superstep walks the edges
    once for k runs; or each thread has one run, as with values on edges, and direct or listed messages. Several ranks
    have a share of the runs each, and the whole graph, which is brought to them once. On a GPU each run has its part of
    the multiprocessors, with states, messages and values on edges of its own. Where that is not possible they go one
    after another, and `results.one_by_one` says why: the interpreter, `asynchronous=True`, edges that are streamed,
    fewer runs than ranks (or than threads, where lanes on CPU cores cannot have the program), and on several ranks a
    graph that takes more than half of a rank's share of the free memory (or than `host_memory`), or of its GPU's.

    Args:
        program: The class, whose parameters are keywords; or an instance, whose parameters are those of all runs, but
            for what the keywords say.
        graph: The graph.
        reduce: Fields to bring together over all runs, `"sum"`, `"min"` or `"max"` each, as in
            `{"dependency": "sum"}`: `results.reduced` has them, and no run keeps its fields, which takes less memory.
        keywords: Parameters of the program, and options of `run`. `seed` may be a list, too. Of `run`'s options
            `checkpoint`, `resume`, `progress` and `trace` are for one run. A parameter that has the name of an option
            is given by an instance.

    Raises:
        ConfigError: If lists have different lengths, there is none, or a keyword is unknown; else as `run`.

    >>> from sigps.apps import BFS
    >>> results = run_many(BFS, Graph.from_edges([0, 1], [1, 2]), source=[0, 1], device="cpu")
    >>> results["level"].tolist(), results[1].supersteps
    ([[0, 1, 2], [-1, 0, 1]], 2)
    """
    programs, given, options = _runs(program, keywords)
    _check_reduce(reduce, programs[0])
    seeds = [values.get("seed", options["seed"]) for values in given]
    one = {name: value for name, value in options.items() if name != "seed"}
    made = prepared(programs[0], graph, seed=seeds[0], **_without_partitioner(one))
    why = _obstacle(made, programs, given, one["host_memory"])
    if not why:
        lanes = _side_by_side(made, programs, seeds, one, reduce)
        runs = _or_one_by_one(lanes, graph, programs, seeds, given, one)
    else:
        log.info("%d runs of %s go one after another: %s", len(programs), type(programs[0]).__name__, why)
        runs = (run(p, graph, seed=s, **one) for p, s in zip(programs, seeds, strict=True))
    found, brought = _kept(runs, reduce)
    if not why and made.graph.group.size > 1 and one["gather"]:
        brought = {name: to_rank_0(values, made.graph) for name, values in brought.items()}
    return Results(found, given, name=type(programs[0]).__name__, reduced=brought, one_by_one=why)


def _runs(
    program: type[Vertex] | Vertex, keywords: Mapping[str, Any]
) -> tuple[list[Vertex], list[dict[str, Any]], dict[str, Any]]:
    """Return the program of each run, what each is given by itself, and the options of all."""
    is_class = isinstance(program, type) and issubclass(program, Vertex)
    if not is_class and not isinstance(program, Vertex):
        raise ConfigError(f"run_many() takes a subclass of Vertex, or an instance of one, not {program!r}")
    cls: type[Vertex] = program if isinstance(program, type) else type(program)
    lists = {name: _values(value) for name, value in keywords.items() if _is_list(value)}
    options = _OPTIONS | {n: v for n, v in keywords.items() if n in _OPTIONS and n not in lists}
    for name in keywords:
        if name in _OF_ONE_RUN and name in keywords and keywords[name] not in (None, False):
            raise ConfigError(f"{name}= is for one run: use sigps.run for each")
        if name in lists and name in _OPTIONS and name != "seed":
            raise ConfigError(f"{name}= is an option of all runs, and a list gives one value for each")
    if not lists:
        raise ConfigError(
            "run_many() varies nothing: give a parameter a list, as in source=[1, 5, 9], or use sigps.run for one run"
        )
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        text = ", ".join(f"{name}= has {length}" for name, length in lengths.items())
        raise ConfigError(f"a list has one value for each run, and at least one: {text}")
    shared = {} if isinstance(program, type) else program.params
    shared |= {n: v for n, v in keywords.items() if n not in lists and n not in _OPTIONS}
    given = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    names = {field.name for field in cls.declaration.params}
    unknown = [name for name in keywords if name not in _OPTIONS and name not in names]
    if unknown:
        known = [*names, *_OPTIONS]
        raise ConfigError(
            f"{cls.__name__} has no parameter {unknown[0]!r}, nor is it an option{nearest(unknown[0], known)} "
            f"It has: {', '.join(names) or 'none'}"
        )
    own = [{n: v for n, v in values.items() if n in names and n not in _OPTIONS} for values in given]
    return [cls(**(shared | values)) for values in own], given, options


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, range)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _values(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise ConfigError(
            f"an array of {value.ndim} dimensions gives no values for runs: one value is one run's"
        )
    values: list[Any] = value.tolist() if isinstance(value, np.ndarray) else list(value)
    return values


def _check_reduce(reduce: Any, program: Vertex) -> None:
    if reduce is None:
        return
    fields = {field.name: field for field in program.declaration.states}
    if not isinstance(reduce, Mapping) or not reduce:
        raise ConfigError(
            f"reduce={reduce!r} must say how by the names of fields: reduce={{'distance': 'sum'}}"
        )
    for name, how in reduce.items():
        if name not in fields:
            raise ConfigError(
                f"reduce={name!r}: {type(program).__name__} has the fields {', '.join(fields)}{nearest(name, fields)}"
            )
        if how not in REDUCTIONS:
            raise ConfigError(f"reduce={{{name!r}: {how!r}}} is not one of {', '.join(REDUCTIONS)}")
        if fields[name].is_vertex_id:
            raise ConfigError(f"reduce={name!r} holds ids of vertices, which cannot be brought together")


def _without_partitioner(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "partitioner"}


def _obstacle(
    made: Prepared,
    programs: Sequence[Vertex],
    given: Sequence[Mapping[str, Any]],
    host_memory: int | str | None,
) -> str:
    """Say why the runs cannot go side by side; empty where they can. Collective; the same on all ranks."""
    group = made.graph.group
    why = _lanes_obstacle(made, programs, given)
    if group.size == 1:
        return why
    spec, bytes_here = made.executable.spec, _bytes_of_whole(made)
    of_device = spec.memory_of_rank(made.manager.rank_on_host, ranks_here(made.graph))
    memory = {"memory": (bytes_here, _memory_of_rank(made, host_memory))}
    if of_device is not None:
        memory["device's memory"] = _bytes_on_device(made), of_device
    here = why or sharing_obstacle(spec, len(programs), group.size, memory)
    return next(filter(None, group.all_gather(here)), "")


def sharing_obstacle(
    spec: EngineSpec, num_runs: int, num_ranks: int, memory: Mapping[str, tuple[int, int]]
) -> str:
    """Say why ranks cannot each have the whole graph, and a share of the runs; empty where they can. Pure.

    Args:
        spec: The engine of this rank.
        num_runs: How many there are.
        num_ranks: Ranks.
        memory: By each kind of memory of this rank what the whole graph and one run take, and what they may take.
    """
    if not spec.shares_runs:
        return f"several ranks on device={spec.device!r} have one run at a time"
    if num_runs < num_ranks:
        return f"there are fewer runs than the {num_ranks} ranks, which have one at a time together"
    for kind, (num_bytes, most_bytes) in memory.items():
        if num_bytes > most_bytes:
            return (
                f"several ranks have one run at a time where the whole graph, here {bytes_text(num_bytes)} with a run, "
                f"takes more of a rank's {kind} than {bytes_text(most_bytes)}"
            )
    return ""


def _bytes_of_whole(made: Prepared) -> int:
    """Return what a rank keeps that has the whole graph and one run, beside its own rows."""
    return sum(_purposes(made).values())


def _bytes_on_device(made: Prepared) -> int:
    """Return about what it keeps of that in the device's own memory."""
    graph, program = made.graph, made.executable.program
    assert program is not None
    whole = Share(
        graph.num_vertices, graph.num_edges, len(graph.column_types()), graph.directed, 1, graph.num_edges
    )
    of_run = (_purposes(made).get(name, 0) for name in ("state", "messages", "on edges", "tables"))
    return sum(made.executable.spec.num_bytes(program, whole).values()) + sum(of_run)


def _purposes(made: Prepared) -> dict[str, int]:
    from sigps.costs.memory import bytes_of_states, bytes_of_tables, memory

    states, tables = bytes_of_states(made.program, made.options.precision), bytes_of_tables(made.program)
    return memory(size_of(made.graph), made.executable.program, 1, states, table_bytes=tables)


def _memory_of_rank(made: Prepared, host_memory: int | str | None) -> int:
    """Return what the whole graph may take here: `host_memory`, or half of this rank's share of what is free."""
    if host_memory is not None:
        return bytes_of(host_memory, "host_memory")
    return available_memory() // (2 * ranks_here(made.graph))


def _lanes_obstacle(made: Prepared, programs: Sequence[Vertex], given: Sequence[Mapping[str, Any]]) -> str:
    if len(programs) < 2:
        return "there is one run"
    derived = made.executable.program
    varied = [n for n in given[0] if n != "seed" and _differ([g[n] for g in given])]
    asked = derived, made.facts, made.options, len(programs), made.manager.num_threads
    if why := made.executable.spec.lanes_obstacle(*asked):
        return why
    assert derived is not None
    by_run = {field.name for field in derived.params}
    fixed = [n for n in varied if n not in by_run]
    return f"{fixed[0]} is fixed when the program is compiled" if fixed else ""


def _differ(values: Sequence[Any]) -> bool:
    """Tell whether values differ; arrays and the like do where they are not one object."""
    first = values[0]
    return any(value is not first and (not np.isscalar(value) or value != first) for value in values)


def run_lanes(
    programs: Sequence[Vertex], graph: Graph, seeds: Sequence[int], **options: Any
) -> Iterator[Result]:
    """Run programs of one class in lanes; yield their results in order. For a pool, whose jobs are joined.

    They are prepared, and wait for their turn (`system.turns`), before the first result. Results have no `record`.

    Args:
        programs: The runs, at least two.
        graph: The graph, of one process.
        seeds: [runs]
        options: Of `run`, for all; without `seed`.

    Raises:
        ConfigError: If they cannot be lanes: it says why.
        LanesFailedError: If arithmetic of compute() has no result in one of them.
    """
    options = {name: value for name, value in _OPTIONS.items() if name != "seed"} | options
    given = [program.params for program in programs]
    made = prepared(programs[0], graph, seed=seeds[0], **_without_partitioner(options))
    if why := _obstacle(made, programs, given, options["host_memory"]):
        raise ConfigError(why)
    yield from _side_by_side(made, programs, seeds, options, None)


def _side_by_side(
    made: Prepared,
    programs: Sequence[Vertex],
    seeds: Sequence[int],
    options: Mapping[str, Any],
    wanted: Container[str] | None,
) -> Iterator[Result]:
    """Yield the results of the runs, in order.

    On several ranks those of this rank's rows, or of all on rank 0; but all ids there where `wanted` fields are to be
    reduced, which is done by rows.
    """
    others = [seeded(p, s) for p, s in zip(programs[1:], seeds[1:], strict=True)]
    bound = bind_all([made.program, *others], made.graph)
    given = made.graph, bound, made.executable, made.options
    limits: dict[str, Any] = {
        "num_threads": made.manager.num_threads,
        "max_supersteps": options["max_supersteps"],
        "wanted": wanted,
    }
    group, gather = made.graph.group, options["gather"]
    if group.size == 1:
        runs = run_side_by_side(*given, **limits)
    else:
        faults = options["faults"] or Faults()
        limits |= {"rank_on_host": made.manager.rank_on_host, "all_on_rank_0": gather and not wanted}
        runs = run_shared_out(*given, **limits, faults=faults)
    whole = whole_graph(made.graph)
    ids, device = all_ids(whole), made.executable.spec.device
    if group.size > 1 and not (gather and group.rank == 0):
        ids = ids[made.graph.first_row :][: made.graph.num_rows]
    for lane in drawing("supersteps", runs):
        yield Result(
            ids=ids,
            fields=as_string_ids(lane.fields, programs[0], whole),
            reason=lane.reason,
            supersteps=len(lane.stats),
            stats=lane.stats,
            aggregators=lane.aggregators,
            device=device,
            edges=functools.partial(_on_edges, lane, made, gather=gather) if lane.kept_on_edges else None,
            optional=optional_fields(programs[0].declaration.states, made.graph),
            writers=writers_of(group, gather=gather),
        )


def _on_edges(lane: LaneRun, made: Prepared, *, gather: bool) -> EdgeFields:
    """Return the values that a run keeps on edges: on several ranks of this rank's rows, or of all on rank 0."""
    whole, group = whole_graph(made.graph), made.graph.group
    rows = slice(0, whole.num_vertices)
    if group.size > 1 and not (gather and group.rank == 0):
        rows = slice(made.graph.first_row, made.graph.first_row + made.graph.num_rows)
    sources = np.repeat(np.arange(rows.start, rows.stop), whole.out_degrees()[rows])
    targets = whole.targets[int(whole.offsets[rows.start]) : int(whole.offsets[rows.stop])].astype(np.int64)
    writers = writers_of(group, gather=gather)
    return on_edges((sources, targets), lane.kept_on_edges, made.program, whole, writers=writers)


def _or_one_by_one(
    runs: Iterator[Result],
    graph: Graph,
    programs: Sequence[Vertex],
    seeds: Sequence[int],
    given: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
) -> Iterator[Result]:
    """Yield results of lanes; where one fails, those that are left run one after another: one of them says where."""
    done = 0
    try:
        for result in runs:
            yield result
            done += 1
    except (LanesFailedError, FailedRunsError) as failure:
        first = failure.first if isinstance(failure, FailedRunsError) else done
        found = {}
        for number in (*range(first, len(programs)), *range(done, first)):
            try:
                found[number] = run(programs[number], graph, seed=seeds[number], **options)
            except Exception as error:
                by = ", ".join(f"{name}={value!r:.60}" for name, value in given[number].items())
                error.add_note(f"in run {number} of {len(programs)}: {by}")
                raise
        yield from (found[number] for number in range(done, len(programs)))


def _kept(
    runs: Iterator[Result], reduce: Mapping[str, Reduction] | None
) -> tuple[list[Result], dict[str, NDArray[Any]]]:
    """Return the results, and what fields came to where they are reduced; then results have none."""
    if reduce is None:
        return list(runs), {}
    found: list[Result] = []
    brought: dict[str, NDArray[Any]] = {}
    for result in runs:
        for name, how in reduce.items():
            brought[name] = reduced(brought.get(name), result[name], how)
        found.append(result.without_fields())
    return found, brought
