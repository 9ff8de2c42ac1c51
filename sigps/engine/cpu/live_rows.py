"""A part of a graph whose rows follow the versions in place; vertices become ghosts in spare slots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.following import EdgeChanges, LiveRows
from sigps.engine.partition.edge_list import EdgeList, by_source
from sigps.engine.partition.subgraph import Subgraph
from sigps.graph.building.rows import Duplicates
from sigps.graph.versions.apply import Rewriting
from sigps.graph.versions.row_changes import RowChanges, distinct
from sigps.graph.versions.rows import VersionRows

__all__ = ["LivePartition"]


class LivePartition:
    """The in-edges of a part's vertices, by target and by source, in rows that are changed in place.

    The first batch copies both, in ascending order of local ids, in O(edges); others cost what `Graph.apply` does.

    Args:
        subgraph: The part, with slots for further ghosts.
        columns: The edge columns that are kept.
    """

    def __init__(self, subgraph: Subgraph, columns: tuple[str, ...]) -> None:
        assert subgraph.gids is not None
        self._subgraph: Subgraph | None = subgraph
        self._num_owned, self._num_records = subgraph.num_owned, subgraph.num_owned + subgraph.num_ghosts
        self.columns = tuple(name for name in columns if name in subgraph.incoming.columns)
        self._lids = np.full(
            subgraph.num_vertices, -1, dtype=np.int32
        )  # by gid: a search takes ten times as long
        is_there = subgraph.gids >= 0
        self._lids[subgraph.gids[is_there]] = np.flatnonzero(is_there)

    @property
    def rows(self) -> LiveRows:
        """The edges as they are now; out-degrees are of no use in a part."""
        outward, inward = (
            EdgeList(begins, ends, columns, stops)
            for begins, stops, ends, columns in (self._out.shared(), self._in.shared())
        )
        return LiveRows(outward, inward, np.empty(0, dtype=np.int64))

    def local_ids(self, gids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local ids of vertices and ghosts; -1 where one is neither."""
        return self._lids[gids].astype(np.int64)

    def missing(self, edges: RowChanges) -> NDArray[np.int64]:
        """Return the sources of edges, by gid, that are neither vertices nor ghosts of the part; distinct."""
        return distinct(edges.rows[self.local_ids(edges.rows) < 0])

    def add_ghosts(self, gids: NDArray[np.int64], lids: NDArray[np.int64]) -> None:
        """Take note of further ghosts."""
        self._lids[gids] = lids

    def apply(self, deleted: RowChanges, inserted: RowChanges, duplicates: Duplicates) -> EdgeChanges:
        """Delete edges and insert others; return these by local ids.

        Args:
            deleted: By gids, of which the targets are owned; they name no column but those that are kept.
            inserted: Likewise; the part has all ends.
            duplicates: What the graph does with parallel edges.
        """
        if self._subgraph is not None:
            outward, self._subgraph = self._subgraph.pushed, None
            self._out, self._in = (
                VersionRows.of(rows.offsets, rows.ends, {name: rows.columns[name] for name in self.columns})
                for rows in (outward, by_source(outward, self._num_owned))
            )
        gone, new = self._local(deleted), self._local(inserted)
        self._out = Rewriting(self._out, gone, new, self._num_records, self._num_records, duplicates).newer()
        back = gone.reversed(), new.reversed()
        self._in = Rewriting(self._in, *back, self._num_owned, self._num_records, duplicates).newer()
        return EdgeChanges(new.rows, new.ends, new.columns)

    def _local(self, edges: RowChanges) -> RowChanges:
        columns = {name: edges.columns[name] for name in self.columns if name in edges.columns}
        local = RowChanges(self.local_ids(edges.rows), self.local_ids(edges.ends), columns)
        is_here = local.rows >= 0
        return local if is_here.all() else local.at(is_here)
