"""Edges that are inserted into rows, or deleted from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowChanges", "distinct", "row_order"]

Columns = dict[str, NDArray[Any]]

_FEW = 64


class RowChanges:
    """Edges in rows: `rows` [edges] int64, `ends` [edges] int64, `columns` [edges] each."""

    def __init__(self, rows: NDArray[np.int64], ends: NDArray[np.int64], columns: Columns) -> None:
        self.rows, self.ends, self.columns = rows, ends, columns

    @property
    def size(self) -> int:
        return self.rows.size

    def mirrored(self) -> tuple[RowChanges, NDArray[np.bool_]]:
        """Return each edge followed by its reverse, a self-loop once; and which are no reverses."""
        size = 2 * self.rows.size
        rows, ends = np.empty(size, dtype=self.rows.dtype), np.empty(size, dtype=self.ends.dtype)
        rows[::2], rows[1::2], ends[::2], ends[1::2] = self.rows, self.ends, self.ends, self.rows
        is_first = np.zeros(size, dtype=np.bool_)
        is_first[::2] = True
        changes = RowChanges(
            rows, ends, {name: np.repeat(column, 2) for name, column in self.columns.items()}
        )
        stored = is_first | (rows != ends)
        return (changes, is_first) if stored.all() else (changes.at(stored), is_first[stored])

    def reversed(self) -> RowChanges:
        """Return the edges as their other ends hold them."""
        return RowChanges(self.ends, self.rows, self.columns)

    def at(self, where: Any) -> RowChanges:
        """Return some of the edges."""
        return RowChanges(
            self.rows[where], self.ends[where], {name: column[where] for name, column in self.columns.items()}
        )


def row_order(rows: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order by rows, then by ends, then as they are; of whole numbers from 0 on.

    Numbers that have their place in their lowest bits are sorted instead, where 63 bits do: once where these hold a
    row and an end, in a fifth of the time of `numpy.lexsort`, else first by ends and then by rows (a third).

    >>> row_order(np.array([2, 0, 2, 0]), np.array([1, 5, 1, 3])).tolist()
    [3, 1, 0, 2]
    """
    if rows.size < _FEW:
        return np.lexsort((ends, rows))
    of_row, of_end = int(rows.max()).bit_length(), int(ends.max()).bit_length()
    of_place = rows.size.bit_length()
    if of_row + of_end + of_place <= 63:
        return _order(rows << of_end | ends, of_place)
    if max(of_row, of_end) + of_place <= 63:
        by_end = _order(ends, of_place)
        return by_end[_order(rows[by_end], of_place)]
    return np.lexsort((ends, rows))


def _order(values: NDArray[np.int64], of_place: int) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = (values << of_place) + np.arange(values.size)
    keys.sort()
    keys &= (1 << of_place) - 1
    return keys


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values, ascending: of a few thousand sooner than `numpy.unique`."""
    values = np.sort(values)
    kept = np.ones(values.size, dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=kept[1:])
    return values[kept]
