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

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.proofs.rounds import Rounds
from sigps.device.cpu import Threads
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.measures import (
    ChangedPairs,
    Rows,
    count_changes,
    ends_of,
    entries_of,
    keys_of,
    spans_of,
)
from sigps.engine.cpu.rounds import RoundsEngine
from sigps.engine.cpu.spending import Spending
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import Subgraph, routed_ends, seen_ids
from sigps.engine.stats import StatsLog, added_up
from sigps.graph.graph import Graph
from sigps.graph.measures.changed_links import arcs_between
from sigps.graph.measures.neighbourhood import count_with_cost, measured
from sigps.graph.partitioning.assignment import Contiguous
from sigps.graph.versions.apply import Rewriting
from sigps.graph.versions.row_changes import RowChanges, distinct
from sigps.graph.versions.rows import VersionRows

__all__ = ["RankedMeasures", "RankedRoundsEngine"]


class RankedMeasures:
    """The measures of a rank's vertices, in ascending order of their gids. Verbs are collective.

    Args:
        graph: The graph as it is given.
        assignment: Who owns which vertex; new ones are the last rank's.
        threads: Threads that count.
        directed: Whether the program takes arcs in their directions.

    Attributes:
        first: The gid of the first vertex of this rank.
        num_owned: How many it has.
        full_cost: How many marks all ranks read when the measures were counted last.
    """

    def __init__(self, graph: Graph, assignment: Contiguous, threads: Threads, *, directed: bool) -> None:
        self._group, self._threads, self._directed = graph.group, threads, directed and graph.directed
        self._bounds = assignment.bounds.copy()
        self.first, self.num_owned = int(self._bounds[self._group.rank]), self._owned_of(graph)
        self.full_cost = 0
        self._values: dict[str, NDArray[np.int64]] = {}
        self._pairs: ChangedPairs | None = None
        sides = [
            routed_ends(graph, assignment, outward=outward) for outward in (False, True)[: 1 + graph.directed]
        ]
        if graph.directed and not self._directed:
            (own, others), (also, its) = sides
            sides = [(np.concatenate([own, also]), np.concatenate([others, its]))]
        self._rows = [self._simple(own, others, graph.num_vertices) for own, others in sides]

    def values(self) -> dict[str, NDArray[np.int64]]:
        """Return the measures by name, [num_owned]."""
        return self._values

    def count(self, graph: Graph) -> None:
        """Count the measures anew, of a graph as the program takes it."""

        def count(*rows: Any, **how: Any) -> Any:
            neighbors, links, self.full_cost = count_with_cost(self._threads, *rows, **how)
            return neighbors, links

        found, own = measured(graph, count), slice(self.first, self.first + self.num_owned)
        self._values = {
            "num_neighbors": found.num_neighbors[own].copy(),
            "neighbor_links": found.neighbor_links[own].copy(),
        }

    def follow(self, graph: Graph, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take the arcs of a version.

        Args:
            graph: The version as it is given, the newest one.
            sources: [edges]: those that the batch before it names, by gid; the same on all ranks.
            targets: [edges].
        """
        self.num_owned = self._owned_of(graph)
        for name, values in self._values.items():
            more = self.num_owned - values.size
            self._values[name] = np.concatenate([values, np.zeros(more, np.int64)]) if more else values
        keys = keys_of(sources, targets)
        low, high = ends_of(keys)
        degrees = [self._degrees(ends) for ends in (low, high)]
        known = np.stack([*self._arcs_before(low, high), *_arcs_of(graph, low, high), *degrees])
        found = self._group.all_reduce(known, "sum")
        there, back, still_there, still_back, of_low, of_high = found
        if not self._directed:
            there = back = np.maximum(there, back)
            still_there = still_back = np.maximum(still_there, still_back)
        before, after = there + back, still_there + still_back
        at = before != after
        self._pairs = ChangedPairs.of(
            keys[at], before[at].astype(np.uint8), after[at].astype(np.uint8), of_low[at], of_high[at]
        )
        ends = np.concatenate([low, high]), np.concatenate([high, low])
        self._change(*ends, np.concatenate([there, back]), np.concatenate([still_there, still_back]), graph)

    def follow_pairs(self, spending: Spending) -> NDArray[np.uint32] | None:
        """Bring the measures to the version taken last; return this rank's vertices that may have others.

        None where that costs more than may be spent, which is the same on all ranks; `count` is to be called then.
        """
        pairs = self._pairs
        assert pairs is not None
        if not spending.take(edges=int(pairs.work.sum())):
            return None
        if not pairs.a.size:
            return np.empty(0, dtype=np.uint32)
        m = self.num_owned
        ends = distinct(np.concatenate([pairs.a, pairs.b]))
        own = ends.astype(np.int64) - self.first
        is_own = (own >= 0) & (own < m)
        numbers = np.where(is_own, own, m + np.arange(ends.size)).astype(np.uint32)
        a, b = (numbers[np.searchsorted(ends, side)] for side in (pairs.a, pairs.b))
        spans = [spans_of(rows, pairs.a, pairs.b) for rows in self._shared()]
        neighbors, links = (np.zeros(m + ends.size, np.int64) for _ in range(2))
        seen = count_changes(
            self._threads, replace(pairs, a=a, b=b), entries_of(a, b, m), spans, (neighbors, links), m,
            directed=self._directed,
        )  # fmt: skip
        elsewhere = self._group.all_reduce(links[m:], "sum")
        links[own[is_own]] += elsewhere[is_own]
        self._values["num_neighbors"] += neighbors[:m]
        self._values["neighbor_links"] += links[:m]
        return np.flatnonzero(seen[:m]).astype(np.uint32)

    def num_in_edges(self, gids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many neighbours have an edge to each of some vertices; of the graph as it is given or turned."""
        begins, stops, _ = self._shared()[-1]
        return self._group.all_reduce((stops[gids] - begins[gids]).astype(np.int64), "sum")

    def _owned_of(self, graph: Graph) -> int:
        self._bounds[-1] = graph.num_vertices
        rank = self._group.rank
        return int(self._bounds[rank + 1] - self._bounds[rank])

    def _is_own(self, gids: NDArray[Any]) -> NDArray[np.bool_]:
        return (gids >= self.first) & (gids < self.first + self.num_owned)

    def _simple(self, own: NDArray[Any], others: NDArray[Any], num_vertices: int) -> VersionRows:
        """Return for each vertex of the graph its neighbours among this rank's."""
        most = max(self.num_owned, 1)
        is_pair = own != others
        keys = others[is_pair].astype(np.int64) * most + (own[is_pair].astype(np.int64) - self.first)
        keys = distinct(keys)
        offsets = np.zeros(num_vertices + 1, dtype=np.uint64)
        np.cumsum(np.bincount(keys // most, minlength=num_vertices), out=offsets[1:], dtype=np.uint64)
        return VersionRows.of(offsets, (keys % most).astype(np.uint32), {})

    def _shared(self) -> list[Rows]:
        return [rows.shared()[:3] for rows in self._rows]

    def _degrees(self, gids: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return how many neighbours among this rank's vertices there are; new vertices have none."""
        total = np.zeros(gids.size, dtype=np.int64)
        for rows, (begins, stops, _) in zip(self._rows, self._shared(), strict=True):
            known = np.flatnonzero(gids < rows.num_rows)
            total[known] += (stops[gids[known]] - begins[gids[known]]).astype(np.int64)
        return total

    def _arcs_before(self, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> list[NDArray[np.int64]]:
        """Return whether there were arcs from the lower ends of pairs, and to them, where these are this rank's."""
        found = [np.zeros(low.size, dtype=np.int64) for _ in range(2)]
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
        before: NDArray[np.int64],
        after: NDArray[np.int64],
        graph: Graph,
    ) -> None:
        """Change the rows where arcs come or go."""
        is_gone, is_new = before > after, before < after
        ends = (sources, targets), (targets, sources)
        for at, (others, own) in enumerate(ends[: len(self._rows)]):
            gone, new = (
                RowChanges(others[where].astype(np.int64), own[where].astype(np.int64) - self.first, {})
                for where in (np.flatnonzero(which & self._is_own(own)) for which in (is_gone, is_new))
            )
            n, most = graph.num_vertices, max(self.num_owned, 1)
            self._rows[at] = Rewriting(self._rows[at], gone, new, n, most, "drop").newer()


def _arcs_of(graph: Graph, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> list[NDArray[np.int64]]:
    """Return whether a version has arcs from the lower ends of pairs, and to them, as far as its rows here tell."""
    version, found = graph._version, []
    assert version is not None
    first = graph.first_row
    for sources, targets in ((low, high), (high, low)):
        at = np.flatnonzero((sources >= first) & (sources < first + graph.num_rows))
        is_there, arcs = np.empty(at.size, dtype=np.uint8), np.zeros(low.size, dtype=np.int64)
        rows = (sources[at].astype(np.int64) - first).astype(np.uint32)
        arcs_between(rows, targets[at], *version.rows.shared()[:3], version.rows.num_rows, is_there)
        arcs[at] = is_there
        found.append(arcs)
    return found


class RankedRoundsEngine(RoundsEngine):
    """An engine of a program in rounds whose vertices begin with measures, and send nothing. Verbs are collective.

    Args:
        native: As of `RoundsEngine`, and so are `params`, `threads` and `deterministic`.
        params: See there.
        graph: The graph.
        threads: See there.
        claim: See there.
        deterministic: See there.
        follower: The measures of this rank's vertices.
    """

    traced = None

    def __init__(
        self,
        native: NativeProgram,
        params: tuple[Any, ...],
        graph: Graph,
        threads: Threads,
        claim: Rounds,
        *,
        deterministic: bool,
        follower: RankedMeasures,
    ) -> None:
        self._follower, self._group, self._size = follower, graph.group, graph.num_vertices
        self.subgraph = _without_edges(graph, follower)
        given = native, params, self.subgraph, threads, claim
        super().__init__(*given, deterministic=deterministic, measures=follower)

    def fields(self) -> dict[str, NDArray[Any]]:
        """Return copies of all state fields, [num_owned] each in ascending order of gids."""
        return {field.name: self.state(field.name).copy() for field in self._native.program.states}

    def grow_with(self, graph: Graph) -> None:
        """Take the vertices of a version."""
        if graph.num_vertices > self._size:
            self._size, self.subgraph = graph.num_vertices, _without_edges(graph, self._follower)
            self.grow(self.subgraph.num_owned, self.subgraph.ids)
            self._take_edges(self.subgraph.incoming, self.subgraph.incoming)

    def everywhere(self, stats: StatsLog) -> StatsLog:
        """Return what all ranks did."""
        return added_up(stats, self._of_all_ranks)

    def _anywhere(self, claim: bool) -> bool:
        return bool(self._group.all_reduce(np.array([claim], dtype=np.int64), "max")[0])

    def _of_all_ranks(self, words: NDArray[Any]) -> NDArray[Any]:
        return np.stack(self._group.all_gather_array(words))

    @property
    def _num_vertices(self) -> int:
        return self._size

    def _measured(
        self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending
    ) -> NDArray[np.uint32] | None:
        return self._follower.follow_pairs(spending)

    def go_on_with(self, spending: Spending) -> StatsLog | None:
        """Run again what a batch changes; None where measures cost more than may be spent."""
        none = np.empty(0, dtype=np.int64)
        nothing = EdgeChanges(none, none, {})
        return self.go_on(nothing, nothing, spending)


def _without_edges(graph: Graph, follower: RankedMeasures) -> Subgraph:
    """Return a rank's vertices; no message goes along their edges."""
    num_owned = follower.num_owned
    gids = np.arange(follower.first, follower.first + num_owned)
    none = EdgeList(np.zeros(num_owned + 1, dtype=np.uint64), np.empty(0, dtype=np.uint32), {})
    degrees = np.zeros(num_owned, dtype=np.uint32)
    ids = seen_ids(graph, gids)
    return Subgraph(graph.num_vertices, 0, num_owned, 0, gids, ids, none, none, degrees)
