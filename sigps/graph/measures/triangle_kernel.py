"""Triangles by orientation: edges of the simple graph go from low to high rank, so that each triangle is found once.

The rank of a vertex is its position by ascending degree, which keeps rows short: no vertex has more than about
sqrt(2 m) neighbours of higher rank (N. Chiba, T. Nishizeki, "Arboricity and subgraph listing algorithms", 1985). The
rows of two neighbours are intersected by marks, an array of each thread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = ["cost_of_rows", "links_among_neighbours", "oriented", "triangles"]


def oriented(
    offsets: NDArray[np.uint64], targets: NDArray[np.uint32], rank: NDArray[np.uint32], directed: bool
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint8], NDArray[np.int64]]:
    """Return the simple graph of a multigraph, each edge in the row of its end of lower rank.

    Args:
        offsets: [n + 1] of the out-edges of vertices.
        targets: [edges].
        rank: [n], the vertex's new number.
        directed: Whether an arc may lack its reverse; if all arcs have one, half of them are read.

    Returns:
        Offsets of rows by rank; neighbours of higher rank, by rank; how many arcs the graph has between the two
        (1 or 2, parallel ones not counted); and by rank how many neighbours a vertex has in all.
    """
    n = rank.size
    counts = np.zeros(n + 1, dtype=np.uint64)
    _count_oriented(offsets, targets, rank, directed, counts[1:])
    begins = np.cumsum(counts, dtype=np.uint64)
    size = int(begins[-1])
    ends, ways = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.uint8)
    _place_oriented(offsets, targets, rank, directed, begins[:-1].copy(), ends, ways)
    num_neighbors, rows = np.zeros(n, dtype=np.int64), np.zeros(n + 1, dtype=np.uint64)
    kept = int(_drop_parallel(begins, ends, ways, np.zeros(n, dtype=np.uint8), num_neighbors, rows))
    return rows, ends[:kept].copy(), ways[:kept].copy(), num_neighbors


@compiled
def _count_oriented(
    offsets: NDArray[np.uint64],
    targets: NDArray[np.uint32],
    rank: NDArray[np.uint32],
    directed: bool,
    counts: NDArray[np.uint64],
) -> None:
    """Add to `counts`, [n], the arcs in each row."""
    for v in range(rank.size):
        for e in range(offsets[v], offsets[v + 1]):
            a, b = rank[v], rank[targets[e]]
            if a < b or (directed and a > b):
                counts[min(a, b)] += np.uint64(1)


@compiled
def _place_oriented(
    offsets: NDArray[np.uint64],
    targets: NDArray[np.uint32],
    rank: NDArray[np.uint32],
    directed: bool,
    at: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    ways: NDArray[np.uint8],
) -> None:
    """Write the arcs of each row, whose next place is `at`: 1 for one to the higher rank, 2 one back, 3 both."""
    for v in range(rank.size):
        for e in range(offsets[v], offsets[v + 1]):
            a, b = rank[v], rank[targets[e]]
            if a < b or (directed and a > b):
                low = min(a, b)
                ends[at[low]] = max(a, b)
                ways[at[low]] = (1 if a < b else 2) if directed else 3
                at[low] += np.uint64(1)


@compiled
def _drop_parallel(
    begins: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    ways: NDArray[np.uint8],
    seen: NDArray[np.uint8],
    num_neighbors: NDArray[np.int64],
    rows: NDArray[np.uint64],
) -> np.uint64:
    """Keep one arc of each pair in its row; fill `rows` and `num_neighbors`, and return how many are kept."""
    kept = np.uint64(0)
    for v in range(seen.size):
        first = kept
        for e in range(begins[v], begins[v + 1]):
            w = ends[e]
            if seen[w] == 0:
                ends[kept] = w  # kept <= e: rows only become shorter
                kept += np.uint64(1)
            seen[w] |= ways[e]
        for e in range(first, kept):
            w = ends[e]
            ways[e] = 2 if seen[w] == 3 else 1
            seen[w] = 0
            num_neighbors[v] += 1
            num_neighbors[w] += 1
        rows[v + 1] = kept
    return kept


def cost_of_rows(rows: NDArray[np.uint64], ends: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return how many marks are read for the rows before each one, [n + 1]."""
    cost = np.zeros(rows.size, dtype=np.int64)
    _add_costs(rows, ends, cost)
    return cost


@compiled
def _add_costs(rows: NDArray[np.uint64], ends: NDArray[np.uint32], cost: NDArray[np.int64]) -> None:
    for u in range(rows.size - 1):
        steps = np.int64(1)
        for e in range(rows[u], rows[u + 1]):
            v = ends[e]
            steps += np.int64(2) + np.int64(rows[v + np.uint32(1)] - rows[v])
        cost[u + 1] = cost[u] + steps


@compiled
def links_among_neighbours(
    first: np.uint64,
    last: np.uint64,
    rows: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    ways: NDArray[np.uint8],
    marks: NDArray[np.uint8],
    links: NDArray[np.int64],
) -> None:
    """Add to `links` of each corner of a triangle the arcs of the side that faces it.

    Args:
        first: The first row; triangles whose corners of lowest rank are first .. last - 1 are counted.
        last: The row after the last.
        rows: The offsets that `oriented` returns.
        ends: The neighbours that it returns.
        ways: The numbers of arcs that it returns.
        marks: [n], zeros before and after the call.
        links: [n] by rank, added to.
    """
    one = np.uint64(1)
    for u in range(first, last):
        begin, end = rows[u], rows[u + one]
        if end - begin < 2:
            continue
        for i in range(begin, end):
            marks[ends[i]] = ways[i]
        facing_u = np.int64(0)
        for i in range(begin, end):
            v, from_u_to_v = ends[i], np.int64(ways[i])
            facing_v = np.int64(0)
            for j in range(rows[v], rows[v + np.uint32(1)]):
                w = ends[j]
                from_u_to_w = np.int64(marks[w])
                is_triangle = np.int64(from_u_to_w != 0)
                links[w] += from_u_to_v * is_triangle
                facing_v += from_u_to_w
                facing_u += np.int64(ways[j]) * is_triangle
            links[v] += facing_v
        links[u] += facing_u
        for i in range(begin, end):
            marks[ends[i]] = 0


@compiled
def triangles(
    first: np.uint64,
    last: np.uint64,
    rows: NDArray[np.uint64],
    ends: NDArray[np.uint32],
    marks: NDArray[np.uint8],
    triangles: NDArray[np.int64],
) -> None:
    """Count each corner's triangles: half its links if all edges have their reverse. Faster than counting links.

    The arguments are those of `links_among_neighbours`; `triangles`, [n] by rank, is added to.
    """
    one = np.uint64(1)
    for u in range(first, last):
        begin, end = rows[u], rows[u + one]
        if end - begin < 2:
            continue
        for i in range(begin, end):
            marks[ends[i]] = 1
        of_u = np.int64(0)
        for i in range(begin, end):
            v = ends[i]
            of_v = np.int64(0)
            for j in range(rows[v], rows[v + np.uint32(1)]):
                is_triangle = np.int64(marks[ends[j]])
                triangles[ends[j]] += is_triangle
                of_v += is_triangle
            triangles[v] += of_v
            of_u += of_v
        triangles[u] += of_u
        for i in range(begin, end):
            marks[ends[i]] = 0
