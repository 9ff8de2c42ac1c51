"""Rows in descending order of their degree, heavy ones in one piece and light ones in slices."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sigps.engine.gpu.layout import (
    BLOCK_DEGREE,
    LONG_DEGREE,
    Rows,
    lay_out,
    rows_of_positions,
    warp_degree,
)
from sigps.engine.gpu.numbering import sorted_by_degree
from sigps.engine.partition.edge_list import positions_before, reverse_edges, rows_of_edges
from sigps.graph.degrees import degree_order
from sigps.kernels.cuda.lease import NO_VERTEX

WARP_DEGREE = warp_degree(0)
"""Of all graphs here."""

DEGREES: dict[str, list[int]] = {
    "empty": [],
    "one_row_without_edges": [0],
    "one_row": [5],
    "one_heavy_row": [WARP_DEGREE + 1],
    "one_block_row": [BLOCK_DEGREE + 1],
    "at_the_limits": [WARP_DEGREE, WARP_DEGREE + 1, BLOCK_DEGREE, BLOCK_DEGREE + 1],
    "a_warp_of_equal_rows": [3] * 32,
    "all_equal": [7] * 100,
    "all_heavy": [WARP_DEGREE + 1] * 33,
    "no_edges": [0] * 65,
    "heavy_rows_make_a_warp": [WARP_DEGREE + 1] * 32 + [1] * 32,
    "one_more_than_a_warp": [WARP_DEGREE + 1] * 33 + [1] * 31,
    "ascending": list(range(70)),
    "every_kind": [BLOCK_DEGREE + 1] * 33
    + [BLOCK_DEGREE] * 40
    + [WARP_DEGREE + 1] * 9
    + [WARP_DEGREE, 3, 0] * 50,
}

degree_lists = st.lists(
    st.one_of(
        st.integers(0, 6),
        st.integers(WARP_DEGREE - 2, WARP_DEGREE + 2),
        st.integers(BLOCK_DEGREE - 1, BLOCK_DEGREE + 1),
    ),
    max_size=150,
)


def positions_of(rows: Rows, v: int) -> NDArray[np.int64]:
    """Return where a row's edges lie: the rule of `row_of` in `edges.cuh`."""
    i = np.arange(int(rows.degrees[v]))
    if v < rows.num_csr_rows:
        return int(rows.offsets[v]) + i
    return int(rows.slices[(v - rows.num_csr_rows) // 32]) + v % 32 + 32 * i


def assert_laid_out(degrees: NDArray[np.uint32], rows: Rows) -> None:
    """Check what holds of any layout: types, shapes, and a place of its own for every edge."""
    assert (rows.degrees.dtype, rows.offsets.dtype, rows.slices.dtype) == (np.uint32, np.uint64, np.uint64)
    np.testing.assert_array_equal(rows.degrees, degrees)
    assert rows.num_csr_rows % 32 == rows.num_block_rows % 32 == 0
    assert rows.num_block_rows <= rows.num_long_rows <= rows.num_csr_rows
    assert rows.offsets.size == rows.num_csr_rows + 1
    assert rows.slices.size == max(0, -(-degrees.size // 32) - rows.num_csr_rows // 32) + 1
    places = [positions_of(rows, v) for v in range(degrees.size)]
    positions = np.concatenate([*places, np.zeros(0, dtype=np.int64)])
    assert np.unique(positions).size == positions.size == degrees.sum(dtype=np.int64)
    assert positions.size == 0 or (positions.min() >= 0 and positions.max() < rows.num_positions)


def assert_rows_found(rows: Rows) -> None:
    """Check what `rows_of_positions` tells against a walk over all rows."""
    expected = np.full(rows.num_positions, NO_VERTEX, dtype=np.uint32)
    for v in range(rows.degrees.size):
        expected[positions_of(rows, v)] = v
    for piece in (1 << 20, 1000):
        np.testing.assert_array_equal(rows_of_positions(np, rows, piece), expected, strict=True)


def assert_sorted_layout(given_degrees: list[int]) -> None:
    degrees = np.array(given_degrees, dtype=np.uint32)
    order = sorted_by_degree(np, degrees)
    descending = degrees[order]
    rows = lay_out(descending)
    assert_laid_out(descending, rows)
    assert_rows_found(rows)
    assert np.all(descending[rows.num_csr_rows :] <= WARP_DEGREE), "a heavy row is in no slice"
    assert np.all(descending[rows.num_block_rows :] <= BLOCK_DEGREE)
    assert np.all(descending[rows.num_long_rows :] <= LONG_DEGREE)
    # A slice is as wide as its first row, which is its longest; all slices together waste at most one widest.
    padding = rows.num_positions - int(degrees.sum(dtype=np.int64))
    assert 0 <= padding <= 32 * WARP_DEGREE


def test_threads_take_longer_rows_of_larger_graphs() -> None:
    for num_edges, bound in ((1 << 20, 32), (100 << 18, 100), (1 << 30, 192)):
        hub = [num_edges - 31 * (bound + 1) - 64 * bound]
        rows = lay_out(np.array(hub + [bound + 1] * 31 + [bound] * 64, dtype=np.uint32))
        assert rows.num_csr_rows == 32


@pytest.mark.parametrize("name", DEGREES)
def test_every_edge_has_its_own_place(name: str) -> None:
    assert_sorted_layout(DEGREES[name])


@given(degree_lists)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_every_edge_of_random_rows_has_its_own_place(degrees: list[int]) -> None:
    assert_sorted_layout(degrees)


@pytest.mark.parametrize("name", DEGREES)
def test_rows_in_one_piece_need_no_order(name: str) -> None:
    degrees = np.array(DEGREES[name], dtype=np.uint32)
    rows = lay_out(degrees, in_slices=False)
    assert_laid_out(degrees, rows)
    assert_rows_found(rows)
    assert (rows.num_block_rows, rows.num_positions) == (0, degrees.sum(dtype=np.int64))
    assert rows.num_csr_rows >= degrees.size
    together = [positions_of(rows, v) for v in range(degrees.size)]
    np.testing.assert_array_equal(
        np.concatenate([*together, np.zeros(0, np.int64)]), np.arange(rows.num_positions)
    )


@given(degree_lists)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_the_order_descends_and_keeps_equal_rows_in_theirs(degrees: list[int]) -> None:
    order = sorted_by_degree(np, np.array(degrees, dtype=np.uint32)).tolist()
    assert order == sorted(range(len(degrees)), key=lambda v: (-degrees[v], v))
    assert order == degree_order(np.array(degrees, dtype=np.uint32)).tolist()


def test_counts_of_each_kind() -> None:
    degrees = np.array(sorted(DEGREES["every_kind"], reverse=True), dtype=np.uint32)
    rows = lay_out(degrees)
    assert (rows.num_block_rows, rows.num_csr_rows) == (64, 96)
    assert rows.slices.size == -(-degrees.size // 32) - 3 + 1
    assert rows.nbytes == rows.degrees.nbytes + rows.offsets.nbytes + rows.slices.nbytes


def test_offsets_may_go_beyond_32_bits() -> None:
    degrees = np.full(64, 2**31, dtype=np.uint32)
    rows = lay_out(degrees)
    assert rows.num_positions == 64 * 2**31
    assert int(rows.offsets[-1]) == 64 * 2**31


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=9), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_rows_in_another_order_have_their_edges(rows: list[list[int]], draw: random.Random) -> None:
    order = list(range(len(rows)))
    draw.shuffle(order)
    moved = [rows[number] for number in order]
    values = np.array([value for row in rows for value in row], dtype=np.int64)
    found = positions_before(np, _offsets(rows), _offsets(moved), np.array(order, dtype=np.int64))
    assert values[found].tolist() == [value for row in moved for value in row]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20), st.permutations(range(8)))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_edge_back_is_the_first_in_the_targets_row(
    pairs: list[tuple[int, int]], order: list[int]
) -> None:
    """Rows stand in any order; loops and parallel edges are among them."""
    near: dict[int, list[int]] = {v: [] for v in range(8)}
    for v, w in pairs:
        near[v].append(w)
        if v != w:
            near[w].append(v)
    rows = [sorted(near[v]) for v in order]
    ends = [(v, w) for v, row in zip(order, rows, strict=True) for w in row]
    row_by_gid = np.argsort(order)
    targets = np.array([w for _, w in ends], dtype=np.uint32)
    row_of = row_by_gid[targets].astype(np.uint32)
    sources = rows_of_edges(np, _offsets(rows).astype(np.int64), targets.size)
    found = reverse_edges(np, sources, targets, row_of, np.array(order), len(order))
    assert [ends.index((w, v)) for v, w in ends] == found.tolist()


def _offsets(rows: list[list[int]]) -> NDArray[np.uint64]:
    return np.cumsum([0, *map(len, rows)]).astype(np.uint64)
