"""Edges grouped by one end, and brought into other orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError

__all__ = [
    "EdgeList",
    "MovedColumns",
    "by_source",
    "grouped",
    "in_order",
    "moved",
    "positions_before",
    "require_symmetry",
    "reverse_edges",
    "rows_of_edges",
    "uses_of",
]


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges grouped by one end: `offsets` [rows + 1] uint64, `ends` the other end, `columns` in the same order.

    Rows that versions of a graph share lie anywhere: `offsets` [rows] says where each begins, `stops` [rows] where it
    stops. Only `engine/cpu/live.py` makes such lists. `is_streamed` says of a class that only `offsets` are in memory.
    """

    is_streamed: ClassVar[bool] = False
    offsets: NDArray[np.uint64]
    ends: NDArray[Any]
    columns: Mapping[str, NDArray[Any]]
    stops: NDArray[np.uint64] | None = None

    @property
    def num_edges(self) -> int:
        return int(self.ends.size)

    def all_ends(self) -> NDArray[Any]:
        """Return the ends, unpacked where they are streamed."""
        return self.ends

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.ends.nbytes + sum(c.nbytes for c in self.columns.values())


def in_order(
    rows: EdgeList,
    order: NDArray[np.int64],
    new_ids: NDArray[np.uint32] | None = None,
    *,
    ascending: bool = False,
    num_threads: int = 1,
    moved_ends: NDArray[np.uint32] | None = None,
) -> EdgeList:
    """Return rows, or some of them, in another order.

    Columns are moved when they are first read: few programs read them all.

    Args:
        rows: The edges.
        order: [rows or fewer]: the number of each row before.
        new_ids: The new id of each end, by its id; None where ends keep theirs.
        ascending: Whether edges of a row ascend by their new ends; else they stay in their order.
        num_threads: Threads that move them.
        moved_ends: The ends in that order by their new ids, where they are known already.
    """
    from sigps.kernels.cpu.layout import rows_in_order

    offsets = np.zeros(order.size + 1, dtype=np.uint64)
    np.cumsum(np.diff(rows.offsets)[order], out=offsets[1:])
    begins = rows.offsets
    goals = np.linspace(0, int(offsets[-1]), num_threads + 1).astype(np.uint64)
    cuts = [0, *np.searchsorted(offsets, goals[1:-1]).tolist(), order.size]

    def keys_of(first: int, last: int) -> NDArray[np.uint64]:
        ends = np.empty(
            int(offsets[last] - offsets[first]), rows.ends.dtype if new_ids is None else np.uint32
        )
        rows_in_order(begins, order[first:last], rows.ends, new_ids, ends)
        keys = np.repeat(
            np.arange(last - first, dtype=np.uint64), np.diff(offsets[first : last + 1]).view(np.int64)
        )
        keys <<= np.uint64(32)
        keys |= ends
        return keys

    def moved(values: NDArray[Any], *, is_column: bool) -> NDArray[Any]:
        names = None if is_column else new_ids
        result = np.empty(int(offsets[-1]), dtype=values.dtype if names is None else names.dtype)

        def move(span: tuple[int, int]) -> None:
            first, last = span
            part = result[int(offsets[first]) : int(offsets[last])]
            if not ascending or is_column:
                rows_in_order(begins, order[first:last], values, names, part)
            for begin, end in _pieces(offsets, first, last) if ascending else ():
                piece, keys = result[int(offsets[begin]) : int(offsets[end])], keys_of(begin, end)
                if is_column:
                    piece[:] = piece[np.argsort(keys, kind="stable")]
                else:
                    keys.sort()
                    piece[:] = keys.astype(np.uint32)

        with ThreadPoolExecutor(num_threads, thread_name_prefix="sigps-layout") as pool:
            list(pool.map(move, pairwise(cuts)))
        return result

    columns = dict(rows.columns)  # each may go when it has been moved
    return EdgeList(
        offsets,
        moved(rows.ends, is_column=False) if moved_ends is None else moved_ends,
        MovedColumns(columns, lambda name: moved(columns.pop(name), is_column=True)),
    )


_PIECE_EDGES = 1 << 16
"""Edges that are sorted at a time: their keys stay in a core's cache."""


def _pieces(offsets: NDArray[np.uint64], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with about so many edges."""
    while first < last:
        most = offsets[first] + np.uint64(_PIECE_EDGES)
        stop = min(last, max(first + 1, int(np.searchsorted(offsets, most, side="right")) - 1))
        yield first, stop
        first = stop


def uses_of(ends: NDArray[Any], num_vertices: int, num_threads: int) -> NDArray[np.uint32]:
    """Return how often each vertex is among `ends`, [num_vertices].

    Threads count apart, so no more are taken than have four ends a vertex each.
    """
    from sigps.kernels.cpu.layout import count_uses

    num_threads = max(1, min(num_threads, ends.size // (4 * num_vertices + 1)))
    cuts = np.linspace(0, ends.size, num_threads + 1).astype(np.int64).tolist()
    uses = np.zeros((num_threads, num_vertices), dtype=np.uint32)
    with ThreadPoolExecutor(num_threads, thread_name_prefix="sigps-layout") as pool:
        list(pool.map(lambda t: count_uses(ends[cuts[t] : cuts[t + 1]], uses[t]), range(num_threads)))
    total: NDArray[np.uint32] = uses[0]
    for counted in uses[1:]:
        total += counted
    return total


class MovedColumns(Mapping[str, Any]):
    """Columns of edges in another order, each brought there when it is first read.

    Args:
        names: Theirs.
        move: Returns one in that order.
    """

    def __init__(self, names: Iterable[str], move: Callable[[str], NDArray[Any]]) -> None:
        self._names, self._move = tuple(names), move
        self._moved: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._moved:
            if name not in self._names:
                raise KeyError(name)
            self._moved[name] = self._move(name)
        return self._moved[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def grouped(
    rows: NDArray[np.uint32], ends: NDArray[Any], columns: dict[str, NDArray[Any]], num_rows: int
) -> EdgeList:
    """Group edges by row, in their given order inside a row."""
    from sigps.kernels.cpu.layout import order_by_row

    offsets, order = order_by_row(rows, num_rows)
    return EdgeList(offsets, ends[order], {name: column[order] for name, column in columns.items()})


def by_source(incoming: EdgeList, num_sources: int) -> EdgeList:
    """Return in-edges grouped by their source."""
    from sigps.kernels.cpu.layout import targets_by_source

    num_edges = incoming.ends.size
    offsets = np.zeros(num_sources + 1, dtype=np.uint64)
    np.cumsum(uses_of(incoming.ends, num_sources, 1), out=offsets[1:], dtype=np.uint64)
    targets = np.empty(num_edges, dtype=np.uint32)
    targets_by_source(
        incoming.offsets, incoming.ends, targets, np.empty(0, dtype=np.int64), offsets[:-1].copy()
    )

    def moved(name: str) -> NDArray[Any]:
        order = np.empty(num_edges, dtype=np.int64)
        begins = offsets[:-1].copy()
        targets_by_source(incoming.offsets, incoming.ends, np.empty_like(targets), order, begins)
        column: NDArray[Any] = incoming.columns[name][order]
        return column

    return EdgeList(offsets, targets, MovedColumns(incoming.columns, moved))


# --- arrays of NumPy or CuPy -----------------------------------------------


def rows_of_edges(xp: Any, offsets: Any, num_edges: int) -> Any:
    """Return the row of each edge, [num_edges], int64, of rows that begin at `offsets` (int64)."""
    return xp.searchsorted(offsets[1:], xp.arange(num_edges), side="right")


def positions_before(xp: Any, before: Any, after: Any, order: Any) -> Any:
    """Return the position of each edge before rows were brought into another order, [num_edges], by its new one.

    Args:
        xp: NumPy or CuPy.
        before: [num_rows + 1]: where rows began.
        after: [num_rows + 1]: where they begin in the new order.
        order: [num_rows]: the earlier number of each row.

    >>> positions_before(np, np.array([0, 2, 3, 6]), np.array([0, 3, 5, 6]), np.array([2, 0, 1])).tolist()
    [3, 4, 5, 0, 1, 2]
    """
    after = after.astype(xp.int64)
    moved = before.astype(xp.int64)[order] - after[:-1]
    num_edges = int(after[-1])
    return xp.arange(num_edges) + moved[rows_of_edges(xp, after, num_edges)]


def reverse_edges(xp: Any, sources: Any, targets: Any, rows: Any, gids: Any, num_vertices: int) -> Any:
    """Return the entry of each edge's reverse in an undirected graph, [num_edges]; of parallel ones the first.

    O(log entries) each; waits for the device.

    Args:
        xp: NumPy or CuPy.
        sources: [entries], int64: the row of each entry, ascending.
        targets: [entries], of a type that sums to int64: gids, ascending in each row; the edges are the first entries.
        rows: [num_edges]: the row of each edge's target.
        gids: [num_owned]: the vertices of the rows of the edges.
        num_vertices: Above every gid.

    Raises:
        GraphError: If an edge has none.
    """
    entries = sources * num_vertices + targets
    wanted = rows.astype(xp.int64) * num_vertices + gids[sources[: rows.size]]
    found = xp.searchsorted(entries, wanted)
    require_symmetry(int((entries[xp.minimum(found, entries.size - 1)] != wanted).sum()))
    return found


def require_symmetry(num_missing: int | Literal["some"]) -> None:
    """Raise an error where edges of an undirected graph have no reverse.

    Args:
        num_missing: How many have none; "some" where nobody counted.

    Raises:
        GraphError: If some have none.
    """
    if num_missing:
        raise GraphError(
            f"the graph is undirected, but {num_missing if num_missing == 'some' else f'{num_missing:,}'} edges are "
            "stored at one of their ends only: the store that it was read from is wrong. Write it again from its source"
        )


class _At:
    """An array by its address, as NumPy takes it."""

    def __init__(self, values: NDArray[Any], address: int, size: int) -> None:
        self._values = values  # lives as long as what NumPy makes of this
        self.__array_interface__ = {
            "version": 3,
            "typestr": values.dtype.str,
            "shape": (size, *values.shape[1:]),
            "data": (address, False),
        }


def moved(values: NDArray[Any], first: int) -> NDArray[Any]:
    """Return an array whose elements from `first` on are these values; those before are not there.

    So loops find edges at their positions among all, which `Edges.offsets` has, with a part of them in memory. Only
    elements that are there may be read. The values lie in one piece.
    """
    address = (values.ctypes.data - first * values.strides[0]) % 2**64
    return np.asarray(_At(values, address, first + len(values)))
