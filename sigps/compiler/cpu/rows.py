"""How tuples of scalars lie in arrays, and the compiled loads and stores of one element."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from sigps.compiler.cpu.loops import jit

__all__ = ["Dtypes", "array_access", "row_access", "rows"]

Dtypes = tuple[np.dtype[Any], ...]


def rows(dtypes: Dtypes, size: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Return `size` tuples of these types, zeroed: no array, one array, or one of structures."""
    if len(dtypes) < 2:
        return tuple(np.zeros(size, dtype=d) for d in dtypes)
    fields = [(f"f{i}", d) for i, d in enumerate(dtypes)]
    return (np.zeros(size, dtype=np.dtype(fields, align=True)),)


@functools.cache
def row_access(width: int) -> tuple[Any, Any]:
    """Return the load and store of one row of `rows`: fields lie side by side, one cache line a visit."""
    if width < 2:
        return array_access(width)
    parts = ", ".join(f"row.f{i}" for i in range(width))
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def load(arrays, at):\n    row = arrays[0][at]\n    return ({parts})", names)
    lines = "\n".join(f"    row.f{i} = values[{i}]" for i in range(width))
    exec(f"def store(arrays, at, values):\n    row = arrays[0][at]\n{lines}", names)
    return jit(names["load"]), jit(names["store"])


@functools.cache
def array_access(width: int) -> tuple[Any, Any]:
    """Return the load and store of one element of `width` arrays; Numba indexes tuples only by constants."""
    parts = ", ".join(f"arrays[{i}][at]" for i in range(width))
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def load(arrays, at):\n    return ({parts}{',' if width else ''})", names)
    lines = "\n".join(f"    arrays[{i}][at] = values[{i}]" for i in range(width)) or "    pass"
    exec(f"def store(arrays, at, values):\n{lines}", names)
    return jit(names["load"]), jit(names["store"])
