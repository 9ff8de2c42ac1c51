"""How a partition's work is cut for threads, which forms a program has, and what its loops walk: pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.program import Delivery, VertexProgram
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.edge_states import EdgeStates
from sigps.engine.partition.subgraph import Subgraph, columns_of
from sigps.kernels.cpu.arguments import Edges
from sigps.kernels.cpu.neighbors import no_marks

__all__ = [
    "Span",
    "can_push",
    "cut_edges",
    "cut_vertices",
    "edges_of",
    "even_ranges",
    "longest_first",
    "needs_order",
    "num_parts_worth",
    "split_list",
    "walked_edges",
    "with_marks",
]

Span = tuple[np.uint64, np.uint64]


def even_ranges(count: int, num_parts: int) -> list[Span]:
    """Return so many ranges of equally many numbers below `count`, as loops take them.

    >>> [(int(begin), int(end)) for begin, end in even_ranges(7, 2)]
    [(0, 3), (3, 7)]
    """
    if num_parts == 1:
        return [(np.uint64(0), np.uint64(count))]
    return list(itertools.pairwise(np.linspace(0, count, num_parts + 1).astype(np.uint64)))


def num_parts_worth(count: int, num_threads: int) -> int:
    """Return into how many parts so many vertices or edges are cut, of equal work: one where they are few.

    >>> num_parts_worth(8_870, 2), num_parts_worth(114_599, 2)
    (1, 2)
    """
    return num_threads if count > _WORTH_SPLITTING else 1


_WORTH_SPLITTING = 1 << 14
"""With fewer vertices than this, one thread is done before another has woken. A first thread is started, too: SSSP at
once on rome99 (3,353 vertices, 8,870 edges) takes 0.55 ms of two processors with one, and 0.41 without."""
_PARTS_OF_THREAD = 32
"""Parts a thread, of lists of vertices whose work is unequal."""


def can_push(native: NativeProgram, deterministic: bool) -> bool:
    """Tell whether messages may be combined in the order in which senders push them."""
    program = native.program
    if program.delivery is not Delivery.RECORD or program.reads_all_at_once:
        return False
    return not needs_order(native, deterministic)


def needs_order(native: NativeProgram, deterministic: bool) -> bool:
    """Tell whether a vertex's messages, which combine, must do so in the order of its in-edges."""
    if not deterministic:
        return False
    values = zip(native.program.slot_ops, native.slots, strict=False)
    return any(op in ("sum", "prod", "user") and d.base.kind == "f" for op, d in values)


def edges_of(edges: EdgeList, program: VertexProgram) -> Edges:
    """Return an edge list as loops take it, with the columns that messages read."""
    columns = columns_of(edges, program.edge_columns)
    stops = edges.offsets[1:] if edges.stops is None else edges.stops
    return Edges(edges.offsets, edges.ends, columns, stops)


def walked_edges(
    program: VertexProgram, subgraph: Subgraph, edge_states: EdgeStates | None = None
) -> tuple[Any, ...]:
    """Return the out-edges that compute() walks; () for a program that does not.

    Args:
        program: The program.
        subgraph: The partition.
        edge_states: Where the program has some, or walks the rows of neighbours; else None.

    Returns:
        (offsets, gids, ids, columns), and `edges[5]` of `compiler/program.py` where `edge_states` are given. The marks
        in it are empty (`with_marks`).
    """
    if not program.reads_edges:
        return ()
    edges = subgraph.outgoing
    assert edges is not None
    walked = edges.offsets, edges.ends, subgraph.outgoing_ids(), columns_of(edges, program.read_columns)
    if edge_states is None:
        return walked
    rows = subgraph.neighbor_rows
    nothing = np.empty(0, dtype=np.uint32)
    no_reverse = np.empty(0, dtype=np.int64)
    states = edge_states.pending, edge_states.committed
    if rows is None:  # the program walks no rows of neighbours
        no_offsets = np.zeros(1, dtype=np.uint64)
        return *walked, (nothing, no_offsets, nothing, nothing, no_reverse, *states)
    reverse = rows.reverse if program.reads_reverse else no_reverse
    return *walked, (rows.row_of, rows.offsets, rows.targets, nothing, reverse, *states)


def with_marks(walked: tuple[Any, ...], subgraph: Subgraph) -> tuple[Any, ...]:
    """Return what `walked_edges` returned, with marks for one thread of a program that walks the rows of neighbours."""
    *edges, (row_of, offsets, targets, _, *rest) = walked
    marks = no_marks(subgraph.num_vertices, targets.size)
    return *edges, (row_of, offsets, targets, marks, *rest)


def cut_vertices(num_vertices: int, work: Sequence[NDArray[Any]], parts: int) -> list[Span]:
    """Cut vertices into ranges of about equal work.

    A range ends behind a vertex that has more than a range should have.

    Args:
        num_vertices: How many vertices there are.
        work: Row offsets, [num_vertices + 1] each: the edges or messages that are work, beside one for each vertex.
        parts: How many ranges there are at most.

    >>> [(int(begin), int(end)) for begin, end in cut_vertices(4, [np.array([0, 0, 9, 10, 11])], 3)]
    [(0, 2), (2, 4)]
    """
    n = num_vertices
    if parts == 1:
        return [(np.uint64(0), np.uint64(n))] if n else []

    goals = np.linspace(0, n + sum(int(offsets[n]) for offsets in work), parts + 1)[1:-1]
    low, high = np.zeros(parts - 1, dtype=np.int64), np.full(parts - 1, n)
    for _ in range(n.bit_length()):  # the first vertices before which a goal is reached, by bisection
        middle = low + high >> 1
        is_before = middle + sum(offsets[middle].astype(np.int64) for offsets in work) < goals
        low, high = np.where(is_before, np.minimum(middle + 1, high), low), np.where(is_before, high, middle)
    cuts = [0, *low.tolist(), n]
    return [(np.uint64(a), np.uint64(b)) for a, b in itertools.pairwise(cuts) if a < b]


def longest_first(ranges: list[Span], offsets: NDArray[np.uint64]) -> list[Span]:
    """Return ranges of vertices by their work, the largest first: others go on beside a vertex of many edges.

    >>> ranges = [(np.uint64(0), np.uint64(2)), (np.uint64(2), np.uint64(3))]
    >>> [(int(begin), int(end)) for begin, end in longest_first(ranges, np.array([0, 1, 2, 9], dtype=np.uint64))]
    [(2, 3), (0, 2)]
    """
    return sorted(ranges, key=lambda span: int(offsets[span[0]] + span[0]) - int(offsets[span[1]] + span[1]))


def cut_edges(offsets: NDArray[np.uint64], parts: int) -> list[tuple[np.uint64, np.uint64, np.uint64]]:
    """Cut edges into pieces of equal size, wherever rows begin: (first edge, end, row of the first edge) each.

    >>> [tuple(map(int, piece)) for piece in cut_edges(np.array([0, 1, 1, 4, 6], dtype=np.uint64), 3)]
    [(0, 2, 0), (2, 4, 2), (4, 6, 3)]
    """
    cuts = np.unique(np.linspace(0, int(offsets[-1]), parts + 1).astype(np.uint64))
    rows = np.searchsorted(offsets, cuts[:-1], side="right").astype(np.uint64) - np.uint64(1)
    return list(zip(cuts[:-1], cuts[1:], rows, strict=True))


def split_list(
    vertices: NDArray[np.uint32], threads: int, *, is_heavy: bool = False
) -> list[NDArray[np.uint32]]:
    """Split a list of vertices among threads where that pays.

    Args:
        vertices: The list.
        threads: How many threads there are.
        is_heavy: Whether a vertex walks rows of its neighbours: its work is then large, and unequal to others'.
    """
    if vertices.size == 0:
        return []
    if is_heavy:
        return np.array_split(vertices, min(vertices.size, _PARTS_OF_THREAD * threads if threads > 1 else 1))
    return np.array_split(vertices, num_parts_worth(vertices.size, threads))
