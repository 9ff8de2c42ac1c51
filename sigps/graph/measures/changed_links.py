"""What a batch of updates does to the neighbours and links of vertices: only pairs whose edges changed are looked at.

A pair of vertices has 0, 1 or 2 arcs between them, loops and parallel ones left out. Pairs change one after the other:
while pair i is looked at, those before it are as after the batch, and those behind it as before. Where {a, b} gets y
arcs instead of x, each common neighbour w of a and b has y - x links more; and where a and b become neighbours, a has
as many links more as there are arcs from b to common neighbours, and b likewise.

Rows are those after the batch, with loops and parallel edges, `ends` ascending in each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = ["arcs_between", "follow_pairs"]


@compiled
def arcs_between(
    firsts: NDArray[np.uint32],
    seconds: NDArray[np.uint32],
    begins: NDArray[np.uint64],
    stops: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    num_rows: int,
    found: NDArray[np.uint8],
) -> None:
    """Write whether there is an arc from each of `firsts` to the one beside it in `seconds`; O(log degree) each.

    Vertices from `num_rows` on have no row.
    """
    for i in range(firsts.size):
        found[i] = 0
        if firsts[i] < num_rows:
            low, end = begins[firsts[i]], stops[firsts[i]]
            last = end
            while low < end:
                middle = (low + end) >> np.uint64(1)
                if ends[middle] < seconds[i]:
                    low = middle + np.uint64(1)
                else:
                    end = middle
            if low < last and ends[low] == seconds[i]:
                found[i] = 1


@compiled
def follow_pairs(
    first: int,
    last: int,
    pairs: Any,
    entries: Any,
    outward: Any,
    inward: Any,
    num_counted: int,
    directed: bool,
    marks: NDArray[np.uint8],
    others: NDArray[np.uint8],
    listed: NDArray[np.uint32],
    num_neighbors: NDArray[np.int64],
    links: NDArray[np.int64],
    seen: NDArray[np.uint8],
) -> None:
    """Add to `num_neighbors` and `links`, [n], what pairs first .. last - 1 change, and write 1 to `seen`, [n], there.

    Only the first `num_counted` vertices count as common neighbours: rows and entries have no others. So several ranks
    can count apart, each its own vertices, and what ends get of all of them adds up.

    Args:
        first: The first pair.
        last: The one after the last.
        pairs: (a, b, before, after), [pairs] each: the ends, and how many arcs there are. Equal `a` stand together.
        entries: (other, pair, of_a, to_a, of_b, to_b): the pairs of each vertex lie side by side in the first two, the
            other end and the pair's number; those of the ends of pair i are of_a[i] .. to_a[i] - 1, and of_b[i] ..
        outward: (from_a, to_a, from_b, to_b, ends): the targets of a of pair i are ends[from_a[i] .. to_a[i] - 1], and
            likewise of b.
        inward: The same of sources; not read unless `directed`.
        num_counted: How many vertices are counted.
        directed: Whether an arc may lack its reverse.
        marks: [num_counted], zeros before and after.
        others: The same.
        listed: [num_counted + 1], scratch.
        num_neighbors: See above.
        links: See above.
        seen: See above.
    """
    ends_a, ends_b, before, after = pairs[0], pairs[1], pairs[2], pairs[3]
    other, number = entries[0], entries[1]
    from_a, to_a, from_b, to_b = entries[2], entries[3], entries[4], entries[5]
    one, two = np.uint8(1), np.uint8(2)
    both = one if directed else np.uint8(3)
    for i in range(first, last):
        a, b = ends_a[i], ends_b[i]
        if i == first or ends_a[i - 1] != a:
            for e in range(outward[0][i], outward[1][i]):
                marks[outward[4][e]] |= both
            if directed:
                for e in range(inward[0][i], inward[1][i]):
                    marks[inward[4][e]] |= two
            for k in range(from_a[i], to_a[i]):
                arcs = after[number[k]] if number[k] < i else before[number[k]]
                marks[other[k]] = np.uint8(3) if arcs == 2 else np.uint8(arcs)
        count = 0
        for e in range(outward[2][i], outward[3][i]):
            w = outward[4][e]
            listed[count] = w
            count += others[w] == 0
            others[w] |= both
        if directed:
            for e in range(inward[2][i], inward[3][i]):
                w = inward[4][e]
                listed[count] = w
                count += others[w] == 0
                others[w] |= two
        for k in range(from_b[i], to_b[i]):
            w = other[k]
            arcs = after[number[k]] if number[k] < i else before[number[k]]
            if others[w] == 0 and arcs > 0:
                listed[count] = w
                count += 1
            others[w] = np.uint8(3) if arcs == 2 else np.uint8(arcs)
        change = np.int64(after[i]) - np.int64(before[i])
        of_a, of_b = np.int64(0), np.int64(0)
        for k in range(count):
            w = listed[k]
            mine, theirs = marks[w], others[w]
            others[w] = 0
            if mine != 0 and theirs != 0 and w != a and w != b:
                links[w] += change
                seen[w] = 1
                of_a += np.int64(1) + np.int64(theirs == 3)
                of_b += np.int64(1) + np.int64(mine == 3)
        sign = np.int64(before[i] == 0) - np.int64(after[i] == 0)
        links[a] += sign * of_a
        links[b] += sign * of_b
        num_neighbors[a] += sign
        num_neighbors[b] += sign
        seen[a] = 1
        seen[b] = 1
        if b < num_counted:
            marks[b] = np.uint8(3) if after[i] == 2 else np.uint8(after[i])
        if i + 1 == last or ends_a[i + 1] != a:
            for e in range(outward[0][i], outward[1][i]):
                marks[outward[4][e]] = 0
            if directed:
                for e in range(inward[0][i], inward[1][i]):
                    marks[inward[4][e]] = 0
            for k in range(from_a[i], to_a[i]):
                marks[other[k]] = 0
