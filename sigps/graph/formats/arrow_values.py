"""Columns of Arrow as arrays of NumPy, without pandas, which Arrow's own conversions import."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["numbers_of", "one_array", "strings_of"]


def one_array(values: Any) -> Any:
    """Return an Arrow column as one array, without a copy where it is one."""
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def numbers_of(values: Any) -> NDArray[Any]:
    """Return an Arrow array of numbers, none missing, as a NumPy array; without a copy unless boolean.

    Arrow's own way, `to_numpy`, imports pandas: a quarter of a second and more bytes than small graphs take.
    """
    import pyarrow

    if pyarrow.types.is_boolean(values.type):
        values = values.cast(pyarrow.uint8())
        return np.from_dlpack(values).view(np.bool_)
    return np.from_dlpack(values)


def strings_of(values: Any) -> NDArray[Any]:
    """Turn an Arrow string column into a str array by way of its distinct values."""
    encoded = one_array(values).dictionary_encode()
    distinct = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    return distinct[numbers_of(encoded.indices)] if len(distinct) else np.empty(0, dtype="U1")
