"""Brings a partition the out-edges of its neighbours: mirrors of the rows of its remote targets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.engine.partition.subgraph import NeighborRows, Subgraph
from sigps.graph.partitioning.assignment import Assignment
from sigps.group import Group

__all__ = ["build_neighbor_rows"]


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
    send_lists = tuple(_spans(begins[rows], degrees[rows]) for rows in lids)
    lengths = np.concatenate(group.all_to_all([degrees[rows] for rows in lids]))
    mirrors = group.all_to_all([edges.ends[entries] for entries in send_lists])

    rows = np.concatenate([degrees, lengths])
    offsets = np.zeros(rows.size + 1, dtype=np.uint64)
    np.cumsum(rows, out=offsets[1:])
    mirror_bounds = np.cumsum([edges.ends.size, *[part.size for part in mirrors]])
    return NeighborRows(
        offsets,
        np.concatenate([edges.ends, *mirrors]),
        _row_numbers(subgraph, ends, remote),
        send_lists,
        mirror_bounds,
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
    """Return the row of each vertex in `ends`: an owned vertex's local id, or its position in `remote` after them."""
    known = np.concatenate([subgraph.owned_gids, remote])
    order = np.argsort(known)
    rows: NDArray[np.uint32] = order[np.searchsorted(known[order], ends)].astype(np.uint32)
    return rows
