"""Graphs from and to other structures: SciPy, NetworkX, whatever speaks Arrow; edges in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.building.build import build_graph
from sigps.graph.building.edges import EdgeChunk, edge_chunks, mirror, own_share
from sigps.graph.building.rows import Duplicates
from sigps.graph.formats.arrow import edge_chunk
from sigps.graph.formats.blocks import import_optional
from sigps.graph.formats.edge_input import LoadOptions
from sigps.graph.formats.edge_list import column_index
from sigps.graph.graph import Graph
from sigps.graph.ids import as_ids
from sigps.graph.report import LoadReport
from sigps.group import Group, world

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = [
    "both_ways",
    "from_arrow",
    "from_networkx",
    "from_scipy",
    "rows_as_chunks",
    "to_scipy",
    "undirected",
]

SelfLoops = Literal["keep", "drop"]


def from_scipy(
    matrix: Any,
    *,
    directed: bool = True,
    weights: bool = True,
    duplicates: Duplicates = "keep",
    self_loops: SelfLoops = "keep",
    group: Group | None = None,
) -> Graph:
    """See `Graph.from_scipy`."""
    import_optional("scipy.sparse", "from_scipy")
    import scipy.sparse

    group = world() if group is None else group
    is_sparse: bool = scipy.sparse.issparse(matrix)
    if not is_sparse:
        raise GraphError(f"from_scipy takes a SciPy sparse matrix or array, not {type(matrix).__name__}")
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"an adjacency matrix is square, but this one has shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise GraphError(f"the matrix holds {matrix.dtype}, but weights are real numbers")
    entries = matrix.tocoo()
    sources, targets, values = entries.row, entries.col, entries.data
    if not directed:
        one_side = _one_side(entries)
        sources, targets, values = sources[one_side], targets[one_side], values[one_side]
    columns = {"weight": values} if weights and values.dtype.kind != "b" else {}
    return build_graph(
        edge_chunks(sources, targets, columns, group),
        directed=directed,
        group=group,
        duplicates=duplicates,
        self_loops=self_loops,
        ids="identity",
        num_vertices=int(matrix.shape[0]),
        report=LoadReport(format="scipy"),
    )


def to_scipy(graph: Graph) -> scipy.sparse.csr_array[Any]:
    """See `Graph.to_scipy`."""
    import_optional("scipy.sparse", "to_scipy")
    import scipy.sparse

    shape = (graph.num_rows, graph.num_vertices)
    values = graph.columns["weight"] if graph.has_weights else np.ones(graph.targets.size)
    small = max(graph.num_vertices, graph.targets.size) < 2**31
    index = np.int32 if small else np.int64
    arrays = (values, graph.targets.astype(index), graph.offsets.astype(index))
    return scipy.sparse.csr_array(arrays, shape=shape)


def from_networkx(
    source: networkx.Graph[Any],
    *,
    weight: str | None = "weight",
    columns: Mapping[str, str] | None = None,
    duplicates: Duplicates = "keep",
    self_loops: SelfLoops = "keep",
    group: Group | None = None,
) -> Graph:
    """See `Graph.from_networkx`."""
    group = world() if group is None else group
    try:
        oids = as_ids(np.fromiter(source.nodes, dtype=object, count=len(source)), "nodes")
    except GraphError as error:
        hint = "networkx.convert_node_labels_to_integers gives all nodes numbers"
        raise GraphError(f"{error}; {hint}") from error
    places = {node: place for place, node in enumerate(source.nodes)}
    ends = np.array([[places[u], places[v]] for u, v in source.edges()], dtype=np.int64).reshape(-1, 2)
    values: dict[str, Any] = {name: _attributes(source, key) for name, key in (columns or {}).items()}
    if weight is not None and any(weight in data for *_, data in source.edges(data=True)):
        values = {"weight": _attributes(source, weight, default=1), **values}
    graph = Graph.from_edges(
        oids[ends[:, 0]],
        oids[ends[:, 1]],
        columns=values,
        directed=source.is_directed(),
        vertices=oids,
        duplicates=duplicates,
        self_loops=self_loops,
        group=group,
    )
    graph.report.format = "networkx"
    return graph


def from_arrow(
    data: Any,
    source: int | str = 0,
    target: int | str = 1,
    weight: int | str | None = None,
    *,
    directed: bool = True,
    vertices: ArrayLike | None = None,
    columns: Mapping[str, int | str] | None = None,
    duplicates: Duplicates = "keep",
    self_loops: SelfLoops = "keep",
    local: bool = False,
    group: Group | None = None,
) -> Graph:
    """See `Graph.from_arrow`."""
    import_optional("pyarrow", "from_arrow")
    group = world() if group is None else group
    reader = _reader(data)
    wanted: dict[str, int | str] = {"source": source, "target": target}
    if weight is not None:
        wanted["weight"] = weight
    if clash := wanted.keys() & (columns or {}):
        raise GraphError(f"columns= has {sorted(clash)}, which other arguments already name; rename them")
    names = reader.schema.names
    places = {
        name: column_index(place, names, f"the column for {name!r}", "from_arrow")
        for name, place in {**wanted, **(columns or {})}.items()
    }
    if vertices is not None and not local:
        vertices = own_share(as_ids(vertices, "vertices"), group)
    return build_graph(
        _arrow_chunks(reader, places, local, group),
        directed=directed,
        group=group,
        vertices=vertices,
        duplicates=duplicates,
        self_loops=self_loops,
        report=LoadReport(format="arrow"),
    )


def undirected(graph: Graph) -> Graph:
    """See `Graph.undirected`."""
    return _rebuilt(graph, rows_as_chunks(graph), directed=False)


def both_ways(graph: Graph) -> Graph:
    """See `Graph.both_ways`."""
    if taken := graph.columns.keys() & {"leads_out", "leads_in"}:
        raise GraphError(
            f"the edges have a column {min(taken)!r} already, and both_ways() adds one; rename it"
        )
    if graph.directed:
        return _rebuilt(graph, map(_turned_too, rows_as_chunks(graph)), directed=True)
    lead = np.ones(graph.targets.size, dtype=np.bool_)
    return _as_rows(graph, graph, {**graph.columns, "leads_out": lead, "leads_in": lead})


def _turned_too(chunk: EdgeChunk) -> EdgeChunk:
    """Return each edge followed by its reverse, and which is which; a self-loop once."""
    places = np.arange(chunk.sources.size)
    both = mirror(EdgeChunk(chunk.sources, chunk.targets, {**chunk.columns, "": places}))
    is_first = np.diff(both.columns.pop(""), prepend=-1) > 0
    both.columns |= {"leads_out": is_first, "leads_in": ~is_first | (both.sources == both.targets)}
    return both


def _rebuilt(graph: Graph, chunks: Iterator[EdgeChunk], *, directed: bool) -> Graph:
    """Return a graph of the same vertices, and of edges in gids."""
    built = build_graph(
        chunks, directed=directed, group=graph.group, ids="identity", num_vertices=graph.num_vertices
    )
    return _as_rows(graph, built, built.columns)


def _as_rows(graph: Graph, built: Graph, columns: dict[str, NDArray[Any]]) -> Graph:
    """Return the rows of `built` with these columns, under the ids of `graph`."""
    return Graph(
        offsets=built.offsets,
        targets=built.targets,
        columns=columns,
        num_edges=built.num_edges,
        directed=built.directed,
        ids=graph.ids,
        row_bounds=built.row_bounds,
        group=graph.group,
        report=graph.report,
    )


_BATCH_EDGES = 1 << 18
_BATCH_ROWS = 1 << 20


def rows_as_chunks(graph: Graph) -> Iterator[EdgeChunk]:
    """Yield this rank's edges in gids; one empty chunk, which names the columns, if there are none."""
    if not graph.targets.size:
        yield EdgeChunk(graph.targets, graph.targets, graph.columns)
    for start in range(0, graph.targets.size, _BATCH_EDGES):
        stop = min(start + _BATCH_EDGES, graph.targets.size)
        first, last = np.searchsorted(graph.offsets, np.array([start, stop - 1], np.uint64), side="right") - 1
        cuts = np.clip(graph.offsets[first : last + 2], start, stop)
        gids = np.arange(graph.first_row + first, graph.first_row + last + 1, dtype=graph.targets.dtype)
        columns = {name: column[start:stop] for name, column in graph.columns.items()}
        sources = np.repeat(gids, (cuts[1:] - cuts[:-1]).astype(np.int64))
        yield EdgeChunk(sources, graph.targets[start:stop], columns)


def _one_side(entries: Any) -> NDArray[np.bool_]:
    """Return which entries of a matrix are each undirected edge once: a triangle, or half of a symmetric one.

    Raises:
        GraphError: If the matrix is neither.
    """
    upper, lower = entries.row <= entries.col, entries.row >= entries.col
    if upper.all():
        return np.asarray(upper)
    if lower.all():
        return np.asarray(lower)
    import scipy.sparse

    ones = np.ones(entries.data.size, dtype=np.int64)
    times: Any = scipy.sparse.coo_array((ones, (entries.row, entries.col)), shape=entries.shape).tocsr()
    values: Any = entries.tocsr()
    if (values != values.T).nnz or (times != times.T).nnz:
        raise GraphError(
            "directed=False needs a symmetric or a triangular matrix, and this one is neither. "
            "Pass directed=True, or one triangle"
        )
    return np.asarray(upper)


def _attributes(source: networkx.Graph[Any], key: str, default: float | None = None) -> NDArray[Any]:
    """Return one attribute of every edge."""
    values = [edge[-1] for edge in source.edges(data=key, default=default)]
    if any(value is None for value in values):
        at = next(place for place, value in enumerate(values) if value is None)
        raise GraphError(f"edge {list(source.edges())[at]} has no attribute {key!r}; every edge needs it")
    return np.array(values)


def _reader(data: Any) -> Any:
    """Return a reader of record batches for whatever holds a table."""
    import pyarrow

    if isinstance(data, pyarrow.RecordBatchReader):
        return data
    if isinstance(data, pyarrow.RecordBatch):
        data = pyarrow.Table.from_batches([data])
    if isinstance(data, pyarrow.Table):
        return data.to_reader(_BATCH_ROWS)
    if hasattr(data, "__arrow_c_stream__"):
        return pyarrow.RecordBatchReader.from_stream(data)
    raise GraphError(
        "from_arrow takes a table that speaks Arrow (of pyarrow, pandas, polars, DuckDB), "
        f"not {type(data).__name__}"
    )


def _arrow_chunks(reader: Any, places: dict[str, int], local: bool, group: Group) -> Iterator[EdgeChunk]:
    """Yield this rank's share of a stream of record batches."""
    import pyarrow

    labels = {place: reader.schema.names[place] for place in places.values()}
    if len(set(labels.values())) < len(labels):
        labels = {place: f"{label} (number {place})" for place, label in labels.items()}
    if group.size > 1 and not local:  # the shares follow one another, so the number of rows must be known
        table = reader.read_all()
        first, stop = (table.num_rows * rank // group.size for rank in (group.rank, group.rank + 1))
        reader = table.slice(first, stop - first).to_reader(_BATCH_ROWS)
    for batch in reader:
        arrays = [_plain(batch.column(place)) for place in labels]
        part = pyarrow.RecordBatch.from_arrays(arrays, names=list(labels.values()))
        names = {name: labels[place] for name, place in places.items()}
        yield edge_chunk(part, names, LoadOptions(), "from_arrow")


def _plain(values: Any) -> Any:
    """Return an array whose type older kernels know: text views as text."""
    import pyarrow

    is_view = getattr(pyarrow.types, "is_string_view", lambda _: False)
    return values.cast(pyarrow.large_string()) if is_view(values.type) else values
