"""What a warp finds together, on 32 threads that wait for each other: the common targets of two rows, in order."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
from host_cpp import host_library
from hypothesis import given, settings
from hypothesis import strategies as st

LANES = 32

SOURCE = """// SIGPS_HOST_WARP
#include <cstdint>
extern "C" {
uint64_t (*say_lane)();
uint32_t (*say_ballot)(int);
uint64_t (*say_shfl)(uint64_t, int);
}
namespace sigps {
inline uint64_t lane_number() { return say_lane(); }
}
#define __ballot_sync(mask, holds) say_ballot(holds)
#define __shfl_sync(mask, value, lane) say_shfl(value, lane)
#define SIGPS_BY_WARP 1
#define __ffs(bits) __builtin_ffs(bits)
#define __popc(bits) __builtin_popcount(bits)
#include "warp_neighbors.cuh"
extern "C" int64_t find_all(uint32_t *targets, uint64_t first, uint64_t end, uint64_t stop, int begins_again,
                            uint64_t *out) {
  sigps::Found found;
  uint32_t *cells = (uint32_t *)&found;
  sigps::forget_found(targets, cells, first, end);
  uint64_t at = first, other = end;
  int64_t count = 0;
  while (true) {
    uint64_t next_at, next_other;
    sigps::find_by_warp(targets, cells, first, at, end, end, other, stop, next_at, next_other);
    if (next_at >= end) return count;
    out[2 * count] = next_at;
    out[2 * count++ + 1] = next_other;
    at = next_at + 1;
    other = next_other + 1;
    if (begins_again) sigps::forget_found(targets, cells, first, end);
  }
}
// What one lane takes of what lanes take; and behind it how many all took, the least and the greatest position.
extern "C" int64_t find_mine(uint32_t *targets, uint64_t first, uint64_t end, uint64_t stop, int, uint64_t *out) {
  sigps::Found found;
  uint32_t *cells = (uint32_t *)&found;
  sigps::forget_found(targets, cells, first, end);
  uint64_t at = first, other = end, least = end, most = 0;
  int64_t count = 0, all = 0, here;
  while (true) {
    sigps::find_for_lanes(targets, cells, first, at, end, end, other, stop, at, other);
    if (at == end) break;
    const bool is_mine = at < end;
    if (is_mine) {
      out[2 * count] = at;
      out[2 * count++ + 1] = other;
      least = at < least ? at : least;
      most = at > most ? at : most;
    }
    sigps::count_lanes(is_mine, here);
    all += here;
  }
  for (int64_t step = 0; step < 5; step++) {
    uint64_t lesser, greater;
    sigps::step_of_lanes(step, least, lesser);
    sigps::step_of_lanes(step, most, greater);
    least = lesser < least ? lesser : least;
    most = greater > most ? greater : most;
  }
  out[2 * count] = uint64_t(all);
  out[2 * count++ + 1] = all == 0 ? 0 : least << 32 | most;
  return count;
}
"""


class Warp:
    """Threads in the place of lanes, which run the kernel's own code and wait for each other in Python."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(LANES, timeout=300)
        self._said: list[Any] = [None] * LANES
        self._of_thread = threading.local()
        self._library = host_library(SOURCE)
        self._callbacks = {
            "say_lane": ctypes.CFUNCTYPE(ctypes.c_uint64)(lambda: self._of_thread.lane),
            "say_ballot": ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_int)(self._ballot),
            "say_shfl": ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int)(
                lambda value, lane: self._all_say(value)[lane]
            ),
        }
        for name, callback in self._callbacks.items():
            ctypes.c_void_p.in_dll(self._library, name).value = ctypes.cast(callback, ctypes.c_void_p).value

    def run(
        self, targets: Any, first: int, end: int, stop: int, *, begins_again: bool, how: str = "find_all"
    ) -> list[Any]:
        """Return what each lane finds."""
        found: list[Any] = [None] * LANES
        find = getattr(self._library, how)

        def one(lane: int) -> None:
            self._of_thread.lane = lane
            out = np.zeros(2 * (end - first) + 4, np.uint64)
            count = find(
                ctypes.c_void_p(targets.ctypes.data), ctypes.c_uint64(first), ctypes.c_uint64(end),
                ctypes.c_uint64(stop), int(begins_again), ctypes.c_void_p(out.ctypes.data),
            )  # fmt: skip
            found[lane] = [tuple(pair) for pair in out.reshape(-1, 2)[:count].tolist()]

        threads = [threading.Thread(target=one, args=(lane,)) for lane in range(LANES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def _ballot(self, holds: int) -> int:
        return sum(1 << lane for lane, said in enumerate(self._all_say(bool(holds))) if said)

    def _all_say(self, value: Any) -> list[Any]:
        self._said[self._of_thread.lane] = value
        self._barrier.wait()
        said = list(self._said)
        self._barrier.wait()
        return said


def common(mine: list[int], theirs: list[int], *, begins_again: bool = False) -> list[tuple[int, int]]:
    """Return the positions that a warp finds, of rows that lie one behind the other.

    Args:
        mine: The first row.
        theirs: The second row.
        begins_again: Whether what was found and not yet given is forgotten after each, as where another walk comes
            between.
    """
    targets = np.array([5, *mine, *theirs, 5], dtype=np.uint32)
    end = 1 + len(mine)
    lanes = Warp().run(targets, 1, end, end + len(theirs), begins_again=begins_again)
    assert all(lane == lanes[0] for lane in lanes), "lanes went different ways"
    found: list[tuple[int, int]] = lanes[0]
    return found


def assert_common(mine: list[int], theirs: list[int], **options: bool) -> None:
    found = common(mine, theirs, **options)
    both = sorted(set(mine) & set(theirs))
    expected = [(1 + mine.index(t), 1 + len(mine) + theirs.index(t)) for t in both]
    assert found == expected
    if not options.get("begins_again"):
        assert_shared(mine, theirs, expected)


def assert_shared(mine: list[int], theirs: list[int], expected: list[tuple[int, int]]) -> None:
    """Lanes that each take some by themselves take each once, and agree on what they took together."""
    targets = np.array([5, *mine, *theirs, 5], dtype=np.uint32)
    end = 1 + len(mine)
    lanes = Warp().run(targets, 1, end, end + len(theirs), begins_again=False, how="find_mine")
    told = (len(expected), expected[0][0] << 32 | expected[-1][0]) if expected else (0, 0)
    assert [lane[-1] for lane in lanes] == [told] * LANES
    taken = [pair for lane in lanes for pair in lane[:-1]]
    assert sorted(taken) == expected
    if len(mine) >= 64 and mine == theirs == sorted(set(mine)):
        assert len({lane[0] for lane in lanes}) == LANES  # each has a part


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
