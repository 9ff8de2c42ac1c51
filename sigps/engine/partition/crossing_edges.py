"""Edges of a part whose rows stream that lead to rows of other ranks, and where copies of the edges back lie.

A rank has a copy of each edge that leads to a row of its own, behind its own edges: those of a rank after those of
another, in the order that they have there. So an edge is named by its number among those that lead to the same rank,
and neither end looks for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exchange import Exchange
from sigps.engine.partition.edge_list import moved, require_symmetry
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import GraphError

__all__ = ["CrossingEdges", "find_crossing_edges"]


@dataclass(frozen=True, eq=False)
class CrossingEdges:
    """Counts of edges, of an undirected graph with rows in the given order.

    Attributes:
        rank: Whose they are.
        before: [rows + 1, ranks], uint64: the edges of earlier rows that lead to rows of each rank.
        of_ghosts: [ghosts], uint32: the edges that lead to each ghost; so many lead back.
        most: The most that lead from a rank to others, of all ranks.
    """

    rank: int
    before: NDArray[np.uint64]
    of_ghosts: NDArray[np.uint32]
    most: int

    @property
    def num_ranks(self) -> int:
        return int(self.before.shape[1])

    @property
    def num_copies(self) -> int:
        """Edges that lead to other ranks, and copies of those back."""
        return int(self.of_ghosts.sum(dtype=np.uint64))

    @property
    def first_copies(self) -> NDArray[np.int64]:
        """[ranks], where the copies of the edges of each rank begin among all copies; its own has none."""
        counts = self.before[-1].astype(np.int64)
        counts[self.rank] = 0
        first: NDArray[np.int64] = np.cumsum(counts) - counts
        return first

    def places(self, offsets: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return what finds edges back, by the local ids of rows and ghosts.

        Args:
            offsets: [rows + 1], where rows begin among the edges of this rank.

        Returns:
            [rows + ghosts + 1], where the edges of each begin, those of ghosts that are copied; and [rows + ghosts],
            how many of these lead to rows of lower ranks.
        """
        copies = np.cumsum(self.of_ghosts, dtype=np.uint64) + offsets[-1]
        counts = np.diff(self.before[:, : self.rank].sum(axis=1, dtype=np.uint64)).astype(np.uint32)
        return np.concatenate([offsets, copies]), np.pad(counts, (0, self.of_ghosts.size))


def find_crossing_edges(subgraph: Subgraph, exchange: Exchange) -> CrossingEdges:
    """Count them in one pass over the pages. Collective.

    Raises:
        GraphError: On all ranks, if edges that lead from one rank to another, or from a row to others of its rank, are
            not as many as those back, or others; or if a page of one is damaged.
    """
    from sigps.kernels.cpu.edge_values import count_by_rank, sum_of_pairs
    from sigps.kernels.cpu.layout import count_uses

    edges, rank = subgraph.incoming, exchange.rank
    assert isinstance(edges, StreamedEdges)
    assert edges.local_of is not None
    rows, local_of = edges.rows, edges.local_of
    num_rows = rows.offsets.size - 1
    bounds = np.cumsum([0, *exchange.gather(np.array([num_rows]))[:, 0]])
    before = np.zeros((num_rows + 1, exchange.size), dtype=np.uint64)
    uses = np.zeros(num_rows + subgraph.num_ghosts, dtype=np.uint32)
    ends = np.empty(rows.most_arcs, dtype=np.uint32)
    total = 0
    failed: GraphError | None = None
    try:
        for number in range(len(rows.chains)):
            span = rows.first_rows[number : number + 2]
            first, stop = rows.offsets[span].tolist()
            own = ends[: stop - first]
            rows.unpack(number, own, {})
            given = rows.offsets, moved(own, first), bounds
            count_by_rank(*span.astype(np.uint64), *given, before[1:].reshape(-1))
            total += int(sum_of_pairs(*span.astype(np.uint64), np.uint64(bounds[rank]), *given[:2]))
            count_uses(local_of[own], uses)
    except GraphError as error:
        failed = error
    differs = (before[1:, rank] != uses[:num_rows]).any()
    np.cumsum(before, axis=0, out=before)
    halves = total >> 32 & 0xFFFFFFFF, total & 0xFFFFFFFF
    gathered = exchange.gather(np.array([failed is not None, differs, *halves, *before[-1].tolist()]))
    if failed is not None:
        raise failed
    if gathered[:, 0].any():
        raise GraphError(
            f"rank {int(np.argmax(gathered[:, 0]))} cannot read its pages of the store; it says why"
        )
    gathered = gathered[:, 1:]
    totals = gathered[:, 3:]
    require_symmetry("some" if gathered[:, 0].any() or (totals != totals.T).any() else 0)
    high, low = gathered[:, 1:3].sum(axis=0).tolist()
    require_symmetry("some" if ((high << 32) + low) % (1 << 64) else 0)
    most = int((totals.sum(axis=1) - totals.diagonal()).max())
    return CrossingEdges(rank, before, uses[num_rows:], most)
