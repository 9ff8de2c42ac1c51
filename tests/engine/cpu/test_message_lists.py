from __future__ import annotations

import numpy as np
import pytest

from sigps.device.cpu import Threads
from sigps.engine.cpu.message_lists import joined, list_by_target
from sigps.engine.cpu.work import cut_vertices


@pytest.mark.parametrize("num_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("num_owned", [1, 5, 1000, 70_001])
@pytest.mark.parametrize("power", [1, 9])  # with 9 half of all messages are for one vertex in a thousand
def test_messages_of_a_target_keep_their_order(num_threads: int, num_owned: int, power: int) -> None:
    draw = np.random.default_rng(num_owned + power)
    targets = (num_owned * draw.random(70_000) ** power).astype(np.int64)
    values, vectors = np.arange(70_000.0), draw.random((70_000, 3))
    order = np.argsort(targets, kind="stable")
    for count in (70_000, 100, 0):
        kept = order[order < count]
        with Threads(num_threads) as threads:
            given = targets[:count], (values[:count], vectors[:count]), num_owned, threads
            lists = [list_by_target(*given, twice=twice) for twice in (False, True)]
        for found in lists:
            assert (np.diff(found.offsets) == np.bincount(targets[:count], minlength=num_owned)).all()
            assert (found.messages[0][:count] == values[kept]).all()
            assert (found.messages[1][:count] == vectors[kept]).all()
        assert (lists[1].messages[0][count:] == values[kept]).all()


def test_arrays_are_joined_in_their_order() -> None:
    parts = [np.arange(50_000), np.arange(3), np.arange(0), np.arange(40_000)]
    with Threads(3) as threads:
        assert (joined(parts, threads) == np.concatenate(parts)).all()
        assert joined(parts[1:3], threads).tolist() == [0, 1, 2]


@pytest.mark.parametrize("parts", [1, 2, 5, 40])
def test_ranges_of_vertices_have_equal_work_but_for_one_vertex(parts: int) -> None:
    draw = np.random.default_rng(parts)
    work = [np.concatenate([[0], np.cumsum(draw.integers(0, 90, 300) ** 2)]) for _ in range(2)]
    of_vertex = 1 + np.diff(work[0]) + np.diff(work[1])
    ranges = [(int(a), int(b)) for a, b in cut_vertices(300, work, parts)]
    assert [v for a, b in ranges for v in range(a, b)] == list(range(300))
    assert len(ranges) <= parts
    for a, b in ranges:
        assert of_vertex[a:b].sum() - of_vertex[b - 1] <= of_vertex.sum() / parts
