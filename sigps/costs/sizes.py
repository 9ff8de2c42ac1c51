"""How large graphs and partitions are, in counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from sigps.graph.graph import Graph
from sigps.model.vertex import Vertex

__all__ = ["PartitionSize", "Size", "even_partition", "size_of", "turned_size"]


class Size(NamedTuple):
    """How large a graph is.

    Attributes:
        num_edges: Directed edges as stored: an undirected edge counts twice.
        directed: Whether edges have a direction, and so need a second index for the other one.
        column_bytes: Bytes of one edge's columns.
        basis: What the numbers were read or estimated from, in words.
        vertex_bytes: Bytes of one vertex's columns.
    """

    num_vertices: int
    num_edges: int
    directed: bool
    column_bytes: int
    basis: str
    vertex_bytes: int = 0


@dataclass(frozen=True)
class PartitionSize:
    """How large the largest partition of a graph is; each number is the largest of any rank.

    Attributes:
        vertices: Vertices that it owns.
        edges: Their in-edges.
        cut_edges: Those of the in-edges whose source another rank owns.
        ghosts: Distinct sources of these.
    """

    vertices: int
    edges: int
    cut_edges: int = 0
    ghosts: int = 0


def size_of(graph: Graph, basis: str = "counting it") -> Size:
    """Return how large a graph is that is at hand."""
    columns = sum(dtype.itemsize for dtype in graph.column_types().values())
    rows = (c.dtype.itemsize * math.prod(c.shape[1:]) for c in graph.vertex_columns.values())
    return Size(graph.num_vertices, graph.num_edges, graph.directed, columns, basis, sum(rows))


def turned_size(size: Size, program: Vertex) -> Size:
    """Return how large a graph is with its edges in the directions in which a program uses them.

    Where a directed graph is made undirected and simple this is the most: of an edge that it has in both directions
    one is left out.
    """
    declared = program.declaration
    if declared.both_ways:
        doubled = size.num_edges * (2 if size.directed else 1)
        return size._replace(num_edges=doubled, column_bytes=size.column_bytes + 2)  # leads_out, leads_in
    if declared.directed or not size.directed:
        return size
    return size._replace(num_edges=2 * size.num_edges, directed=False)


def even_partition(num_vertices: int, num_edges: int, num_ranks: int) -> PartitionSize:
    """Return the largest partition of a graph of which only the size is known.

    Vertices and edges are evenly divided. Edges are cut as often as chance cuts them, and ghosts are as many as there
    can be: one a remote in-edge, and no more than there are remote vertices.

    >>> even_partition(100, 360, 4)
    PartitionSize(vertices=25, edges=90, cut_edges=68, ghosts=75)
    """
    vertices, edges = -(-num_vertices // num_ranks), -(-num_edges // num_ranks)
    if num_ranks == 1:
        return PartitionSize(vertices, edges)
    cut = -(-edges * (num_ranks - 1) // num_ranks)
    return PartitionSize(vertices, edges, cut, min(num_vertices - vertices, edges))
