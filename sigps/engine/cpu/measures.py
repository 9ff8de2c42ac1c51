"""Measures of a graph's neighbourhoods that follow its versions: counted along the pairs that a batch changes.

Before a batch is applied it is noted which of its pairs have edges, since afterwards only the new rows are there
(`note`). Then each pair whose edges are others is looked at once, with the row of its end of lower degree, and that of
the other end marked once for all its pairs (`graph/measures/changed_links.py`). The measures are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.spending import Spending
from sigps.graph.graph import Graph
from sigps.graph.measures.changed_links import arcs_between, follow_pairs
from sigps.graph.measures.neighbourhood import count_with_cost
from sigps.graph.versions.row_changes import distinct

__all__ = [
    "ChangedPairs",
    "LiveMeasures",
    "Measures",
    "Rows",
    "count_changes",
    "ends_of",
    "entries_of",
    "keys_of",
    "spans_of",
]

Rows = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[Any]]

_WORTH_THREADS = 1 << 20
"""Elements of rows for which threads pay, each with measures of its own."""
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class Measures(Protocol):
    """Measures of vertices that follow a graph."""

    full_cost: int
    """How many marks were read when they were counted last."""

    def values(self) -> dict[str, NDArray[np.int64]]:
        """Return the measures by name, [vertices]."""
        ...


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
        keys = keys_of(sources, targets)
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
        keys = keys_of(*ends)
        after = self._arcs(keys, outward, num_vertices)
        known, arcs = self._noted
        at = np.searchsorted(known, keys)
        is_known = at < known.size
        is_known[is_known] = known[at[is_known]] == keys[is_known]
        before = np.zeros(keys.size, dtype=np.uint8)
        before[is_known] = arcs[at[is_known]]
        changed = before != after
        keys, before, after = keys[changed], before[changed], after[changed]
        sides = self._sides(outward, inward)
        of_ends = (sum((o[1][e] - o[0][e]).astype(np.int64) for o in sides) for e in ends_of(keys))
        pairs = ChangedPairs.of(keys, before, after, *of_ends)
        if not spending.take(edges=int(pairs.work.sum())):
            return None
        entries = entries_of(pairs.a, pairs.b, num_vertices)
        spans = [spans_of(side, pairs.a, pairs.b) for side in sides]
        measures = self._values["num_neighbors"], self._values["neighbor_links"]
        seen = count_changes(
            self._threads, pairs, entries, spans, measures, num_vertices, directed=self._directed
        )
        self.is_current = True
        return np.flatnonzero(seen).astype(np.uint32)

    def _sides(self, outward: Rows, inward: Rows) -> tuple[Rows, ...]:
        return (outward, inward) if self._directed else (outward,)

    def _arcs(self, keys: NDArray[np.uint64], outward: Rows, num_rows: int) -> NDArray[np.uint8]:
        """Return how many arcs each pair has: 0, 1 or 2; of an undirected graph 0 or 2."""
        ends = ends_of(keys)
        there, back = (np.empty(keys.size, dtype=np.uint8) for _ in range(2))
        arcs_between(*ends, *outward, num_rows, there)
        if not self._directed:
            return there * np.uint8(2)
        arcs_between(*ends[::-1], *outward, num_rows, back)
        return there + back


@dataclass(frozen=True, eq=False)
class ChangedPairs:
    """Pairs of vertices between which a batch changed arcs, in the order in which they are looked at; [pairs] each.

    Attributes:
        a: The end whose row is marked: that of higher degree. Equal ones stand together.
        b: The other end.
        before: How many arcs there were, uint8.
        after: How many there are.
        work: What looking at each takes, in edges that are read.
    """

    a: NDArray[np.uint32]
    b: NDArray[np.uint32]
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    work: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        keys: NDArray[np.uint64],
        before: NDArray[np.uint8],
        after: NDArray[np.uint8],
        of_low: Any,
        of_high: Any,
    ) -> ChangedPairs:
        """Return pairs (`keys_of`) in order, by the degrees of their ends."""
        low, high = ends_of(keys)
        is_less = of_low < of_high
        a, b = np.where(is_less, high, low), np.where(is_less, low, high)
        order = np.argsort(a, kind="stable")
        a, b = a[order], b[order]
        least, most = np.minimum(of_low, of_high)[order], np.maximum(of_low, of_high)[order]
        is_first = np.ones(a.size, dtype=np.bool_)
        is_first[1:] = a[1:] != a[:-1]
        return cls(a, b, before[order], after[order], 3 * least + 2 * most * is_first + 1)


def count_changes(
    threads: Threads,
    pairs: ChangedPairs,
    entries: tuple[NDArray[Any], ...],
    spans: Sequence[tuple[NDArray[Any], ...]],
    values: tuple[NDArray[np.int64], NDArray[np.int64]],
    num_counted: int,
    *,
    directed: bool,
) -> NDArray[np.uint8]:
    """Add to the measures what pairs change; return 1 where they may, [vertices].

    Args:
        threads: Threads that count.
        pairs: The pairs, whose ends are numbers of vertices.
        entries: `entries_of` them.
        spans: `spans_of` them in rows by source, and of directed graphs in those by target.
        values: [vertices]: neighbours, and links.
        num_counted: How many vertices, the first ones, count as common neighbours.
        directed: Whether an arc may lack its reverse.
    """
    ends, total = np.cumsum(pairs.work), int(pairs.work.sum())
    parts = threads.count if total > _WORTH_THREADS else 1
    cuts = [0, *np.searchsorted(ends, np.linspace(0, total, parts + 1)[1:-1]).tolist(), ends.size]
    given, n = (pairs.a, pairs.b, pairs.before, pairs.after), values[0].size

    def follow(part: int) -> tuple[NDArray[Any], ...]:
        own = values if parts == 1 else (np.zeros(n, np.int64), np.zeros(n, np.int64))
        marks, others = (np.zeros(num_counted, dtype=np.uint8) for _ in range(2))
        listed, seen = np.empty(num_counted + 1, dtype=np.uint32), np.zeros(n, dtype=np.uint8)
        span, scratch = (cuts[part], cuts[part + 1]), (marks, others, listed)
        rows = spans[0], spans[-1]
        follow_pairs(*span, given, entries, *rows, num_counted, directed, *scratch, *own, seen)
        return *own, seen

    found = threads.map(follow, range(parts))
    if parts > 1:
        for more in found:
            for value, its in zip(values, more, strict=False):
                value += its
    seen: NDArray[np.uint8] = np.max([seen for _, _, seen in found], axis=0)
    return seen


def keys_of(sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return distinct pairs of two vertices, ascending: the smaller one in the upper half of the bits."""
    low, high = np.minimum(sources, targets), np.maximum(sources, targets)
    is_pair = (low != high) & (low >= 0)
    low, high = low[is_pair].astype(np.uint64), high[is_pair].astype(np.uint64)
    found: NDArray[np.uint64] = distinct((low << np.uint64(32)) | high)
    return found


def ends_of(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the smaller and the greater vertex of pairs."""
    return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)


def spans_of(rows: Rows, a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return where the rows of the ends of pairs begin and stop, and what they have."""
    begins, stops, ends = rows
    return begins[a], stops[a], begins[b], stops[b], ends


def entries_of(
    ends_a: NDArray[np.uint32], ends_b: NDArray[np.uint32], num_counted: int
) -> tuple[NDArray[Any], ...]:
    """Return the pairs of each vertex side by side, and where those of both ends of each pair lie.

    Args:
        ends_a: [pairs].
        ends_b: [pairs].
        num_counted: Pairs with a greater other end are left out of a vertex's.
    """
    of, others = np.concatenate([ends_a, ends_b]), np.concatenate([ends_b, ends_a])
    order = np.argsort(of, kind="stable")
    order = order[others[order] < num_counted]
    numbers, of = order % max(ends_a.size, 1), of[order]
    spans = (np.searchsorted(of, ends, side=side) for ends in (ends_a, ends_b) for side in SIDES)
    return others[order], numbers, *spans
