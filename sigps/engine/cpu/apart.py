"""Several runs at a time on CPU cores, each an engine of its own on one thread: where lanes would share nothing.

Programs that lanes cannot have run so too: direct and listed messages, values on edges, tables that vary. A search of a
mesh is small supersteps, which one core runs by itself (`fused.py`): a run leaves the other cores idle,
and lanes touch as much memory as so many runs. They share the graph alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from sigps.compiler.cpu.functions import adds_floats
from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.program import Delivery
from sigps.device.cpu import Threads
from sigps.engine.contract import LaneRun, LanesFailedError, ManyRuns, RunContext
from sigps.engine.stats import StatsLog
from sigps.errors import ComputeError, ExchangeError
from sigps.host_memory import available_memory
from sigps.model.vertex import Vertex

__all__ = ["expected_occupancy", "has_one_order", "run_apart"]

_LONG = 1 << 62
_ROUND = 4
"""Runs a thread, of those that begin together: what they left is given back before the next ones begin."""


def has_one_order(native: NativeProgram) -> bool:
    """Tell whether sums are the same in any order, so that an engine leaves the bits that lanes leave."""
    gives = zip(native.program.aggregators, native.program.aggregate_dtypes, strict=True)
    sums_floats = any(a.kind == "sum" and dtype.base.kind == "f" for a, dtype in gives)
    return (
        not sums_floats
        and not adds_floats(native.program, native.slots)
        and "user" not in native.program.slot_ops
    )


def expected_occupancy(active: Iterable[int], num_vertices: int, lanes: int) -> float:
    """Estimate in how many of some lanes a vertex runs that runs in one of them.

    As if runs were at the same superstep, and whether a vertex runs in one said nothing of the others. Pure.

    Args:
        active: How many vertices ran in each superstep with messages of some runs.
        num_vertices: Of the graph.
        lanes: Side by side.

    >>> expected_occupancy([1, 4, 4, 1], 1000, 8) < 1.1, expected_occupancy([1, 900, 900, 1], 1000, 8) > 7
    (True, True)
    """
    ran = list(active)
    share = sum(count * count for count in ran) / max(1, sum(ran)) / num_vertices
    return 1.0 + (lanes - 1) * share


def bytes_of_run(context: RunContext) -> int:
    """Return what a run keeps beside the graph, about: states, and what is sent along all edges at a time."""
    subgraph, program = context.subgraph, context.executable.program
    assert program is not None
    message = sum(dtype.itemsize for dtype in program.message_dtypes)
    on_edges = 2 * sum(dtype.itemsize for dtype in program.edge_state_dtypes)
    if program.delivery is Delivery.DIRECT:
        on_edges += 2 * (message + 16)
    a_vertex = sum(dtype.itemsize for dtype in program.state_dtypes) + 3 * message + 32
    return subgraph.num_owned * a_vertex + subgraph.num_edges * on_edges + 1


def run_apart(context: RunContext, many: ManyRuns, programs: Sequence[Vertex]) -> Iterator[LaneRun]:
    """Run some of many programs on a thread each, several at a time; see `EngineSpec.run_lanes`."""

    def run(program: Vertex) -> LaneRun:
        with Threads(1) as alone:
            engine = context.executable.spec.make(context._replace(program=program, threads=alone))
            for name, values in many.begins.items():
                engine.begin(name, values)
            outcome = engine.lease(many.max_supersteps or _LONG)
            fields = engine.fields()
        found = {name: fields[name] for name in fields if many.wanted is None or name in many.wanted}
        reason: Literal["converged", "max_supersteps", "stopped"] = "max_supersteps"
        if outcome.ended:
            reason = "stopped" if outcome.stopped else "converged"
        stats = StatsLog()
        stats.extend(outcome.stats)
        on_edges = {state.name: engine.edge_state(state.name) for state in program.declaration.edge_states}
        return LaneRun(found, reason, stats, engine.aggregates.by_name(), on_edges)

    most_bytes = available_memory() // (2 * many.ranks_here)
    at_once = max(1, min(context.threads.count, most_bytes // bytes_of_run(context)))
    size = _ROUND * at_once
    try:
        with Threads(at_once) as threads:
            for first in range(0, len(programs), size):
                yield from threads.map(run, programs[first : first + size])
    except (ComputeError, ExchangeError):
        raise LanesFailedError from None
