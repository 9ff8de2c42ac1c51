"""`Vector`: a fixed number of numbers of one type, as a field, a message, or a value while computing."""

from __future__ import annotations

import math
import operator
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sigps.model.numbers import assigned, is_number_type

__all__ = ["INSIDE", "LONGEST", "NO_ORDER", "NoPositionError", "Vector", "VectorType"]

LONGEST = 1024
"""The most numbers that a vector has: compiled code keeps it in registers and on the stack."""

INSIDE = (
    "a number of a vector that is a part of something else cannot be assigned: change a copy of the vector, and "
    "assign the whole, as in v = x.at; v[0] = 1.0; x = x._replace(at=v)"
)
"""What is wrong with `x.at[0] = 1.0`."""

NO_ORDER = (
    "messages with vectors have no order, so of equal keys none is the best: loop over them, as in "
    "if m.key < best: best, v = m.key, m.at"
)
"""What is wrong with `min(messages, key=lambda m: m.key)` where a message has a vector."""


class NoPositionError(IndexError, ArithmeticError):
    """A vector has no such position: in compute() an error of arithmetic, which names vertex and line."""


def no_length(name: str) -> str:
    """Say what to write in `compute()` in the place of a length that is a parameter's name."""
    return f"a vector whose length is {name!r} has no length here: write Vector[..., self.{name}](...)"


@dataclass(frozen=True)
class VectorType:
    """What `Vector[float, 16]` is: a type of fields and messages, and a function that makes such a vector.

    Attributes:
        element: The type of its numbers: `int`, `float`, `bool` or a NumPy scalar type.
        length: How many there are; or the parameter that says it, or a product of such ("rank * rank"), until a program
            is given its parameters.
        holds_ids: Whether its numbers are ids of vertices: `Vector[VertexId, 8]`.
    """

    element: Any
    length: int | str
    holds_ids: bool = False

    def dtype(self, element: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type of a row of an array of such vectors, where its numbers have a given type."""
        if isinstance(self.length, str):
            raise TypeError(
                f"{self!r} has its length from a parameter: it is known of a program, and not of a class"
            )
        return np.dtype((element, (self.length,)))

    @property
    def parameters(self) -> list[str]:
        """The parameters that say the length."""
        return [factor for factor in _factors(self.length) if not factor.isdigit()]

    def with_lengths(self, values: Mapping[str, Any]) -> VectorType:
        """Return the type in a program with such parameters.

        Raises:
            ValueError: If a vector cannot be so long.
        """
        factors = _factors(self.length)
        return (
            self.with_length(math.prod(int(f) if f.isdigit() else values[f] for f in factors))
            if factors
            else self
        )

    def with_length(self, length: Any) -> VectorType:
        """Return the type with a length.

        Raises:
            ValueError: If a vector cannot be so long.
        """
        is_whole = isinstance(length, (int, np.integer)) and not isinstance(length, bool)
        if not is_whole or not 1 <= length <= LONGEST:
            raise ValueError(
                f"the length of a vector is a whole number from 1 to {LONGEST}, and not {length!r}"
            )
        return replace(self, length=int(length))

    def __call__(self, values: Any) -> Vector:
        """Return a vector of some numbers, or of one number everywhere.

        Raises:
            TypeError, ValueError, OverflowError: If there are too many or too few numbers, one does not fit, or the
                length is a parameter's name, which has no value here.
        """
        if isinstance(self.length, str):
            raise TypeError(no_length(self.length))
        return Vector(
            (assigned(self.element, value, "a number of the vector") for value in self.spread(values)),
            self.element,
        )

    def spread(self, values: Any) -> list[Any]:
        """Return as many numbers as the type has.

        Raises:
            ValueError: If there are more, or fewer.
        """
        if isinstance(values, (bool, int, float, np.number, np.bool_)):
            return [values] * (1 if isinstance(self.length, str) else self.length)
        if isinstance(self.length, str):
            raise ValueError(
                f"{self!r} has its length from a parameter, so it begins with one number for all"
            )
        if not isinstance(values, Iterable):
            raise ValueError(f"{values!r} is no vector")
        numbers = list(values)
        if len(numbers) != self.length:
            raise ValueError(f"{self!r} has {self.length} numbers, and this has {len(numbers)}")
        return numbers

    @property
    def __name__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        element = "VertexId" if self.holds_ids else getattr(self.element, "__name__", self.element)
        return f"Vector[{element}, {self.length!r}]"


def _factors(length: Any) -> list[str]:
    """Return what a length is the product of; nothing where it is a number."""
    return [factor.strip() for factor in length.split("*")] if isinstance(length, str) else []


class Vector(Sequence[Any]):
    """Numbers of one type: `weights: State[Vector[float, 16]]`, `message=Vector[float, 16]`.

    `Vector[float, "rank"]` is as long as the parameter `rank` says, `Vector[float, "3 * rank"]` three times as long.

    It computes number by number, and a number beside it stands for a vector of that number: `v + w`, `v * 2.0`,
    `v < w`, `np.sqrt(v)`, `np.maximum(v, w)`, `np.where(v < w, v, 0.0)`. `v[i]` and `v[i] = x` are one number, `v[2:5]`
    a part, `v @ w` the sum of the products; `len`, `sum`, `min`, `max`, `any`, `all` and `for x in v` read its numbers.

    A vector is a value, as a number is: what is assigned is a copy.
    """

    __slots__ = ("_element", "_numbers")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, numbers: Iterable[Any], element: Any = None) -> None:
        """Hold some numbers; `element` is their type, where it was declared."""
        self._numbers, self._element = list(numbers), element

    def __class_getitem__(cls, given: Any) -> Any:
        pair: tuple[Any, Any] = given if isinstance(given, tuple) and len(given) == 2 else (None, None)
        element, length = pair
        holds_ids = [repr(mark) for mark in getattr(element, "__metadata__", ())] == ["VertexId"]
        element = element.__origin__ if holds_ids else element
        if types.NoneType in typing.get_args(element):
            raise TypeError(
                f"Vector[VertexId | None, {length}]: no number of a vector is None: declare a Vector[VertexId, "
                f"{length}], and let a number that is no vertex's id stand for none, such as -1"
            )
        if not is_number_type(element):
            raise TypeError(
                "a vector has a type and a length: Vector[float, 16], with int, float, bool or a NumPy scalar type"
            )
        factors = _factors(length)
        if factors and all(factor.isdigit() or factor.isidentifier() for factor in factors):
            return VectorType(element, str(length), holds_ids)
        return VectorType(element, 1, holds_ids).with_length(length)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return Vector(self._numbers[at], self._element)
        if not -len(self) <= at < len(self):
            raise NoPositionError("the vector has no such position: they are 0 to its length - 1")
        return self._numbers[at]

    def __setitem__(self, at: int, value: Any) -> None:
        if isinstance(at, slice):
            raise TypeError("a slice of a vector cannot be assigned: assign its numbers, one by one")
        before = self[at]  # raises where there is none
        element = self._element or type(before)
        self._numbers[at] = assigned(element, value, "a number of the vector")

    def __repr__(self) -> str:
        return f"Vector({self._numbers!r})"

    def __bool__(self) -> bool:
        raise TypeError("a vector is neither true nor false: write any(...) or all(...) of it")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._numbers, dtype)

    def copy(self) -> Vector:
        """Return another vector with the same numbers."""
        return Vector(self._numbers, self._element)

    def each(self, function: Callable[..., Any], *others: Any, is_right: bool = False) -> Vector:
        """Return what a function makes of each number, and of the others' at its position.

        Raises:
            TypeError: If another is a vector of another length.
        """
        columns = [o if isinstance(o, Vector) else [o] * len(self) for o in (self, *others)]
        if any(len(column) != len(self) for column in columns):
            lengths = ", ".join(str(len(column)) for column in columns)
            raise TypeError(f"these vectors have different lengths: {lengths}")
        return Vector(function(*(row[::-1] if is_right else row)) for row in zip(*columns, strict=True))

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, Vector):
            return NotImplemented
        return sum(self.each(operator.mul, other))

    def __neg__(self) -> Vector:
        return self.each(operator.neg)

    def __invert__(self) -> Vector:
        return self.each(operator.invert)


def _define(name: str, function: Callable[[Any, Any], Any], *, swaps: bool) -> None:
    setattr(Vector, f"__{name}__", lambda self, other: self.each(function, other))
    if swaps:
        setattr(Vector, f"__r{name}__", lambda self, other: self.each(function, other, is_right=True))


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
):
    _define(_name, getattr(operator, f"__{_name}__"), swaps=True)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _define(_name, getattr(operator, _name), swaps=False)
