"""The simple graph as a GPU counts triangles in it, and its tasks: in NumPy, by the schedule in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import RANDOM, arcs_of, vertices_of
from battery import BATTERY, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from neighbor_measures import counted
from numpy.typing import NDArray

from sigps.engine.gpu.simple_rows import (
    Counting,
    SimpleRows,
    Tasks,
    bytes_while_counted,
    cut,
    numbered,
    simple_rows,
)

SMALL = Counting(keys=3, chunk=2, block_mapped=2)
countings = st.builds(
    Counting, keys=st.integers(1, 5), chunk=st.integers(1, 5), block_mapped=st.integers(1, 6)
)


def numbered_arcs(sample: Sample) -> tuple[NDArray[Any], set[tuple[int, int]], NDArray[np.uint64]]:
    """Return the number of each vertex in ascending order of ids, arcs as numbers, and the keys of all edges."""
    at = {v: i for i, v in enumerate(vertices_of(sample))}
    pairs = np.array([(at[s], at[t]) for s, t, _ in arcs_of(sample)], dtype=np.int64).reshape(-1, 2)
    numbers = numbered(np, np.bincount(pairs.ravel(), minlength=len(at)))
    pairs = numbers[pairs].astype(np.uint64)
    s, t = pairs[:, 0], pairs[:, 1]
    keys = s << np.uint64(32) | t << np.uint64(1)
    if sample.directed:
        keys = np.concatenate([keys, t << np.uint64(32) | s << np.uint64(1) | np.uint64(1)])
    arcs = {(a, b) for a, b in pairs.astype(np.int64).tolist() if a != b}
    return numbers, arcs, np.sort(keys)


def row_of(rows: SimpleRows, v: int) -> tuple[list[int], list[int]]:
    """Return the neighbours of a vertex, and between how many of the two there are arcs both ways."""
    row = rows.ends[int(rows.offsets[v]) : int(rows.offsets[v + 1])]
    return (row >> 1).tolist(), (row & 1).tolist()


def assert_simple(sample: Sample) -> None:
    numbers, arcs, keys = numbered_arcs(sample)
    rows = simple_rows(np, keys, numbers.size)
    assert (rows.offsets.dtype, rows.ends.dtype, rows.num_lower.dtype) == (np.uint64, np.uint32, np.uint32)
    assert rows.num_lower.size == numbers.size
    assert int(rows.offsets[-1]) == rows.ends.size
    for v in range(numbers.size):
        near = sorted({b for a, b in arcs if a == v} | {a for a, b in arcs if b == v})
        both = [int(sample.directed and (v, u) in arcs and (u, v) in arcs) for u in near]
        assert row_of(rows, v) == (near, both)
        assert rows.num_lower[v] == sum(u < v for u in near)
        assert rows.num_neighbors[v] == len(near)


@pytest.mark.parametrize("name", BATTERY)
def test_rows_are_simple(name: str) -> None:
    assert_simple(BATTERY[name])


@given(samples())
@RANDOM
def test_rows_of_random_graphs_are_simple(sample: Sample) -> None:
    assert_simple(sample)


def links_plainly(rows: SimpleRows, tasks: Tasks, counting: Counting, directed: bool) -> list[int]:
    """Count as `kernels/triangles.cu` does, one task after another and then the light vertices."""
    n = rows.num_lower.size
    links = [0] * n
    work = []
    for v, part in zip(tasks.vertices.tolist(), tasks.parts.tolist(), strict=True):
        lower, upper = int(rows.num_lower[v]), row_of(rows, v)[0][int(rows.num_lower[v]) :]
        slice_of_keys, chunk = divmod(part, -(-len(upper) // counting.chunk))
        first = slice_of_keys * counting.keys
        assert first < lower
        last = min(first + counting.keys, lower)
        work.append((v, range(first, last), upper[chunk * counting.chunk : (chunk + 1) * counting.chunk]))
    for v in range(n):
        lower, upper = int(rows.num_lower[v]), row_of(rows, v)[0][int(rows.num_lower[v]) :]
        if len(upper) < counting.block_mapped:
            work.append((v, range(lower), upper))
    for v, places, uppers in work:
        near, both = row_of(rows, v)
        arcs_to = {near[i]: 1 + both[i] if directed else 2 for i in places}
        for u in uppers:
            above = 1 + both[near.index(u)] if directed else 2
            for w, bit in zip(*row_of(rows, u), strict=True):
                if w >= v:
                    break
                if w in arcs_to:
                    links[w] += above
                    links[u] += arcs_to[w]
                    links[v] += 1 + bit if directed else 2
    return links


def assert_counted(sample: Sample, counting: Counting) -> None:
    numbers, _, keys = numbered_arcs(sample)
    rows = simple_rows(np, keys, numbers.size)
    links = links_plainly(rows, cut(np, rows, counting), counting, sample.directed)
    found = {
        v: (int(rows.num_neighbors[i]), links[i])
        for v, i in zip(vertices_of(sample), numbers.tolist(), strict=True)
    }
    assert found == counted(sample)


@pytest.mark.parametrize("counting", [SMALL, Counting()], ids=["small", "default"])
@pytest.mark.parametrize("name", BATTERY)
def test_tasks_meet_every_triangle_once(name: str, counting: Counting) -> None:
    assert_counted(BATTERY[name], counting)


@given(samples(), countings)
@RANDOM
def test_tasks_of_random_graphs(sample: Sample, counting: Counting) -> None:
    assert_counted(sample, counting)


def test_large_work_is_cut() -> None:
    """In a complete graph the vertex in the middle has both kinds of neighbours, and must be cut in both."""
    pairs = [(a, b) for a in range(30) for b in range(a)]
    _, _, keys = numbered_arcs(Sample(*map(list, zip(*pairs, strict=True)), directed=False))
    rows = simple_rows(np, keys, 30)
    tasks = cut(np, rows, Counting(keys=4, chunk=5, block_mapped=2))
    assert np.count_nonzero(tasks.vertices == 15) == 4 * 3
    assert set(tasks.parts[tasks.vertices == 15].tolist()) == set(range(12))
    assert 0 not in tasks.vertices, "nobody is lower"
    assert {28, 29}.isdisjoint(tasks.vertices.tolist()), "one neighbour or none is higher"
    assert tasks.vertices.tolist() == sorted(tasks.vertices.tolist())


def test_numbers_descend_with_the_degree() -> None:
    assert numbered(np, np.array([1, 5, 0, 5])).tolist() == [2, 0, 3, 1]


def test_memory_grows_with_edges_and_vertices() -> None:
    assert bytes_while_counted(0, 2000) == 2 * bytes_while_counted(0, 1000) > 0
    assert bytes_while_counted(2000, 0) == 2 * bytes_while_counted(1000, 0) > 0
