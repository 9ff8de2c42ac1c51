"""Who owns each vertex: the answer of a partitioner, in as little memory as its method allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sigps.graph import random_bits as rb

__all__ = ["Assignment", "Contiguous", "Hashed", "Table"]

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
