"""Common neighbours of a vertex and the targets of its edges, found by all lanes of a warp together.

Each lane searches for one target of the shorter row in the longer one, by bisection; a ballot collects those in both,
and calls return these one after another before the next 32 are searched for. The lanes of a warp run the same
compute() of the same vertex: control flow is the same in all, and only here each lane reads another value.

What was found and not yet returned lies in a few cells of each lane (`CELLS` bytes):

     0  where the caller continues in the first row, if it continues with what was found; uint64, as are all positions
     8  where the second row begins
    16  where the 32 targets begin
    24  where this lane's target stands in the longer row, or what stands there in its place
    32  bits of the lanes whose hit is not yet returned, uint32
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CELLS", "WarpFunctions", "find_by_warp", "forget_found"]

CELLS = 40

_NO_POSITION = np.uint64(2**64 - 1)
_ZERO, _ONE, _WARP = np.uint64(0), np.uint64(1), np.uint64(32)
_NO_LANES = np.uint32(0)


class WarpFunctions(NamedTuple):
    """What a lane can do, as functions that Numba compiles.

    Attributes:
        lane: () -> uint64, its number.
        ballot: (bool) -> uint32, the bits of the lanes for which it holds.
        first_of: (bits) -> the number of the lowest lane among them.
        broadcast: (value, lane) -> uint64, the value that this lane has.
        load_position, load_lanes: (cells, offset) -> uint64, uint32.
        store_position, store_lanes: (cells, offset, value).
    """

    lane: Callable[..., Any]
    ballot: Callable[..., Any]
    first_of: Callable[..., Any]
    broadcast: Callable[..., Any]
    load_position: Callable[..., Any]
    load_lanes: Callable[..., Any]
    store_position: Callable[..., Any]
    store_lanes: Callable[..., Any]


def forget_found(of_lane: WarpFunctions) -> Callable[..., Any]:
    """Return what stands in the place of `neighbors.mark_row`: nothing found before is given any more."""
    store_position = of_lane.store_position

    def forget(targets: Any, cells: Any, first: Any, end: Any) -> None:
        store_position(cells, 0, _NO_POSITION)

    return forget


def find_by_warp(of_lane: WarpFunctions, jit: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands in the place of `neighbors.next_common`, with `cells` in the place of marks.

    O(the shorter row / 32, times the logarithm of the longer one) for all calls together.
    """
    lane, ballot, first_of, broadcast = of_lane[:4]
    load_position, load_lanes, store_position, store_lanes = of_lane[4:]
    first_not_below = jit(_first_not_below)

    def find(
        targets: Any, cells: Any, first: Any, at: Any, end: Any, begin: Any, other: Any, stop: Any
    ) -> Any:
        walks_first = end - first <= stop - begin
        walk, search = (at, other) if walks_first else (other, at)
        row, last, limit = (first, end, stop) if walks_first else (begin, stop, end)
        found, lanes = limit, _NO_LANES
        if load_position(cells, 0) == at and load_position(cells, 8) == begin:
            walk, found = load_position(cells, 16), load_position(cells, 24)
            lanes = load_lanes(cells, 32)
            if lanes == _NO_LANES:
                walk, search = walk + _WARP, broadcast(found, 31)
        while lanes == _NO_LANES and walk < last and search < limit:
            mine, found, is_common = walk + lane(), limit, False
            if mine < last:
                target = targets[mine]
                found = first_not_below(targets, search, limit, target)
                is_again = mine > row and targets[mine - _ONE] == target
                is_common = found < limit and targets[found] == target and not is_again
            lanes = ballot(is_common)
            if lanes == _NO_LANES:
                walk, search = walk + _WARP, broadcast(found, 31)
        if lanes == _NO_LANES:
            return end, other
        giver = first_of(lanes)
        here, there = walk + np.uint64(giver), broadcast(found, giver)
        at, other = (here, there) if walks_first else (there, here)
        store_position(cells, 0, at + _ONE)
        store_position(cells, 8, begin)
        store_position(cells, 16, walk)
        store_position(cells, 24, found)
        store_lanes(cells, 32, np.uint32(lanes & (lanes - np.uint32(1))))
        return at, other

    return find


def _first_not_below(targets: Any, low: Any, end: Any, goal: Any) -> Any:
    """Return the first of the positions low..end whose target is not below the goal, or `end`."""
    while low < end:
        middle = (low + end) >> _ONE
        if targets[middle] < goal:
            low = middle + _ONE
        else:
            end = middle
    return low
