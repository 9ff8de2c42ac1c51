"""Values of Python as compiled code takes and returns them: cells of eight bytes.

A number is one cell. An array is one cell too, the address of the array object: compiled code reads there where its
data lies and how many elements it has (the first fields of NumPy's array object, which never changed). So a call costs
some 50 ns an array, where asking NumPy for the address costs a microsecond.

An array of structures stands for one array a field. What it lies in, a tuple, then has all of these. An array of two
dimensions is one of vectors, a vector a row.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sigps.native.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    UINT,
    Array,
    Number,
    Scalar,
    Tuple,
    Type,
    Vector,
    flat,
    scalar_of,
)

if TYPE_CHECKING:
    from sigps.native.machine import MachineCode

__all__ = ["DATA_OFFSET", "LENGTHS_OFFSET", "Cell", "Form", "Packed", "describe"]

DATA_OFFSET = object.__basicsize__
"""Where an array object has the address of its data."""

LENGTHS_OFFSET = DATA_OFFSET + 16
"""Where it has the address of its lengths."""


class Packed(np.ndarray[Any, Any]):
    """One vector, [length]: a value and no array."""

    @staticmethod
    def of(values: Any, dtype: np.dtype[Any]) -> Any:
        """Return a value of a dtype: a NumPy scalar, or a vector where the dtype has a length."""
        if not dtype.shape:
            return dtype.type(values)
        return np.array(np.broadcast_to(np.asarray(values, dtype.base), dtype.shape)).view(Packed)


@dataclass(frozen=True)
class Cell:
    """One argument of compiled code: a number, a vector, or an array with the arrays that it stands for.

    Attributes:
        kind: The number's or the vector's type. The cell of a vector is the address of its `Packed`.
        parts: Of an array, the position in bytes and the type of each array that it stands for.
    """

    kind: Scalar | None
    parts: tuple[tuple[int, Array], ...] = ()


def describe(value: Any) -> tuple[Type, list[Cell]]:
    """Return the type of an argument, and its cells.

    Raises:
        TypeError: If it is nothing that compiled code takes.
    """
    if value is None:
        return NONE, []
    if isinstance(value, tuple):
        kinds: list[Type] = []
        cells: list[Cell] = []
        for item in value:
            kind, found = describe(item)
            cells += found
            is_spliced = isinstance(item, np.ndarray) and item.dtype.names is not None
            kinds += kind.items if is_spliced and isinstance(kind, Tuple) else [kind]
        return Tuple(tuple(kinds), type(value) if hasattr(value, "_fields") else None), cells
    if isinstance(value, Packed):
        vector = Vector(Number.of(value.dtype), value.size)
        return vector, [Cell(vector)]
    if isinstance(value, np.ndarray):
        return _describe_array(value)
    kind = _number(value)
    return kind, [Cell(kind)]


def _number(value: Any) -> Number:
    for cls, kind in ((bool, BOOL), (int, INT), (float, FLOAT)):
        if isinstance(value, cls):
            return kind
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return Number.of(value.dtype)
    raise TypeError(f"compiled code takes numbers, arrays of one dimension and tuples, not {value!r}")


def _describe_array(array: np.ndarray[Any, Any]) -> tuple[Type, list[Cell]]:
    fields = array.dtype.fields
    dtypes = [array.dtype] if fields is None else [place[0] for place in fields.values()]
    is_rows = array.ndim == 2 and fields is None and (array.size == 0 or array.strides[1] == array.itemsize)
    if (array.ndim != 1 and not is_rows) or not all(
        d.base.isnative and d.base.kind in "biuf" and len(d.shape) < 2 for d in dtypes
    ):
        raise TypeError(
            "compiled code takes arrays of one dimension, or of rows, of numbers in this machine's byte order, not "
            f"{array!r}"
        )
    stride = array.strides[0]
    if fields is None:
        element = scalar_of((array.dtype, array.shape[1:]) if is_rows else array.dtype)
        is_dense = stride == element.dtype.itemsize or _is_bare(array)
        kind = Array(element, None if is_dense else stride)
        return kind, [Cell(None, ((0, kind),))]
    parts = tuple((place[1], Array(scalar_of(place[0]), stride)) for place in fields.values())
    return Tuple(tuple(kind for _, kind in parts)), [Cell(None, parts)]


def _is_bare(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether NumPy gave an array without elements no stride; one element that stands for many has none either."""
    return array.strides[0] == 0 and len(array) == 0


class Form:
    """Calls machine code whose arguments have the types of some given ones.

    Args:
        arguments: The given ones.
        cells: Their cells.
        result: The type of what it returns.
        code: The code, whose function `entry` takes the addresses of its arguments' cells, and of its result's.
    """

    def __init__(
        self, arguments: Sequence[Any], cells: Sequence[Cell], result: Type, code: MachineCode
    ) -> None:
        self._code = code
        self._signature: Callable[[Any], Any] = _made(", ".join(_signature("a", tuple(arguments))))
        self._key = self._signature(arguments)
        self._cells: Callable[[Any], Any] = _made(", ".join(_leaves("a", tuple(arguments))))
        self._pack = struct.Struct("".join(_code(cell) for cell in cells)).pack
        parts = [part for part in flat(result) if not isinstance(part, Array)]
        numbers = [n for p in parts for n in ([p.element] * p.length if isinstance(p, Vector) else [p])]
        self._unpack = struct.Struct("".join(_RESULT[_wide(n)] for n in numbers) + "q").unpack_from
        self._rebuild = _rebuilder(result)
        self._results = ctypes.c_int64 * (len(numbers) + 1)
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(code.address("entry"))

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Tell whether arguments have the types of the first ones."""
        try:
            return bool(self._signature(arguments) == self._key)
        except (AttributeError, IndexError, TypeError):
            return False

    def pack(self, arguments: Sequence[Any]) -> bytes:
        """Return the cells of arguments; they hold while these live."""
        packed: bytes = self._pack(*self._cells(arguments))
        return packed

    def run(self, cells: bytes) -> tuple[Any, int]:
        """Return the result, and the fault."""
        results = self._results()
        self._run(cells, ctypes.addressof(results))
        values = self._unpack(results)
        return self._rebuild(values), values[-1]


def _made(items: str) -> Callable[[Any], Any]:
    made: Callable[[Any], Any] = _evaluated(f"lambda a: ({items}{',' if items else ''})")
    return made


@functools.lru_cache(maxsize=1024)
def _evaluated(text: str) -> Any:
    return eval(text, {"id": id, "np": np, "dtype": np.dtype, "Packed": Packed})


def _signature(path: str, value: Any) -> Iterator[str]:
    """Yield expressions whose values are those of the first arguments where the types are."""
    if isinstance(value, tuple):
        yield f"len({path})"
        for i, item in enumerate(value):
            yield from _signature(f"{path}[{i}]", item)
    elif isinstance(value, np.ndarray):
        yield f"{path}.dtype{'.num' if value.dtype.names is None else ''}"
        yield f"{path}.strides"
        if value.strides[0] == 0:
            yield f"len({path}) > 0"
        if value.ndim > 1 or isinstance(value, Packed):
            yield f"{path}.shape[{value.ndim > 1:d}:]"
    else:
        yield f"{path}.__class__"


def _leaves(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from _leaves(f"{path}[{i}]", item)
    elif isinstance(value, np.ndarray):
        yield f"id({path})"
    elif value is not None:
        yield path


_RESULT = {INT: "q", UINT: "Q", FLOAT: "d"}


def _wide(kind: Number) -> Number:
    """Return the type in which a number is in a cell."""
    if kind.is_float:
        return FLOAT
    return UINT if kind.kind == "u" else INT


def _code(cell: Cell) -> str:
    if cell.kind is None or isinstance(cell.kind, Vector):
        return "P"
    return "?7x" if cell.kind == BOOL else _RESULT[_wide(cell.kind)]


def _rebuilder(kind: Type) -> Callable[[Any], Any]:
    """Return what makes a result of its numbers; of other types than int, float and bool NumPy's scalars."""
    count = 0

    def text(kind: Type) -> str:
        nonlocal count
        if isinstance(kind, Tuple):
            return f"({''.join(text(item) + ', ' for item in kind.items)})"
        if kind == NONE:
            return "None"
        count += kind.length if isinstance(kind, Vector) else 1
        if isinstance(kind, Vector):
            return f"Packed.of(a[{count - kind.length}:{count}], {kind.dtype!r})"
        assert isinstance(kind, Number)
        value = f"a[{count - 1}]"
        if kind in (INT, FLOAT):
            return value
        return f"{value} != 0" if kind == BOOL else f"np.{kind.dtype.name}({value})"

    made: Callable[[Any], Any] = _evaluated(f"lambda a: {text(kind)}")
    return made
