"""`Table`: a parameter that is an array of numbers, read by position."""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sigps.model.numbers import NUMPY_TYPES, is_number_type, number_as_computed

__all__ = ["NoEntryError", "Table", "TableType"]


class NoEntryError(ArithmeticError):
    """A position is outside of a table."""

    def __init__(self) -> None:
        super().__init__("the table has no such position: they are 0 to its length - 1, or -length to -1")


@dataclass(frozen=True)
class TableType:
    """What `Table[float]` is: a type of parameters, and a function that makes a table.

    Attributes:
        element: The type of its numbers: `int`, `float`, `bool` or a NumPy scalar type.
    """

    element: Any

    def __call__(self, values: Any) -> Table:
        """Return a table of some numbers, [length].

        Raises:
            TypeError, ValueError: If they are no numbers in one dimension, or one does not fit.
        """
        return values if isinstance(values, Table) and values.type == self else Table(self, values)

    @property
    def __name__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"Table[{getattr(self.element, '__name__', self.element)}]"


class Table:
    """Numbers of one type that `compute()` reads by position: `weights: Param[Table[float]]`.

    `self.weights[i]` is one of them, counted from 0, or from the end where i is negative; `len(self.weights)` says how
    many there are. Given as `Program(weights=array)`: a list, or an array of one dimension, which is copied.
    """

    def __init__(self, kind: TableType, values: Any) -> None:
        """Hold a copy of some numbers."""
        self.type = kind
        self.values = _array(kind, values)
        self.values.flags.writeable = False

    def __class_getitem__(cls, element: Any) -> Any:
        if not is_number_type(element):
            raise TypeError(
                f"a table has numbers of one type: Table[float], with int, float, bool or {NUMPY_TYPES}"
            )
        return TableType(element)

    def __len__(self) -> int:
        return int(self.values.size)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            raise TypeError("a table is read one number at a time: table[i]")
        position = operator.index(at)
        if not -len(self) <= position < len(self):
            raise NoEntryError
        return number_as_computed(self.values[position], self.values.dtype)

    def __iter__(self) -> NoReturn:
        raise TypeError("a table is read one number at a time: for i in range(len(table)): table[i]")

    def __repr__(self) -> str:
        """Name the content by a hash: what a state log keeps of a program's parameters."""
        digest = hashlib.sha256(self.values.tobytes()).hexdigest()[:16]
        return f"<{self.type} of {len(self)}: {digest}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype)


def _array(kind: TableType, given: Any) -> NDArray[Any]:
    """Return numbers as an array of their type.

    Raises:
        TypeError, ValueError: If they are no numbers in one dimension, or one does not fit.
    """
    if hasattr(given, "__cuda_array_interface__"):
        given = given.get()
    values, dtype = np.asarray(given), np.dtype(kind.element)
    if values.ndim != 1:
        raise ValueError(f"it has the shape {values.shape}, and a table has one dimension")
    if values.size == 0:
        return np.zeros(0, dtype)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"it holds {values.dtype}, and a table holds numbers")
    if (values.dtype.kind == "b") != (dtype.kind == "b"):
        raise TypeError(f"it holds {values.dtype} values, and the table is one of {dtype}")
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        fits = (values >= bounds.min) & (values <= bounds.max) & (values == np.floor(values))
        if not fits.all():
            at = int(np.argmin(fits))
            raise ValueError(f"{values[at]} at position {at} is no whole number that {dtype} can hold")
    return values.astype(dtype)
