"""`sigps run` of several runs: of a job with `many`, and of one whose program is a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sigps.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from sigps.graph import Graph
    from sigps.group.limits import Faults
    from sigps.job.config import JobConfig
    from sigps.job.many_results import Results
    from sigps.job.result import Result
    from sigps.model.vertex import Vertex

__all__ = ["run_function", "run_runs"]


def run_runs(job: JobConfig, program: Vertex, graph: Graph, faults: Faults, out: Console) -> None:
    """Run a job's program as often as `many` says; print and write what the runs came to. Collective."""
    from sigps.account import spent_on

    with spent_on("import"):
        from sigps.job.many import run_many
        from sigps.report.progress import live_wait

    varied = {name: _values(values, graph) for name, values in (job.many or {}).items()}
    options: dict[str, Any] = {
        **job.engine.model_dump(exclude={"trace"}),
        "partitioner": job.partition.method,
        "transport": job.exchange.transport,
        "faults": faults,
    }
    num_runs = max((len(values) for values in varied.values()), default=0)
    with live_wait(f"running {type(program).__name__} {num_runs:,} times", rank=graph.group.rank):
        results = run_many(program, graph, reduce=job.output.reduce, **(options | varied))
    with spent_on("answer"):
        _print_and_write(job, results, graph, out)


def _print_and_write(job: JobConfig, results: Results, graph: Graph, out: Console) -> None:
    from sigps.cli.report import runs_table, top_table
    from sigps.job.result import highest_of

    if graph.group.rank == 0:
        out.print(runs_table(results))
        out.print(repr(results).strip("<>"), markup=False)
        field = next(iter(job.output.fields or results.reduced), "")
        if field in results.reduced and job.output.top:
            pairs = highest_of(results.ids, results.reduced[field], job.output.top)
            out.print(top_table(field, pairs))
    if job.output.path is not None:
        results.write(job.output.path, job.output.fields)
        graph.group.barrier()
        out.print(f"wrote {job.output.path}", markup=False)


def run_function(job: JobConfig, function: Callable[..., Result], graph: Graph, out: Console) -> None:
    """Call a job's function, print and write the result; of several ranks rank 0 has it. Collective."""
    from sigps.account import spent_on
    from sigps.cli.checks import given_options
    from sigps.job.result import Result
    from sigps.report.progress import live_wait

    with live_wait(f"running {job.program}", rank=graph.group.rank):
        result = function(graph, **given_options(job))
    if not isinstance(result, Result):
        raise ConfigError(
            f"{job.program} returned {result!r:.80}, and a job's function returns a sigps.Result"
        )
    with spent_on("answer"):
        _print_and_write_result(job, result, graph, out)


def _print_and_write_result(job: JobConfig, result: Result, graph: Graph, out: Console) -> None:
    from sigps.cli.report import top_table

    out.print(result.summary(), markup=False)
    for name, value in result.aggregators.items():
        out.print(f"{name} {value}", markup=False)
    fields = [name for name in job.output.fields or result.fields if result[name].ndim == 1]
    if job.output.top and fields:
        out.print(top_table(fields[0], result.top(fields[0], job.output.top)))
    if job.output.path is not None:
        result.write(job.output.path, job.output.fields)
        graph.group.barrier()
        out.print(f"wrote {job.output.path}", markup=False)
    if job.output.edges is not None:
        result.edges.write(job.output.edges)
        graph.group.barrier()
        out.print(f"wrote {job.output.edges}", markup=False)


def _values(values: Any, graph: Graph) -> Any:
    """Return a parameter's values, one a run."""
    return graph.ids.to_oids(range(graph.num_vertices)) if values == "all" else values
