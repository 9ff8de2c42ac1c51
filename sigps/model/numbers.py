"""The types of numbers that fields, messages and vectors may have."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["NUMPY_TYPES", "TYPES", "is_number_type"]

NUMPY_TYPES = "a NumPy scalar type from int8 to uint64, float32, float64, bool_"
TYPES = f"int, float, bool, VertexId, {NUMPY_TYPES}, or a Vector of one of these"

_SCALARS = {np.dtype(code).type for code in "?bhilqBHILQfd"}


def is_number_type(type_: Any) -> bool:
    """Return whether arrays and compiled code can hold numbers of a type."""
    return type_ in (int, float, bool) or (isinstance(type_, type) and type_ in _SCALARS)
