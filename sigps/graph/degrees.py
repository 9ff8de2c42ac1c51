"""Vertices by their degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["degree_order"]


def degree_order(degrees: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the vertices by descending degree, equal degrees in their given order.

    `order[k]` is the vertex to be numbered k. O(n log n); degrees and n are below 2**32.

    Example:
        >>> degree_order(np.array([1, 3, 0, 3])).tolist()
        [1, 3, 0, 2]
    """
    if degrees.size == 0:
        return np.empty(0, dtype=np.int64)
    # Sorting words of (how far below the highest degree, position) is far faster than a stable argsort.
    keys = (degrees.max().astype(np.int64) - degrees.astype(np.int64)).view(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(degrees.size, dtype=np.uint64)
    keys.sort()
    keys &= np.uint64(0xFFFFFFFF)
    order: NDArray[np.int64] = keys.view(np.int64)
    return order
