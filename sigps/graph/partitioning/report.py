"""The quality of a partitioning: balance, cut edges, ghosts and bytes of each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigps.errors import PartitionError
from sigps.graph.graph import Graph
from sigps.graph.partitioning.assignment import Assignment
from sigps.graph.report import aligned

__all__ = ["PartitionReport", "measure"]


@dataclass(frozen=True)
class PartitionReport:
    """Counts of each partition, [num_partitions] of int64; `str()` is a table of them.

    Attributes:
        vertices: Vertices that the partition owns.
        in_edges: Directed edges into them.
        cut_edges: In-edges whose source another partition owns.
        ghosts: Distinct sources of the cut edges.
        num_bytes: Estimated bytes of the partition: 4 an edge and direction, its columns, 40 a vertex, 16 a ghost.
            Of an undirected graph one direction counts; several partitions take more while a program pushes.
    """

    vertices: NDArray[np.int64]
    in_edges: NDArray[np.int64]
    cut_edges: NDArray[np.int64]
    ghosts: NDArray[np.int64]
    num_bytes: NDArray[np.int64]

    @property
    def num_partitions(self) -> int:
        """The number of partitions, empty ones included."""
        return self.vertices.size

    @property
    def vertex_balance(self) -> float:
        """Vertices of the largest partition divided by the mean; 1 is best."""
        return _balance(self.vertices)

    @property
    def balance(self) -> float:
        """In-edges of the largest partition divided by the mean; 1 is best."""
        return _balance(self.in_edges)

    @property
    def cut_share(self) -> float:
        """The fraction of all edges that are cut, 0 to 1."""
        return float(self.cut_edges.sum() / max(self.in_edges.sum(), 1))

    def __str__(self) -> str:
        columns = [self.vertices, self.in_edges, self.cut_edges, self.ghosts, self.num_bytes]
        rows: list[tuple[str, ...]] = [("part", "vertices", "in-edges", "cut edges", "ghosts", "bytes")]
        rows += [
            (str(part), *(f"{column[part]:,}" for column in columns)) for part in range(self.num_partitions)
        ]
        rows.append(("all", *(f"{column.sum():,}" for column in columns)))
        balance = (
            f"largest over mean: vertices {self.vertex_balance:.3f}, in-edges {self.balance:.3f}; "
            f"{self.cut_share:.1%} of the edges are cut"
        )
        return "\n".join([*aligned(rows), balance])


def measure(graph: Graph, assignment: Assignment) -> PartitionReport:
    """Count what each partition of a graph holds.

    Collective; the same report on all ranks. O(edges of a rank) time, O(vertices) memory.

    Raises:
        PartitionError: If the assignment is of a graph with another number of vertices.

    Example:
        >>> from sigps.graph.generators.generate import generate
        >>> from sigps.graph.partitioning.partition import partition
        >>> measure(generate("path", n=6), partition(generate("path", n=6), 2)).cut_edges.tolist()
        [1, 1]
    """
    if assignment.num_vertices != graph.num_vertices:
        raise PartitionError(
            f"the assignment is of {assignment.num_vertices:,} vertices and the graph has "
            f"{graph.num_vertices:,}. Partition this graph first."
        )
    num_partitions = assignment.num_partitions
    owner_of, degrees = _owner_lookup(graph, assignment), graph.out_degrees()
    counts = np.zeros((4, num_partitions), dtype=np.int64)
    vertices, in_edges, cut_edges, ghosts = counts
    for begin, end in _blocks(graph.offsets, num_partitions):
        owners = owner_of(np.arange(graph.first_row + begin, graph.first_row + end))
        rows = np.repeat(np.arange(end - begin), degrees[begin:end])
        readers = owner_of(graph.targets[int(graph.offsets[begin]) : int(graph.offsets[end])])
        # The ghosts of a partition are the sources of its in-edges that it does not own. All edges of a source
        # are in this block, so each pair of source and partition is counted once.
        is_ghost = np.zeros((end - begin, num_partitions), dtype=bool)
        is_ghost[rows, readers] = True
        is_ghost[np.arange(end - begin), owners] = False
        vertices += np.bincount(owners, minlength=num_partitions)
        in_edges += np.bincount(readers, minlength=num_partitions)
        cut_edges += np.bincount(readers[readers != owners[rows]], minlength=num_partitions)
        ghosts += np.count_nonzero(is_ghost, axis=0)
    counts = graph.group.all_reduce(counts.ravel(), "sum").reshape(4, num_partitions)
    vertices, in_edges, cut_edges, ghosts = counts
    num_bytes = _estimate_bytes(graph, vertices, in_edges, ghosts)
    return PartitionReport(vertices, in_edges, cut_edges, ghosts, num_bytes)


_BLOCK_EDGES = 1 << 22
_BLOCK_PAIRS = 1 << 24
_VERTEX_BYTES = 40
_GHOST_BYTES = 16


def _balance(counts: NDArray[np.int64]) -> float:
    return float(counts.max() / counts.mean()) if counts.any() else 1.0


def _blocks(offsets: NDArray[np.unsignedinteger], num_partitions: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that bound a step's memory: its edges and its pairs of row and partition."""
    begin, num_rows = 0, offsets.size - 1
    while begin < num_rows:
        by_edges = int(np.searchsorted(offsets, offsets[begin] + np.uint64(_BLOCK_EDGES), side="right")) - 1
        end = min(by_edges, begin + _BLOCK_PAIRS // num_partitions, num_rows)
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def _owner_lookup(
    graph: Graph, assignment: Assignment
) -> Callable[[NDArray[np.integer]], NDArray[np.integer]]:
    """Return owner_of, by a table if the rank has more edges than the graph has vertices."""
    if graph.targets.size < graph.num_vertices:
        return lambda gids: assignment.owner_of(gids.astype(np.int64, copy=False))
    table = assignment.owner_of(np.arange(graph.num_vertices))
    return lambda gids: table[gids]


def _estimate_bytes(
    graph: Graph,
    vertices: NDArray[np.int64],
    in_edges: NDArray[np.int64],
    ghosts: NDArray[np.int64],
) -> NDArray[np.int64]:
    edge_bytes = 4 + sum(column.itemsize for column in graph.columns.values())
    directions = 2 if graph.directed else 1
    return in_edges * (edge_bytes * directions) + vertices * _VERTEX_BYTES + ghosts * _GHOST_BYTES
