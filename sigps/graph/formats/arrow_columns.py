"""Columns of Arrow as NumPy arrays, and record batches as edges.

Arrow's own conversions import pandas, which takes a quarter of a second and more memory than a small graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.formats.edge_input import LoadOptions
from sigps.graph.user_arrays import as_ids

__all__ = ["edge_chunk", "numbers_of", "one_array", "strings_of"]


def edge_chunk(batch: Any, names: dict[str, str], options: LoadOptions, what: str) -> EdgeChunk:
    """Return the edges of a pyarrow RecordBatch or Table.

    `names` gives its column for `"source"`, `"target"` and each edge column; of `options`, `ids` is used.

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


def one_array(values: Any) -> Any:
    """Return an Arrow column as one array, without a copy if it has one chunk."""
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def numbers_of(values: Any) -> NDArray[Any]:
    """Return an Arrow array of numbers, none missing, as a NumPy array; without a copy unless boolean."""
    import pyarrow

    if pyarrow.types.is_boolean(values.type):
        values = values.cast(pyarrow.uint8())
        return np.from_dlpack(values).view(np.bool_)
    return np.from_dlpack(values)


def strings_of(values: Any) -> NDArray[Any]:
    """Return an Arrow array of texts, none missing, as a str array; each distinct text is converted once."""
    encoded = values.dictionary_encode()
    distinct = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    return distinct[numbers_of(encoded.indices)] if len(distinct) else np.empty(0, dtype="U1")


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
        return strings_of(values)
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
