"""Lengths of shortest paths on one CPU core, by buckets: passes over arrays, of no program's functions.

A label is a length and a number of edges in one int64: `length * unit + edges`, and `unit` is a power of two beyond
any number of edges. So the least label is the shortest length, and of paths of that length the fewest edges. An edge
adds `weight * unit + 1`, which is exact for whole weights. `UNREACHED` is the label of a vertex without a path.

Where weights are not whole and no parents are wanted, a label is the length alone, a float64: the sum that supersteps
make, one edge after another. It is no larger where its beginning is no larger, so the least is theirs, bit for bit.

U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003; with
two piles, one of the bucket at hand and one of all others: A. Davidson et al., "Work-efficient parallel GPU methods
for single-source shortest paths", IPDPS 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import Kernel, compiled
from sigps.native.primitives import prefetch

__all__ = [
    "UNREACHED",
    "Piles",
    "begin_labels",
    "label_by_edges",
    "measure_weights",
    "relax_real",
    "relax_whole",
    "store_lengths",
]

UNREACHED = np.int64(2**63 - 1)

_IN_NEAR, _IN_FAR = np.uint8(1), np.uint8(2)

_AHEAD = 2
"""How many vertices ahead of its turn a row is fetched: those in the order of labels have rows that lie anywhere.

Milliseconds of this loop, whole weights: luxembourg_osm 3.3 with 2, 2.9 with 4 and 5.1 without; grid-500 10.3, 12.8 and
13.2. To fetch the labels of its targets so, too, changes nothing.
"""

MOST_WHOLE = np.float64(2**53)
"""Whole numbers up to this are exact in double precision."""


class Piles(NamedTuple):
    """The vertices whose labels fell and that have not passed them on.

    near: [n + 1] a ring of those in the bucket at hand. far: [n] the others. where: [n] bits: in which piles a vertex
    is. at: [4] int64: the first of the ring, how many it has, how many are far, and relaxed edges so far. bound: [1]
    the label with which the bucket ends.
    """

    near: NDArray[np.uint32]
    far: NDArray[np.uint32]
    where: NDArray[np.uint8]
    at: NDArray[np.int64]
    bound: NDArray[Any]


@compiled
def measure_weights(begin: int, end: int, weights: NDArray[Any]) -> tuple[bool, Any, Any]:
    """Return whether weights begin..end are whole numbers from 0 to 2**53, the least of them and the greatest."""
    least, greatest = MOST_WHOLE, np.float64(0.0)
    for e in range(begin, end):
        weight = np.float64(weights[e])
        if not (weight >= 0.0 and weight <= MOST_WHOLE):
            return False, least, greatest
        if np.float64(np.int64(weight)) != weight:
            return False, least, greatest
        least = weight if weight < least else least
        greatest = weight if weight > greatest else greatest
    return True, least, greatest


@compiled
def begin_labels(
    lengths: NDArray[Any],
    sent: NDArray[np.uint8],
    out_degrees: NDArray[Any],
    longest: np.int64,
    unit: np.int64,
    labels: NDArray[np.int64],
    piles: Piles,
) -> bool:
    """Give each vertex the label of the length that it begins with, and put those that have one on the near pile.

    Returns whether that is right: all that have one and an out-edge sent it, and it is whole, from 0 to `longest`.
    """
    count = 0
    for v in range(len(lengths)):
        length = np.float64(lengths[v])
        labels[v] = UNREACHED
        if length == np.inf:
            continue
        if not (length >= 0.0 and length <= np.float64(longest)):
            return False
        if np.float64(np.int64(length)) != length or (sent[v] == 0 and out_degrees[v] > 0):
            return False
        labels[v] = np.int64(length) * unit
        piles.near[count] = v
        piles.where[v] = _IN_NEAR
        count += 1
    piles.at[1] = count
    return True


def _relax(extended: Callable[..., Any], end_of_bucket: Callable[..., Any], name: str) -> Kernel:
    """Return the loop that passes labels on, extended along each edge and in buckets as these functions say."""

    def relax(
        offsets: NDArray[np.uint64],
        targets: NDArray[np.uint32],
        weights: NDArray[Any],
        unit: np.int64,
        width: Any,
        most: Any,
        unreached: Any,
        most_work: int,
        labels: NDArray[Any],
        piles: Piles,
    ) -> int:
        """Pass labels on, those of the nearest bucket first, until none falls any more or so many edges are passed.

        Args:
            offsets: [n + 1] of edges by source.
            targets: Their targets.
            weights: Numbers from 0 on.
            unit: What stands between lengths.
            width: Of a bucket, in labels.
            most: The greatest label that may be.
            unreached: The label of a vertex without a path.
            most_work: Edges after which it returns, though not all is done.
            labels: [n].
            piles: Where it goes on.

        Returns:
            How many vertices are left on piles; -1 where a label would be greater than `most`.
        """
        near, far, where, at = piles.near, piles.far, piles.where, piles.at
        first, num_near, num_far, bound = at[0], at[1], at[2], piles.bound[0]
        size = len(near)
        work: Any = 0
        while num_near > 0 and work < most_work:
            while num_near > 0 and work < most_work:
                u = near[first]
                first = first + 1 if first + 1 < size else 0
                num_near -= 1
                where[u] &= _IN_FAR
                label = labels[u]
                if label >= bound:  # it begins further off
                    where[u] |= _IN_FAR
                    far[num_far] = u
                    num_far += 1
                    continue
                begin, end = np.int64(offsets[u]), np.int64(offsets[np.int64(u) + 1])
                work += end - begin
                if num_near > _AHEAD:
                    ahead = first + _AHEAD
                    row: Any = np.int64(offsets[near[ahead if ahead < size else ahead - size]])
                    prefetch(targets, row)
                    prefetch(weights, row)
                for e in range(begin, end):
                    v = targets[e]
                    through = extended(label, weights[e], unit)
                    if through < labels[v]:
                        if through > most:
                            return -1
                        labels[v] = through
                        prefetch(offsets, v)
                        if through < bound:
                            if where[v] & _IN_NEAR == 0:
                                where[v] |= _IN_NEAR
                                last = first + num_near
                                near[last if last < size else last - size] = v
                                num_near += 1
                        elif where[v] & _IN_FAR == 0:
                            where[v] |= _IN_FAR
                            far[num_far] = v
                            num_far += 1
            while num_near == 0 and num_far > 0:  # the next bucket
                before, nearest = bound, unreached
                kept: Any = 0
                bound = end_of_bucket(bound, width)
                for i in range(num_far):
                    v = far[i]
                    label = labels[v]
                    if label >= bound:
                        far[kept] = v
                        kept += 1
                        nearest = label if label < nearest else nearest
                        continue
                    where[v] &= _IN_NEAR
                    if label >= before:  # else it came nearer since, and went on from there
                        where[v] |= _IN_NEAR
                        near[(first + num_near) % size] = v
                        num_near += 1
                        prefetch(offsets, v)
                num_far = kept
                if num_near == 0 and num_far > 0:
                    bound = nearest
        left: int = num_near + num_far
        at[0], at[1], at[2], piles.bound[0] = first, num_near, num_far, bound
        at[3] += work
        return left

    relax.__qualname__ = name
    return compiled(relax)


def _extended_whole(label, weight, unit):  # type: ignore[no-untyped-def]
    return label + np.int64(weight) * unit + 1


def _extended_real(label, weight, unit):  # type: ignore[no-untyped-def]
    return label + np.float64(weight)


def _end_of_whole(label, width):  # type: ignore[no-untyped-def]
    return label + width


def _end_of_real(label, width):  # type: ignore[no-untyped-def]
    return max(label + width, label * 1.0000000000000002)  # the next number, where the width is lost in it


relax_whole = _relax(_extended_whole, _end_of_whole, "relax_whole")
relax_real = _relax(_extended_real, _end_of_real, "relax_real")


@compiled
def store_lengths(
    begin: int,
    end: int,
    offsets: NDArray[np.uint64],
    sources: NDArray[np.uint32],
    weights: NDArray[Any],
    ids: NDArray[Any],
    labels: NDArray[np.int64],
    unit: np.int64,
    bits: np.int64,
    lengths: NDArray[Any],
    parents: NDArray[np.int64],
) -> int:
    """Write the lengths of vertices begin..end that a path of an edge or more leads to, and their parents.

    A parent is the vertex of the smallest id whose label and edge make the vertex's label. `parents` is [n], or [0]
    where none are wanted; `ids` [n], or [0] where they are local ids. Edges are by target.

    Returns how many vertices that are.
    """
    count: int = 0
    for v in range(begin, end):
        label = labels[v]
        if label == UNREACHED or label & (unit - 1) == 0:
            continue
        count += 1
        lengths[v] = label >> bits
        if len(parents) == 0:
            continue
        best = UNREACHED
        for e in range(np.int64(offsets[v]), np.int64(offsets[v + np.uint64(1)])):
            u = sources[e]
            if labels[u] != UNREACHED and labels[u] + np.int64(weights[e]) * unit + 1 == label:
                parent = np.int64(ids[u]) if len(ids) > 0 else np.int64(u)
                best = parent if parent < best else best
        parents[v] = best
    return count


@compiled
def label_by_edges(
    offsets: NDArray[np.uint64],
    targets: NDArray[np.uint32],
    weights: NDArray[Any],
    lengths: NDArray[Any],
    unit: np.int64,
    labels: NDArray[np.int64],
    waits: NDArray[np.uint8],
    changed: NDArray[np.uint8],
    queue: NDArray[np.uint32],
    first: int,
    count: int,
    most_work: int,
) -> tuple[int, int, int]:
    """Give vertices of known lengths their labels: of the shortest paths to each, one with the fewest edges counts.

    The `count` vertices from `first` on in the ring `queue` [n] have labels, and pass them on along the edges that are
    on shortest paths; a vertex whose label falls is in the ring again. In ascending order of edges none falls twice.
    Edges are by source, of owned vertices and ghosts; `lengths` are those of owned ones.

    Args:
        offsets: [n + 1].
        targets: Owned vertices.
        weights: Whole numbers.
        lengths: [owned].
        unit: What stands between lengths.
        labels: [n].
        waits: [n] 1 where a vertex is in the ring.
        changed: [n] becomes 1 where a label falls.
        queue: [n].
        first: The first of the ring.
        count: How many it has.
        most_work: Edges after which it returns, though not all is done.

    Returns:
        The new first and count, and the edges passed.
    """
    work: Any = 0
    size = len(queue)
    while count > 0 and work < most_work:
        u = queue[first]
        first = first + 1 if first + 1 < size else 0
        count -= 1
        waits[u] = 0
        edges, length = labels[u] % unit + 1, np.float64(labels[u] // unit)
        begin, end = np.int64(offsets[u]), np.int64(offsets[np.int64(u) + 1])
        work += end - begin
        for e in range(begin, end):
            v = targets[e]
            if length + np.float64(weights[e]) != np.float64(lengths[v]):
                continue
            through = np.int64(lengths[v]) * unit + edges
            if through < labels[v]:
                labels[v] = through
                changed[v] = 1
                if waits[v] == 0:
                    waits[v] = 1
                    last = first + count
                    queue[last if last < size else last - size] = v
                    count += 1
    return first, count, work
