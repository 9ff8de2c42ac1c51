"""A program whose vertices begin with measures of the graph, from version to version on several ranks of CPU cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.graph import Graph
from sigps.graph.versions.row_changes import distinct
from sigps.job.guard import Affected, Guard, allowance, refusal
from sigps.job.on_ranks import OnRanks
from sigps.job.preparing import Prepared, turned
from sigps.job.result import Result

if TYPE_CHECKING:
    from sigps.compiler.proofs.incremental import Incremental
    from sigps.device.cpu import Threads

__all__ = ["RankedMeasuresRun"]


class RankedMeasuresRun(OnRanks):
    """A program of local measures whose vertices send nothing.

    The graph is followed as it is given: no batch turns a directed one.
    """

    def __init__(
        self,
        made: Prepared,
        graph: Graph,
        threads: Threads,
        found: Incremental,
        options: Mapping[str, Any],
    ) -> None:
        from sigps.engine.cpu.measures_ranks import RankedMeasures, RankedRoundsEngine

        super().__init__(made, threads, found, options)
        self._graph = graph
        self._measures = RankedMeasures(graph, threads, directed=made.program.declaration.directed)
        derived, given = made.executable.program, made.options
        assert derived is not None
        assert found.rounds is not None
        self._engine = RankedRoundsEngine(
            made.executable.code,
            tuple(f.argument(getattr(made.bound, f.name), given.precision) for f in derived.params),
            graph,
            threads,
            found.rounds,
            deterministic=given.deterministic,
            follower=self._measures,
        )
        for name, values in [*given.initial.items(), *given.columns.items()]:
            self._engine.begin(name, self._engine.subgraph.of_owned(values))

    @property
    def obstacle(self) -> str:
        """Why it cannot go on any more; empty where it can."""
        return self._engine.obstacle

    def full(self) -> Result | None:
        """Count and run anew on the edges that were taken last; None where there is an obstacle."""
        self._measures.count(self._graph, turned(self._graph, self._made.program))
        stats = self._engine.run()
        if self.obstacle:
            return None
        self._full_messages = self._engine.full_cost
        return self._collects(self._engine.subgraph, self._engine, self._engine.everywhere(stats))

    def follow(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a newer version; return why it gets a full run, empty where it does not."""
        given, none = newer.update.given, np.empty(0, dtype=np.int64)
        assert given is not None
        parts = [part for part in (given.inserts, given.deletes) if part.size]
        sources, targets = (
            np.concatenate([none, *(newer.ids.to_gids(ends) for ends in sides)])
            for sides in ([part.sources for part in parts], [part.targets for part in parts])
        )
        self._graph = newer
        self._engine.take_version(newer, sources, targets)
        if guard == "full":
            return "guard='full'"
        return "" if isinstance(guard, str) else refusal(guard, self._affected(sources, targets))

    def go_on(self, guard: Guard) -> Result | None:
        """Return the result after the changes that `follow` took; None where a full run is to follow, or cannot."""
        from sigps.engine.cpu.spending import Spending

        self._spending = Spending(allowance(guard, self._full_messages))
        stats = self._engine.go_on_with(self._spending)
        if stats is None or self.obstacle:
            return None
        return self._collects(self._engine.subgraph, self._engine, self._engine.everywhere(stats))

    def given_up(self) -> str:
        """Say why the incremental run was given up."""
        assert self._spending is not None
        return (
            f"guard: to count along the batch costs more than {self._spending.left:,} messages; the last full run cost "
            f"{self._full_messages:,}"
        )

    def _affected(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> Affected:
        """Return what a batch may change: the measures of the edges' ends; edges are those of the version before."""
        graph, known = self._graph, (sources >= 0) & (targets >= 0)
        ends = distinct(np.concatenate([sources[known], targets[known]]))
        own = ends[(ends >= graph.first_row) & (ends < graph.first_row + graph.num_rows)]
        edges = self._measures.num_neighbors_of(ends)
        return self._affects(own, lambda name: self._engine.state(name)[own - graph.first_row], edges)
