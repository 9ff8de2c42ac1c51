"""Vertices by their degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["degree_order"]


def degree_order(degrees: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the vertices by descending degree, equal degrees in their given order.

    `order[k]` is the vertex to be numbered k. O(n); degrees are below 2**32.

    Example:
        >>> degree_order(np.array([1, 3, 0, 3])).tolist()
        [1, 3, 0, 2]
    """
    if degrees.size == 0:
        return np.empty(0, dtype=np.int64)
    # NumPy sorts 16 bits by their digits, in a quarter of the time of words of (how far below, position) or less.
    below = degrees.max() - degrees
    order: NDArray[np.int64] = np.argsort(below.astype(np.uint16), kind="stable")
    if int(below.max()) > 0xFFFF:
        above = (below >> below.dtype.type(16)).astype(np.uint16)
        order = order[np.argsort(above[order], kind="stable")]
    return order
