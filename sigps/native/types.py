"""What a value of a compiled function can be: a number, a vector, an array of these, or a tuple of values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "BOOL", "FLOAT", "INT", "NONE", "OPTIONAL", "UINT", "Array", "Number", "Scalar", "Tuple", "Type", "Vector", "flat",
    "from_plain", "join", "plain", "scalar_of",
]  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A scalar. kind: `b`, `i`, `u` or `f`, as in NumPy; bits: 8 for `b`.

    may_be_none: of `OPTIONAL` alone, a vertex id in 64 bits, where `NO_VERTEX` stands for None.
    """

    kind: str
    bits: int
    may_be_none: bool = False

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
        if self.may_be_none:
            return "vertex id or None"
        return names.get(self.kind, self.dtype.name) if self.bits in (8, 64) else self.dtype.name


@dataclass(frozen=True)
class Vector:
    """A fixed number of numbers of one type; a value, as a number is."""

    element: Number
    length: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype((self.element.dtype, (self.length,)))

    def __str__(self) -> str:
        return f"Vector[{self.element}, {self.length}]"


@dataclass(frozen=True)
class Array:
    """A pointer to elements, and how many there are.

    stride: the bytes from one to the next; None where they are dense. is_shared: whether all lanes of a warp store to
    it together, each value when all have come so far.
    """

    element: Scalar
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


Scalar = Number | Vector
Type = Number | Vector | Array | Tuple | Nothing

BOOL, INT, UINT, FLOAT = Number("b", 8), Number("i", 64), Number("u", 64), Number("f", 64)
OPTIONAL = Number("i", 64, may_be_none=True)
NONE = Nothing()


def scalar_of(dtype: Any) -> Scalar:
    """Return the type of an element of an array: a number, or a vector where the dtype has a length."""
    dtype = np.dtype(dtype)
    if dtype.shape:
        return Vector(Number.of(dtype.base), dtype.shape[0])
    return Number.of(dtype)


def flat(kind: Type) -> Iterator[Number | Vector | Array]:
    """Yield the numbers, vectors and arrays that a value is made of, in order."""
    if isinstance(kind, Tuple):
        for item in kind.items:
            yield from flat(item)
    elif not isinstance(kind, Nothing):
        yield kind


def plain(kind: Type) -> Any:
    """Return the type of a result as lists of plain values. A tuple's class is left out; arrays are no results."""
    match kind:
        case Number():
            return [kind.kind, kind.bits, kind.may_be_none]
        case Vector():
            return [plain(kind.element), kind.length]
        case Tuple():
            return ["tuple", *map(plain, kind.items)]
        case Nothing():
            return None
    raise TypeError(f"{kind} is no result")


def from_plain(found: Any) -> Type:
    """Return the type that `plain` returned as lists."""
    if found is None:
        return NONE
    if found[0] == "tuple":
        return Tuple(tuple(map(from_plain, found[1:])))
    if isinstance(found[0], list):
        return Vector(Number(*found[0]), found[1])
    return Number(*found)


def join(one: Type, other: Type) -> Type | None:
    """Return the type of a variable that has values of two types; None where there is none.

    bool < narrow integers < int < float. What is np.uint64 on one path and an int on another has no type. What is None
    on one path and a whole number on another is a vertex id or None. A number beside a vector is a vector of that
    number.
    """
    if one == other:
        return one
    if isinstance(one, Tuple) and isinstance(other, Tuple) and len(one.items) == len(other.items):
        items = [join(a, b) for a, b in zip(one.items, other.items, strict=True)]
        cls = one.cls if one.cls is other.cls else None
        return None if None in items else Tuple(tuple(items), cls)  # type: ignore[arg-type]
    if NONE in (one, other) or OPTIONAL in (one, other):
        return OPTIONAL if all(map(_may_be_id, (one, other))) else None
    if isinstance(one, Vector) or isinstance(other, Vector):
        return _join_vectors(one, other)
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


def _join_vectors(one: Type, other: Type) -> Type | None:
    lengths = {kind.length for kind in (one, other) if isinstance(kind, Vector)}
    elements = [kind.element if isinstance(kind, Vector) else kind for kind in (one, other)]
    element = join(*elements) if all(isinstance(e, Number) for e in elements) else None
    if len(lengths) != 1 or not isinstance(element, Number):
        return None
    return Vector(element, lengths.pop())


def _may_be_id(kind: Type) -> bool:
    return kind in (NONE, OPTIONAL) or (isinstance(kind, Number) and kind.kind in "iu" and kind != UINT)
