"""Edges from structures in memory: SciPy matrices and Arrow tables; and a graph as a SciPy matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import EdgeChunk, edge_chunks
from sigps.graph.formats.arrow_columns import edge_chunk
from sigps.graph.formats.blocks import import_optional
from sigps.graph.formats.columns import column_index
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions
from sigps.group import Group, own_range

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["batches_of", "plain", "read_arrow_table", "read_scipy", "to_scipy"]


def read_scipy(matrix: Any, directed: bool, weights: bool, group: Group) -> EdgeInput:
    """Return the edges of a sparse matrix that all ranks have; see `Graph.from_scipy`."""
    import_optional("scipy.sparse", "from_scipy")
    import scipy.sparse

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
    chunks = edge_chunks(sources, targets, columns, group)
    return EdgeInput("scipy", directed, chunks, num_vertices=int(matrix.shape[0]))


def to_scipy(graph: GraphArrays) -> scipy.sparse.csr_array[Any]:
    """See `Graph.to_scipy`."""
    import_optional("scipy.sparse", "to_scipy")
    import scipy.sparse

    shape = (graph.num_rows, graph.num_vertices)
    values = graph.columns["weight"] if graph.has_weights else np.ones(graph.targets.size)
    small = max(graph.num_vertices, graph.targets.size) < 2**31
    index = np.int32 if small else np.int64
    arrays = (values, graph.targets.astype(index), graph.offsets.astype(index))
    return scipy.sparse.csr_array(arrays, shape=shape)


def read_arrow_table(
    data: Any,
    ends: Mapping[str, int | str],
    weight: int | str | None,
    columns: Mapping[str, int | str],
    directed: bool,
    local: bool,
    group: Group,
) -> EdgeInput:
    """Return the edges of a table of record batches; see `Graph.from_arrow`."""
    import_optional("pyarrow", "from_arrow")
    reader = batches_of(data)
    wanted = dict(ends) if weight is None else {**ends, "weight": weight}
    if clash := wanted.keys() & columns:
        raise GraphError(f"columns= has {sorted(clash)}, which other arguments already name; rename them")
    names = reader.schema.names
    places = {
        name: column_index(place, names, f"the column for {name!r}", "the table")
        for name, place in {**wanted, **columns}.items()
    }
    return EdgeInput("arrow", directed, _arrow_chunks(reader, places, local, group))


_BATCH_ROWS = 1 << 20


def _one_side(entries: Any) -> NDArray[np.bool_]:
    """Return which entries of a matrix hold each undirected edge once: all of a triangle, half of a symmetric one.

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


def batches_of(data: Any) -> Any:
    """Return a reader of record batches for any object that holds a table."""
    import pyarrow

    if isinstance(data, pyarrow.RecordBatchReader):
        return data
    if isinstance(data, pyarrow.RecordBatch):
        data = pyarrow.Table.from_batches([data])
    if isinstance(data, pyarrow.Table):
        return data.to_reader(_BATCH_ROWS)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pyarrow.RecordBatchReader.from_stream(data)
        except pyarrow.ArrowException as error:  # pandas: a column of objects of several types
            problem = "; ".join(str(part) for part in error.args)
            raise GraphError(f"the table: {problem}. A column needs values of one type") from None
    return _collected(data).to_reader(_BATCH_ROWS)


def _collected(data: Any) -> Any:
    """Return the Arrow table of a data frame that has no Arrow stream: of a lazy one, or of Dask, Modin, PySpark."""
    problem = f"a graph is made of a table of pyarrow, or of a data frame, not of {type(data).__name__}"
    try:
        import narwhals
    except ImportError as error:
        raise GraphError(f"{problem}; others need narwhals ({error}): pip install 'sigps[io]'") from None
    try:
        frame = narwhals.from_native(data)
    except TypeError:
        raise GraphError(problem) from None
    return (frame.collect("pyarrow") if isinstance(frame, narwhals.LazyFrame) else frame).to_arrow()


def _arrow_chunks(reader: Any, places: dict[str, int], local: bool, group: Group) -> Iterator[EdgeChunk]:
    """Yield this rank's share of a stream of record batches."""
    import pyarrow

    labels = {place: reader.schema.names[place] for place in places.values()}
    if len(set(labels.values())) < len(labels):
        labels = {place: f"{label} (number {place})" for place, label in labels.items()}
    if group.size > 1 and not local:  # a share is a range of rows, so their number is needed
        table = reader.read_all()
        own = own_range(table.num_rows, group)
        reader = table.slice(own.start, len(own)).to_reader(_BATCH_ROWS)
    for batch in reader:
        arrays = [plain(batch.column(place)) for place in labels]
        part = pyarrow.RecordBatch.from_arrays(arrays, names=list(labels.values()))
        names = {name: labels[place] for name, place in places.items()}
        yield edge_chunk(part, names, LoadOptions(), "the table")


def plain(values: Any) -> Any:
    """Return an array of string views as one of large strings, because older Arrow kernels lack views."""
    import pyarrow

    is_view = getattr(pyarrow.types, "is_string_view", lambda _: False)
    return values.cast(pyarrow.large_string()) if is_view(values.type) else values
