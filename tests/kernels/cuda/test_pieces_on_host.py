"""Pulls over rows that each lie in one piece, by the kernels' text, by threads of one block that take turns."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np
import pytest
from host_kernels import library_of, text_of

SUPPORT = Path(__file__).parents[2] / "support"

DEVICE = r"""
// Lanes of a warp that are not all there each stand alone.
static uint32_t ballot_of(uint32_t lanes, bool value) {
  return lanes == 0xffffffff ? __ballot_sync(lanes, value) : value ? lanes : 0;
}
#define __ballot_sync ballot_of
"""

RUN = """
extern "C" void pull(uint64_t *offsets, uint32_t *ends, uint32_t *degrees, uint32_t num_csr_rows, uint32_t num_owned,
                     uint32_t num_block_rows, uint32_t num_warp_rows, uint8_t *status, uint32_t *sent,
                     uint32_t *next_sent, void *records, void *found) {
  using namespace sigps;
  Control control = {};
  Lease lease = {{}, {offsets, nullptr, ends, degrees, num_csr_rows, num_owned}, {}, num_owned, num_owned,
                 num_block_rows, 0, 0, 0, 0, 0, status, {sent, next_sent}, {(Record *)records, nullptr}, nullptr,
                 nullptr, &control, (Inbox *)found};
  lease.num_warp_rows = num_warp_rows;
  NextSuperstep now = {4, SENDERS_BITMAP};
  run_block([&] {
    ThreadCounters counted;
    gather<SENDERS_BITMAP>(lease, now, counted);
  });
}
"""


@functools.cache
def library(stops_early: bool) -> ctypes.CDLL:
    parts = [(SUPPORT / "host_threads.hpp").read_text(), DEVICE, text_of("edges.cuh")]
    parts += [(SUPPORT / "host_tiles.hpp").read_text(), text_of("gather.cuh"), RUN]
    macros = {"SIGPS_THREADS": 64, "SIGPS_WORDS": 1, "SIGPS_ALL_PASS": 0, "SIGPS_TILES": 0, "SIGPS_PEERS": 0}
    return library_of(parts, {**macros, "SIGPS_IN_PIECES": 1, "SIGPS_EARLY_EXIT": int(stops_early)})


@pytest.mark.parametrize("stops_early", [False, True])
@pytest.mark.parametrize(("num_block_rows", "num_warp_rows"), [(0, 0), (0, 64), (32, 96), (0, 320)])
@pytest.mark.parametrize("n", [300, 320])
def test_pulls(n: int, num_block_rows: int, num_warp_rows: int, stops_early: bool) -> None:
    draw = np.random.default_rng(3)
    rows = [draw.integers(0, n, size) for size in np.sort(draw.integers(0, 90, n))[::-1]]
    degrees = np.array([row.size for row in rows], np.uint32)
    begins = np.cumsum([3, *(row.size + 2 for row in rows)]).astype(np.uint64)
    begins = np.concatenate([begins, np.full(321 - begins.size, begins[-1], np.uint64)])
    ends = np.full(int(begins[-1]), n - 1, np.uint32)
    for begin, row in zip(begins.astype(int), rows, strict=False):
        ends[begin : begin + row.size] = row
    bits = draw.random(320) < 0.3
    bits[n:] = False
    sent = np.packbits(bits, bitorder="little").view(np.uint32)
    status = np.where(draw.random(n) < 0.2, 2, draw.integers(0, 2, n)).astype(np.uint8)
    records = draw.integers(0, 1000, n).astype(np.uint32)
    found, next_sent = np.zeros((n, 2), np.uint32), np.zeros(10, np.uint32)
    arrays = [ctypes.c_void_p(array.ctypes.data) for array in (begins, ends, degrees)]
    sizes = [ctypes.c_uint32(x) for x in (320, n, num_block_rows, num_warp_rows)]
    others = [ctypes.c_void_p(array.ctypes.data) for array in (status, sent, next_sent, records, found)]
    library(stops_early).pull(*arrays, *sizes, *others)
    ran = np.zeros(320, np.bool_)
    for v, row in enumerate(rows):
        passed = [] if status[v] == 2 else [s for s in row.tolist() if bits[s] and s % 5 != v % 5]
        values = [int(records[s]) + 7 * s + v for s in (passed[:1] if stops_early else passed)]
        ran[v] = bool(passed) or status[v] == 0
        assert found[v].tolist() == [sum(values) if ran[v] else 0, (bool(passed) | 2) if ran[v] else 0]
    expected = np.packbits(ran & (np.arange(320) % 3 == 0), bitorder="little").view(np.uint32)
    assert next_sent.tolist() == expected.tolist()
