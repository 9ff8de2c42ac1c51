"""The partition that owns each vertex: the result of a partitioner, in as little memory as its method needs."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from sigps.graph import random_bits as rb
from sigps.group import Group

__all__ = ["Assignment", "Contiguous", "Hashed", "Table", "cut_by_weight"]

_BLOCK = 1 << 20
_OWNERS = 4  # the purpose of the key, see `random_bits.subkey`


class Assignment(ABC):
    """The partition that owns each vertex of a graph; the same on all ranks. Immutable.

    Attributes:
        num_vertices: Vertices of the graph.
        num_partitions: The number of partitions; they are numbered from 0 and may be empty.
    """

    def __init__(self, num_vertices: int, num_partitions: int) -> None:
        self.num_vertices = num_vertices
        self.num_partitions = num_partitions

    @abstractmethod
    def owner_of(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the partition that owns each gid, [gids]. Gids are 0 .. num_vertices - 1."""

    def owned(self, partition: int) -> NDArray[np.int64]:
        """Return the gids of a partition, ascending. O(num_vertices) unless partitions are contiguous."""
        found = [np.empty(0, dtype=np.int64)]
        for begin in range(0, self.num_vertices, _BLOCK):
            gids = np.arange(begin, min(begin + _BLOCK, self.num_vertices))
            found.append(gids[self.owner_of(gids) == partition])
        return np.concatenate(found)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.num_vertices} vertices in {self.num_partitions} partitions>"


class Contiguous(Assignment):
    """Partition p owns the gids bounds[p] .. bounds[p + 1] - 1. 8 bytes a partition.

    Attributes:
        bounds: [num_partitions + 1] ascending, from 0 to num_vertices.
    """

    def __init__(self, bounds: NDArray[np.int64]) -> None:
        super().__init__(int(bounds[-1]), bounds.size - 1)
        self.bounds = bounds

    def owner_of(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        # A gid's partition begins at the last bound at or below it; empty partitions before it have the same bound.
        return (np.searchsorted(self.bounds, gids, side="right") - 1).astype(np.int32)

    def owned(self, partition: int) -> NDArray[np.int64]:
        return np.arange(self.bounds[partition], self.bounds[partition + 1])


class Hashed(Assignment):
    """Each gid's partition is drawn by its hash, partition p with the probability shares[p]. No memory."""

    def __init__(self, num_vertices: int, shares: NDArray[np.float64], seed: int) -> None:
        super().__init__(num_vertices, shares.size)
        self._seed = rb.subkey(seed, _OWNERS)
        ends = np.cumsum(shares)[:-1]
        self._thresholds = np.array([rb.threshold(end) for end in ends], dtype=np.uint64)

    def owner_of(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        draws = rb.random_bits(gids, 0, self._seed) >> np.uint64(11)
        return np.searchsorted(self._thresholds, draws, side="right").astype(np.int32)


class Table(Assignment):
    """A table of the partition of each gid. 1 to 4 bytes a vertex.

    Attributes:
        owners: [num_vertices] of the smallest unsigned type that holds num_partitions - 1.
    """

    def __init__(self, owners: NDArray[np.integer], num_partitions: int) -> None:
        super().__init__(owners.size, num_partitions)
        self.owners = owners.astype(np.min_scalar_type(max(num_partitions - 1, 0)), copy=False)

    def owner_of(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.owners[gids].astype(np.int32)

    def owned(self, partition: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.owners == partition)


def cut_by_weight(weights: NDArray[np.int64], shares: NDArray[np.float64], group: Group) -> NDArray[np.int64]:
    """Return the bounds of contiguous pieces whose weights are as near to their shares as whole vertices allow.

    Collective. Each bound is the one nearest to its goal, so no piece weighs more than its share plus the
    heaviest vertex. The result does not depend on how the weights are distributed over ranks.

    Args:
        weights: [rows of this rank], whole numbers above 0, in the order of ranks.
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
        # The cut before or after the row, whichever is nearer.
        cuts[here] = first_row + rows + (above <= weights[rows] / 2)
    # Each cut is computed by one rank; the others have 0.
    cuts = group.all_reduce(cuts, "max")
    return np.concatenate([[0], cuts, [num_rows]]).astype(np.int64)
