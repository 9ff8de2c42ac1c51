"""A monotone program, or one of a first arrival, that goes on from version to version on several ranks of CPU cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sigps.graph.graph import Graph
from sigps.graph.versions.apply import stored_edges
from sigps.graph.versions.batch import Changes
from sigps.graph.versions.row_changes import RowChanges, distinct
from sigps.job.guard import Affected, Guard, allowance, is_large, refusal
from sigps.job.on_ranks import OnRanks
from sigps.job.preparing import Prepared, turned
from sigps.job.result import Result
from sigps.job.run import run

if TYPE_CHECKING:
    from sigps.compiler.proofs.incremental import Incremental
    from sigps.device.cpu import Threads
    from sigps.engine.cpu.arrivals_ranks import RankedArrivalEngine
    from sigps.engine.cpu.following import EdgeChanges
    from sigps.engine.cpu.live_ranks import Carried, RankedLiveEngine
    from sigps.engine.cpu.live_rows import LivePartition
    from sigps.engine.stats import StatsLog
    from sigps.graph.building.rows import Duplicates
    from sigps.graph.partitioning.assignment import Assignment

__all__ = ["RankedRun"]

_SPARE, _LEAST_SPARE = 8, 1 << 10
"""A rank has slots for one in so many vertices of each other rank as further ghosts, and at least for the second
number. Without them most batches on a sparse part of a graph lay partitions out: SSSP, rmat-16, two ranks of one core,
batches of 1 / 1,000 inserts: 112 / 183 ms then, 40 / 59 with them, apply and a full run 350 / 300 (loaded)."""
_ROUNDS = 8
"""After a full run that sent more messages an edge all others take priority order, where the program has one. WCC on
grid-256, two ranks, 10,000 deletes, given up: 1.0 to 1.2 of `graph.apply` and `sigps.run`, 3.3 before."""
_STEP = 3000
"""Messages that take as long as a superstep on several ranks takes besides."""


class RankedRun(OnRanks):
    """A monotone program, or one of a first arrival."""

    def __init__(
        self, made: Prepared, threads: Threads, found: Incremental, options: Mapping[str, Any]
    ) -> None:
        super().__init__(_reading_all(made), threads, found, options)
        self._options, self._goes_round = dict(options), False
        self._engine: RankedLiveEngine | RankedArrivalEngine
        self._assignment: Assignment
        self._rows: LivePartition
        self._inserted: RowChanges
        self._deleted: RowChanges
        self._cannot = ""
        self._lay_out()

    @property
    def obstacle(self) -> str:
        """Why it cannot go on any more; empty where it can."""
        return self._engine.obstacle

    def full(self) -> Result | None:
        """Run anew on the edges that were taken last; None where there is an obstacle."""
        stats = self._found_sooner()
        if stats is None:
            stats = self._engine.run()
            if self.obstacle:
                return None
            self._full_messages = sum(entry.messages for entry in stats)
            self._goes_round = self._full_messages > _ROUNDS * self._graph.num_edges
        return self._collected(stats)

    def _found_sooner(self) -> StatsLog | None:
        """Let the engine take what `sigps.run` finds in priority order; None where it is to run itself."""
        from sigps.engine.cpu.live_ranks import Carried

        program, graph = self._made.executable.program, self._graph
        assert program is not None
        has_order = self._goes_round and program.priority_form is not None and self._made.options.asynchronous
        is_plain = self._found.sends_keys and not program.aggregators and graph.ids.kind != "strings"
        if not (has_order and is_plain and self._engine.takes_found):
            return None
        result = run(self._made.program, graph, **(self._options | {"gather": False}))
        fields = result.__dict__["_fields"]
        names = [f.name for f in self._made.bound.declaration.states]
        found = Carried(graph.ids.to_gids(result.ids), tuple(np.asarray(fields[name]) for name in names))
        if not self._engine.take_found(self._moved(found)):
            return None
        self._full_messages = result.stats.num_messages + _STEP * len(result.stats)
        return result.stats

    def follow(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a newer version; return why it gets a full run, empty where it does not."""
        given = newer.update.given
        assert given is not None
        changed = (given.inserts.size + given.deletes.size) * (1 if self._graph.directed else 2)
        if guard != "incremental" and is_large(changed, newer.num_edges):
            self._let_go()
            self._graph = turned(newer, self._made.program)
            self._lay_out()
            return (
                "guard='full'"
                if guard == "full"
                else f"guard: the batch names {changed:,} of {newer.num_edges:,} edges"
            )
        if not self._changed_in_place(newer):
            carried = self._engine.carried()
            self._let_go()
            self._graph = turned(newer, self._made.program)
            self._lay_out()
            if guard != "full":
                self._engine.begin_at_superstep_0()
                self._engine.carry_on(self._moved(carried))
        directed = self._graph.directed
        self._inserted = self._own_edges(given.inserts, directed=directed)
        self._deleted = self._own_edges(given.deletes, directed=directed)
        if guard == "full":
            return "guard='full'"
        if isinstance(guard, str):
            return ""
        return refusal(guard, self._affected())

    def go_on(self, guard: Guard) -> Result | None:
        """Return the result after the changes that `follow` took; None where a full run is to follow, or cannot."""
        from sigps.engine.cpu.live_ranks import SharedSpending
        from sigps.engine.cpu.spending import Spending

        self._cannot = ""
        group = self._graph.group
        if group.all_reduce(np.array([self._deleted.size]), "sum")[0] and not self._engine.can_trim():
            self._cannot = (
                "on several ranks vertices are trimmed only where messages are keys in whole numbers, or edges add to "
                "them: a batch has deletes"
            )
            return None
        self._spending = Spending(allowance(guard, self._full_messages))
        shared = SharedSpending(self._engine.exchange, self._spending)
        stats = self._engine.follow_changes(self._local(self._inserted), self._local(self._deleted), shared)
        return None if stats is None or self.obstacle else self._collected(stats)

    def given_up(self) -> str:
        """Say why the incremental run was given up."""
        return self._cannot or super().given_up()

    def _changed_in_place(self, newer: Graph) -> bool:
        """Change the partition's rows where they are; False where it is to be laid out."""
        given, graph = newer.update.given, self._graph
        assert given is not None
        if (
            newer.update.new_vertices
            or newer.directed != graph.directed
            or newer.num_vertices != graph.num_vertices
            or not given.deletes.columns.keys() <= set(self._rows.columns)
        ):
            return False
        deleted, inserted = (
            self._ending_here(newer, edges, inserts=inserts)
            for edges, inserts in ((given.deletes, False), (given.inserts, True))
        )
        if not self._have_all(inserted, newer):
            return False
        duplicates = cast("Duplicates", newer.report.duplicates_policy)
        new = self._rows.apply(deleted, inserted, duplicates)
        self._engine.follow(self._rows.rows)
        self._engine.widen(new)
        self._graph = newer
        return True

    def _have_all(self, inserted: RowChanges, newer: Graph) -> bool:
        """Let the sources of new edges be ghosts; False where some rank has too few slots."""
        from sigps.engine.partition.subgraph import seen_ids

        missing = self._rows.missing(inserted)
        if not newer.group.all_reduce(np.array([missing.size]), "sum")[0]:
            return True
        added = self._exchange.add_ghosts(missing)
        if added is None:
            return False
        lids, told = added
        self._rows.add_ghosts(missing, lids)
        self._engine.add_ghosts(lids, seen_ids(newer, missing), told)
        return True

    def _ending_here(self, newer: Graph, edges: Changes, *, inserts: bool) -> RowChanges:
        """Return the edges as stored whose targets are this rank's, by gids."""
        stored, _, _ = stored_edges(newer, newer.ids, edges, inserts=inserts)
        return stored.at(self._assignment.owner_of(stored.ends) == newer.group.rank)

    def _let_go(self) -> None:
        """Free what was laid out before more is, which then takes memory that was used already.

        BFS and WCC on rmat-16, 100,000 inserts, given up: 1.2 and 1.35 of `graph.apply` and a full run, 1.6 and 1.7
        without.
        """
        self._graph.derived("partitions", dict).clear()
        del self._engine, self._rows, self._subgraph, self._exchange

    def _lay_out(self) -> None:
        from sigps.engine.cpu.arrivals_ranks import RankedArrivalEngine
        from sigps.engine.cpu.live_ranks import RankedLiveEngine
        from sigps.engine.cpu.live_rows import LivePartition
        from sigps.engine.laid_out import partition_of
        from sigps.system.data_locator import DataLocator
        from sigps.system.message_center import GrowingMessageCenter

        made, graph = self._made, self._graph
        size = graph.group.size
        needs = made.executable.spec.needs(made.executable, made.bound, graph, size)
        assignment, subgraph = partition_of(graph, "edges", (1.0,) * size, needs, self._threads.count)
        spare = max(_LEAST_SPARE, graph.num_vertices // size // _SPARE)
        exchange = GrowingMessageCenter(
            graph.group, subgraph, DataLocator(graph, assignment, subgraph), spare
        )
        assert subgraph.gids is not None
        slots = exchange.num_spare
        room = replace(
            subgraph,
            out_degrees=np.maximum(subgraph.out_degrees, 1),  # who has no out-edge now may have one later
            num_ghosts=subgraph.num_ghosts + slots,
            gids=np.concatenate([subgraph.gids, np.full(slots, -1)]),
            ids=np.concatenate([subgraph.ids, np.zeros(slots, dtype=np.int64)]),
            _derived={},
        )
        derived = made.executable.program
        assert derived is not None
        params = tuple(
            f.argument(getattr(made.bound, f.name), made.options.precision) for f in derived.params
        )
        given = made.executable.code, params, room, exchange, self._threads
        if self._found.kind == "monotone":
            self._engine = RankedLiveEngine(*given, has_witnesses=bool(self._found.witnesses))
        else:
            self._engine = RankedArrivalEngine(*given, level=self._found.level)
        self._subgraph, self._assignment, self._exchange = subgraph, assignment, exchange
        self._rows = LivePartition(room, derived.edge_columns)
        for name, values in [*made.options.initial.items(), *made.options.columns.items()]:
            self._engine.begin(name, subgraph.of_owned(values))

    def _moved(self, carried: Carried) -> Carried:
        """Bring what goes on to the owners of the vertices in the new partition."""
        from sigps.engine.cpu.live_ranks import Carried

        group = self._graph.group
        owners = self._assignment.owner_of(carried.gids)
        at = [np.flatnonzero(owners == rank) for rank in range(group.size)]

        def moved(values: NDArray[Any]) -> NDArray[Any]:
            parts = [np.ascontiguousarray(values[places]).view(np.uint8) for places in at]
            found: NDArray[Any] = np.concatenate(group.all_to_all(parts)).view(values.dtype)
            return found

        return Carried(moved(carried.gids), tuple(moved(values) for values in carried.arrays), carried.clock)

    def _own_edges(self, edges: Changes, *, directed: bool) -> RowChanges:
        """Return the edges between vertices of the graph that end in this rank's, by gids."""
        ids, rank = self._graph.ids, self._graph.group.rank
        nothing = np.empty(0, dtype=np.int64)
        if not edges.size:
            return RowChanges(nothing, nothing, {})
        sources, targets = ids.to_gids(edges.sources), ids.to_gids(edges.targets)
        if not directed:
            sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
        known = (sources >= 0) & (targets >= 0)
        sources, targets = sources[known], targets[known]
        is_own = self._assignment.owner_of(targets) == rank
        return RowChanges(sources[is_own], targets[is_own], {})

    def _local(self, edges: RowChanges) -> EdgeChanges:
        """Return edges by local ids; -1 where the source of a deleted one is no vertex or ghost here any more."""
        from sigps.engine.cpu.following import EdgeChanges

        return EdgeChanges(self._rows.local_ids(edges.rows), self._rows.local_ids(edges.ends), {})

    def _affected(self) -> Affected:
        """Return what a batch may change, of all ranks."""
        gids = distinct(np.concatenate([self._inserted.ends, self._deleted.ends]))
        lids = self._subgraph.local_ids(gids)
        edges = self._graph.group.all_reduce(np.array([self._engine.num_in_edges(lids).sum()]), "sum")
        return self._affects(gids, lambda name: self._engine.state(name)[lids], int(edges[0]))

    def _collected(self, stats: Any) -> Result:
        return self._collects(self._subgraph, self._engine, stats)


def _reading_all(made: Prepared) -> Prepared:
    """Return a run whose pulls do not count on rows in the order of ids: those that change in place are not."""
    from sigps.compiler.program import EarlyExit

    program, spec = made.executable.program, made.executable.spec
    assert program is not None
    if program.early_exit is not EarlyExit.LOWEST:
        return made
    program = replace(program, early_exit=EarlyExit.NEVER, key=f"{program.key} reads all")
    return made._replace(executable=spec.compile(program, made.graph, made.facts, made.manager.rank_on_host))
