"""What a vertex class declares: states, parameters, ids, and their types."""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np

from sigps.model.limits import REQUIRED, Choice, Range
from sigps.model.numbers import NUMPY_TYPES, TYPES, assigned, converted, is_number_type, number_as_computed
from sigps.model.table import Table, TableType
from sigps.model.vector import Vector, VectorType

__all__ = [
    "NO_VERTEX",
    "NUMPY_TYPES",
    "TYPES",
    "Column",
    "EdgeState",
    "Field",
    "IdType",
    "Measure",
    "NoVertexError",
    "Param",
    "Shared",
    "State",
    "VertexId",
    "as_computed",
    "extreme",
    "from_column",
    "inf",
    "is_number_type",
    "kept_type",
    "neighbor_links",
    "num_neighbors",
]

inf = math.inf

T = TypeVar("T")


class Marker:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


STATE, PARAM, SHARED, VERTEX_ID = Marker("State"), Marker("Param"), Marker("Shared"), Marker("VertexId")
EDGE_STATE = Marker("EdgeState")

State = Annotated[T, STATE]
"""A field of every vertex: `rank: State[float] = 0.0`. It becomes one array."""

EdgeState = Annotated[T, EDGE_STATE]
"""What a vertex keeps on each of its out-edges: `bound: EdgeState[int] = 0`, read and assigned as `edge.bound`.

Each end of an undirected edge has its own value. Other vertices read it through `common_neighbors()`, as it was when
the superstep began.
"""

Param = Annotated[T, PARAM]
"""A field of the run: `damping: Param[float] = 0.85`, given as `PageRank(damping=0.9)`.

A parameter of type `str`, `bool | None` and the like (anything but one number) is fixed when the program
is compiled, so a test of it costs nothing at run time.
"""

Shared = Annotated[T, SHARED]
"""A value of the run that every vertex reads: `phase: Shared[int] = 0`. `master()` sets it, or `next_phase()`."""

VertexId = Annotated[int, VERTEX_ID]
"""The type of a parameter, state or message that holds a vertex id.

A parameter is checked to be in the graph; on graphs with string ids, parameters and results hold the
strings, and `compute()` sees whole numbers. What may be no vertex is a `VertexId | None`, as in
`parent: State[VertexId | None]`.
"""

NO_VERTEX = -(2**63)
"""What stands for None in arrays of `VertexId | None`. No vertex of a graph that a program with such fields runs on has
this id."""


@dataclass(frozen=True)
class IdType:
    """What an annotation says of vertex ids."""

    is_vertex_id: bool
    may_be_none: bool


def kept_type(written: Any) -> tuple[Any, IdType]:
    """Return the type of a state or of a message's field, and whether it is `VertexId` or `VertexId | None`."""
    marks = getattr(written, "__metadata__", ())
    type_ = written.__origin__ if marks else written
    if typing.get_origin(type_) in (typing.Union, types.UnionType):
        others = [part for part in typing.get_args(type_) if part is not types.NoneType]
        if len(others) == 1 and VERTEX_ID in getattr(others[0], "__metadata__", ()):
            return others[0].__origin__, IdType(True, True)
    return type_, IdType(VERTEX_ID in marks or (isinstance(type_, VectorType) and type_.holds_ids), False)


class Measure(Marker):
    """A number that the graph defines for each vertex: the initial value of a state. See `neighbor_links`."""


num_neighbors = Measure("num_neighbors")
"""The number of other vertices that a vertex has an edge to or from: `friends: State[int] = num_neighbors`."""

neighbor_links = Measure("neighbor_links")
"""The number of arcs between two neighbours of a vertex: `links: State[int] = neighbor_links`.

An undirected edge is two arcs; loops and all but one of parallel edges do not count. So in an undirected graph a vertex
has `links // 2` triangles. Counted once for a graph, before superstep 0: on GPUs where all ranks have one, else on
CPU cores. With several ranks each holds all edges in its memory while it counts.
"""


@dataclass(frozen=True)
class Column:
    """A vertex column of the graph: what a state begins with. `default` stands in for it, unless that is None."""

    name: str
    default: Any = None


def from_column(name: str, default: Any = None) -> Any:
    """Let a state begin with a vertex column of the graph.

    `seed: State[float] = from_column("seed")`. A run checks that the graph has that column, and that the state can
    hold its values. `initial={"seed": values}` takes its place.

    Args:
        name: The column's name.
        default: What all vertices begin with where the graph has no such column; without it, that is an error.
    """
    if not isinstance(name, str):
        raise TypeError(f"from_column() takes the name of a vertex column, not {name!r}")
    return Column(name, default)


@dataclass(frozen=True)
class Field:
    """One declared state, parameter, or part of a message.

    Attributes:
        type: What the user wrote: `int`, `float`, `bool`, a NumPy scalar type, or a vector's; None for a
            parameter that is fixed when the program is compiled.
        default: The initial value, of a vector a tuple; `Field.REQUIRED` for a parameter that must be given; 0 where
            the graph has it.
        is_vertex_id: Whether it was declared as `VertexId`.
        may_be_none: Whether it was declared as `VertexId | None`; arrays then hold `NO_VERTEX` for None. Of a
            parameter, whether it was declared as `float | None` and the like.
        measure: What a state begins with, where that is a measure of the graph; else None.
        column: What it begins with, where that is a vertex column of the graph; else None.
        is_given: Whether the run gives what it begins with: `initial=`.
        limits: What a parameter may be; None for any value of its type.
    """

    REQUIRED: ClassVar[object] = REQUIRED

    name: str
    type: type | VectorType | TableType | None
    default: Any
    is_vertex_id: bool = False
    measure: Measure | None = None
    column: Column | None = None
    is_given: bool = False
    may_be_none: bool = False
    limits: Range | Choice | None = None

    @property
    def varies(self) -> bool:
        """Whether vertices may begin with different values."""
        return self.is_given or self.measure is not None or self.column is not None

    def dtype(self, precision: Literal["single", "double"] = "double") -> np.dtype[Any]:
        """Return the array type, a row's of vectors; Python's `float` follows the run's precision."""
        if isinstance(self.type, VectorType):
            return self.type.dtype(self.element.dtype(precision))
        kind: Any = self.type.element if isinstance(self.type, TableType) else self.type
        if kind is float:
            return np.dtype(np.float32 if precision == "single" else np.float64)
        found: np.dtype[Any] = np.dtype(kind)
        return found

    @property
    def is_table(self) -> bool:
        """Whether it is a parameter that is read by position."""
        return isinstance(self.type, TableType)

    def argument(self, value: Any, precision: Literal["single", "double"]) -> Any:
        """Return a parameter's value as compiled code takes it: a NumPy scalar, or a table's array and length.

        The array of a table without numbers has one, so that there is memory behind every pointer.
        """
        dtype = self.dtype(precision)
        if not isinstance(value, Table):
            return dtype.type(value)
        values = value.values if len(value) else np.zeros(1, dtype)
        return np.ascontiguousarray(values, dtype), np.int64(len(value))

    @property
    def element(self) -> Field:
        """A field of one number of a vector; of a number the field itself."""
        return replace(self, type=self.type.element) if isinstance(self.type, VectorType) else self

    def with_length(self, lengths: Mapping[str, Any]) -> Field:
        """Return the field of a program with such parameters: a vector has its length."""
        if not isinstance(self.type, VectorType) or not isinstance(self.type.length, str):
            return self
        made = self.type.with_lengths(lengths)
        default = self.default * int(made.length) if isinstance(self.default, tuple) else self.default
        return replace(self, type=made, default=default)

    def convert(self, value: Any) -> Any:
        """Return a value as this field holds it, as a plain Python number.

        Raises:
            OverflowError, ValueError: If the type cannot hold it.
        """
        kind = self.type
        assert kind is not None
        if value is None and self.may_be_none:
            return NO_VERTEX
        if isinstance(kind, VectorType):
            return tuple(self.element.convert(number) for number in kind.spread(value))
        return converted(kind, value)

    def assigned(self, value: Any) -> Any:
        """Return a value as this field holds it once compute() assigned, sent or contributed it.

        Raises:
            TypeError: If it is a float and the field is a whole number: its fraction would be lost.
            OverflowError, ValueError: If the type cannot hold it.
        """
        if value is None:
            if self.may_be_none:
                return None
            raise NoVertexError(f"{self.name} is never None: declare it as VertexId | None")
        if isinstance(self.type, VectorType):
            one = self.element
            return Vector((one.assigned(number) for number in self.type.spread(value)), one.type)
        if isinstance(value, Vector):
            raise TypeError(f"{self.name} is one number, and this is a vector of {len(value)}")
        return assigned(self.type, value, self.name)

    def seen(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Return a number, or a vector, of this field's array of a type, as compute() sees it."""
        if self.may_be_none and value == NO_VERTEX:
            return None
        return as_computed(value, dtype)

    def exactly(self, value: Any) -> Any:
        """Return a value as this field holds it.

        Raises:
            TypeError, OverflowError, ValueError: If the type cannot hold it, or only a part of it.
        """
        assert self.type is not None
        if type(value) is self.type and self.type is float:
            return value
        if isinstance(self.type, VectorType):
            return tuple(self.element.exactly(number) for number in self.type.spread(value))
        assert not isinstance(self.type, TableType)
        dtype = np.dtype(self.type)
        if value is None and self.may_be_none:
            return NO_VERTEX
        if value is None and self.is_vertex_id:
            raise TypeError("None is no vertex: declare it as VertexId | None")
        if isinstance(value, (bool, np.bool_)) and dtype.kind != "b":
            raise TypeError(f"{value!r} is a truth value")
        if not isinstance(value, (int, float, np.number, np.bool_)):
            raise TypeError(f"{value!r} is no number")
        held = self.convert(value)
        if dtype.kind in "iu" and held != value:
            raise ValueError(f"{value!r} is no whole number")
        if dtype.kind in "iu" and not extreme("max", self.type) <= held <= extreme("min", self.type):
            raise OverflowError(f"{value!r} does not fit")
        return held


class NoVertexError(ArithmeticError):
    """None stands where a number, or the id of a vertex, must be."""


def as_computed(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return an element of an array as compute() sees it: a number is Python's, but `np.uint64`, which wraps around."""
    if dtype.shape or isinstance(value, np.ndarray):
        return Vector((as_computed(number, dtype.base) for number in value), dtype.base.type)
    return number_as_computed(value, dtype)


def extreme(kind: str, type: Any) -> Any:
    """Return the identity of `min` or `max` in a type, as a Python number."""
    if isinstance(type, VectorType):
        return extreme(kind, type.element)
    return _extreme(kind, type) if is_number_type(type) else None


@functools.cache
def _extreme(kind: str, type: Any) -> Any:
    dtype: np.dtype[Any] = np.dtype(type)
    if dtype.kind == "f":
        return inf if kind == "min" else -inf
    if dtype.kind == "b":
        return kind == "min"
    bounds = np.iinfo(dtype)
    return int(bounds.max if kind == "min" else bounds.min)
