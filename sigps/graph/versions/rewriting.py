"""What the rows that a batch touches hold afterwards: deleted edges gone, inserted ones behind their equals.

A row's order is that of a graph built anew from the edges that were left, in their order, and the inserted ones behind
them: ascending ends, and parallel edges in the order in which they were given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.building.rows import Duplicates, Rows, apply_duplicates
from sigps.graph.versions.row_changes import RowChanges
from sigps.graph.versions.rows import RowContents

__all__ = ["both_sides", "change_rows"]

Columns = dict[str, NDArray[Any]]


def change_rows(
    before: RowContents, deletes: RowChanges, inserts: RowChanges, num_ends: int, duplicates: Duplicates
) -> tuple[RowContents, NDArray[np.bool_], RowChanges]:
    """Return the rows after a batch, which of the deletes matched an edge, [deletes], and the edges that went.

    Args:
        before: The touched rows: all in which something changes.
        deletes: Edges to delete: all parallel ones, whose named columns are equal.
        inserts: Edges to insert, afterwards, in their order.
        num_ends: Above every end.
        duplicates: What is done with parallel edges.
    """
    keys = _keys(before.of_edges(), before.ends, num_ends)
    wanted = _keys(np.searchsorted(before.rows, deletes.rows), deletes.ends, num_ends)
    there, wanted = _with_columns(keys, before.columns, wanted, deletes.columns)
    kept = ~_is_in(there, np.sort(wanted))
    matched = _is_in(wanted, there if not deletes.columns else np.sort(there))
    lost = ~kept
    gone = RowChanges(
        before.rows[before.of_edges()[lost]],
        before.ends[lost].astype(np.int64),
        {name: column[lost] for name, column in before.columns.items()},
    )
    keys, columns = keys[kept], {name: column[kept] for name, column in before.columns.items()}

    added = _keys(np.searchsorted(before.rows, inserts.rows), inserts.ends, num_ends)
    order = np.argsort(added, kind="stable")
    added = added[order]
    at = np.searchsorted(keys, added, side="right")
    columns = {name: np.insert(column, at, inserts.columns[name][order]) for name, column in columns.items()}
    keys = np.insert(keys, at, added)
    bounds = np.arange(before.rows.size + 1, dtype=np.uint64) * np.uint64(num_ends)
    offsets = np.searchsorted(keys, bounds)
    ends = (keys % np.uint64(num_ends)).astype(before.ends.dtype) if num_ends else before.ends
    if duplicates != "keep":
        rows = Rows(offsets.astype(np.uint64), ends, columns)
        apply_duplicates(rows, 0, duplicates)
        offsets, ends, columns = rows.offsets.view(np.int64), rows.targets, rows.columns
    return RowContents(before.rows, offsets, ends, columns), matched, gone


def both_sides(
    out: RowContents, inward: RowContents, num_ends: int, *, marks: bool, simple: bool
) -> RowContents:
    """Return the rows of the graph in which a directed graph's edges are at both their ends.

    Their order is that of `Graph.undirected` and `Graph.both_ways`, which go along the edges by source: of parallel
    edges those of the end with the smaller number come first. A loop is there once.

    Args:
        out: Some rows of the graph.
        inward: The same rows of its in-edges.
        num_ends: Above every end.
        marks: Whether to add the columns of `both_ways`.
        simple: Whether loops and all but the first of parallel edges are left out.
    """
    at, from_at = out.of_edges(), inward.of_edges()
    row, from_row = out.rows[at], inward.rows[from_at]
    is_edge = from_row != inward.ends
    second = row > out.ends, from_row[is_edge] < inward.ends[is_edge]
    keys = np.concatenate(
        [
            2 * _keys(at, out.ends, num_ends) + second[0],
            2 * _keys(from_at[is_edge], inward.ends[is_edge], num_ends) + second[1],
        ]
    )
    columns = {
        name: np.concatenate([column, inward.columns[name][is_edge]]) for name, column in out.columns.items()
    }
    if marks:
        leads_out = np.concatenate([np.ones(row.size, np.bool_), np.zeros(second[1].size, np.bool_)])
        columns |= {"leads_out": leads_out, "leads_in": ~leads_out}
        columns["leads_in"][: row.size] = row == out.ends
    order = np.argsort(keys, kind="stable")
    keys = keys[order] // 2
    positions = (keys // np.uint64(max(num_ends, 1))).view(np.int64)
    ends = (keys % np.uint64(max(num_ends, 1))).astype(out.ends.dtype)
    if simple:
        kept = (out.rows[positions] != ends) & np.concatenate([[True], keys[1:] != keys[:-1]])[: keys.size]
        order, positions, ends = order[kept], positions[kept], ends[kept]
    offsets = np.searchsorted(positions, np.arange(out.rows.size + 1))
    return RowContents(out.rows, offsets, ends, {name: column[order] for name, column in columns.items()})


def _keys(positions: NDArray[np.int64], ends: NDArray[Any], num_ends: int) -> NDArray[np.uint64]:
    """Return numbers that sort edges by their rows' positions, then by their ends; far below 2**64."""
    keys: NDArray[np.uint64] = positions.astype(np.uint64) * np.uint64(num_ends)
    keys += ends.astype(np.uint64, copy=False)
    return keys


def _is_in(values: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which values are among some that ascend."""
    if not known.size or not values.size:
        return np.zeros(values.size, dtype=np.bool_)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, values), known.size - 1)] == values
    return found


def _with_columns(
    keys: NDArray[np.uint64], columns: Columns, wanted: NDArray[np.uint64], named: Columns
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return keys that are equal where the named columns are equal too."""
    for name, values in named.items():
        texts = np.concatenate([keys, wanted]), np.concatenate([columns[name], values])
        numbers = [np.unique(text, return_inverse=True)[1].astype(np.uint64) for text in texts]
        joint = numbers[0] * np.uint64(numbers[1].size + 1) + numbers[1]
        keys, wanted = joint[: keys.size], joint[keys.size :]
    return keys, wanted
