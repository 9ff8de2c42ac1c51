"""A program's result kept up with its graph: batches of updates, and after each the result of the newest version."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.graph.versions.row_changes import distinct
from sigps.job.guard import Affected, Guard, allowance, check_guard, refusal
from sigps.job.preparing import Prepared, prepared, turned
from sigps.job.result import Result
from sigps.job.run import run, run_options
from sigps.job.updates import Updates
from sigps.job.window import Window, WindowState
from sigps.model.vertex import Vertex

if TYPE_CHECKING:
    from sigps.compiler.proofs.incremental import Incremental
    from sigps.device.cpu import Threads
    from sigps.engine.cpu.live import LiveEngine, LiveRows, Spending

__all__ = ["LiveResult", "Stream", "stream"]


class LiveResult(Result):
    """The result after a batch, as `sigps.run` on that version of the graph gives it.

    Attributes:
        path: `"incremental"`, or `"full"`: the program ran anew.
        why: Why it took this path.
        changed_ids: The ids of vertices whose fields differ from the result before; all of the first result.
        update: What the batch did to the graph; None of the first result.
    """

    path: Literal["incremental", "full"]
    why: str
    changed_ids: NDArray[Any]
    update: Any = None

    @classmethod
    def of(
        cls,
        result: Result,
        path: Literal["incremental", "full"],
        why: str,
        changed: NDArray[Any],
        update: Any,
    ) -> LiveResult:
        """Return a result as the outcome of a batch."""
        live = cls.__new__(cls)
        live.__dict__.update(result.__dict__)
        live.path, live.why, live.changed_ids, live.update = path, why, changed, update
        return live


def stream(
    program: Vertex,
    graph: Graph,
    *,
    guard: Guard = "auto",
    window: float | None = None,
    missing: Literal["count", "error"] = "count",
    **options: Any,
) -> Stream:
    """Keep a program's result up with its graph, batch by batch.

    A batch is applied to the graph (`Graph.apply`); then the program's result follows, incrementally where the compiler
    proved that it can (`sigps explain` says which way and why) and the guard allows it, else by a full run. Either way
    it is the result of a full run on a graph built anew, but for states that `sigps explain` names as witnesses: those
    are as valid, and may be others. Incremental runs are built for one process on CPU cores.

    Args:
        program: As in `sigps.run`.
        graph: The graph at first.
        guard: Which batches get a full run: `"auto"`, those whose incremental run would cost more than a tenth of
            the last full run's messages, counted as it runs; `"full"` or `"incremental"` always that;
            `{"field": "level", "below": 2, "fraction": 0.3}`, where of more than this fraction of the affected vertices
            the field is below; or a function of `Affected` that tells whether an incremental run is worth it. All but
            `"incremental"` have the limit of `"auto"`.
        window: How long an edge stays, in the unit of its time: older ones are deleted when a batch brings later
            times. None for ever.
        missing: As in `Graph.apply`.
        options: Those of `sigps.run`.

    Raises:
        ConfigError: If an option is wrong.

    >>> from sigps.apps import SSSP
    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 3], weights=[1.0, 1.0, 1.0])
    >>> with stream(SSSP(source=0), graph, device="cpu", guard="incremental") as live:
    ...     result = live.apply(inserts=([0], [2], [1.5]))
    >>> result["distance"].tolist(), result.path, result.changed_ids.tolist()
    ([0.0, 1.0, 1.5, 2.5], 'incremental', [2, 3])
    """
    return Stream(program, graph, guard, window, missing, options)


class Stream:
    """A stream of batches; `stream` makes one. Used as a context manager, or closed by `close`.

    Attributes:
        graph: The newest version.
    """

    def __init__(
        self,
        program: Vertex,
        graph: Graph,
        guard: Guard,
        window: float | None,
        missing: Literal["count", "error"],
        options: dict[str, Any],
    ) -> None:
        if window is not None and (isinstance(window, bool) or not window > 0):
            raise ConfigError(f"window={window!r} must be a time above 0, or None")
        if refused := options.keys() & {"checkpoint", "resume", "trace"}:
            raise ConfigError(f"{min(refused)}= is of single runs; a stream does not take it")
        if isinstance(program, Vertex):
            check_guard(guard, tuple(f.name for f in program.declaration.states))
        self._program, self._guard, self._missing, self._options = program, guard, missing, options
        self._window = None if window is None else Window(window)
        self.graph = graph
        self._live: _LiveRun | None
        self._live, self._why = _live_run(program, graph, options)
        self._result = _Held(self._first())

    @property
    def result(self) -> LiveResult:
        """The result on the newest version."""
        return self._result.read()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what incremental runs need; the graph and the last result stay."""
        if self._live is not None:
            self._result = _Held(self.result, is_weak=False)
            self._live.close()
        self._live = None
        self._why = "the stream is closed"

    def apply(self, batch: Updates | None = None, *, inserts: Any = None, deletes: Any = None) -> LiveResult:
        """Apply a batch, and return the result on the new version.

        Args:
            batch: One of `sigps.read_updates`, or None.
            inserts: As in `Graph.apply`, where there is no batch.
            deletes: Likewise.

        Raises:
            GraphError: As `Graph.apply`; nothing was applied then.
        """
        if self._why == "the stream is closed":
            raise ConfigError("the stream is closed, so it takes no batch")
        if batch is None:
            batch = Updates(inserts, deletes)
        elif inserts is not None or deletes is not None:
            raise ConfigError("give a batch, or inserts= and deletes=, not both")
        elif not isinstance(batch, Updates):
            raise ConfigError(
                f"a batch is sigps.Updates, not {type(batch).__name__}; or give inserts= and deletes="
            )
        graph, window = self.graph, self._window
        step = None
        if window is not None:
            batch, step = window.widened(batch, graph)
        newer = graph.apply(batch.inserts, batch.deletes, vertices=batch.vertices, missing=self._missing)
        if window is not None and step is not None:
            window.take(step)
        result = self._follow(newer)
        self._result = _Held(result)
        self.graph = newer
        return result

    @property
    def window_state(self) -> WindowState | None:
        """What is in the window, for a stream that goes on elsewhere; None without one."""
        return None if self._window is None else self._window.state

    @window_state.setter
    def window_state(self, state: WindowState) -> None:
        if self._window is None:
            raise ConfigError("the stream has no window")
        self._window.state = state

    def _first(self) -> LiveResult:
        live = self._live
        result = run(self._program, self.graph, **self._options) if live is None else live.full()
        return LiveResult.of(result, "full", "the first run", result.ids, None)

    def _follow(self, newer: Graph) -> LiveResult:
        live, why = self._live, self._why
        if live is not None and newer.update.new_vertices and not live.grows(newer):
            before = self.result
            live.close()
            self._live, self._why = live, why = _live_run(self._program, newer, self._options)
            if live is None:
                return self._anew(newer, before, why)
            result = live.full()
            return LiveResult.of(
                result, "full", "new vertices came between others", _changed_ids(before, result), newer.update
            )
        if live is None:
            return self._anew(newer, self.result, why)
        why = live.follow(newer, self._guard)
        if not why:
            found = live.go_on(self._guard)
            if found is not None:
                return LiveResult.of(found, "incremental", live.why, live.changed_ids(), newer.update)
            why = live.given_up()
        result = live.full()
        return LiveResult.of(result, "full", why, live.changed_ids(), newer.update)

    def _anew(self, newer: Graph, before: Result, why: str) -> LiveResult:
        result = run(self._program, newer, **self._options)
        return LiveResult.of(result, "full", why, _changed_ids(before, result), newer.update)


class _Held:
    """A result, or what makes it again where its fields are read from a live engine.

    If nobody else holds such a result nothing is copied when the engine goes on.
    """

    def __init__(self, result: LiveResult, *, is_weak: bool = True) -> None:
        fields = result.__dict__["_fields"]
        self._again: Any = fields.again if is_weak and isinstance(fields, _Fields) else None
        self._attributes = {k: v for k, v in result.__dict__.items() if k != "_fields"} if self._again else {}
        self._result: Any = weakref.ref(result) if self._again else lambda: result

    def read(self) -> LiveResult:
        """Return the result."""
        found: LiveResult | None = self._result()
        if found is None:
            found = LiveResult.__new__(LiveResult)
            found.__dict__.update(self._attributes, _fields=self._again())
            self._result = weakref.ref(found)
        return found


class _Fields(Mapping[str, NDArray[Any]]):
    """The fields of a live engine: read there, and copied before it goes on if the result is still held."""

    def __init__(self, names: tuple[str, ...], read: Any, again: Any) -> None:
        self._names, self._read, self.again = names, read, again
        self._copies: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._copies:
            if name not in self._names:
                raise KeyError(name)
            self._copies[name] = self._read(name)
        return self._copies[name]

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _LiveRun:
    """A program on CPU cores that goes on from version to version.

    Attributes:
        why: Why it can.
    """

    def __init__(
        self,
        made: Prepared,
        engine: LiveEngine,
        threads: Threads,
        found: Incremental,
        options: Mapping[str, Any],
    ) -> None:
        self._made, self._engine, self.why = made, engine, found.why
        self._threads = threads
        self._sends_keys, self._options = found.sends_keys, options
        self._graph = made.graph
        self._inserts: Any = None
        self._deletes: Any = None
        self._full_messages = 0
        self._spending: Spending | None = None
        self._held: weakref.ref[_Fields] | None = None

    def full(self) -> Result:
        """Run anew on the edges that were taken last, by the fastest way."""
        self.detach()
        result = self._found_at_once()
        if result is None:
            result = self._result(self._engine.run())
        self._full_messages = sum(entry.messages for entry in result.stats)
        return result

    def _found_at_once(self) -> Result | None:
        """Return the result of a full run that finds the fixed point out of turn; None where there is no such way."""
        made = self._made
        program = made.executable.program
        assert program is not None
        has_form = program.path_lengths is not None or program.priority_form is not None
        if (
            not (has_form and self._sends_keys and made.options.asynchronous)
            or self._graph.ids.kind == "strings"
        ):
            return None
        result = run(made.program, self._graph, **self._options)
        states = tuple(result.__dict__["_fields"][f.name] for f in made.bound.declaration.states)
        return result if self._engine.take(states) else None

    def grows(self, newer: Graph) -> bool:
        """Tell whether the new vertices of a version join where they are: behind all others, with plain states."""
        options = self._made.options
        return not (newer.update.is_renumbered or options.initial or options.columns)

    def follow(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a newer version; return why it gets a full run, empty where it does not."""
        self.detach()
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
        rows = _live_rows(turned_graph, self._made.program)
        self._engine.follow(rows)
        self._graph = turned_graph
        from sigps.engine.cpu.live import EdgeChanges

        inserts, deletes = update.inserts, update.deletes
        if newer.directed and not turned_graph.directed:
            inserts, deletes = inserts.mirrored()[0], deletes.mirrored()[0]
        self._inserts = EdgeChanges(inserts.rows, inserts.ends, inserts.columns)
        self._deletes = EdgeChanges(deletes.rows, deletes.ends, deletes.columns)
        self._engine.widen(self._inserts)
        if guard == "full":
            return "guard='full'"
        return "" if isinstance(guard, str) else refusal(guard, self._affected(rows))

    def go_on(self, guard: Guard) -> Result | None:
        """Return the result after the changes that `follow` took; None where a full run is to follow."""
        from sigps.engine.cpu.live import Spending

        self._spending = Spending(allowance(guard, self._full_messages))
        stats = self._engine.go_on(self._inserts, self._deletes, self._spending)
        return None if stats is None else self._result(stats)

    def given_up(self) -> str:
        """Say why the incremental run was given up."""
        assert self._spending is not None
        spent, full = self._spending.spent, self._full_messages
        return (
            f"guard: the incremental run needed more than {spent:,} messages; the last full run sent {full:,}"
        )

    def changed_ids(self) -> NDArray[Any]:
        """Return the ids of vertices whose states differ from the result before."""
        return self._graph.ids.to_oids(self._engine.changed())

    def detach(self) -> None:
        """Copy the fields of the last result, if something holds it, before they change."""
        fields = self._held() if self._held is not None else None
        if fields is not None:
            for name in fields:
                fields[name]
        self._held = None

    def close(self) -> None:
        """Copy what the last result reads, and end the threads."""
        self.detach()
        self._threads.close()

    def _fields(self) -> _Fields:
        """Return the fields as they are now; those returned before are copied before the engine goes on."""
        names = tuple(f.name for f in self._made.bound.declaration.states)
        engine = self._engine
        fields = _Fields(names, lambda name: engine.state(name).copy(), self._fields)
        self._held = weakref.ref(fields)
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
            aggregators={},
            device="cpu",
            optional=optional_fields(made.program.declaration.states, self._graph),
        )


def _ids_of(graph: Graph, make: Any) -> NDArray[Any]:
    """Return all ids, made once for the versions that have the same map."""
    ids = graph.ids
    if not hasattr(ids, "_all"):
        ids._all = make(graph)  # type: ignore[attr-defined]
    found: NDArray[Any] = ids._all  # type: ignore[attr-defined]
    return found


def _changed_ids(before: Result, after: Result) -> NDArray[Any]:
    """Return the ids of vertices whose fields differ between two results, or that are new in the later one."""
    at = np.searchsorted(after.ids, before.ids)
    there = at < after.ids.size
    there[there] = after.ids[at[there]] == before.ids[there]
    at = at[there]
    same = np.zeros(after.ids.size, dtype=np.bool_)
    same[at] = True
    for name in after.fields:
        one, other = np.ma.getdata(before[name])[there], np.ma.getdata(after[name])[at]
        masks = np.ma.getmaskarray(before[name])[there], np.ma.getmaskarray(after[name])[at]
        equal = (one == other) | ((one != one) & (other != other))
        equal = np.asarray(equal & (masks[0] == masks[1]))
        same[at] &= equal.reshape(equal.shape[0], -1).all(axis=1) if equal.ndim > 1 else equal
    changed: NDArray[Any] = after.ids[~same]
    return changed


def _live_run(program: Vertex, graph: Graph, options: Mapping[str, Any]) -> tuple[_LiveRun | None, str]:
    """Return what goes on from version to version; or None, and why every batch gets a full run. Collective."""
    from sigps.compiler.proofs.incremental import incremental

    made = prepared(program, graph, **run_options(options))
    if made.executable.program is None:
        return None, "the interpreter always runs in full"
    found = incremental(made.executable.program)
    if found.kind == "full":
        return None, found.why
    if graph.group.size > 1:
        return None, "incremental runs are not built for several ranks"
    if made.executable.spec.device != "cpu":
        return None, f"incremental runs are not built for device={made.executable.spec.device!r}"
    if program.declaration.both_ways:
        return None, "incremental runs are not built for programs that follow edges both ways"
    reduces = graph.report.duplicates_policy in ("sum", "min", "max") or program.declaration.simple
    if reduces and made.executable.program.edge_columns:
        return None, "of parallel edges one is kept, so an update may change the values of others"
    if options.get("host_memory") is not None or options.get("stream") == "always":
        return (
            None,
            "incremental runs have all edges in memory, whatever the limit: host_memory is of full runs",
        )
    plain = made.options
    if (
        options.get("max_supersteps") is not None
        or plain.forced
        or plain.schedule != "vertex"
        or plain.deterministic
    ):
        return None, "max_supersteps, direction, schedule and deterministic are of full runs"
    if found.kind == "first arrival" and (plain.initial or plain.columns):
        return None, "states begin with given values, and not as if no vertex had acted"
    if found.kind == "monotone" and made.executable.code.monotone is None:
        return None, "keys of the program have several types"
    engine, threads = _engine_of(made, found)
    if not engine.has_order:
        return None, "a parameter is NaN, so keys have no order"
    return _LiveRun(made, engine, threads, found, options), found.why


def _engine_of(made: Prepared, found: Incremental) -> tuple[LiveEngine, Threads]:
    from sigps.device.cpu import Threads
    from sigps.engine.contract import Needs, RunContext
    from sigps.engine.cpu.arrivals import ArrivalEngine
    from sigps.engine.cpu.live import LiveEngine
    from sigps.engine.exchange import NoExchange
    from sigps.engine.laid_out import partition_of
    from sigps.graph.building.vertex_columns import values_of

    graph, options = made.graph, made.options
    _, subgraph = partition_of(graph, "edges", (1.0,), Needs(), 1)
    subgraph = replace(subgraph, out_degrees=np.maximum(subgraph.out_degrees, 1))
    exchange = NoExchange(lambda ids, _: graph.ids.to_gids(ids))
    threads = Threads(made.manager.num_threads)
    context = RunContext(made.bound, made.executable, subgraph, exchange, threads, options)
    given = made.executable.code, context.params(), subgraph, exchange, threads
    engine: LiveEngine
    if found.kind == "monotone":
        engine = LiveEngine(*given, has_witnesses=bool(found.witnesses))
    else:
        engine = ArrivalEngine(*given, level=found.level)
    gids = subgraph.owned_gids
    for name, values in options.initial.items():
        engine.begin(name, values[gids])
    for name, values in options.columns.items():
        engine.begin(name, values_of(graph, values, gids))
    return engine, threads


def _live_rows(graph: Graph, program: Vertex) -> LiveRows:
    from sigps.engine.cpu.live import LiveRows
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
