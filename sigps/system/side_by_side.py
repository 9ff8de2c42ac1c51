"""Several runs of one program side by side on one rank: the partition, threads and first values that they share."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from sigps.device.cpu import Threads
from sigps.engine.contract import Executable, LaneRun, ManyRuns, RunContext, RunOptions
from sigps.engine.exchange import NoExchange
from sigps.engine.laid_out import partition_of
from sigps.graph.graph import Graph
from sigps.graph.measures.neighbourhood import neighbourhoods
from sigps.model.vertex import Vertex
from sigps.system.data_locator import DataLocator
from sigps.system.turns import current_turns

__all__ = ["run_side_by_side"]


def run_side_by_side(
    graph: Graph,
    programs: Sequence[Vertex],
    executable: Executable,
    options: RunOptions,
    *,
    num_threads: int,
    max_supersteps: int | None,
    wanted: Container[str] | None,
    ranks_here: int = 1,
    rank_on_host: int = 0,
) -> Iterator[LaneRun]:
    """Run programs of one class, and one compiled code; yield what each left, in order.

    All run in one lease where the thread takes turns (`turns.py`): a wave of lanes ends with its last superstep.

    Args:
        graph: The graph, on one rank.
        programs: The class with the parameters of each run; vertex ids in them as compute() sees them.
        executable: The first, made ready by an engine that has lanes for it.
        options: How the runs go.
        num_threads: Threads.
        max_supersteps: Where each stops at the latest.
        wanted: The fields of results; None for all.
        ranks_here: The ranks of this host that do the same with other programs.
        rank_on_host: This rank's number among them.

    Raises:
        LanesFailedError: If arithmetic of compute() has no result in one of them.
    """
    spec = executable.spec
    needs = spec.needs(executable, programs[0], graph, 1)._replace(degree_order=False)
    assignment, subgraph = partition_of(graph, "edges", (1.0,), needs, num_threads)
    exchange = NoExchange(DataLocator(graph, assignment, subgraph).gids)
    begins = {**options.columns, **options.initial}
    with Threads(num_threads) as threads:
        measures = {f.name: repr(f.measure) for f in programs[0].declaration.states if f.measure}
        if measures:
            found = neighbourhoods(graph, spec.count_share(executable, threads))
            begins = {name: getattr(found, measure) for name, measure in measures.items()} | begins
        context = RunContext(programs[0], executable, subgraph, exchange, threads, options)
        many, turns = (
            ManyRuns(programs, begins, max_supersteps, wanted, ranks_here, rank_on_host),
            current_turns(),
        )
        if turns is not None:
            many = replace(many, on_ready=lambda: turns.wait(None))
        yield from spec.run_lanes(context, many)
