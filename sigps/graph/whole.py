"""The whole graph on every rank, where a graph's rows are spread over several."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.arrays import GraphArrays
from sigps.graph.graph import Graph
from sigps.graph.ids import Ids
from sigps.group import Alone, Group

__all__ = ["of_all_ranks", "whole_graph", "whole_rows"]


def whole_graph(graph: Graph) -> Graph:
    """Return the graph with all its rows in this process, a graph of one rank. Collective; computed once a graph.

    On one rank it is the graph itself. O(edges) of time and memory on every rank; rows keep their order.
    """
    if graph.group.size == 1:
        return graph
    return graph.derived("whole graph", lambda: _gathered(graph))


def whole_rows(graph: Graph) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """Return offsets and targets of all rows of a graph. Collective."""
    if graph.group.size == 1:
        return graph.offsets, graph.targets
    degrees = of_all_ranks(np.diff(graph.offsets), graph.group)
    offsets = np.zeros(degrees.size + 1, dtype=np.uint64)
    np.cumsum(degrees, out=offsets[1:])
    return offsets, of_all_ranks(graph.targets, graph.group)


def of_all_ranks(values: NDArray[Any], group: Group) -> NDArray[Any]:
    """Return the ranks' values, [any length, ...], one rank's behind the other's. Collective."""
    parts = group.all_gather_array(np.ascontiguousarray(values).ravel())
    return np.concatenate(parts).reshape(-1, *values.shape[1:])


def _gathered(graph: Graph) -> Graph:
    with graph.group.status.during("bringing the graph to all ranks"):
        return Graph.of(_gathered_arrays(graph))


def _gathered_arrays(graph: Graph) -> GraphArrays:
    group, n = graph.group, graph.num_vertices
    offsets, targets = whole_rows(graph)
    ids = graph.ids
    return GraphArrays(
        offsets=offsets,
        targets=targets,
        columns={name: of_all_ranks(column, group) for name, column in graph.columns.items()},
        num_edges=graph.num_edges,
        directed=graph.directed,
        ids=ids if ids.table is None else Ids.of(of_all_ranks(ids.table, group)),
        row_bounds=np.array([0, n], dtype=np.int64),
        group=Alone(),
        report=graph.report,
        vertex_columns={name: of_all_ranks(column, group) for name, column in graph.vertex_columns.items()},
    )
