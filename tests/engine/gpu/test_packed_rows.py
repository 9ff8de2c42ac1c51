"""Packed rows as kernels unpack them, by their text on the host: targets, columns, heads, and what is damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_kernels import host_kernels
from plain_pages import read_rows

from sigps.compiler.cuda.compile import c_type
from sigps.engine.gpu.packed_edges import NO_PAGE
from sigps.engine.gpu.packed_places import (
    MOST_HEADS,
    bytes_of_heads,
    first_words,
    front_words,
    head_rows,
    order_of_chains,
    places_in_pages,
)
from sigps.graph.packing.packer import PackableRows
from sigps.graph.packing.paged import PagedRows
from sigps.graph.packing.unpacker import PackedColumn, PackedRows
from sigps.kernels.cuda.lease import PACKED_ROWS

NUM_VERTICES = 60_000


def packed_rows(
    degrees: np.ndarray, spread: float, page_arcs: int, seed: int, column: np.ndarray | None = None
) -> PagedRows:
    draw = np.random.default_rng(seed)
    targets = draw.geometric(1 / spread, degrees.sum()) - 1
    offsets = np.zeros(degrees.size + 1, np.uint64)
    np.cumsum(degrees, out=offsets[1:])
    rows = np.repeat(np.arange(degrees.size), degrees)
    targets = (targets + rows * (seed % 2)) % NUM_VERTICES
    targets = targets[np.lexsort((targets, rows))].astype(np.uint32)
    packable = PackableRows(offsets, targets, [] if column is None else [column], None, page_arcs)
    parts = list(packable.pages(1))
    pages = [page.words for page in parts]
    table = packable.table
    table.words[1:] = np.cumsum([page.size for page in pages])
    columns = {}
    if column is not None:
        own = [page.columns[0] for page in parts]
        begins = np.append(0, np.cumsum([words.size for words in own])).astype(np.uint64)
        columns["weight"] = PackedColumn(column.dtype, begins, np.concatenate(own))
    return PagedRows(PackedRows(NUM_VERTICES, table, np.concatenate(pages), columns, "a store"), 1)


def unpacked(paged: PagedRows, way: int, num_resident: int, words: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return all targets as kernels unpack them, the damaged page, and the words that were copied."""
    given, damaged, num_read = reader(paged, num_resident, words)
    targets = np.full(int(paged.offsets[-1]), NO_PAGE, np.uint32)
    kernel = host_kernels("packed_reference", {})["unpack_rows_block_mapped"]
    kernel.launch(1, 64, (given["rows"], paged.offsets, np.uint32(way), targets, np.zeros(1)))
    return targets, int(damaged[0]), int(num_read[0])


def reader(
    paged: PagedRows, num_resident: int, words: np.ndarray, column: str | None = None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return what kernels read pages by, the first of which are elsewhere; the damaged page, and words that crossed."""
    table, places = paged.packed.table, places_in_pages(paged)
    columns = () if column is None else (column,)
    firsts = first_words(paged.packed, columns)
    longest, damaged, num_read = (
        int(np.diff(firsts).max()),
        np.array([NO_PAGE], np.uint32),
        np.zeros(2, np.uint64),
    )
    sizes, own = front_words(table, places, columns), front_words(table, places)
    column_places = np.diff(table.words).astype(np.uint32)
    fronts = np.concatenate(
        [
            words[at : at + size]
            for first, place, mine, all_of in zip(firsts, column_places, own, sizes, strict=False)
            for at, size in ((first, mine), (first + place, all_of - mine))
        ]
    )
    scratch = np.zeros(longest + 64 * 800, np.uint32)
    begin = int(firsts[num_resident])
    on_device, on_host = words[:begin].copy(), np.concatenate([words[begin:], np.zeros(1, np.uint32)])
    arrays: dict[str, Any] = {
        "resident": on_device,
        "first_words": firsts.astype(np.uint64),
        "scratch": scratch,
        "order": order_of_chains(paged, num_resident),
        "damaged": damaged,
        "num_read": num_read,
        "fronts": fronts,
        "first_fronts": np.append(0, np.cumsum(sizes))[:-1].astype(np.uint32),
    }
    if column is not None:
        arrays["column_places"] = column_places
    names = "first_rows", "chains", "first_gaps", "parts", "chains_of"
    arrays |= {name: getattr(places, name) for name in names}
    given = np.zeros((), PACKED_ROWS)
    for name, array in arrays.items():
        given[name] = array.ctypes.data
    given["words"] = on_host.ctypes.data - 4 * begin
    given["num_resident"], given["scratch_words"], given["page_words"] = begin, scratch.size, longest
    given["group_words"] = 64 * 800
    given["num_chains"], given["num_rows"] = len(paged.chains), paged.offsets.size - 1
    given["num_targets"] = NUM_VERTICES
    return {"rows": given, "arrays": arrays, "host": on_host}, damaged, num_read


def expected(paged: PagedRows) -> list[int]:
    """Return the targets page by page, as the layout of pages is written down."""
    table, found = paged.packed.table, list[int]()
    for page in range(table.num_pages):
        own = paged.packed.words[table.words_of(page)].tolist()
        found += [target for row in read_rows(own, int(table.first_rows[page])) for target in row]
    return found


SOME = np.random.default_rng(7)

DEGREES = {
    "short": SOME.integers(0, 4, 1000),
    "long": np.array([2500, 0, 1, 1, 3000, 1, 0, 33, 1024, 1025, 1]),
    "ones": np.ones(1100, np.int64),
    "spanning": np.array([3, 5000, 2, 0, 1500, 1, 40]),
    "skewed": np.sort(SOME.zipf(1.5, 300).clip(0, 3000))[::-1],
}


@pytest.mark.parametrize("spread", [1.0, 40.0, 20_000.0])
@pytest.mark.parametrize("name", DEGREES)
def test_rows_are_unpacked_by_threads_warps_and_blocks(name: str, spread: float) -> None:
    paged = packed_rows(DEGREES[name], spread, 1200 if name == "spanning" else 1 << 18, len(name))
    words, table = paged.packed.words.copy(), paged.packed.table
    resident = table.num_pages // 2
    for way in (0, 1, 2):
        targets, damaged, num_read = unpacked(paged, way, resident, words)
        assert damaged == NO_PAGE
        assert num_read == int(table.words[-1] - table.words[resident])
        np.testing.assert_array_equal(targets, expected(paged))
    targets, damaged, num_read = unpacked(paged, 3, resident, words)
    assert damaged == NO_PAGE
    np.testing.assert_array_equal(targets, expected(paged))
    assert unpacked(paged, 3, table.num_pages, words)[2] == 0  # all are on the device
    assert num_read > 0


VALUES = {
    "whole": lambda draw, size: draw.integers(-50, 200, size).astype(np.float64),
    "fractions": lambda draw, size: draw.random(size),
    "constant": lambda draw, size: np.full(size, 7, np.uint8),
    "long": lambda draw, size: np.where(draw.random(size) < 0.01, 1 << 30, 3),
}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("name", ["long", "spanning", "skewed"])
def test_columns_are_unpacked_with_rows(name: str, values: str) -> None:
    size = int(DEGREES[name].sum())
    column = VALUES[values](np.random.default_rng(3), size)
    paged = packed_rows(DEGREES[name], 40.0, 1200 if name == "spanning" else 1 << 18, len(name), column)
    places, packed = places_in_pages(paged), paged.packed
    begins = [packed.table.words.astype(int), packed.columns["weight"].begins.astype(int)]
    sources = [packed.words, packed.columns["weight"].words]
    words = np.concatenate(
        [
            own[begin[page] : begin[page + 1]]
            for page in range(packed.table.num_pages)
            for own, begin in zip(sources, begins, strict=True)
        ]
    )
    given, damaged, _ = reader(paged, 0, words, "weight")
    assert sum(first_words(packed, ("weight",))) == sum(sum(begins))
    assert places.num_parts.size
    kernel = host_kernels("packed_reference", {"SIGPS_COLUMN_TYPES": c_type(column.dtype)})[
        "unpack_rows_block_mapped"
    ]
    for way in (0, 1, 2, 3):
        targets, found = np.full(size, NO_PAGE, np.uint32), np.full(size, -1.0)
        kernel.launch(1, 64, (given["rows"], paged.offsets, np.uint32(way), targets, found))
        assert damaged[0] == NO_PAGE
        np.testing.assert_array_equal(targets, expected(paged))
        np.testing.assert_array_equal(found, column)


@pytest.mark.parametrize("descends", [False, True])
@pytest.mark.parametrize("name", DEGREES)
def test_heads_are_the_targets_with_the_smallest_gids(name: str, descends: bool) -> None:
    of_rows = np.sort(DEGREES[name])[::-1] if descends else np.append(DEGREES[name], 9)
    paged = packed_rows(of_rows, 40.0, 1200 if name == "spanning" else 1 << 18, len(name))
    given, damaged, _ = reader(paged, 0, paged.packed.words.copy())
    degrees = np.diff(paged.offsets).astype(np.uint32)
    gids = np.random.default_rng(5).permutation(NUM_VERTICES).astype(np.uint32)
    counts = np.minimum(degrees, MOST_HEADS) if descends else np.full(degrees.size, 4)
    given["rows"]["head_rows"] = head_rows(paged)
    assert bytes_of_heads(paged) == 4 * counts.sum()
    heads = np.zeros(counts.sum(), np.uint32)
    kernel = host_kernels("heads", {})["find_heads_block_mapped"]
    kernel.launch(1, 64, (given["rows"], degrees, gids, np.zeros(1, np.uint32), heads))
    assert damaged[0] == NO_PAGE
    targets = np.split(np.array(expected(paged), np.int64), paged.offsets[1:-1].astype(int))
    for own, mine in zip(targets, np.split(heads, np.cumsum(counts)[:-1]), strict=True):
        smallest = sorted(gids[own].tolist())
        found = [gids[head] for head in mine.tolist() if head != NO_PAGE]
        assert found == sorted(found)
        distinct = sorted(set(smallest))
        assert set(found) == set(distinct[: len(set(found))])
        assert len(found) == mine.size or set(found) == set(distinct)


def test_pages_on_the_device_are_taken_between_others() -> None:
    paged = packed_rows(np.full(600, 100), 40.0, 1000, 1)
    order = order_of_chains(paged, 20).tolist()
    assert sorted(order) == list(range(60))
    assert [sum(chain < 20 for chain in order[i : i + 6]) for i in range(0, 60, 6)] == [2] * 10


def test_what_is_no_page_is_told() -> None:
    paged = packed_rows(DEGREES["spanning"], 40.0, 1200, 1)
    begin = int(paged.packed.table.words[2])
    gaps = int(paged.packed.words[begin + 6])
    for at, value in ((5, 1 << 31), (6, 1 << 31), (gaps, 1 << 30), (gaps + 3, 1 << 30)):
        words = paged.packed.words.copy()
        words[begin + at] = value
        _, damaged, _ = unpacked(paged, 2, 0, words)
        assert damaged == 2, at
