"""A time window over a stream of edges: those that are too old are deleted with the batch that brings later times.

Edges are kept in the order of their arrival. Runs of them, sorted by a hash of their ends, find those that a delete
takes and those that are parallel to what expires; a run is merged with the one before it when it is half as long (P.
O'Neil et al., "The log-structured merge-tree (LSM-tree)", Acta Informatica 33, 1996). What expires is found by time in
the batches in which it came, of which a heap has the earliest times. So a batch costs what it inserts, deletes and lets
expire, times the logarithm of what is in the window.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.graph.user_arrays import as_ids
from sigps.graph.versions.batch import Changes, as_changes
from sigps.graph.versions.row_changes import distinct
from sigps.job.updates import Updates

__all__ = ["Step", "Window", "WindowState"]

_LEAST_GONE = 1 << 12
"""Edges that are gone are left where they are until they are so many, and more than those that stay."""


@dataclass(frozen=True, eq=False)
class WindowState:
    """The edges in a window, in the order of their arrival, the time of each, and the latest time that came."""

    edges: Changes
    times: NDArray[Any]
    latest: float | int | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name."""
        edges = self.edges
        columns = {f"column {name}": column for name, column in edges.columns.items()}
        latest = {} if self.latest is None else {"latest": np.array(self.latest)}
        return {"sources": edges.sources, "targets": edges.targets, "times": self.times, **latest, **columns}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> WindowState:
        """Return the state of which these are the arrays."""
        columns = {name[7:]: arrays[name] for name in arrays if name.startswith("column ")}
        times = arrays["times"]
        latest = (
            arrays["latest"].item() if "latest" in arrays else (times.max().item() if times.size else None)
        )
        return cls(Changes(arrays["sources"], arrays["targets"], columns), times, latest)


@dataclass(frozen=True, eq=False)
class Step:
    """What a batch does to a window.

    Attributes:
        gone: Places of the edges that leave it.
        new: The edges that come.
        times: The time of each.
        latest: The latest time that came.
    """

    gone: NDArray[np.int64]
    new: Changes
    times: NDArray[Any]
    latest: float | int | None


class Window:
    """The edges of a stream that are not too old yet.

    Edges of the first graph have no time, and stay. What a delete takes is gone here too.

    Args:
        length: How long an edge stays, in the unit of its time.
    """

    def __init__(self, length: float) -> None:
        self._length = length
        self.state = WindowState(Changes(), np.empty(0))

    @property
    def state(self) -> WindowState:
        """What is in it. O(edges in the window)."""
        stays = np.flatnonzero(self._stays.values)
        return WindowState(self._edges(stays), self._times.values[stays], self._latest)

    @state.setter
    def state(self, state: WindowState) -> None:
        self._sources, self._targets, self._times, self._stays = (_Growing() for _ in range(4))
        self._columns = {name: _Growing() for name in state.edges.columns}
        self._num_gone, self._latest = 0, state.latest
        self._runs: list[tuple[NDArray[np.uint64], NDArray[np.int64]]] = []
        self._batches: list[tuple[Any, int, NDArray[np.int64]]] = []
        self._append(state.edges, state.times)

    def widened(self, batch: Updates, graph: Graph) -> tuple[Updates, Step]:
        """Return a batch with deletes of what is too old, and what `take` is to take when it was applied.

        Of parallel edges those go that are too old, and with them older ones of the first graph.

        Raises:
            ConfigError: If the batch has no times for its inserts.
        """
        types: Mapping[str, np.dtype[Any]] = graph.column_types()
        new, old = as_changes(batch.inserts, "inserts", types), as_changes(batch.deletes, "deletes", types)
        times = np.empty(0) if batch.times is None else np.asarray(batch.times)
        if times.shape != new.sources.shape:
            raise ConfigError(
                f"every insert needs a time in a stream with a window: there are {times.size:,} for {new.size:,}"
            )
        if old.columns:
            raise ConfigError(
                "deletes of a stream with a window name no columns: they take all parallel edges"
            )
        latest = self._latest
        if times.size:
            newest = times.max().item()
            latest = newest if latest is None else max(latest, newest)
        deleted = self._parallel(old, directed=graph.directed)
        if batch.delete_vertices is not None:
            gone = as_ids(batch.delete_vertices, "delete_vertices").ravel()
            deleted = distinct(np.concatenate([deleted, self._ending_at(gone)]))
        late = _without(self._late(latest), deleted)
        expired = self._edges(late)
        again = _without(self._parallel(expired, directed=graph.directed), np.concatenate([deleted, late]))
        deletes = _given(_joined(old, expired, columns=False))
        others = {"vertices": batch.vertices, "delete_vertices": batch.delete_vertices}
        widened = Updates(_given(_joined(self._edges(again), new)), deletes, **others)
        return widened, Step(np.concatenate([deleted, late]), new, times, latest)

    def take(self, step: Step) -> None:
        """Let the edges go and come that a batch let go and come."""
        self._stays.values[step.gone] = False
        self._num_gone += step.gone.size
        self._latest = step.latest
        self._append(step.new, step.times)
        if self._num_gone > max(_LEAST_GONE, self._stays.size // 2):
            self.state = self.state

    def _append(self, edges: Changes, times: NDArray[Any]) -> None:
        if not edges.size:
            return
        at = np.arange(self._stays.size, self._stays.size + edges.size)
        if not self._columns:
            self._columns = {name: _Growing() for name in edges.columns}
        for growing, values in (
            (self._sources, edges.sources),
            (self._targets, edges.targets),
            (self._times, times),
            (self._stays, np.ones(edges.size, dtype=np.bool_)),
            *((self._columns[name], column) for name, column in edges.columns.items()),
        ):
            growing.append(values)
        by_time = at[np.argsort(times, kind="stable")]
        heapq.heappush(self._batches, (self._times.values[by_time[0]].item(), int(at[0]), by_time))
        keys = _hashes(edges)
        order = np.argsort(keys)
        self._runs.append((keys[order], at[order]))
        while len(self._runs) > 1 and 2 * self._runs[-1][0].size >= self._runs[-2][0].size:
            last, before = self._runs.pop(), self._runs.pop()
            keys, places = (np.concatenate(pair) for pair in zip(before, last, strict=True))
            stays = self._stays.values[places]
            keys, places = keys[stays], places[stays]
            order = np.argsort(keys, kind="stable")
            self._runs.append((keys[order], places[order]))

    def _late(self, latest: float | int | None) -> NDArray[np.int64]:
        """Return the places of edges that are too old then, ascending."""
        found: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        seen = []
        limit = None if latest is None else latest - self._length
        while limit is not None and self._batches and self._batches[0][0] <= limit:
            _, first, by_time = heapq.heappop(self._batches)
            by_time = by_time[self._stays.values[by_time]]
            times = self._times.values[by_time]
            found.append(by_time[: np.searchsorted(times, limit, side="right")])
            if by_time.size:
                seen.append((times[0].item(), first, by_time))
        for entry in seen:  # they go when the batch was applied
            heapq.heappush(self._batches, entry)
        return np.sort(np.concatenate(found))

    def _parallel(self, edges: Changes, *, directed: bool) -> NDArray[np.int64]:
        """Return the places of edges that have the ends of one of these, ascending; undirected, in either order."""
        found: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        keys = _hashes(edges)
        for known, places in self._runs if edges.size else ():
            begins = np.searchsorted(known, keys, side="left")
            counts = np.searchsorted(known, keys, side="right") - begins
            of = np.repeat(np.arange(keys.size), counts)
            at = places[np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(of.size)]
            sources, targets = self._sources.values[at], self._targets.values[at]
            is_same = (sources == edges.sources[of]) & (targets == edges.targets[of])
            if not directed:
                is_same |= (sources == edges.targets[of]) & (targets == edges.sources[of])
            found.append(at[is_same & self._stays.values[at]])
        return distinct(np.concatenate(found))

    def _ending_at(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Return the places of edges from or to some vertices. O(edges in the window)."""
        if not self._stays.size or not ids.size:
            return np.empty(0, dtype=np.int64)
        ends = np.isin(self._sources.values, ids) | np.isin(self._targets.values, ids)
        return np.flatnonzero(ends & self._stays.values)

    def _edges(self, places: NDArray[np.int64]) -> Changes:
        if not self._stays.size:
            return Changes()
        columns = {name: growing.values[places] for name, growing in self._columns.items()}
        return Changes(self._sources.values[places], self._targets.values[places], columns)


class _Growing:
    """An array to which values are appended, in O(1) each on the average."""

    def __init__(self) -> None:
        self._array: NDArray[Any] = np.empty(0)
        self.size = 0

    @property
    def values(self) -> NDArray[Any]:
        """What was appended; to be written in place."""
        return self._array[: self.size] if self.size else np.empty(0, dtype=np.bool_)

    def append(self, values: NDArray[Any]) -> None:
        """Append some; strings may be longer than those before."""
        size = self.size + values.size
        kind = np.result_type(self._array, values) if self.size else values.dtype
        if size > self._array.size or kind != self._array.dtype:
            room = np.empty(size + size // 2, dtype=kind)
            room[: self.size] = self._array[: self.size]
            self._array = room
        self._array[self.size : size] = values
        self.size = size


def _hashes(edges: Changes) -> NDArray[np.uint64]:
    """Return numbers that are equal where edges have the same ends, in either order."""
    one, other = _mixed(_numbers(edges.sources)), _mixed(_numbers(edges.targets))
    return _mixed(np.minimum(one, other) * np.uint64(3) + np.maximum(one, other))


def _numbers(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a number for each id: that of a string does not depend on how long others are."""
    if ids.dtype.kind != "U":
        return ids.astype(np.int64).view(np.uint64)
    letters = np.ascontiguousarray(ids).view(np.uint32).reshape(ids.size, ids.dtype.itemsize // 4)
    found, factor = np.zeros(ids.size, dtype=np.uint64), 1
    for column in letters.T:
        factor = factor * 0x9E3779B97F4A7C15 % 2**64
        found += column.astype(np.uint64) * np.uint64(factor)
    return found


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix bits (splitmix64's last steps)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _without(places: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    return places[~np.isin(places, others)] if places.size and others.size else places


def _given(changes: Changes) -> Any:
    return changes.sources, changes.targets, changes.columns


def _joined(one: Changes, other: Changes, *, columns: bool = True) -> Changes:
    if not one.size or not other.size:
        found = other if not one.size else one
        return found if columns else Changes(found.sources, found.targets)
    named = other.columns if columns else {}
    return Changes(
        np.concatenate([one.sources, other.sources]),
        np.concatenate([one.targets, other.targets]),
        {name: np.concatenate([one.columns[name], named[name]]) for name in named},
    )
