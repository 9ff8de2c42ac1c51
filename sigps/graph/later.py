"""Versions whose batches are applied later: when something is read of one that its batch changes.

A stream whose rows follow on a device needs no rows here. So its versions hold their batches, and the version that the
first of them follows. Batches of versions that nothing holds any more are applied as one: what they delete one after
the other is deleted at once, and of what they insert the edges that no later one of them deletes.

Batches do not wait for ever: where many do, a thread applies them beside the stream, which goes on (a million edges
take the host seconds, and a GPU milliseconds), and waits for that thread once twice as many wait.

On several ranks whatever applies batches is collective: all of them read rows of the same version, or none. So there
batches before the one that is read are applied as one, whatever holds their versions, and nothing is applied beside.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sigps.graph.graph import Graph
from sigps.graph.ids import Ids
from sigps.graph.versions.batch import Changes

__all__ = ["LaterGraph"]

_LEAST, _SHARE = 1 << 18, 16
"""Batches may wait while they have no more edges than this, or than one part in so many of the graph's."""
_BESIDE = 2
"""Batches are applied beside a stream from one part in so many of what may wait."""
_BATCH = 64
"""A batch takes as much memory as so many edges, besides its own."""


class LaterGraph(Graph):
    """A version whose batch is applied when something is read that it changes; from then on it is a `Graph`."""

    _CHANGED = "offsets", "targets", "columns", "by_target", "num_edges", "report", "_derived", "_version"
    _pending: _Pending
    _types: dict[str, np.dtype[Any]]

    @classmethod
    def after(cls, before: Graph, inserts: Changes, deletes: Changes) -> LaterGraph:
        """Return the version after a batch of edges between vertices that are there.

        Args:
            before: The version before.
            inserts: Edges between its vertices; its arrays are kept, and read when it is applied.
            deletes: Ends between which all edges are deleted first, without columns; kept as well.
        """
        newer = object.__new__(cls)
        same = ("directed", "group", "ids", "row_bounds", "vertex_columns")
        newer.__dict__.update({name: getattr(before, name) for name in same})
        newer._packed, newer._types = None, before.column_types()
        newer._family = before._in_family()
        newer.version = newer._family.add(newer)
        newer._pending = _Pending(before, inserts, deletes, newer)
        return newer

    def note_num_edges(self, num_edges: int) -> None:
        """Take note of how many edges there are, so that these are told without the rows."""
        if "_pending" in self.__dict__:
            self.__dict__["_num_edges"] = num_edges

    def apply_if_many_wait(self) -> None:
        """Apply the batch, and those before it, where many edges wait; beside the caller while no more do than may."""
        pending: _Pending | None = self.__dict__.get("_pending")
        if pending is None:
            return
        queue = pending.queue
        if pending.waiting > queue.most and queue.worker is not None:
            queue.worker.join()
        if pending.waiting > queue.most:
            self._apply_now()
        elif self.group.size == 1 and pending.waiting > queue.most // _BESIDE:
            queue.apply_beside(self)

    def column_types(self) -> dict[str, np.dtype[Any]]:
        """See `Graph.column_types`."""
        return self._types

    def _apply_now(self) -> None:
        # On several ranks it is collective, so that one thread of each comes here, and ranks may be threads.
        with self._in_family().lock if self.group.size == 1 else contextlib.nullcontext():
            if "_pending" in self.__dict__:
                self.__dict__["_pending"].settle()


def _read_changed(name: str) -> Any:
    def read(self: LaterGraph) -> Any:
        if name == "num_edges" and "_num_edges" in self.__dict__:
            return self.__dict__["_num_edges"]
        self._apply_now()
        return getattr(self, name)  # of a Graph

    return property(read)


for _name in LaterGraph._CHANGED:
    setattr(LaterGraph, _name, _read_changed(_name))


class _Queue:
    """What batches that follow each other share.

    Attributes:
        most: How many edges may wait.
        applied: Edges of those batches that do not wait any more, and what batches take besides.
        worker: The thread that applies batches, or did.
        has_failed: Whether one met an error: then no other begins, and who reads rows meets it.
    """

    def __init__(self, most: int) -> None:
        self.most, self.applied = most, 0
        self.worker: threading.Thread | None = None
        self.has_failed = False

    def apply_beside(self, version: LaterGraph) -> None:
        """Apply batches up to that of a version in a thread, where none does; does not wait."""
        if self.has_failed or (self.worker is not None and self.worker.is_alive()):
            return

        def apply() -> None:
            try:
                version._apply_now()
            except Exception:
                self.has_failed = True

        self.worker = threading.Thread(target=apply, name="sigps_batches", daemon=True)
        self.worker.start()


class _Pending:
    """A batch that waits.

    Attributes:
        before: What it follows: a graph, or another batch that waits.
        queue: What it shares with those before and behind it.
        graph: Its version, as long as something holds it.
        is_settled: Whether it has been applied: `before` is its version then.
    """

    def __init__(self, before: Graph, inserts: Changes, deletes: Changes, graph: LaterGraph) -> None:
        found: _Pending | None = before.__dict__.get("_pending")
        self.before: Graph | _Pending = before if found is None else found
        self.is_settled = False
        self.inserts, self.deletes, self.graph = inserts, deletes, weakref.ref(graph)
        self.queue: _Queue = (
            found.queue if found is not None else _Queue(max(_LEAST, before.num_edges // _SHARE))
        )
        size = inserts.size + deletes.size + _BATCH
        self._through: int = size + (found._through if found is not None else 0)

    @property
    def waiting(self) -> int:
        """Edges of this batch and of those that wait before it, and what batches take besides."""
        return self._through - self.queue.applied

    def settle(self) -> None:
        """Apply it, after all that wait before it; its version is a graph then."""
        chain, at = [self], self.before
        while isinstance(at, _Pending):
            if not at.is_settled:
                chain.append(at)
            at = at.before
        graph, waiting = at, list[_Pending]()
        for pending in reversed(chain):
            version = pending.graph() if graph.group.size == 1 or pending is self else None
            if version is None:
                waiting.append(pending)
                continue
            if waiting:
                graph = graph._applied(*_merged(waiting, graph.ids, directed=graph.directed))
                waiting = []
            found = graph._applied(_given(pending.inserts), _given(pending.deletes))
            changed = {name: value for name, value in found.__dict__.items() if name not in _KEPT}
            version.__dict__.update(changed)  # behind properties, until it is a graph
            version.__class__ = Graph  # type: ignore[assignment]
            del version.__dict__["_pending"]
            graph = cast("Graph", version)
            pending.before = graph  # of batches that wait behind it
            pending.is_settled = True
            pending.inserts = pending.deletes = _NONE
            pending.queue.applied = max(pending.queue.applied, pending._through)


_KEPT = "_family", "version"
_NONE = Changes(np.empty(0, np.int64), np.empty(0, np.int64), {})


def _given(changes: Changes) -> tuple[Any, ...]:
    return changes.sources, changes.targets, changes.columns


def _merged(
    batches: Sequence[_Pending], ids: Ids, *, directed: bool
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return inserts and deletes that do at once what batches do one after the other."""
    inserts, deletes = [b.inserts for b in batches], [b.deletes for b in batches]
    of_inserts, of_deletes = (
        np.repeat(np.arange(len(batches)), [part.size for part in parts]) for parts in (inserts, deletes)
    )
    new, old = _joined(inserts), _joined(deletes)
    keys, gone = _keys(new, ids, directed=directed), _keys(old, ids, directed=directed)
    order = np.argsort(gone, kind="stable")  # of equal ones the latest is the last
    at = np.searchsorted(gone[order], keys, side="right") - 1
    if order.size:
        latest = order[np.maximum(at, 0)]
        is_gone = (at >= 0) & (gone[latest] == keys) & (of_deletes[latest] > of_inserts)
        new = new.at(~is_gone)
    return _given(new), _given(old)


def _joined(parts: Sequence[Changes]) -> Changes:
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    sources = np.concatenate([part.sources for part in parts])
    return Changes(sources, np.concatenate([part.targets for part in parts]), columns)


def _keys(edges: Changes, ids: Ids, *, directed: bool) -> NDArray[np.uint64]:
    """Return a number for each pair of ends; one above all for ends that are no vertices."""
    sources, targets = ids.to_gids(edges.sources), ids.to_gids(edges.targets)
    if not directed:
        sources, targets = np.minimum(sources, targets), np.maximum(sources, targets)
    n = np.uint64(ids.num_vertices)
    keys = sources.astype(np.uint64) * n + targets.astype(np.uint64)
    return np.where((sources < 0) | (targets < 0), np.uint64(2**64 - 1), keys)
