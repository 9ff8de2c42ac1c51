"""Pages of rows and of columns: what they hold as the layout is written down, and what is no page."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import page_mutations
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_pages import read_numbers, read_rows

from sigps.graph.packing.numbers import pack_numbers, unpack_numbers
from sigps.graph.packing.pages import (
    ALIGNMENT,
    PAGE_ARCS,
    most_page_words,
    most_words_to_degrees,
    pack_rows,
    unpack_degrees,
    unpack_rows,
)

N = 2**32 - 1


def packed(rows: list[list[int]], first_row: int = 0) -> np.ndarray:
    degrees = np.array([len(row) for row in rows], dtype=np.uint32)
    targets = np.array([target for row in rows for target in row], dtype=np.uint32)
    words = np.full(most_page_words(degrees.size, targets.size), 0xABABABAB, dtype=np.uint32)
    firsts, gaps = np.empty(degrees.size, dtype=np.uint32), np.empty(targets.size, dtype=np.uint32)
    return words[: int(pack_rows(degrees, targets, np.uint64(first_row), firsts, gaps, words))]


def unpacked(
    words: np.ndarray, num_rows: int, num_arcs: int, first_row: int = 0, num_vertices: int = N
) -> list[list[int]] | None:
    room = -(-num_rows // 32) * 32
    degrees, firsts = np.empty(room, dtype=np.uint32), np.empty(room, dtype=np.uint32)
    gaps, targets = np.empty(1024, dtype=np.uint32), np.empty(num_arcs, dtype=np.uint32)
    numbers = np.uint64(num_vertices), np.uint64(first_row), np.uint64(num_rows)
    if not unpack_rows(words, *numbers, degrees, firsts, gaps, targets):
        return None
    ends = np.cumsum(degrees[:num_rows])
    return [row.tolist() for row in np.split(targets, ends[:-1])] if num_rows else []


vertices = st.one_of(st.integers(0, 40), st.integers(0, N - 1), st.sampled_from([0, 2**31 - 1, 2**31, N - 1]))


@settings(deadline=None)
@given(st.lists(st.lists(vertices, max_size=80).map(sorted), max_size=50), vertices)
def test_any_rows_come_back_as_the_layout_says(rows: list[list[int]], first_row: int) -> None:
    words = packed(rows, first_row)
    assert words.size % ALIGNMENT == 0
    assert words[-1] == 0
    assert read_rows(words.tolist(), first_row) == rows
    assert unpacked(words, len(rows), sum(map(len, rows)), first_row) == rows
    assert_degrees_come_first(words, rows)


def assert_degrees_come_first(words: np.ndarray, rows: list[list[int]]) -> None:
    front = words[: most_words_to_degrees(len(rows), sum(map(len, rows)))]
    degrees = np.empty(-(-len(rows) // 32) * 32, dtype=np.uint32)
    assert unpack_degrees(front, np.uint64(len(rows)), degrees)
    assert degrees[: len(rows)].tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("spread", [1, 2, 30, 1000, 2**20])
@pytest.mark.parametrize("degree", [1, 3, 33, 2000])
def test_rows_of_many_chunks(spread: int, degree: int) -> None:
    draw = np.random.default_rng(spread + degree)
    gaps = draw.geometric(1 / spread, (6000 // degree, degree))
    rows = (np.cumsum(gaps, axis=1) % 2**32).tolist()
    rows = [sorted(row) for row in rows]
    words = packed(rows, 7)
    assert read_rows(words.tolist(), 7) == rows
    assert unpacked(words, len(rows), sum(map(len, rows)), 7) == rows
    assert_degrees_come_first(words, rows)


def test_a_full_page() -> None:
    row = np.arange(PAGE_ARCS) * 5
    words = packed([row.tolist()])
    assert unpacked(words, 1, PAGE_ARCS) == [row.tolist()]
    assert_degrees_come_first(words, [row.tolist()])
    assert most_words_to_degrees(1, PAGE_ARCS) < 2000
    assert words.nbytes < 0.6 * PAGE_ARCS  # 3 bits a gap


def test_one_long_gap_does_not_widen_its_group() -> None:
    """Without exceptions a group of 32 has the width of its longest: 13 bits here, where 1 does."""
    row = np.cumsum(np.tile([1] * 31 + [5000], 2048))
    without = 2048 * 32 * 13 / 8
    assert packed([row.tolist()]).nbytes < without / 4


def test_what_is_no_page_is_told() -> None:
    rows = [[3, 5], [], [1, 1, 39]]
    words = packed(rows)
    assert unpacked(words, 3, 5, num_vertices=40) == rows
    assert unpacked(words, 3, 5, num_vertices=39) is None
    assert unpacked(words, 3, 6) is None
    assert unpacked(words, 2, 5) is None
    assert unpacked(words, 4, 5) is None
    for place, wrong in [
        (1, 3),
        (1, 1),
        (1, 2**32 - 1),
        (4, 2**32 - 1),
        (5, 31),
        (6, 2**32 - 2),
        (8, 2**32 - 1),
    ]:
        changed = words.copy()
        changed[place] = wrong
        assert unpacked(changed, 3, 5, num_vertices=40) != rows
    near = packed([[997], [998], [999]], first_row=1000)
    assert unpacked(near, 3, 3, first_row=1000) == [[997], [998], [999]]
    assert unpacked(near, 3, 3, first_row=0) is None  # their distances lead below 0


def test_pages_of_any_content_are_read_within_bounds() -> None:
    """Arrays that end where memory does: a process that reads or writes behind one dies."""
    command = [sys.executable, page_mutations.__file__, "5", "4000"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    outcomes = dict(line.split() for line in ended.stdout.splitlines())
    assert int(outcomes["refused"]) > 1000
    assert int(outcomes["read"]) > 100


TYPES = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def come_back(values: np.ndarray) -> np.ndarray:
    """Return the page of some numbers, having compared what it holds bit by bit."""
    words = pack_numbers(values)
    assert read_numbers(words.tolist(), values.dtype).tobytes() == values.tobytes()
    found, scratch = np.empty_like(values), np.empty(values.size + 32, dtype=np.uint32)
    assert unpack_numbers(words, found, scratch)
    assert found.tobytes() == values.tobytes()
    return words


@settings(deadline=None)
@given(st.sampled_from(TYPES), st.binary(max_size=400), st.booleans())
def test_any_numbers_come_back(dtype: str, raw: bytes, is_whole: bool) -> None:
    if dtype == "b1":
        values = np.frombuffer(raw, dtype=np.uint8) > 100
    elif is_whole:
        values = np.frombuffer(raw, dtype=np.uint8).astype(dtype)
    else:
        values = np.frombuffer(raw[: len(raw) // 8 * 8], dtype=dtype)
    come_back(values)


@pytest.mark.parametrize(
    ("values", "most"),
    [
        (np.random.default_rng(1).integers(1, 256, 10000).astype(np.float64), 1.1),
        (np.random.default_rng(1).integers(0, 2, 10000).astype(bool), 0.2),
        (10**15 + np.random.default_rng(1).integers(0, 16, 10000), 0.6),
        (-(10**15) - np.random.default_rng(1).integers(0, 16, 10000), 0.6),
        (np.random.default_rng(1).random(10000), 8.02),
        (np.array([0.0, -0.0] * 5000), 8.02),
        (np.array([2.0**24, 2.0**24 + 2, 3.0e9] * 3000, dtype=np.float32), 4.02),
        (np.array([0, 2**64 - 1] * 500, dtype=np.uint64), 8.2),
    ],
)
def test_columns_take_fewer_bytes_where_nothing_is_lost(values: np.ndarray, most: float) -> None:
    assert come_back(values).nbytes <= most * values.size + 128


@pytest.mark.parametrize("dtype", TYPES)
def test_pages_of_another_type_are_told(dtype: str) -> None:
    words = pack_numbers(np.array([7, 2**31] * 100, dtype=np.uint64))
    found, scratch = np.empty(200, dtype=dtype), np.empty(224, dtype=np.uint32)
    fits = dtype in ("u4", "i8", "u8", "f8")
    assert unpack_numbers(words, found, scratch) == fits
    assert not unpack_numbers(words, np.empty(199, dtype=dtype), scratch)
    assert not unpack_numbers(words[:5], found, scratch)
