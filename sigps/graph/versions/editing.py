"""Rows changed where they are: deleted edges taken out, inserted ones put in, and what follows them moved up.

`plan_edits` finds the places, by searching the changed edges alone; `write_edits` goes over a row once from its first
change on, or writes it elsewhere where it has outgrown its place. `rewriting.change_rows` makes the same rows from the
contents of all touched ones, and is the judge.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.shared_copies import shared_threads
from sigps.graph.versions.row_changes import RowChanges, row_order
from sigps.native.kernel import compiled

__all__ = ["Edits", "are_compiled", "copy_pieces", "parts_of", "plan_edits", "write_edits"]

_WORTH_SHARING = 1 << 20
"""Edges from which threads share rows."""
_EDGES_OF_ROW = 64
"""To find a row takes as long as to move so many edges."""


def parts_of(lengths: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges of rows of so many edges each that take about the same time, one a thread; one where that is short.

    >>> parts_of(np.array([5, 5, 2]))
    [(0, 3)]
    """
    work = int(lengths.sum()) + _EDGES_OF_ROW * lengths.size
    if work < _WORTH_SHARING or shared_threads().count == 1:
        return [(0, lengths.size)]
    ends = np.cumsum(lengths) + _EDGES_OF_ROW * np.arange(1, lengths.size + 1)
    cuts = np.searchsorted(
        ends, np.arange(1, shared_threads().count) * (work / shared_threads().count)
    ).tolist()
    bounds = [0, *cuts, lengths.size]
    return [(a, b) for a, b in itertools.pairwise(bounds) if a < b]


@dataclass(frozen=True, eq=False)
class Edits:
    """How touched rows change. Positions are in the arena, before anything is written.

    Attributes:
        rows: [rows], ascending.
        lengths: [rows]: edges before.
        growth: [rows]: how many more there are afterwards.
        removed: [2, ranges]: where deleted edges begin and stop.
        removed_offsets: [rows + 1]: where each row's ranges begin.
        inserts: The edges that are inserted, by rows, then by ends.
        insert_at: [inserts]: in front of which position each goes.
        insert_offsets: [rows + 1]: where each row's begin.
        gone: [deleted]: where the edges are that are deleted.
        gone_at: [deleted]: where they are in the old rows one after the other.
        inserted_at: [inserts]: where each will be in the new rows one after the other.
    """

    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    growth: NDArray[np.int64]
    removed: NDArray[np.uint64]
    removed_offsets: NDArray[np.int64]
    inserts: RowChanges
    insert_at: NDArray[np.uint64]
    insert_offsets: NDArray[np.int64]
    gone: NDArray[np.int64]
    gone_at: NDArray[np.int64]
    inserted_at: NDArray[np.int64]


def are_compiled() -> bool:
    """Whether the loops of this file were compiled, or read from the cache, in this process."""
    return _find_places.has_code and write_edits.has_code


def plan_edits(
    touched: NDArray[np.int64],
    begins: NDArray[np.uint64],
    stops: NDArray[np.uint64],
    ends: NDArray[Any],
    deletes: RowChanges,
    inserts: RowChanges,
    *,
    drops_repeats: bool,
) -> tuple[Edits, NDArray[np.bool_]]:
    """Return how the touched rows become those after a batch, and which of the deletes matched an edge.

    Args:
        touched: Rows, ascending: all in which something changes.
        begins: Where every row begins in `ends`.
        stops: Where it stops.
        ends: The arena's.
        deletes: Edges to delete, with all parallel ones.
        inserts: Edges to insert afterwards, by rows, then by ends, then in their order.
        drops_repeats: Whether of parallel edges the first alone is kept.
    """
    first = begins[touched].view(np.int64)
    lengths = stops[touched].view(np.int64) - first
    shift = np.cumsum(lengths) - lengths - first  # from the arena to the rows one after the other
    delete_order = row_order(deletes.rows, deletes.ends)
    matched, kept = np.zeros(deletes.size, dtype=np.bool_), np.ones(inserts.size, dtype=np.bool_)
    removed = np.empty((2, deletes.size), dtype=np.uint64)
    removed_offsets, insert_offsets = (np.zeros(touched.size + 1, dtype=np.int64) for _ in range(2))
    insert_at = np.empty(inserts.size, dtype=np.uint64)
    delete_rows = deletes.rows[delete_order]
    given = (
        ends, begins, stops, touched, delete_rows, deletes.ends[delete_order].astype(ends.dtype), inserts.rows,
        inserts.ends.astype(ends.dtype), drops_repeats, matched, removed[0], removed[1], removed_offsets, kept,
        insert_at, insert_offsets,
    )  # fmt: skip
    parts = parts_of(lengths)
    if len(parts) == 1:
        _find_places(*given, 0, touched.size, 0, 0)
        removed, insert_at = removed[:, : removed_offsets[-1]], insert_at[: insert_offsets[-1]]
    else:
        firsts = touched[[first for first, _ in parts]]
        begun = np.searchsorted(delete_rows, firsts), np.searchsorted(inserts.rows, firsts)
        tasks = [(*part, int(d), int(i)) for part, d, i in zip(parts, *begun, strict=True)]
        shared_threads().map(lambda task: _find_places(*given, *task), tasks)
        removed = _close_up(removed_offsets, parts, begun[0], removed)
        (insert_at,) = _close_up(insert_offsets, parts, begun[1], insert_at[None])
    if insert_at.size < inserts.size:
        inserts = inserts.at(kept)
    found = np.empty_like(matched)
    found[delete_order] = matched
    num_inserts = insert_offsets[1:] - insert_offsets[:-1]
    inserted_at = insert_at.view(np.int64) + np.repeat(shift, num_inserts)
    inserted_at += np.arange(inserts.size)
    if not deletes.size:
        none = np.empty(0, dtype=np.int64)
        edits = Edits(
            touched, lengths, num_inserts, removed, removed_offsets, inserts, insert_at, insert_offsets, none, none,
            inserted_at,
        )  # fmt: skip
        return edits, found
    counts = (removed[1] - removed[0]).view(np.int64)
    before = np.cumsum(counts) - counts
    gone = np.repeat(removed[0].view(np.int64) - before, counts) + np.arange(counts.sum())
    shift_of = np.repeat(shift, np.diff(removed_offsets))
    gone_at = gone + np.repeat(shift_of, counts)
    if gone_at.size:
        inserted_at -= np.searchsorted(gone_at, inserted_at - np.arange(inserts.size))
    totals = np.concatenate([[0], np.cumsum(counts)])[removed_offsets]
    growth = num_inserts - np.diff(totals)
    edits = Edits(
        touched, lengths, growth, removed, removed_offsets, inserts, insert_at, insert_offsets, gone, gone_at,
        inserted_at,
    )  # fmt: skip
    return edits, found


def _close_up(
    offsets: NDArray[np.int64],
    parts: list[tuple[int, int]],
    begins: NDArray[np.int64],
    found: NDArray[Any],
) -> NDArray[Any]:
    """Return what parts of the rows found, each from its begin on, in one piece; offsets become those in it."""
    stops = offsets[[last for _, last in parts]]
    if np.array_equal(stops[:-1], begins[1:]):
        return found[:, : offsets[-1]]
    gaps = begins - np.cumsum(stops - begins) + (stops - begins)
    for (first, last), gap in zip(parts, gaps.tolist(), strict=True):
        offsets[first + 1 : last + 1] -= gap
    pieces = [found[:, a:b] for a, b in zip(begins.tolist(), stops.tolist(), strict=True)]
    return np.concatenate(pieces, axis=1)


@compiled
def _find_places(
    ends: NDArray[Any],
    begins: NDArray[np.uint64],
    stops: NDArray[np.uint64],
    touched: NDArray[np.int64],
    delete_rows: NDArray[np.int64],
    delete_ends: NDArray[Any],
    insert_rows: NDArray[np.int64],
    insert_ends: NDArray[Any],
    drops_repeats: bool,
    matched: NDArray[np.bool_],
    removed_begins: NDArray[np.uint64],
    removed_stops: NDArray[np.uint64],
    removed_offsets: NDArray[np.int64],
    kept: NDArray[np.bool_],
    insert_at: NDArray[np.uint64],
    insert_offsets: NDArray[np.int64],
    first: int,
    last: int,
    first_delete: int,
    first_insert: int,
) -> None:
    """Write where deletes take edges out of rows, and in front of what inserts go; both come by rows, then by ends.

    Of the rows touched[first:last], whose deletes and inserts begin there; what is found is written from there on, too.
    """
    d, i, num_removed, num_inserted = first_delete, first_insert, first_delete, first_insert
    for t in range(first, last):
        row = touched[t]
        low, stop, k = begins[row], stops[row], num_removed
        while d < len(delete_rows) and delete_rows[d] == row:
            if d > 0 and delete_rows[d - 1] == row and delete_ends[d - 1] == delete_ends[d]:
                matched[d] = matched[d - 1]
            else:
                low = left = _first_from(ends, low, stop, delete_ends[d])
                while low < stop and ends[low] == delete_ends[d]:
                    low = low + np.uint64(1)
                if low > left:
                    matched[d] = True
                    removed_begins[num_removed] = left
                    removed_stops[num_removed] = low
                    num_removed += 1
            d += 1
        removed_offsets[t + 1] = num_removed
        low = begins[row]
        while i < len(insert_rows) and insert_rows[i] == row:
            is_repeat = i > 0 and insert_rows[i - 1] == row and insert_ends[i - 1] == insert_ends[i]
            low = right = _first_from(ends, low, stop, insert_ends[i])
            while right < stop and ends[right] == insert_ends[i]:
                right = right + np.uint64(1)
            is_there = right > low
            while k < num_removed and removed_begins[k] < low:
                k += 1
            if k < num_removed and removed_begins[k] == low:
                is_there = False
            if drops_repeats and (is_repeat or is_there):
                kept[i] = False
            else:
                insert_at[num_inserted] = right
                num_inserted += 1
            i += 1
        insert_offsets[t + 1] = num_inserted


def _first_from(ends: NDArray[Any], low: Any, high: Any, end: Any) -> Any:
    """Return where in low .. high, among ends that ascend, the first one is that is not below `end`."""
    while low < high:
        middle = low + ((high - low) >> np.uint64(1))
        if ends[middle] < end:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@compiled
def write_edits(
    values: NDArray[Any],
    inserted: NDArray[Any],
    rows: NDArray[np.int64],
    begins: NDArray[np.uint64],
    stops: NDArray[np.uint64],
    new_begins: NDArray[np.uint64],
    removed_begins: NDArray[np.uint64],
    removed_stops: NDArray[np.uint64],
    removed_offsets: NDArray[np.int64],
    insert_at: NDArray[np.uint64],
    insert_offsets: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    """Edit one of the arrays: rows[t] goes from begins[rows[t]] to new_begins[t], where it may stay.

    Args:
        values: The array.
        inserted: [inserts]: what is put in.
        rows: As in `Edits`, and so are the positions.
        begins: Where each row of the arena begins.
        stops: Where it stops.
        new_begins: [rows]: where each begins afterwards; nothing is there but, perhaps, the row.
        removed_begins: See `Edits.removed`.
        removed_stops: Likewise.
        removed_offsets: See there.
        insert_at: See there.
        insert_offsets: See there.
        first: Of the rows to edit.
        last: Behind the last.
    """
    one = np.uint64(1)
    for t in range(first, last):
        begin, stop = begins[rows[t]], stops[rows[t]]
        k, k_stop = removed_offsets[t], removed_offsets[t + 1]
        j, j_stop = insert_offsets[t], insert_offsets[t + 1]
        if new_begins[t] != begin:
            read, to = begin, new_begins[t]
            going = True
            while going:
                until = stop
                if k < k_stop and removed_begins[k] < until:
                    until = removed_begins[k]
                if j < j_stop and insert_at[j] < until:
                    until = insert_at[j]
                while read < until:
                    values[to] = values[read]
                    to += one
                    read += one
                if j < j_stop and insert_at[j] == until:
                    values[to] = inserted[j]
                    to += one
                    j += 1
                elif k < k_stop and removed_begins[k] == until:
                    read = removed_stops[k]
                    k += 1
                else:
                    going = False
        else:
            first_removed = k
            to = stop
            if k < k_stop:
                to = removed_begins[k]
            while k < k_stop:
                read, until = removed_stops[k], stop
                if k + 1 < k_stop:
                    until = removed_begins[k + 1]
                for e in range(read, until):
                    values[to] = values[e]
                    to += one
                k += 1
            # `to` is where the row stops now. From its end on, what follows the j-th insert moves j + 1 places up.
            removed = np.uint64(0)
            for r in range(first_removed, k_stop):
                removed += removed_stops[r] - removed_begins[r]
            while j < j_stop:
                at = insert_at[j_stop - 1]
                while k > first_removed and removed_stops[k - 1] > at:
                    k -= 1
                    removed -= removed_stops[k] - removed_begins[k]
                at -= removed
                by = np.uint64(j_stop - j)
                while to > at:
                    to -= one
                    values[to + by] = values[to]
                values[at + by - one] = inserted[j_stop - 1]
                j_stop -= 1


@compiled
def copy_pieces(
    values: NDArray[Any],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    places: NDArray[np.int64],
    written: NDArray[Any],
) -> None:
    """Copy values[begins[i] :][: lengths[i]] to written[places[i] :], which is another part of the memory."""
    for i in range(begins.size):
        begin, place = np.uint64(begins[i]), np.uint64(places[i])
        for k in range(np.uint64(lengths[i])):
            written[place + k] = values[begin + k]
