"""Values on edges whose rows stream: what a block's vertices changed, and what arrived for a block from other ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = [
    "count_by_rank",
    "find_places",
    "group_by_block",
    "list_changes",
    "mark_changes",
    "place_values",
    "reverse_in_order",
    "sum_of_pairs",
]

_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


@compiled
def mark_changes(
    begin: np.uint64,
    end: np.uint64,
    offsets: NDArray[np.uint64],
    wrote: NDArray[np.uint8],
    width: np.uint64,
    new: NDArray[Any],
    old: NDArray[Any],
    changed: NDArray[np.uint8],
) -> int:
    """Set changed[e] to 1 where a value of an edge differs, of the rows begin..end whose vertices wrote.

    Args:
        begin: The first row of the block.
        end: The row behind its last.
        offsets: [rows + 1], positions among all edges.
        wrote: [rows] 0 or 1.
        width: Numbers of a value.
        new: [edges of the block * width], as bits.
        old: Likewise.
        changed: [edges of the block].

    Returns:
        How many differ.
    """
    first, found = offsets[begin], 0
    for row in range(begin, end):
        if wrote[row] != 0:
            for e in range(offsets[row] - first, offsets[row + np.uint64(1)] - first):
                for i in range(e * width, (e + np.uint64(1)) * width):
                    if new[i] != old[i]:
                        changed[e] = 1
                        found += 1
                        break
    return found


@compiled
def list_changes(
    begin: np.uint64,
    end: np.uint64,
    offsets: NDArray[np.uint64],
    wrote: NDArray[np.uint8],
    ends: NDArray[np.uint32],
    changed: NDArray[np.uint8],
    first_row: np.uint64,
    targets: NDArray[np.uint32],
    sources: NDArray[np.uint32],
    places: NDArray[np.uint32],
) -> Any:
    """List the edges that have a mark, of parallel ones the first alone: that is the one that `edge.reverse` reads.

    Those whose end is a row here come first, the others last, backwards; between them may be room.

    Args:
        begin: The first row of the block.
        end: The row behind its last.
        offsets: [rows + 1], positions among all edges of this rank.
        wrote: [rows] 0 or 1; other rows have no mark.
        ends: [edges], rows of all ranks, ascending in each row.
        changed: [edges of the block].
        first_row: The number of this rank's first row among those of all.
        targets: [marked edges], written: the end of each, of those here by the rows of this rank.
        sources: Likewise, its vertex by the rows of all ranks.
        places: Likewise, its position in the block.

    Returns:
        How many there are with an end here, and where the others begin.
    """
    first, behind_rows = offsets[begin], first_row + np.uint64(offsets.size) - np.uint64(1)
    here, others = np.uint64(0), np.uint64(targets.size)
    for row in range(begin, end):
        if wrote[row] != 0:
            start = offsets[row]
            for e in range(start, offsets[row + np.uint64(1)]):
                if changed[e - first] != 0 and (e == start or ends[e - np.uint64(1)] != ends[e]):
                    end_row = np.uint64(ends[e])
                    if first_row <= end_row and end_row < behind_rows:
                        at = here
                        here += np.uint64(1)
                        targets[at] = np.uint32(end_row - first_row)
                    else:
                        others -= np.uint64(1)
                        at = others
                        targets[at] = ends[e]
                    sources[at] = np.uint32(row + first_row)
                    places[at] = np.uint32(e - first)
    return here, others


@compiled
def group_by_block(
    targets: NDArray[np.uint32],
    first_rows: NDArray[np.uint32],
    begins: NDArray[np.uint64],
    order: NDArray[np.uint32],
) -> None:
    """Find the block of each target, and the order that brings those of a block together; stable.

    Args:
        targets: [entries], rows.
        first_rows: [blocks + 1], ascending.
        begins: [blocks + 1], zeroed; where the entries of each block begin.
        order: [entries], written.
    """
    one, last = np.uint64(1), np.uint64(first_rows.size) - np.uint64(1)
    for turn in range(2):
        for i in range(targets.size):
            low, high = np.uint64(0), last
            while high - low > one:
                middle = (low + high) >> one
                if first_rows[middle] <= targets[i]:
                    low = middle
                else:
                    high = middle
            if turn == 0:
                begins[low] += one
            else:
                order[begins[low]] = np.uint32(i)
                begins[low] += one
        total = np.uint64(0)
        for block in range(begins.size):  # after the first turn counts become begins; after the second, ends
            size = begins[block]
            if turn == 0:
                begins[block] = total
                total += size
            else:
                begins[block] = total
                total = size


@compiled
def find_places(
    targets: NDArray[np.uint32],
    sources: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    places: NDArray[np.uint64],
) -> int:
    """Write where an edge to each source begins in the row of its target. O(log degree) each.

    Args:
        targets: [entries], rows of the block.
        sources: [entries], rows of all ranks, as `ends`.
        offsets: [rows + 1], positions among all edges.
        ends: [edges], ascending in each row.
        places: [entries].

    Returns:
        How many have none, in a graph that is not symmetric.
    """
    one, missing = np.uint64(1), 0
    for i in range(targets.size):
        low, stop = offsets[targets[i]], offsets[np.uint64(targets[i]) + one]
        high = stop
        while low < high:
            middle = (low + high) >> one
            if ends[middle] < sources[i]:
                low = middle + one
            else:
                high = middle
        places[i] = low
        if low == stop or ends[low] != sources[i]:
            missing += 1
    return missing


@compiled
def place_values(
    targets: NDArray[np.uint32],
    sources: NDArray[np.uint32],
    places: NDArray[np.uint64],
    offsets: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    first: np.uint64,
    width: np.uint64,
    values: NDArray[Any],
    kept: NDArray[Any],
) -> None:
    """Write the value of each entry to its edge, and to those that are parallel to it; later entries win.

    Args:
        targets: [entries], rows of the block.
        sources: [entries].
        places: [entries], as `find_places` wrote them.
        offsets: [rows + 1], positions among all edges.
        ends: [edges].
        first: The block's first edge.
        width: Numbers of a value.
        values: [entries * width], as bits.
        kept: [edges of the block * width], as bits; written.
    """
    one = np.uint64(1)
    for i in range(targets.size):
        e, stop = places[i], offsets[np.uint64(targets[i]) + one]
        while e < stop and ends[e] == sources[i]:
            for k in range(width):
                kept[(e - first) * width + k] = values[i * width + k]
            e += one


@compiled
def count_by_rank(
    begin: np.uint64,
    end: np.uint64,
    offsets: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    counts: NDArray[np.uint64],
) -> None:
    """Count the edges of each row by the rank that has their end.

    Args:
        begin: The first row.
        end: The row behind the last.
        offsets: [rows + 1], positions among all edges.
        ends: [edges], rows of all ranks, ascending in each row.
        bounds: [ranks + 1], the row at which those of each rank begin.
        counts: [rows * ranks], zeros before; written.
    """
    one, num_ranks = np.uint64(1), np.uint64(bounds.size - 1)
    for row in range(begin, end):
        rank = np.uint64(0)
        for e in range(offsets[row], offsets[row + one]):
            while ends[e] >= bounds[rank + one]:
                rank += one
            counts[row * num_ranks + rank] += one


@compiled
def reverse_in_order(
    begin: np.uint64,
    end: np.uint64,
    offsets: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    num_below: NDArray[np.uint32],
    reverse: NDArray[np.int64],
) -> None:
    """Write the position of each edge's reverse, of rows that are taken in ascending order; of parallel ones the first.

    Before row u, num_below[v] counts the entries of row v whose end is below u: so the next one is the edge to u.

    Args:
        begin: The first row.
        end: The row behind the last.
        offsets: [rows + 1 or more], positions among all edges, then among copies of edges of further rows.
        ends: [edges], rows, parallel edges side by side; of an undirected graph.
        num_below: [rows and further ones], kept from one call to the next; before the first those below all rows.
        reverse: [edges], whose elements of these rows are there.
    """
    one = np.uint64(1)
    for row in range(begin, end):
        first, stop = offsets[row], offsets[row + one]
        for e in range(first, stop):
            reverse[e] = np.int64(offsets[ends[e]] + np.uint64(num_below[ends[e]]))
        for e in range(first, stop):
            num_below[ends[e]] += np.uint32(1)


@compiled
def sum_of_pairs(
    begin: np.uint64,
    end: np.uint64,
    first_row: np.uint64,
    offsets: NDArray[np.uint64],
    ends: NDArray[np.uint32],
) -> np.uint64:
    """Return the hashes of edges to rows above their own, less those of their reverses, modulo 2**64.

    Of all rows of a graph the sum is 0 where every edge has as many reverses as it is there times; of another, by
    chance, once in 2**64.

    Args:
        begin: The first row.
        end: The row behind the last.
        first_row: The number of row 0 among all rows.
        offsets: [rows + 1], positions among all edges.
        ends: [edges], rows by their numbers among all, whose elements of these rows are there.
    """
    total, one, half = np.uint64(0), np.uint64(1), np.uint64(32)
    for i in range(begin, end):
        row = first_row + i
        for e in range(offsets[i], offsets[i + one]):
            other = np.uint64(ends[e])
            if other > row:
                total += _mix((row << half) | other)
            elif other < row:
                total -= _mix((other << half) | row)
    return total


@compiled
def _mix(word: np.uint64) -> np.uint64:
    """Scramble a word: `graph.random_bits.splitmix64`."""
    word = (word ^ (word >> np.uint64(30))) * _MULTIPLIER_1
    word = (word ^ (word >> np.uint64(27))) * _MULTIPLIER_2
    return word ^ (word >> np.uint64(31))
