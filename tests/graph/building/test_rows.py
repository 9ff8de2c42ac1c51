"""Sorting edges into rows where graphs are too large to build in a test."""

from __future__ import annotations

import numpy as np
import pytest

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeBuffer, EdgeChunk, KeyForm, mirror
from sigps.graph.building.rows import sort_edges

HUGE = 2**36
ROWS = (HUGE - 5, HUGE - 1)


def buffer_of(form: KeyForm, edges: list[tuple[int, int]], **columns: list[int]) -> EdgeBuffer:
    ends = np.array(edges, dtype=np.uint64).reshape(-1, 2)
    buffer = EdgeBuffer()
    arrays = {name: np.array(column, dtype=np.int32) for name, column in columns.items()}
    buffer.append(form.pack(ends[:, 0], ends[:, 1]), arrays)
    return buffer


class TestMoreVerticesThan32BitsCount:
    EDGES = [
        (ROWS[0] + 2, HUGE - 1),
        (ROWS[0], 3),
        (ROWS[0] + 2, 2**32),
        (ROWS[0] + 2, HUGE - 1),
        (ROWS[0], 2),
    ]

    @pytest.mark.parametrize("columns", [{}, {"tag": [0, 1, 2, 3, 4]}])
    @pytest.mark.parametrize("duplicates", ["keep", "drop"])
    def test_rows_have_64_bit_targets(self, columns, duplicates):
        form = KeyForm.of(HUGE, ROWS)
        rows = sort_edges(
            [buffer_of(form, self.EDGES, **columns)], form, symmetric=False, duplicates=duplicates
        )
        kept = duplicates == "keep"
        assert rows.targets.dtype == np.uint64
        assert rows.targets.tolist() == [2, 3, 2**32, HUGE - 1] + [HUGE - 1] * kept
        assert rows.offsets.tolist() == [0, 2, 2, 4 + kept, 4 + kept]
        assert (rows.num_repeats, rows.num_loop_repeats) == (1, 0)
        if columns:
            assert rows.columns["tag"].tolist() == [4, 1, 2, 0] + [3] * kept

    def test_a_row_and_a_target_must_fit_in_64_bits_together(self):
        KeyForm.of(2**36, (0, 2**28))
        with pytest.raises(
            GraphError, match=r"268,435,457 rows of a graph with 68,719,476,736 vertices.*more ranks"
        ):
            KeyForm.of(2**36, (0, 2**28 + 1))

    def test_repeated_self_loops_are_found_by_their_gid(self):
        form = KeyForm.of(HUGE, ROWS)
        loops = [(ROWS[0] + 1, ROWS[0] + 1)] * 3
        rows = sort_edges([buffer_of(form, loops)], form, symmetric=False)
        assert (rows.num_repeats, rows.num_loop_repeats) == (2, 2)


class TestKeyForm:
    @pytest.mark.parametrize("num_vertices", [1, 2**20, 2**32 - 1])
    def test_targets_take_32_bits_while_they_can(self, num_vertices):
        form = KeyForm.of(num_vertices, (0, num_vertices))
        assert (form.target_bits, form.target_dtype) == (32, np.uint32)

    def test_64_bits_above(self):
        assert KeyForm.of(2**32 + 1, (0, 5)).target_dtype == np.uint64

    def test_keys_give_back_what_they_hold(self):
        form = KeyForm.of(1000, (300, 600))
        keys = form.pack(np.array([300, 599], dtype=np.uint32), np.array([999, 0], dtype=np.uint32))
        assert form.rows(keys).tolist() == [0, 299]
        assert form.targets(keys).tolist() == [999, 0]


class TestEdgeBuffer:
    def test_grows_and_shrinks_with_its_columns(self):
        buffer = EdgeBuffer()
        buffer.append(np.arange(3, dtype=np.uint64), {"a": np.array([1, 2, 3], dtype=np.int8)})
        buffer.append(np.arange(2, dtype=np.uint64), {"a": np.array([4, 5], dtype=np.int8)})
        buffer.shrink(4)
        assert buffer.keys.tolist() == [0, 1, 2, 0]
        assert buffer.columns["a"].tolist() == [1, 2, 3, 4]
        assert buffer.columns["a"].dtype == np.int8

    def test_pairs_show_target_and_source(self):
        buffer = EdgeBuffer()
        buffer.append(np.array([7 << 32 | 5], dtype=np.uint64), {})
        assert buffer.pairs.tolist() == [[5, 7]]


def test_mirror_keeps_the_given_order_and_loops_once():
    chunk = EdgeChunk(np.array([1, 2, 3]), np.array([2, 2, 1]), {"w": np.array([10, 20, 30])})
    both = mirror(chunk)
    assert both.sources.tolist() == [1, 2, 2, 3, 1]
    assert both.targets.tolist() == [2, 1, 2, 1, 3]
    assert both.columns["w"].tolist() == [10, 10, 20, 30, 30]
