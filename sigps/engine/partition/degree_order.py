"""The whole graph with its vertices by descending in-degree, for CPU cores that read records along edges.

Vertices of many in-edges then lie together, and so do the records and inboxes that are read most.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.partition.edge_list import EdgeList, in_order
from sigps.engine.partition.subgraph import Subgraph, narrow, seen_ids, target_oids
from sigps.graph.degrees import degree_order
from sigps.graph.graph import Graph
from sigps.host_memory import available_memory

__all__ = ["build_by_degree", "gains_by_degree", "is_skewed", "with_rows"]

_FEW_VERTICES, _MOST_VERTICES = 1 << 16, 1 << 32


def gains_by_degree(graph: Graph) -> bool:
    """Return whether CPU cores that read records are faster where vertices of many in-edges lie together.

    They are where records do not all stay in a core's cache, and most edges lead to few vertices. There must be memory
    for the edges in two orders, or three where they are directed: twice as much as that. O(vertices).
    """
    an_edge = 4 + sum(column.dtype.itemsize for column in graph.columns.values())
    copies = (2 + graph.directed) * an_edge * graph.num_edges
    if not _FEW_VERTICES < graph.num_vertices < _MOST_VERTICES or graph.num_edges < graph.num_vertices:
        return False
    return copies < available_memory() // 2 and is_skewed(np.diff(graph.in_edges().offsets))


def is_skewed(degrees: NDArray[Any]) -> bool:
    """Return whether an eighth of the vertices have more than half of the edges.

    >>> is_skewed(np.repeat([100, 1], [100, 900])), is_skewed(np.full(1000, 8))
    (True, False)
    """
    many = degrees.size - degrees.size // 8
    to_many, to_all = (int(d.sum(dtype=np.int64)) for d in (np.partition(degrees, many)[many:], degrees))
    return 2 * to_many > to_all


def build_by_degree(graph: Graph, num_threads: int, *, ascending: bool = False) -> Subgraph:
    """Lay out the in-edges of a graph that one process has; so many threads do it.

    With `ascending` those of a vertex ascend by local id, so that records are read in the order in which they lie;
    else they stay in the order of gids.
    """
    inward = graph.in_edges()
    order = degree_order(np.diff(inward.offsets))
    local_of = np.empty(order.size, dtype=np.uint32)
    local_of[order] = np.arange(order.size, dtype=np.uint32)
    incoming = EdgeList(inward.offsets, inward.sources, inward.columns)
    return Subgraph(
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        num_owned=order.size,
        num_ghosts=0,
        gids=order,
        ids=seen_ids(graph, order),
        incoming=in_order(incoming, order, local_of, ascending=ascending, num_threads=num_threads),
        outgoing=None,
        out_degrees=narrow(np.diff(graph.offsets)[order]),
        is_symmetric=not graph.directed,
    )


def with_rows(part: Subgraph, graph: Graph, num_threads: int) -> Subgraph:
    """Return the whole graph by degree with its out-edges, for a program that walks them."""
    assert part.gids is not None
    rows = EdgeList(graph.offsets, graph.targets, graph.columns)
    outgoing = in_order(rows, part.gids, num_threads=num_threads)
    wider = replace(part, outgoing=outgoing, outgoing_oids=target_oids(graph, outgoing.ends))
    if "pushed" in part.__dict__:
        wider.__dict__["pushed"] = part.pushed  # laid out already
    return wider
