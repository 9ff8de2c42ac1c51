"""Where rows are in their packed pages, and what the device takes for them: pure functions of a store's counts."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.engine.partition.streamed import StreamedEdges
from sigps.graph.packing.paged import PagedRows
from sigps.graph.packing.table import PageTable
from sigps.graph.packing.unpacker import PackedRows

__all__ = [
    "COLUMN_HEADER_WORDS",
    "HEADER_WORDS",
    "MOST_HEADS",
    "MOST_SLOTS_BYTES",
    "KeyTables",
    "LidsOfRows",
    "PlacesInPages",
    "arcs_of_spans",
    "bytes_beside_pages",
    "bytes_of_heads",
    "column_places",
    "first_words",
    "front_words",
    "head_rows",
    "inbox_words",
    "key_tables",
    "lids_of_rows",
    "list_bytes",
    "may_read_rows",
    "most_heads",
    "num_chunks",
    "order_of_chains",
    "places_in_pages",
    "scratch_words",
    "span_numbers",
    "walk_bytes",
]

NUM_HEADS, MOST_HEADS = 4, 8
"""Of each row so many targets are on the device, where a pull may stop early; of rows by degree as many as a row has,
up to the second. BFS on R-MAT 21, from a frontier of 0.6 % of all vertices, with 38 % of all edges: 5.7 and 0.5 % of
all rows are read."""

HEADER_WORDS, COLUMN_HEADER_WORDS = 8, 4
_CHUNK = 1024
_ROUNDED_UP = 1 << 16
"""More bytes for some 60 arrays, each of which takes multiples of 512. A second run in a memory that is as small as one
may be would not find what the first one left."""
MOST_SLOTS_BYTES = 64
"""Of combined messages, of which kernels over packed rows keep one for each 32 edges of a page."""


@dataclass(frozen=True, eq=False)
class PlacesInPages:
    """Where rows are in their pages.

    Attributes:
        first_rows: [pages + 1], the first row of each page, and the end of all rows.
        chains: [chains + 1], the first page of each chain.
        num_parts: [pages], rows with edges in it.
        first_gaps: [rows], where a row's gaps begin in its page; 0 of one that spans pages.
        parts: [rows], the place of its first target, likewise.
    """

    first_rows: NDArray[np.uint32]
    chains: NDArray[np.uint32]
    num_parts: NDArray[np.uint32]
    first_gaps: NDArray[np.uint32]
    parts: NDArray[np.uint32]

    @property
    def num_bytes(self) -> int:
        """What kernels read of it."""
        arrays = self.first_rows, self.chains, self.first_gaps, self.parts, self.chains_of
        return sum(array.nbytes for array in arrays)

    @property
    def chains_of(self) -> NDArray[np.uint32]:
        """[rows / 32 rounded up], the chain of each 32nd row."""
        begins = self.first_rows[self.chains[:-1]]
        rows = np.arange(0, self.parts.size, 32)
        return (np.searchsorted(begins, rows, side="right") - 1).astype(np.uint32)


@dataclass(frozen=True, eq=False)
class LidsOfRows:
    """The local ids of rows of all ranks that may be ends here.

    Attributes:
        words: [rows / 32 rounded up]: of 32 rows which have a local id, as bits, and in the upper half the first of
            them, which the others' follow. Where they do not, `_OTHER` with a number there.
        others: [numbers, 32]: the local ids of those; at least one number.
    """

    words: NDArray[np.uint64]
    others: NDArray[np.uint32]

    @property
    def num_bytes(self) -> int:
        """What kernels read of it."""
        return self.words.nbytes + self.others.nbytes


_OTHER = 1 << 31


def lids_of_rows(rows: NDArray[np.int64], lids: NDArray[np.uint32], num_rows: int) -> LidsOfRows:
    """Return the local ids of rows as kernels look them up. O(rows).

    Args:
        rows: Those that have one, ascending.
        lids: [rows]: theirs, below 2**31.
        num_rows: All rows.

    >>> found = lids_of_rows(np.array([1, 2, 40, 41]), np.array([7, 8, 96, 64], np.uint32), 64)
    >>> [(hex(word & 0xFFFFFFFF), word >> 32) for word in found.words.tolist()]
    [('0x6', 7), ('0x300', 2147483648)]
    >>> found.others[0, 8:10].tolist()
    [96, 64]
    """
    has_lid = np.zeros(32 * max(1, -(-num_rows // 32)), dtype=np.bool_)
    has_lid[rows] = True
    words = np.packbits(has_lid, bitorder="little").view(np.uint32).astype(np.uint64)
    numbers = rows // 32
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    counts = np.diff(np.append(begins, rows.size))
    firsts = np.repeat(lids[begins], counts)
    follow = np.arange(rows.size) - np.repeat(begins, counts)
    does_not = np.unique(numbers[lids != firsts + follow])
    words[numbers[begins]] |= lids[begins].astype(np.uint64) << np.uint64(32)
    others = np.zeros((max(1, does_not.size), 32), dtype=np.uint32)
    those = np.flatnonzero(np.isin(numbers, does_not))
    others[np.searchsorted(does_not, numbers[those]), rows[those] % 32] = lids[those]
    marks = (_OTHER | np.arange(does_not.size)).astype(np.uint64) << np.uint64(32)
    words[does_not] = (words[does_not] & np.uint64(0xFFFFFFFF)) | marks
    return LidsOfRows(words, others)


def places_in_pages(paged: PagedRows) -> PlacesInPages:
    """Return where rows are in their pages. O(rows)."""
    table, offsets, num_rows = paged.packed.table, paged.offsets, paged.offsets.size - 1
    before = np.zeros(num_rows + 1, dtype=np.int64)  # rows with edges
    np.cumsum(offsets[1:] > offsets[:-1], out=before[1:])
    firsts, ends = table.first_rows.astype(np.int64), table.end_rows.astype(np.int64)
    last_pages = np.array([chain[-1] for chain in paged.chains], dtype=np.int64)
    sizes = np.diff(paged.first_rows)
    begins = np.repeat(table.arcs[last_pages].astype(np.int64), sizes)
    parts = before[:-1] - np.repeat(before[paged.first_rows[:-1]], sizes)
    first_gaps = np.maximum(0, offsets[:-1].astype(np.int64) - begins) - parts
    first_gaps[paged.first_rows[:-1]] = 0  # also of those that span pages
    return PlacesInPages(
        np.append(firsts, num_rows).astype(np.uint32),
        np.array([*(chain[0] for chain in paged.chains), table.num_pages], dtype=np.uint32),
        (before[ends] - before[firsts]).astype(np.uint32),
        first_gaps.astype(np.uint32),
        parts.astype(np.uint32),
    )


_MOST_IN_PLACE = 2


def may_read_rows(program: VertexProgram) -> bool:
    """Tell whether packed rows may be read where they lie: a column takes 264 bytes of a warp, in shared memory."""
    return len(program.columns_of_edges) <= _MOST_IN_PLACE


def first_words(packed: PackedRows, columns: Sequence[str] = ()) -> NDArray[np.int64]:
    """Return where pages begin, [pages + 1], each with its pages of some columns behind it."""
    words = packed.table.words.astype(np.int64)
    for name in columns:
        words = words + packed.columns[name].begins.astype(np.int64)
    return words


def column_places(packed: PackedRows, columns: Sequence[str]) -> NDArray[np.uint32]:
    """Return where in a page those of its columns begin, [columns, pages]."""
    sizes = [np.diff(packed.table.words), *(np.diff(packed.columns[name].begins) for name in columns)]
    return np.cumsum([size.astype(np.int64) for size in sizes[:-1]], axis=0).astype(np.uint32)


def scratch_words(
    packed: PackedRows,
    places: PlacesInPages,
    columns: Sequence[str] = (),
    num_resident: int = 0,
    slots_bytes: int = 0,
) -> tuple[int, int, int]:
    """Return the words of a block's scratch: for the longest page, its groups, and inboxes of rows of over 32 edges.

    Args:
        packed: The pages.
        places: Where rows are in them.
        columns: Those that stand behind each page.
        num_resident: The first so many are not copied.
        slots_bytes: Of combined messages.
    """
    parts, arcs = places.num_parts.astype(np.int64), np.diff(packed.table.arcs).astype(np.int64)
    gaps = arcs - parts
    of_columns = len(columns) * num_chunks(arcs)
    chunks = int((num_chunks(parts) + num_chunks(gaps) + of_columns).max(initial=0))
    longest = int(np.diff(first_words(packed, columns))[num_resident:].max(initial=0))
    return longest, 64 * chunks, 32 + inbox_words(slots_bytes) * 32 * (1 + int(gaps.max(initial=0)) // 1024)


def inbox_words(slots_bytes: int) -> int:
    """Return the words of combined messages of so many bytes, with whether there are any, and what aligns them.

    >>> inbox_words(4), inbox_words(16), inbox_words(64)
    (8, 8, 20)
    """
    return max(8, -(-slots_bytes // 4) + 4)


def bytes_beside_pages(
    edges: StreamedEdges,
    places: PlacesInPages,
    num_vertices: int,
    num_blocks: int,
    columns: Sequence[str],
    slots_bytes: int = 0,
) -> int:
    """Return about the bytes that a graph takes on the device beside pages: by vertex, by page, and scratch."""
    words = sum(scratch_words(edges.rows.packed, places, columns, slots_bytes=slots_bytes))
    table = edges.rows.packed.table
    fronts = 4 * int(front_words(table, places, columns).sum())
    by_page = (16 + 4 * len(columns)) * table.num_pages + fronts + table.words.nbytes
    return 25 * num_vertices + places.num_bytes + by_page + 4 * words * num_blocks + _ROUNDED_UP


def front_words(table: PageTable, places: PlacesInPages, columns: Sequence[str] = ()) -> NDArray[np.int64]:
    """Return the words of each page's header and tables, [pages]; with those of some columns behind them."""
    parts, arcs = places.num_parts.astype(np.int64), np.diff(table.arcs).astype(np.int64)
    num_rows = table.end_rows.astype(np.int64) - table.first_rows.astype(np.int64)
    words = HEADER_WORDS + num_chunks(num_rows) + num_chunks(parts) + 2 * num_chunks(arcs - parts)
    return words + len(columns) * (COLUMN_HEADER_WORDS + num_chunks(arcs))


def num_chunks(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many chunks so many numbers take."""
    return -(-counts // _CHUNK)


def order_of_chains(paged: PagedRows, num_resident: int) -> NDArray[np.uint32]:
    """Return the order in which chains are taken: those on the device, of the first so many pages, between the others.

    The link works all the time so. Each kind keeps its order: a chain of many pages is among the first.
    """
    is_resident = np.array([chain[-1] < num_resident for chain in paged.chains], dtype=np.bool_)
    when = np.empty(is_resident.size)
    for kind in (is_resident, ~is_resident):
        count = int(np.count_nonzero(kind))
        when[kind] = (np.arange(count) + 0.5) / max(1, count)
    return np.argsort(when, kind="stable").astype(np.uint32)


def walk_bytes(
    num_owned: int, num_lids: int, most_arcs: int, num_blocks: int, columns: Sequence[np.dtype[Any]]
) -> int:
    """Return what a run takes whose compute() walks edges that stay packed: where rows begin, gids, and blocks' edges.

    >>> walk_bytes(99, 0, 10, 2, [np.dtype(np.float64)])
    1200
    """
    an_edge = 12 + sum(dtype.itemsize for dtype in columns)
    return 8 * (num_owned + 1) + 4 * num_lids + num_blocks * most_arcs * an_edge


def list_bytes(
    most_arcs: int, num_blocks: int, message: Sequence[np.dtype[Any]], *, sorts: bool = False
) -> int:
    """Return what blocks take for the lists of messages of these fields: each those of a chain of so many arcs.

    Sorted lists are as long again, with a key and a position beside each message.

    >>> list_bytes(1 << 18, 132, [np.dtype(np.int64)]), list_bytes(10, 2, [np.dtype(np.int64)], sorts=True)
    (276824064, 560)
    """
    size = sum(dtype.itemsize for dtype in message)
    return num_blocks * most_arcs * (2 * size + _SORTED if sorts else size)


@dataclass(frozen=True)
class KeyTables:
    """The tables of keys of rows that span pages (`kernels/cuda/grouped_packed.cuh`).

    Attributes:
        count: How many of them are counted at a time.
        places: Of each.
    """

    count: int
    places: int

    def num_bytes(self, an_entry: int) -> int:
        """Return what they take, of keys and sums of so many bytes."""
        return self.count * self.places * an_entry


_MOST_TABLE_BYTES = 1 << 28
_SORTED = 12  # bytes of a key and a position


def key_tables(most_arcs: int, num_rows: int, num_blocks: int, an_entry: int) -> KeyTables:
    """Return the tables of rows that span pages: for all blocks, or as many as take a quarter of a gibibyte.

    Args:
        most_arcs: Those of the longest such row, each of which may bring a key of its own.
        num_rows: How many such rows there are.
        num_blocks: Blocks that read pages side by side.
        an_entry: Bytes of a key and its sum.

    >>> key_tables(700_000, 3, 264, 8), key_tables(0, 0, 264, 8)
    (KeyTables(count=3, places=1400001), KeyTables(count=0, places=0))
    """
    if num_rows == 0:
        return KeyTables(0, 0)
    places = 2 * most_arcs + 1
    return KeyTables(min(num_rows, num_blocks, max(1, _MOST_TABLE_BYTES // (places * an_entry))), places)


def arcs_of_spans(paged: PagedRows) -> NDArray[np.int64]:
    """Return the arcs of each row that spans pages, in the order of rows."""
    firsts = paged.first_rows[np.flatnonzero(_spans(paged))].astype(np.int64)
    offsets = paged.offsets
    return (offsets[firsts + 1] - offsets[firsts]).astype(np.int64)


def span_numbers(paged: PagedRows, order: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the number of each chain among those with a row that spans pages, as they are taken; 0 of the others."""
    numbers = np.zeros(len(paged.chains), dtype=np.uint32)
    spanning = order[_spans(paged)[order]]
    numbers[spanning] = np.arange(spanning.size)
    return numbers


def _spans(paged: PagedRows) -> NDArray[np.bool_]:
    return np.array([len(chain) > 1 for chain in paged.chains], dtype=np.bool_)


def head_rows(rows: PagedRows) -> NDArray[np.uint32]:
    """Return how many of the first rows have a first head, a second, and so on: [MOST_HEADS]; O(rows), once."""
    num_rows = rows.offsets.size - 1
    if not rows.is_descending:
        return np.repeat(np.array([num_rows, 0], np.uint32), (NUM_HEADS, MOST_HEADS - NUM_HEADS))

    def has(row: int) -> int:
        return -int(rows.offsets[row + 1] - rows.offsets[row])

    counts = [bisect.bisect_right(range(num_rows), -1 - k, key=has) for k in range(MOST_HEADS)]
    return np.array(counts, np.uint32)


def bytes_of_heads(rows: PagedRows) -> int:
    """Return what the heads of rows take on the device."""
    return 4 * int(head_rows(rows).sum(dtype=np.int64))


def most_heads(table: PageTable, *, by_degree: bool) -> int:
    """Return how many heads rows have at most; where they are by degree, little more than there are.

    Args:
        table: Where the rows are.
        by_degree: Whether the rows of a page have about as many arcs each.
    """
    rows = np.diff(table.end_rows.astype(np.int64), prepend=0)
    if not by_degree:
        return NUM_HEADS * int(rows.sum())
    return int(np.minimum(np.diff(table.arcs.astype(np.int64)), MOST_HEADS * np.maximum(rows, 1)).sum())
