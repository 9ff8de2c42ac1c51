"""What a stream and the engines that go on from version to version of a graph have to say to each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigps.engine.aggregates import Aggregates
from sigps.engine.cpu.spending import Spending
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.stats import StatsLog

__all__ = ["Arrays", "EdgeChanges", "Following", "LiveRows"]

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class LiveRows:
    """Edges as a version of the graph has them.

    Attributes:
        outward: By source.
        inward: By target.
        touched: The sources whose rows differ from those of the version before.
        changes: The edges that were inserted and deleted since then, where the engine keeps rows of its own.
    """

    outward: EdgeList
    inward: EdgeList
    touched: NDArray[np.int64]
    changes: tuple[EdgeChanges, EdgeChanges] | None = None


@dataclass(frozen=True, eq=False)
class EdgeChanges:
    """Edges that a batch inserts, or deletes, by local ids.

    Attributes:
        sources: [edges], int64; uint32 where a GPU takes all of them.
        targets: [edges], likewise.
        columns: [edges] each, by name.
    """

    sources: NDArray[Any]
    targets: NDArray[Any]
    columns: dict[str, NDArray[Any]]


class Following(Protocol):
    """What a stream asks of an engine that goes on from version to version of a graph."""

    aggregates: Aggregates
    grows: bool
    """Whether it takes new vertices; if not, another one is made for them."""
    refused: str
    """Why the last incremental run was not begun; empty where it was given up for what it cost."""
    gives_up: bool
    """Whether a run that costs too much is given up; if not, it never costs more than a full one."""

    @property
    def full_cost(self) -> int:
        """What a full run costs besides its messages, in messages."""
        ...

    @property
    def obstacle(self) -> str:
        """Why it cannot go on, or that it could not; empty where it can."""
        ...

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Let a state field begin with these values, [num_owned]; before `run`."""
        ...

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of a state field, [num_owned]; the engine's own array."""
        ...

    def run(self) -> StatsLog:
        """Run from superstep 0 to the end."""
        ...

    def take(self, states: Arrays) -> bool:
        """Take the states of another engine's full run; False where `run` is to be called."""
        ...

    def follow(self, rows: LiveRows) -> None:
        """Take the edges of a newer version."""
        ...

    def grow(self, num_owned: int, ids: NDArray[np.int64]) -> None:
        """Take new vertices behind all others; before `follow`."""
        ...

    def note(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take note of the edges that a batch names, by local ids (-1: none), before it is applied."""
        ...

    def widen(self, inserts: EdgeChanges) -> None:
        """Take note of new edges, after `follow`; a full run may come next."""
        ...

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Return what it took to follow the changes; None where it was given up."""
        ...

    def changed(self) -> NDArray[np.int64] | Callable[[], NDArray[np.int64]]:
        """Return the local ids of vertices whose states differ from those of the last result, once.

        Or what brings them when they are asked for, also after the engine has gone on.
        """
        ...
