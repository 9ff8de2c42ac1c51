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

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.versions.splicing import Splice, copy_pieces

__all__ = ["RowContents", "VersionRows"]

Columns = dict[str, NDArray[Any]]

_SLACK = 4
"""An arena has room for one part in so many more edges, and rows, than it begins with."""
_LEAST_ROOM = 1 << 12
_MOST_SLICES = 1 << 12
_PIECE_EDGES = 1 << 20


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
        self,
        offsets: NDArray[np.uint64],
        ends: NDArray[Any],
        columns: Columns,
        more_rows: int,
        more_edges: int,
    ) -> None:
        num_rows = offsets.size - 1
        room = max(num_rows // _SLACK, _LEAST_ROOM, more_rows)
        self.begins, self.stops = (np.zeros(num_rows + room, dtype=np.uint64) for _ in range(2))
        self.begins[:num_rows], self.stops[:num_rows] = offsets[:-1], offsets[1:]
        self.used = ends.size
        room = max(self.used // _SLACK, _LEAST_ROOM, more_edges)
        self.ends = _with_room(ends, room)
        self.columns = {name: _with_room(column, room) for name, column in columns.items()}

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
        self._next: tuple[VersionRows, RowBounds] | None = None

    @classmethod
    def of(
        cls,
        offsets: NDArray[np.uint64],
        ends: NDArray[Any],
        columns: Columns,
        *,
        more_rows: int = 0,
        more_edges: int = 0,
    ) -> VersionRows:
        """Copy plain rows to an arena of their own, with room for at least so many more rows and edges."""
        return cls(_Arena(offsets, ends, columns, more_rows, more_edges), offsets.size - 1, ends.size)

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
        newer: list[RowBounds] = []
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
        before = RowBounds(old, arena.begins[old], arena.stops[old])
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
        return VersionRows.of(*self.plain(), more_rows=num_rows - self.num_rows, more_edges=num_edges)

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
        begins, stops = self.bounds()
        offsets = np.zeros(self.num_rows + 1, dtype=np.uint64)
        np.cumsum(stops - begins, out=offsets[1:])
        kept = stops > begins
        if not kept.all():
            begins, stops = begins[kept], stops[kept]
        starts = (
            np.flatnonzero(begins[1:] != stops[:-1]) + 1
        )  # where rows do not follow one another in the arena
        cuts = [0, *starts.tolist(), begins.size] if starts.size < _MOST_SLICES else None
        arena = self._arena
        if cuts is not None:
            spans = [slice(int(begins[a]), int(stops[b - 1])) for a, b in itertools.pairwise(cuts) if a < b]
            found = [_joined(array, spans) for array in (arena.ends, *arena.columns.values())]
        else:
            found = [_gathered(array, begins, stops) for array in (arena.ends, *arena.columns.values())]
        return offsets, found[0], dict(zip(arena.columns, found[1:], strict=True))


@dataclass(frozen=True)
class RowBounds:
    """Where some rows began and stopped in an older version."""

    rows: NDArray[np.int64]
    begins: NDArray[np.uint64]
    stops: NDArray[np.uint64]


def _with_room(values: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.empty(values.size + room, dtype=values.dtype)
    larger[: values.size] = values
    return larger


def _joined(values: NDArray[Any], spans: list[slice]) -> NDArray[Any]:
    return np.concatenate([values[:0], *(values[span] for span in spans)])


def _gathered(values: NDArray[Any], begins: NDArray[np.uint64], stops: NDArray[np.uint64]) -> NDArray[Any]:
    """Return rows one after the other, by pieces, so that positions take little memory."""
    upto = np.concatenate([[0], np.cumsum((stops - begins).view(np.int64))])
    found = np.empty(int(upto[-1]), dtype=values.dtype)
    goals = np.arange(_PIECE_EDGES, found.size, _PIECE_EDGES)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(upto, goals), [begins.size]]))
    for first, last in itertools.pairwise(cuts.tolist()):
        low, high = int(upto[first]), int(upto[last])
        moved = begins[first:last].view(np.int64) - upto[first:last]
        found[low:high] = values[np.repeat(moved, np.diff(upto[first : last + 1])) + np.arange(low, high)]
    return found
