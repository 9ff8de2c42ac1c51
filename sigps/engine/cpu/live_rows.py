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
    """

    def __init__(self, subgraph: Subgraph) -> None:
        assert subgraph.gids is not None
        self._subgraph: Subgraph | None = subgraph
        self._num_owned, self._num_records = subgraph.num_owned, subgraph.num_owned + subgraph.num_ghosts
        self._lids = np.argsort(subgraph.gids)
        self._gids = subgraph.gids[self._lids]
        self._more = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

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
        found = np.full(gids.size, -1)
        for known, lids in ((self._gids, self._lids), self._more):
            if known.size:
                at = np.minimum(np.searchsorted(known, gids), known.size - 1)
                found = np.where(known[at] == gids, lids[at], found)
        return found

    def missing(self, edges: RowChanges) -> NDArray[np.int64]:
        """Return the sources of edges, by gid, that are neither vertices nor ghosts of the part; distinct."""
        return distinct(edges.rows[self.local_ids(edges.rows) < 0])

    def add_ghosts(self, gids: NDArray[np.int64], lids: NDArray[np.int64]) -> None:
        """Take note of further ghosts."""
        gids, lids = np.concatenate([self._more[0], gids]), np.concatenate([self._more[1], lids])
        order = np.argsort(gids)
        self._more = gids[order], lids[order]

    def apply(self, deleted: RowChanges, inserted: RowChanges, duplicates: Duplicates) -> EdgeChanges:
        """Delete edges and insert others; return these by local ids.

        Args:
            deleted: By gids, of which the targets are owned.
            inserted: Likewise; the part has all ends.
            duplicates: What the graph does with parallel edges.
        """
        if self._subgraph is not None:
            outward, self._subgraph = self._subgraph.pushed, None
            self._out, self._in = (
                VersionRows.of(rows.offsets, rows.ends, {name: rows.columns[name] for name in rows.columns})
                for rows in (outward, by_source(outward, self._num_owned))
            )
        gone, new = self._local(deleted), self._local(inserted)
        self._out = Rewriting(self._out, gone, new, self._num_records, self._num_records, duplicates).newer()
        back = gone.reversed(), new.reversed()
        self._in = Rewriting(self._in, *back, self._num_owned, self._num_records, duplicates).newer()
        return EdgeChanges(new.rows, new.ends, new.columns)

    def _local(self, edges: RowChanges) -> RowChanges:
        local = RowChanges(self.local_ids(edges.rows), self.local_ids(edges.ends), edges.columns)
        return local.at(local.rows >= 0)
