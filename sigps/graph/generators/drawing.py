"""Recursive matrices that a GPU draws by rows: all edges are drawn anew for each piece, and those of its rows kept.

That takes less than to keep the edges, and nothing crosses between ranks that draw rows of their own.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.device.cuda import Gpu, Module
from sigps.device.linking import link_kernel
from sigps.device.transfers import bring
from sigps.graph import random_bits as rb
from sigps.graph.building.on_gpu import rows_of_keys
from sigps.graph.building.spread import bins_of
from sigps.graph.generators.edge_streams import EdgeStream

__all__ = ["PIECE_ARCS", "Drawing", "join_ranges", "launch_drawing"]

PIECE_ARCS = 1 << 30
"""Of a piece at most, repeats among them: they take 24 bytes each of the GPU's memory, 28 with weights."""


class Drawing:
    """A recursive matrix, and what its kernels take.

    Attributes:
        num_loops: Self-loops among its edges, once `count` has counted them; 0 before.
    """

    def __init__(self, stream: EdgeStream, gpu: Gpu) -> None:
        import cupy

        matrix = stream.matrix
        assert matrix is not None
        self.stream, self.gpu, self.num_loops = stream, gpu, 0
        self._keys = cupy.asarray(matrix.round_keys)
        drawn = np.uint64(stream.num_edges), np.uint32(matrix.scale), *matrix.thresholds
        by = np.uint64(rb.seed_key(matrix.seed)), self._keys, np.uint32(self._keys.size)
        self._given = *drawn, *by

    def count(self, bounds: NDArray[np.int64], numbers: Any) -> NDArray[np.int64]:
        """Return what is stored in ranges of rows, [ranges], repeats among it, of an undirected matrix without loops.

        Args:
            bounds: [ranges], their first rows.
            numbers: Those of the vertices, on the device; None where rows are vertices.
        """
        import cupy

        counts, loops = cupy.zeros(bounds.size, np.uint64), cupy.zeros(1, np.uint64)
        ranges = _or_null(numbers), cupy.asarray(bounds.astype(np.uint32)), np.uint32(bounds.size)
        given = *self._given, *ranges, counts, loops
        launch_drawing(self.gpu, "count_stored_rmat_thread_mapped", self.stream.num_edges, *given)
        self.num_loops = int(loops.get()[0])
        found: NDArray[np.int64] = counts.get().astype(np.int64)
        return found

    def count_ends(self, edges: range) -> tuple[NDArray[np.int64], int]:
        """Return the ends in each bin of rows, [bins], which `spread.balanced_bounds` takes, and the self-loops.

        Args:
            edges: The numbers of the edges that are counted.
        """
        import cupy

        shift, num_bins = bins_of(self.stream.num_vertices)
        counts, loops = cupy.zeros(num_bins, np.uint64), cupy.zeros(1, np.uint64)
        _, *by = self._given
        those = np.uint64(edges.start), np.uint64(len(edges)), *by, np.uint8(not self.stream.directed)
        given = *those, np.uint32(shift), counts, loops
        launch_drawing(self.gpu, "count_ends_rmat_thread_mapped", len(edges), *given)
        return counts.get().astype(np.int64), int(loops.get()[0])

    def rows(self, first: int, end: int, most: int, numbers: Any = None) -> tuple[Any, Any, tuple[int, int]]:
        """Return a piece of the rows as `rows_of_keys` does.

        Args:
            first: Its first row.
            end: The row behind its last.
            most: At most so much is stored of it, repeats among it.
            numbers: As of `count`.
        """
        import cupy

        keys, found = cupy.empty(most, np.uint64), cupy.zeros(1, np.uint64)
        stored = np.uint8(not self.stream.directed), np.uint8(self.stream.self_loops == "keep")
        where = _or_null(numbers), np.uint32(first), np.uint32(end), keys, np.uint64(most), found
        launch_drawing(
            self.gpu, "store_rmat_thread_mapped", self.stream.num_edges, *self._given, *stored, *where
        )
        num_keys = int(found.get()[0])
        assert num_keys <= most
        keys = keys[:num_keys]
        if num_keys:
            keys.sort()
        first_row, drops = 0 if numbers is not None else first, self.stream.duplicates == "drop"
        return rows_of_keys(keys, self.gpu, end - first, first_row=first_row, drops_repeats=drops)

    def weigh(self, offsets: Any, targets: Any, first: int, order: Any = None) -> NDArray[np.float32]:
        """Return the weights of a piece's edges, [edges], on the host.

        Args:
            offsets: Of its rows, as `rows` returns them.
            targets: Likewise.
            first: Its first row.
            order: The vertex of each row, on the device; None where rows are vertices.
        """
        import cupy

        weights, num_rows = cupy.empty(targets.size, np.float32), offsets.size - 1
        of_rows = offsets, targets, np.uint32(num_rows), np.uint32(first)
        given = *of_rows, _or_null(order), np.uint64(rb.seed_key(self.stream.seed)), weights
        launch_drawing(self.gpu, "weigh_rows_warp_mapped", 32 * num_rows, *given)
        return bring(weights, weights.dtype)


def join_ranges(
    bounds: NDArray[np.int64], counts: NDArray[np.int64], most: int, end: int
) -> list[tuple[int, int, int]]:
    """Join ranges of rows to pieces of at most so many arcs, unless a range has more.

    >>> join_ranges(np.array([0, 10, 20, 30]), np.array([5, 3, 9, 1]), 8, 35)
    [(0, 20, 8), (20, 30, 9), (30, 35, 1)]
    """
    found: list[tuple[int, int, int]] = []
    stops = [*bounds.tolist(), end][1:]
    for first, stop, count in zip(bounds.tolist(), stops, counts.tolist(), strict=True):
        if found and found[-1][2] + count <= most:
            found[-1] = found[-1][0], stop, found[-1][2] + count
        else:
            found.append((first, stop, count))
    return found


def launch_drawing(gpu: Gpu, name: str, num_items: int, *arguments: Any) -> None:
    """Launch a kernel of `drawing.cu` over items; does not wait."""
    kernel = _module(gpu).kernel(name)
    kernel.launch(max(1, min(gpu.num_sms * 16, -(-num_items // 256))), 256, arguments)


@functools.cache
@spent_on("compile")
def _module(gpu: Gpu) -> Module:
    return Module(link_kernel("drawing", gpu.arch))


def _or_null(numbers: Any) -> Any:
    return np.uint64(0) if numbers is None else numbers
