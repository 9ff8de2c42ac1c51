"""Messages grouped by key as the kernel does it, by the threads of one block, which take turns on the host."""

from __future__ import annotations

import ctypes
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_cpp import LIBRARY_FLAGS

from sigps.engine.gpu.layout import lay_out
from sigps.kernels import cuda as kernels
from sigps.kernels.cuda.lease import warp_table_bytes

THREADS = 64

RUN = """
extern "C" void run(uint32_t num_owned, uint32_t num_team_rows, uint32_t num_key_rows, uint32_t filter,
                    uint64_t *offsets, uint64_t *slices, uint32_t *ends, uint32_t *degrees, uint32_t num_csr_rows,
                    uint8_t *status, uint32_t *sent, uint32_t *next_sent, void *records, void *key_words,
                    void *key_sums, void *found) {
  using namespace sigps;
  Control control = {};
  Lease lease = {{}, {offsets, slices, ends, degrees, num_csr_rows, num_owned}, num_owned, num_team_rows, num_key_rows,
                 status, {sent, next_sent}, {(Record *)records, nullptr}, key_words, key_sums, &control,
                 (Inbox *)found};
  NextSuperstep now = {4, SenderFilter(filter)};
  run_block([&] {
    ThreadCounters counted;
    uint32_t generation = 0;
    advance(lease, now, generation, counted);
  });
}
"""

KINDS = {
    "counts": (np.int32, np.int64, True),
    "whole": (np.int64, np.int64, False),
    "floats": (np.int8, np.float32, False),
    "doubles": (np.uint64, np.float64, False),
}
C_TYPES = {
    np.int8: "int8_t", np.int32: "int32_t", np.int64: "int64_t", np.uint64: "uint64_t", np.float32: "float",
    np.float64: "double",
}  # fmt: skip


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The kernel's loop over rows, compiled for the host, for each kind of keys and weights."""
    folder = tmp_path_factory.mktemp("grouped")
    here = Path(kernels.__file__).parent
    support = Path(__file__).parents[2] / "support"
    text = "".join((support / name).read_text() for name in ("host_threads.hpp", "host_block.hpp"))
    for name in ("key_table.cuh", "shared_tables.cuh", "grouped.cuh"):
        lines = (here / name).read_text().splitlines()
        text += "\n".join(line for line in lines if not line.startswith(("#include", "#pragma"))) + "\n"
    (folder / "block.cpp").write_text(text + RUN)
    found = {}
    for name, (key, total, counts) in KINDS.items():
        kept = max(4, np.dtype(key).itemsize), 4 if counts or total is np.float32 else 8
        defines = {
            "SIGPS_THREADS": THREADS,
            "SIGPS_LEAST_PLACES": 512,
            "SIGPS_KEY": C_TYPES[key],
            "SIGPS_KEY_OFFSET": 0,
            "SIGPS_SUM": C_TYPES[total],
            "SIGPS_SUM_OFFSET": 8,
            "SIGPS_COUNTS": int(counts),
            "SIGPS_CHECKS_SUMS": int(total is np.int64 and not counts),
            "SIGPS_WARP_TABLE_BYTES": warp_table_bytes(*kept),
        }
        library = folder / f"{name}.so"
        given = [f"-D{macro}={value}" for macro, value in defines.items()]
        command = ["g++", "-std=c++20", "-O1", "-w", *LIBRARY_FLAGS, *given]
        subprocess.run([*command, str(folder / "block.cpp"), "-o", str(library)], check=True)
        found[name] = ctypes.CDLL(str(library)).run
    return found


def key_of(raw: Any, kind: str) -> Any:
    """Make keys of small numbers, so that some are negative, and one is the word that looks empty."""
    dtype = np.dtype(KINDS[kind][0])
    keys = raw.astype(np.int64) - 3
    if dtype.kind == "u":
        keys = np.where(keys < 0, 2**63 - 1 + keys, keys)
        return np.where(raw == 5, np.uint64(2**63), keys.astype(np.uint64))
    lowest = np.iinfo(dtype).min
    return np.where(raw == 5, lowest, np.clip(keys, lowest, np.iinfo(dtype).max)).astype(dtype)


@pytest.mark.parametrize("num_keys", [1, 12, 90, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_each_vertex_finds_the_key_of_most_weight(kind: str, num_keys: int, blocks: dict[str, Any]) -> None:
    rng = np.random.default_rng(num_keys)
    sizes = [2500, 1300, 700, 400, 200, *range(190, 0, -3), *[16, 17, 8, 9, 15, 7] * 3, 0, 0]
    degrees = np.sort(np.array(sizes, dtype=np.uint32))[::-1].copy()

    n, num_sources = degrees.size, 6000
    rows = lay_out(degrees)
    assert 0 < rows.num_long_rows < rows.num_csr_rows < n
    ends = rng.integers(0, num_sources, max(1, rows.num_positions), dtype=np.uint32)
    key, total, counts = KINDS[kind]
    records = np.zeros(num_sources, dtype=np.dtype([("key", key), ("sum", total)], align=True))
    records["key"] = key_of(rng.integers(0, num_keys, num_sources), kind)
    weights = rng.integers(-3, 9, num_sources)
    records["sum"] = 1 if counts else weights
    if np.dtype(total).kind == "f":
        records["sum"][::501] = np.nan
    bits = rng.random(num_sources) < 0.8
    sent = np.packbits(np.resize(bits, num_sources // 32 * 32 + 32), bitorder="little").view(np.uint32)
    status = rng.choice(np.array([0, 1, 1, 2], dtype=np.uint8), n)
    status[:4] = 1
    for sender_filter, num_key_rows in ((1, 3), (3, 3), (3, 5)):
        places = 2 * int(rows.offsets[-1]) + n
        found = np.zeros((n, 3), dtype=np.uint64)
        next_sent = np.zeros(n // 32 + 2, dtype=np.uint32)
        memory = np.full(places, 77, dtype=np.uint64), np.full(places, 77, dtype=np.uint64)
        arrays = rows.offsets, rows.slices, ends, degrees
        begin = [ctypes.c_uint32(x) for x in (n, rows.num_long_rows, num_key_rows, sender_filter)]
        rest = status, sent, next_sent, records, *memory, found
        blocks[kind](
            *begin,
            *(pointer(a) for a in arrays),
            ctypes.c_uint32(rows.num_csr_rows),
            *(pointer(a) for a in rest),
        )
        for v in range(n):
            expected = most_common(v, rows, ends, records, bits if sender_filter == 1 else None)
            runs = status[v] != 2 and (expected is not None or status[v] == 0)
            has = int(found[v, 2]) & 0xFFFFFFFF
            assert (has >> 1) == runs, v
            assert bool(int(next_sent[v // 32]) >> v % 32 & 1) == (runs and v % 3 == 0), v
            if runs:
                assert has & 1 == (expected is not None)
            if runs and expected is not None:
                mine = found[v].view(np.uint8)
                got = (
                    mine[: np.dtype(key).itemsize].view(key)[0],
                    mine[8 : 8 + np.dtype(total).itemsize].view(total)[0],
                )
                np.testing.assert_equal(got, expected, err_msg=f"{v} of {degrees[v]}")


def pointer(array: Any) -> Any:
    return ctypes.c_void_p(array.ctypes.data)


def most_common(v: int, rows: Any, ends: Any, records: Any, bits: Any) -> Any:
    """Return the key and its sum, by a loop over a row's edges; None without messages."""
    degree = int(rows.degrees[v])
    if v < rows.num_csr_rows:
        edges = range(int(rows.offsets[v]), int(rows.offsets[v]) + degree)
    else:
        first = int(rows.slices[(v - rows.num_csr_rows) // 32]) + v % 32
        edges = range(first, first + 32 * degree, 32)
    sums: dict[Any, Any] = defaultdict(float)
    for edge in edges:
        source = int(ends[edge])
        if (bits is None or bits[source]) and source % 7 != v % 7:
            sums[records["key"][source]] += float(records["sum"][source])
    if not sums:
        return None
    best = min(sums, key=lambda k: (-(sums[k] if sums[k] == sums[k] else -np.inf), k))
    return best, records["sum"].dtype.type(sums[best])
