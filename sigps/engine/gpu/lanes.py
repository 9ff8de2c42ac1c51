"""Several runs of one program at a time on one GPU, each on a stream and blocks of its own.

A run of small supersteps leaves most of a GPU idle: it waits for the barriers at their ends. So a few runs are under
way at once, each on its part of the blocks; where one ends its place is the next one's. They share the graph, and
nothing else: each has its own states, messages and aggregators.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.engine.contract import LaneRun, LanesFailedError, ManyRuns, RunContext
from sigps.engine.gpu.engine import GpuEngine
from sigps.engine.stats import Outcome, StatsLog
from sigps.errors import ComputeError, DeviceError
from sigps.model.vertex import Vertex

__all__ = ["MOST_AT_ONCE", "most_at_once", "run_side_by_side"]

MOST_AT_ONCE = 8
"""As many runs at most are under way: more gain little, since the host makes them ready one after another."""

_LONG = 1 << 62


def run_side_by_side(context: RunContext, many: ManyRuns) -> Iterator[LaneRun]:
    """Run programs side by side; see `EngineSpec.run_lanes`."""
    import cupy

    context = context._replace(options=context.options._replace(asynchronous=False))
    programs, begins = many.programs, many.begins
    most = min(MOST_AT_ONCE, len(programs))
    share = context.executable.spec.memory_of_rank(many.rank_on_host, many.ranks_here)
    used = cupy.get_default_memory_pool().used_bytes
    before = used()
    first = _engine(context, programs[0], begins, 1)  # what it finds of the graph all use
    with_first = used()
    del first
    if share is not None and many.ranks_here > 1:  # whose runs find the memory that these leave
        most = most_at_once(most, with_first - used(), share - (with_first - before))
    cupy.cuda.get_current_stream().synchronize()
    many.on_ready()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(most)]
    lanes: list[_Lane] = []
    ended: dict[int, LaneRun] = {}
    begun = given = 0
    try:
        while given < len(programs):
            while begun < len(programs) and len(lanes) < most:
                with streams[-1]:
                    try:
                        engine = _engine(context, programs[begun], begins, most)
                    except DeviceError:
                        if not lanes:
                            raise
                        most = len(lanes)  # there is no memory for one more
                        break
                    names = [state.name for state in programs[begun].declaration.edge_states]
                    lanes.append(_Lane(begun, engine, names, streams.pop(), many.max_supersteps or _LONG))
                    begun += 1
            lane = next((lane for lane in lanes if lane.stream.done), lanes[0])
            with lane.stream:
                if lane.goes_on():
                    continue
                ended[lane.number] = lane.result(many.wanted)
            lanes.remove(lane)
            streams.append(lane.stream)
            while given in ended:
                yield ended.pop(given)
                given += 1
    except ComputeError:
        raise LanesFailedError from None
    finally:
        cupy.cuda.runtime.deviceSynchronize()  # before the memory of those under way is given back


def most_at_once(most: int, run_bytes: int, free: int) -> int:
    """Return how many runs of so many bytes are under way at once, at least one. Pure.

    Args:
        most: No more than these.
        run_bytes: What each takes beside the graph.
        free: What they may take beside the first.

    >>> most_at_once(8, 100, 350), most_at_once(8, 100, 0), most_at_once(2, 0, 1)
    (4, 1, 2)
    """
    return max(1, min(most, 1 + max(0, free) // max(1, run_bytes)))


def _engine(
    context: RunContext, program: Vertex, begins: Mapping[str, NDArray[Any]], num_at_once: int
) -> GpuEngine:
    engine = context.executable.spec.make(context._replace(program=program))
    assert isinstance(engine, GpuEngine)
    engine.num_at_once = num_at_once
    for name, values in begins.items():
        engine.begin(name, values)
    return engine


class _Lane:
    """A run that is under way.

    Args:
        number: Which of all runs it is.
        engine: Its engine, before superstep 0.
        edge_names: The values that it keeps on edges.
        stream: Where its kernels run; the current one wherever a method is called.
        num_supersteps: After how many it ends at the latest.
    """

    def __init__(
        self, number: int, engine: GpuEngine, edge_names: Sequence[str], stream: Any, num_supersteps: int
    ) -> None:
        self.number, self.stream, self._edge_names = number, stream, edge_names
        self._engine, self._outcome = engine, Outcome(ended=False)
        self._launches = engine.launches(num_supersteps)
        next(self._launches)

    def goes_on(self) -> bool:
        """Wait for its last launch; tell whether there was another one to begin."""
        try:
            next(self._launches)
        except StopIteration as done:
            self._outcome = done.value
            return False
        return True

    def result(self, wanted: Container[str] | None) -> LaneRun:
        """Return what it left, when it does not go on."""
        engine, outcome, stats = self._engine, self._outcome, StatsLog()
        stats.extend(outcome.stats)
        fields = engine.fields()
        found = {name: fields[name] for name in fields if wanted is None or name in wanted}
        reason: Literal["converged", "max_supersteps", "stopped"] = "max_supersteps"
        if outcome.ended:
            reason = "stopped" if outcome.stopped else "converged"
        on_edges = {name: np.asarray(engine.edge_state(name)) for name in self._edge_names}
        return LaneRun(found, reason, stats, engine.aggregates.by_name(), on_edges)
