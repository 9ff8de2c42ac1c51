"""Measures of a graph's neighbourhoods that follow its versions on several ranks of CPU cores.

Each rank knows which of its own vertices are neighbours of any vertex of the graph, so it finds the common neighbours
of a changed pair that are its own without asking (`graph/measures/changed_links.py`). What they add to the measures of
the pair's ends crosses once a batch, in one sum; so do, before that, the arcs that a batch's pairs had and have. Pairs
are looked at in the same order by all.

Rows here have each neighbour once, and no loops: after a batch the graph's own rows tell which arcs there are, whatever
becomes of parallel ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads
from sigps.engine.cpu.measures import (
    ChangedPairs,
    Rows,
    count_changes,
    ends_of,
    entries_of,
    keys_of,
    spans_of,
)
from sigps.engine.cpu.spending import Spending
from sigps.engine.partition.subgraph import routed_ends
from sigps.graph.graph import Graph
from sigps.graph.measures.changed_links import arcs_between
from sigps.graph.measures.neighbourhood import count_with_cost, measured
from sigps.graph.partitioning.assignment import Contiguous
from sigps.graph.versions.apply import Rewriting
from sigps.graph.versions.row_changes import RowChanges, distinct
from sigps.graph.versions.rows import VersionRows
from sigps.kernels.cpu.layout import order_by_row

__all__ = ["RankedMeasures"]


class RankedMeasures:
    """The measures of a rank's vertices, in ascending order of their gids. Verbs are collective.

    Args:
        graph: The graph as it is given; a rank has the vertices whose rows it has.
        threads: Threads that count.
        directed: Whether the program takes arcs in their directions.

    Attributes:
        graph: The newest version.
        first: The gid of the first vertex of this rank.
        full_cost: How many marks all ranks read when the measures were counted last.
    """

    def __init__(self, graph: Graph, threads: Threads, *, directed: bool) -> None:
        self.graph, self.first, self.full_cost = graph, graph.first_row, 0
        self._group, self._threads, self._directed = graph.group, threads, directed and graph.directed
        self._values: dict[str, NDArray[np.int64]] = {}
        self._rows: list[VersionRows] = []  # of `graph`; none where they are to be laid out

    @property
    def num_owned(self) -> int:
        """How many vertices this rank has."""
        return self.graph.num_rows

    def values(self) -> dict[str, NDArray[np.int64]]:
        """Return the measures by name, [num_owned]."""
        return self._values

    def count(self, graph: Graph, turned: Graph) -> None:
        """Count the measures of a version anew.

        Args:
            graph: The version.
            turned: The same as the program takes it.
        """

        def count(*rows: Any, **how: Any) -> Any:
            neighbors, links, self.full_cost = count_with_cost(self._threads, *rows, **how)
            return neighbors, links

        if graph is not self.graph:
            self.graph, self._rows = graph, []
        found, own = measured(turned, count), slice(self.first, self.first + self.num_owned)
        self._values = {
            "num_neighbors": found.num_neighbors[own].copy(),
            "neighbor_links": found.neighbor_links[own].copy(),
        }

    def follow(
        self, graph: Graph, sources: NDArray[np.int64], targets: NDArray[np.int64], spending: Spending
    ) -> NDArray[np.uint32] | None:
        """Bring the measures to a version; return this rank's vertices that may have others.

        None where that costs more than may be spent, which is the same on all ranks; `count` is to be called then.

        Args:
            graph: The version after the one followed last, as it is given.
            sources: [edges]: those that the batch names, by gid, or -1; the same on all ranks.
            targets: [edges].
            spending: What may be spent.
        """
        if _work_of(graph, sources, targets) > spending.left_edges:
            return None
        self._lay_out()
        keys = keys_of(sources, targets)
        low, high = ends_of(keys)
        of_low, of_high = self._group.all_reduce(np.stack([self._degrees(low), self._degrees(high)]), "sum")
        if not spending.take(edges=_work(low, high, of_low, of_high, graph.num_vertices)):
            return None
        known = np.stack([*self._arcs_before(low, high), *_arcs_of(graph, low, high)])
        arcs = self._group.all_reduce(np.packbits(known, axis=0, bitorder="little")[0], "sum")
        there, back, still_there, still_back = (arcs >> np.uint8(i) & np.uint8(1) for i in range(4))
        if not self._directed:
            there = back = there | back
            still_there = still_back = still_there | still_back
        ends = np.concatenate([low, high]), np.concatenate([high, low])
        self.graph = graph
        self._change(*ends, np.concatenate([there, back]), np.concatenate([still_there, still_back]))
        for name, values in self._values.items():
            more = self.num_owned - values.size
            self._values[name] = np.concatenate([values, np.zeros(more, np.int64)]) if more else values
        before, after = there + back, still_there + still_back
        at = np.flatnonzero(before != after)
        pairs = ChangedPairs.of(keys[at], before[at], after[at], of_low[at], of_high[at])
        return self._count_along(pairs) if at.size else np.empty(0, dtype=np.uint32)

    def _count_along(self, pairs: ChangedPairs) -> NDArray[np.uint32]:
        """Add what pairs change to the measures; return this rank's vertices that may have others."""
        m = self.num_owned
        ends = distinct(np.concatenate([pairs.a, pairs.b]))
        own = ends.astype(np.int64) - self.first
        is_own = (own >= 0) & (own < m)
        numbers = np.where(is_own, own, m + np.arange(ends.size)).astype(np.uint32)
        a, b = (numbers[np.searchsorted(ends, side)] for side in (pairs.a, pairs.b))
        spans = [spans_of(rows, pairs.a, pairs.b) for rows in self._shared()]
        neighbors, links = (np.zeros(m + ends.size, np.int64) for _ in range(2))
        seen = count_changes(
            self._threads,
            replace(pairs, a=a, b=b),
            entries_of(a, b, m),
            spans,
            (neighbors, links),
            m,
            directed=self._directed,
        )
        elsewhere = self._group.all_reduce(links[m:], "sum")
        links[own[is_own]] += elsewhere[is_own]
        self._values["num_neighbors"] += neighbors[:m]
        self._values["neighbor_links"] += links[:m]
        return np.flatnonzero(seen[:m]).astype(np.uint32)

    def num_neighbors_of(self, gids: NDArray[np.int64]) -> int:
        """Return how many arcs some vertices have to their neighbours, in the version followed last."""
        self._lay_out()
        sizes = self._degrees(gids.astype(np.uint32))
        return int(self._group.all_reduce(np.array([sizes.sum()]), "sum")[0])

    def _is_own(self, gids: NDArray[Any]) -> NDArray[np.bool_]:
        return (gids >= self.first) & (gids < self.first + self.num_owned)

    def _lay_out(self) -> None:
        """Find for each vertex of the graph its neighbours among this rank's, where they are not known. O(edges)."""
        if self._rows:
            return
        graph = self.graph
        rows = np.repeat(np.arange(graph.num_rows, dtype=np.uint32), np.diff(graph.offsets).view(np.int64))
        out: tuple[NDArray[Any], NDArray[Any]] = (rows, graph.targets)
        if not graph.directed:
            sides = [out]
        else:
            bounds = Contiguous(np.append(graph.row_bounds[:-1], graph.num_vertices))
            own, others = routed_ends(graph, bounds, outward=False)
            into = (own.astype(np.int64) - self.first).astype(np.uint32), others
            both = np.concatenate([rows, into[0]]), np.concatenate([graph.targets, others])
            sides = [into, out] if self._directed else [both]
        self._rows = [self._simple(*side, graph.num_vertices) for side in sides]

    def _simple(self, own: NDArray[np.uint32], others: NDArray[Any], num_vertices: int) -> VersionRows:
        """Return rows by the other end, in which each neighbour is once. O(edges)."""
        is_pair = others != own + np.int64(self.first)
        if not is_pair.all():
            own, others = own[is_pair], others[is_pair]
        if np.any(own[1:] < own[:-1]):
            _, order = order_by_row(own, self.num_owned)
            own, others = own[order], others[order]
        offsets, order = order_by_row(others, num_vertices)
        ends, rows = own[order], others[order]
        is_first = np.ones(ends.size, dtype=np.bool_)
        is_first[1:] = (rows[1:] != rows[:-1]) | (ends[1:] != ends[:-1])
        if not is_first.all():
            ends = ends[is_first]
            np.cumsum(np.bincount(rows[is_first], minlength=num_vertices), out=offsets[1:], dtype=np.uint64)
        return VersionRows.of(offsets, ends, {})

    def _shared(self) -> list[Rows]:
        return [rows.shared()[:3] for rows in self._rows]

    def _degrees(self, gids: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return how many neighbours among this rank's vertices there are; new vertices have none."""
        total = np.zeros(gids.size, dtype=np.int64)
        for rows, (begins, stops, _) in zip(self._rows, self._shared(), strict=True):
            known = np.flatnonzero(gids < rows.num_rows)
            total[known] += (stops[gids[known]] - begins[gids[known]]).astype(np.int64)
        return total

    def _arcs_before(self, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> list[NDArray[np.uint8]]:
        """Return whether there were arcs from the lower ends of pairs, and to them, where these are this rank's."""
        found = [np.zeros(low.size, dtype=np.uint8) for _ in range(2)]
        at = np.flatnonzero(self._is_own(low))
        for rows, shared, arcs in zip(self._rows, self._shared(), found[::-1], strict=False):
            is_there = np.empty(at.size, dtype=np.uint8)
            own = (low[at].astype(np.int64) - self.first).astype(np.uint32)
            arcs_between(high[at], own, *shared, rows.num_rows, is_there)
            arcs[at] = is_there
        return found

    def _change(
        self,
        sources: NDArray[np.uint32],
        targets: NDArray[np.uint32],
        before: NDArray[np.uint8],
        after: NDArray[np.uint8],
    ) -> None:
        """Change the rows where arcs come or go."""
        is_gone, is_new = before > after, before < after
        ends = (sources, targets), (targets, sources)
        for at, (others, own) in enumerate(ends[: len(self._rows)]):
            gone, new = (
                RowChanges(others[where].astype(np.int64), own[where].astype(np.int64) - self.first, {})
                for where in (np.flatnonzero(which & self._is_own(own)) for which in (is_gone, is_new))
            )
            n, most = self.graph.num_vertices, max(self.num_owned, 1)
            self._rows[at] = Rewriting(self._rows[at], gone, new, n, most, "drop").newer()


def _arcs_of(graph: Graph, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> list[NDArray[np.uint8]]:
    """Return whether a version has arcs from the lower ends of pairs, and to them, as far as its rows here tell."""
    version, found = graph._version, []
    assert version is not None
    first = graph.first_row
    for sources, targets in ((low, high), (high, low)):
        at = np.flatnonzero((sources >= first) & (sources < first + graph.num_rows))
        is_there, arcs = np.empty(at.size, dtype=np.uint8), np.zeros(low.size, dtype=np.uint8)
        rows = (sources[at].astype(np.int64) - first).astype(np.uint32)
        arcs_between(rows, targets[at], *version.rows.shared()[:3], version.rows.num_rows, is_there)
        arcs[at] = is_there
        found.append(arcs)
    return found


def _work_of(graph: Graph, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> int:
    """Return what following a batch takes, in edges that are read, if each edge changes a pair; by out-degrees alone.

    O(batch): no pair is sorted, and nothing is laid out. Collective.
    """
    version, known = graph._version, (np.minimum(sources, targets) >= 0) & (sources != targets)
    sources, targets = sources[known], targets[known]
    assert version is not None
    begins, stops, *_ = version.rows.shared()
    sizes = np.zeros((2, sources.size), dtype=np.int64)
    for found, ends in zip(sizes, (sources, targets), strict=True):
        at = np.flatnonzero((ends >= graph.first_row) & (ends < graph.first_row + graph.num_rows))
        rows = ends[at] - graph.first_row
        found[at] = stops[rows] - begins[rows]
    sizes = graph.group.all_reduce(sizes, "sum")
    return _work(sources, targets, sizes[0], sizes[1], graph.num_vertices)


def _work(
    low: NDArray[Any],
    high: NDArray[Any],
    of_low: NDArray[np.int64],
    of_high: NDArray[np.int64],
    num_vertices: int,
) -> int:
    """Return what looking at pairs takes, as `ChangedPairs.work` has it, in edges that are read."""
    marked = np.zeros(num_vertices, dtype=np.int64)
    marked[np.where(of_low < of_high, high, low)] = np.maximum(of_low, of_high)
    return int(3 * np.minimum(of_low, of_high).sum() + 2 * marked.sum()) + low.size
