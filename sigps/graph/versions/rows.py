"""Rows that the versions of a graph share: what a batch touches is rewritten elsewhere, all else stays where it is.

All versions of an arena have their edges in the same arrays; a version is where each row begins and stops. A row that
changes is written anew behind what is used, ascending as before, and the old one stays for older versions. Only the
newest version keeps the bounds of all rows. An older one knows its successor, and what its own bounds were of the rows
that differ there (H. Baker, "Shallow binding makes functional arrays fast", SIGPLAN Notices 26(8), 1991). So a batch
costs O(edges of the rows that it touches), and reading an older version O(vertices) more.

An arena has room for a quarter more edges than it began with. When that is used, the newest version is laid out in
another arena, in order and without gaps, and the old arena goes with the last version in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.versions.splicing import Splice, copy_pieces

__all__ = ["WORTH_COMPILING", "RowContents", "VersionRows"]

Columns = dict[str, NDArray[Any]]

_SLACK = 4
"""An arena has room for one part in so many more edges, and rows, than it begins with."""
_LEAST_ROOM = 1 << 12
_FEW_PIECES = 64
WORTH_COMPILING = 1 << 14
"""Edges from which compiled loops pay, whose first load takes a tenth of a second."""


@dataclass
class RowContents:
    """Some rows, one after the other.

    Attributes:
        rows: [rows] int64, ascending.
        offsets: [rows + 1] int64: where each begins in `ends`.
        ends: [edges], ascending in each row.
        columns: [edges] each.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ends: NDArray[Any]
    columns: Columns

    def of_edges(self) -> NDArray[np.int64]:
        """Return the position in `rows` of each edge's row."""
        return np.repeat(np.arange(self.rows.size), np.diff(self.offsets))


class _Arena:
    """Where rows are.

    Attributes:
        begins: [rows], uint64: of the newest version, as `stops` are.
        ends: [edges], of which `used` are used, as of each of `columns`.
    """

    def __init__(
        self, num_rows: int, num_edges: int, dtype: np.dtype[Any], columns: Mapping[str, np.dtype[Any]]
    ) -> None:
        """Make room for so many rows and edges."""
        self.begins, self.stops = (np.zeros(num_rows, dtype=np.uint64) for _ in range(2))
        self.ends = np.empty(num_edges, dtype=dtype)
        self.columns = {name: np.empty(num_edges, dtype=kind) for name, kind in columns.items()}
        self.used = 0

    @classmethod
    def of(cls, pieces: _Pieces, more_rows: int, more_edges: int) -> _Arena:
        """Return an arena with rows from elsewhere, in order, and room for at least so many more."""
        num_rows, size = pieces.offsets.size - 1, int(pieces.offsets[-1])
        rows = num_rows + max(num_rows // _SLACK, _LEAST_ROOM, more_rows)
        edges = size + max(size // _SLACK, _LEAST_ROOM, more_edges)
        arena = cls(rows, edges, pieces.ends.dtype, {name: c.dtype for name, c in pieces.columns.items()})
        arena.begins[:num_rows], arena.stops[:num_rows] = pieces.offsets[:-1], pieces.offsets[1:]
        arena.used = size
        pieces.copy(pieces.ends, arena.ends[:size])
        for name, column in pieces.columns.items():
            pieces.copy(column, arena.columns[name][:size])
        return arena

    def fits(self, num_rows: int, num_edges: int) -> bool:
        return num_rows <= self.begins.size and self.used + num_edges <= self.ends.size


class VersionRows:
    """The rows of one version.

    Attributes:
        num_rows: Its rows.
        num_edges: Its edges.
    """

    def __init__(self, arena: _Arena, num_rows: int, num_edges: int) -> None:
        """Hold the newest version of an arena; `of` and `replaced` make one."""
        self._arena, self.num_rows, self.num_edges = arena, num_rows, num_edges
        self._next: tuple[VersionRows, _RowBounds] | None = None

    @classmethod
    def of(cls, offsets: NDArray[np.uint64], ends: NDArray[Any], columns: Columns) -> VersionRows:
        """Copy plain rows to an arena of their own."""
        arena = _Arena.of(_Pieces(offsets[:-1], offsets[1:], ends, columns), 0, 0)
        return cls(arena, offsets.size - 1, ends.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the arena, which all its versions share, room included."""
        arena = self._arena
        arrays = (arena.begins, arena.stops, arena.ends, *arena.columns.values())
        return sum(array.nbytes for array in arrays)

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The types of the columns."""
        return {name: column.dtype for name, column in self._arena.columns.items()}

    def bounds(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where each row begins and stops, [num_rows] each; O(1) for the newest version, else copies."""
        newer: list[_RowBounds] = []
        at = self
        while at._next is not None:
            at, differs = at._next
            newer.append(differs)
        arena = self._arena
        if not newer:
            return arena.begins[: self.num_rows], arena.stops[: self.num_rows]
        begins, stops = arena.begins[: at.num_rows].copy(), arena.stops[: at.num_rows].copy()
        for differs in reversed(newer):
            begins[differs.rows], stops[differs.rows] = differs.begins, differs.stops
        return begins[: self.num_rows], stops[: self.num_rows]

    def shared(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[Any], Columns]:
        """Return the arena's own begins, stops, ends and columns; they are this version's until there is a newer one.

        They are longer than needed: room for more rows and edges follows.
        """
        assert self._next is None
        arena = self._arena
        return arena.begins, arena.stops, arena.ends, arena.columns

    def degrees(self) -> NDArray[np.int64]:
        """Return how many edges each row has."""
        begins, stops = self.bounds()
        return (stops - begins).view(np.int64)

    def num_edges_of(self, rows: NDArray[np.int64]) -> int:
        """Return how many edges some rows have; those above `num_rows` have none."""
        begins, stops = self.bounds()
        old = rows[rows < self.num_rows]
        return int((stops[old] - begins[old]).sum())

    def contents(self, rows: NDArray[np.int64]) -> RowContents:
        """Return copies of some rows, ascending; those above `num_rows` are empty."""
        begins, stops = self.bounds()
        old = rows[rows < self.num_rows]
        offsets = np.zeros(rows.size + 1, dtype=np.int64)
        first = begins[old].view(np.int64)
        np.cumsum(stops[old].view(np.int64) - first, out=offsets[1 : old.size + 1])
        offsets[old.size + 1 :] = offsets[old.size]
        at = np.repeat(first - offsets[: old.size], np.diff(offsets[: old.size + 1])) + np.arange(offsets[-1])
        columns = {name: column[at] for name, column in self._arena.columns.items()}
        return RowContents(rows, offsets, self._arena.ends[at], columns)

    def replaced(self, new: RowContents, num_rows: int) -> VersionRows:
        """Return a version of `num_rows` rows in which some rows have other contents. O(edges of these).

        It becomes the newest of its arena, and is in an arena of its own where that is full or this version is not the
        newest.
        """
        alone = self.with_room(num_rows, new.ends.size)
        if alone is not self:
            return alone.replaced(new, num_rows)
        arena = self._arena
        written = slice(arena.used, arena.used + new.ends.size)
        arena.ends[written] = new.ends
        for name, column in new.columns.items():
            arena.columns[name][written] = column
        return self._with_bounds(new.rows, new.offsets, num_rows)

    def _with_bounds(self, rows: NDArray[np.int64], offsets: NDArray[np.int64], num_rows: int) -> VersionRows:
        """Return the next version, whose changed rows were written behind what is used."""
        arena = self._arena
        old = rows[rows < self.num_rows]
        before = _RowBounds(old, arena.begins[old], arena.stops[old])
        begin, arena.used = arena.used, arena.used + int(offsets[-1])
        arena.begins[self.num_rows : num_rows] = arena.stops[self.num_rows : num_rows] = 0
        bounds = (begin + offsets).view(np.uint64)
        arena.begins[rows], arena.stops[rows] = bounds[:-1], bounds[1:]
        gone = int((before.stops - before.begins).sum())
        newer = VersionRows(arena, num_rows, self.num_edges - gone + int(offsets[-1]))
        self._next = newer, before
        return newer

    def with_room(self, num_rows: int, num_edges: int) -> VersionRows:
        """Return this version as the newest of an arena that has room for so many rows, and so many more edges."""
        if self._next is None and self._arena.fits(num_rows, num_edges):
            return self
        arena = _Arena.of(self._pieces(), num_rows - self.num_rows, num_edges)
        return VersionRows(arena, self.num_rows, self.num_edges)

    def spliced(self, splice: Splice, num_rows: int) -> VersionRows:
        """Return a version of `num_rows` rows after a splice that was planned for this one, which has room for it."""
        arena, size = self._arena, int(splice.offsets[-1])
        written = slice(arena.used, arena.used + size)
        for array, inserted in (
            (arena.ends, splice.inserts.ends),
            *((column, splice.inserts.columns[name]) for name, column in arena.columns.items()),
        ):
            copy_pieces(array, splice.begins, splice.lengths, splice.places, array[written])
            array[written][splice.insert_places] = inserted
        return self._with_bounds(splice.rows, splice.offsets, num_rows)

    def plain(self) -> tuple[NDArray[np.uint64], NDArray[Any], Columns]:
        """Return the rows one after the other in arrays of their own: offsets, ends, columns. O(edges)."""
        pieces = self._pieces()
        arrays = {"": pieces.ends, **pieces.columns}
        found = {name: np.empty(self.num_edges, dtype=array.dtype) for name, array in arrays.items()}
        for name, array in arrays.items():
            pieces.copy(array, found[name])
        return pieces.offsets, found.pop(""), found

    def _pieces(self) -> _Pieces:
        return _Pieces(*self.bounds(), self._arena.ends, self._arena.columns)


@dataclass(frozen=True)
class _RowBounds:
    """Where some rows began and stopped in an older version."""

    rows: NDArray[np.int64]
    begins: NDArray[np.uint64]
    stops: NDArray[np.uint64]


class _Pieces:
    """Rows that lie anywhere in some arrays, in pieces that follow one another there.

    Attributes:
        offsets: [rows + 1], uint64: where each row begins when they are put one after the other.
    """

    def __init__(
        self, begins: NDArray[np.uint64], stops: NDArray[np.uint64], ends: NDArray[Any], columns: Columns
    ) -> None:
        self.ends, self.columns = ends, columns
        self.offsets = np.zeros(begins.size + 1, dtype=np.uint64)
        np.cumsum(stops - begins, out=self.offsets[1:])
        kept = stops > begins
        if not kept.all():
            begins, stops = begins[kept], stops[kept]
        is_cut = begins[1:] != stops[:-1]
        ones = np.ones(min(begins.size, 1), dtype=np.bool_)
        self._begins = begins[np.concatenate([ones, is_cut])].view(np.int64)
        self._lengths = stops[np.concatenate([is_cut, ones])].view(np.int64) - self._begins
        self._places = np.cumsum(self._lengths) - self._lengths

    def copy(self, values: NDArray[Any], written: NDArray[Any]) -> None:
        """Write one of the arrays in the order of rows."""
        if self._begins.size > _FEW_PIECES and written.size >= WORTH_COMPILING:
            copy_pieces(values, self._begins, self._lengths, self._places, written)
            return
        for begin, length, place in zip(
            self._begins.tolist(), self._lengths.tolist(), self._places.tolist(), strict=True
        ):
            written[place : place + length] = values[begin : begin + length]
