"""The partitioners that need the whole graph: rank 0 gathers it, divides it and sends the result to all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import PartitionError
from sigps.graph.graph import Graph
from sigps.graph.partitioning.assignment import Table, cut_by_weight
from sigps.group import Alone, Group

__all__ = ["join_owners", "partition_by_bfs", "partition_by_metis"]

MAX_ENTRIES = (1 << 31) - 1

_Divide = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[Any]]


def partition_by_bfs(graph: Graph, shares: NDArray[np.float64], seed: int) -> Table:
    """Cut the breadth-first order of the vertices into pieces of equal work.

    Each component is searched from a vertex far from its smallest one, so that levels are small. Directions
    are ignored.
    """

    def divide(offsets: NDArray[np.int64], neighbours: NDArray[np.int64]) -> NDArray[Any]:
        from sigps.graph.partitioning import bfs_kernel

        order = np.empty(offsets.size - 1, dtype=np.int64)
        bfs_kernel.order_by_bfs(offsets, neighbours, order, np.zeros(order.size, dtype=np.uint8))
        bounds = cut_by_weight(np.diff(offsets)[order] + 1, shares, Alone())
        owners = np.empty(order.size, dtype=np.int32)
        owners[order] = np.repeat(np.arange(shares.size, dtype=np.int32), np.diff(bounds))
        return owners

    return Table(_divide_on_rank_0(graph, "bfs", divide), shares.size)


def partition_by_metis(graph: Graph, shares: NDArray[np.float64], seed: int) -> Table:
    """Divide by METIS: few cut edges between partitions of equal work. Directions are ignored.

    Paper: Karypis, Kumar: A fast and high quality multilevel scheme for partitioning irregular graphs.
    SIAM J. Scientific Computing 20, 1998.
    """

    def divide(offsets: NDArray[np.int64], neighbours: NDArray[np.int64]) -> NDArray[Any]:
        num_vertices = offsets.size - 1
        if shares.size >= num_vertices:
            # METIS needs more vertices than partitions; here the partitions of the largest shares get one each.
            return np.argsort(-shares, kind="stable")[:num_vertices]
        return _divide_by_metis(offsets, neighbours, shares, seed)

    return Table(_divide_on_rank_0(graph, "metis", divide), shares.size)


def symmetric_adjacency(
    degrees: NDArray[np.int64], targets: NDArray[np.unsignedinteger], directed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return offsets and neighbours of the given graph without directions, parallel edges and self-loops.

    Neighbours ascend inside a row. O(edges), or a sort if directed.

    Args:
        degrees: [n] out-edges of each vertex.
        targets: [edges] in the order of the rows, ascending inside a row.
        directed: Whether the reverse of each edge must be added.
    """
    num_vertices = degrees.size
    sources = np.repeat(np.arange(num_vertices, dtype=np.uint64), degrees)
    ends = targets.astype(np.uint64)
    keys = (sources << np.uint64(32)) | ends
    keys = keys[sources != ends]
    if directed:
        keys = np.concatenate([keys, (keys << np.uint64(32)) | (keys >> np.uint64(32))])
        keys.sort()
    # Keys ascend, so equal ones are adjacent.
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if keys.size else keys
    starts = np.zeros(num_vertices + 1, dtype=np.int64)
    np.cumsum(np.bincount((keys >> np.uint64(32)).view(np.int64), minlength=num_vertices), out=starts[1:])
    keys &= np.uint64(0xFFFFFFFF)
    return starts, keys.view(np.int64)


def _divide_on_rank_0(graph: Graph, method: str, divide: _Divide) -> NDArray[Any]:
    """Return the partition of each vertex on all ranks; all ranks raise if `divide` fails on rank 0."""
    entries = graph.num_edges * (2 if graph.directed else 1)
    if max(entries, graph.num_vertices) > MAX_ENTRIES:
        raise PartitionError(
            f"the method {method!r} gathers the graph on one rank, and {graph.num_vertices:,} vertices with "
            f"{entries:,} edges in both directions are more than {MAX_ENTRIES:,}. Use 'edges' or 'hash'."
        )
    degrees = _gather_on_rank_0(graph, graph.out_degrees())
    targets = _gather_on_rank_0(graph, graph.targets)

    def owners() -> NDArray[Any]:
        if graph.group.rank > 0:
            return np.empty(0, dtype=np.int32)
        return divide(*symmetric_adjacency(degrees, targets, graph.directed)).astype(np.int32)

    return join_owners(owners, f"the method {method!r}", graph.group)


def join_owners(work: Callable[[], NDArray[Any]], what: str, group: Group) -> NDArray[Any]:
    """Return what `work` returns, joined over the ranks; where it fails on any, raise on all. Collective."""
    owners, problem, cause = np.empty(0, dtype=np.int32), "", None
    try:
        owners = work()
    except PartitionError as error:
        problem = str(error)
    except Exception as error:  # the other ranks wait in the collective below
        problem, cause = f"{what} failed: {type(error).__name__}: {error}", error
    problem = next(filter(None, group.all_gather(problem)), "")
    if problem:
        raise PartitionError(problem) from cause
    return np.concatenate(group.all_gather_array(owners))


def _gather_on_rank_0(graph: Graph, values: NDArray[Any]) -> NDArray[Any]:
    group = graph.group
    return np.concatenate(group.all_to_all([values] + [values[:0]] * (group.size - 1)))


def _divide_by_metis(
    offsets: NDArray[np.int64], neighbours: NDArray[np.int64], shares: NDArray[np.float64], seed: int
) -> NDArray[Any]:
    try:
        from pymetis import CSRAdjacency, Options, part_graph
    except ImportError as error:
        raise PartitionError(
            f"the method 'metis' needs pymetis 2025.2 or newer ({error}). "
            "Install it with: pip install 'sigps[io]'. Without it, 'bfs' also keeps neighbours together."
        ) from error
    # METIS is compiled for 32-bit numbers.
    adjacency = CSRAdjacency(offsets.astype(np.int32), neighbours.astype(np.int32))
    work = (np.diff(offsets) + 1).astype(np.int32)
    equal = bool(np.all(shares == shares[0]))
    _, owners = part_graph(
        shares.size,
        adjacency=adjacency,
        vweights=work,
        tpwgts=None if equal else shares.tolist(),
        options=Options(seed=int(seed) & 0x7FFFFFFF),
    )
    return np.asarray(owners)
