"""A program on CPU cores whose result goes on from version to version of its graph: the engine of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import DeviceError, KernelError
from sigps.graph.graph import Graph
from sigps.graph.ids import Ids
from sigps.graph.versions.batch import Changes, LaterChanges, as_changes
from sigps.graph.versions.row_changes import distinct
from sigps.job.changed_ids import LaterIds, UnreadIds
from sigps.job.guard import Affected, Guard, allowance, refusal
from sigps.job.live_fields import HeldFields, LiveFields
from sigps.job.preparing import Prepared, prepared, turned
from sigps.job.result import Result
from sigps.job.run import run, run_options
from sigps.job.updates import Updates
from sigps.model.vertex import Vertex

if TYPE_CHECKING:
    from sigps.compiler.proofs.incremental import Incremental
    from sigps.device.cpu import Threads
    from sigps.device.shared_copies import Work
    from sigps.engine.cpu.following import EdgeChanges, Following, LiveRows
    from sigps.engine.cpu.measures import LiveMeasures
    from sigps.engine.cpu.spending import Spending
    from sigps.engine.gpu.following import GpuFollowingEngine
    from sigps.job.on_ranks import OnRanks

__all__ = ["LiveRun", "live_run"]

_MOST_VERTICES = 1 << 32
"""Of a graph on several ranks where rounds go on: they name vertices of all ranks by 32 bits."""


class LiveRun:
    """A program that goes on from version to version.

    Args:
        made: The program, its graph and options.
        engine: What runs it.
        threads: The engine's.
        measures: What follows the measures of the graph that the program begins with, or None.
        found: The way in which it can go on.
        options: Those of full runs.
        keep: What keeps the states of the last result where they are, on the device; None where they are copied here.
        share: See `allowance`.
        finder: The engine, where it finds the edges of a batch itself.

    Attributes:
        why: Why it can.
    """

    def __init__(
        self,
        made: Prepared,
        engine: Following,
        threads: Threads,
        measures: LiveMeasures | None,
        found: Incremental,
        options: Mapping[str, Any],
        keep: Callable[[], Mapping[str, NDArray[Any]] | None] | None = None,
        share: int | None = None,
        finder: GpuFollowingEngine | None = None,
    ) -> None:
        self._measures, self._share = measures, share
        self._made, self._engine, self.why, self._finder = made, engine, found.why, finder
        self._threads = threads
        self._found, self._options = found, options
        self._graph = made.graph
        self._inserts: Any = None
        self._to_copy: list[Work[None]] = []
        self._deletes: Any = None
        self._full_messages = 0
        self._spending: Spending | None = None
        self._held = HeldFields(keep)
        self._unread = UnreadIds()

    @property
    def obstacle(self) -> str:
        """Why it cannot go on any more; empty where it can."""
        return self._engine.obstacle

    def full(self) -> Result | None:
        """Run anew on the edges that were taken last, by the fastest way; None where there is an obstacle."""
        self._held.detach()
        result = self._found_at_once()
        if result is None:
            stats = self._engine.run()
            if self.obstacle:
                return None
            result = self._result(stats)
        self._full_messages = result.stats.num_messages + self._engine.full_cost
        return result

    def _found_at_once(self) -> Result | None:
        """Return the result of a full run that finds the fixed point out of turn; None where there is no such way."""
        made = self._made
        program = made.executable.program
        assert program is not None
        if self._made.executable.spec.device != "cpu":  # what is laid out on a GPU follows the versions
            return None
        has_form = program.path_lengths is not None or program.priority_form is not None
        if (
            not (has_form and self._found.sends_keys and made.options.asynchronous)
            or self._graph.ids.kind == "strings"
        ):
            return None
        result = run(made.program, self._graph, **self._options)
        states = tuple(result.__dict__["_fields"][f.name] for f in made.bound.declaration.states)
        return result if self._engine.take(states) else None

    def grows(self, newer: Graph) -> bool:
        """Tell whether the new vertices of a version join where they are: behind all others, with plain states."""
        options = self._made.options
        if not self._engine.grows or (self._found.rounds is not None and self._found.rounds.reads_size):
            return False
        return not (newer.update.is_renumbered or options.initial or options.columns)

    def note(self, graph: Graph, batch: Updates) -> None:
        """Take note of a batch before it is applied to the version that was followed last."""
        if self._measures is not None:
            types = graph.column_types()
            parts = as_changes(batch.inserts, "inserts", types), as_changes(batch.deletes, "deletes", types)
            ends = [(graph.ids.to_gids(p.sources), graph.ids.to_gids(p.targets)) for p in parts if p.size]
            if ends:
                self._engine.note(*(np.concatenate(side) for side in zip(*ends, strict=True)))

    def laid_by(self, before: Graph, batch: Updates, guard: Guard) -> Graph | None:
        """Return the version after a batch whose edges the engine finds, and which `follow_ends` takes then.

        Its rows here follow when they are read. None where the batch is applied here first.

        Args:
            before: The version that was followed last.
            batch: The batch.
            guard: A user's own reads rows here.

        Raises:
            GraphError: If the batch is wrong.
        """
        like = self._made.graph  # whose vertices all these versions have
        duplicates = like.report.duplicates_policy
        declared = self._made.program.declaration
        is_turned = before.directed and not declared.directed
        others = batch.vertices is not None or batch.delete_vertices is not None
        if self._finder is None or not isinstance(guard, str) or others or is_turned:
            return None
        if duplicates not in ("keep", "drop"):
            return None
        from sigps.graph.later import LaterGraph

        types = like.column_types()
        if (taken := self._taken(batch, types)) is not None:
            return LaterGraph.after(before, *taken)
        new = as_changes(batch.inserts, "inserts", types, casts=False)
        old = as_changes(batch.deletes, "deletes", types)
        if old.columns:
            return None
        if (kept := self._staged(new, old, types)) is None:
            kept, self._to_copy = (new.cast(types, "inserts").copied(), old.copied()), []
            self._inserts, self._deletes = (_by_gid(edges, like.ids) for edges in kept)
            if self._inserts.sources.size < new.size:
                return None
        return LaterGraph.after(before, *kept)

    def _taken(self, batch: Updates, types: Mapping[str, np.dtype[Any]]) -> tuple[Changes, Changes] | None:
        """Take a batch that lies in the memory of the GPU; return edges for the host, which come when they are read.

        Returns None of others, and of what the host is to look at.
        """
        from sigps.device.transfers import bring

        ids = self._graph.ids
        assert self._finder is not None
        if not ids.is_identity:
            return None
        try:
            taken = self._finder.taken(batch.inserts, batch.deletes, types, ids.num_vertices)
        except MemoryError:  # of the device: it takes fewer bytes of the host's way
            return None
        if taken is None:
            return None
        new, old, columns = taken
        self._inserts, self._deletes, self._to_copy = new, old, []

        def on_host(array: Any) -> NDArray[Any]:
            return array if type(array) is np.ndarray else bring(array, array.dtype)

        def brought(edges: EdgeChanges, columns: Mapping[str, Any]) -> Changes:
            ends = on_host(edges.sources), on_host(edges.targets)
            return Changes(*ends, {name: on_host(values) for name, values in columns.items()})

        return (
            LaterChanges(new.sources.size, lambda: brought(new, columns)),
            LaterChanges(old.sources.size, lambda: brought(old, {})),
        )

    def _staged(
        self, new: Changes, old: Changes, types: Mapping[str, np.dtype[Any]]
    ) -> tuple[Changes, Changes] | None:
        """Bring a batch to where the engine sends it from; return edges for the host, which are filled later.

        Returns None where ids are not gids, some are no vertices, or a number does not fit.
        """
        from sigps.device.shared_copies import copying, in_parts
        from sigps.engine.cpu.following import EdgeChanges
        from sigps.graph.versions.taking import take_gids, take_numbers

        assert self._finder is not None
        ids = self._graph.ids
        if not ids.is_identity:
            return None
        inserts, deletes, weights = self._finder.staged(new.size, old.size)
        of_device = self._finder.column, weights.dtype
        columns = {
            name: weights if (name, types[name]) == of_device else np.empty(new.size, types[name])
            for name in new.columns
        }
        ends = zip((new.sources, new.targets, old.sources, old.targets), (*inserts, *deletes), strict=True)
        work = [take_gids(given, ids.num_vertices, to) for given, to in ends if given.size]
        work += [take_numbers(values, columns[name]) for name, values in new.columns.items() if new.size]
        taken = [part for part in work if part is not None]
        if len(taken) < len(work) or not all(in_parts(*taken)):
            return None
        self._inserts = EdgeChanges(inserts[0], inserts[1], columns)
        self._deletes = EdgeChanges(deletes[0], deletes[1], {})
        self._to_copy = []

        def kept(array: NDArray[Any]) -> NDArray[Any]:
            own = np.empty_like(array)
            self._to_copy.append(copying(own, array))
            return own

        of_host = {name: kept(values) if values is weights else values for name, values in columns.items()}
        new = Changes(kept(inserts[0]), kept(inserts[1]), of_host)
        return new, Changes(kept(deletes[0]), kept(deletes[1]))

    def follow_ends(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a version that `laid_by` returned; return as `follow` does."""
        from sigps.device.shared_copies import in_parts
        from sigps.graph.later import LaterGraph

        self._held.detach()
        assert self._finder is not None
        report = self._made.graph.report
        self._finder.follow_ends(
            self._inserts,
            self._deletes,
            drops_loops=report.self_loops_policy == "drop",
            drops_repeats=report.duplicates_policy == "drop",
        )
        self._graph = newer
        self._engine.widen(self._inserts)
        in_parts(*self._to_copy)  # while the device works
        assert isinstance(newer, LaterGraph)
        newer.apply_if_many_wait()
        return "guard='full'" if guard == "full" else ""

    def follow(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a newer version; return why it gets a full run, empty where it does not."""
        self._held.detach()
        if newer.update.new_vertices:
            from sigps.engine.partition.subgraph import seen_ids

            self._engine.grow(newer.num_vertices, seen_ids(newer, None))
        turned_graph = turned(newer, self._made.program)
        version = turned_graph._version
        assert newer._version is not None
        update = newer.update
        if version is None:  # the turned form was made anew
            turned_graph = turned_graph.apply()
            version = turned_graph._version
            assert version is not None
        from sigps.engine.cpu.following import EdgeChanges

        inserts, deletes = newer._version.added or update.inserts, update.deletes
        if newer.directed and not turned_graph.directed:
            inserts, deletes = inserts.mirrored()[0], deletes.mirrored()[0]
        self._inserts = EdgeChanges(inserts.rows, inserts.ends, inserts.columns)
        self._deletes = EdgeChanges(deletes.rows, deletes.ends, deletes.columns)
        rows = replace(_live_rows(turned_graph, self._made.program), changes=(self._inserts, self._deletes))
        self._engine.follow(rows)
        self._graph = turned_graph
        if self._measures is not None:
            self._measures.graph, self._measures.is_current = turned_graph, False
        self._engine.widen(self._inserts)
        if guard == "full":
            return "guard='full'"
        return "" if isinstance(guard, str) else refusal(guard, self._affected(rows))

    def go_on(self, guard: Guard) -> Result | None:
        """Return the result after the changes that `follow` took; None where a full run is to follow, or cannot."""
        from sigps.engine.cpu.spending import Spending

        most = allowance(guard, self._full_messages, self._share) if self._engine.gives_up else None
        self._spending = Spending(most)
        stats = self._engine.go_on(self._inserts, self._deletes, self._spending)
        return None if stats is None or self.obstacle else self._result(stats)

    def given_up(self) -> str:
        """Say why the incremental run was given up."""
        assert self._spending is not None
        if self._engine.refused:
            return self._engine.refused
        spent, full = self._spending.spent, self._full_messages
        return (
            f"guard: the incremental run needed more than {spent:,} messages; the last full run sent {full:,}"
        )

    def changed_ids(self) -> NDArray[Any] | LaterIds:
        """Return the ids of vertices whose states differ from the result before.

        An engine may find them later; those of the last two results may wait for it.
        """
        found, ids = self._engine.changed(), self._graph.ids
        if not callable(found):
            return ids.to_oids(found)
        later = LaterIds(lambda: ids.to_oids(found()))
        self._unread.add(later)
        return later

    def close(self) -> None:
        """Copy what results still read, and end the threads."""
        self._held.close()
        self._unread.read()
        self._threads.close()

    def _fields(self) -> LiveFields:
        """Return the fields as they are now; those returned before are copied before the engine goes on."""
        names = tuple(f.name for f in self._made.bound.declaration.states)
        engine = self._engine
        fields = LiveFields(names, lambda name: engine.state(name).copy(), self._fields)
        self._held.add(fields)
        return fields

    def _affected(self, rows: LiveRows) -> Affected:
        ends = distinct(np.concatenate([self._inserts.targets, self._deletes.targets]))
        inward = rows.inward
        assert inward.stops is not None
        sizes = inward.stops[ends] - inward.offsets[ends]
        names = [f.name for f in self._made.bound.declaration.states]
        return Affected(
            ids=self._graph.ids.to_oids(ends),
            fields={name: self._engine.state(name)[ends] for name in names},
            edges=int(sizes.sum()),
            num_vertices=self._graph.num_vertices,
            num_edges=self._graph.num_edges,
            last_messages=self._full_messages,
        )

    def _result(self, stats: Any) -> Result:
        from sigps.job.collect import all_ids, as_string_ids, optional_fields

        made = self._made
        fields = self._fields()
        shown: Mapping[str, NDArray[Any]] = fields
        if self._graph.ids.kind == "strings":
            shown = as_string_ids(fields, made.program, self._graph)
        return Result(
            ids=_ids_of(self._graph, all_ids),
            fields=shown,
            reason="converged",
            supersteps=len(stats),
            stats=stats,
            aggregators=self._engine.aggregates.by_name(),
            device=made.executable.spec.device,
            optional=optional_fields(made.program.declaration.states, self._graph),
        )


def _by_gid(edges: Changes, ids: Ids) -> EdgeChanges:
    """Return those edges whose ends are vertices."""
    from sigps.engine.cpu.following import EdgeChanges

    sources, targets = ids.to_gids(edges.sources), ids.to_gids(edges.targets)
    known = (sources >= 0) & (targets >= 0)
    columns = {name: column[known] for name, column in edges.columns.items()}
    return EdgeChanges(sources[known], targets[known], columns)


def _ids_of(graph: Graph, make: Any) -> NDArray[Any]:
    """Return all ids, made once for the versions that have the same map."""
    ids = graph.ids
    if not hasattr(ids, "_all"):
        ids._all = make(graph)  # type: ignore[attr-defined]
    found: NDArray[Any] = ids._all  # type: ignore[attr-defined]
    return found


def live_run(
    program: Vertex, graph: Graph, options: Mapping[str, Any], tolerance: float | None
) -> tuple[LiveRun | OnRanks | None, str]:
    """Return what goes on from version to version; or None, and why every batch gets a full run. Collective."""
    from sigps.compiler.proofs.incremental import incremental, within_tolerance

    made = prepared(program, graph, **run_options(options))
    device = made.executable.spec.device
    if graph.group.size > 1 and len(devices := set(graph.group.all_gather(device))) > 1:
        return None, f"incremental runs are not built for ranks on {' and '.join(sorted(devices))} at once"
    if made.executable.program is None:
        return None, "the interpreter always runs in full"
    derived = made.executable.program
    found = incremental(derived) if tolerance is None else within_tolerance(derived)
    runs_on_gpu = device == "cuda" and tolerance is None
    on_gpus = runs_on_gpu and graph.group.size > 1
    if found.kind == "full" and (on_gpus or not runs_on_gpu):
        return None, found.why
    if graph.group.size > 1 and found.kind == "linear":
        return None, "incremental runs of this kind (linear) are not built for several ranks"
    if device != "cpu" and not runs_on_gpu:
        return None, f"incremental runs are not built for device={device!r}" + " on several ranks" * (
            graph.group.size > 1
        )
    if program.declaration.both_ways:
        return None, "incremental runs are not built for programs that follow edges both ways"
    reduces = graph.report.duplicates_policy in ("sum", "min", "max") or program.declaration.simple
    reads_one = derived.edge_columns and found.kind in ("monotone", "first arrival")
    if reduces and (runs_on_gpu or reads_one):
        return None, "of parallel edges one is kept, so an update may change the values of others"
    limit = "device_memory" if runs_on_gpu else "host_memory"
    if options.get(limit) is not None or options.get("stream") == "always":
        return None, f"incremental runs have all edges in memory, whatever the limit: {limit} is of full runs"
    plain = made.options
    if options.get("max_supersteps") is not None or plain.forced or plain.schedule != "vertex":
        return None, "max_supersteps, direction and schedule are of full runs"
    if plain.deterministic and found.rounds is None:
        return None, "deterministic is of full runs"
    if not made.graph.num_vertices:
        return None, "the graph has no vertices"
    if found.kind == "first arrival" and (plain.initial or plain.columns) and not runs_on_gpu:
        return None, "states begin with given values, and not as if no vertex had acted"
    if on_gpus:
        return _on_gpus(made, graph, found, options)
    if made.graph is not graph and graph.directed and graph.group.size == 1:
        graph.in_edges()  # with these a batch changes the turned form, which is made anew without
    if runs_on_gpu:
        return _on_gpu(made, found, options)
    if found.kind == "monotone" and made.executable.code.monotone is None:
        return None, "keys of the program have several types"
    if found.linear is not None and (plain.initial or plain.columns):
        return None, "the solution does not depend on the values that states begin with"
    if graph.group.size > 1:
        from sigps.device.cpu import Threads
        from sigps.job.live_ranks import RankedRun
        from sigps.job.live_rounds import RankedRoundsRun

        threads = Threads(made.manager.num_threads)
        if found.rounds is not None:
            if graph.num_vertices > _MOST_VERTICES:
                return None, f"on several ranks rounds go on among {_MOST_VERTICES:,} vertices at most"
            return RankedRoundsRun(made, graph, threads, found, options), found.why
        return RankedRun(made, threads, found, options), found.why
    engine, threads, measures = _engine_of(made, found, tolerance)
    if engine.obstacle:
        return None, engine.obstacle
    return LiveRun(made, engine, threads, measures, found, options), found.why


def _on_gpus(
    made: Prepared, graph: Graph, found: Incremental, options: Mapping[str, Any]
) -> tuple[OnRanks | None, str]:
    """Return what goes on on several GPUs; or None, and why nothing does. Collective."""
    from sigps.device.cpu import Threads
    from sigps.engine.gpu.arrivals import find_arrival_obstacle
    from sigps.engine.gpu.following import find_rows_obstacle
    from sigps.engine.gpu.live import find_live_obstacle
    from sigps.job.live_gpus import GpuRankedRun

    derived, given = made.executable.program, made.options
    assert derived is not None
    if found.kind not in ("monotone", "first arrival"):
        return (
            None,
            "on several GPUs incremental runs are built for monotone programs, and those of a first arrival",
        )
    is_monotone = found.kind == "monotone"
    if obstacle := find_live_obstacle(derived, found) if is_monotone else find_arrival_obstacle(found):
        return None, obstacle
    if obstacle := find_rows_obstacle(derived):
        return None, f"on a GPU rows of edges do not follow: {obstacle}"
    if given.initial or given.columns:
        return None, "on a GPU incremental runs begin with the states that the program declares"
    if made.graph is not graph:
        return None, "on several GPUs rows of a directed graph do not follow in both directions"
    plain = made.manager.met(
        made.bound, made.executable, given, options.get("transport", "auto"), options.get("faults")
    )
    if not plain.has_peers:
        return None, "on several GPUs incremental runs are built where these write into each other's memory"
    run = GpuRankedRun(made, Threads(made.manager.num_threads), found, options, plain)
    if obstacle := run.obstacle:
        run.close()
        return None, obstacle
    return run, found.why


def _on_gpu(made: Prepared, found: Incremental, options: Mapping[str, Any]) -> tuple[LiveRun | None, str]:
    from sigps.device.cpu import Threads
    from sigps.engine.contract import Needs, RunContext
    from sigps.engine.exchange import NoExchange
    from sigps.engine.gpu.arrivals import GpuArrivalEngine, find_arrival_obstacle
    from sigps.engine.gpu.following import GpuFollowingEngine, find_rows_obstacle
    from sigps.engine.gpu.live import GpuLiveEngine, find_live_obstacle
    from sigps.engine.gpu.measures import GpuMeasuresEngine, find_measures_obstacle
    from sigps.engine.laid_out import partition_of

    graph, derived, given = made.graph, made.executable.program, made.options
    assert derived is not None
    obstacle = None
    if found.kind == "first arrival":
        obstacle = find_arrival_obstacle(found)
    elif found.kind != "local measures":
        obstacle = find_live_obstacle(derived, found)
    if given.initial or given.columns:
        obstacle = obstacle or "on a GPU incremental runs begin with the states that the program declares"
    is_measured = any(field.measure for field in derived.states)
    of_rows = find_measures_obstacle(derived, found) if is_measured else find_rows_obstacle(derived)
    if of_rows is not None:
        return None, f"on a GPU rows of edges do not follow: {of_rows}"
    if is_measured and obstacle is not None:  # nobody would count
        return None, obstacle
    _, subgraph = partition_of(graph, "edges", (1.0,), Needs(), 1)
    exchange = NoExchange(lambda ids, _: graph.ids.to_gids(ids))
    threads = Threads(1)
    context = RunContext(made.bound, made.executable, subgraph, exchange, threads, given)
    parts = made.executable.code, context.params(), replace(subgraph), exchange
    engine: GpuFollowingEngine | None = None
    try:
        if obstacle is None and found.kind == "first arrival":
            engine = GpuArrivalEngine(*parts, level=found.level)
            obstacle = engine.obstacle
        elif obstacle is None and is_measured:
            engine = GpuMeasuresEngine(*parts)
        elif obstacle is None:
            has_witnesses, at_once = bool(found.witnesses), bool(given.asynchronous)
            engine = GpuLiveEngine(*parts, has_witnesses=has_witnesses, at_once=at_once)
            obstacle = engine.obstacle
        if engine is None or engine.obstacle:
            engine = GpuFollowingEngine(*parts, refused=obstacle or "")
        obstacle = engine.obstacle
    except KernelError:
        raise
    except (DeviceError, MemoryError) as error:  # a run may leave edges on the host
        obstacle = f"rows that follow do not fit the GPU: {error}"
    if engine is None or obstacle:
        threads.close()
        return None, obstacle
    for name, values in [*given.initial.items(), *given.columns.items()]:
        engine.begin(name, subgraph.of_owned(values))
    return LiveRun(
        made, engine, threads, None, found, options, engine.kept, share=1, finder=engine
    ), found.why


def _engine_of(
    made: Prepared, found: Incremental, tolerance: float | None
) -> tuple[Following, Threads, LiveMeasures | None]:
    from sigps.device.cpu import Threads
    from sigps.engine.contract import Needs, RunContext
    from sigps.engine.cpu.arrivals import ArrivalEngine
    from sigps.engine.cpu.linear import LinearEngine
    from sigps.engine.cpu.live import LiveEngine
    from sigps.engine.cpu.measures import LiveMeasures
    from sigps.engine.cpu.rounds import RoundsEngine
    from sigps.engine.exchange import NoExchange
    from sigps.engine.laid_out import partition_of

    graph, options = made.graph, made.options
    _, subgraph = partition_of(graph, "edges", (1.0,), Needs(), 1)
    exchange = NoExchange(lambda ids, _: graph.ids.to_gids(ids))
    threads = Threads(made.manager.num_threads)
    context = RunContext(made.bound, made.executable, subgraph, exchange, threads, options)
    engine: Following
    measures = None
    if any(field.measure for field in made.bound.declaration.states):
        measures = LiveMeasures(graph, threads)
    if found.linear is not None and tolerance is not None:
        code = made.executable.code
        engine = LinearEngine(code, context.params(), subgraph, threads, found.linear, tolerance)
    elif found.rounds is not None:
        code = made.executable.code
        engine = RoundsEngine(code, context.params(), subgraph, threads, found.rounds, measures=measures)
    else:
        all_send = replace(subgraph, out_degrees=np.maximum(subgraph.out_degrees, 1))
        given = made.executable.code, context.params(), all_send, exchange, threads
        if found.kind == "monotone":
            engine = LiveEngine(*given, has_witnesses=bool(found.witnesses))
        else:
            engine = ArrivalEngine(*given, level=found.level)
    for name, values in [*options.initial.items(), *options.columns.items()]:
        engine.begin(name, subgraph.of_owned(values))
    return engine, threads, measures


def _live_rows(graph: Graph, program: Vertex) -> LiveRows:
    from sigps.engine.cpu.following import LiveRows
    from sigps.engine.partition.edge_list import EdgeList

    version = graph._version
    assert version is not None
    begins, stops, ends, columns = version.rows.shared()
    outward = inward = EdgeList(begins, ends, columns, stops)
    if graph.directed:
        assert version.inward is not None
        begins, stops, ends, columns = version.inward.shared()
        inward = EdgeList(begins, ends, columns, stops)
    assert version.touched is not None
    return LiveRows(outward, inward, version.touched)
