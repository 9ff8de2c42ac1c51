"""`sigps run` of a job with `many`: several runs of its program, and one table of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from sigps.graph import Graph
    from sigps.group.watch import Faults
    from sigps.job.config import JobConfig
    from sigps.model.vertex import Vertex

__all__ = ["run_runs"]


def run_runs(job: JobConfig, program: Vertex, graph: Graph, faults: Faults, out: Console) -> None:
    """Run a job's program as often as `many` says; print and write what the runs came to. Collective."""
    from sigps.cli.report import runs_table, top_table
    from sigps.job.many import run_many
    from sigps.job.result import highest_of

    varied = {name: _values(values, graph) for name, values in (job.many or {}).items()}
    options: dict[str, Any] = {
        **job.engine.model_dump(exclude={"trace"}),
        "partitioner": job.partition.method,
        "transport": job.exchange.transport,
        "faults": faults,
    }
    results = run_many(program, graph, reduce=job.output.reduce, **(options | varied))
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


def _values(values: Any, graph: Graph) -> Any:
    """Return a parameter's values, one a run."""
    return graph.ids.to_oids(range(graph.num_vertices)) if values == "all" else values
