"""In-edges in tiles and rows in the memory of a GPU (`kernels/cuda/edges.cuh`, laid out by `tile_layout.cu`).

Edges are sorted once, by row and source in descending order of degrees. Vertices are then numbered anew within their
segments, by what is left of their rows, so that neighbouring lanes have rows of about the same length; the order of
pairs in a row stays. The edges of a pair are in an order in which lanes that read at once read from different banks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import check_fits
from sigps.device.transfers import bring, fill_with, send
from sigps.engine.gpu.layout import lay_out
from sigps.engine.gpu.memory_plan import SORTING
from sigps.engine.gpu.tiling import FEWEST_EDGES, LONG_PAIR, NEAR, PIECE, Tiling, TilingCounts, share_out
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import columns_of
from sigps.errors import ConfigError
from sigps.kernels.cuda.lease import EDGES, NO_VERTEX, TILES
from sigps.native.kernel import compiled

__all__ = ["Launch", "Renamed", "TiledEdges", "tiled_edges"]

log = logging.getLogger(__name__)

Launch = Callable[..., None]
"""Launches a kernel of a file: its name, how many threads it can use, and its arguments."""

_IS_PIECE = 1 << 31
_MOST_LONGER = 1 << 20


@dataclass(frozen=True, eq=False)
class Renamed:
    """The numbers of vertices in this layout.

    Attributes:
        numbers: [num_rows], uint32, on the device: the new number of each earlier one.
        degrees: [num_rows], uint32, on the host: in-degrees by new numbers.
        num_pairs: [num_rows], uint32, on the host: the pairs of each new row.
        stops: [num_rows], uint32, on the device: where the edges of each new row end among keys.
    """

    numbers: Any
    degrees: NDArray[np.uint32]
    num_pairs: NDArray[np.uint32]
    stops: Any


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a row and a segment, as `tile_layout.cu` has them; arrays on the device."""

    first_pairs: Any
    starts: Any
    rows: Any
    stops: Any
    order: Any
    num_pairs: int
    num_lanes: int
    longer: NDArray[np.int64]

    @property
    def edges(self) -> tuple[Any, ...]:
        """What kernels take to know the edges of each."""
        return self.starts, self.rows, self.stops, np.uint64(self.num_pairs)


@dataclass(frozen=True, eq=False)
class _Slices:
    """Slices in their order; arrays on the device but for `widths`, `are_pieces` and `segments`."""

    widths: NDArray[np.int64]
    are_pieces: NDArray[np.bool_]
    segments: NDArray[np.int64]
    first_lanes: NDArray[np.int64]
    begins: Any
    origins: Any
    sizes: Any
    lines: Any
    pieces: NDArray[np.uint32]


class TiledEdges:
    """In-edges in tiles and rows.

    Attributes:
        rows: The rows, of what tiles leave.
        ends: Their ends: sources, and partials behind all local ids.
        num_slices: Slices of tiles.
        renamed: The numbers of vertices.
        segment_size: Sources of a segment.
    """

    def __init__(
        self,
        edges: EdgeList,
        lids: Any,
        degrees: NDArray[np.uint32],
        launch: Launch,
        tiling: Tiling,
        *,
        first_partial: int,
        keys: Any,
        counts: _Counts,
    ) -> None:
        import cupy

        self._edges, self._lids, self._degrees, self._launch = edges, lids, degrees, launch
        size = tiling.size
        self.segment_size, self._first_partial = size, first_partial
        self.renamed = renamed = self._rename(counts)
        pairs = self._find_pairs(keys, counts, renamed)
        slices = self._find_slices(pairs)
        self.num_slices = slices.widths.size
        left = renamed.num_pairs.copy()
        _, count, _, row = pairs.longer.T
        np.add.at(left, row, (-(-count // PIECE) - 1).astype(np.uint32))
        on_host = lay_out(left, descending=False)
        self.rows = on_host.on_device(cupy.asarray)
        self.ends = cupy.zeros(max(1, on_host.num_positions), np.uint32)
        partials = cupy.empty(pairs.num_pairs, np.uint32)
        self._rows_of_partials = cupy.empty(32 * self.num_slices, np.uint32)
        fill_with(self._rows_of_partials, NO_VERTEX.to_bytes(4, "little"))
        first_lanes = cupy.asarray(slices.first_lanes.astype(np.uint32))
        launch(
            "place_partials_thread_mapped",
            pairs.num_lanes,
            *(pairs.order, np.uint64(pairs.num_lanes), slices.begins, first_lanes, pairs.rows),
            *(partials, self._rows_of_partials),
        )
        pieces = slices.pieces
        if pieces.size:
            told = cupy.asarray(pieces), np.uint64(len(pieces)), partials, self._rows_of_partials
            launch("place_pieces_thread_mapped", len(pieces), *told)
        launch(
            "place_rows_thread_mapped",
            pairs.num_pairs,
            *(self.structure(), keys, *pairs.edges[:3], pairs.first_pairs, pairs.edges[3]),
            *(partials, renamed.numbers, np.uint32(first_partial), self.ends),
        )
        self._place_more(pieces)
        self._lines, self._first_lanes = slices.lines, first_lanes
        self._num_lines = int(slices.widths.sum())
        self._words = cupy.empty(max(1, 32 * self._num_lines), np.uint32)
        launch(
            "place_words_warp_mapped",
            32 * self.num_slices,
            *(keys, pairs.order, *pairs.edges, slices.origins, slices.sizes, slices.lines),
            *(np.uint64(self.num_slices), renamed.numbers, np.uint32(size)),
            *(np.uint32(tiling.num_banks), self._words),
        )
        shares = share_out(slices.widths, slices.are_pieces, slices.segments, tiling.num_shares)
        self._shares = [cupy.asarray(a) for a in (shares.first_tasks, shares.segments, shares.runs)]
        self._num_shares = tiling.num_shares
        self._first_free = _end_of_unequal(renamed.num_pairs, renamed.degrees)
        self._columns: dict[str, Any] = {}

    def _rename(self, counts: _Counts) -> Renamed:
        """Number vertices anew within their segments, in descending order of the pairs of their rows."""
        import cupy

        num_rows = self._degrees.size
        by = np.uint64(num_rows), np.uint32(self.segment_size)
        num_pairs, order = cupy.asarray(counts.num_pairs), cupy.empty(num_rows, np.uint64)
        self._launch("order_rows_thread_mapped", num_rows, num_pairs, *by, order)
        order.sort()
        given = order, num_pairs, cupy.asarray(self._degrees), counts.offsets
        found = [cupy.empty(num_rows, np.uint32) for _ in range(4)]
        self._launch("rename_rows_thread_mapped", num_rows, *given, *by, *found)
        pairs, degrees = (bring(array, np.dtype(np.uint32)) for array in found[1:3])
        return Renamed(found[0], degrees, pairs, found[3])

    def _find_pairs(self, keys: Any, counts: _Counts, renamed: Renamed) -> _Pairs:
        import cupy

        num_rows, size = self._degrees.size, np.uint32(self.segment_size)
        firsts = np.empty(num_rows + 1, np.uint32)
        _cumulate(renamed.num_pairs, firsts)
        num_pairs = int(firsts[-1])
        first_pairs = cupy.asarray(firsts)
        starts, rows = cupy.empty(num_pairs, np.uint32), cupy.empty(num_pairs, np.uint32)
        by = np.uint64(num_rows), size, renamed.numbers, first_pairs
        self._launch("mark_pairs_warp_mapped", 32 * num_rows, keys, counts.offsets, *by, starts, rows)
        order, found = cupy.empty(num_pairs, np.uint64), cupy.zeros(2, np.uint32)
        longer = cupy.empty(4 * _MOST_LONGER, np.uint32)
        self._launch(
            "order_pairs_thread_mapped",
            num_pairs,
            *(keys, starts, rows, renamed.stops, np.uint64(num_pairs), size, np.uint32(LONG_PAIR)),
            *(order, found, longer, np.uint32(_MOST_LONGER)),
        )
        order.sort()
        num_lanes, num_longer = (int(count) for count in found.get())
        listed = longer[: 4 * num_longer].get().reshape(-1, 4).astype(np.int64)
        listed = listed[np.lexsort((listed[:, 0], listed[:, 2]))]
        return _Pairs(first_pairs, starts, rows, renamed.stops, order, num_pairs, num_lanes, listed)

    def _find_slices(self, pairs: _Pairs) -> _Slices:
        """Cut pairs into slices: of each segment the pieces of longer pairs, then the lanes of others."""
        import cupy

        num_segments = -(-self._degrees.size // self.segment_size)
        begins = cupy.empty(num_segments + 1, np.uint32)
        given = pairs.order, np.uint64(pairs.num_lanes), np.uint64(num_segments), begins
        self._launch("find_segments_thread_mapped", num_segments + 1, *given)
        lane_begins = begins.get().astype(np.int64)
        of_lanes = -(-np.diff(lane_begins) // 32)
        pair, count, segment, row = pairs.longer.T
        num_pieces = -(-count // PIECE)
        of_pieces = np.bincount(segment, weights=num_pieces, minlength=num_segments).astype(np.int64)
        first_slices = np.concatenate([[0], np.cumsum(of_lanes + of_pieces)])
        first_lanes = first_slices[:-1] + of_pieces
        num_slices = int(first_slices[-1])
        origins, sizes, widths = (np.zeros(num_slices, np.int64) for _ in range(3))
        are_pieces = np.zeros(num_slices, np.bool_)
        segments = np.repeat(np.arange(num_segments), of_lanes + of_pieces)
        # lanes
        lanes = np.flatnonzero(_in_ranges(first_lanes, of_lanes, num_slices))
        in_segment = lanes - first_lanes[segments[lanes]]
        origins[lanes] = lane_begins[segments[lanes]] + 32 * in_segment
        sizes[lanes] = np.minimum(32, lane_begins[segments[lanes] + 1] - origins[lanes])
        most = cupy.empty(lanes.size, np.uint32)
        firsts = cupy.asarray(origins[lanes].astype(np.uint32))
        of_slices = pairs.order, firsts, np.uint64(lanes.size), most
        self._launch("measure_slices_thread_mapped", lanes.size, *of_slices)
        widths[lanes] = (most.get().astype(np.int64) + 1) // 2
        # pieces, in the order of pairs
        which = np.repeat(np.arange(pair.size), num_pieces)
        number = np.arange(which.size) - np.repeat(np.cumsum(num_pieces) - num_pieces, num_pieces)
        slices = np.flatnonzero(~_in_ranges(first_lanes, of_lanes, num_slices))
        are_pieces[slices] = True
        sizes[slices] = np.minimum(PIECE, count[which] - number * PIECE)
        widths[slices] = -(-sizes[slices] // 64)
        starts = self._starts_of(pairs, pair)
        origins[slices] = starts[which] + number * PIECE
        sizes[slices] |= _IS_PIECE
        lines = np.concatenate([[0], np.cumsum(widths)])
        begin, size, line = (cupy.asarray(a.astype(np.uint32)) for a in (origins, sizes, lines))
        pieces = np.stack([pair[which], number, slices, row[which]], axis=1).astype(np.uint32)
        return _Slices(widths, are_pieces, segments, first_lanes, begins, begin, size, line, pieces)

    def _starts_of(self, pairs: _Pairs, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first edge of some pairs."""
        import cupy

        found: Any = cupy.empty(numbers.size, np.uint32)
        which = cupy.asarray(numbers.astype(np.uint32))
        one = np.uint64(numbers.size), np.uint64(1)
        self._launch("take_rows_32_thread_mapped", numbers.size, pairs.starts, which, *one, found)
        starts: NDArray[np.int64] = found.get().astype(np.int64)
        return starts

    def _place_more(self, pieces: NDArray[np.uint32]) -> None:
        """Place the pieces of a pair but the first: behind the pairs of their row."""
        import cupy

        more = pieces[pieces[:, 1] > 0].astype(np.int64)
        if not more.size:
            return
        more = more[np.argsort(more[:, 3], kind="stable")]
        rows = more[:, 3]
        begins = np.searchsorted(rows, rows)
        places = self.renamed.num_pairs[rows] + (np.arange(rows.size) - begins)
        placed = np.stack([rows, places, more[:, 2]], axis=1).astype(np.uint32)
        given = cupy.asarray(placed), np.uint64(rows.size)
        partial = np.uint32(self._first_partial)
        self._launch("place_more_thread_mapped", rows.size, self.structure(), *given, partial, self.ends)

    def column(self, name: str) -> Any:
        """Return the one value that an edge column has (`find_tiling_obstacle`), [1]."""
        import cupy

        if name not in self._columns:
            (values,) = columns_of(self._edges, (name,))
            self._columns[name] = cupy.asarray(np.resize(values[:1], 1))
        return self._columns[name]

    def structure(self) -> Any:
        """Return what kernels take of the rows."""
        filled = np.zeros((), dtype=EDGES)
        rows = self.rows
        arrays = {"offsets": rows.offsets, "slices": rows.slices, "ends": self.ends, "degrees": rows.degrees}
        for name, array in arrays.items():
            filled[name] = array.data.ptr
        filled["num_csr_rows"], filled["num_rows"] = rows.num_csr_rows, rows.degrees.size
        return filled

    def tiles(self) -> Any:
        """Return what kernels take of the tiles."""
        filled = np.zeros((), dtype=TILES)
        first_tasks, segments, runs = self._shares
        arrays = {"first_tasks": first_tasks, "segments": segments, "runs": runs}
        arrays |= {"first_lanes": self._first_lanes, "lines": self._lines}
        arrays |= {"words": self._words, "rows": self._rows_of_partials}
        for name, array in arrays.items():
            filled[name] = array.data.ptr
        filled["num_shares"], filled["segment_size"] = self._num_shares, self.segment_size
        filled["first_free"] = self._first_free
        filled["first_partial"] = self._first_partial
        return filled

    @property
    def nbytes(self) -> int:
        """The bytes that tiles and rows take."""
        arrays = self.ends, self._words, self._rows_of_partials, self._lines, self._first_lanes, *self._shares
        return self.rows.nbytes + sum(int(array.nbytes) for array in arrays)


@dataclass(frozen=True, eq=False)
class _Counts:
    """What decides whether tiles pay.

    Attributes:
        offsets: [num_rows + 1], uint64, on the device: where the edges of each row begin among keys.
        num_pairs: [num_rows], uint32, on the host.
        num_far: Edges whose source no block would keep.
    """

    offsets: Any
    num_pairs: NDArray[np.uint32]
    num_far: int


def count_pairs(keys: Any, degrees: NDArray[np.uint32], size: int, launch: Launch) -> _Counts:
    """Count the pairs of each row.

    Args:
        keys: [edges], uint64, ascending: row and source.
        degrees: [num_rows], on the host.
        size: Sources of a segment.
        launch: Launches kernels.
    """
    import cupy

    offsets = np.empty(degrees.size + 1, np.uint64)
    _cumulate(degrees, offsets)
    on_device, found = cupy.asarray(offsets), cupy.empty(degrees.size, np.uint32)
    far = cupy.zeros(1, np.uint64)
    by = np.uint64(degrees.size), np.uint32(size), np.uint32(NEAR)
    launch("count_pairs_warp_mapped", 32 * degrees.size, keys, on_device, *by, found, far)
    return _Counts(on_device, bring(found, np.dtype(np.uint32)), int(far.get()[0]))


def tiled_edges(
    edges: EdgeList,
    lids: Any,
    degrees: NDArray[np.uint32],
    launch: Launch,
    tiling: Tiling,
) -> TiledEdges | None:
    """Lay in-edges out in tiles and rows; None where that does not pay.

    Args:
        edges: The edges, rows and ends by their numbers on the host.
        lids: [num_rows], uint32, on the device: the number of each, in descending order of degrees.
        degrees: [num_rows]: in-degrees by these numbers.
        launch: Launches the kernels of `tile_layout.cu` and `layout.cu`.
        tiling: How.
    """
    num_edges, size = edges.ends.size, tiling.size
    if num_edges >= 2**32 or degrees.size > size << 16:
        if tiling.always:
            raise ConfigError(
                f"tiles='always' needs fewer than {2**32:,} in-edges and at most {size << 16:,} vertices; these are "
                f"{num_edges:,} and {degrees.size:,}. Use tiles='auto'"
            )
        return None
    if not tiling.always and num_edges < FEWEST_EDGES:
        return None
    check_fits({"edges": 4 * num_edges, "laying them out": num_edges * SORTING + edges.offsets.nbytes})
    keys = _make_keys(edges, lids, launch)
    keys.sort()
    counts = count_pairs(keys, degrees, size, launch)
    num_pairs = int(counts.num_pairs.sum(dtype=np.int64))
    counted = TilingCounts(num_edges, counts.num_far, num_pairs)
    reason = "" if tiling.always else counted.reason_against
    log.info("in-edges in %s: %s%s", "rows" if reason else "tiles", counted, f"; {reason}" if reason else "")
    if reason:
        return None
    given = edges, lids, degrees, launch
    return TiledEdges(*given, tiling, first_partial=-(-degrees.size // 32) * 32, keys=keys, counts=counts)


def _make_keys(edges: EdgeList, lids: Any, launch: Launch) -> Any:
    import cupy

    ends = send(edges.ends.astype(np.uint32, copy=False))
    keys = cupy.empty(ends.size, dtype=cupy.uint64)
    shape = np.zeros((), dtype=EDGES)
    shape["num_rows"] = lids.size
    launch("make_keys_warp_mapped", 32 * lids.size, shape, lids, cupy.asarray(edges.offsets), ends, keys)
    return keys


@compiled
def _cumulate(counts: NDArray[np.uint32], sums: NDArray[np.unsignedinteger[Any]]) -> None:
    """Write the sum of all counts before each, [counts + 1]; numpy takes several times as long."""
    total = 0
    for i in range(counts.size):
        sums[i] = total
        total += counts[i]
    sums[counts.size] = total


def _end_of_unequal(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> int:
    """Return behind which number two arrays are equal."""
    found = np.zeros(1, np.int64)
    _find_end_of_unequal(one, other, found)
    return int(found[0])


@compiled
def _find_end_of_unequal(
    one: NDArray[np.uint32], other: NDArray[np.uint32], found: NDArray[np.int64]
) -> None:
    end = one.size
    while end > 0 and one[end - 1] == other[end - 1]:
        end -= 1
    found[0] = end


def _in_ranges(begins: NDArray[np.int64], sizes: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """Return which numbers below `count` are in one of some ranges that do not overlap."""
    steps = np.zeros(count + 1, np.int64)
    np.add.at(steps, begins, 1)
    np.add.at(steps, begins + sizes, -1)
    return np.cumsum(steps[:-1]) > 0
