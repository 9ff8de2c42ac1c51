"""Ids and numbers of batches written in other types, and checked, in one pass, which threads share.

NumPy takes several operations for it, each of which waits for the interpreter lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.shared_copies import Work
from sigps.native.kernel import compiled

__all__ = ["take_gids", "take_numbers"]

_KINDS = {"ii", "iu", "ui", "uu", "if", "uf", "ff"}
"""Of numbers, and of those that they become."""


def take_gids(oids: NDArray[Any], num_vertices: int, gids: NDArray[np.uint32]) -> Work[bool] | None:
    """Return work that writes ids, [n] integers, and finds whether all are below a number; None for other ids."""
    if oids.dtype.kind not in "iu" or not oids.dtype.isnative:
        return None
    return lambda part: _gids(part.start, part.stop, oids, num_vertices, gids) == 0, oids.size


def take_numbers(values: NDArray[Any], to: NDArray[Any]) -> Work[bool] | None:
    """Return work that writes numbers, [n], and finds whether they fit; None for numbers of other kinds.

    Floats fit floats if they are finite there, and other numbers what holds them exactly.
    """
    kinds = values.dtype.kind + to.dtype.kind
    if kinds not in _KINDS or values.dtype == np.float16 or not values.dtype.isnative:
        return None
    loop = _rounded if kinds == "ff" else _exact
    return lambda part: loop(part.start, part.stop, values, to) == 0, values.size


@compiled
def _gids(begin: int, end: int, oids: NDArray[Any], num_vertices: int, gids: NDArray[np.uint32]) -> np.int64:
    wrong = np.int64(0)
    for i in range(begin, end):
        oid = np.int64(oids[i])
        gids[i] = np.uint32(oid)
        wrong |= np.int64(oid < 0) | np.int64(oid >= num_vertices)
    return wrong


@compiled
def _exact(begin: int, end: int, values: NDArray[Any], to: NDArray[Any]) -> np.int64:
    wrong = np.int64(0)
    for i in range(begin, end):
        to[i] = values[i]
        wrong |= np.int64(to[i] != values[i])
    return wrong


@compiled
def _rounded(begin: int, end: int, values: NDArray[Any], to: NDArray[Any]) -> np.int64:
    wrong = np.int64(0)
    for i in range(begin, end):
        to[i] = values[i]
        wrong |= np.int64(to[i] - to[i] != 0)  # of what is not finite that is NaN
    return wrong
