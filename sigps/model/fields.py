"""What a vertex class declares: states, parameters, ids, aggregators, and their types."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from sigps.errors import CompileError

if TYPE_CHECKING:
    from sigps.model.vertex import Vertex

__all__ = [
    "Aggregator",
    "EdgeState",
    "Field",
    "Measure",
    "Param",
    "Shared",
    "State",
    "VertexId",
    "extreme",
    "inf",
    "is_number_type",
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

Each end of an undirected edge keeps its own. Others read it through `common_neighbors()`, as it was when the superstep
began.
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
strings, and `compute()` sees whole numbers. As a state, -1 means no vertex.
"""


_NUMPY = "a NumPy scalar type from int8 to uint64, float32, float64, bool_"
TYPES = f"int, float, bool, VertexId or {_NUMPY}"

_NUMPY_TYPES = {np.dtype(code).type for code in "?bhilqBHILQfd"}


def is_number_type(type_: Any) -> bool:
    """Tell whether arrays and compiled code can hold a type."""
    return type_ in (int, float, bool) or (isinstance(type_, type) and type_ in _NUMPY_TYPES)


class Measure(Marker):
    """What a graph looks like around each vertex: a state may begin with it. See `neighbor_links`."""


num_neighbors = Measure("num_neighbors")
"""How many other vertices a vertex has an edge to or from: `friends: State[int] = num_neighbors`."""

neighbor_links = Measure("neighbor_links")
"""How many arcs there are between two neighbours of a vertex: `links: State[int] = neighbor_links`.

An undirected edge is two arcs; loops and all but one of parallel edges do not count. So in an undirected graph a vertex
has `links // 2` triangles. Counted once a graph, before superstep 0: on GPUs where all ranks have one, else on CPU
cores. Of several ranks each has all edges in its memory meanwhile.
"""


@dataclass(frozen=True)
class Field:
    """One declared state, parameter, or part of a message.

    Attributes:
        type: What the user wrote: `int`, `float`, `bool` or a NumPy scalar type; None for a parameter that
            is fixed when the program is compiled.
        default: The initial value; `Field.REQUIRED` for a parameter that must be given; 0 where there is a measure.
        is_vertex_id: Whether it was declared as `VertexId`.
        measure: What a state begins with in each vertex, where that is no constant; or None.
    """

    REQUIRED: ClassVar[object] = Marker("REQUIRED")

    name: str
    type: type | None
    default: Any
    is_vertex_id: bool = False
    measure: Measure | None = None

    def dtype(self, precision: Literal["single", "double"] = "double") -> np.dtype[Any]:
        """Return the array type; Python's `float` follows the run's precision."""
        if self.type is float:
            return np.dtype(np.float32 if precision == "single" else np.float64)
        return np.dtype(self.type)

    def convert(self, value: Any) -> Any:
        """Return a value as this field holds it, as a plain Python number.

        Raises:
            OverflowError, ValueError: If the type cannot hold it.
        """
        kind = self.type
        assert kind is not None
        if kind in (int, float, bool):
            return kind(value)
        dtype = np.dtype(kind)
        return dtype.type(int(value) if dtype.kind in "iu" else value).item()

    def exactly(self, value: Any) -> Any:
        """Return a value as this field holds it.

        Raises:
            TypeError, OverflowError, ValueError: If the type cannot hold it, or only a part of it.
        """
        assert self.type is not None
        dtype = np.dtype(self.type)
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


class Aggregator(Generic[T]):
    """A value that all vertices build together: `self.error += x` in superstep s, read in s + 1.

    Declare one as a class attribute: `dangling = Aggregator.sum(float)`. `+=` gives a contribution,
    whatever the operation. A persistent one also keeps what earlier supersteps gave. Before anything
    was given it reads as its identity.

    A `Shared` value is one too, which nobody contributes to: it keeps what `master()` or `next_phase()` set.

    Attributes:
        start: What it reads as before anything was given.
        is_shared: Whether it is a `Shared` value.
    """

    def __init__(
        self,
        kind: str,
        type: type,
        identity: Any,
        function: Callable[[Any, Any], Any] | None = None,
        persistent: bool = False,
    ) -> None:
        if not is_number_type(type) or not callable(function or min):
            raise CompileError(
                f"Aggregator.{kind}() takes a type (int, float, bool or {_NUMPY}), and custom() a function before it"
            )
        self.field = Field("", type, Field("identity", type, None).exactly(identity))
        self.kind = kind
        self.function = function
        self.persistent = persistent
        self.start = self.field.default
        self.is_shared = False

    @staticmethod
    def shared(type: type, start: Any) -> Aggregator[Any]:
        """Make the value behind a `Shared` field."""
        made = Aggregator.any(persistent=True)
        if np.dtype(type).kind != "b":
            made = Aggregator("max", type, extreme("max", type), persistent=True)
        made.start, made.is_shared = made.field.exactly(start), True
        return made

    @staticmethod
    def sum(type: type = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Add up the contributions, from 0."""
        return Aggregator("sum", type, 0, persistent=persistent)

    @staticmethod
    def min(type: type = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Keep the smallest contribution; the type's largest value where there is none."""
        return Aggregator("min", type, extreme("min", type), persistent=persistent)

    @staticmethod
    def max(type: type = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Keep the largest contribution; the type's smallest value where there is none."""
        return Aggregator("max", type, extreme("max", type), persistent=persistent)

    @staticmethod
    def any(*, persistent: bool = False) -> Aggregator[bool]:
        """Tell whether any contribution was true."""
        return Aggregator("any", bool, False, persistent=persistent)

    @staticmethod
    def all(*, persistent: bool = False) -> Aggregator[bool]:
        """Tell whether every contribution was true."""
        return Aggregator("all", bool, True, persistent=persistent)

    @staticmethod
    def custom(
        function: Callable[[T, T], T], *, identity: T, type: type = float, persistent: bool = False
    ) -> Aggregator[T]:
        """Combine with `function`, which must be associative and commutative and leave `identity` unseen."""
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
    def __get__(self, vertex: Vertex, owner: type) -> T: ...
    def __get__(self, vertex: Vertex | None, owner: type) -> Any:
        if vertex is None:
            return self
        return _readable(vertex.view.aggregate(self.name))

    def __set__(self, vertex: Vertex, value: T) -> None:
        if self.is_shared:
            vertex.view.share(self.name, self.field.exactly(value))
            return
        if not isinstance(value, _Contribution):
            raise AttributeError(
                f"aggregator {self.name!r} cannot be assigned: contribute with 'self.{self.name} += x'"
            )
        vertex.view.contribute(self.name, value.given)


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "min": lambda a, b: b if b < a else a,
    "max": lambda a, b: b if b > a else a,
    "any": lambda a, b: bool(a or b),
    "all": lambda a, b: bool(a and b),
}


def extreme(kind: str, type: Any) -> Any:
    """Return the identity of `min` or `max` in a type, as a Python number."""
    if not is_number_type(type):
        return None
    dtype = np.dtype(type)
    if dtype.kind == "f":
        return inf if kind == "min" else -inf
    if dtype.kind == "b":
        return kind == "min"
    bounds = np.iinfo(dtype)
    return int(bounds.max if kind == "min" else bounds.min)


def _readable(value: Any) -> Any:
    """Return the aggregated value as a number whose `+=` makes a contribution."""
    return _AddableFloat(value) if isinstance(value, (float, np.floating)) else _AddableInt(value)


class _Contribution:
    """A sum that knows what was added: `self.x += given` assigns one; in a local variable it is the sum."""

    given: Any


class _AddableFloat(float):
    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        return _contribution(_GivenFloat, self, other)


class _AddableInt(int):
    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        is_float = isinstance(other, (float, np.floating))
        return _contribution(_GivenFloat if is_float else _GivenInt, self, other)


class _GivenFloat(_Contribution, float):
    pass


class _GivenInt(_Contribution, int):
    pass


def _contribution(kind: Callable[[Any], Any], so_far: Any, given: Any) -> Any:
    # As a Python number: a narrow one would overflow.
    made = kind(so_far + (given.item() if isinstance(given, np.generic) else given))
    made.given = given
    return made
