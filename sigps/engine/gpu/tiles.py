"""In-edges in tiles and rows in the memory of a GPU (`kernels/cuda/edges.cuh`, laid out by `tile_layout.cu`).

Edges are sorted once, by row and source in descending order of degrees. Vertices are then numbered anew within their
segments, by what is left of their rows, so that neighbouring lanes have rows of about the same length; the order of
pairs in a row stays. The edges of a pair are in an order in which lanes that read at once read from different banks.
In a part of a graph the segments of ghosts follow those of owned vertices, and ghosts keep their numbers, by which
other ranks write to them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import check_fits, free_bytes
from sigps.device.transfers import fill_with, send
from sigps.engine.gpu.layout import BLOCK_DEGREE, Rows, end_of_above, lay_out_slices
from sigps.engine.gpu.memory_plan import ORDERING, SORTING
from sigps.engine.gpu.tiling import LONG_PAIR, NEAR, PIECE, Tiling, TilingCounts, share_out
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import columns_of
from sigps.errors import ConfigError
from sigps.kernels.cuda.lease import EDGES, NO_VERTEX, TILES
from sigps.native.kernel import compiled

__all__ = ["AddUp", "Launch", "Renamed", "Sources", "TiledEdges", "number_by_degree", "tiled_edges"]

log = logging.getLogger(__name__)

Launch = Callable[..., None]
"""Launches a kernel of a file: its name, how many threads it can use, and its arguments."""

AddUp = Callable[[Sequence[int]], list[int]]
"""Returns the sums of some numbers over all ranks that decide together. Collective among these."""


@dataclass(frozen=True)
class Sources:
    """The numbers that sources of edges have: those of rows come first.

    Attributes:
        count: How many there are.
        first_hot: The first of ghosts that are read often.
        num_hot: How many these are.
    """

    count: int
    first_hot: int = 0
    num_hot: int = 0


_IS_PIECE = np.uint32(1 << 31)
_MOST_LONGER = 1 << 20


@dataclass(frozen=True, eq=False)
class Renamed:
    """The numbers of vertices in this layout.

    Attributes:
        numbers: [sources], uint32, on the device: the new number of each earlier one.
        degrees: [num_rows], uint32, on the device: in-degrees by new numbers.
        num_pairs: [num_rows], uint32, on the device: the pairs of each new row, an edge that stays there as one.
        stops: [num_rows], uint32, on the device: where the edges of each new row end among keys.
    """

    numbers: Any
    degrees: Any
    num_pairs: Any
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
    first_free: int

    @property
    def edges(self) -> tuple[Any, ...]:
        """What kernels take to know the edges of each."""
        return self.starts, self.rows, self.stops, np.uint64(self.num_pairs)


@dataclass(frozen=True, eq=False)
class _Slices:
    """Slices in their order; arrays on the device but for `widths`, `are_pieces` and `segments`."""

    widths: NDArray[np.uint32]
    are_pieces: NDArray[np.bool_]
    segments: NDArray[np.uint32]
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
        num_team_rows: Rows up to the last of over BLOCK_DEGREE edges; a multiple of 32.
    """

    def __init__(
        self,
        edges: EdgeList,
        lids: Any,
        launch: Launch,
        tiling: Tiling,
        *,
        sources: Sources,
        keys: Any,
        counts: _Counts,
    ) -> None:
        import cupy

        num_sources = sources.count

        self._edges, self._lids, self._launch = edges, lids, launch
        self._num_rows = num_rows = edges.offsets.size - 1
        self._tiling, self.segment_size = tiling, tiling.size
        size = tiling.size
        self._num_sources, self._num_segments = num_sources, -(-num_sources // size)
        self._first_partial = first_partial = -(-num_sources // 32) * 32
        self.renamed = renamed = self._rename(counts)
        pairs = self._find_pairs(keys, counts, renamed)
        slices = self._find_slices(pairs)
        self.num_slices = slices.widths.size
        self.rows = self._lay_out_rows(pairs)
        self.ends = cupy.zeros(max(1, self.rows.num_positions), np.uint32)
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
        self._num_lines = int(slices.widths.sum(dtype=np.int64))
        self._words = cupy.empty(max(1, 32 * self._num_lines), np.uint32)
        self._sources = sources
        launch(
            "place_words_warp_mapped", 32 * self.num_slices, *self._placing(keys, pairs, slices), self._words
        )
        num_own = num_rows // size if num_sources > num_rows else 0
        shares = share_out(slices.widths, slices.are_pieces, slices.segments, tiling.num_shares, num_own)
        self._shares = [cupy.asarray(a) for a in (shares.first_tasks, shares.segments, shares.runs)]
        self._num_shares, self._num_early = shares.first_tasks.size - 1, shares.num_early
        self._first_free = pairs.first_free
        self.num_team_rows = 32 * end_of_above(_measure(renamed.degrees, launch).most, BLOCK_DEGREE)
        self._columns: dict[tuple[str, bool], Any] = {}

    def _rename(self, counts: _Counts) -> Renamed:
        """Number vertices anew within their segments, in descending order of the pairs of their rows."""
        import cupy

        num_rows = self._num_rows
        by = np.uint64(num_rows), np.uint32(self.segment_size)
        num_pairs, order = counts.num_pairs, cupy.empty(num_rows, np.uint64)
        self._launch("order_rows_thread_mapped", num_rows, num_pairs, *by, order)
        order.sort()
        given = order, num_pairs, counts.degrees, counts.offsets
        numbers = cupy.asarray(np.arange(self._num_sources, dtype=np.uint32))  # of ghosts they stay
        found = [cupy.empty(num_rows, np.uint32) for _ in range(3)]
        self._launch("rename_rows_thread_mapped", num_rows, *given, *by, numbers, *found)
        return Renamed(numbers, found[1], found[0], found[2])

    def _find_pairs(self, keys: Any, counts: _Counts, renamed: Renamed) -> _Pairs:
        import cupy

        num_rows, size = self._num_rows, np.uint32(self.segment_size)
        measured = _measure(renamed.num_pairs, self._launch, renamed.degrees)
        num_pairs = measured.sum
        first_pairs = measured.firsts(renamed.num_pairs, np.uint32, self._launch)
        starts, rows = cupy.empty(num_pairs, np.uint32), cupy.empty(num_pairs, np.uint32)
        by = np.uint64(num_rows), size, np.uint32(self._tiling.shortest_pair), renamed.numbers, first_pairs
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
        # Behind the last 32 rows some of which has edges in tiles.
        first_free = 32 * (int(np.flatnonzero(measured.differ)[-1]) + 1) if measured.differ.any() else 0
        told = order, num_pairs, num_lanes, listed, first_free
        return _Pairs(first_pairs, starts, rows, renamed.stops, *told)

    def _lay_out_rows(self, pairs: _Pairs) -> Rows:
        """Lay rows out of what tiles leave: an end for each pair, or for each piece of a longer one."""
        import cupy

        left = self.renamed.num_pairs.copy()
        _, count, _, row = pairs.longer.T
        which, at = np.unique(row, return_inverse=True)
        pieces = np.bincount(at, weights=-(-count // PIECE) - 1, minlength=which.size).astype(np.uint32)
        more = np.stack([which.astype(np.uint32), pieces], axis=1)
        if which.size:
            told = cupy.asarray(more), np.uint64(which.size)
            self._launch("add_counts_thread_mapped", which.size, *told, left)
        measured = _measure(left, self._launch)
        rows = lay_out_slices(left, measured.most, measured.sum, lambda end: left[:end].get())
        return rows.on_device(lambda array: array if array is left else cupy.asarray(array))

    def _find_slices(self, pairs: _Pairs) -> _Slices:
        """Cut pairs into slices: of each segment the pieces of longer pairs, then the lanes of others."""
        import cupy

        num_segments = self._num_segments
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
        origins, sizes, segments = (np.empty(num_slices, np.uint32) for _ in range(3))
        number, which = (np.empty(int(num_pieces.sum()), np.int64) for _ in range(2))
        slices = np.empty(which.size, np.int64)
        starts = self._taken(pairs.starts, pair)
        pieces_begin = np.concatenate([[0], np.cumsum(np.bincount(segment, minlength=num_segments))])
        told = first_slices, lane_begins, pieces_begin.astype(np.int64), count, starts
        _cut_slices(*told, PIECE, origins, sizes, segments, number, which, slices)
        begin, size = cupy.asarray(origins), cupy.asarray(sizes)
        wide = cupy.empty(num_slices, np.uint32)
        of_slices = pairs.order, begin, size, np.uint64(num_slices), wide
        self._launch("measure_slices_thread_mapped", num_slices, *of_slices)
        widths = wide.get()
        lines = np.zeros(num_slices + 1, np.uint32)
        np.cumsum(widths, out=lines[1:], dtype=np.uint32)
        pieces = np.stack([pair[which], number, slices, row[which]], axis=1).astype(np.uint32)
        are_pieces = sizes >= _IS_PIECE
        on_device = begin, size, cupy.asarray(lines)
        return _Slices(widths, are_pieces, segments, first_lanes, begins, *on_device, pieces)

    def _taken(self, values: Any, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return some of the values of an array on the device, uint32."""
        import cupy

        found: Any = cupy.empty(numbers.size, np.uint32)
        which = cupy.asarray(numbers.astype(np.uint32))
        one = np.uint64(numbers.size), np.uint64(1)
        self._launch("take_rows_32_thread_mapped", numbers.size, values, which, *one, found)
        taken: NDArray[np.int64] = found.get().astype(np.int64)
        return taken

    def _place_more(self, pieces: NDArray[np.uint32]) -> None:
        """Place the pieces of a pair but the first: behind the pairs of their row."""
        import cupy

        more = pieces[pieces[:, 1] > 0].astype(np.int64)
        if not more.size:
            return
        more = more[np.argsort(more[:, 3], kind="stable")]
        rows = more[:, 3]
        begins = np.searchsorted(rows, rows)
        places = self._taken(self.renamed.num_pairs, rows) + (np.arange(rows.size) - begins)
        placed = np.stack([rows, places, more[:, 2]], axis=1).astype(np.uint32)
        given = cupy.asarray(placed), np.uint64(rows.size)
        partial = np.uint32(self._first_partial)
        self._launch("place_more_thread_mapped", rows.size, self.structure(), *given, partial, self.ends)

    def _placing(self, keys: Any, pairs: _Pairs, slices: _Slices) -> tuple[Any, ...]:
        """Return what kernels take that write what each edge in tiles has."""
        described = slices.origins, slices.sizes, slices.lines, np.uint64(self.num_slices)
        lies = self.renamed.numbers, np.uint32(self.segment_size), np.uint32(self._tiling.num_banks)
        return keys, pairs.order, *pairs.edges, *described, *lies

    def varies(self, names: Collection[str]) -> bool:
        """Return whether some of these edge columns do not have one value throughout."""
        return any(values.strides != (0,) for values in columns_of(self._edges, tuple(names)))

    def column(self, name: str, *, by_edge: bool = True) -> Any:
        """Return an edge column; laid out at its first use.

        Args:
            name: Its name.
            by_edge: Whether it is to have a value for each edge, [positions of rows, and two a word]: that takes as
                long as the edges did, which are sorted once more. Else [1], of a column that has one value.
        """
        import cupy

        (values,) = columns_of(self._edges, (name,))
        key = name, by_edge
        if key not in self._columns and not by_edge:
            self._columns[key] = cupy.asarray(np.resize(values[:1], 1))
        elif key not in self._columns:
            count = self.rows.num_positions + 64 * self._num_lines
            laying_out = values.size * (ORDERING + values.dtype.itemsize)
            check_fits({f"edge column {name}": count * values.dtype.itemsize, "laying it out": laying_out})
            placed = cupy.zeros(max(1, count), dtype=values.dtype)
            if values.strides == (0,):
                fill_with(placed, values[:1].tobytes() or b"\0")
            else:
                self._place_column(np.ascontiguousarray(values), placed)
            self._columns[key] = placed
        return self._columns[key]

    def _place_column(self, values: NDArray[Any], placed: Any) -> None:
        """Bring values of edges to their positions: pairs and slices are found once more, as nobody keeps them."""
        import cupy

        offsets = send(self._edges.offsets)
        keys = _make_keys(self._edges, self._lids, offsets, self._launch)
        origins = cupy.argsort(keys, kind="stable")
        keys.sort()
        degrees = _count_edges(offsets, self._lids, self._launch)
        counts = count_pairs(keys, degrees, self._tiling, self._launch, self._sources)
        pairs = self._find_pairs(keys, counts, self.renamed)
        slices = self._find_slices(pairs)
        given, bits = send(values), 8 * values.dtype.itemsize
        in_tiles = placed[self.rows.num_positions :]
        self._launch(
            f"place_tile_column_{bits}_warp_mapped",
            32 * self.num_slices,
            *(*self._placing(keys, pairs, slices), origins, given, in_tiles),
        )
        of_pairs = *pairs.edges, pairs.first_pairs, origins, given, placed
        self._launch(f"place_row_column_{bits}_thread_mapped", pairs.num_pairs, self.structure(), *of_pairs)

    def structure(self) -> Any:
        """Return what kernels take of the rows."""
        return self.rows.structure(self.ends)

    def tiles(self) -> Any:
        """Return what kernels take of the tiles."""
        filled = np.zeros((), dtype=TILES)
        first_tasks, segments, runs = self._shares
        arrays = {"first_tasks": first_tasks, "segments": segments, "runs": runs}
        arrays |= {"first_lanes": self._first_lanes, "lines": self._lines}
        arrays |= {"words": self._words, "rows": self._rows_of_partials}
        for name, array in arrays.items():
            filled[name] = array.data.ptr
        filled["num_shares"], filled["num_early"] = self._num_shares, self._num_early
        filled["segment_size"] = self.segment_size
        filled["first_free"] = self._first_free
        filled["first_partial"] = self._first_partial
        filled["first_position"] = self.rows.num_positions
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
        degrees: [num_rows], uint32, on the device.
        num_pairs: [num_rows], uint32, on the device: the pairs of each row, an edge that stays there as one.
        num_far: Edges whose source no block would keep.
        num_shared: Pairs of a row and a segment, whatever stays in rows.
    """

    offsets: Any
    degrees: Any
    num_pairs: Any
    num_far: int
    num_shared: int


@dataclass(frozen=True, eq=False)
class _Measured:
    """What is known of counts of rows, by 32 rows; on the host.

    Attributes:
        sums: [slices], uint64.
        most: [slices], uint32: the largest of each.
        differ: [slices]: whether any differs from another array.
    """

    sums: NDArray[np.uint64]
    most: NDArray[np.uint32]
    differ: NDArray[np.bool_]

    @property
    def sum(self) -> int:
        return int(self.sums.sum())

    def firsts(self, counts: Any, dtype: Any, launch: Launch) -> Any:
        """Return where rows of so many elements begin, [num_rows + 1], on the device."""
        import cupy

        begins = np.cumsum(self.sums) - self.sums
        found = cupy.zeros(counts.size + 1, dtype)
        given = counts, np.uint64(counts.size), cupy.asarray(begins), found
        launch(f"begin_rows_{8 * found.itemsize}_warp_mapped", counts.size, *given)
        return found


def _measure(counts: Any, launch: Launch, others: Any = None) -> _Measured:
    """Measure counts of rows, [num_rows], uint32, on the device; beside others, where some are given."""
    import cupy

    num_slices = -(-counts.size // 32)
    sums = cupy.empty(num_slices, np.uint64)
    most, differ = (cupy.zeros(num_slices, np.uint32) for _ in range(2))
    other = np.uint64(0) if others is None else others
    launch("measure_rows_warp_mapped", counts.size, counts, other, np.uint64(counts.size), sums, most, differ)
    return _Measured(sums.get(), most.get(), differ.get() != 0)


def count_pairs(keys: Any, degrees: Any, tiling: Tiling, launch: Launch, sources: Sources) -> _Counts:
    """Count the pairs of each row.

    Args:
        keys: [edges], uint64, ascending: row and source.
        degrees: [num_rows], uint32, on the device.
        tiling: How edges are to be laid out.
        launch: Launches kernels.
        sources: The numbers of sources.
    """
    import cupy

    found = cupy.empty(degrees.size, dtype=cupy.uint32)
    offsets = _measure(degrees, launch).firsts(degrees, np.uint64, launch)
    totals = cupy.zeros(2, np.uint64)
    near = np.uint32(max(0, NEAR - sources.num_hot)), np.uint32(sources.first_hot), np.uint32(sources.num_hot)
    by = np.uint64(degrees.size), np.uint32(tiling.size), np.uint32(tiling.shortest_pair), *near
    launch("count_pairs_warp_mapped", 32 * degrees.size, keys, offsets, *by, found, totals)
    far, shared = (int(total) for total in totals.get())
    return _Counts(offsets, degrees, found, far, shared)


def tiled_edges(
    edges: EdgeList,
    lids: Any,
    launch: Launch,
    tiling: Tiling,
    sources: Sources,
    add_up: AddUp = list,
) -> TiledEdges | None:
    """Lay in-edges out in tiles and rows; None where that does not pay. On all ranks that decide together, or on none.

    Args:
        edges: The edges, rows and ends by their numbers on the host.
        lids: The number of each row and end, uint32, on the device: rows in descending order of degrees.
        launch: Launches the kernels of `tile_layout.cu` and `layout.cu`.
        tiling: How.
        sources: The numbers of ends.
        add_up: Adds numbers up over ranks that decide together; of one rank alone they are the sums.
    """
    num_edges, size = edges.ends.size, tiling.size
    needed = {"edges": 4 * num_edges, "laying them out": num_edges * SORTING + edges.offsets.nbytes}
    is_too_large = num_edges >= 2**32 or sources.count > size << 16
    if not tiling.always:  # rows take less
        is_too_large = is_too_large or free_bytes(sum(needed.values())) < sum(needed.values())
    num_ranks, all_edges, too_large = add_up([1, num_edges, int(is_too_large)])
    if too_large:
        if tiling.always:
            raise ConfigError(
                f"tiles='always' needs fewer than {2**32:,} in-edges and at most {size << 16:,} vertices on a GPU; "
                f"here are {num_edges:,} and {sources.count:,}. Use tiles='auto'"
            )
        return None
    if not tiling.may_pay(all_edges // num_ranks):
        return None
    check_fits(needed)
    offsets = send(edges.offsets)
    keys = _make_keys(edges, lids, offsets, launch)
    keys.sort()
    degrees = _count_edges(offsets, lids, launch)
    counts = count_pairs(keys, degrees, tiling, launch, sources)
    counted = TilingCounts(all_edges, *add_up([counts.num_far, counts.num_shared]))
    reason = "" if tiling.always else counted.reason_against
    log.info("in-edges in %s: %s%s", "rows" if reason else "tiles", counted, f"; {reason}" if reason else "")
    if reason:
        return None
    return TiledEdges(edges, lids, launch, tiling, sources=sources, keys=keys, counts=counts)


def number_by_degree(offsets: NDArray[np.uint64], launch: Launch) -> Any:
    """Return the numbers of vertices by descending degree, equal degrees in their order, [n], uint32, on the device.

    As `kernels.cpu.layout.number_by_degree`, which takes 0.1 s for 2**24 vertices on a core.
    """
    import cupy

    num_rows = offsets.size - 1
    order, lids = cupy.empty(num_rows, np.uint64), cupy.empty(num_rows, np.uint32)
    launch("order_vertices_thread_mapped", num_rows, send(offsets), np.uint64(num_rows), order)
    order.sort()
    launch("number_vertices_thread_mapped", num_rows, order, np.uint64(num_rows), lids)
    return lids


def _count_edges(offsets: Any, lids: Any, launch: Launch) -> Any:
    """Return the edges of each row by number, [num_rows], uint32, of offsets and numbers on the device."""
    import cupy

    num_rows = offsets.size - 1
    degrees = cupy.empty(num_rows, np.uint32)
    launch("count_edges_thread_mapped", num_rows, offsets, lids, np.uint64(num_rows), degrees)
    return degrees


def _make_keys(edges: EdgeList, lids: Any, offsets: Any, launch: Launch) -> Any:
    import cupy

    ends = send(edges.ends.astype(np.uint32, copy=False))
    keys = cupy.empty(ends.size, dtype=cupy.uint64)
    shape = np.zeros((), dtype=EDGES)
    shape["num_rows"] = num_rows = edges.offsets.size - 1
    launch("make_keys_warp_mapped", 32 * num_rows, shape, lids, offsets, ends, keys)
    return keys


@compiled
def _cut_slices(
    first_slices: NDArray[np.int64],
    lane_begins: NDArray[np.int64],
    pieces_begin: NDArray[np.int64],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    piece: int,
    origins: NDArray[np.uint32],
    sizes: NDArray[np.uint32],
    segments: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    which: NDArray[np.int64],
    slices: NDArray[np.int64],
) -> None:
    """Describe slices, of each segment the pieces of its longer pairs and then lanes, as `tile_layout.cu` has them.

    `numbers`, `which` and `slices` are of pieces: their number in their pair, the longer pair, and the slice.
    """
    found = 0
    for segment in range(lane_begins.size - 1):
        at = first_slices[segment]
        for longer in range(pieces_begin[segment], pieces_begin[segment + 1]):
            for number in range((counts[longer] + piece - 1) // piece):
                before = number * piece
                origins[at] = starts[longer] + before
                sizes[at] = min(piece, counts[longer] - before) | 0x80000000  # IS_PIECE
                segments[at] = segment
                numbers[found], which[found], slices[found] = number, longer, at
                found += 1
                at += 1
        for first in range(lane_begins[segment], lane_begins[segment + 1], 32):
            origins[at] = first
            sizes[at] = min(32, lane_begins[segment + 1] - first)
            segments[at] = segment
            at += 1
