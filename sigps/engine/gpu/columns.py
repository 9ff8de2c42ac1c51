"""Records and messages in the memory of a GPU as arrays, one a field; and copies that cross to the host later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.adapters import Row

__all__ = [
    "BY_HOST",
    "Copied",
    "Copier",
    "array_at",
    "cast",
    "copied",
    "copies_on_device",
    "copy_columns",
    "fill_columns",
    "typed",
    "write_cast",
    "write_ids",
]


class Copied:
    """A copy of a device's array. It crosses to the host when NumPy reads it, on the thread that does.

    Args:
        array: The copy, on the device; nothing else uses it.

    Attributes:
        dtype: The type of its numbers.
        shape: As a NumPy array's, as are `ndim` and `nbytes`.
    """

    def __init__(self, array: Any) -> None:
        import cupy

        self.dtype, self.nbytes = np.dtype(array.dtype.name), int(array.nbytes)
        self.shape, self.ndim = array.shape, array.ndim
        self._array, self._host = array, np.empty(0, dtype=self.dtype)
        self._is_made = cupy.cuda.Event(disable_timing=True)
        self._is_made.record()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self._array is not None:
            self._bring()
        return np.array(self._host, dtype=dtype, copy=copy)

    def _bring(self) -> None:
        import cupy

        with self._array.device:
            stream = cupy.cuda.Stream(non_blocking=True)  # it does not wait for a lease that runs
            stream.wait_event(self._is_made)
            self._host = cupy.asnumpy(self._array, stream=stream)
            stream.synchronize()
        self._array = None


def _on_host(array: Any) -> NDArray[Any]:
    import cupy

    found: NDArray[Any] = cupy.asnumpy(array)
    return found


def _as_it_is(array: Any) -> Any:
    return array


@dataclass(frozen=True)
class Copier:
    """How copies are made: on the device, or by bringing arrays to the host, where the device has no memory for them.

    Attributes:
        numpy: The module that works on them, CuPy or NumPy.
        take: Returns a device's array for it.
        keep: Returns what a snapshot has of a copy.
    """

    numpy: Any
    take: Callable[[Any], Any] = _as_it_is
    keep: Callable[[Any], Any] = _as_it_is


BY_HOST = Copier(np, take=_on_host)


def copies_on_device(*, cross_later: bool = False) -> Copier:
    """Return what copies on the device; the copies stay there, or cross when they are read."""
    import cupy

    return Copier(cupy, keep=Copied if cross_later else _as_it_is)


def cast(values: Any, dtype: np.dtype[Any]) -> Any:
    """Return values of a state in the type that a GPU keeps, or in that of compute(); NumPy's or CuPy's.

    None of ids is the smallest number of 64 bits, and where they are kept in 32 the smallest of these.
    """
    found = values.astype(dtype.base, copy=False)
    if _is_of_ids(values.dtype, dtype.base):
        found[values == np.iinfo(values.dtype).min] = np.iinfo(dtype.base).min
    return found


def write_cast(target: NDArray[Any], values: NDArray[Any]) -> None:
    """Write what `cast` returns to an array of NumPy's."""
    if _is_of_ids(values.dtype, target.dtype):
        write_ids(target, values, np.empty(values.shape, np.bool_))
    else:
        np.copyto(target, values, casting="unsafe")


def write_ids(target: NDArray[Any], values: NDArray[Any], is_none: NDArray[np.bool_]) -> None:
    """Write ids of another width, or of the same, to an array of NumPy's, and to another which of them are None."""
    np.equal(values, np.iinfo(values.dtype).min, out=is_none)
    np.copyto(target, values, casting="unsafe")
    if values.dtype != target.dtype:
        np.copyto(target, np.iinfo(target.dtype).min, where=is_none)


def _is_of_ids(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    return {one.str[1:], other.str[1:]} == {"i4", "i8"}


def copied(values: Any, at: Any) -> Any:
    """Return some values as an array of their own.

    Args:
        values: An array.
        at: Their indices, or a slice.
    """
    return values[at].copy() if isinstance(at, slice) else values[at]


def copy_columns(raw: Any, row: Row, at: Any) -> tuple[Any, ...]:
    """Return copies of some rows, an array a field, of the types that compute() has.

    Args:
        raw: Rows side by side, uint8.
        row: Their fields.
        at: The indices of the rows, or a slice.
    """
    fields = zip(_fields(raw, row), row.dtypes, strict=True)
    return tuple(copied(field, at).astype(dtype.base, copy=False) for field, dtype in fields)


def fill_columns(raw: Any, row: Row, at: Any, columns: tuple[Any, ...]) -> None:
    """Write columns, of the host or the device, into some rows on the device. Arguments as `copy_columns`'."""
    import cupy

    for field, column in zip(_fields(raw, row), columns, strict=True):
        field[at] = cupy.asarray(column).astype(field.dtype, copy=False)


def _fields(raw: Any, row: Row) -> list[Any]:
    """Return views of rows, one a field. A structure's size is a multiple of each field's, and so are the offsets."""
    size = row.structure.itemsize
    whole = raw[: raw.size // size * size] if size else raw
    places = zip(row.stored, row.offsets, strict=True)
    return [_field(whole, d, offset, size) for d, offset in places]


def _field(rows: Any, dtype: np.dtype[Any], offset: int, size: int) -> Any:
    """Return a view of one field of rows of so many bytes: [rows], of vectors [rows, length]."""
    width = dtype.base.itemsize
    numbers = rows.view(dtype.base).reshape(-1, size // width)
    first = offset // width
    return numbers[:, first : first + dtype.shape[0]] if dtype.shape else numbers[:, first]


def array_at(pointer: Any, count: int, dtype: np.dtype[Any]) -> Any:
    """Return what lies at an address of the device (CuPy's) as numbers of a type, or as vectors, [vectors, length]."""
    import cupy

    return cupy.ndarray((count, *dtype.shape), dtype.base, memptr=pointer)


def typed(block: Any, dtype: np.dtype[Any]) -> Any:
    """Return bytes of a block as numbers of a type, or as vectors, [vectors, length]."""
    numbers = block.view(dtype.base)
    return numbers.reshape(-1, *dtype.shape) if dtype.shape else numbers
