"""Ids and columns as users give them, in lists or arrays of the host or of a GPU, to NumPy arrays of the host."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError

__all__ = ["as_column", "as_cupy", "as_ids", "as_numbers", "as_texts", "gpu_of", "on_host"]


def as_ids(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return vertex ids as an integer (within int64) or str array, without a copy where they are one.

    Args:
        values: Integers, whole floats or strings, all of one kind; in memory of the host or of a GPU.
        what: Their name in errors, such as `"sources"`.

    Raises:
        GraphError: If the values are neither whole numbers within int64 nor strings.
    """
    values = on_host(values, what)
    array = np.asarray(values)
    if array.dtype.kind == "O" or (array.dtype.kind in "US" and isinstance(values, (list, tuple))):
        array = _as_plain(np.asarray(values, dtype=object), what)
    if array.dtype.kind == "i" or array.size == 0:
        return array if array.dtype.kind in "iU" else array.astype(np.int64)
    if array.dtype.kind == "u":
        if int(array.max()) > _INT64_MAX:
            raise GraphError(f"{what}: {array.max()} is above the largest id, {_INT64_MAX}")
        return array
    if array.dtype.kind == "f":
        return _as_whole(array, what)
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "T":
        return as_texts([*array.flat], what).reshape(array.shape)
    if array.dtype.kind == "U":
        return array
    raise GraphError(f"{what}: ids must be whole numbers or strings, not {array.dtype}")


def as_texts(texts: list[Any], what: str) -> NDArray[np.str_]:
    """Return ids as a str array.

    Raises:
        GraphError: If one ends with a zero character: NumPy drops these, and two ids would be one.
    """
    if (wrong := next((text for text in texts if text.endswith("\0")), None)) is not None:
        raise GraphError(f"{what}: the id {wrong!r} ends with a zero character, which no id may; cut it off")
    return np.array(texts, dtype=np.str_)


def as_numbers(values: Any, what: str) -> NDArray[Any]:
    """Return values as an array.

    Raises:
        GraphError: If NumPy makes floats of a list in which whole numbers stand that these round.
    """
    array = np.asarray(values)
    if array.dtype != np.float64 or not isinstance(values, (list, tuple)) or not array.size:
        return array
    if max(array.max(), -array.min()) >= 2**53:
        for at in np.argwhere(np.abs(array) >= 2**53):
            given = functools.reduce(operator.getitem, at.tolist(), values)
            if isinstance(given, (int, np.integer)) and int(float(given)) != int(given):
                raise GraphError(
                    f"{what}{at.tolist()} is {given}: among floats a whole number beyond 2**53 is rounded. Give all as "
                    "int64, or as float64: np.array(..., dtype=float)"
                )
    return array


def as_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an edge column as an array of finite numbers; a weight as int64, float32 or float64."""
    column = np.asarray(values)
    if column.dtype.kind == "O":
        column = np.array(column.tolist())
    if column.dtype.kind not in "biuf":
        raise GraphError(f"column {name!r} holds {column.dtype}: an edge column must be numeric")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        at = int(np.flatnonzero(~np.isfinite(column))[0])
        value = "NaN" if np.isnan(column[at]) else column[at]
        raise GraphError(
            f"{name}[{at}] is {value}: every edge needs a finite number. Fill or remove such rows."
        )
    if name != "weight":
        return column
    if column.dtype.kind == "f":
        return column.astype(np.float32 if column.dtype.itemsize <= 4 else np.float64, copy=False)
    if column.dtype == np.uint64 and column.size and int(column.max()) >= 2**63:
        raise GraphError(f"weight {column.max()} is above the largest int64; give such weights as float64")
    return column.astype(np.int64, copy=False)


def on_host(values: Any, what: str) -> Any:
    """Return values in GPU memory as a NumPy array, and others as they are. O(values) for a copy, which it waits for.

    Args:
        values: Anything. Values are in GPU memory if they have `__cuda_array_interface__` or a DLPack device that is a
            GPU. A tensor in host memory that offers only DLPack becomes a NumPy array without a copy.
        what: Its name in errors, such as `"sources"`.

    Raises:
        GraphError: If it is in GPU memory and CuPy, which copies it, is not installed.
    """
    if isinstance(values, (np.ndarray, list, tuple)):
        return values
    if _memory_of(values) in _HOST and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    if gpu_of(values) is None:
        return values
    try:
        import cupy
    except ImportError as error:
        kind = f"{type(values).__module__}.{type(values).__name__}"
        raise GraphError(
            f"{what} is a {kind} on a GPU, and CuPy, which reads it there, cannot be imported ({error}). Install it "
            "with: pip install 'sigps[cu13]', or [cu12]; or give NumPy arrays"
        ) from error
    return cupy.asnumpy(as_cupy(values))


def gpu_of(values: Any) -> int | None:
    """Return the number of the GPU in whose memory values are; 0 where they do not say; None: they are in none."""
    if _memory_of(values) in _CUDA:
        return int(values.__dlpack_device__()[1])
    return 0 if hasattr(values, "__cuda_array_interface__") else None


def as_cupy(values: Any) -> Any:
    """Return values in the memory of a GPU as a CuPy array, which shares it."""
    import cupy

    if isinstance(values, cupy.ndarray):
        return values
    # DLPack waits for the stream that wrote the values; the other interface may not name a stream.
    return cupy.from_dlpack(values) if _memory_of(values) in _CUDA else cupy.asarray(values)


def _memory_of(values: Any) -> int | None:
    return values.__dlpack_device__()[0] if hasattr(values, "__dlpack_device__") else None


_HOST, _CUDA = (1, 3), (2, 13)
"""DLPack's device types: host memory, pageable and pinned; GPU memory, device and managed."""
_INT64_MAX = int(np.iinfo(np.int64).max)


def _as_whole(array: NDArray[Any], what: str) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):
        wrong = ~((np.floor(array) == array) & (np.abs(array) <= float(2**53)))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise GraphError(
            f"{what}[{at}] is {array[at]}: an id given as float must be whole and within 2**53. "
            "Convert the ids to integers or strings first."
        )
    return array.astype(np.int64)


def _as_plain(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Return an array of Python objects as numbers or str; raise GraphError for a mixture."""
    kinds = {type(value) for value in array.flat}
    if all(issubclass(kind, str) for kind in kinds):
        return as_texts([*array.flat], what).reshape(array.shape)
    if all(issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool for kind in kinds):
        numbers = np.array(array.tolist())
        if numbers.dtype.kind in "iuf":
            return numbers
        raise GraphError(f"{what}: an id is outside int64; give such ids as strings")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise GraphError(f"{what}: ids must be all whole numbers or all strings, not {names}")
