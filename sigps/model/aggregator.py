"""Values that all vertices build together in a superstep: aggregators, and what stands behind a `Shared` field."""

from __future__ import annotations

import copy
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from sigps.errors import CompileError
from sigps.model.fields import NUMPY_TYPES, Field, extreme, is_number_type
from sigps.model.vector import Vector, VectorType

__all__ = ["Aggregator", "cells_of"]

T = TypeVar("T")


class Aggregator(Generic[T]):
    """A value that all vertices build together: `self.error += x` in superstep s, read in s + 1.

    Declare one as a class attribute: `dangling = Aggregator.sum(float)`. `+=` gives a contribution,
    whatever the operation. One of vectors, `Aggregator.sum(Vector[int, 64])`, is given vectors, or one number of it:
    `self.histogram[k] += 1`. A persistent one also combines what earlier supersteps gave. Before
    any contribution it reads as its identity.

    A `Shared` value is one too, without contributions: it reads as what `master()` or `next_phase()` set last.

    Attributes:
        start: Its value before any contribution.
        is_shared: Whether it is a `Shared` value.
        place: The file and line in which it is declared, which errors name.
        exact: The sum of floats that it is a word of, in a deterministic run (`cells_of`); else None.
    """

    def __init__(
        self,
        kind: str,
        type: Any,
        identity: Any,
        function: Callable[[Any, Any], Any] | None = None,
        persistent: bool = False,
    ) -> None:
        is_vector = isinstance(type, VectorType)
        if not (is_number_type(type) or is_vector) or not callable(function or min):
            raise CompileError(
                f"Aggregator.{kind}() takes a type (int, float, bool, {NUMPY_TYPES}, or a Vector of one), "
                "and custom() a function before it"
            )
        if is_vector and kind not in ("sum", "min", "max"):
            raise CompileError(
                f"Aggregator.{kind}() takes numbers; of vectors there are sum(), min() and max()"
            )
        self.field = Field("", type, Field("identity", type, None).exactly(identity))
        self.kind = kind
        self.function = function
        self.persistent = persistent
        self.start = self.field.default
        self.is_shared = False
        self.exact: Aggregator[Any] | None = None
        self.place = _place_of_caller()

    @staticmethod
    def shared(type: type, start: Any) -> Aggregator[Any]:
        """Make the value behind a `Shared` field."""
        made = Aggregator.any(persistent=True)
        if np.dtype(type).kind != "b":
            made = Aggregator("max", type, extreme("max", type), persistent=True)
        made.start, made.is_shared = made.field.exactly(start), True
        return made

    @staticmethod
    def sum(type: Any = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Add up the contributions, from 0."""
        return Aggregator("sum", type, 0, persistent=persistent)

    @staticmethod
    def min(type: Any = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Keep the smallest contribution; the type's largest value where there is none."""
        return Aggregator("min", type, extreme("min", type), persistent=persistent)

    @staticmethod
    def max(type: Any = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Keep the largest contribution; the type's smallest value where there is none."""
        return Aggregator("max", type, extreme("max", type), persistent=persistent)

    @staticmethod
    def any(*, persistent: bool = False) -> Aggregator[bool]:
        """Combine to whether any contribution was true."""
        return Aggregator("any", bool, False, persistent=persistent)

    @staticmethod
    def all(*, persistent: bool = False) -> Aggregator[bool]:
        """Combine to whether every contribution was true."""
        return Aggregator("all", bool, True, persistent=persistent)

    @staticmethod
    def custom(
        function: Callable[[T, T], T], *, identity: T, type: type = float, persistent: bool = False
    ) -> Aggregator[T]:
        """Combine with `function`, which must be associative and commutative, and return x for x and `identity`."""
        return Aggregator("custom", type, identity, function, persistent)

    def __repr__(self) -> str:
        kept = ", persistent" if self.persistent else ""
        kind = "shared" if self.is_shared else self.kind
        return f"<Aggregator {self.name!r}: {kind} of {self.field.type}, from {self.start!r}{kept}>"

    def combine(self, a: Any, b: Any) -> Any:
        """Combine two values as the aggregator does."""
        if self.function is not None:
            return self.function(a, b)
        return _COMBINE[self.kind](a, b)

    def with_length(self, lengths: Mapping[str, Any]) -> Aggregator[Any]:
        """Return the aggregator of a program with such parameters: a vector has its length."""
        made = copy.copy(self)
        made.field = self.field.with_length(lengths)
        made.start = made.field.default
        return made

    @property
    def of_numbers(self) -> Aggregator[Any]:
        """What does to each number what this does to vectors."""
        made = copy.copy(self)
        made.field = self.field.element
        return made

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def identity(self) -> Any:
        return self.field.default

    def __set_name__(self, owner: type, name: str) -> None:
        self.field = Field(name, self.field.type, self.field.default)

    @typing.overload
    def __get__(self, vertex: None, owner: type) -> Aggregator[T]: ...
    @typing.overload
    def __get__(self, vertex: Any, owner: type) -> T: ...
    def __get__(self, vertex: Any, owner: type) -> Any:
        if vertex is None:
            return self
        value = vertex.view.aggregate(self.name)
        # `+=` to a shared value is an addition, which wraps around in this type.
        return value if self.is_shared and isinstance(value, np.uint64) else _readable(value)

    def __set__(self, vertex: Any, value: T) -> None:
        if self.is_shared:
            vertex.view.share(self.name, self.field.exactly(value))
            return
        if not isinstance(value, _Contribution):
            raise AttributeError(
                f"aggregator {self.name!r} cannot be assigned: contribute with 'self.{self.name} += x'"
            )
        vertex.view.contribute(self.name, value.given)


def cells_of(aggregator: Aggregator[Any]) -> tuple[Aggregator[Any], ...]:
    """Return what an aggregator consists of in a deterministic run: four words of a sum of floats; itself else.

    Each is a vector, where vectors are added up.
    """
    dtype = aggregator.field.dtype()
    if aggregator.kind != "sum" or dtype.base.kind != "f":
        return (aggregator,)
    type: Any = VectorType(int, dtype.shape[0]) if dtype.shape else int
    cells = []
    for _ in range(4):
        cell = Aggregator.sum(type, persistent=aggregator.persistent)
        cell.field = Field(aggregator.name, type, cell.field.default)
        cell.place, cell.exact = aggregator.place, aggregator
        cells.append(cell)
    return tuple(cells)


def _place_of_caller() -> tuple[str, int]:
    """Return the file and line outside this file from which it is called."""
    frame = sys._getframe()
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "min": lambda a, b: b if b < a else a,
    "max": lambda a, b: b if b > a else a,
    "any": lambda a, b: bool(a or b),
    "all": lambda a, b: bool(a and b),
}


def _readable(value: Any) -> Any:
    """Return the aggregated value as a number, or a vector, whose `+=` makes a contribution."""
    if isinstance(value, (Vector, list)):
        return _AddableVector(value)
    if isinstance(value, np.uint64):
        return _AddableUnsigned(value)
    return _AddableFloat(value) if isinstance(value, (float, np.floating)) else _AddableInt(value)


class _Contribution:
    """A sum together with its last summand: `self.x += given` assigns one; in a local variable it is the sum."""

    given: Any


class _AddableFloat(float):
    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        return _contribution(_GivenFloat, self, other)


class _AddableInt(int):
    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        is_float = isinstance(other, (float, np.floating))
        return _contribution(_GivenFloat if is_float else _GivenInt, self, other)


class _AddableUnsigned(np.uint64):
    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        return _contribution(_GivenInt, int(self), other)


class _AddableVector(Vector):
    def __iadd__(self, other: Any) -> Any:
        made = _GivenVector(self)
        made.given = other
        return made


class _GivenVector(_Contribution, Vector):
    pass


class _GivenFloat(_Contribution, float):
    pass


class _GivenInt(_Contribution, int):
    pass


def _contribution(kind: Callable[[Any], Any], so_far: Any, given: Any) -> Any:
    # As a Python number: NumPy's narrow integers would overflow.
    made = kind(so_far + (given.item() if isinstance(given, np.generic) else given))
    made.given = given
    return made
