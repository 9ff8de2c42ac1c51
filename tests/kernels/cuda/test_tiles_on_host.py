"""In-edges laid out in tiles and pulled over them by the kernels' text, by threads of one block that take turns."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_gpu import use_host_as_gpu
from host_kernels import entries_of, kernels_of, library_of, text_of
from numpy.typing import NDArray

from sigps.engine.gpu.tiles import TiledEdges, tiled_edges
from sigps.engine.gpu.tiling import Tiling
from sigps.engine.partition.edge_list import EdgeList
from sigps.kernels.cuda.lease import EDGES, TILES

SUPPORT = Path(__file__).parents[2] / "support"
ALL_BRING, SOME_SENT = 3, 1
"""Which records are read: `SenderFilter`."""

DEVICE = r"""
// Lanes of a warp that are not all there each stand alone.
static uint32_t __activemask() { return 1u << threadIdx.x % 32; }
static uint32_t ballot_of(uint32_t lanes, bool value) {
  return lanes == 0xffffffff ? __ballot_sync(lanes, value) : value ? lanes : 0;
}
#define __ballot_sync ballot_of
"""

RUN = """
extern "C" void pull(void *edges, void *tiles, uint32_t num_owned, uint32_t num_block_rows, uint32_t filter,
                     uint8_t *status, uint32_t *sent, uint32_t *next_sent, void *records, void *partials,
                     uint32_t *partial_bits, void *found) {
  using namespace sigps;
  Control control = {};
  Lease lease = {{}, *(Edges *)edges, *(Tiles *)tiles, num_owned, num_owned, num_block_rows, 0, 0, 0, 0, 0, status,
                 {sent, next_sent}, {(Record *)records, nullptr}, (Slots *)partials, partial_bits, &control,
                 (Inbox *)found};
  NextSuperstep now = {4, SenderFilter(filter)};
  run_block([&] {
    ThreadCounters counted;
    if (filter == SENDERS_ALL) {
      combine_tiles<SENDERS_ALL>(lease, now);
      uint32_t number = gather_free<SENDERS_ALL>(lease, now, counted);
      __syncthreads();
      gather<SENDERS_ALL>(lease, now, counted, true, number);
    } else {
      combine_tiles<SENDERS_BITMAP>(lease, now);
      uint32_t number = gather_free<SENDERS_BITMAP>(lease, now, counted);
      __syncthreads();
      gather<SENDERS_BITMAP>(lease, now, counted, true, number);
    }
  });
}
"""


@functools.cache
def library(num_words: int, all_pass: bool) -> ctypes.CDLL:
    layout = text_of("tile_layout.cu")
    parts = [(SUPPORT / "host_threads.hpp").read_text(), DEVICE, text_of("edges.cuh"), layout]
    parts += [(SUPPORT / "host_tiles.hpp").read_text(), text_of("gather.cuh"), text_of("tiles.cuh"), RUN]
    macros = {"SIGPS_THREADS": 1024, "SIGPS_WORDS": num_words, "SIGPS_ALL_PASS": int(all_pass)}
    return library_of([*parts, entries_of(kernels_of(layout))], macros)


def laid_out(rows: list[NDArray[np.int64]], tiling: Tiling, kernels: ctypes.CDLL) -> TiledEdges:
    """Lay rows out, whose degrees descend."""
    import cupy

    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    degrees = np.diff(offsets).astype(np.uint32)

    def launch(name: str, num_threads: int, *arguments: Any) -> None:
        if name == "make_keys_warp_mapped":
            _, lids, _, ends, keys = arguments
            row = np.repeat(np.arange(degrees.size, dtype=np.uint64), degrees)
            keys.set(np.array(lids)[row.astype(int)].astype(np.uint64) << np.uint64(32) | np.array(ends))
        elif name == "take_rows_32_thread_mapped":
            values, order, _, _, found = arguments
            found.set(np.array(values)[np.array(order)])
        else:
            kept = [
                np.array(a.ctypes.data, np.uint64) if isinstance(a, np.ndarray) and a.ndim else np.array(a)
                for a in arguments
            ]
            getattr(kernels, f"run_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in kept))

    edges = EdgeList(offsets, np.concatenate(rows).astype(np.uint32), {})
    lids = cupy.asarray(np.arange(degrees.size, dtype=np.uint32))
    found = tiled_edges(edges, lids, degrees, launch, tiling)
    assert found is not None
    return found


def draw(num_vertices: int, num_edges: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return in-neighbours of each vertex, most of the first; some edges are there many times."""
    targets = (rng.random(num_edges) ** 3 * num_vertices).astype(np.int64)
    sources = (rng.random(num_edges) ** 2 * num_vertices).astype(np.int64)
    rows = [sources[targets == v] for v in range(num_vertices)]
    return sorted(rows, key=len, reverse=True)


def assert_pulls(
    rows: list[NDArray[np.int64]], tiling: Tiling, num_words: int, all_pass: bool, sender_filter: int
) -> None:
    """Compare what vertices compute with, and who of them sends, with a walk along all edges."""
    num_vertices, size, kernels = len(rows), tiling.size, library(num_words, all_pass)
    rng = np.random.default_rng(size)
    tiled = laid_out(rows, tiling, kernels)
    numbers = np.array(tiled.renamed.numbers)
    assert sorted(numbers.tolist()) == list(range(num_vertices))
    assert (numbers // size == np.arange(num_vertices) // size).all()

    padded = -(-num_vertices // 32) * 32
    records = rng.integers(0, 1000, (padded + size, num_words), dtype=np.uint32)  # by new numbers
    has_sent = rng.random(padded) < 0.7
    sent = np.packbits(np.append(has_sent, np.zeros(64 * size, bool)), bitorder="little").view(np.uint32)
    status = rng.choice(np.array([0, 1, 1, 2], np.uint8), padded)
    slices = max(1, tiled.num_slices)
    partials = np.full((32 * slices, num_words), 123, np.uint32)
    partial_bits, next_sent = np.full(slices, 0xABCDEF, np.uint32), np.zeros(padded // 32, np.uint32)
    found = np.zeros((padded, num_words + 1), np.uint32)
    structures = np.array(tiled.structure(), EDGES), np.array(tiled.tiles(), TILES)
    arrays = status, sent, next_sent, records, partials, partial_bits, found
    kernels.pull(
        *(ctypes.c_void_p(s.ctypes.data) for s in structures),
        *(ctypes.c_uint32(x) for x in (num_vertices, tiled.rows.num_block_rows, sender_filter)),
        *(ctypes.c_void_p(a.ctypes.data) for a in arrays),
    )

    expected = np.zeros_like(found)
    for old, row in enumerate(rows):
        v = int(numbers[old])
        sources = numbers[row]
        brings = np.ones(sources.size, bool) if sender_filter == ALL_BRING else has_sent[sources]
        brings &= np.array(all_pass | (sources % 5 != v % 5))
        values = records[sources[brings]] + 7 * sources[brings, None] + v + np.arange(num_words)
        if status[v] != 2 and (brings.any() or status[v] == 0):
            expected[v, :-1] = values.sum(axis=0)
            expected[v, -1] = 2 + brings.any()
    np.testing.assert_array_equal(found, expected)
    ran = expected[:, -1] > 0
    bits = np.unpackbits(next_sent.view(np.uint8), bitorder="little").astype(bool)
    np.testing.assert_array_equal(bits, ran & (np.arange(padded) % 3 == 0))


@pytest.mark.parametrize("sender_filter", [ALL_BRING, SOME_SENT])
@pytest.mark.parametrize(("num_words", "all_pass"), [(1, True), (1, False), (2, True), (4, False)])
@pytest.mark.parametrize(
    ("num_vertices", "num_edges", "size"),
    [(1, 1, 32), (40, 30, 32), (200, 9000, 64), (300, 20_000, 32), (60, 40_000, 32)],
)
def test_a_pull_over_tiles_is_one_over_edges(
    num_vertices: int,
    num_edges: int,
    size: int,
    num_words: int,
    all_pass: bool,
    sender_filter: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Segments so small that there are many; pairs of over 512 and of over 2,048 edges in the largest."""
    use_host_as_gpu(monkeypatch)
    rows = draw(num_vertices, num_edges, np.random.default_rng(num_edges))
    assert_pulls(rows, Tiling(size, 3, 4 * num_words, always=True), num_words, all_pass, sender_filter)


def test_a_warp_has_more_slices_than_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One share of 32 warps, and pairs of two edges in one segment for 34 slices each."""
    use_host_as_gpu(monkeypatch)
    rows = list(np.random.default_rng(3).integers(0, 64, (32 * 34 * 32, 2)))
    assert_pulls(rows, Tiling(40_960, 1, 4, always=True), 1, True, ALL_BRING)


def turns_of(places: NDArray[np.uint32], num_banks: int) -> int:
    """Return in how many turns lanes have read, [reads, 32]: one for each word of a bank that some read at once."""
    groups = [np.unique(group) for group in places.reshape(-1, num_banks)]
    return sum(int(np.bincount(group % num_banks).max()) for group in groups)


@pytest.mark.parametrize("num_words", [1, 2, 4])
def test_few_lanes_read_from_one_bank_at_once(num_words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of 32 rows of 40 sources each, beside their ascending order."""
    use_host_as_gpu(monkeypatch)
    num_banks, rng = 32 // num_words, np.random.default_rng(7)
    rows = [np.sort(rng.choice(1024, 40, replace=False)) for _ in range(32)] + [np.zeros(0, np.int64)] * 992
    tiled = laid_out(rows, Tiling(1024, 1, 4 * num_words, always=True), library(num_words, True))
    numbers, words = np.array(tiled.renamed.numbers), np.array(tiled._words).reshape(-1, 32)
    places = np.stack([words & 0xFFFF, words >> 16], axis=1).reshape(40, 32)
    ascending = np.sort(places, axis=0)
    assert sorted(ascending.T.tolist()) == sorted(np.sort(numbers[row]).tolist() for row in rows[:32])
    assert turns_of(places, num_banks) < 0.8 * turns_of(ascending, num_banks)
