"""Passes over edges that lay them out by row: stable, O(edges + rows), on one thread."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["count_uses", "order_by_row", "rows_in_order", "targets_by_source"]


def order_by_row_plain(
    rows: NDArray[np.uint32], num_rows: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return where each row begins, [num_rows + 1], and the order that groups elements by row, [elements]."""
    offsets = np.zeros(num_rows + 1, dtype=np.uint64)
    for i in range(rows.size):
        offsets[rows[i] + np.uint32(1)] += np.uint64(1)
    for row in range(num_rows):
        offsets[row + 1] += offsets[row]
    at = offsets[:-1].copy()
    order = np.empty(rows.size, dtype=np.int64)
    for i in range(rows.size):
        row = rows[i]
        order[at[row]] = i
        at[row] += np.uint64(1)
    return offsets, order


def targets_by_source_plain(
    offsets: NDArray[np.uint64], sources: NDArray[np.uint32], targets: NDArray[np.uint32], order: NDArray[Any]
) -> None:
    """Transpose rows of in-edges: fill `targets`, and `order` where it is not empty, ascending in each source's row.

    Args:
        offsets: [targets' rows + 1], where each target's in-edges begin.
        sources: [edges].
        targets: [edges], filled.
        order: [edges] or [0]: filled with the position of each edge in `sources`.
    """
    num_sources = np.int64(0)
    for e in range(sources.size):
        num_sources = max(num_sources, np.int64(sources[e]) + 1)
    at = np.zeros(num_sources + 1, dtype=np.uint64)
    for e in range(sources.size):
        at[sources[e] + np.uint32(1)] += np.uint64(1)
    for s in range(num_sources):
        at[s + 1] += at[s]
    for t in range(offsets.size - 1):
        for e in range(offsets[t], offsets[t + 1]):
            position = at[sources[e]]
            targets[position] = t
            if order.size > 0:
                order[position] = e
            at[sources[e]] = position + np.uint64(1)


def count_uses_plain(ends: NDArray[Any], uses: NDArray[np.uint32]) -> None:
    """Add to uses[v], [vertices], how often v is among `ends`."""
    for e in range(ends.size):
        uses[ends[e]] += np.uint32(1)


def rows_in_order_plain(
    offsets: NDArray[np.uint64],
    order: NDArray[np.int64],
    values: NDArray[Any],
    names: NDArray[Any] | None,
    moved: NDArray[Any],
) -> None:
    """Write rows one after the other in another order.

    Args:
        offsets: [rows + 1], where each row begins.
        order: [rows], the rows in their new order.
        values: [edges], in the old order.
        names: `names[value]` is written for each value; None to write the value itself.
        moved: [edges], filled.
    """
    at = np.uint64(0)
    for row in order:
        for e in range(offsets[row], offsets[row + 1]):
            if names is None:
                moved[at] = values[e]
            else:
                moved[at] = names[values[e]]
            at += np.uint64(1)


count_uses = numba.njit(cache=True, nogil=True)(count_uses_plain)
rows_in_order = numba.njit(cache=True, nogil=True)(rows_in_order_plain)
order_by_row = numba.njit(cache=True, nogil=True)(order_by_row_plain)
targets_by_source = numba.njit(cache=True, nogil=True)(targets_by_source_plain)
