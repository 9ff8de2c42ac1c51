"""Which supersteps run again for all vertices, and where values of two runs differ (`rounds.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["differ", "is_large"]

_LISTED, _STEP = 16, 50_000
"""What a listed vertex, and a superstep of listed ones, costs besides its edges, in edges: on grid-256 16 ns a vertex,
where one of all takes 4.7 with its four edges, and 40 us."""


def is_large(listed: int, edges: int, num_vertices: int, num_edges: int) -> bool:
    """Tell whether a superstep of all vertices costs less than one of listed ones, found and compared.

    >>> is_large(8000, 32_000, 65_000, 260_000), is_large(12_000, 48_000, 65_000, 260_000), is_large(1, 2, 100, 200)
    (False, True, True)
    """
    return 3 * (edges + _LISTED * listed + _STEP) > 2 * (num_edges + 2 * num_vertices)


def differ(values: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two arrays differ by their bits, row by row."""
    one, other = np.ascontiguousarray(values), np.ascontiguousarray(others)
    size = values[:1].nbytes
    if size in (1, 2, 4, 8):
        differs: NDArray[np.bool_] = one.view(f"u{size}") != other.view(f"u{size}")
        return differs.ravel()
    differs = one.view(np.uint8).reshape(len(one), size) != other.view(np.uint8).reshape(len(one), size)
    return np.any(differs, axis=1) if differs.size else np.zeros(len(one), dtype=np.bool_)
