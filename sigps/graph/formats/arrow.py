"""Parquet and Arrow files: one edge a row, ends and values in typed columns.

Every rank reads its share of the row groups (Parquet) or record batches (Arrow), so ids and weights keep
the file's types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.formats.arrow_values import numbers_of
from sigps.graph.formats.blocks import import_optional, require_file
from sigps.graph.formats.columns import column_index, end_column, value_places
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions
from sigps.graph.user_arrays import as_ids
from sigps.group import Group

__all__ = ["edge_chunk", "read_arrow", "read_parquet"]


def read_parquet(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Begin to read a Parquet file; the edges come as `chunks` is drawn.

    Raises:
        GraphError: If the file is damaged or lacks a column that is asked for.
    """
    require_file(path)
    import_optional("pyarrow.parquet", f"{path}: reading Parquet")
    from pyarrow import parquet

    file = _opened(path, parquet.ParquetFile, "Parquet")
    places = _places(path, file.schema_arrow.names, options)
    names = [file.schema_arrow.names[place] for place in places.values()]
    own = _own_range(file.num_row_groups, group)
    batches = file.iter_batches(_BATCH_ROWS, row_groups=list(own), columns=names) if len(own) else iter(())
    return _input("parquet", path, file.schema_arrow.names, places, batches, options)


def read_arrow(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Begin to read an Arrow IPC (Feather) file, memory-mapped; the edges come as `chunks` is drawn.

    Raises:
        GraphError: If the file is damaged or lacks a column that is asked for.
    """
    require_file(path)
    import_optional("pyarrow", f"{path}: reading Arrow files")
    import pyarrow

    file = _opened(path, lambda name: pyarrow.ipc.open_file(pyarrow.memory_map(name)), "Arrow IPC")
    places = _places(path, file.schema.names, options)
    names = [file.schema.names[place] for place in places.values()]
    own = _own_range(file.num_record_batches, group)
    batches = (file.get_batch(index).select(names) for index in own)
    return _input("arrow", path, file.schema.names, places, batches, options)


def edge_chunk(batch: Any, names: dict[str, str], options: LoadOptions, what: str) -> EdgeChunk:
    """Return a record batch's edges.

    Args:
        batch: A pyarrow RecordBatch or Table.
        names: The batch's column for `"source"`, `"target"` and each edge column.
        options: What the caller asked for; `ids` is used.
        what: Where the batch comes from, for errors.

    Raises:
        GraphError: If a value is missing, or is no id or no finite number.
    """
    ends = [_ids(batch.column(names[end]), names[end], options, what) for end in ("source", "target")]
    columns = {
        name: _numbers(batch.column(column), column, what)
        for name, column in names.items()
        if name not in ("source", "target")
    }
    return EdgeChunk(ends[0], ends[1], columns)


_BATCH_ROWS = 1 << 18


def _opened(path: Path, opener: Any, kind: str) -> Any:
    import pyarrow

    try:
        return opener(str(path))
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise GraphError(f"{path}: cannot be read as {kind} ({error}); fetch or write it again") from error


def _own_range(num_parts: int, group: Group) -> range:
    return range(num_parts * group.rank // group.size, num_parts * (group.rank + 1) // group.size)


def _places(path: Path, names: Sequence[str], options: LoadOptions) -> dict[str, int]:
    """Return the position of the ends and of every column that was asked for."""
    if len(names) < 2:
        raise GraphError(f"{path}: an edge needs two columns, but the file has {len(names)}: {list(names)}")
    places = {
        "source": end_column("source", options.source, names, str(path)),
        "target": end_column("target", options.target, names, str(path)),
    }
    for name, (place, kind) in value_places(options, names, str(path)).items():
        if kind:
            raise GraphError(f"{path}: column {name!r} has the file's type; leave {kind!r} away")
        places[name] = column_index(place, names, f"the column for {name!r}", str(path))
    return places


def _input(
    format: str,
    path: Path,
    names: Sequence[str],
    places: dict[str, int],
    batches: Iterator[Any],
    options: LoadOptions,
) -> EdgeInput:
    directed = True if options.directed is None else options.directed
    ignored = [name for index, name in enumerate(names) if index not in places.values()]
    result = EdgeInput(format, directed)
    if ignored:
        result.notes.append(f"columns not read: {', '.join(ignored)} (weights= and columns= read them)")
    chosen = {name: names[place] for name, place in places.items()}
    result.chunks = _chunks(path, batches, chosen, options)
    return result


def _chunks(
    path: Path, batches: Iterator[Any], names: dict[str, str], options: LoadOptions
) -> Iterator[EdgeChunk]:
    import pyarrow

    try:
        for batch in batches:
            yield edge_chunk(batch, names, options, str(path))
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise GraphError(f"{path}: the data is damaged ({error}); fetch or write it again") from error


def _ids(values: Any, name: str, options: LoadOptions, what: str) -> NDArray[Any]:
    import pyarrow

    _require_all(values, name, what)
    kind = values.type
    if pyarrow.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
        kind = kind.value_type
    if any(is_text(kind) for is_text in (pyarrow.types.is_string, pyarrow.types.is_large_string)):
        if options.ids == "int":
            raise GraphError(f"{what}: column {name!r} holds text, but ids='int' was asked for")
        encoded = values.dictionary_encode()
        distinct = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
        codes = numbers_of(encoded.indices)
        return distinct[codes] if distinct.size else np.empty(0, dtype="U1")
    if options.ids == "string":
        return _ids(values.cast(pyarrow.string()), name, options, what)
    if not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)):
        raise GraphError(f"{what}: column {name!r} is {kind}; ids must be integers or text")
    return as_ids(numbers_of(values), f"{what}: column {name!r}")


def _numbers(values: Any, name: str, what: str) -> NDArray[Any]:
    import pyarrow

    _require_all(values, name, what)
    kind = values.type
    if pyarrow.types.is_decimal(kind):
        values = values.cast(pyarrow.float64())
    elif pyarrow.types.is_temporal(kind) and not pyarrow.types.is_interval(kind):
        values = values.view(f"int{kind.bit_width}")
    elif not (
        pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)
    ):
        raise GraphError(f"{what}: column {name!r} is {kind}; an edge column must be numeric")
    numbers: NDArray[Any] = numbers_of(values)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        at = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise GraphError(
            f"{what}: column {name!r} has {numbers[at]} (row {at} of its batch); every edge needs a finite "
            "number. Fill or remove such rows"
        )
    return numbers


def _require_all(values: Any, name: str, what: str) -> None:
    if values.null_count:
        raise GraphError(
            f"{what}: column {name!r} has {values.null_count} missing values; fill or remove such rows"
        )
