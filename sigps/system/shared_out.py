"""Several runs of one program shared out among ranks: each has the whole graph, and runs of its own side by side.

Supersteps of a small graph on several ranks are what ranks wait for each other; so they do not. Runs go in rounds, of
which each rank has the same share; after a round their fields cross, a part of the vertices to each rank.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads
from sigps.engine.contract import Executable, LaneRun, LanesFailedError, RunOptions
from sigps.engine.stats import StatsLog
from sigps.graph.graph import Graph
from sigps.graph.measures.neighbourhood import neighbourhoods
from sigps.graph.whole import of_all_ranks, whole_graph
from sigps.group import Group
from sigps.group.limits import Faults
from sigps.model.vertex import Vertex
from sigps.system.side_by_side import run_side_by_side

__all__ = ["FailedRunsError", "ranks_here", "round_size", "run_shared_out"]

_ROUND_BYTES = 1 << 28
"""Of the fields of a round's runs on one rank."""


class FailedRunsError(Exception):
    """Arithmetic had no result in a run; `first` is a number before which, in its rank's share, none is to blame."""

    def __init__(self, first: int) -> None:
        super().__init__(first)
        self.first = first


def round_size(num_runs: int, num_ranks: int, run_bytes: int) -> int:
    """Return how many runs make a round: as many of each rank as fit, and at least one. Pure.

    >>> round_size(5000, 2, 1 << 20), round_size(5000, 4, 1 << 30), round_size(7, 2, 8)
    (512, 4, 8)
    """
    share = -(-num_runs // num_ranks)
    return num_ranks * max(1, min(share, _ROUND_BYTES // max(1, run_bytes)))


def run_shared_out(
    graph: Graph,
    programs: Sequence[Vertex],
    executable: Executable,
    options: RunOptions,
    *,
    num_threads: int,
    rank_on_host: int,
    max_supersteps: int | None,
    wanted: Container[str] | None,
    all_on_rank_0: bool,
    faults: Faults,
) -> Iterator[LaneRun]:
    """Run programs of one class, and one compiled code; yield what each left, in order. Collective.

    Fields are those of all vertices on rank 0 where it is to have all, else those of this rank's rows.

    Args:
        graph: The graph, its rows spread over the ranks.
        programs: The class with the parameters of each run; vertex ids in them as compute() sees them.
        executable: The first, made ready by an engine that has lanes for it; the same on all ranks.
        options: How the runs go.
        num_threads: Threads of this rank.
        rank_on_host: Its number among those of its host.
        max_supersteps: Where each stops at the latest.
        wanted: The fields of results; None for all.
        all_on_rank_0: Whether rank 0 gets all vertices' fields.
        faults: When a rank counts as lost.

    Raises:
        FailedRunsError: If arithmetic of compute() has no result in one of them.
    """
    group, derived = graph.group, executable.program
    assert derived is not None
    with group.status.limits(faults.silent_seconds, faults.superstep_seconds):
        whole = whole_graph(graph)
        columns = {name: of_all_ranks(values, group) for name, values in options.columns.items()}
        _count_together(graph, whole, executable, programs[0], num_threads)
        kinds = [
            (field.name, dtype)
            for field, dtype in zip(derived.states, derived.state_dtypes, strict=True)
            if wanted is None or field.name in wanted
        ]
        on_edges = [(f.name, d) for f, d in zip(derived.edge_states, derived.edge_state_dtypes, strict=True)]
        rows, edges = graph.row_bounds, _edge_bounds(graph)
        run_bytes = rows[-1] * sum(dtype.itemsize for _, dtype in kinds)
        run_bytes += edges[-1] * sum(dtype.itemsize for _, dtype in on_edges)
        size = round_size(len(programs), group.size, run_bytes)
        rounds = [range(first, min(first + size, len(programs))) for first in range(0, len(programs), size)]
        own = [_share(numbers, group.rank, group.size) for numbers in rounds]
        lanes = run_side_by_side(
            whole,
            [programs[number] for share in own for number in share],
            executable,
            options._replace(columns=columns),
            num_threads=num_threads,
            max_supersteps=max_supersteps,
            wanted=wanted,
            ranks_here=ranks_here(graph),
            rank_on_host=rank_on_host,
        )
        for numbers, share in zip(rounds, own, strict=True):
            with group.status.during("running"):
                found, failed = _drawn(lanes, share)
                failures = [number for number in group.all_gather(failed) if number >= 0]
                if failures:
                    raise FailedRunsError(min(failures))
                left = _Left(group, numbers, found)
                fields = {
                    name: left.crossed([run.fields[name] for run in found], dtype, rows, on_0=all_on_rank_0)
                    for name, dtype in kinds
                }
                kept = {
                    name: left.crossed(
                        [run.kept_on_edges[name] for run in found], dtype, edges, on_0=all_on_rank_0
                    )
                    for name, dtype in on_edges
                }
                ends = left.ends()
            for run, end in enumerate(ends):
                of_run = ({name: values[run] for name, values in found.items()} for found in (fields, kept))
                yield LaneRun(next(of_run), *end, next(of_run))


def _count_together(
    graph: Graph, whole: Graph, executable: Executable, program: Vertex, num_threads: int
) -> None:
    """Let ranks count shares of the measures with which states begin, for the whole graph to have them. Collective."""
    if any(field.measure for field in program.declaration.states):
        with Threads(num_threads) as threads:
            found = neighbourhoods(graph, executable.spec.count_share(executable, threads))
        whole.derived("neighbourhoods", lambda: found)


def _edge_bounds(graph: Graph) -> NDArray[np.int64]:
    """Return where in the rows of the whole graph each rank's edges begin, [ranks + 1]. Collective."""
    counts: list[int] = graph.group.all_gather(int(graph.targets.size))
    return np.cumsum([0, *counts], dtype=np.int64)


def ranks_here(graph: Graph) -> int:
    """Return how many ranks share this host's memory. Collective; asked once a graph."""

    def count() -> int:
        hosts = graph.group.all_gather(platform.node())
        return hosts.count(platform.node())

    return graph.derived("ranks of this host", count)


def _share(numbers: range, rank: int, num_ranks: int) -> range:
    """Return the runs of a round that a rank has: one behind the other, equal up to one."""
    first, last = (len(numbers) * r // num_ranks for r in (rank, rank + 1))
    return numbers[first:last]


def _drawn(lanes: Iterator[LaneRun], share: range) -> tuple[list[LaneRun], int]:
    """Return what the runs of a share left; and, where one failed, how many ended before it, else -1."""
    found: list[LaneRun] = []
    try:
        found.extend(itertools.islice(lanes, len(share)))
    except LanesFailedError:
        return found, share.start + len(found)
    return found, -1


class _Left:
    """What the runs of a round left: here of this rank's share, until it crosses.

    Args:
        group: The ranks.
        numbers: The runs of the round.
        found: What this rank's left.
    """

    def __init__(self, group: Group, numbers: range, found: Sequence[LaneRun]) -> None:
        self._group, self._found = group, found
        self._sizes = [len(_share(numbers, rank, group.size)) for rank in range(group.size)]

    def crossed(
        self, here: Sequence[Any], dtype: np.dtype[Any], bounds_of_ranks: NDArray[np.int64], *, on_0: bool
    ) -> NDArray[Any]:
        """Return a field of all runs, [runs, vertices or edges, ...]: those of this rank's rows, or all. Collective.

        Args:
            here: That of each run of this rank.
            dtype: Its type.
            bounds_of_ranks: [ranks + 1]: which of the vertices, or edges, are of a rank's rows.
            on_0: Whether rank 0 gets all.
        """
        group, n = self._group, int(bounds_of_ranks[-1])
        bounds = list(itertools.pairwise(bounds_of_ranks.tolist()))
        if on_0:
            bounds[0] = 0, n
        own = np.empty((len(here), n, *dtype.shape), dtype=dtype.base)
        for run, values in enumerate(here):
            own[run] = values
        arrived = group.all_to_all([own[:, begin:end].ravel() for begin, end in bounds])
        begin, end = bounds[group.rank]
        shape = (-1, end - begin, *dtype.shape)
        parts = [part.reshape(size, *shape[1:]) for size, part in zip(self._sizes, arrived, strict=True)]
        return np.concatenate(parts)

    def ends(self) -> list[tuple[Any, StatsLog, Mapping[str, Any]]]:
        """Return why each run ended, its supersteps, and its aggregators. Collective."""
        group = self._group
        told = [(left.reason, len(left.stats), left.aggregators) for left in self._found]
        logs = [left.stats.as_rows() for left in self._found]
        rows = of_all_ranks(np.concatenate([StatsLog().as_rows(), *logs]), group)
        found, at = [], 0
        for reason, supersteps, aggregators in itertools.chain.from_iterable(group.all_gather(told)):
            found.append((reason, StatsLog.of_rows(rows[at : at + supersteps]), aggregators))
            at += supersteps
        return found
