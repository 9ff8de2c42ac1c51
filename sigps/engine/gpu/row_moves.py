"""What `WalkedRows` does with rows of out-edges, by the kernels of `layout.cu`, or by NumPy.

CuPy's own functions would do it too, but compile a kernel for each step and sort what is sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from sigps.engine.partition.edge_list import positions_before, require_symmetry, reverse_edges, rows_of_edges

__all__ = ["HostMoves", "KernelMoves", "RowMoves"]


class RowMoves(Protocol):
    """Arrays are those of one module, NumPy or CuPy."""

    def moved(self, values: Any, before: Any, after: Any, order: Any, *, backwards: bool = False) -> Any:
        """Return values of edges in another order of their rows.

        Args:
            values: [edges].
            before: [num_rows + 1], uint64: where rows began.
            after: [num_rows + 1], uint64: where they begin in the new order.
            order: [num_rows], int64: the earlier number of each row.
            backwards: Whether to bring them from the new order to the earlier one instead.
        """

    def taken(self, values: Any, order: Any) -> Any:
        """Return values[order], uint32 both."""

    def widened(self, values: Any) -> Any:
        """Return uint32 as int64."""

    def reverse(self, offsets: Any, targets: Any, rows: Any, gids: Any, num_vertices: int) -> Any:
        """Return the position of each edge's reverse, [edges], int64; of parallel ones the first.

        Args:
            offsets: [all rows + 1], uint64.
            targets: [entries], uint32: gids, ascending in each row; the first entries are the edges.
            rows: [edges], uint32: the row of each edge's target.
            gids: [owned rows], int64: the vertices of the first rows.
            num_vertices: Above every gid.

        Raises:
            GraphError: If an edge has none.
        """


class HostMoves:
    """By NumPy: for tests, and where a GPU has no memory left."""

    def moved(self, values: Any, before: Any, after: Any, order: Any, *, backwards: bool = False) -> Any:
        places = positions_before(np, before, after, order)
        if not backwards:
            return values[places]
        found = np.empty_like(values)
        found[places] = values
        return found

    def taken(self, values: Any, order: Any) -> Any:
        return values[order]

    def widened(self, values: Any) -> Any:
        return values.astype(np.int64)

    def reverse(self, offsets: Any, targets: Any, rows: Any, gids: Any, num_vertices: int) -> Any:
        sources = rows_of_edges(np, offsets.astype(np.int64), targets.size)
        return reverse_edges(np, sources, targets, rows, gids, num_vertices)


class KernelMoves:
    """By kernels.

    Args:
        launch: Launches a kernel of `layout.cu`: its name, how many threads it can use, and its arguments.
    """

    def __init__(self, launch: Callable[..., None]) -> None:
        self._launch = launch

    def moved(self, values: Any, before: Any, after: Any, order: Any, *, backwards: bool = False) -> Any:
        import cupy

        found = cupy.empty(values.shape, values.dtype)
        name = f"move_rows_{8 * values.dtype.itemsize}_warp_mapped"
        length = np.uint64(values[:1].size)
        rows = before, after, order, np.uint64(order.size), length, np.uint8(backwards)
        self._launch(name, 32 * order.size, *rows, values, found)
        return found

    def taken(self, values: Any, order: Any) -> Any:
        import cupy

        found = cupy.empty(order.size, values.dtype)
        one = np.uint64(order.size), np.uint64(1)
        self._launch("take_rows_32_thread_mapped", order.size, values, order, *one, found)
        return found

    def widened(self, values: Any) -> Any:
        import cupy

        found = cupy.empty(values.size, np.int64)
        self._launch("widen_thread_mapped", values.size, values, np.uint64(values.size), found)
        return found

    def reverse(self, offsets: Any, targets: Any, rows: Any, gids: Any, num_vertices: int) -> Any:
        import cupy

        found, missing = cupy.empty(rows.size, np.int64), cupy.zeros(1, np.uint64)
        of_rows = offsets, targets, rows, gids, np.uint64(gids.size)
        self._launch("find_reverse_warp_mapped", 32 * gids.size, *of_rows, found, missing)
        require_symmetry(int(missing.get()[0]))
        return found
