"""What a value of a compiled function can be: a number, an array of numbers, or a tuple of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BOOL", "FLOAT", "INT", "NONE", "UINT", "Array", "Number", "Tuple", "Type", "flat", "join"]


@dataclass(frozen=True)
class Number:
    """A scalar. kind: `b`, `i`, `u` or `f`, as in NumPy; bits: 8 for `b`."""

    kind: str
    bits: int

    @staticmethod
    def of(dtype: Any) -> Number:
        dtype = np.dtype(dtype)
        return Number(dtype.kind, dtype.itemsize * 8)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype("bool" if self.kind == "b" else f"{self.kind}{self.bits // 8}")

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    def __str__(self) -> str:
        names = {"b": "bool", "i": "int", "f": "float"}
        return names.get(self.kind, self.dtype.name) if self.bits in (8, 64) else self.dtype.name


@dataclass(frozen=True)
class Array:
    """A pointer to elements, and how many there are.

    stride: the bytes from one to the next; None where they are dense. is_shared: whether all lanes of a warp store to
    it together, each value when all have come so far.
    """

    element: Number
    stride: int | None = None
    is_shared: bool = False

    def __str__(self) -> str:
        return f"array of {self.element}"


@dataclass(frozen=True)
class Tuple:
    """A fixed number of values; `cls` is the user's NamedTuple, if it is one."""

    items: tuple[Type, ...]
    cls: type | None = None

    def __str__(self) -> str:
        return self.cls.__name__ if self.cls else f"tuple of {len(self.items)}"


@dataclass(frozen=True)
class Nothing:
    """None."""

    def __str__(self) -> str:
        return "None"


Type = Number | Array | Tuple | Nothing

BOOL, INT, UINT, FLOAT = Number("b", 8), Number("i", 64), Number("u", 64), Number("f", 64)
NONE = Nothing()


def flat(kind: Type) -> Iterator[Number | Array]:
    """Yield the numbers and arrays that a value is made of, in order."""
    if isinstance(kind, Tuple):
        for item in kind.items:
            yield from flat(item)
    elif not isinstance(kind, Nothing):
        yield kind


def join(one: Type, other: Type) -> Type | None:
    """Return the type of a variable that has values of two types; None where there is none.

    bool < narrow integers < int < float. What is np.uint64 on one path and an int on another has no type.
    """
    if one == other:
        return one
    if isinstance(one, Tuple) and isinstance(other, Tuple) and len(one.items) == len(other.items):
        items = [join(a, b) for a, b in zip(one.items, other.items, strict=True)]
        cls = one.cls if one.cls is other.cls else None
        return None if None in items else Tuple(tuple(items), cls)  # type: ignore[arg-type]
    if not isinstance(one, Number) or not isinstance(other, Number):
        return None
    if one.is_float or other.is_float:
        return one if one.is_float and other.is_float and one.bits > other.bits else FLOAT
    if UINT in (one, other):
        rest = other if one == UINT else one
        return UINT if rest.kind in "bu" else None
    if one.kind == other.kind:
        return one if one.bits > other.bits else other
    return INT
