"""Recursive matrices that are drawn on a GPU and written as packed stores, for graphs larger than its memory.

All edges are drawn anew for each piece of the rows, since that takes less than to keep them. A first pass counts the
degrees, by which rows are then numbered; a second one sorts the rows of each piece in that order, and CPU cores pack
them while the GPU draws the next piece. What is written is what `Graph.save(packed=True, order="degree")` writes of the
graph that `generate` returns, byte for byte but for the report's times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import Gpu
from sigps.device.transfers import bring, send
from sigps.errors import DeviceError
from sigps.graph.degrees import degree_order
from sigps.graph.formats.packed_store import write_packed
from sigps.graph.formats.store_folders import StorePath
from sigps.graph.formats.store_header import Packing, StoredArray, StoreHeader
from sigps.graph.generators.drawing import PIECE_ARCS, Drawing, join_ranges, launch_drawing
from sigps.graph.generators.edge_streams import EdgeStream
from sigps.graph.packing.packer import PackableRows, Page
from sigps.graph.packing.table import chains, cut_rows
from sigps.graph.report import LoadReport
from sigps.group import Alone

__all__ = ["obstacle_to_pieces", "write_drawn"]

_MOST_RANGES = 1024  # whose arcs are counted at once


def obstacle_to_pieces(stream: EdgeStream) -> str:
    """Return why edges are not drawn piece by piece; empty where they can be."""
    if stream.matrix is None:
        return "only the edges of 'rmat' are drawn on a GPU"
    if stream.directed or stream.self_loops != "drop":
        return "it is built for undirected graphs without self-loops"
    return "" if stream.num_vertices < 1 << 31 else "it has 2**31 vertices or more"


def write_drawn(stream: EdgeStream, path: StorePath, gpu: Gpu, *, piece_arcs: int = PIECE_ARCS) -> LoadReport:
    """Draw a recursive matrix and write it as a packed store, rows by descending degree.

    The host keeps 12 bytes a vertex, and 4 to 8 an arc of two pieces; the GPU 8 a vertex and a piece.

    Args:
        stream: The edges, to which there is no obstacle.
        path: The folder, or several.
        gpu: The current GPU.
        piece_arcs: Of a piece at most, unless a thousandth of the rows has more; equal edges count.

    Returns:
        What was drawn.

    Raises:
        GraphError: If the path cannot be written.
        DeviceError: If the GPU has too little memory for a piece.
    """
    import cupy

    started, drawing = time.perf_counter(), Drawing(stream, gpu)
    try:
        rows = _DrawnRows(drawing, piece_arcs)
        report = LoadReport(
            format="generated",
            source="rmat",
            directed=False,
            num_vertices=stream.num_vertices,
            edges_given=stream.num_edges,
            edges_stored=int(rows.offsets[-1]),
            duplicates=rows.num_repeats // 2,
            duplicates_policy=stream.duplicates,
            self_loops=drawing.num_loops,
            self_loops_policy=stream.self_loops,
            isolated=stream.num_vertices - (rows.offsets.size - 1),
            base=0 if stream.num_vertices else None,
        )
        columns = [] if stream.weights is None else ["weight"]

        def header(arrays: dict[str, StoredArray]) -> StoreHeader:
            report.num_bytes = sum(array.count * np.dtype(array.dtype).itemsize for array in arrays.values())
            report.seconds = time.perf_counter() - started
            return StoreHeader(
                directed=False,
                num_vertices=stream.num_vertices,
                num_edges=report.edges_stored,
                id_kind="identity",
                id_base=0,
                columns=columns,
                vertex_columns=[],
                report=report,
                arrays=arrays,
                packing=Packing("degree", report.isolated, ["<f4"] * len(columns)),
            )

        write_packed(path, Alone(), rows, len(columns), [], header)
        return report
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise DeviceError(
            f"the GPU has too little memory for {piece_arcs:,} arcs at once: {error}. Draw smaller pieces",
            rank=0,
        ) from error
    finally:
        cupy.get_default_memory_pool().free_all_blocks()


class _DrawnRows:
    """The rows by descending degree, drawn piece by piece.

    Attributes:
        order: The vertex of each row, [rows].
        offsets: [rows + 1].
        table: Which rows and arcs the pages hold.
        num_repeats: Arcs that were drawn before, dropped or not.
    """

    def __init__(self, drawing: Drawing, piece_arcs: int) -> None:
        import cupy

        self._drawing = drawing
        degrees, self.num_repeats = _degrees(drawing, piece_arcs)
        vertices = np.flatnonzero(degrees)
        order = vertices[degree_order(degrees[vertices])]
        self.order: NDArray[np.int64] | None = order
        self.offsets = np.zeros(order.size + 1, dtype=np.uint64)
        np.cumsum(degrees[order], out=self.offsets[1:])
        self.table = cut_rows(self.offsets)
        self._numbers, on_gpu = (
            cupy.zeros(drawing.stream.num_vertices, np.uint32),
            send(order.astype(np.uint32)),
        )
        given = on_gpu, np.uint64(order.size), self._numbers
        launch_drawing(drawing.gpu, "number_thread_mapped", order.size, *given)
        self._order = None if drawing.stream.weights is None else on_gpu
        begins = np.array([int(self.table.first_rows[chain[0]]) for chain in chains(self.table)])
        bounds = begins[:: max(1, -(-begins.size // _MOST_RANGES))]
        counts = drawing.count(bounds, self._numbers) if begins.size else np.zeros(0, np.int64)
        self._pieces = join_ranges(bounds, counts, piece_arcs, order.size)

    def pages(self, num_threads: int) -> Iterator[Page]:
        """Yield the pages in their order; a GPU draws the next piece meanwhile."""
        with ThreadPoolExecutor(1) as ahead:
            waiting = [ahead.submit(self._piece, *piece) for piece in self._pieces[:1]]
            for i in range(len(self._pieces)):
                piece = waiting.pop().result()
                waiting += [
                    ahead.submit(self._piece, *following) for following in self._pieces[i + 1 : i + 2]
                ]
                yield from piece.pages(num_threads)
                del piece

    def _piece(self, first: int, end: int, count: int) -> PackableRows:
        import cupy

        drawing = self._drawing
        with cupy.cuda.Device(drawing.gpu.ordinal):
            begins, targets, _ = drawing.rows(first, end, count, self._numbers)
            offsets = self.offsets[first : end + 1] - self.offsets[first]
            assert targets.size == int(offsets[-1])
            columns = [] if self._order is None else [drawing.weigh(begins, targets, first, self._order)]
            return PackableRows(offsets, bring(targets, targets.dtype), columns, None, first_row=first)


def _degrees(drawing: Drawing, piece_arcs: int) -> tuple[NDArray[np.uint32], int]:
    """Return the degree of each vertex, and the repeats."""
    num_vertices, num_repeats = drawing.stream.num_vertices, 0
    found = np.zeros(num_vertices, dtype=np.uint32)
    bounds = np.unique(np.linspace(0, num_vertices, _MOST_RANGES, endpoint=False).astype(np.int64))
    for first, end, count in join_ranges(bounds, drawing.count(bounds, None), piece_arcs, num_vertices):
        offsets, _, repeats = drawing.rows(first, end, count)
        found[first:end] = np.diff(bring(offsets, offsets.dtype))
        num_repeats += repeats[0]
    return found, num_repeats
