"""Who owns each vertex: the answer of a partitioner, in as little memory as its method allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sigps.graph import random_bits as rb
from sigps.group import Group

__all__ = ["Assignment", "Contiguous", "Hashed", "Table", "cut_by_weight"]

_BLOCK = 1 << 20
_OWNERS = 4  # the purpose of the seed


class Assignment(ABC):
    """One owner for each vertex of a graph; the same on all ranks. Immutable.

    Attributes:
        num_vertices: Vertices of the graph.
        num_parts: Parts, numbered from 0; a part may be empty.
        kind: How it is kept: "bounds" (8 bytes a part), "hashed" (no memory) or "table" (1 to 4 bytes a
            vertex).
    """

    kind: Literal["bounds", "hashed", "table"]

    def __init__(self, num_vertices: int, num_parts: int) -> None:
        self.num_vertices = num_vertices
        self.num_parts = num_parts

    @abstractmethod
    def owner_of(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the part of each gid; an array of the same length. Gids are 0 .. num_vertices - 1."""

    def owned(self, part: int) -> NDArray[np.int64]:
        """Return the gids of a part, ascending. O(num_vertices) unless the parts are contiguous."""
        found = [np.empty(0, dtype=np.int64)]
        for begin in range(0, self.num_vertices, _BLOCK):
            gids = np.arange(begin, min(begin + _BLOCK, self.num_vertices))
            found.append(gids[self.owner_of(gids) == part])
        return np.concatenate(found)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.num_vertices} vertices in {self.num_parts} parts>"


class Contiguous(Assignment):
    """Part p owns the gids bounds[p] .. bounds[p + 1] - 1.

    Attributes:
        bounds: [num_parts + 1] ascending, from 0 to num_vertices.
    """

    kind = "bounds"

    def __init__(self, bounds: NDArray[np.int64]) -> None:
        super().__init__(int(bounds[-1]), bounds.size - 1)
        self.bounds = bounds

    def owner_of(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        # The last bound at or below a gid opens its part; empty parts before it share the bound.
        return (np.searchsorted(self.bounds, gids, side="right") - 1).astype(np.int32)

    def owned(self, part: int) -> NDArray[np.int64]:
        return np.arange(self.bounds[part], self.bounds[part + 1])


class Hashed(Assignment):
    """Each gid's part is drawn by its hash, part p with the probability shares[p]."""

    kind = "hashed"

    def __init__(self, num_vertices: int, shares: NDArray[np.float64], seed: int) -> None:
        super().__init__(num_vertices, shares.size)
        self._seed = rb.subkey(seed, _OWNERS)
        ends = np.cumsum(shares)[:-1]
        self._thresholds = np.array([rb.threshold(end) for end in ends], dtype=np.uint64)

    def owner_of(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        draws = rb.random_bits(gids, 0, self._seed) >> np.uint64(11)
        return np.searchsorted(self._thresholds, draws, side="right").astype(np.int32)


class Table(Assignment):
    """The part of each gid, looked up.

    Attributes:
        parts: [num_vertices] of the smallest integer type that holds num_parts.
    """

    kind = "table"

    def __init__(self, parts: NDArray[np.integer], num_parts: int) -> None:
        super().__init__(parts.size, num_parts)
        self.parts = parts.astype(np.min_scalar_type(max(num_parts - 1, 0)), copy=False)

    def owner_of(self, gids: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.parts[gids].astype(np.int32)

    def owned(self, part: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.parts == part)


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
