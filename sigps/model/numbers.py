"""The types of numbers that fields, messages and vectors may have, and what such a type makes of a number."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = ["NUMPY_TYPES", "TYPES", "assigned", "converted", "is_number_type", "number_as_computed"]

NUMPY_TYPES = "a NumPy scalar type from int8 to uint64, float32, float64, bool_"
TYPES = f"int, float, bool, VertexId, VertexId | None, {NUMPY_TYPES}, or a Vector of one of these"

_SCALARS = {np.dtype(code).type for code in "?bhilqBHILQfd"}


def is_number_type(type_: Any) -> bool:
    """Return whether arrays and compiled code can hold numbers of a type."""
    return type_ in (int, float, bool) or (isinstance(type_, type) and type_ in _SCALARS)


def converted(kind: Any, value: Any) -> Any:
    """Return a number as a type holds it, as a plain Python number.

    Raises:
        OverflowError, ValueError: If the type cannot hold it.
    """
    if kind in (int, float, bool):
        return kind(value)
    dtype = _held(kind)[0]
    return dtype.type(int(value) if dtype.kind in "iu" else value).item()


def assigned(kind: Any, value: Any, name: str) -> Any:
    """Return a number as what has a type holds it, once compute() assigned, sent or contributed it.

    Raises:
        TypeError: If it is a float and the type is one of whole numbers: its fraction would be lost.
        OverflowError, ValueError: If the type cannot hold it.
    """
    dtype, bounds = _held(kind)
    if bounds:
        if isinstance(value, (float, np.floating)):
            raise TypeError(f"{name} is a whole number, and {value!r} is a float: write int(...)")
        least, most = bounds
        if not least <= value <= most:
            raise OverflowError(f"{value} does not fit {name}, {dtype} ({least} to {most})")
    return number_as_computed(converted(kind, value), dtype)


@functools.cache
def _held(kind: Any) -> tuple[np.dtype[Any], tuple[int, int] | None]:
    """Return the type of a number in arrays; of whole numbers, also the least and the largest that it holds."""
    dtype = np.dtype(kind)
    if dtype.kind not in "iu":
        return dtype, None
    bounds: Any = np.iinfo(dtype)
    return dtype, (int(bounds.min), int(bounds.max))


def number_as_computed(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a number of an array as compute() sees it: Python's, but `np.uint64`, whose arithmetic wraps around."""
    if dtype == np.uint64:
        return np.uint64(value)
    return value.item() if isinstance(value, np.generic) else value
