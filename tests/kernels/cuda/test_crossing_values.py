"""`crossing_values.cu` on rows that are drawn, by its text: what is committed, listed and left, and what is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_kernels import host_kernels

from sigps.engine.gpu.crossing_values import _DOES_NOT_CROSS, _NO_CHUNK, _VALUES

RANKS, OWN = 3, 1
STATES = [np.dtype("f8"), np.dtype(np.bool_), np.dtype(("i4", 3)), np.dtype("i2")]
PLACES = [8, None, 16, 28]
ENTRY_BYTES = 32


def drawn_rows(draw: Any) -> tuple[Any, Any]:
    """Return degrees, and of each row how many edges lead to each rank: many rows are empty, one is long."""
    to_ranks = draw.integers(0, 6, (900, RANKS))
    to_ranks[draw.random(900) < 0.3] = 0
    to_ranks[100:400] = 0
    to_ranks[-70:] = 0
    to_ranks[500] = [900, 1500, 700]
    return to_ranks.sum(axis=1), to_ranks


def values_of(draw: Any, dtype: np.dtype[Any], count: int) -> Any:
    shape = (count, *dtype.shape)
    if dtype.base.kind == "f":
        return draw.choice([0.0, -0.0, np.nan, 1.5], shape)
    return draw.integers(0, 3, shape).astype(dtype.base)


def as_bits(values: Any) -> Any:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


@pytest.mark.parametrize("capacity", [7, 300, 10_000])
@pytest.mark.parametrize("crosses", [True, False])
def test_what_changed_is_committed_once_and_listed(capacity: int, crosses: bool) -> None:
    draw = np.random.default_rng(capacity)
    degrees, to_ranks = drawn_rows(draw)
    n, num_edges = degrees.size, int(degrees.sum())
    offsets = np.cumsum([0, *degrees]).astype(np.uint64)
    before = np.concatenate([np.zeros((1, RANKS)), np.cumsum(to_ranks, axis=0)]).astype(np.uint64)
    leads_to = np.concatenate([np.repeat(np.arange(RANKS), row) for row in to_ranks])
    rows = np.repeat(np.arange(n), degrees)
    number = np.empty(num_edges, dtype=int)
    for rank in range(RANKS):
        number[leads_to == rank] = np.arange((leads_to == rank).sum())
    wrote = draw.random(n) < 0.6
    wrote[500] = True
    bits = np.packbits(wrote, bitorder="little")
    bits = np.pad(bits, (0, -bits.size % 4)).view(np.uint32)
    committed = [values_of(draw, dtype, num_edges) for dtype in STATES]
    pending = [values.copy() for values in committed]
    for values, dtype in zip(pending, STATES, strict=True):
        some = draw.random(num_edges) < 0.3
        values[some] = values_of(draw, dtype, int(some.sum()))
    old = [values.copy() for values in committed]
    columns = np.array(
        [
            [
                p.ctypes.data,
                c.ctypes.data,
                c[:1].nbytes,
                _DOES_NOT_CROSS if place is None or not crosses else place,
            ]
            for p, c, place in zip(pending, committed, PLACES, strict=True)
        ],
        dtype=np.uint64,
    )
    entries = np.zeros((RANKS, capacity, ENTRY_BYTES), dtype=np.uint8)
    counts = np.zeros(RANKS + 1, dtype=np.uint64)
    given = np.zeros((), dtype=_VALUES)
    arrays = {"columns": columns, "offsets": offsets, "wrote": bits, "entries": entries, "counts": counts}
    for name, array in (arrays | ({"before": before} if crosses else {})).items():
        given[name] = array.ctypes.data
    given["num_columns"], given["num_rows"], given["num_ranks"] = len(STATES), n, RANKS if crosses else 0
    given["capacity"], given["entry_bytes"] = capacity, ENTRY_BYTES
    given["left"] = counts.ctypes.data + 8 * RANKS
    kernel = host_kernels("crossing_values", {})["commit_values_warp_mapped"]
    listed: list[list[bytes]] = [[] for _ in range(RANKS)]
    first, launches = 0, 0
    while first < _NO_CHUNK:
        counts[:], counts[RANKS] = 0, _NO_CHUNK
        kernel.launch(1, 64, (given, np.uint32(OWN), np.uint64(first)))
        for rank in range(RANKS):
            listed[rank] += [entry.tobytes() for entry in entries[rank, : int(min(counts[rank], capacity))]]
        first, launches = int(counts[RANKS]), launches + 1
    assert launches == 1 or crosses
    assert (launches > 1) == (capacity < 1000 and crosses)

    for new, now, then in zip(pending, committed, old, strict=True):
        expected = np.where(wrote[rows][:, None], as_bits(new), as_bits(then))
        np.testing.assert_array_equal(as_bits(now), expected)
    differs = np.zeros(num_edges, dtype=bool)
    for new, then, place in zip(pending, old, PLACES, strict=True):
        if place is not None:
            differs |= (as_bits(new) != as_bits(then)).any(axis=1)
    changed = differs & wrote[rows] & (leads_to != OWN) & crosses
    assert changed.any() == crosses
    for rank in range(RANKS):
        expected_of = {}
        for e in np.flatnonzero(changed & (leads_to == rank)).tolist():
            parts = [
                as_bits(p)[e].tobytes() for p, place in zip(pending, PLACES, strict=True) if place is not None
            ]
            expected_of[int(number[e])] = b"".join(parts)
        found = {int.from_bytes(entry[:8], "little"): entry[8:30] for entry in listed[rank]}
        assert len(found) == len(listed[rank])
        assert found == expected_of


def test_entries_go_to_their_copies() -> None:
    draw = np.random.default_rng(2)
    count, first = 500, 40
    committed = [values_of(draw, dtype, first + count + 9) for dtype in STATES]
    old = [values.copy() for values in committed]
    columns = np.array(
        [
            [0, c.ctypes.data, c[:1].nbytes, _DOES_NOT_CROSS if place is None else place]
            for c, place in zip(committed, PLACES, strict=True)
        ],
        dtype=np.uint64,
    )
    numbers = draw.permutation(count)[:300]
    entries = draw.integers(0, 255, (300, ENTRY_BYTES)).astype(np.uint8)
    entries[:, :8] = numbers.astype(np.uint64)[:, None].view(np.uint8)
    given = np.zeros((), dtype=_VALUES)
    given["columns"], given["num_columns"] = columns.ctypes.data, len(STATES)
    given["entry_bytes"] = ENTRY_BYTES
    kernel = host_kernels("crossing_values", {})["take_values_thread_mapped"]
    kernel.launch(1, 64, (given, entries, np.uint64(300), np.uint64(first)))
    for now, then, place in zip(committed, old, PLACES, strict=True):
        expected = as_bits(then).copy()
        if place is not None:
            expected[first + numbers] = entries[:, place : place + expected.shape[1]]
        np.testing.assert_array_equal(as_bits(now), expected)
