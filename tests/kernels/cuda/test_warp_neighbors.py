"""What a warp finds together, on 32 threads that wait for each other: the common targets of two rows, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps.kernels.cuda.warp_neighbors import CELLS, WarpFunctions, find_by_warp, forget_found

LANES = 32


class Warp:
    """Threads in the place of lanes."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(LANES, timeout=60)
        self._said: list[Any] = [None] * LANES
        self._of_thread = threading.local()

    def run(self, work: Callable[[], Any]) -> list[Any]:
        """Return what each lane returns; a failure of one is raised."""
        found: list[Any] = [None] * LANES

        def one(lane: int) -> None:
            self._of_thread.lane = lane
            try:
                found[lane] = work()
            except BaseException as error:
                found[lane] = error
                self._barrier.abort()

        threads = [threading.Thread(target=one, args=(lane,)) for lane in range(LANES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        errors = [f for f in found if isinstance(f, BaseException)]
        for error in errors:
            if not isinstance(error, threading.BrokenBarrierError) or len(errors) == LANES:
                raise error
        return found

    def functions(self) -> WarpFunctions:
        return WarpFunctions(
            lane=lambda: np.uint64(self._of_thread.lane),
            ballot=self._ballot,
            first_of=lambda lanes: (int(lanes) & -int(lanes)).bit_length() - 1,
            broadcast=lambda value, lane: self._all_say(value)[int(lane)],
            load_position=lambda cells, at: cells[at : at + 8].view(np.uint64)[0],
            load_lanes=lambda cells, at: cells[at : at + 4].view(np.uint32)[0],
            store_position=_store(np.uint64),
            store_lanes=_store(np.uint32),
        )

    def _ballot(self, holds: bool) -> np.uint32:
        return np.uint32(sum(1 << lane for lane, said in enumerate(self._all_say(bool(holds))) if said))

    def _all_say(self, value: Any) -> list[Any]:
        self._said[self._of_thread.lane] = value
        self._barrier.wait()
        said = list(self._said)
        self._barrier.wait()
        return said


def _store(kind: Any) -> Callable[..., None]:
    def store(cells: Any, at: int, value: Any) -> None:
        cells[at : at + np.dtype(kind).itemsize].view(kind)[0] = value

    return store


def common(mine: list[int], theirs: list[int], *, begins_again: bool = False) -> list[tuple[int, int]]:
    """Return the positions that a warp finds, of rows that lie one behind the other.

    Args:
        mine: The first row.
        theirs: The second row.
        begins_again: Whether what was found and not yet given is forgotten after each, as where another walk comes
            between.
    """
    targets = np.array([5, *mine, *theirs, 5], dtype=np.uint32)
    first, end, stop = (np.uint64(n) for n in (1, 1 + len(mine), 1 + len(mine) + len(theirs)))
    warp = Warp()
    functions = warp.functions()
    find, forget = find_by_warp(functions, lambda f: f), forget_found(functions)

    def work() -> list[tuple[int, int]]:
        cells = np.zeros(CELLS, np.uint8)
        forget(targets, cells, first, end)
        at, other, found = first, end, []
        while True:
            at, other = find(targets, cells, first, at, end, end, other, stop)
            if at >= end:
                return found
            found.append((int(at), int(other)))
            at, other = at + np.uint64(1), other + np.uint64(1)
            if begins_again:
                forget(targets, cells, first, end)

    lanes = warp.run(work)
    assert all(lane == lanes[0] for lane in lanes), "lanes went different ways"
    found: list[tuple[int, int]] = lanes[0]
    return found


def assert_common(mine: list[int], theirs: list[int], **options: bool) -> None:
    found = common(mine, theirs, **options)
    expected = sorted(set(mine) & set(theirs))
    assert found == [(1 + mine.index(t), 1 + len(mine) + theirs.index(t)) for t in expected]


ROW = st.lists(st.integers(0, 60), min_size=1, max_size=90).map(sorted)
LONG_ROW = st.lists(st.integers(0, 400), min_size=1, max_size=200).map(sorted)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(ROW | LONG_ROW, ROW | LONG_ROW, st.booleans())
def test_common_targets_are_those_of_both_rows(
    mine: list[int], theirs: list[int], begins_again: bool
) -> None:
    assert_common(mine, theirs, begins_again=begins_again)


@pytest.mark.parametrize("begins_again", [False, True])
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (list(range(100)), list(range(100))),
        (list(range(0, 96, 3)), list(range(96))),
        ([7] * 40, [7] * 70),
        ([1] * 31 + [2, 2, 3], [1, 2, 2, 3, 3]),
        (list(range(64)), [31, 32, 63]),
        (list(range(64)), [64]),
        ([63], list(range(64))),
    ],
)
def test_rows_at_the_limits(mine: list[int], theirs: list[int], begins_again: bool) -> None:
    assert_common(mine, theirs, begins_again=begins_again)
    assert_common(theirs, mine, begins_again=begins_again)
