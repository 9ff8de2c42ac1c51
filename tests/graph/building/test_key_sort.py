"""Rows by buckets of keys, against the sort of all keys at once; loops over keys, against Python."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sigps.graph.building import key_sort, rows
from sigps.graph.building.edges import EdgeBuffer, KeyForm
from sigps.graph.building.key_sort import drop_loops, pack_ids


def buffer_of(keys: NDArray[np.uint64]) -> EdgeBuffer:
    buffer = EdgeBuffer()
    buffer.append(keys, {})
    return buffer


def drawn_keys(form: KeyForm, count: int, seed: int) -> NDArray[np.uint64]:
    """Return keys of skewed rows, with repeats and self-loops."""
    draw = np.random.default_rng(seed)
    sources = (draw.random(count) ** 4 * form.num_rows).astype(np.uint64) + np.uint64(form.first_row)
    targets = (draw.random(count) ** 2 * form.num_vertices).astype(np.uint64)
    targets[::7] = sources[::7]
    return form.pack(sources, targets)


FORMS = {
    "all rows": KeyForm.of(1000, (0, 1000)),
    "a rank's rows": KeyForm.of(1000, (300, 777)),
    "one row": KeyForm.of(1, (0, 1)),
    "ids of 32 bits": KeyForm.of(2**32 - 1, (2**32 - 1000, 2**32 - 1)),
}


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("duplicates", ["keep", "drop"])
@pytest.mark.parametrize(
    ("form", "symmetric"),
    [(f, False) for f in FORMS.values()] + [(FORMS["all rows"], True), (FORMS["one row"], True)],
)
@pytest.mark.parametrize("count", [1, 3000])
def test_rows_by_buckets_are_those_of_one_sort(
    form: KeyForm,
    symmetric: bool,
    duplicates: rows.Duplicates,
    num_threads: int,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_sort, "_KEYS_OF_BUCKET", 50)
    monkeypatch.setattr(key_sort, "_KEYS_AT_ONCE", 200)
    keys = drawn_keys(form, count, seed=count + symmetric)
    expected = rows.sort_edges([buffer_of(keys)], form, symmetric=symmetric, duplicates=duplicates)
    monkeypatch.setattr(rows, "MIN_COUNTED_EDGES", 1)
    given = {"symmetric": symmetric, "duplicates": duplicates, "num_threads": num_threads}
    found = rows.sort_edges([buffer_of(keys)], form, **given)
    assert found.targets.dtype == expected.targets.dtype == np.uint32
    assert found.offsets.dtype == np.uint64
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    np.testing.assert_array_equal(found.targets, expected.targets)
    assert found.num_repeats == expected.num_repeats
    assert found.num_loop_repeats == expected.num_loop_repeats
    assert count == 1 or found.num_repeats >= found.num_loop_repeats > 0


@pytest.mark.parametrize(
    ("sources", "targets", "fits"),
    [([1, 2], [3, 2**32 - 1], True), ([1, -1], [0, 0], False), ([0], [2**32], False), ([], [], True)],
)
def test_ids_are_packed_where_they_fit(sources: list[int], targets: list[int], fits: bool) -> None:
    keys = np.empty(len(sources), dtype=np.uint64)
    assert pack_ids(np.array(sources, np.int64), np.array(targets, np.int64), keys) is fits
    if fits:
        assert keys.tolist() == [s << 32 | t for s, t in zip(sources, targets, strict=True)]


def test_self_loops_are_dropped_in_place() -> None:
    pairs = [(1, 2), (3, 3), (2, 1), (0, 0), (2**32 - 1, 2**32 - 1), (5, 4)]
    keys = np.array([s << 32 | t for s, t in pairs], dtype=np.uint64)
    assert drop_loops(keys) == 3
    assert keys[:3].tolist() == [1 << 32 | 2, 2 << 32 | 1, 5 << 32 | 4]
