"""Divide a graph's vertices among parts.

`partition` is collective and gives the same `Assignment` on all ranks. What each method costs:

    "vertices"   contiguous ids, as many vertices a part           nothing
    "hash"       each id by its hash                               nothing
    "edges"      contiguous ids, as much work a part (default)     O(vertices of a rank)
    "bfs"        breadth-first order, as much work a part          the whole graph on rank 0
    "metis"      multilevel, few cut edges                         the whole graph on rank 0, slow when large
    a function   parts of an array of the user's ids               4 bytes a vertex on every rank

The work of a vertex is its in-edges plus its out-edges plus one. On an undirected graph, where these are
the same edges, it is the degree plus one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sigps.errors import PartitionError
from sigps.graph.graph import Graph
from sigps.graph.partitioning.assignment import Assignment, Contiguous, Hashed, Table, cut_by_weight
from sigps.graph.partitioning.gathered_partition import partition_by_bfs, partition_by_metis

__all__ = ["METHODS", "Assignment", "PartitionFunction", "degree_order", "partition", "work_of_rows"]

PartitionFunction = Callable[[NDArray[Any]], NDArray[np.integer]]


def partition(
    graph: Graph,
    num_parts: int,
    method: str | PartitionFunction = "edges",
    *,
    capacities: Sequence[float] | None = None,
    seed: int = 1,
) -> Assignment:
    """Give each vertex of a graph to one part.

    Collective; the same assignment on all ranks, and for every number of ranks. Parts may be empty, as when
    there are more parts than vertices.

    Args:
        graph: The graph.
        num_parts: Parts, at least 1.
        method: A name in `METHODS`, or a function that takes an array of the user's ids and returns an
            array of their parts, each in 0 .. num_parts - 1. It is called once on each rank that has rows.
        capacities: The relative share of each part, positive; equal shares by default. A function ignores it.
        seed: Names the choice of "hash" and "metis".

    Raises:
        PartitionError: If an argument is wrong, the function's answer is, or the method cannot do the graph.

    Example:
        >>> from sigps.graph.generators.generate import path
        >>> partition(path(6), 2).owner_of(np.arange(6)).tolist()
        [0, 0, 0, 1, 1, 1]
    """
    shares = _shares(num_parts, capacities)
    if callable(method):
        return _partition_by_function(graph, method, num_parts)
    if not isinstance(method, str) or method not in METHODS:
        close = difflib.get_close_matches(str(method), METHODS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise PartitionError(
            f"there is no method {method!r}{hint} Give one of {', '.join(METHODS)}, or a function of ids."
        )
    if graph.num_vertices == 0 or num_parts == 1:
        return Contiguous(np.array([0] + [graph.num_vertices] * num_parts, dtype=np.int64))
    return METHODS[method](graph, shares, seed)


def degree_order(degrees: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the vertices by descending degree, equal degrees in their given order.

    `order[k]` is the vertex to be numbered k. O(n log n); degrees and n are below 2**32.

    Example:
        >>> degree_order(np.array([1, 3, 0, 3])).tolist()
        [1, 3, 0, 2]
    """
    if degrees.size == 0:
        return np.empty(0, dtype=np.int64)
    # Sorting words of (how far below the highest degree, position) is far faster than a stable argsort.
    keys = (degrees.max().astype(np.int64) - degrees.astype(np.int64)).view(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(degrees.size, dtype=np.uint64)
    keys.sort()
    keys &= np.uint64(0xFFFFFFFF)
    order: NDArray[np.int64] = keys.view(np.int64)
    return order


def work_of_rows(graph: Graph) -> NDArray[np.int64]:
    """Return the work of each of this rank's rows: in-edges plus out-edges plus one.

    Collective. The two directions of an undirected graph are the same edges and count once.
    """
    work = graph.out_degrees() + 1
    return work + graph.in_degrees() if graph.directed else work


def _shares(num_parts: int, capacities: Sequence[float] | None) -> NDArray[np.float64]:
    """Return the share of each part; they add up to 1."""
    is_whole = isinstance(num_parts, int | np.integer) and not isinstance(num_parts, bool)
    if not is_whole or not 1 <= num_parts < 1 << 31:
        raise PartitionError(f"num_parts is {num_parts!r}; give a whole number of parts, at least 1.")
    if capacities is None:
        return np.full(num_parts, 1 / num_parts)
    try:
        shares: NDArray[np.float64] = np.array(capacities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PartitionError(f"capacities are {capacities!r}; give one positive number a part.") from error
    if shares.shape != (num_parts,):
        raise PartitionError(
            f"capacities have the shape {shares.shape}; give one positive number for each of "
            f"{num_parts} parts."
        )
    if not np.all(np.isfinite(shares) & (shares > 0)):
        wrong = int(np.argmin(np.isfinite(shares) & (shares > 0)))
        raise PartitionError(f"capacities[{wrong}] is {shares[wrong]}; give a positive number.")
    shares /= shares.sum()
    return shares


def _partition_by_count(graph: Graph, shares: NDArray[np.float64], seed: int) -> Assignment:
    ends = np.rint(np.cumsum(shares) * graph.num_vertices).astype(np.int64)
    ends[-1] = graph.num_vertices
    return Contiguous(np.concatenate([[0], np.minimum(ends, graph.num_vertices)]))


def _partition_by_hash(graph: Graph, shares: NDArray[np.float64], seed: int) -> Assignment:
    return Hashed(graph.num_vertices, shares, seed)


def _partition_by_edges(graph: Graph, shares: NDArray[np.float64], seed: int) -> Assignment:
    return Contiguous(cut_by_weight(work_of_rows(graph), shares, graph.group))


def _partition_by_function(graph: Graph, function: PartitionFunction, num_parts: int) -> Assignment:
    gids = np.arange(graph.first_row, graph.first_row + graph.num_rows)
    oids = graph.ids.to_oids(gids)
    parts, problem, cause = np.empty(0, dtype=np.int32), "", None
    if oids.size:
        try:
            parts = _checked(function(oids), oids, num_parts)
        except PartitionError as error:
            problem = str(error)
        except Exception as error:  # The other ranks wait for this one's word, whatever went wrong.
            problem, cause = f"the partition function failed: {type(error).__name__}: {error}", error
    # Every rank raises if one must.
    problem = next(filter(None, graph.group.all_gather(problem)), "")
    if problem:
        raise PartitionError(problem) from cause
    return Table(np.concatenate(graph.group.all_gather_array(parts)), num_parts)


def _checked(answer: Any, oids: NDArray[Any], num_parts: int) -> NDArray[np.int32]:
    parts = np.asarray(answer)
    rule = f"It takes an array of n ids and returns n whole numbers from 0 to {num_parts - 1}."
    if parts.shape != oids.shape:
        raise PartitionError(
            f"the partition function returned the shape {parts.shape} for {oids.size} ids. {rule}"
        )
    if parts.dtype.kind not in "iu":
        raise PartitionError(f"the partition function returned the type {parts.dtype}. {rule}")
    outside = (parts < 0) | (parts >= num_parts)
    if outside.any():
        at = int(np.argmax(outside))
        raise PartitionError(
            f"the partition function gave the vertex {oids[at]} the part {parts[at]}. {rule}"
        )
    return cast("NDArray[np.int32]", parts.astype(np.int32))


METHODS: dict[str, Callable[[Graph, NDArray[np.float64], int], Assignment]] = {
    "vertices": _partition_by_count,
    "hash": _partition_by_hash,
    "edges": _partition_by_edges,
    "bfs": partition_by_bfs,
    "metis": partition_by_metis,
}
