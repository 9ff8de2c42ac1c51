"""Pulls and pushes over packed rows by the kernels' text, by threads of one block that take turns."""

from __future__ import annotations

import ctypes
import functools
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from host_kernels import host_kernels, library_of, text_of
from turns import in_turn

from sigps.compiler.cuda.compile import c_type
from sigps.engine.gpu.packed_edges import NO_PAGE
from sigps.engine.gpu.packed_places import (
    MOST_SLOTS_BYTES,
    NUM_HEADS,
    arcs_of_spans,
    bytes_of_heads,
    first_words,
    front_words,
    head_rows,
    key_tables,
    lids_of_rows,
    order_of_chains,
    places_in_pages,
    scratch_words,
    span_numbers,
)
from sigps.engine.gpu.page_feed import PageFeed, cut_loads
from sigps.engine.gpu.variant import Packing
from sigps.graph.packing.packer import PackableRows
from sigps.graph.packing.paged import PagedRows
from sigps.graph.packing.unpacker import PackedColumn, PackedRows
from sigps.kernels.cuda.lease import EDGES, PACKED_ROWS, warp_table_bytes

SUPPORT = Path(__file__).parents[2] / "support"
THREADS = 64
ALL_SENT, SOME_SENT = 3, 1
"""Which records are read: `SenderFilter`."""

RUN = """
extern "C" void run(uint32_t way, void *edges, void *packed, uint32_t num_owned, uint32_t filter, uint32_t *degrees,
                    uint8_t *status, uint32_t *sent, uint32_t *next_sent, void *records, uint32_t *lists,
                    uint32_t num_senders, uint32_t num_hubs, void *found) {
  using namespace sigps;
  Control control = {};
  Arguments in = {};
  in.in_degrees = in.out_degrees = degrees;
#if SIGPS_LISTED
  in.lists = (uint64_t *)lists;
  in.num_places = ((PackedRows *)packed)->list_places;
#endif
  uint64_t num_listed = in.num_places;
  std::vector<uint64_t> keys(num_listed);
  std::vector<uint32_t> order(num_listed);
  Lease lease = {in, in, *(Edges *)edges, *(PackedRows *)packed, num_owned, num_owned, 0, 0, 0, 0, 0, 0, status,
                 {sent, next_sent}, {(Record *)records, nullptr}, lists + 2 * num_owned, lists, lists + num_owned,
                 &control, keys.data(), order.data(), num_listed, (Found *)found};
  NextSuperstep now = {4, 1, SenderFilter(filter), 0};
  uint32_t num_targets = 0;
  run_block([&] {
    ThreadCounters counted;
    uint32_t generation = 0;
    if (way == 2)
      scatter_packed(lease, now, &num_targets, num_senders, num_hubs);
    else if (way == 0 && filter == SENDERS_ALL)
      gather_packed<SENDERS_ALL>(lease, now, counted);
    else if (way == 0)
      gather_packed<SENDERS_BITMAP>(lease, now, counted);
    else if (filter == SENDERS_ALL)
      gather_by_heads<SENDERS_ALL>(lease, now, generation, counted);
    else
      gather_by_heads<SENDERS_BITMAP>(lease, now, generation, counted);
  });
  if (way == 2)
    lists[3 * num_owned] = num_targets;
}
"""

OF_HOST = """
template <class T> static T __ldcv(const T *at) { return *at; }
template <class T> static T __ldcg(const T *at) { return *at; }
static void __threadfence() {}
namespace sigps { namespace packed {
inline uint32_t load_from_host(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
inline void store_to_host(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
}}
"""
"""What kernels call where pages come from disk."""

BY_KEY = {
    "SIGPS_KEY": "int64_t",
    "SIGPS_KEY_OFFSET": 0,
    "SIGPS_SUM": "int64_t",
    "SIGPS_SUM_OFFSET": 8,
    "SIGPS_COUNTS": 0,
    "SIGPS_CHECKS_SUMS": 0,
}

PUSH = "scatter_packed(lease, now, &num_targets, num_senders, num_hubs)"


@functools.cache
def library(
    column: str,
    packing: Packing = Packing.PUSHED,
    *,
    is_fed: bool = False,
    reads: str = "combined",
    sorts: bool = False,
    page_turns: int = 1,
    words: int = 1,
) -> ctypes.CDLL:
    is_combined = reads == "combined"
    parts = [(SUPPORT / "host_threads.hpp").read_text()]
    parts += [text_of("edges.cuh"), text_of("packed_rows.cuh")]
    parts += [(SUPPORT / "host_packed.hpp").read_text(), text_of("gather.cuh")]
    names = ["key_table", "shared_tables"] if reads == "grouped" else ["sorted_lists"] if sorts else []
    names += ["packed_messages", "grouped_packed", "lists_packed", "gather_packed"]
    names += ["gather_heads", "scatter_packed"] if is_combined else []
    parts += [text_of(f"{name}.cuh") for name in names]
    macros = {"SIGPS_THREADS": THREADS, "SIGPS_HEADS": 1, "SIGPS_PACKED": packing.value, "SIGPS_WORDS": words}
    macros |= {"SIGPS_PAGE_TURNS": page_turns}
    if is_fed:
        parts.insert(1, OF_HOST)
        macros |= {"SIGPS_FED": 1}
    run = RUN if packing is Packing.PUSHED else RUN.replace(PUSH, "")
    if sorts:
        macros |= {"SIGPS_SORTED": 1}
    if reads == "grouped":
        macros |= BY_KEY | {"SIGPS_WARP_TABLE_BYTES": warp_table_bytes(8, 8)}
    if not is_combined:
        macros |= {f"SIGPS_{reads.upper()}": 1, "SIGPS_HEADS": 0}
        run = re.sub(r"gather_by_heads<\w+>\(.*\)", "", run)
    return library_of([*parts, run], macros | ({"SIGPS_COLUMN_TYPES": column} if column else {}))


def drawn(
    num_rows: int, page_arcs: int, column: Any, rng: np.random.Generator, *, descends: bool = False
) -> tuple[Any, list[Any], Any]:
    """Return packed rows of very different lengths, their targets, and what the column has for each."""
    degrees = (rng.zipf(1.6, num_rows) - 1).clip(0, num_rows)
    degrees[0], degrees[num_rows // 2] = num_rows - 3, min(num_rows, 1300)
    if descends:
        degrees = np.sort(degrees)[::-1]
    rows = [np.sort(rng.integers(0, num_rows, degree)) for degree in degrees.tolist()]
    offsets = np.cumsum([0, *degrees.tolist()]).astype(np.uint64)
    values = None if column is None else (rng.integers(0, 200, int(offsets[-1]))).astype(column)
    columns = [] if values is None else [values]
    packable = PackableRows(offsets, np.concatenate(rows).astype(np.uint32), columns, None, page_arcs)
    pages, table = list(packable.pages(1)), packable.table
    table.words[1:] = np.cumsum([page.words.size for page in pages])
    kept = {}
    if values is not None:
        begins = np.append(0, np.cumsum([page.columns[0].size for page in pages])).astype(np.uint64)
        kept["weight"] = PackedColumn(values.dtype, begins, np.concatenate([p.columns[0] for p in pages]))
    words = np.concatenate([page.words for page in pages])
    paged = PagedRows(PackedRows(num_rows, table, words, kept, "a store"), 1)
    combined = np.concatenate([part for page in pages for part in (page.words, *page.columns)])
    return (paged, combined), rows, values


def structure(
    made: Any, column: str | None, resident: int, slots_bytes: int = 16
) -> tuple[Any, dict[str, Any]]:
    """Return what kernels take of packed rows, the first pages of which are on the device."""
    paged, words = made
    columns = () if column is None else (column,)
    table, places, firsts = paged.packed.table, places_in_pages(paged), first_words(paged.packed, columns)
    own, sizes = front_words(table, places), front_words(table, places, columns)
    fronts = [
        words[at : at + size]
        for page in range(table.num_pages)
        for at, size in (
            (int(firsts[page]), int(own[page])),
            (int(firsts[page] + np.diff(table.words).astype(int)[page]), int(sizes[page] - own[page])),
        )
    ]
    scratch, begin, num_rows = (
        scratch_words(paged.packed, places, columns, slots_bytes=slots_bytes),
        int(firsts[resident]),
        paged.offsets.size - 1,
    )
    chains = len(paged.chains)
    arrays: dict[str, Any] = {
        "first_words": firsts.astype(np.uint64),
        "fronts": np.concatenate(fronts),
        "first_fronts": np.append(0, np.cumsum(sizes))[:-1].astype(np.uint32),
        "order": order_of_chains(paged, resident),
        "resident": words[:begin].copy(),
        "scratch": np.zeros(sum(scratch) + 64, np.uint32),
        "stamps": np.zeros(chains, np.uint32),
        "wanted": np.zeros(num_rows // 32 + 1, np.uint32),
        "wanted_arcs": np.zeros(chains, np.uint32),
        "damaged": np.array([NO_PAGE], np.uint32),
        "num_read": np.zeros(2, np.uint64),
        "heads": np.zeros(bytes_of_heads(paged) // 4, np.uint32),
        "on_host": np.append(words[begin:], np.zeros(1, np.uint32)),
    }
    if column is not None:
        arrays["column_places"] = np.diff(table.words).astype(np.uint32)
    names = "first_rows", "chains", "first_gaps", "parts", "chains_of"
    arrays |= {name: getattr(places, name) for name in names}
    filled = np.zeros((), PACKED_ROWS)
    for name, array in arrays.items():
        if name != "on_host":
            filled[name] = array.ctypes.data
    filled["words"] = arrays["on_host"].ctypes.data - 4 * begin
    filled["num_resident"], filled["scratch_words"] = begin, sum(scratch)
    filled["page_words"], filled["group_words"], _ = scratch
    filled["num_chains"], filled["num_rows"], filled["num_targets"] = chains, num_rows, num_rows
    filled["head_rows"] = head_rows(paged)
    return filled, arrays


def address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Pull(NamedTuple):
    """What a superstep over packed rows reads and writes; there are more vertices than rows, and some have retired."""

    paged: PagedRows
    packed: Any
    arrays: dict[str, Any]
    rows: list[Any]
    of_edges: list[Any]
    num_owned: int
    degrees: Any
    has_sent: Any
    status: Any
    sent: Any
    next_sent: Any
    records: Any
    found: Any

    def run(self, kernels: ctypes.CDLL, way: int, sender_filter: int, lists: Any, *counts: int) -> None:
        kernels.run(
            ctypes.c_uint32(way),
            address(np.zeros((), EDGES)),
            address(self.packed),
            *(ctypes.c_uint32(x) for x in (self.num_owned, sender_filter)),
            *(
                address(a)
                for a in (self.degrees, self.status, self.sent, self.next_sent, self.records, lists)
            ),
            *(ctypes.c_uint32(x) for x in (counts or (0, 0))),
            address(self.found),
        )
        assert self.arrays["damaged"][0] == NO_PAGE


def drawn_pull(
    num_rows: int,
    page_arcs: int,
    column: Any,
    sender_filter: int,
    record: int | None = None,
    words: int = 1,
    *,
    descends: bool = False,
) -> Pull:
    """Draw rows, senders and their records, which are all the same where one is given; messages have so many words."""
    rng = np.random.default_rng(num_rows + page_arcs)
    made, rows, values = drawn(num_rows, page_arcs, column, rng, descends=descends)
    num_owned = num_rows + 45
    packed, arrays = structure(
        made, None if column is None else "weight", made[0].packed.table.num_pages // 3, 8 * words
    )
    padded = -(-num_owned // 32) * 32
    degrees = np.zeros(padded, np.uint32)
    degrees[:num_rows] = [row.size for row in rows]
    has_sent = np.ones(padded, bool) if sender_filter == ALL_SENT else rng.random(padded) < 0.1
    drawn_records = rng.integers(0, 1000, padded).astype(np.uint64)
    records = drawn_records if record is None else np.full(padded, record, np.uint64)
    status = rng.choice(np.array([0, 1, 1, 2], np.uint8), padded)
    all_of_edges = np.zeros(degrees.sum()) if values is None else values
    return Pull(
        made[0],
        packed,
        arrays,
        rows,
        np.split(all_of_edges.astype(np.uint64), np.cumsum(degrees[: num_rows - 1])),
        num_owned,
        degrees,
        has_sent,
        status,
        np.packbits(has_sent, bitorder="little").view(np.uint32),
        np.zeros(padded // 32, np.uint32),
        records,
        np.zeros((padded, words + 1), np.uint64),
    )


SIZES = [(90, 32), (3000, 1 << 10), (3000, 1 << 14), (17_000, 1 << 17)]
"""Numbers of rows, and of arcs of a page."""

COLUMNS = [(None, ALL_SENT, SOME_SENT), (np.float64, SOME_SENT, ALL_SENT), (np.uint8, ALL_SENT, SOME_SENT)]
"""What is read beside the ends, with who sent: where lists stay as they are, and where they are sorted."""


WAYS = [
    ("pages", None, 1),
    ("pages", np.float64, 1),
    ("pages", np.uint8, MOST_SLOTS_BYTES // 8),
    ("heads", None, 1),
    ("heads by degree", None, 1),
    ("push", None, 1),
    ("push", np.uint8, 1),
]


@pytest.mark.parametrize(
    ("read", "sender_filter", "sizes"),
    in_turn(
        WAYS,
        [ALL_SENT, SOME_SENT],
        [(90, 32), (3000, 1 << 10), (3000, 1 << 14), (9000, 1 << 12)],
        times=3,
    ),
)
def test_messages_are_those_of_a_walk_along_all_edges(
    read: tuple[str, Any, int], sender_filter: int, sizes: tuple[int, int]
) -> None:
    """Rows that span pages, and of 9,000 edges one that warps share. Where heads decide, records are equal."""
    (way, column, words), (num_rows, page_arcs) = read, sizes
    record, descends = 21 if way.startswith("heads") else None, way == "heads by degree"
    way = way.split()[0]
    pull = drawn_pull(num_rows, page_arcs, column, sender_filter, record, words, descends=descends)
    assert pull.paged.is_descending == descends
    degrees, has_sent, records, status, found, arrays = (
        *(pull.degrees, pull.has_sent, pull.records, pull.status),
        *(pull.found, pull.arrays),
    )
    num_owned, padded = pull.num_owned, status.size
    if way == "heads":
        gids = np.arange(num_rows, dtype=np.uint32)[::-1].copy()
        given = pull.packed, degrees, gids, np.zeros(1, np.uint32), arrays["heads"]
        host_kernels("heads", {})["find_heads_block_mapped"].launch(1, THREADS, given)
        arrays["num_read"][:] = 0
    senders = np.flatnonzero(has_sent & (degrees > 0))
    few, many = senders[degrees[senders] <= 2048], senders[degrees[senders] > 2048]
    lists = np.zeros(3 * num_owned + 1, np.uint32)
    lists[: few.size], lists[num_owned : num_owned + many.size] = few, many
    kernels = library("" if column is None else c_type(np.dtype(column)), words=words)
    pull.run(kernels, ["pages", "heads", "push"].index(way), sender_filter, lists, few.size, many.size)
    assert not found[:, 1:words].any()
    found = found[:, [0, words]]
    found[:, 1] &= np.uint64(0xFFFFFFFF)  # what lies behind is no number

    expected = np.zeros((padded, 2), np.uint64)
    for v, (row, of_edge) in enumerate(zip(pull.rows, pull.of_edges, strict=True)):
        brought = 2 * records[row] + of_edge
        if way == "push" and has_sent[v]:
            for target, value in zip(row.tolist(), (2 * records[v] + of_edge).tolist(), strict=True):
                expected[target] = expected[target][0] + np.uint64(value), 1
        elif way != "push" and has_sent[row].any() and status[v] != 2:
            expected[v] = brought[has_sent[row]].sum(), 3
    if way == "push":
        np.testing.assert_array_equal(found, expected)
        got = lists[2 * num_owned : 2 * num_owned + int(lists[-1])]
        assert sorted(got.tolist()) == np.flatnonzero(expected[:, 1]).tolist()
    else:
        waits = (status == 0) & (expected[:, 1] == 0) & (np.arange(padded) < num_owned)
        expected[waits, 1] = 2
        np.testing.assert_array_equal(found[:, 1], expected[:, 1])
        if way == "pages":
            np.testing.assert_array_equal(found[:, 0], expected[:, 0])
        else:  # one message or more, which are equal
            assert (found[expected[:, 1] == 3, 0] % 42 == 0).all()
            assert (found[expected[:, 1] == 3, 0] > 0).all()
        bits = np.unpackbits(pull.next_sent.view(np.uint8), bitorder="little").astype(bool)
        np.testing.assert_array_equal(bits, (expected[:, 1] > 0) & (np.arange(padded) % 3 == 0))
    touched = int(arrays["num_read"][1])
    assert touched == np.count_nonzero(arrays["stamps"])
    assert touched <= len(pull.paged.chains)
    assert not arrays["wanted_arcs"].any()


@pytest.mark.parametrize(("num_rows", "page_arcs"), [(90, 32), (3000, 1 << 10), (3000, 1 << 14)])
def test_pages_are_computed_until_nothing_changes(num_rows: int, page_arcs: int) -> None:
    """What vertices get stays the same here: so twice, but a row that spans pages."""
    pull = drawn_pull(num_rows, page_arcs, None, ALL_SENT)
    pull.run(library("", Packing.PULLED, page_turns=4), 0, ALL_SENT, np.zeros(1, np.uint32))
    table = pull.paged.packed.table
    settles = np.ones(num_rows, bool)
    settles[[int(table.first_rows[chain[0]]) for chain in pull.paged.chains if len(chain) > 1]] = False
    assert not settles.all() or page_arcs > 1 << 10
    for v, row in enumerate(pull.rows):
        runs = pull.status[v] != 2 if row.size else pull.status[v] == 0
        times = int(runs) * (2 if settles[v] else 1)
        assert int(pull.found[v, 0]) == runs * 2 * int(pull.records[row].sum()), v
        assert int(pull.found[v, 1]) & 0xFFFFFFFF == (2 * times + bool(row.size) if runs else 0), v


@pytest.mark.parametrize(
    ("num_rows", "page_arcs", "column", "sender_filter", "sorts"),
    [
        (*sizes, column, filters[sorts], sorts)
        for sorts in (False, True)
        for sizes, (column, *filters) in in_turn(SIZES * 3, COLUMNS)
    ],
)
def test_lists_have_the_order_of_edges(
    num_rows: int, page_arcs: int, column: Any, sender_filter: int, sorts: bool
) -> None:
    """Rows that span pages, or are a block's, a warp's or a thread's; sorted, that of their keys."""
    pull = drawn_pull(num_rows, page_arcs, column, sender_filter)
    most, found = pull.paged.most_arcs, pull.found
    pull.packed["list_places"] = most
    kernels = library(
        "" if column is None else c_type(np.dtype(column)), Packing.PULLED, reads="listed", sorts=sorts
    )
    pull.run(kernels, 0, sender_filter, np.zeros(max(2 * most, 2 * pull.num_owned), np.uint64))
    for v, (row, of_edge) in enumerate(zip(pull.rows, pull.of_edges, strict=True)):
        brought = (2 * pull.records[row] + of_edge)[pull.has_sent[row]].tolist()
        if sorts:
            brought.sort(key=lambda word: word % 5)
        runs = pull.status[v] != 2 if brought else pull.status[v] == 0
        in_order = functools.reduce(lambda all, word: (all * 31 + word) % 2**64, brought, int(bool(brought)))
        has = int(found[v, 1]) & 0xFFFFFFFF
        assert (int(found[v, 0]), has) == ((in_order, 2 + bool(brought)) if runs else (0, 0)), v


@pytest.mark.parametrize(
    ("num_keys", "column", "sender_filter", "num_rows", "page_arcs"),
    [
        (num_keys, *read, *sizes)
        for num_keys, turn in ((3, 1), (40, -1), (10**6, 1))
        for sizes, read in in_turn(SIZES, [(None, ALL_SENT), (np.uint8, SOME_SENT)][::turn])
    ],
)
def test_the_key_of_most_weight_is_found_whatever_tables_have_room_for(
    num_rows: int, page_arcs: int, column: Any, sender_filter: int, num_keys: int
) -> None:
    """Rows that span pages, or are a block's, a warp's or a thread's, with fewer keys than places and with more."""
    pull, rng = drawn_pull(num_rows, page_arcs, column, sender_filter), np.random.default_rng(num_keys)
    spans, entry = arcs_of_spans(pull.paged), 16
    assert (spans.size > 2) == (page_arcs < 1 << 14)
    tables = key_tables(int(spans.max(initial=0)), spans.size, 2, entry)
    kept = {
        "span_numbers": span_numbers(pull.paged, pull.arrays["order"]),
        "span_stamps": np.zeros(max(1, spans.size), np.uint32),
        "span_keys": np.full(max(1, tables.count * tables.places), 77, np.uint64),
        "span_sums": np.full(max(1, tables.count * tables.places), 77, np.uint64),
    }
    for name, array in kept.items():
        pull.packed[name] = array.ctypes.data
    pull.packed["num_span_tables"], pull.packed["span_places"] = tables.count, tables.places
    keys = rng.integers(-(num_keys // 2), num_keys, pull.records.size)
    keys[keys == 1] = np.iinfo(np.int64).min  # which looks like an empty place
    pull.records[:] = keys.view(np.uint64)
    found = np.zeros((pull.status.size, 3), np.uint64)
    kernels = library("" if column is None else c_type(np.dtype(column)), Packing.PULLED, reads="grouped")
    pull._replace(found=found).run(kernels, 0, sender_filter, np.zeros(1, np.uint64))
    for v, (row, of_edge) in enumerate(zip(pull.rows, pull.of_edges, strict=True)):
        sums = dict[int, int]()
        those = pull.has_sent[row]
        for key, value in zip(keys[row][those].tolist(), of_edge[those].tolist(), strict=True):
            sums[key] = sums.get(key, 0) + 1 + int(value)
        expected = max(sums.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        runs, has = pull.status[v] != 2 if sums else pull.status[v] == 0, int(found[v, 2]) & 0xFFFFFFFF
        mine = int(found[v, 0].astype(np.int64)), int(found[v, 1].astype(np.int64)), has
        assert mine == ((*expected, 2 + bool(sums)) if runs else (0, 0, 0)), v


@pytest.mark.parametrize("way", ["pages", "heads"])
@pytest.mark.parametrize(("num_rows", "page_arcs"), [(90, 32), (3000, 1 << 10)])
def test_a_part_of_the_rows_reads_records_by_local_ids(num_rows: int, page_arcs: int, way: str) -> None:
    """Rows in the middle of all; their ends have local ids in the order of rows, except those of some 32."""
    rng = np.random.default_rng(num_rows + page_arcs)
    (whole, _), rows, _ = drawn(num_rows, page_arcs, None, rng)
    cuts = whole.first_rows[[len(whole.chains) // 3, 2 * len(whole.chains) // 3]].tolist()
    paged = PagedRows(whole.packed.part(range(*cuts)), 1)
    first, own = cuts[0], rows[cuts[0] : cuts[1]]
    num_own = len(own)
    ends = np.unique(np.concatenate(own))
    ghosts = ends[(ends < first) | (ends >= cuts[1])]
    ghost_lids = -(-num_own // 32) * 32 + np.arange(ghosts.size)
    ghost_lids[ghosts.size // 2 :] += 32 + ghosts.size // 2  # two ranks', or hot ones and others
    local = {row: row - first for row in range(*cuts)} | dict(
        zip(ghosts.tolist(), ghost_lids.tolist(), strict=True)
    )
    here = np.array(sorted(local))
    lids = lids_of_rows(here, np.array([local[row] for row in here.tolist()], np.uint32), num_rows)
    packed, arrays = structure((paged, paged.packed.words), None, paged.packed.table.num_pages // 3)
    others = lids.others.ravel()
    packed["lids_of_rows"], packed["other_lids"] = lids.words.ctypes.data, others.ctypes.data
    packed["num_targets"], packed["first_row"] = num_rows, paged.packed.first_row
    num_lids = -(-int(max(local.values()) + 1) // 32) * 32
    degrees, status = np.zeros(num_lids, np.uint32), np.ones(num_lids, np.uint8)
    degrees[:num_own] = [row.size for row in own]
    has_sent = rng.random(num_lids) < 0.3
    records = np.full(num_lids, 21, np.uint64) if way == "heads" else np.arange(num_lids, dtype=np.uint64) + 1
    sent = np.packbits(has_sent, bitorder="little").view(np.uint32)
    next_sent, found = np.zeros(num_lids // 32, np.uint32), np.zeros((num_lids, 2), np.uint64)
    if way == "heads":
        gids = np.zeros(num_lids, np.uint32)
        gids[list(local.values())] = list(local)
        given = packed, degrees, gids, np.zeros(1, np.uint32), arrays["heads"]
        macros = {"SIGPS_PACKED": str(Packing.PART.value)}
        host_kernels("heads", macros)["find_heads_block_mapped"].launch(1, THREADS, given)
        assert not paged.is_descending
        for row, heads in zip(own, arrays["heads"].reshape(num_own, NUM_HEADS).tolist(), strict=True):
            smallest = [local[end] for end in np.unique(row)[:NUM_HEADS].tolist()]
            named = list(dict.fromkeys(head for head in heads if head != NO_PAGE))
            assert named == smallest[: len(named)]
            assert len(named) == len(smallest) or len(set(heads)) < NUM_HEADS
    library("", Packing.PART).run(
        ctypes.c_uint32(["pages", "heads"].index(way)),
        address(np.zeros((), EDGES)),
        address(packed),
        *(ctypes.c_uint32(x) for x in (num_own, SOME_SENT)),
        *(address(a) for a in (degrees, status, sent, next_sent, records, np.zeros(1, np.uint32))),
        *(ctypes.c_uint32(0) for _ in range(2)),
        address(found),
    )
    assert arrays["damaged"][0] == NO_PAGE
    for v, row in enumerate(own):
        senders = [local[end] for end in row.tolist() if has_sent[local[end]]]
        assert int(found[v, 1]) & 0xFFFFFFFF == (3 if senders else 0)
        if way == "pages":
            assert int(found[v, 0]) == sum(2 * int(records[u]) for u in senders)


def test_a_target_without_a_local_id_is_damage() -> None:
    (whole, words), _, _ = drawn(90, 32, None, np.random.default_rng(1))
    packed, arrays = structure((whole, words), None, 0)
    lids = lids_of_rows(np.arange(80), np.arange(80, dtype=np.uint32), 90)
    others = lids.others.ravel()
    packed["lids_of_rows"], packed["other_lids"] = lids.words.ctypes.data, others.ctypes.data
    degrees = np.zeros(128, np.uint32)
    degrees[:90] = np.diff(whole.offsets)
    given = packed, degrees, np.arange(128, dtype=np.uint32), np.zeros(1, np.uint32), arrays["heads"]
    macros = {"SIGPS_PACKED": str(Packing.PART.value)}
    host_kernels("heads", macros)["find_heads_block_mapped"].launch(1, THREADS, given)
    assert arrays["damaged"][0] != NO_PAGE


@pytest.mark.parametrize("num_slots", [4, 200])
@pytest.mark.parametrize("way", ["pages", "heads"])
def test_pages_are_read_from_a_ring_that_threads_fill(way: str, num_slots: int) -> None:
    """Several sweeps of a graph of which a third is on the device, and one on the host; some chains are left out."""
    rng = np.random.default_rng(5)
    (paged, words), rows, _ = drawn(3000, 1 << 10, None, rng)
    num_pages = paged.packed.table.num_pages
    first_fed = 2 * num_pages // 3
    packed, arrays = structure((paged, words), None, num_pages // 3)
    begins = first_words(paged.packed)
    order = [page for chain in arrays["order"].tolist() for page in paged.chains[chain] if page >= first_fed]
    sizes = np.diff(begins)
    loads = cut_loads(order, sizes, int(sizes.max()) + 500)
    num_loads = len(loads.pages)
    assert 2 * 4 < num_loads < 100
    ring = np.zeros((num_slots, loads.slot_words), np.uint32)
    arrived, released, done = (np.zeros(size, np.uint32) for size in (num_slots, num_loads, num_loads))
    failed, sweeps = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    counts = np.array([len(pages) for pages in loads.pages], np.uint32)
    arrays["on_host"][int(begins[first_fed] - begins[num_pages // 3]) :] = 0  # is nowhere but in the ring
    kept = {"ring": ring, "load_of": loads.load_of, "place_in_load": loads.places, "pages_of_load": counts}
    kept |= {
        "num_done": done,
        "arrived": arrived,
        "released": released,
        "failed": failed,
        "num_sweeps": sweeps,
    }
    for name, array in kept.items():
        packed[name] = array.ctypes.data
    packed["num_loads"], packed["num_slots"], packed["slot_words"] = num_loads, num_slots, loads.slot_words
    brought = list[int]()

    def fill(load: int, slot: int, number: int) -> None:
        for page in loads.pages[load]:
            brought.append(page)
            at = int(loads.places[page])
            ring[slot, at : at + sizes[page]] = words[begins[page] : begins[page + 1]]
        arrived[slot] = number

    feed = PageFeed(loads, num_slots, released, failed, fill, 2)
    padded = -(-3000 // 32) * 32
    degrees = np.zeros(padded, np.uint32)
    degrees[:3000] = [row.size for row in rows]
    if way == "heads":
        given = packed, degrees, np.arange(3000, dtype=np.uint32), np.zeros(1, np.uint32), arrays["heads"]
        with feed.running(0):
            run_fed("heads", given)
        sweeps[0] += 1
    status = np.ones(padded, np.uint8)
    left_out = paged.chains[int(np.searchsorted(paged.first_rows, 2500))]
    for turn in range(3):
        if turn == 2:  # a chain all of whose vertices have retired
            status[
                paged.packed.table.first_rows[left_out[0]] : int(paged.packed.table.end_rows[left_out[-1]])
            ] = 2
        has_sent = rng.random(padded) < 0.3
        records = (
            np.full(padded, 21, np.uint64)
            if way == "heads"
            else rng.integers(0, 99, padded).astype(np.uint64)
        )
        sent = np.packbits(has_sent, bitorder="little").view(np.uint32)
        next_sent, found = np.zeros(padded // 32, np.uint32), np.zeros((padded, 2), np.uint64)
        with feed.running(int(sweeps[0])):
            library("", Packing.PUSHED, is_fed=True).run(
                ctypes.c_uint32(["pages", "heads"].index(way)),
                address(np.zeros((), EDGES)),
                address(packed),
                *(ctypes.c_uint32(x) for x in (3000, SOME_SENT)),
                *(address(a) for a in (degrees, status, sent, next_sent, records, np.zeros(1, np.uint32))),
                *(ctypes.c_uint32(0) for _ in range(2)),
                address(found),
            )
        sweeps[0] += 1
        assert (arrays["damaged"][0], failed[0]) == (NO_PAGE, 0)
        assert released.tolist() == [int(sweeps[0])] * num_loads
        assert not done.any()
        for v, row in enumerate(rows):
            senders = row[has_sent[row]] if status[v] != 2 else row[:0]
            assert int(found[v, 1]) & 0xFFFFFFFF == (3 if senders.size else 0)
            if way == "pages":
                assert int(found[v, 0]) == int(2 * records[senders].sum())
    assert set(brought) == set(order)


def run_fed(file: str, given: Any) -> None:
    """Launch the kernel of heads with pages from a ring."""
    kernels = host_kernels(file, {"SIGPS_FED": "1"})
    kernels["find_heads_block_mapped"].launch(1, THREADS, given)
