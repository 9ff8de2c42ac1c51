"""Hashes of single edges, whose sum identifies a graph's edges whatever their order is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.random_bits import splitmix64

__all__ = ["bits_of", "hash_sum", "sum_of_words"]


def hash_sum(sources: NDArray[np.int64], targets: NDArray[Any], columns: Iterable[NDArray[Any]]) -> np.uint64:
    """Return the sum, modulo 2**64, of the hashes of edges between gids with these columns, in their order."""
    words = splitmix64(sources.view(np.uint64)) + targets
    for column in columns:
        words = splitmix64(words) + bits_of(column)
    return sum_of_words(np.uint64(0), words)


def bits_of(values: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return each value's bits as a number."""
    if values.dtype.kind == "b":
        return values.astype(np.uint64)
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    return np.ascontiguousarray(values).view(unsigned).astype(np.uint64)


def sum_of_words(total: np.uint64, words: NDArray[np.uint64]) -> np.uint64:
    """Return a total and the hashes of words, added modulo 2**64."""
    # Sums of arrays wrap around without the warning that sums of scalars give.
    both = np.array([total, splitmix64(words).sum(dtype=np.uint64)], dtype=np.uint64)
    return both.sum(dtype=np.uint64)  # type: ignore[no-any-return]
