"""Measures of a graph's neighbourhoods that follow its versions: counted along the pairs that a batch changes.

Before a batch is applied it is noted which of its pairs have edges, since afterwards only the new rows are there
(`note`). Then each pair whose edges are others is looked at once, with the row of its end of lower degree, and that of
the other end marked once for all its pairs (`graph/measures/changed_links.py`). The measures are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.graph.graph import Graph
from sigps.graph.measures.changed_links import arcs_between, follow_pairs
from sigps.graph.measures.neighbourhood import count_with_cost
from sigps.graph.versions.row_changes import distinct

__all__ = ["LiveMeasures"]

Rows = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[Any]]

_WORTH_THREADS = 1 << 20
"""Elements of rows for which threads pay, each with measures of its own."""


class LiveMeasures:
    """The measures of all vertices of a graph, by local id.

    Args:
        graph: The graph, as the program takes it.
        threads: Threads that count.

    Attributes:
        graph: The newest version.
        is_current: Whether the measures are those of the newest version.
        full_cost: How many marks were read when they were counted last.
    """

    def __init__(self, graph: Graph, threads: Threads) -> None:
        self.graph, self._threads, self._directed = graph, threads, graph.directed
        self._values: dict[str, NDArray[np.int64]] = {}
        self._noted = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint8)
        self.is_current = False
        self.full_cost = 0

    def values(self) -> dict[str, NDArray[np.int64]]:
        """Return the measures by name, [num_vertices]; counted anew where they were not followed."""
        if not self.is_current:
            rows = self.graph.offsets, self.graph.targets
            neighbors, links, self.full_cost = count_with_cost(self._threads, *rows, directed=self._directed)
            self._values = {"num_neighbors": neighbors, "neighbor_links": links}
            self.is_current = True
        return self._values

    def note(
        self, sources: NDArray[np.int64], targets: NDArray[np.int64], outward: Rows, num_rows: int
    ) -> None:
        """Note how many arcs there are between vertices that a batch names, by local ids, before it is applied."""
        keys = _keys_of(sources, targets)
        self._noted = keys, self._arcs(keys, outward, num_rows)

    def follow(
        self,
        inserts: EdgeChanges,
        deletes: EdgeChanges,
        outward: Rows,
        inward: Rows,
        num_vertices: int,
        spending: Spending,
    ) -> NDArray[np.uint32] | None:
        """Follow a batch; return the vertices whose measures may differ, or None where that costs too much.

        Args:
            inserts: What is inserted.
            deletes: What is deleted.
            outward: The rows after the batch, by source.
            inward: By target.
            num_vertices: How many there are then.
            spending: What may be spent.
        """
        for name, values in self._values.items():
            more = num_vertices - values.size
            self._values[name] = np.concatenate([values, np.zeros(more, np.int64)]) if more else values
        ends = (np.concatenate([getattr(c, n) for c in (inserts, deletes)]) for n in ("sources", "targets"))
        keys = _keys_of(*ends)
        after = self._arcs(keys, outward, num_vertices)
        known, arcs = self._noted
        at = np.searchsorted(known, keys)
        is_known = at < known.size
        is_known[is_known] = known[at[is_known]] == keys[is_known]
        before = np.zeros(keys.size, dtype=np.uint8)
        before[is_known] = arcs[at[is_known]]
        changed = before != after
        keys, before, after = keys[changed], before[changed], after[changed]
        ends_a, ends_b = (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)
        degrees = [
            (o[1][e] - o[0][e]).astype(np.int64)
            for o in self._sides(outward, inward)
            for e in (ends_a, ends_b)
        ]
        of_a, of_b = sum(degrees[::2]), sum(degrees[1::2])
        is_less = of_a < of_b
        ends_a, ends_b = np.where(is_less, ends_b, ends_a), np.where(is_less, ends_a, ends_b)
        order = np.argsort(ends_a, kind="stable")
        ends_a, ends_b, before, after = ends_a[order], ends_b[order], before[order], after[order]
        least, most = np.minimum(of_a, of_b)[order], np.maximum(of_a, of_b)[order]
        is_first = np.ones(ends_a.size, dtype=np.bool_)
        is_first[1:] = ends_a[1:] != ends_a[:-1]
        work = 3 * least + 2 * most * is_first + 1
        if not spending.take(edges=int(work.sum())):
            return None
        seen = self._run((ends_a, ends_b, before, after), work, outward, inward, num_vertices)
        self.is_current = True
        return seen

    def _run(
        self, pairs: tuple[Any, ...], work: NDArray[np.int64], outward: Rows, inward: Rows, num_vertices: int
    ) -> NDArray[np.uint32]:
        entries = _entries_of(*pairs[:2])
        ends, total = np.cumsum(work), int(work.sum())
        parts = self._threads.count if total > _WORTH_THREADS else 1
        cuts = [0, *np.searchsorted(ends, np.linspace(0, total, parts + 1)[1:-1]).tolist(), work.size]
        neighbors, links = self._values["num_neighbors"], self._values["neighbor_links"]

        def follow(part: int) -> tuple[NDArray[Any], ...]:
            n = num_vertices
            own = (neighbors, links) if parts == 1 else (np.zeros(n, np.int64), np.zeros(n, np.int64))
            marks, others, seen = (np.zeros(n, dtype=np.uint8) for _ in range(3))
            listed = np.empty(n + 1, dtype=np.uint32)
            span, rows, scratch = (cuts[part], cuts[part + 1]), (outward, inward), (marks, others, listed)
            follow_pairs(*span, pairs, entries, *rows, self._directed, *scratch, *own, seen)
            return *own, seen

        found = self._threads.map(follow, range(parts))
        if parts > 1:
            for more, others, _ in found:
                neighbors += more
                links += others
        return np.flatnonzero(np.any([seen for _, _, seen in found], axis=0)).astype(np.uint32)

    def _sides(self, outward: Rows, inward: Rows) -> tuple[Rows, ...]:
        return (outward, inward) if self._directed else (outward,)

    def _arcs(self, keys: NDArray[np.uint64], outward: Rows, num_rows: int) -> NDArray[np.uint8]:
        """Return how many arcs each pair has: 0, 1 or 2; of an undirected graph 0 or 2."""
        ends = (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)
        there, back = (np.empty(keys.size, dtype=np.uint8) for _ in range(2))
        arcs_between(*ends, *outward, num_rows, there)
        if not self._directed:
            return there * np.uint8(2)
        arcs_between(*ends[::-1], *outward, num_rows, back)
        return there + back


def _keys_of(sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return distinct pairs of two vertices, ascending: the smaller one in the upper half of the bits."""
    low, high = np.minimum(sources, targets), np.maximum(sources, targets)
    is_pair = (low != high) & (low >= 0)
    low, high = low[is_pair].astype(np.uint64), high[is_pair].astype(np.uint64)
    found: NDArray[np.uint64] = distinct((low << np.uint64(32)) | high)
    return found


def _entries_of(ends_a: NDArray[np.uint32], ends_b: NDArray[np.uint32]) -> tuple[NDArray[Any], ...]:
    """Return the pairs of each vertex side by side, and where those of both ends of each pair lie."""
    of, others = np.concatenate([ends_a, ends_b]), np.concatenate([ends_b, ends_a])
    order = np.argsort(of, kind="stable")
    numbers = np.concatenate([np.arange(ends_a.size)] * 2)[order]
    is_first = np.ones(order.size + 1, dtype=np.bool_)
    np.not_equal(of[order[1:]], of[order[:-1]], out=is_first[1:-1])
    bounds = np.flatnonzero(is_first)
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(is_first[:-1]) - 1
    in_a, in_b = group[: ends_a.size], group[ends_a.size :]
    return others[order], numbers, bounds[in_a], bounds[in_a + 1], bounds[in_b], bounds[in_b + 1]
