"""A time window over a stream of edges: those that are too old are deleted with the batch that brings later times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.graph.versions.batch import Changes, as_changes
from sigps.job.updates import Updates

__all__ = ["Window", "WindowState"]


@dataclass(frozen=True, eq=False)
class WindowState:
    """The edges in a window, in the order of their arrival, and the time of each."""

    edges: Changes
    times: NDArray[Any]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name."""
        edges = self.edges
        columns = {f"column {name}": column for name, column in edges.columns.items()}
        return {"sources": edges.sources, "targets": edges.targets, "times": self.times, **columns}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> WindowState:
        """Return the state of which these are the arrays."""
        columns = {name[7:]: arrays[name] for name in arrays if name.startswith("column ")}
        return cls(Changes(arrays["sources"], arrays["targets"], columns), arrays["times"])


class Window:
    """The edges of a stream that are not too old yet, in the order of their arrival.

    Edges of the first graph have no time, and stay. What a delete takes is gone here too. A batch costs O(edges in the
    window).

    Args:
        length: How long an edge stays, in the unit of its time.

    Attributes:
        state: What is in it: to be replaced by what `widened` returned when that batch was applied.
    """

    def __init__(self, length: float) -> None:
        self._length = length
        self.state = WindowState(Changes(), np.empty(0))

    def widened(self, batch: Updates, graph: Graph) -> tuple[Updates, WindowState]:
        """Return a batch with deletes of what is too old, and the window's state after it.

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
        kept, kept_times = self.state.edges, self.state.times
        if old.size and kept.size:
            left = ~_among(kept, old, directed=graph.directed)
            kept, kept_times = kept.at(left), kept_times[left]
        seen = np.concatenate([kept_times, times])
        is_late = kept_times <= seen.max() - self._length if seen.size else np.zeros(0, dtype=np.bool_)
        expired, staying = kept.at(is_late), kept.at(~is_late)
        again = staying.at(_among(staying, expired, directed=graph.directed)) if expired.size else Changes()
        window = WindowState(_joined(staying, new), np.concatenate([kept_times[~is_late], times]))
        deletes = _given(_joined(old, expired, columns=False))
        widened = Updates(_given(_joined(again, new)), deletes, vertices=batch.vertices)
        return widened, window


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


def _among(edges: Changes, others: Changes, *, directed: bool) -> NDArray[np.bool_]:
    """Return which edges have the ends of one of the others; undirected, in either order."""
    if not edges.size or not others.size:
        return np.zeros(edges.size, dtype=np.bool_)
    size = edges.size
    ends = np.concatenate([edges.sources, others.sources, edges.targets, others.targets])
    codes = np.unique(ends, return_inverse=True)[1].reshape(2, -1)
    if not directed:
        codes = np.sort(codes, axis=0)
    keys = codes[0] * np.int64(ends.size) + codes[1]
    return np.isin(keys[:size], keys[size:])
