"""A monotone program that goes on from version to version on several GPUs that write into each other's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import DeviceError
from sigps.graph.graph import Graph
from sigps.graph.later import LaterGraph
from sigps.graph.versions.apply import stored_edges
from sigps.graph.versions.batch import Changes, as_changes
from sigps.graph.versions.row_changes import RowChanges, distinct
from sigps.group import together
from sigps.job.changed_ids import LaterIds, UnreadIds
from sigps.job.guard import Affected, Guard, allowance, refusal
from sigps.job.on_ranks import OnRanks
from sigps.job.preparing import Prepared
from sigps.job.result import Result
from sigps.job.updates import Updates

if TYPE_CHECKING:
    from sigps.compiler.proofs.incremental import Incremental
    from sigps.device.cpu import Threads
    from sigps.engine.aggregates import Aggregates
    from sigps.engine.contract import RunOptions
    from sigps.engine.gpu.live_ranks import GpuRankedLiveEngine

__all__ = ["GpuRankedRun"]


@dataclass(frozen=True, eq=False)
class _Left:
    """What a fixed point leaves of an engine that goes on, as `collect` reads it."""

    states: Mapping[str, NDArray[Any]]
    aggregates: Aggregates
    traced: None = None

    def fields(self) -> Mapping[str, NDArray[Any]]:
        """Return the states in the order of gids."""
        return self.states


class GpuRankedRun(OnRanks):
    """A monotone program that sends its keys.

    Args:
        made: As `OnRanks`', and so are the next two.
        threads: See there.
        found: See there.
        options: Those of full runs.
        plain: How runs go among these ranks.
    """

    def __init__(
        self,
        made: Prepared,
        threads: Threads,
        found: Incremental,
        options: Mapping[str, Any],
        plain: RunOptions,
    ) -> None:
        super().__init__(made, threads, found, options)
        self._plain = plain
        self._engine: GpuRankedLiveEngine | None = None
        self._unread = UnreadIds()
        self._is_laid_out_anew = False
        self._lay_out()

    @property
    def obstacle(self) -> str:
        """Why it cannot go on any more; empty where it can."""
        return self._live.obstacle

    def grows(self, newer: Graph) -> bool:
        """Tell that it takes no new vertices: another is made for them."""
        return False

    def full(self) -> Result | None:
        """Run anew on the edges that were taken last; None where there is an obstacle."""
        engine = self._live
        stats = engine.run()  # where ranks agree on obstacles
        if self.obstacle:
            return None
        self._full_messages = stats.num_messages + engine.full_cost
        return self._collected(stats)

    def laid_by(self, before: Graph, batch: Updates, guard: Guard) -> Graph | None:
        """Return the version after a batch, whose rows here follow when they are read; None where it is applied first.

        Args:
            before: The version that was followed last.
            batch: The batch.
            guard: A user's own is asked about numbers of the graph.

        Raises:
            GraphError: If the batch is wrong.
        """
        others = batch.vertices is not None or batch.delete_vertices is not None
        if others or not isinstance(guard, str):
            return None
        ids, group, types = before.ids, before.group, self._made.graph.column_types()
        new, old = together(
            lambda: (
                as_changes(batch.inserts, "inserts", types).copied(),
                as_changes(batch.deletes, "deletes", types).copied(),
            ),
            group,
        )
        named = ids.to_gids(np.concatenate([new.sources, new.targets])) if new.size else np.zeros(1)
        if old.columns or named.min() < 0:
            return None
        self._given = new, old
        newer = LaterGraph.after(before, new, old)
        newer.apply_if_many_wait()
        return newer

    def follow_ends(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a version that `laid_by` returned; return as `follow` does."""
        return self._follow(newer, *self._given, guard)

    def follow(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a newer version; return why it gets a full run, empty where it does not."""
        given = newer.update.given
        assert given is not None
        return self._follow(newer, given.inserts, given.deletes, guard)

    def _follow(self, newer: Graph, inserts: Changes, deletes: Changes, guard: Guard) -> str:
        from sigps.engine.cpu.following import EdgeChanges

        if deletes.columns:
            return self._laid_out_anew(
                newer, "a batch deletes edges by their columns, so rows are laid out anew"
            )
        deleted, inserted = (
            self._ending_here(edges, inserts=are_new)
            for edges, are_new in ((deletes, False), (inserts, True))
        )
        engine = self._live
        if not engine.take_ghosts(inserted.rows, self._assignment.owner_of, lambda gids: _seen(newer, gids)):
            return self._laid_out_anew(
                newer, "more vertices have edges to other ranks' than there is room for"
            )
        new = EdgeChanges(*self._by_lid(inserted), inserted.columns)
        sources, targets = self._by_lid(deleted)
        is_here = sources >= 0
        old = EdgeChanges(sources[is_here], targets[is_here], {})
        report = self._made.graph.report
        engine.follow_batch(
            new,
            old,
            has_deletes=deletes.size > 0,
            drops_loops=report.self_loops_policy == "drop",
            drops_repeats=report.duplicates_policy == "drop",
        )
        engine.widen(new)
        self._graph, self._changes = newer, (new, old)
        if guard == "full":
            return "guard='full'"
        if isinstance(guard, str):
            return ""
        return refusal(guard, self._affected(np.concatenate([inserted.ends, deleted.ends[is_here]])))

    def go_on(self, guard: Guard) -> Result | None:
        """Return the result after the changes that `follow` took; None where a full run is to follow, or cannot."""
        from sigps.engine.cpu.spending import Spending

        self._spending = Spending(allowance(guard, self._full_messages, 1))
        new, old = self._changes
        stats = self._live.go_on(new, old, self._spending)
        return None if stats is None or self.obstacle else self._collected(stats)

    def given_up(self) -> str:
        """Say why the incremental run was given up."""
        return self._live.refused or super().given_up()

    def changed_ids(self) -> Any:
        """Return as `OnRanks` does; where each rank keeps its own part they are found when they are read."""
        is_anew, self._is_laid_out_anew = self._is_laid_out_anew, False
        if self._gathers or self._before is None or is_anew:  # the engine did not see the result before
            return super().changed_ids()
        found = self._live.changed()
        ids, place = self._result.ids, self._place  # type: ignore[union-attr]
        if not callable(found):
            return ids[:0]
        later = LaterIds(lambda: ids[np.sort(place[found()])])
        self._unread.add(later)
        return later

    def close(self) -> None:
        """End the threads, and let others have the memory to which ranks wrote."""
        self._let_go()
        super().close()

    @property
    def _live(self) -> GpuRankedLiveEngine:
        assert self._engine is not None
        return self._engine

    def _laid_out_anew(self, newer: Graph, why: str) -> str:
        self._let_go()
        self._graph, self._is_laid_out_anew = newer, True
        self._lay_out()
        return why

    def _let_go(self) -> None:
        self._unread.read()
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _lay_out(self) -> None:
        from sigps.engine.contract import RunContext
        from sigps.engine.gpu.live_ranks import GpuRankedLiveEngine
        from sigps.engine.laid_out import partition_of
        from sigps.system.data_locator import DataLocator
        from sigps.system.message_center import MessageCenter

        made, graph, group = self._made, self._graph, self._graph.group
        needs = made.executable.spec.needs(made.executable, made.bound, graph, group.size)
        assignment, subgraph = partition_of(graph, "edges", (1.0,) * group.size, needs, self._threads.count)
        exchange = MessageCenter(group, subgraph, DataLocator(graph, assignment, subgraph))
        context = RunContext(made.bound, made.executable, subgraph, exchange, self._threads, self._plain)
        self._subgraph, self._assignment = subgraph, assignment
        place = np.empty(subgraph.num_owned, dtype=np.int64)
        place[subgraph.by_gid] = np.arange(subgraph.num_owned)
        self._place = place

        def agree(text: str) -> str:
            return next(filter(None, group.all_gather(text)), "")

        try:
            engine = GpuRankedLiveEngine(
                made.executable.code,
                context.params(),
                replace(subgraph),
                exchange,
                has_witnesses=bool(self._found.witnesses),
                patience=self._plain.patience,
                agree=agree,
            )
        except (DeviceError, MemoryError) as error:
            raise DeviceError(f"rows that follow do not fit the GPU: {error}", rank=group.rank) from error
        for name, values in [*made.options.initial.items(), *made.options.columns.items()]:
            engine.begin(name, subgraph.of_owned(values))
        self._engine = engine

    def _ending_here(self, edges: Changes, *, inserts: bool) -> RowChanges:
        """Return the edges as stored whose targets are this rank's, by gids."""
        like = self._made.graph  # whose vertices and rules all these versions have
        stored, _, _ = stored_edges(like, like.ids, edges, inserts=inserts)
        return stored.at(self._assignment.owner_of(stored.ends) == like.group.rank)

    def _by_lid(self, edges: RowChanges) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        engine = self._live
        return engine.local_ids(edges.rows), engine.local_ids(edges.ends)

    def _affected(self, ends: NDArray[np.int64]) -> Affected:
        """Return what a batch may change, of all ranks."""
        gids, engine = distinct(ends), self._live
        lids = self._subgraph.local_ids(gids)
        edges = self._graph.group.all_reduce(np.array([engine.num_in_edges(lids)]), "sum")
        return self._affects(gids, lambda name: engine.state(name)[lids], int(edges[0]))

    def _collected(self, stats: Any) -> Result:
        engine = self._live
        if isinstance(self._graph, LaterGraph):
            self._graph.note_num_edges(engine.num_edges_everywhere)
        return self._collects(self._subgraph, _Left(engine.left(), engine.aggregates), stats)


def _seen(graph: Graph, gids: NDArray[np.int64]) -> NDArray[np.int64]:
    from sigps.engine.partition.subgraph import seen_ids

    return seen_ids(graph, gids)
