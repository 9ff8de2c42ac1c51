"""A program's result kept up with its graph: batches of updates, and after each the result of the newest version."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Any, Literal

from numpy.typing import NDArray

from sigps.errors import ConfigError, SigpsError
from sigps.graph.graph import Graph
from sigps.job.changed_ids import LaterIds, changed_ids
from sigps.job.guard import Guard, check_guard
from sigps.job.live_fields import LiveFields
from sigps.job.live_run import LiveRun, live_run
from sigps.job.on_ranks import OnRanks
from sigps.job.result import Result
from sigps.job.run import run
from sigps.job.updates import Updates
from sigps.job.window import Window, WindowState
from sigps.model.vertex import Vertex

__all__ = ["LiveResult", "Stream", "stream"]


class LiveResult(Result):
    """The result after a batch, as `sigps.run` on that version of the graph gives it.

    Attributes:
        path: `"incremental"`, or `"full"`: the program ran anew.
        why: Why it took this path.
    """

    path: Literal["incremental", "full"]
    why: str
    _update: Any
    _changed: NDArray[Any] | LaterIds

    @property
    def update(self) -> Any:
        """What the batch did to the graph; None of the first result.

        On a GPU the batch is applied here when this is first read: O(batch), and the edges of the rows that it touches.
        On several that is collective, as is to read rows of `Stream.graph`.
        """
        if isinstance(self._update, Graph):
            self._update = self._update.update
        return self._update

    @property
    def changed_ids(self) -> NDArray[Any]:
        """The ids of vertices whose fields differ from the result before; all of the first result."""
        if isinstance(self._changed, LaterIds):
            self._changed = self._changed.read()
        return self._changed

    @classmethod
    def of(
        cls,
        result: Result,
        path: Literal["incremental", "full"],
        why: str,
        changed: NDArray[Any] | LaterIds,
        update: Any,
    ) -> LiveResult:
        """Return a result as the outcome of a batch.

        Args:
            result: The result.
            path: As the attribute, and so is the next.
            why: See there.
            changed: The ids of vertices whose fields differ from the result before, or what finds them later.
            update: What the batch did, or the version whose batch is applied when it is asked for; None of none.
        """
        live = cls.__new__(cls)
        live.__dict__.update(result.__dict__)
        live.path, live.why, live._changed, live._update = path, why, changed, update
        return live


def stream(
    program: Vertex,
    graph: Graph,
    *,
    guard: Guard = "auto",
    window: float | None = None,
    missing: Literal["count", "error"] = "count",
    tolerance: float | None = None,
    **options: Any,
) -> Stream:
    """Keep a program's result up with its graph, batch by batch.

    A batch is applied to the graph (`Graph.apply`); then the program's result follows, incrementally where the compiler
    proved that it can (`sigps explain` says which way and why) and the guard allows it, else by a full run. Either way
    it is the result of a full run on a graph built anew, but for states that `sigps explain` names as witnesses: those
    are as valid, and may be others. Incremental runs are built for CPU cores, within a tolerance on one rank; on
    GPUs for monotone programs that send their keys, and for those of a first arrival whose vertices act when any
    message comes, on several where these write into each other's memory; and on one GPU for local measures where
    vertices send nothing. Other programs run in full on a GPU, where their edges
    follow the batch if messages combine in any order (no sums of floats, no lists); else each version is laid out anew.

    Args:
        program: As in `sigps.run`.
        graph: The graph at first.
        guard: Which batches get a full run: `"auto"`, those whose incremental run would cost more than a tenth of
            the last full run's messages, counted as it runs (on a GPU more than all of them, a quarter where deletes
            are looked into, and for a first arrival; launches count as messages there); `"full"` or `"incremental"`
            always that; `{"field": "level", "below": 2, "fraction": 0.3}`, where of more than this fraction of the
            affected vertices the field is below; or a function of `Affected` that tells whether an incremental run is
            worth it. All but `"incremental"` have the limit of `"auto"`.
        window: How long an edge stays, in the unit of its time: older ones are deleted when a batch brings later
            times. None for ever.
        missing: As in `Graph.apply`.
        tolerance: Of a linear program (`PageRank`, `Katz`; `sigps explain` says so) how much each value may differ from
            the solution that its rounds come to, as a share of it: from 1e-12 on. Its own bounds of rounds and changes
            then do not count. None: results are those of full runs.
        options: Those of `sigps.run`.

    Raises:
        ConfigError: If an option is wrong, or a tolerance is given for what does not go on within one.

    >>> from sigps.apps import SSSP
    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 3], weights=[1.0, 1.0, 1.0])
    >>> with stream(SSSP(source=0), graph, device="cpu", guard="incremental") as live:
    ...     result = live.apply(inserts=([0], [2], [1.5]))
    >>> result["distance"].tolist(), result.path, result.changed_ids.tolist()
    ([0.0, 1.0, 1.5, 2.5], 'incremental', [2, 3])
    """
    return Stream(program, graph, guard, window, missing, options, tolerance)


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
        tolerance: float | None = None,
    ) -> None:
        is_number = isinstance(tolerance, (int, float)) and not isinstance(tolerance, bool)
        if tolerance is not None and not (is_number and 1e-12 <= tolerance < 1):
            raise ConfigError(f"tolerance={tolerance!r} must be a share from 1e-12 to less than 1, or None")
        if window is not None and (isinstance(window, bool) or not window > 0):
            raise ConfigError(f"window={window!r} must be a time above 0, or None")
        if refused := options.keys() & {"checkpoint", "resume", "trace"}:
            raise ConfigError(f"{min(refused)}= is of single runs; a stream does not take it")
        if isinstance(program, Vertex):
            check_guard(guard, tuple(f.name for f in program.declaration.states))
        self._program, self._guard, self._missing, self._options = program, guard, missing, options
        self._window = None if window is None else Window(window)
        self.graph = graph
        self._live: LiveRun | OnRanks | None
        self._tolerance = tolerance
        self._live, self._why = self._begun(graph)
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

    def apply(
        self,
        batch: Updates | None = None,
        *,
        inserts: Any = None,
        deletes: Any = None,
        delete_vertices: Any = None,
    ) -> LiveResult:
        """Apply a batch, and return the result on the new version.

        Args:
            batch: One of `sigps.read_updates`, or None.
            inserts: As in `Graph.apply`, where there is no batch. On one GPU arrays in its memory are taken there.
            deletes: Likewise.
            delete_vertices: Likewise. Others are renumbered, so a full run follows.

        Raises:
            GraphError: As `Graph.apply`; nothing was applied then.
        """
        if self._why == "the stream is closed":
            raise ConfigError("the stream is closed, so it takes no batch")
        if batch is None:
            batch = Updates(inserts, deletes, delete_vertices=delete_vertices)
        elif not inserts is deletes is delete_vertices is None:
            raise ConfigError("give a batch, or inserts=, deletes= and delete_vertices=, not both")
        elif not isinstance(batch, Updates):
            raise ConfigError(
                f"a batch is sigps.Updates, not {type(batch).__name__}; or give inserts= and deletes="
            )
        graph, window = self.graph, self._window
        step = None
        if window is not None:
            batch, step = window.widened(batch, graph)
        live, newer = self._live, None
        if live is not None and window is None and self._missing == "count":
            newer = live.laid_by(graph, batch, self._guard)
        if isinstance(live, LiveRun) and newer is None:
            live.note(graph, batch)
        is_laid_by = newer is not None
        if newer is None:
            newer = graph.apply(
                batch.inserts,
                batch.deletes,
                vertices=batch.vertices,
                delete_vertices=batch.delete_vertices,
                missing=self._missing,
            )
        if window is not None and step is not None:
            window.take(step)
        try:
            result = self._follow_ends(newer) if is_laid_by else self._follow(newer)
        except SigpsError:
            if live is not None:
                self._forget(live, "a batch before ended with an error")
            raise
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

    def _begun(self, graph: Graph) -> tuple[LiveRun | OnRanks | None, str]:
        """Return what goes on from this version, or why nothing does."""
        live, why = live_run(self._program, graph, self._options, self._tolerance)
        if live is None and self._tolerance is not None:
            raise ConfigError(f"{type(self._program).__name__} is not followed within a tolerance: {why}")
        return live, why

    def _first(self) -> LiveResult:
        result = self._live.full() if self._live is not None else None
        if result is None:
            self._stop_following()
            result = run(self._program, self.graph, **self._options)
        return LiveResult.of(result, "full", "the first run", result.ids, None)

    def _forget(self, live: LiveRun | OnRanks, why: str) -> None:
        """Let go of a run that ended in the middle of a batch; the last result is made again.

        Within a tolerance a run begins anew on the version before: full runs have no tolerance.
        """
        live.close()
        self._live, self._why = None, why
        result = None
        if self._tolerance is not None:
            self._live, self._why = self._begun(self.graph)
            result = self._live.full() if self._live is not None else None
        if result is None:
            result = run(self._program, self.graph, **self._options)
        self._result = _Held(LiveResult.of(result, "full", why, result.ids[:0], None))

    def _stop_following(self) -> None:
        """Let go of a run that cannot go on: all batches run in full from now on."""
        if self._live is not None:
            self._why = self._live.obstacle
            self._live.close()
            self._live = None
            if self._tolerance is not None:
                name = type(self._program).__name__
                raise ConfigError(f"{name} is not followed within a tolerance: {self._why}")

    def _follow(self, newer: Graph) -> LiveResult:
        live, why = self._live, self._why
        has_others = newer.update.new_vertices or newer.update.is_renumbered
        if live is not None and has_others and not live.grows(newer):
            before = self.result
            live.close()
            self._live, self._why = live, why = self._begun(newer)
            if live is None:
                return self._anew(newer, before, why)
            result = live.full()
            if result is None:
                self._stop_following()
                return self._anew(newer, before, self._why)
            went = newer.update.deleted_vertices
            why = "vertices were deleted" if went else "new vertices came between others, or change all"
            return LiveResult.of(result, "full", why, changed_ids(before, result, newer.group), newer.update)
        if live is None:
            return self._anew(newer, self.result, why)
        return self._gone_on(live, live.follow(newer, self._guard), newer, newer.update)

    def _follow_ends(self, newer: Graph) -> LiveResult:
        """Follow a version whose batch is applied here later."""
        live = self._live
        assert live is not None
        return self._gone_on(live, live.follow_ends(newer, self._guard), newer, newer)

    def _gone_on(self, live: LiveRun | OnRanks, why: str, newer: Graph, update: Any) -> LiveResult:
        """Go on from the last result, or run in full, for which there is a reason already if `why` is not empty."""
        if not why:
            found = live.go_on(self._guard)
            if found is not None:
                return LiveResult.of(found, "incremental", live.why, live.changed_ids(), update)
            why = live.given_up()
        result = live.full()
        if result is None:
            before = self.result
            self._stop_following()
            return self._anew(newer, before, self._why)
        return LiveResult.of(result, "full", why, live.changed_ids(), update)

    def _anew(self, newer: Graph, before: Result, why: str) -> LiveResult:
        result = run(self._program, newer, **self._options)
        return LiveResult.of(result, "full", why, changed_ids(before, result, newer.group), newer.update)


class _Held:
    """A result, or what makes it again where its fields are read from a live engine.

    If nobody else holds such a result nothing is copied when the engine goes on.
    """

    def __init__(self, result: LiveResult, *, is_weak: bool = True) -> None:
        fields = result.__dict__["_fields"]
        self._again: Any = fields.again if is_weak and isinstance(fields, LiveFields) else None
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
