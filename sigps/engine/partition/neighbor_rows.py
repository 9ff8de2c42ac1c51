"""The edges of neighbours: rows of a partition's vertices and, copied, of the vertices that their out-edges lead to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigps.engine.partition.subgraph import Subgraph
from sigps.graph.partitioning.assignment import Assignment
from sigps.group import Group

__all__ = ["NeighborRows", "build_neighbor_rows"]


@dataclass(frozen=True, eq=False)
class NeighborRows:
    """Rows of out-edges by number: first those of owned vertices by local id, then those of remote targets.

    Attributes:
        offsets: [rows + 1] uint64.
        targets: [entries] gids, ascending in each row; the first entries are those of `Subgraph.outgoing`.
        row_of: [num_out_edges]: the row of each out-edge's target.
        asked: For each rank, the entries of this partition that it has copies of, in its order.
        bounds: [size + 1]: the copies of rank r's entries are bounds[r] : bounds[r + 1].
        owned: [num_owned] gids; None where they are the local ids.
    """

    offsets: NDArray[np.uint64]
    targets: NDArray[np.integer]
    row_of: NDArray[np.integer]
    asked: tuple[NDArray[np.int64], ...] = ()
    bounds: NDArray[np.int64] | None = None
    owned: NDArray[np.int64] | None = None

    @cached_property
    def reverse(self) -> NDArray[np.int64]:
        """The entry of each out-edge in the row of its target, [num_out_edges]; of parallel ones the first.

        Of an undirected graph. Found by search, when somebody first asks.
        """
        num_edges = self.row_of.size
        lengths = np.diff(self.offsets).astype(np.int64)
        num_owned = int(np.searchsorted(self.offsets, num_edges, side="right")) - 1
        gids = np.arange(num_owned) if self.owned is None else self.owned
        base = 1 + int(self.targets.max(initial=0))
        entries = np.repeat(np.arange(lengths.size), lengths) * base + self.targets.astype(np.int64)
        sources = np.repeat(gids, lengths[: gids.size])
        found = np.searchsorted(entries, self.row_of.astype(np.int64) * base + sources)
        return found.astype(np.int64, copy=False)


def build_neighbor_rows(subgraph: Subgraph, assignment: Assignment, group: Group) -> NeighborRows:
    """Bring each partition the rows of its remote neighbours. Collective; one process alone copies nothing."""
    edges = subgraph.outgoing
    assert edges is not None
    if subgraph.gids is None:
        return NeighborRows(edges.offsets, edges.ends, edges.ends)
    ends = edges.ends.astype(np.int64, copy=False)
    remote = np.unique(ends)
    owners = assignment.owner_of(remote)
    remote, owners = remote[owners != group.rank], owners[owners != group.rank]
    remote = remote[np.argsort(owners, kind="stable")]
    cuts = np.searchsorted(np.sort(owners), np.arange(group.size + 1))

    wanted = group.all_to_all([remote[cuts[r] : cuts[r + 1]] for r in range(group.size)])
    lids = [subgraph.local_ids(gids) for gids in wanted]
    begins = edges.offsets.astype(np.int64)
    degrees = np.diff(begins)
    asked = tuple(_spans(begins[rows], degrees[rows]) for rows in lids)
    lengths = np.concatenate(group.all_to_all([degrees[rows] for rows in lids]))
    copies = group.all_to_all([edges.ends[entries] for entries in asked])

    rows = np.concatenate([degrees, lengths])
    offsets = np.zeros(rows.size + 1, dtype=np.uint64)
    np.cumsum(rows, out=offsets[1:])
    bounds = np.cumsum([edges.ends.size, *[part.size for part in copies]])
    return NeighborRows(
        offsets,
        np.concatenate([edges.ends, *copies]),
        _row_numbers(subgraph, ends, remote),
        asked,
        bounds,
        subgraph.owned_gids,
    )


def _spans(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of all spans, one after the other."""
    before = np.cumsum(lengths) - lengths
    positions: NDArray[np.int64] = np.arange(int(lengths.sum())) + np.repeat(begins - before, lengths)
    return positions


def _row_numbers(
    subgraph: Subgraph, ends: NDArray[np.int64], remote: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Return the row of each vertex in `ends`: an owned vertex's local id, or its place in `remote` after them."""
    known = np.concatenate([subgraph.owned_gids, remote])
    order = np.argsort(known)
    rows: NDArray[np.uint32] = order[np.searchsorted(known[order], ends)].astype(np.uint32)
    return rows
