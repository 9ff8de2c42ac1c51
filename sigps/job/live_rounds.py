"""A program in rounds, also one that begins with measures of the graph, on several ranks from version to version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.proofs.rounds import reads_rows
from sigps.graph.graph import Graph
from sigps.graph.versions.row_changes import distinct
from sigps.job.guard import Affected, Guard, allowance, refusal
from sigps.job.on_ranks import OnRanks
from sigps.job.preparing import Prepared, turned
from sigps.job.result import Result
from sigps.system.shared_out import ranks_here

if TYPE_CHECKING:
    from sigps.compiler.proofs.incremental import Incremental
    from sigps.device.cpu import Threads

__all__ = ["RankedRoundsRun"]


class RankedRoundsRun(OnRanks):
    """A program of fixed rounds, or of local measures.

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
        from sigps.engine.cpu.measures_ranks import RankedMeasures
        from sigps.engine.cpu.rank_rows import RankRows
        from sigps.engine.cpu.rounds_ranks import RankedRoundsEngine

        super().__init__(made, threads, found, options)
        self._graph = graph
        derived, given, declared = made.executable.program, made.options, made.program.declaration
        assert derived is not None
        assert found.rounds is not None
        self._measures = None
        if any(field.measure for field in declared.states):
            self._measures = RankedMeasures(graph, threads, directed=declared.directed)
        self._rows = None
        if reads_rows(derived):
            columns = (*derived.edge_columns, *derived.read_columns)
            self._rows = RankRows(graph, made.graph, columns, simple=declared.simple)
        self._engine = RankedRoundsEngine(
            made.executable.code,
            tuple(f.argument(getattr(made.bound, f.name), given.precision) for f in derived.params),
            graph,
            threads,
            found.rounds,
            rows=self._rows,
            follower=self._measures,
            ranks_here=ranks_here(graph),
        )
        for name, values in [*given.initial.items(), *given.columns.items()]:
            self._engine.begin(name, self._engine.subgraph.of_owned(values))

    @property
    def obstacle(self) -> str:
        """Why it cannot go on any more; empty where it can."""
        return self._engine.obstacle

    def grows(self, newer: Graph) -> bool:
        """Tell whether vertices keep their numbers, and new ones begin with plain states and change no others."""
        assert self._found.rounds is not None
        return not self._found.rounds.reads_size and super().grows(newer)

    def full(self) -> Result | None:
        """Count and run anew on the edges that were taken last; None where there is an obstacle."""
        if self._measures is not None:
            self._measures.count(self._graph, turned(self._graph, self._made.program))
        stats = self._engine.run()
        if self.obstacle:
            return None
        result = self._collects(self._engine.subgraph, self._engine, self._engine.everywhere(stats))
        self._full_messages = result.stats.num_messages + self._engine.full_cost
        return result

    def follow(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a newer version; return why it gets a full run, empty where it does not."""
        given, none = newer.update.given, np.empty(0, dtype=np.int64)
        assert given is not None
        sources = targets = none
        if self._measures is not None:
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

        self._spending = Spending(allowance(guard, self._full_messages) if self._engine.gives_up else None)
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
        """Return what a batch may change: whose in-edges are others; of measures both ends of its edges."""
        graph, own, num_edges = self._graph, np.empty(0, dtype=np.int64), 0
        if self._measures is not None:  # edges are those of the version before
            known = (sources >= 0) & (targets >= 0)
            ends = distinct(np.concatenate([sources[known], targets[known]]))
            own = (
                ends[(ends >= graph.first_row) & (ends < graph.first_row + graph.num_rows)] - graph.first_row
            )
            num_edges = self._measures.num_neighbors_of(ends)
        elif self._rows is not None:
            own = self._rows.targets
            edges = graph.group.all_reduce(np.array([self._engine.num_in_edges(own)]), "sum")
            num_edges = int(edges[0])
        return self._affects(own + graph.first_row, lambda name: self._engine.state(name)[own], num_edges)
