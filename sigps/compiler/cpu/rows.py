"""How tuples of scalars lie in arrays: fields side by side, one cache line a visit."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Dtypes", "rows"]

Dtypes = tuple[np.dtype[Any], ...]


def rows(dtypes: Dtypes, size: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Return `size` tuples of these types, zeroed: no array, one array, or one of structures."""
    if len(dtypes) < 2:
        return tuple(np.zeros(size, dtype=d) for d in dtypes)
    fields = [(f"f{i}", d) for i, d in enumerate(dtypes)]
    return (np.zeros(size, dtype=np.dtype(fields, align=True)),)
