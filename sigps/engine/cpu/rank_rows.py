"""The rows of one of several ranks as a program takes them, which follow the versions of a graph.

A rank has the vertices whose rows it has in the graph. So nothing is copied of an undirected graph: a row is a vertex's
out-edges and its in-edges. Of a directed graph in-edges are laid out by target, and changed by each batch; a program
that takes edges in both directions has rows of both, in the order of `Graph.undirected`. Ends are gids, and ascend in
each row, so sums of floats are those of a graph built anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sigps.engine.partition.edge_list import EdgeList, grouped
from sigps.engine.partition.subgraph import in_edges_of, rows_of
from sigps.graph.building.rows import Duplicates
from sigps.graph.graph import Graph
from sigps.graph.partitioning.assignment import Contiguous
from sigps.graph.versions.apply import Rewriting, stored_edges
from sigps.graph.versions.rewriting import both_sides
from sigps.graph.versions.row_changes import RowChanges, distinct
from sigps.graph.versions.rows import RowContents, VersionRows

__all__ = ["RankRows"]

_FOLLOWED, _LEAST = 24, 1 << 12
"""In-rows that follow a batch take as long for an edge as for so many that are laid out (`job/guard.py`)."""


class RankRows:
    """The rows of a rank's vertices. Verbs are collective.

    Args:
        graph: The graph as it is given.
        turned: The same as the program takes it.
        columns: The edge columns that the program reads.
        simple: Whether it takes no loops and repeats.

    Attributes:
        first: The gid of the first vertex.
        num_rows: How many vertices there are.
        outward: Edges by source; ends are gids.
        inward: By target.
        touched: The vertices whose out-edges the last batch changed, and new ones, by place; distinct.
        targets: Those whose in-edges it changed, likewise.
        inserted: The edges that it inserted from this rank's vertices, as the program takes them, by gid.
    """

    def __init__(self, graph: Graph, turned: Graph, columns: tuple[str, ...], *, simple: bool) -> None:
        self._columns, self._simple = columns, simple
        self._twin: VersionRows | None = None  # rows of both directions
        self._in: VersionRows | None = (
            None  # of a directed graph; of one that is turned from the first batch on
        )
        self.first, self.num_rows = graph.first_row, graph.num_rows
        if turned is not graph:
            rows = rows_of(turned, Contiguous(graph.row_bounds))
            self._twin = VersionRows.of(rows.offsets, rows.ends, self._kept(dict(rows.columns)))
            self.outward = self.inward = self._list_of(self._twin)
        else:
            self.outward = self.inward = EdgeList(graph.offsets, graph.targets, graph.columns)
            if graph.directed:
                self._in = self._in_rows_of(graph)
                self.inward = self._list_of(self._in)
        nothing = np.empty(0, dtype=np.int64)
        self.touched, self.targets, self.inserted = nothing, nothing, RowChanges(nothing, nothing, {})

    def take(self, newer: Graph) -> None:
        """Take the next version."""
        version, update = newer._version, newer.update
        assert version is not None
        assert version.touched is not None
        self.num_rows = newer.num_rows
        self.touched = self.targets = version.touched  # an undirected graph has both ends of an edge there
        self.inserted = RowChanges(update.inserts.rows + self.first, update.inserts.ends, {})
        self.outward = self.inward = self._list_of(version.rows)
        if newer.directed:
            back = self._change_in_rows(newer)
            self.targets = distinct(np.concatenate([edges.rows for edges in back]))
            if self._twin is not None:
                self.touched = self.targets = distinct(np.concatenate([self.touched, self.targets]))
                self.inserted = _joined(
                    self.inserted, RowChanges(back[0].rows + self.first, back[0].ends, {})
                )
            else:
                assert self._in is not None
                self.inward = self._list_of(self._in)
        if self._twin is not None:
            rows = self._both_sides(version.rows, newer.num_vertices)
            self._twin = self._twin.replaced(rows, self.num_rows)
            self.outward = self.inward = self._list_of(self._twin)

    def _change_in_rows(self, newer: Graph) -> tuple[RowChanges, RowChanges]:
        """Let the rows by target have what a batch changes; return what it inserts and deletes there.

        They are laid out where that costs less.
        """
        given = newer.update.given
        assert given is not None
        changes = []
        for edges, are_new in ((given.inserts, True), (given.deletes, False)):
            stored, _, _ = stored_edges(newer, newer.ids, edges, inserts=are_new)
            own = stored.at(self._are_own(stored.ends))
            columns = self._kept(own.columns) if are_new else own.columns
            changes.append(RowChanges(own.ends - self.first, own.rows, columns))
        inserts, deletes = changes
        is_large = given.inserts.size + given.deletes.size > max(newer.num_edges // _FOLLOWED, _LEAST)
        if self._in is None or is_large or not given.deletes.columns.keys() <= set(self._columns):
            self._in = self._in_rows_of(newer)
        else:
            duplicates = cast("Duplicates", newer.report.duplicates_policy)
            followed = Rewriting(self._in, deletes, inserts, self.num_rows, newer.num_vertices, duplicates)
            self._in = followed.newer()
        return inserts, deletes

    def _both_sides(self, outward: VersionRows, num_vertices: int) -> RowContents:
        """Return the touched rows with edges of both directions."""
        out = inward = self._contents(outward)
        if self._in is not None:
            inward = self._contents(self._in)
        else:  # the graph is undirected, and the program takes it without loops and repeats
            nothing = {name: column[:0] for name, column in out.columns.items()}
            inward = RowContents(out.rows, out.offsets * 0, out.ends[:0], nothing)
        both = both_sides(out, inward, num_vertices, marks=False, simple=self._simple)
        return RowContents(self.touched, both.offsets, both.ends, both.columns)

    def _contents(self, rows: VersionRows) -> RowContents:
        """Return the touched rows by gid."""
        found = rows.contents(self.touched)
        return RowContents(self.touched + self.first, found.offsets, found.ends, self._kept(found.columns))

    def _in_rows_of(self, graph: Graph) -> VersionRows:
        """Lay out the edges of a directed graph by target. O(edges)."""
        bounds = Contiguous(graph.row_bounds)
        targets, sources, columns = in_edges_of(graph, bounds, self._kept(graph.columns))
        places = (targets.astype(np.int64) - self.first).astype(np.uint32)
        rows = grouped(places, sources, columns, graph.num_rows)
        return VersionRows.of(rows.offsets, rows.ends, dict(rows.columns))

    def _kept(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {name: column for name, column in columns.items() if name in self._columns}

    def _list_of(self, rows: VersionRows) -> EdgeList:
        begins, stops, ends, columns = rows.shared()
        return EdgeList(begins, ends, columns, stops)

    def _are_own(self, gids: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (gids >= self.first) & (gids < self.first + self.num_rows)


def _joined(edges: RowChanges, more: RowChanges) -> RowChanges:
    return RowChanges(np.concatenate([edges.rows, more.rows]), np.concatenate([edges.ends, more.ends]), {})
