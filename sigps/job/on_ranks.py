"""A program on several ranks of CPU cores whose result goes on from version to version of its graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.partition.subgraph import Subgraph
from sigps.graph.graph import Graph
from sigps.graph.whole import of_all_ranks
from sigps.job.changed_ids import changed_ids
from sigps.job.collect import collect
from sigps.job.guard import Affected, Guard
from sigps.job.preparing import Prepared
from sigps.job.result import Result
from sigps.job.updates import Updates

if TYPE_CHECKING:
    from sigps.compiler.proofs.incremental import Incremental
    from sigps.device.cpu import Threads
    from sigps.engine.cpu.spending import Spending

__all__ = ["OnRanks"]


class OnRanks(ABC):
    """What `LiveRun` is on one rank. All verbs are collective; the same decisions are made on all ranks.

    Args:
        made: The program, its graph and options.
        threads: This rank's.
        found: The way in which it can go on.
        options: Those of full runs.

    Attributes:
        why: Why it can go on.
    """

    def __init__(
        self, made: Prepared, threads: Threads, found: Incremental, options: Mapping[str, Any]
    ) -> None:
        self._made, self._threads, self._found, self.why = made, threads, found, found.why
        self._gathers = bool(options.get("gather", True))
        self._graph, self._full_messages = made.graph, 0
        self._spending: Spending | None = None
        self._result: Result | None = None
        self._before: Result | None = None

    @property
    @abstractmethod
    def obstacle(self) -> str:
        """Why it cannot go on any more; empty where it can."""

    @abstractmethod
    def full(self) -> Result | None:
        """Run anew on the edges that were taken last; None where there is an obstacle."""

    @abstractmethod
    def follow(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a newer version; return why it gets a full run, empty where it does not."""

    def laid_by(self, before: Graph, batch: Updates, guard: Guard) -> Graph | None:
        """Return as `LiveRun.laid_by`: None, so that batches are applied here first."""
        return None

    def follow_ends(self, newer: Graph, guard: Guard) -> str:
        """Take the edges of a version that `laid_by` returned; return as `follow` does."""
        raise AssertionError("batches are applied here first")

    @abstractmethod
    def go_on(self, guard: Guard) -> Result | None:
        """Return the result after the changes that `follow` took; None where a full run is to follow, or cannot."""

    def grows(self, newer: Graph) -> bool:
        """Tell whether vertices keep their numbers, and new ones begin with plain states."""
        options = self._made.options
        return not (newer.update.is_renumbered or options.initial or options.columns)

    def given_up(self) -> str:
        """Say why the incremental run was given up."""
        assert self._spending is not None
        return (
            f"guard: the incremental run needed more than {self._spending.spent:,} messages; the last full run sent "
            f"{self._full_messages:,}"
        )

    def changed_ids(self) -> NDArray[Any]:
        """Return the ids of vertices, of those that this rank's result has, whose states differ from the one before."""
        assert self._result is not None
        if self._before is None:
            return self._result.ids
        return changed_ids(self._before, self._result, self._graph.group)

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def _affects(self, gids: NDArray[np.int64], state: Callable[[str], NDArray[Any]], edges: int) -> Affected:
        """Return what a batch may change, of all ranks.

        Args:
            gids: This rank's vertices that got or lost an in-edge.
            state: Returns their values of a field.
            edges: In-edges of all ranks' such vertices.
        """
        group = self._graph.group
        names = [f.name for f in self._made.bound.declaration.states]

        def everywhere(values: NDArray[Any]) -> NDArray[Any]:
            return of_all_ranks(values, group)

        return Affected(
            ids=self._graph.ids.to_oids(everywhere(gids)),
            fields={name: everywhere(state(name)) for name in names},
            edges=edges,
            num_vertices=self._graph.num_vertices,
            num_edges=self._graph.num_edges,
            last_messages=self._full_messages,
        )

    def _collects(self, subgraph: Subgraph, engine: Any, stats: Any) -> Result:
        """Return a result of what this rank's engine has."""
        from sigps.system.worker_manager import RankResult

        part = RankResult(subgraph, engine, (), "converged", stats)
        device = self._made.executable.spec.device
        result = collect(part, self._made.program, self._graph, device, gather=self._gathers)
        self._before, self._result = self._result, result
        return result
