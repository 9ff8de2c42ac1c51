"""Divide a graph's vertices among partitions.

`partition` is collective and gives the same `Assignment` on all ranks. What each method costs:

    "vertices"   contiguous ids, equal numbers of vertices         nothing
    "hash"       each id by its hash                               nothing
    "edges"      contiguous ids, equal work (default)              O(vertices of a rank)
    "bfs"        breadth-first order, equal work                   the whole graph on rank 0
    "metis"      multilevel, few cut edges                         the whole graph on rank 0, slow when large
    a function   from an array of the user's ids to partitions     4 bytes a vertex on every rank

The work of a vertex is its in-edges plus its out-edges plus one. On an undirected graph, where these are
the same edges, it is the degree plus one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sigps.errors import PartitionError, nearest
from sigps.graph.graph import Graph
from sigps.graph.partitioning.assignment import Assignment, Contiguous, Hashed, Table, cut_by_weight
from sigps.graph.partitioning.gathered_partition import join_owners, partition_by_bfs, partition_by_metis

__all__ = ["METHODS", "Assignment", "PartitionFunction", "partition", "work_of_rows"]

PartitionFunction = Callable[[NDArray[Any]], NDArray[np.integer]]


def partition(
    graph: Graph,
    num_partitions: int,
    method: str | PartitionFunction = "edges",
    *,
    capacities: Sequence[float] | None = None,
    seed: int = 1,
) -> Assignment:
    """Assign each vertex of a graph to one partition.

    Collective; the same assignment on all ranks, and for every number of ranks. Partitions may be empty, as when
    there are more partitions than vertices.

    Args:
        graph: The graph.
        num_partitions: The number of partitions, at least 1.
        method: A name in `METHODS`, or a function that takes an array of the user's ids and returns an array of
            their partitions, each in 0 .. num_partitions - 1. It is called once on each rank that has rows.
        capacities: The relative share of each partition, positive; equal shares by default. Not used with a function.
        seed: The seed of "hash" and "metis".

    Raises:
        PartitionError: If an argument or the function's result is wrong, or the method cannot divide the graph.

    Example:
        >>> from sigps.graph.generators.generate import generate
        >>> partition(generate("path", n=6), 2).owner_of(np.arange(6)).tolist()
        [0, 0, 0, 1, 1, 1]
    """
    shares = _shares(num_partitions, capacities)
    if callable(method):
        return _partition_by_function(graph, method, num_partitions)
    if not isinstance(method, str) or method not in METHODS:
        raise PartitionError(
            f"there is no method {method!r}{nearest(method, METHODS)} "
            f"Give one of {', '.join(METHODS)}, or a function of ids."
        )
    if graph.num_vertices == 0 or num_partitions == 1:
        return Contiguous(np.array([0] + [graph.num_vertices] * num_partitions, dtype=np.int64))
    return METHODS[method](graph, shares, seed)


def work_of_rows(graph: Graph) -> NDArray[np.int64]:
    """Return the work of each of this rank's rows: in-edges plus out-edges plus one.

    Collective. The two directions of an undirected graph are the same edges and count once.
    """
    work = graph.out_degrees() + 1
    return work + graph.in_degrees() if graph.directed else work


def _shares(num_partitions: int, capacities: Sequence[float] | None) -> NDArray[np.float64]:
    """Return the share of each partition; they add up to 1."""
    is_whole = isinstance(num_partitions, int | np.integer) and not isinstance(num_partitions, bool)
    if not is_whole or not 1 <= num_partitions < 1 << 31:
        raise PartitionError(
            f"num_partitions is {num_partitions!r}; give a whole number of partitions, at least 1."
        )
    if capacities is None:
        return np.full(num_partitions, 1 / num_partitions)
    try:
        shares: NDArray[np.float64] = np.array(capacities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PartitionError(
            f"capacities are {capacities!r}; give one positive number for each partition."
        ) from error
    if shares.shape != (num_partitions,):
        raise PartitionError(
            f"capacities have the shape {shares.shape}; give one positive number for each of "
            f"{num_partitions} partitions."
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


def _partition_by_function(graph: Graph, function: PartitionFunction, num_partitions: int) -> Assignment:
    gids = np.arange(graph.first_row, graph.first_row + graph.num_rows)
    oids = graph.ids.to_oids(gids)

    def owners() -> NDArray[np.int32]:
        return _checked(function(oids), oids, num_partitions) if oids.size else np.empty(0, dtype=np.int32)

    return Table(join_owners(owners, "the partition function", graph.group), num_partitions)


def _checked(result: Any, oids: NDArray[Any], num_partitions: int) -> NDArray[np.int32]:
    owners = np.asarray(result)
    rule = f"It takes an array of n ids and returns n whole numbers from 0 to {num_partitions - 1}."
    if owners.shape != oids.shape:
        raise PartitionError(
            f"the partition function returned the shape {owners.shape} for {oids.size} ids. {rule}"
        )
    if owners.dtype.kind not in "iu":
        raise PartitionError(f"the partition function returned the type {owners.dtype}. {rule}")
    outside = (owners < 0) | (owners >= num_partitions)
    if outside.any():
        at = int(np.argmax(outside))
        raise PartitionError(
            f"the partition function gave the vertex {oids[at]} the partition {owners[at]}. {rule}"
        )
    return cast("NDArray[np.int32]", owners.astype(np.int32))


METHODS: dict[str, Callable[[Graph, NDArray[np.float64], int], Assignment]] = {
    "vertices": _partition_by_count,
    "hash": _partition_by_hash,
    "edges": _partition_by_edges,
    "bfs": partition_by_bfs,
    "metis": partition_by_metis,
}
