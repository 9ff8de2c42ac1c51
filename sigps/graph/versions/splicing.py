"""Rows rewritten in one pass over memory: what stays is copied in pieces, what is inserted is put between them.

`plan_splice` finds the pieces, by searching the changed edges alone; `rewriting.change_rows` makes the same rows from
the contents of all touched ones, and is the judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.versions.row_changes import RowChanges
from sigps.native.kernel import compiled

__all__ = ["Splice", "copy_pieces", "plan_splice"]


@dataclass(frozen=True, eq=False)
class Splice:
    """How touched rows are written anew: positions of pieces in the arena, and in what is written.

    Attributes:
        rows: [rows], ascending.
        offsets: [rows + 1]: where each begins in what is written.
        begins: [pieces]: where each piece is in the arena.
        lengths: [pieces].
        places: [pieces]: where each goes.
        inserts: The edges that are inserted.
        insert_places: [inserts]: where each goes.
        gone: [deleted]: where the edges are that are deleted.
        gone_rows: [deleted]: their rows.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    places: NDArray[np.int64]
    inserts: RowChanges
    insert_places: NDArray[np.int64]
    gone: NDArray[np.int64]
    gone_rows: NDArray[np.int64]


def plan_splice(
    touched: NDArray[np.int64],
    begins: NDArray[np.uint64],
    stops: NDArray[np.uint64],
    ends: NDArray[Any],
    deletes: RowChanges,
    inserts: RowChanges,
    *,
    drops_repeats: bool,
) -> tuple[Splice, NDArray[np.bool_]]:
    """Return how the touched rows become those after a batch, and which of the deletes matched an edge.

    Args:
        touched: Rows, ascending: all in which something changes.
        begins: Where every row begins in `ends`.
        stops: Where it stops.
        ends: The arena's.
        deletes: Edges to delete, with all parallel ones.
        inserts: Edges to insert afterwards, in their order.
        drops_repeats: Whether of parallel edges the first alone is kept.
    """
    gone_left, gone_right = _find(begins, stops, ends, deletes)
    matched = gone_right > gone_left
    at_row = np.searchsorted(touched, deletes.rows)
    first_of = np.unique(gone_left[matched], return_index=True)[1]
    removed = np.stack([at_row, gone_left, gone_right])[:, matched][:, first_of]

    order = np.lexsort((inserts.ends, inserts.rows))
    inserts = inserts.at(order)
    left, right = _find(begins, stops, ends, inserts)
    if drops_repeats and inserts.size:
        is_repeat = np.zeros(inserts.size, dtype=np.bool_)
        is_repeat[1:] = (inserts.rows[1:] == inserts.rows[:-1]) & (inserts.ends[1:] == inserts.ends[:-1])
        is_there = (right > left) & ~np.isin(left, removed[1])
        kept = ~(is_repeat | is_there)
        inserts, right = inserts.at(kept), right[kept]
    insert_row = np.searchsorted(touched, inserts.rows)

    row = np.arange(touched.size)
    first, last = begins[touched].view(np.int64), stops[touched].view(np.int64)
    from_rows = np.concatenate([row, removed[0], insert_row])
    # Pieces begin where their row does, behind what is removed, and at inserts; they stop there, and at the row's end.
    piece_begins = np.concatenate([first, removed[2], right])
    piece_stops = np.concatenate([last, removed[1], right])
    kinds = np.repeat(np.arange(3), [row.size, removed.shape[1], right.size])
    begin_order = np.lexsort((piece_begins, from_rows))
    # At one place inserts come in their order (stable), before the row's end, and behind what is removed there.
    stop_order = np.lexsort((_RANKS[kinds], piece_stops, from_rows))
    piece_begins, piece_stops = piece_begins[begin_order], piece_stops[stop_order]
    lengths = piece_stops - piece_begins
    stop_kinds = kinds[stop_order]
    is_insert = stop_kinds == _INSERT
    written = np.cumsum(lengths + is_insert)
    places = written - lengths - is_insert
    offsets = np.concatenate([[0], written[stop_kinds == _ROW]])
    counts = removed[2] - removed[1]
    gone = np.repeat(removed[1] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    splice = Splice(
        touched,
        offsets,
        piece_begins,
        lengths,
        places,
        inserts,
        written[is_insert] - 1,
        gone,
        np.repeat(touched[removed[0]], counts),
    )
    return splice, matched


_ROW, _REMOVED, _INSERT = range(3)
_RANKS = np.array([2, 0, 1])


def _find(
    begins: NDArray[np.uint64], stops: NDArray[np.uint64], ends: NDArray[Any], edges: RowChanges
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the edges equal to each begin in its row and where they stop."""
    left, right = np.empty(edges.size, dtype=np.int64), np.empty(edges.size, dtype=np.int64)
    known = np.minimum(edges.rows, begins.size - 1)
    _find_in_rows(ends, begins[known], stops[known], edges.ends.astype(ends.dtype), left, right)
    return left, right


@compiled
def _find_in_rows(
    ends: NDArray[Any],
    begins: NDArray[np.uint64],
    stops: NDArray[np.uint64],
    wanted: NDArray[Any],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> None:
    """Write where the ends equal to wanted[i] begin, and where they stop, in begins[i] : stops[i], which ascend."""
    one = np.uint64(1)
    for i in range(wanted.size):
        low, high = begins[i], stops[i]
        while low < high:
            middle = low + ((high - low) >> one)
            if ends[middle] < wanted[i]:
                low = middle + one
            else:
                high = middle
        left[i] = np.int64(low)
        while low < stops[i] and ends[low] == wanted[i]:
            low = low + one
        right[i] = np.int64(low)


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
