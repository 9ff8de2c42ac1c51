"""The map between the user's vertex ids (oids) and the global ids 0..n-1 (gids) that all other modules use.

gid g is the g-th smallest oid, on any number of ranks. Consecutive oids need no table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.user_arrays import as_ids
from sigps.group import Alone, Group, query_owners

__all__ = ["Ids"]


class Ids:
    """The map between oids and gids.

    On several ranks a table is spread: rank r holds the oids of gids `row_bounds[r] : row_bounds[r + 1]`,
    and `to_gids` and `to_oids` are collective. Consecutive ids need no table and no exchange.

    Attributes:
        num_vertices: Vertices of the graph.
        base: The smallest oid of a map without a table.
        table: The sorted oids, on several ranks this rank's slice; None where the oids are consecutive.
    """

    def __init__(
        self,
        num_vertices: int,
        base: int,
        table: NDArray[Any] | None,
        row_bounds: NDArray[np.int64],
        group: Group,
    ) -> None:
        """Hold finished parts; `identity`, `range` and `of` construct them."""
        self.num_vertices = num_vertices
        self.base = base
        self.table = table
        self._row_bounds = row_bounds
        self._group = group
        if table is not None:
            firsts = group.all_gather_array(table[:1])
            self._first_ranks = np.flatnonzero([part.size for part in firsts])
            self._first_oids = np.concatenate(firsts)

    @classmethod
    def identity(cls, num_vertices: int) -> Ids:
        """Return the map of oids 0..n-1 onto themselves."""
        return cls.range(0, num_vertices)

    @classmethod
    def range(cls, base: int, num_vertices: int) -> Ids:
        """Return the map of the consecutive oids base..base+n-1, without a table."""
        return cls(num_vertices, base, None, np.array([0, num_vertices]), Alone())

    @classmethod
    def of(
        cls,
        table: NDArray[Any],
        *,
        group: Group | None = None,
        row_bounds: NDArray[np.int64] | None = None,
    ) -> Ids:
        """Return the map for a sorted table of distinct oids.

        Args:
            table: int64 or str; on several ranks this rank's slice of it. Collective.
            group: The ranks that hold the slices; None for one process.
            row_bounds: [size + 1], the bounds of the ranks' slices in gids; needed on several ranks.
        """
        if group is None or group.size == 1:
            group, row_bounds = Alone(), np.array([0, table.size])
        if row_bounds is None:
            raise GraphError(
                "row_bounds is missing: on several ranks it gives each rank's slice of the table"
            )
        if table.dtype.kind == "U":
            table = _widen(table, group)
        return cls(int(row_bounds[-1]), 0, table, row_bounds, group)

    @property
    def is_identity(self) -> bool:
        """Whether every oid is its own gid."""
        return self.table is None and self.base == 0

    @property
    def kind(self) -> str:
        """`"identity"`, `"range"` (consecutive), `"table"` (int64) or `"strings"`."""
        if self.table is None:
            return "identity" if self.base == 0 else "range"
        return "strings" if self.table.dtype.kind == "U" else "table"

    @property
    def first_row(self) -> int:
        """The gid of the table's first oid on this rank."""
        return int(self._row_bounds[self._group.rank])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The oids' type: int64 or a str type."""
        return np.dtype(np.int64) if self.table is None else self.table.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that this rank's share of the map takes."""
        return 0 if self.table is None else int(self.table.nbytes)

    def __len__(self) -> int:
        return self.num_vertices

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the oids, ascending; on several ranks of a table this rank's slice.

        >>> np.asarray(Ids.range(5, 3)).tolist()
        [5, 6, 7]
        """
        oids = np.arange(self.base, self.base + self.num_vertices) if self.table is None else self.table
        return np.array(oids, dtype, copy=True if self.table is not None else copy)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the oids that NumPy gets, as whole numbers or texts of Python's.

        >>> list(Ids.of(np.array(["ann", "bob"])))
        ['ann', 'bob']
        """
        return iter(np.asarray(self).tolist())

    def __repr__(self) -> str:
        where = (
            f"{self.base} to {self.base + self.num_vertices - 1}" if self.table is None else str(self.dtype)
        )
        return f"<Ids: {self.num_vertices:,}, {where}; numpy.asarray(ids) has them>"

    def to_gids(self, oids: ArrayLike) -> NDArray[np.int64]:
        """Return the gids of `oids`, -1 where an oid is no vertex. Collective on several ranks.

        >>> Ids.of(np.array([3, 10, 20])).to_gids([20, 4, 3])
        array([ 2, -1,  0])
        """
        wanted = np.atleast_1d(as_ids(oids, "ids"))
        if wanted.dtype.kind != "U":
            wanted = wanted.astype(np.int64, copy=False)
        if (wanted.dtype.kind == "U") != (self.dtype.kind == "U"):
            self._find(np.empty(0, dtype=self.dtype))  # collective: the other ranks look theirs up
            return np.full(wanted.size, -1, dtype=np.int64)
        return self._find(wanted)

    def to_oids(self, gids: ArrayLike) -> NDArray[Any]:
        """Return the oids of `gids`, all within 0..n-1. Collective on several ranks.

        >>> Ids.of(np.array(["ann", "bob"])).to_oids([1, 0])
        array(['bob', 'ann'], dtype='<U3')
        """
        wanted = np.atleast_1d(np.asarray(gids, dtype=np.int64))
        if wanted.size and not (int(wanted.min()) >= 0 and int(wanted.max()) < self.num_vertices):
            raise GraphError(f"a gid is outside 0..{self.num_vertices - 1}: {wanted.min()}..{wanted.max()}")
        if self.table is None:
            return wanted + self.base
        table = self.table
        if self._group.size == 1:
            return table[wanted]
        first = self.first_row
        owners = np.searchsorted(self._row_bounds, wanted, side="right") - 1
        return query_owners(self._group, owners, wanted, lambda gids: table[gids - first])

    def _find(self, oids: NDArray[Any]) -> NDArray[np.int64]:
        if self.table is None:
            gids: NDArray[np.int64] = oids - self.base
            if gids.size and gids.min() >= 0 and gids.max() < self.num_vertices:
                return gids
            is_vertex = (oids >= self.base) & (oids < self.base + self.num_vertices)
            return np.where(is_vertex, gids, -1)
        if self._group.size == 1:
            return _search(self.table, oids, 0)
        table, first = self.table, self.first_row
        if table.dtype.kind == "U":
            oids = _widen(oids, self._group)
        if not self._first_ranks.size:
            return np.full(oids.size, -1, dtype=np.int64)
        slot = np.searchsorted(self._first_oids, oids, side="right") - 1
        owners = self._first_ranks[np.maximum(slot, 0)]
        return query_owners(self._group, owners, oids, lambda oids: _search(table, oids, first))


def _search(table: NDArray[Any], oids: NDArray[Any], first: int) -> NDArray[np.int64]:
    if not table.size:
        return np.full(oids.size, -1, dtype=np.int64)
    slot = np.searchsorted(table, oids)
    slot[slot == table.size] = 0
    return np.where(table[slot] == oids, slot + first, -1)


def _widen(strings: NDArray[Any], group: Group) -> NDArray[Any]:
    """Return strings as a dtype of the same width on all ranks, as exchanges need. Collective."""
    width = int(group.all_reduce(np.array([strings.dtype.itemsize // 4]), "max")[0])
    return strings.astype(f"<U{max(width, 1)}", copy=False)
