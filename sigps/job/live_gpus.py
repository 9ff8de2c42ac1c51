"""A program that goes on from version to version on several GPUs that write into each other's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.stats import StatsLog
from sigps.errors import DeviceError, KernelError
from sigps.graph.graph import Graph
from sigps.graph.later import LaterGraph
from sigps.graph.versions.apply import stored_edges
from sigps.graph.versions.batch import Changes, as_changes
from sigps.graph.versions.row_changes import RowChanges, distinct
from sigps.group import raise_together, together
from sigps.job.changed_ids import LaterIds, UnreadIds, changed_ids
from sigps.job.collect import collect
from sigps.job.guard import Affected, Guard, allowance, refusal
from sigps.job.live_fields import HeldFields, LiveFields
from sigps.job.on_ranks import OnRanks
from sigps.job.preparing import Prepared
from sigps.job.result import Result
from sigps.job.updates import Updates
from sigps.system.worker_manager import RankResult

if TYPE_CHECKING:
    from sigps.compiler.proofs.incremental import Incremental
    from sigps.device.cpu import Threads
    from sigps.engine.aggregates import Aggregates
    from sigps.engine.contract import RunOptions
    from sigps.engine.gpu.ranked_rows import GpuRankedEngine, NewGhosts

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


@dataclass(frozen=True, eq=False)
class _Named:
    """What a batch names.

    Attributes:
        inserted: Edges as stored that end in this rank's vertices, by gid.
        deleted: Likewise.
        has_deletes: Whether the batch has some.
        ghosts: Vertices that become ghosts; None where there is no room for them.
        num_unknown: Edges to insert that have an end which is no vertex.
    """

    inserted: RowChanges
    deleted: RowChanges
    has_deletes: bool
    ghosts: NewGhosts | None
    num_unknown: int


class GpuRankedRun(OnRanks):
    """A monotone program that sends its keys, or one of a first arrival.

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
        self._engine: GpuRankedEngine | None = None
        self._names = tuple(f.name for f in made.bound.declaration.states)
        self._unread, self._held = UnreadIds(), HeldFields(self._kept)
        self._of_before: Result | None = None  # where the engine did not see it
        self._batch: _Named | None = None
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
        self._held.detach()
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
        types = self._made.graph.column_types()

        def taken() -> tuple[Changes, Changes]:
            return (
                as_changes(batch.inserts, "inserts", types).copied(),
                as_changes(batch.deletes, "deletes", types).copied(),
            )

        if before.ids.table is None:  # a rank finds by itself all that it needs to know, so ranks meet once
            error: Exception | None = None
            try:
                new, old = taken()
                named = self._named(new, old)
            except Exception as raised:
                error, named = raised, None
            has_room = self._agree_on_room(named, error)
        else:
            new, old = together(taken, before.group)
            named = self._named(new, old)
            has_room = self._agree_on_room(named, None)
        assert named is not None
        if old.columns or named.num_unknown:
            return None
        self._batch = named if has_room else None
        newer = LaterGraph.after(before, new, old)
        newer.apply_if_many_wait()
        return newer

    def follow_ends(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a version that `laid_by` returned; return as `follow` does."""
        return self._follow(newer, self._batch, guard)

    def follow(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a newer version; return why it gets a full run, empty where it does not."""
        given = newer.update.given
        assert given is not None
        if given.deletes.columns:
            return self._laid_out_anew(
                newer, "a batch deletes edges by their columns, so rows are laid out anew"
            )
        batch = self._named(given.inserts, given.deletes)
        return self._follow(newer, batch if self._agree_on_room(batch, None) else None, guard)

    def _named(self, inserts: Changes, deletes: Changes) -> _Named:
        """Return what a batch names, as all ranks find it. Collective where ids have a table."""
        like = self._made.graph  # whose vertices and rules all these versions have
        new, _, unknown = stored_edges(like, like.ids, inserts, inserts=True)
        old, _, _ = stored_edges(like, like.ids, deletes, inserts=False)
        owner_of = self._assignment.owner_of
        of_sources, of_targets = owner_of(new.rows), owner_of(new.ends)
        rank = like.group.rank
        inserted = new.at(of_targets == rank) if new.size else new
        deleted = old.at(owner_of(old.ends) == rank) if old.size else old
        ghosts = self._live.new_ghosts(new.rows, of_sources, of_targets)
        return _Named(inserted, deleted, deletes.size > 0, ghosts, unknown)

    def _agree_on_room(self, named: _Named | None, error: Exception | None) -> bool:
        """Return whether all ranks have room for a batch's ghosts; raise where one has an error. Collective."""
        group = self._graph.group
        facts = np.array([error is not None, named is not None and named.ghosts is None], dtype=np.int64)
        failures, without_room = np.sum(group.all_gather_array(facts), axis=0).tolist()
        if failures:
            raise_together(error, group)
        return not without_room

    def _follow(self, newer: Graph, batch: _Named | None, guard: Guard) -> str:
        from sigps.engine.cpu.following import EdgeChanges

        self._held.detach()
        if batch is None:
            return self._laid_out_anew(
                newer, "more vertices have edges to other ranks' than there is room for"
            )
        engine, ghosts = self._live, batch.ghosts
        assert ghosts is not None
        is_plain = self._graph.ids.is_identity
        engine.take_ghosts(ghosts, ghosts.gids if is_plain else _seen(newer, ghosts.gids))
        inserted, deleted = batch.inserted, batch.deleted
        new = EdgeChanges(*self._by_lid(inserted), inserted.columns)
        old = EdgeChanges(deleted.rows, deleted.ends, {})
        is_here: Any = slice(None)
        if deleted.size:
            sources, targets = self._by_lid(deleted)
            is_here = sources >= 0
            old = EdgeChanges(sources[is_here], targets[is_here], {})
        report = self._made.graph.report
        engine.follow_batch(
            new,
            old,
            has_deletes=batch.has_deletes,
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
        if self._gathers:
            return super().changed_ids()
        before, self._of_before = self._of_before, None
        if before is not None:
            return changed_ids(before, self._part(StatsLog(), self._read_fields()), self._graph.group)
        found, ids = self._live.changed(), self._ids
        if not callable(found):
            return ids[:0]
        place = self._place
        later = LaterIds(lambda: ids[np.sort(place[found()])])
        self._unread.add(later)
        return later

    def close(self) -> None:
        """End the threads, and let others have the memory to which ranks wrote."""
        self._let_go()
        super().close()

    @property
    def _live(self) -> GpuRankedEngine:
        assert self._engine is not None
        return self._engine

    def _laid_out_anew(self, newer: Graph, why: str) -> str:
        if not self._gathers:
            self._of_before = self._part(StatsLog(), self._read_fields())
        self._let_go()
        self._graph = newer
        self._lay_out()
        return why

    def _let_go(self) -> None:
        self._held.close()
        self._unread.read()
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _lay_out(self) -> None:
        from sigps.engine.contract import RunContext
        from sigps.engine.gpu.arrivals_ranks import GpuRankedArrivalEngine
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

        kind: Any = GpuRankedLiveEngine
        of_kind: dict[str, Any] = {"has_witnesses": bool(self._found.witnesses)}
        if self._found.kind == "first arrival":
            kind, of_kind = GpuRankedArrivalEngine, {"level": self._found.level}
        try:
            engine: GpuRankedEngine = kind(
                made.executable.code,
                context.params(),
                replace(subgraph),
                exchange,
                **of_kind,
                patience=self._plain.patience,
                agree=agree,
                owner_of=assignment.owner_of,
            )
        except KernelError:
            raise
        except (DeviceError, MemoryError) as error:
            raise DeviceError(f"rows that follow do not fit the GPU: {error}", rank=group.rank) from error
        for name, values in [*made.options.initial.items(), *made.options.columns.items()]:
            engine.begin(name, subgraph.of_owned(values))
        self._engine = engine

    def _by_lid(self, edges: RowChanges) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        engine = self._live
        return engine.local_ids(edges.rows), engine.local_ids(edges.ends)

    def _affected(self, ends: NDArray[np.int64]) -> Affected:
        """Return what a batch may change, of all ranks."""
        gids, engine = distinct(ends), self._live
        lids = self._subgraph.local_ids(gids)
        edges = self._graph.group.all_reduce(np.array([engine.num_in_edges(lids)]), "sum")
        return self._affects(gids, lambda name: engine.state(name)[lids], int(edges[0]))

    def _collected(self, stats: StatsLog) -> Result:
        engine = self._live
        if isinstance(self._graph, LaterGraph):
            self._graph.note_num_edges(engine.num_edges_everywhere)
        if self._gathers:
            return self._collects(self._subgraph, _Left(engine.left(), engine.aggregates), stats)
        result = self._part(stats, self._fields())
        self._ids = result.ids
        return result

    def _part(self, stats: StatsLog, fields: Mapping[str, NDArray[Any]]) -> Result:
        """Return a result of this rank's part."""
        left: Any = _Left(fields, self._live.aggregates)
        part = RankResult(self._subgraph, left, (), "converged", stats)
        device = self._made.executable.spec.device
        return collect(part, self._made.program, self._graph, device, gather=False)

    def _fields(self) -> LiveFields:
        """Return the fields as they are now, in the order of gids, to be read before they change."""
        fields = LiveFields(self._names, self._read_field, self._fields)
        self._held.add(fields)
        return fields

    def _read_fields(self) -> dict[str, NDArray[Any]]:
        return {name: self._read_field(name) for name in self._names}

    def _read_field(self, name: str) -> NDArray[Any]:
        return self._live.state(name)[self._subgraph.by_gid]

    def _kept(self) -> Mapping[str, NDArray[Any]] | None:
        """Return the fields as they are now, kept on the device; None where there is no room."""
        return self._live.kept()


def _seen(graph: Graph, gids: NDArray[np.int64]) -> NDArray[np.int64]:
    from sigps.engine.partition.subgraph import seen_ids

    return seen_ids(graph, gids)
