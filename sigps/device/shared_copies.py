"""Large arrays of the host that several threads go over at once, each over parts of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads, available_cores

__all__ = ["Work", "copying", "in_parts", "shared_threads"]

_MOST_THREADS = 16
_LEAST = 1 << 17
"""Numbers of a part, at least."""
_MOST_PARTS = 10
"""Of all arrays. Threads take turns in front of each part, and between two operations of NumPy."""

_T = TypeVar("_T")
Work = tuple[Callable[[slice], _T], int]
"""What is done with a part of an array, mostly without the interpreter lock, and how many numbers the array has."""


@functools.cache
def shared_threads() -> Threads:
    """Return the threads that share what takes long; they are started when they are first needed."""
    return Threads(min(_MOST_THREADS, available_cores()))


def in_parts(*work: Work[_T]) -> list[_T]:
    """Return what is returned of parts of arrays, of all of one where it is short."""
    if all(size < 2 * _LEAST for _, size in work):
        return [function(slice(0, size)) for function, size in work]
    most = _MOST_PARTS // sum(size >= _LEAST for _, size in work)
    tasks = [(function, part) for function, size in work for part in _parts(size, most)]
    return shared_threads().map(lambda task: task[0](task[1]), tasks)


def copying(to: NDArray[Any], values: NDArray[Any]) -> Work[None]:
    """Return the work that writes values to an array of as many, [n] each, in its type."""
    return lambda part: np.copyto(to[part], values[part], casting="unsafe"), values.size


def _parts(size: int, most: int) -> list[slice]:
    count = max(1, min(size // _LEAST, most))
    cuts = [size * i // count for i in range(count + 1)]
    return [slice(*cuts[i : i + 2]) for i in range(count)]
