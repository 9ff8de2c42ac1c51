"""Rows that the versions of a graph share: what a batch touches is changed in place, and older versions undo it.

All versions of an arena have their edges in the same arrays, where each row has some room behind it. A row that changes
is changed where it is, ascending as before; one that outgrows its room is written behind what is used, with new room.
Only the newest version reads the arena. An older one knows its successor, and what to put back and take out of the rows
that differ there (H. Baker, "Shallow binding makes functional arrays fast", SIGPLAN Notices 26(8), 1991); what that
makes of them is laid out apart when it is first read. So a batch costs O(batch) memory while the version before is
held, none afterwards, and at most one pass over the rows that it touches; reading an older version costs O(edges).

The newest version is laid out in another arena, in order, when rows that were moved have used what an arena had behind
its rows, or when a fifth of its room is no longer needed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.shared_copies import shared_threads
from sigps.graph.versions.editing import Edits, copy_pieces, parts_of, write_edits

__all__ = ["WORTH_COMPILING", "RowContents", "VersionRows"]

Columns = dict[str, NDArray[Any]]

_ROW_SLACK = 16
"""A row gets room for one part in so many more edges when it is laid out."""
_SLACK = 8
"""An arena has room for one part in so many more edges, and rows, behind all rows."""
_MOVED_SLACK = 8
"""A row gets room for one part in so many more edges when it is moved."""
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
        spare: [rows], uint32: places behind each row that are its own.
        ends: [edges], of which `used` are used, as of each of `columns`.
        lock: Held while edges are written, and while they are read for another version than the newest.
    """

    def __init__(
        self, num_rows: int, num_edges: int, dtype: np.dtype[Any], columns: Mapping[str, np.dtype[Any]]
    ) -> None:
        """Make room for so many rows and edges."""
        self.begins, self.stops = (np.zeros(num_rows, dtype=np.uint64) for _ in range(2))
        self.spare = np.zeros(num_rows, dtype=np.uint32)
        self.ends = np.empty(num_edges, dtype=dtype)
        self.columns = {name: np.empty(num_edges, dtype=kind) for name, kind in columns.items()}
        self.used = 0
        self.lock = threading.RLock()

    @classmethod
    def of(cls, pieces: _Pieces, more_rows: int, more_edges: int) -> _Arena:
        """Return an arena with rows from elsewhere, in order, and room for at least so many more."""
        num_rows = pieces.lengths.size
        spare = pieces.lengths // _ROW_SLACK
        stops = np.cumsum(pieces.lengths + spare)
        size = int(stops[-1]) if num_rows else 0
        rows = num_rows + max(num_rows // _SLACK, _LEAST_ROOM, more_rows)
        edges = size + max(size // _SLACK, _LEAST_ROOM, more_edges)
        arena = cls(rows, edges, pieces.ends.dtype, {name: c.dtype for name, c in pieces.columns.items()})
        stops -= spare
        arena.begins[:num_rows], arena.stops[:num_rows] = stops - pieces.lengths, stops
        arena.spare[:num_rows] = spare
        arena.used = size
        begins = arena.begins[:num_rows].view(np.int64)
        pieces.copy(pieces.ends, arena.ends, begins)
        for name, column in pieces.columns.items():
            pieces.copy(column, arena.columns[name], begins)
        return arena

    def fits(self, num_rows: int, more_edges: int, num_edges: int) -> bool:
        """Tell whether there is room for so many rows and more edges, and not far more than for `num_edges`."""
        is_sparse = self.ends.size * 4 > num_edges * 5 + 8 * max(_LEAST_ROOM, more_edges)
        return num_rows <= self.begins.size and self.used + more_edges <= self.ends.size and not is_sparse

    def places(self, rows: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return where rows of these sizes begin from now on, and take the places."""
        begins = self.begins[rows]
        spare = (self.stops[rows] - begins).view(np.int64) + self.spare[rows] - sizes
        moved = np.flatnonzero(spare < 0)
        if moved.size:
            lengths, extra = sizes[moved], sizes[moved] // _MOVED_SLACK
            if self.used + int(lengths.sum() + extra.sum()) > self.ends.size:
                extra[:] = 0
            stops = self.used + np.cumsum(lengths + extra)
            assert stops[-1] <= self.ends.size  # compiled loops would write behind the arrays
            begins[moved] = stops - lengths - extra
            spare[moved] = extra
            self.used = int(stops[-1])
        self.spare[rows] = spare
        return begins


class VersionRows:
    """The rows of one version.

    Attributes:
        num_rows: Its rows.
        num_edges: Its edges.
    """

    def __init__(self, arena: _Arena, num_rows: int, num_edges: int) -> None:
        """Hold the newest version of an arena; `of` and `replaced` make one."""
        self._arena, self.num_rows, self.num_edges = arena, num_rows, num_edges
        self._next: tuple[VersionRows, _Undo] | None = None

    @classmethod
    def of(cls, offsets: NDArray[np.uint64], ends: NDArray[Any], columns: Columns) -> VersionRows:
        """Copy plain rows to an arena of their own."""
        arena = _Arena.of(_Pieces(offsets[:-1], offsets[1:], ends, columns), 0, 0)
        return cls(arena, offsets.size - 1, ends.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the arena, which all its versions share, room included."""
        arena = self._arena
        arrays: list[NDArray[Any]] = [arena.begins, arena.stops, arena.spare, arena.ends]
        return sum(array.nbytes for array in (*arrays, *arena.columns.values()))

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The types of the columns."""
        return {name: column.dtype for name, column in self._arena.columns.items()}

    def shared(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[Any], Columns]:
        """Return the arena's own begins, stops, ends and columns; they are this version's until there is a newer one.

        They are longer than needed: room for more rows and edges follows.
        """
        assert self._next is None
        arena = self._arena
        return arena.begins, arena.stops, arena.ends, arena.columns

    def degrees(self) -> NDArray[np.int64]:
        """Return how many edges each row has."""
        with self._arena.lock:
            newest, undos = self._newer()
            arena = newest._arena  # another one where a version between was read
            with arena.lock:
                degrees = (arena.stops[: newest.num_rows] - arena.begins[: newest.num_rows]).view(np.int64)
        for undo in undos:
            degrees[undo.rows] = np.diff(undo.offsets)
        return degrees[: self.num_rows]

    def num_edges_of(self, rows: NDArray[np.int64]) -> int:
        """Return how many edges some rows have; those above `num_rows` have none."""
        return int(self._lengths(rows).sum())

    def contents(self, rows: NDArray[np.int64]) -> RowContents:
        """Return copies of some rows, ascending; those above `num_rows` are empty."""
        self._be_newest()
        arena, offsets = self._arena, np.zeros(rows.size + 1, dtype=np.int64)
        with arena.lock:
            np.cumsum(self._lengths(rows), out=offsets[1:])
            at = arena.begins[np.minimum(rows, arena.begins.size - 1)].view(np.int64) - offsets[:-1]
            at = np.repeat(at, np.diff(offsets)) + np.arange(offsets[-1])
            columns = {name: column[at] for name, column in arena.columns.items()}
            return RowContents(rows, offsets, arena.ends[at], columns)

    def replaced(self, new: RowContents, num_rows: int) -> VersionRows:
        """Return a version of `num_rows` rows in which some rows have other contents. O(edges of these).

        It becomes the newest of its arena, and is in an arena of its own where that is full or this version is not the
        newest.
        """
        alone = self.with_room(num_rows, new.ends.size)
        if alone is not self:
            return alone.replaced(new, num_rows)
        before = self.contents(new.rows)
        undo = _Undo(
            new.rows, before.offsets, np.arange(before.ends.size), before.ends, before.columns, slice(0, None)
        )
        sizes, arena = np.diff(new.offsets), self._arena
        with arena.lock:
            begins = arena.places(new.rows, sizes)
            at = np.repeat(begins.view(np.int64) - new.offsets[:-1], sizes) + np.arange(new.ends.size)
            arena.ends[at] = new.ends
            for name, column in new.columns.items():
                arena.columns[name][at] = column
            return self._changed(begins, sizes, undo, num_rows)

    def with_room(self, num_rows: int, num_edges: int) -> VersionRows:
        """Return this version as the newest of an arena that has room for so many rows, and so many more edges."""
        if self._next is None and self._arena.fits(num_rows, num_edges, self.num_edges):
            return self
        return self._laid_out(num_rows, num_edges)

    def with_room_for(self, rows: NDArray[np.int64], more: NDArray[np.int64], num_rows: int) -> VersionRows:
        """Return this version as the newest of an arena with room for `num_rows` rows, of which some get more edges.

        A row that outgrows its place takes one anew, so what is needed depends on the room behind rows, which is
        another in each arena: it is counted in the one that is returned.

        Args:
            rows: Those that get more, ascending.
            more: [rows]: how many more edges, at most.
            num_rows: How many rows there are then.
        """
        self._be_newest()
        arena, lengths = self._arena, self._lengths(rows)
        spare = arena.spare[np.minimum(rows, arena.spare.size - 1)]
        if arena.fits(num_rows, self._room_for(rows, lengths, more, spare), self.num_edges):
            return self
        return self._laid_out(num_rows, self._room_for(rows, lengths, more, lengths // _ROW_SLACK))

    def _room_for(
        self,
        rows: NDArray[np.int64],
        lengths: NDArray[np.int64],
        more: NDArray[np.int64],
        spare: NDArray[Any],
    ) -> int:
        """Return how many places the rows take that outgrow theirs."""
        moved = (more > spare) | (rows >= self.num_rows)
        return int((lengths + more)[moved].sum())

    def _laid_out(self, num_rows: int, num_edges: int) -> VersionRows:
        self._be_newest()
        with self._arena.lock:
            arena = _Arena.of(self._pieces(), num_rows - self.num_rows, num_edges)
        return VersionRows(arena, self.num_rows, self.num_edges)

    def edited(self, edits: Edits, num_rows: int) -> VersionRows:
        """Return a version of `num_rows` rows after edits that were planned for this one, which has room for them."""
        arena, at = self._arena, edits.gone
        columns = {name: column[at] for name, column in arena.columns.items()}
        offsets = np.concatenate([[0], np.cumsum(edits.lengths)])
        undo = _Undo(edits.rows, offsets, edits.gone_at, arena.ends[at], columns, edits.inserted_at)
        sizes = edits.lengths + edits.growth
        arrays = [(arena.ends, edits.inserts.ends.astype(arena.ends.dtype))]
        arrays += [(column, edits.inserts.columns[name]) for name, column in arena.columns.items()]
        with arena.lock:  # what takes memory is done: rows whose places are taken are written
            begins = arena.places(edits.rows, sizes)
            how = (
                edits.rows, arena.begins, arena.stops, begins, edits.removed[0], edits.removed[1],
                edits.removed_offsets, edits.insert_at, edits.insert_offsets,
            )  # fmt: skip
            tasks = [(*of_array, *how, *part) for part in parts_of(edits.lengths) for of_array in arrays]
            if len(tasks) > len(arrays):
                shared_threads().map(lambda task: write_edits(*task), tasks)
            else:
                for task in tasks:
                    write_edits(*task)
            return self._changed(begins, sizes, undo, num_rows)

    def plain(self) -> tuple[NDArray[np.uint64], NDArray[Any], Columns]:
        """Return the rows one after the other in arrays of their own: offsets, ends, columns. O(edges)."""
        self._be_newest()
        with self._arena.lock:
            pieces = self._pieces()
            offsets = np.zeros(self.num_rows + 1, dtype=np.uint64)
            np.cumsum(pieces.lengths, out=offsets[1:].view(np.int64))
            arrays = {"": pieces.ends, **pieces.columns}
            found = {name: np.empty(self.num_edges, dtype=array.dtype) for name, array in arrays.items()}
            for name, array in arrays.items():
                pieces.copy(array, found[name], offsets[:-1].view(np.int64))
        return offsets, found.pop(""), found

    def _lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        self._be_newest()
        arena, last = self._arena, max(self.num_rows - 1, 0)
        if rows.size and rows[-1] > last:  # new rows, which are the last
            old = np.minimum(rows, last)
            return np.where(rows > last, 0, (arena.stops[old] - arena.begins[old]).view(np.int64))
        return (arena.stops[rows] - arena.begins[rows]).view(np.int64)

    def _changed(
        self, begins: NDArray[np.uint64], sizes: NDArray[np.int64], undo: _Undo, num_rows: int
    ) -> VersionRows:
        """Return the next version, whose changed rows are written."""
        arena = self._arena
        arena.begins[undo.rows], arena.stops[undo.rows] = begins, begins + sizes.view(np.uint64)
        growth = int(sizes.sum()) - int(undo.offsets[-1])
        newer = VersionRows(arena, num_rows, self.num_edges + growth)
        self._next = newer, undo
        return newer

    def _newer(self) -> tuple[VersionRows, list[_Undo]]:
        """Return the newest version of the arena, and what leads from it to this one, in that order."""
        at, undos = self, []
        while at._next is not None:
            at, undo = at._next
            undos.append(undo)
        return at, undos[::-1]

    def _be_newest(self) -> None:
        """Lay an older version out in an arena of its own."""
        if self._next is None:
            return
        with self._arena.lock:
            at, undos = self._newer()
            at = VersionRows(_Arena.of(at._pieces(), 0, 0), at.num_rows, at.num_edges)
        for undo in undos:
            at = at.replaced(undo.undone(at.contents(undo.rows)), at.num_rows)
        self._arena, self._next = at._arena, None

    def _pieces(self) -> _Pieces:
        arena, rows = self._arena, self.num_rows
        return _Pieces(arena.begins[:rows], arena.stops[:rows], arena.ends, arena.columns)


@dataclass(frozen=True, eq=False)
class _Undo:
    """What to take out of a version's rows, and to put back, for those of the version before.

    Attributes:
        rows: The rows that differ.
        offsets: [rows + 1]: where each begins before, one after the other.
        gone_at: [edges]: where the edges that went were in these.
        gone: [edges]: their ends.
        columns: [edges] each.
        inserted: Where the edges that came are in the newer rows, one after the other.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    gone_at: NDArray[np.int64]
    gone: NDArray[Any]
    columns: Columns
    inserted: NDArray[np.int64] | slice

    def undone(self, newer: RowContents) -> RowContents:
        """Return the rows before."""
        stays = np.ones(newer.ends.size, dtype=np.bool_)
        stays[self.inserted] = False
        is_gone = np.zeros(self.offsets[-1], dtype=np.bool_)
        is_gone[self.gone_at] = True

        def before(now: NDArray[Any], gone: NDArray[Any]) -> NDArray[Any]:
            values = np.empty(is_gone.size, dtype=now.dtype)
            values[is_gone], values[~is_gone] = gone, now[stays]
            return values

        columns = {name: before(column, self.columns[name]) for name, column in newer.columns.items()}
        return RowContents(self.rows, self.offsets, before(newer.ends, self.gone), columns)


class _Pieces:
    """Rows that lie anywhere in some arrays.

    Attributes:
        lengths: [rows], int64.
    """

    def __init__(
        self, begins: NDArray[np.uint64], stops: NDArray[np.uint64], ends: NDArray[Any], columns: Columns
    ) -> None:
        self.ends, self.columns = ends, columns
        self._begins = begins.view(np.int64)
        self.lengths = (stops - begins).view(np.int64)

    def copy(self, values: NDArray[Any], written: NDArray[Any], places: NDArray[np.int64]) -> None:
        """Write one of the arrays so that each row begins at its place; these ascend."""
        kept = self.lengths > 0
        begins, lengths, places = (a if kept.all() else a[kept] for a in (self._begins, self.lengths, places))
        is_cut = np.ones(begins.size + 1, dtype=np.bool_)
        is_cut[1:-1] = begins[1:] != begins[:-1] + lengths[:-1]
        is_cut[1:-1] |= places[1:] != places[:-1] + lengths[:-1]
        if not is_cut.all():  # rows that follow one another in both are copied together
            firsts, lasts = np.flatnonzero(is_cut[:-1]), np.flatnonzero(is_cut[1:])
            lengths = begins[lasts] + lengths[lasts] - begins[firsts]
            begins, places = begins[firsts], places[firsts]
        if begins.size > _FEW_PIECES:
            if int(lengths.sum()) >= WORTH_COMPILING:
                pieces = begins, lengths, places
                tasks = [[a[first:last] for a in pieces] for first, last in parts_of(lengths)]
                shared_threads().map(lambda task: copy_pieces(values, *task, written), tasks)
                return
            ones = np.arange(lengths.sum())
            first = np.cumsum(lengths) - lengths
            written[np.repeat(places - first, lengths) + ones] = values[
                np.repeat(begins - first, lengths) + ones
            ]
            return
        for begin, length, place in zip(begins.tolist(), lengths.tolist(), places.tolist(), strict=True):
            written[place : place + length] = values[begin : begin + length]
