"""Cut a row of weighted vertices, spread over ranks, into pieces of given shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.graph.graph import Graph
from sigps.group import Group

__all__ = ["cut_by_weight", "work_of_rows"]


def work_of_rows(graph: Graph) -> NDArray[np.int64]:
    """Return the work of each of this rank's rows: in-edges plus out-edges plus one.

    Collective. The two directions of an undirected graph are the same edges and count once.
    """
    work = graph.out_degrees() + 1
    return work + graph.in_degrees() if graph.directed else work


def cut_by_weight(weights: NDArray[np.int64], shares: NDArray[np.float64], group: Group) -> NDArray[np.int64]:
    """Return where to cut so that piece p weighs as near to its share as whole vertices allow.

    Collective. Each cut is the one nearest to its place, so no piece weighs more than its share plus the
    heaviest vertex. Depends on the weights only, not on how ranks hold them.

    Args:
        weights: [rows of this rank] whole numbers above 0, in the order of the ranks.
        shares: [pieces] adding up to 1.
        group: The ranks.

    Returns:
        [pieces + 1] ascending bounds, from 0 to the number of rows of all ranks.
    """
    until = np.cumsum(weights)
    mine = np.array([weights.size, until[-1] if until.size else 0], dtype=np.int64)
    sizes = np.array(group.all_gather_array(mine))
    first_row, before = sizes[: group.rank].sum(axis=0)
    num_rows, total = sizes.sum(axis=0)

    goals = np.minimum(np.cumsum(shares)[:-1] * total, total)
    here = (goals > before) & (goals <= before + mine[1])
    cuts = np.zeros(goals.size, dtype=np.int64)
    if here.any():
        rows = np.searchsorted(until, goals[here] - before)
        above = until[rows] - (goals[here] - before)
        # The cut before a row or after it, whichever is nearer.
        cuts[here] = first_row + rows + (above <= weights[rows] / 2)
    # Each cut was found by one rank; the others hold 0.
    cuts = group.all_reduce(cuts, "max")
    return np.concatenate([[0], cuts, [num_rows]]).astype(np.int64)
