"""Directed graphs with each edge in the rows of both its ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.build import build
from sigps.graph.building.edges import EdgeChunk, mirror
from sigps.graph.building.rows import rows_as_chunks

__all__ = ["both_ways", "undirected"]


def undirected(graph: GraphArrays) -> GraphArrays:
    """See `Graph.undirected`."""
    return _rebuilt(graph, rows_as_chunks(graph), directed=False)


def both_ways(graph: GraphArrays) -> GraphArrays:
    """See `Graph.both_ways`."""
    if taken := graph.columns.keys() & {"leads_out", "leads_in"}:
        raise GraphError(
            f"the edges have a column {min(taken)!r} already, and both_ways() adds one; rename it"
        )
    if graph.directed:
        return _rebuilt(graph, map(_with_reverse, rows_as_chunks(graph)), directed=True)
    leads = np.ones(graph.targets.size, dtype=np.bool_)
    return replace(graph, columns={**graph.columns, "leads_out": leads, "leads_in": leads}, by_target=None)


def _with_reverse(chunk: EdgeChunk) -> EdgeChunk:
    """Return each edge followed by its reverse, a self-loop once, with the columns `leads_out` and `leads_in`."""
    places = np.arange(chunk.sources.size)
    both = mirror(EdgeChunk(chunk.sources, chunk.targets, {**chunk.columns, "": places}))
    is_first = np.diff(both.columns.pop(""), prepend=-1) > 0
    both.columns |= {"leads_out": is_first, "leads_in": ~is_first | (both.sources == both.targets)}
    return both


def _rebuilt(graph: GraphArrays, chunks: Iterable[EdgeChunk], *, directed: bool) -> GraphArrays:
    """Return the graph of the same vertices, with their ids, and of edges in gids. Collective."""
    built = build(
        chunks, directed=directed, group=graph.group, ids="identity", num_vertices=graph.num_vertices
    )
    return replace(built, ids=graph.ids, report=graph.report)
