"""Columns of Arrow as NumPy arrays and the other way, and record batches as edges.

Arrow's own conversions import pandas, which takes a quarter of a second and more memory than a small graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.formats.edge_input import LoadOptions
from sigps.graph.user_arrays import as_ids, as_texts

__all__ = [
    "arrow_array",
    "edge_chunk",
    "explained",
    "holds_numbers",
    "numbers_of",
    "one_array",
    "strings_of",
    "vertex_rows",
]


@contextmanager
def explained(what: object, kind: str) -> Iterator[None]:
    """Replace Arrow's errors by a GraphError that names what is read."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise GraphError(f"{what}: cannot be read as {kind} ({error}); fetch or write it again") from error


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


def vertex_rows(
    batch: Any, id: str, names: dict[str, str], options: LoadOptions, what: str
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return the ids and the vertex columns of a pyarrow RecordBatch or Table; a list of k numbers is a row, [rows, k].

    `id` is the column of ids, `names` gives its column for each vertex column; of `options`, `ids` is used.

    Raises:
        GraphError: If a value is missing, or is no id or no number.
    """
    columns = {name: _rows_of_numbers(batch.column(column), column, what) for name, column in names.items()}
    return _ids(batch.column(id), id, options, what), columns


def holds_numbers(kind: Any) -> bool:
    """Return whether values of an Arrow type can be a vertex column."""
    from pyarrow import types

    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        return holds_numbers(kind.value_type)
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or (types.is_temporal(kind) and not types.is_interval(kind))
    )


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


def strings_of(values: Any, what: str) -> NDArray[Any]:
    """Return an Arrow array of texts, none missing, as a str array; each distinct text is converted once.

    Raises:
        GraphError: If one ends with a zero character; calls the texts `what`.
    """
    encoded = values.dictionary_encode()
    distinct = as_texts(encoded.dictionary.to_pylist(), what)
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
        return strings_of(values, f"{what}: column {name!r}")
    if options.ids == "string":
        return _ids(values.cast(pyarrow.string()), name, options, what)
    if not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)):
        raise GraphError(f"{what}: column {name!r} is {kind}; ids must be integers or text")
    return as_ids(numbers_of(values), f"{what}: column {name!r}")


def _rows_of_numbers(values: Any, name: str, what: str) -> NDArray[Any]:
    import pyarrow

    _require_all(values, name, what)
    if not pyarrow.types.is_nested(values.type):
        return _any_numbers(values, name, what, "a vertex column")
    if not holds_numbers(values.type):
        raise GraphError(f"{what}: column {name!r} is {values.type}; a vertex column must be numeric")
    flat = values.flatten()
    _require_all(flat, name, what)
    lengths = (
        set() if not len(values) else set(pyarrow.compute.list_value_length(values).unique().to_pylist())
    )
    if len(lengths) > 1 or 0 in lengths:
        raise GraphError(
            f"{what}: column {name!r} has lists of {min(lengths)} to {max(lengths)} numbers; every vertex needs "
            "equally many"
        )
    width = lengths.pop() if lengths else getattr(values.type, "list_size", 1)
    return _any_numbers(flat, name, what, "a vertex column").reshape(-1, width)


def _any_numbers(values: Any, name: str, what: str, place: str) -> NDArray[Any]:
    import pyarrow

    _require_all(values, name, what)
    kind = values.type
    if pyarrow.types.is_decimal(kind):
        values = _of_decimals(values, name, what)
    elif pyarrow.types.is_temporal(kind) and not pyarrow.types.is_interval(kind):
        values = values.view(f"int{kind.bit_width}")
    elif not holds_numbers(kind):
        raise GraphError(f"{what}: column {name!r} is {kind}; {place} must be numeric")
    return numbers_of(values)


def _of_decimals(values: Any, name: str, what: str) -> Any:
    """Return decimals as int64, so that none is rounded, or as float64 if they have fractions."""
    import pyarrow

    try:
        return values.cast(pyarrow.int64() if values.type.scale <= 0 else pyarrow.float64())
    except pyarrow.ArrowInvalid:
        raise GraphError(
            f"{what}: column {name!r} is {values.type} and holds numbers beyond int64; write it as float64"
        ) from None


def _numbers(values: Any, name: str, what: str) -> NDArray[Any]:
    numbers = _any_numbers(values, name, what, "an edge column")
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


def arrow_array(values: NDArray[Any]) -> Any:
    """Return a column: of vectors, fixed-size lists.

    Numbers and ASCII texts go as buffers: `pyarrow.array` imports pandas, which takes a quarter of a second.
    """
    import pyarrow

    if values.ndim > 1:
        return pyarrow.FixedSizeListArray.from_arrays(arrow_array(values.reshape(-1)), values.shape[1])
    valid = None
    if isinstance(values, np.ma.MaskedArray):
        valid, values = pyarrow.py_buffer(_bits(~np.ma.getmaskarray(values))), values.data
    if values.dtype.kind in "iufb" and values.dtype.isnative:
        packed = _bits(values) if values.dtype.kind == "b" else np.ascontiguousarray(values)
        kind = pyarrow.from_numpy_dtype(values.dtype)
        return pyarrow.Array.from_buffers(kind, values.size, [valid, pyarrow.py_buffer(packed)])
    if values.dtype.kind == "U" and values.dtype.isnative and values.size and valid is None:
        letters = np.ascontiguousarray(values).view(np.uint32).reshape(values.size, values.itemsize // 4)
        if letters.max(initial=0) < 128 and letters.size < 1 << 31:
            places = np.arange(1, letters.shape[1] + 1)
            lengths = np.max(np.where(letters != 0, places, 0), axis=1, initial=0)
            offsets = np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32))
            used = letters.astype(np.uint8)[places <= lengths[:, None]]
            buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(used)]
            return pyarrow.Array.from_buffers(pyarrow.string(), values.size, buffers)
    return pyarrow.array(values)


def _bits(values: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return truth values as Arrow keeps them: the first in the lowest bit."""
    return np.packbits(values, bitorder="little")
