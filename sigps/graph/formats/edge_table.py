"""A graph's edges as an Arrow table, and as a NetworkX graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.formats.blocks import import_optional

if TYPE_CHECKING:
    import networkx
    import pyarrow

__all__ = ["edge_columns", "to_arrow", "to_networkx"]


def edge_columns(graph: GraphArrays) -> dict[str, NDArray[Any]]:
    """Return the edges of this rank's rows: `source` and `target`, the user's ids, and the edge columns. Collective.

    Of an undirected graph each edge is there once, in the row of its smaller id, which is the source.

    Raises:
        GraphError: If an edge column has one of these two names.
    """
    if clash := {"source", "target"} & graph.columns.keys():
        raise GraphError(
            f"the graph has an edge column {min(clash)!r}, which names an end in a table of edges"
        )
    degrees = (graph.offsets[1:] - graph.offsets[:-1]).view(np.int64)
    sources = np.repeat(np.arange(graph.first_row, graph.first_row + graph.num_rows), degrees)
    targets = graph.targets.astype(np.int64)
    kept = slice(None) if graph.directed else sources <= targets
    ends = {"source": graph.ids.to_oids(sources[kept]), "target": graph.ids.to_oids(targets[kept])}
    return ends | {name: column[kept] for name, column in graph.columns.items()}


def to_arrow(graph: GraphArrays) -> pyarrow.Table:
    """See `Graph.to_arrow`."""
    import_optional("pyarrow", "to_arrow")
    import pyarrow

    from sigps.graph.formats.arrow_columns import arrow_array

    return pyarrow.table({name: arrow_array(column) for name, column in edge_columns(graph).items()})


def to_networkx(graph: GraphArrays, values: Mapping[str, NDArray[Any]]) -> networkx.Graph[Any]:
    """Return a NetworkX graph, with parallel edges where there are any; edge columns become attributes of edges.

    Args:
        graph: The graph, in one process.
        values: Attributes of nodes: [num_vertices] each, in ascending order of ids.

    Raises:
        GraphError: On several ranks, because no rank holds all edges.
    """
    import_optional("networkx", "to_networkx")
    import networkx

    if graph.group.size > 1:
        raise GraphError(
            f"to_networkx needs all edges in one process, but {graph.group.size} ranks share this graph"
        )
    columns = edge_columns(graph)
    sources, targets = columns.pop("source").tolist(), columns.pop("target").tolist()
    made: networkx.Graph[Any] = networkx.DiGraph() if graph.directed else networkx.Graph()
    ids = graph.ids.to_oids(np.arange(graph.num_vertices)).tolist()
    attributes = {**graph.vertex_columns, **values}
    rows = (
        zip(*(column.tolist() for column in attributes.values()), strict=True)
        if attributes
        else ((),) * len(ids)
    )
    made.add_nodes_from(
        (i, dict(zip(attributes, row, strict=True))) for i, row in zip(ids, rows, strict=True)
    )
    if len(set(zip(sources, targets, strict=True))) < len(sources):
        made = networkx.MultiDiGraph(made) if graph.directed else networkx.MultiGraph(made)
    texts = [column.tolist() for column in columns.values()]
    if texts:
        cells = (dict(zip(columns, row, strict=True)) for row in zip(*texts, strict=True))
        made.add_edges_from(zip(sources, targets, cells, strict=True))
    else:
        made.add_edges_from(zip(sources, targets, strict=True))
    return made
