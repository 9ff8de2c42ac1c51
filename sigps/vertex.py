"""What users write: a subclass of `Vertex` with fields, a message type and `compute()`.

    from sigps import Param, State, Vertex, VertexId, inf

    class SSSP(Vertex, message=float):
        source: Param[VertexId]
        distance: State[float] = inf

        def compute(self, messages):
            best = 0.0 if self.superstep == 0 and self.id == self.source else min(messages, default=inf)
            if best < self.distance:
                self.distance = best
                for edge in self.out_edges:
                    self.send(edge, best + edge.weight)
            self.vote_to_halt()

`SSSP(source=5)` is a program: a class and the values of its parameters. Nothing here computes; the
interpreter lends each vertex a `View` of the run, and the compiler reads the class instead of running it.
"""

from __future__ import annotations

import difflib
import inspect
import math
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np

from sigps.errors import CompileError, ConfigError

__all__ = ["Aggregator", "Declaration", "Edge", "Field", "Param", "State", "Vertex", "VertexId", "inf"]

inf = math.inf

T = TypeVar("T")


class _Marker:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


_STATE, _PARAM, _VERTEX_ID = _Marker("State"), _Marker("Param"), _Marker("VertexId")

State = Annotated[T, _STATE]
"""A field of every vertex: `rank: State[float] = 0.0`. It becomes one array."""

Param = Annotated[T, _PARAM]
"""A field of the run: `damping: Param[float] = 0.85`, given as `PageRank(damping=0.9)`.

A parameter of type `str`, `bool | None` and the like (anything but one number) is fixed when the program
is compiled, so a test of it costs nothing at run time.
"""

VertexId = Annotated[int, _VERTEX_ID]
"""The type of a parameter, state or message that holds a vertex id.

A parameter is checked to be in the graph; on graphs with string ids, parameters and results hold the
strings, and `compute()` sees whole numbers. As a state, -1 means no vertex.
"""


@dataclass(frozen=True)
class Field:
    """One declared state, parameter, or part of a message.

    Attributes:
        type: What the user wrote: `int`, `float`, `bool` or a NumPy scalar type; None for a parameter that
            is fixed when the program is compiled.
        default: The initial value; `Field.REQUIRED` for a parameter that must be given.
        is_vertex_id: Whether it was declared as `VertexId`.
    """

    REQUIRED: ClassVar[object] = _Marker("REQUIRED")

    name: str
    type: type | None
    default: Any
    is_vertex_id: bool = False

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


@dataclass(frozen=True)
class Declaration:
    """All that a vertex class declares, in the order it was written.

    Attributes:
        message_type: The `NamedTuple` class of its messages; None for scalar messages or none at all.
        message: The fields of a message: one for a scalar, none for a program that sends nothing.
        combiner: The explicit combiner, or None.
        directed: Whether messages follow the edges' direction; otherwise the graph is taken as undirected.
    """

    states: tuple[Field, ...]
    params: tuple[Field, ...]
    aggregators: tuple[Aggregator[Any], ...]
    message_type: type | None
    message: tuple[Field, ...]
    combiner: Callable[[Any, Any], Any] | None
    directed: bool = True


class Aggregator(Generic[T]):
    """A value that all vertices build together: `self.error += x` in superstep s, read in s + 1.

    Declare one as a class attribute: `dangling = Aggregator.sum(float)`. `+=` gives a contribution,
    whatever the operation. A persistent one also keeps what earlier supersteps gave. Before anything
    was given it reads as its identity.
    """

    def __init__(
        self,
        kind: str,
        type: type,
        identity: Any,
        function: Callable[[Any, Any], Any] | None = None,
        persistent: bool = False,
    ) -> None:
        self.field = Field("", type, identity)
        self.kind = kind
        self.function = function
        self.persistent = persistent

    @staticmethod
    def sum(type: type = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Add up the contributions, from 0."""
        return Aggregator("sum", type, type(0), persistent=persistent)

    @staticmethod
    def min(type: type = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Keep the smallest contribution; the type's largest value where there is none."""
        return Aggregator("min", type, extreme("min", np.dtype(type)), persistent=persistent)

    @staticmethod
    def max(type: type = float, *, persistent: bool = False) -> Aggregator[Any]:
        """Keep the largest contribution; the type's smallest value where there is none."""
        return Aggregator("max", type, extreme("max", np.dtype(type)), persistent=persistent)

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


def extreme(kind: str, dtype: np.dtype[Any]) -> Any:
    """Return the identity of `min` or `max` in a type, as a Python number."""
    if dtype.kind == "f":
        return inf if kind == "min" else -inf
    if dtype.kind == "b":
        return kind == "min"
    bounds = np.iinfo(dtype)
    return int(bounds.max if kind == "min" else bounds.min)


class Edge:
    """One out-edge as `compute()` sees it: `target`, `weight` (1.0 on an unweighted graph), edge columns."""

    __slots__ = ("_columns", "index", "target")

    def __init__(self, index: int, target: int, columns: dict[str, Any]) -> None:
        self.index = index
        self.target = target
        self._columns = columns

    def __getattr__(self, name: str) -> Any:
        try:
            return self._columns[name]
        except KeyError:
            if name == "weight":
                return 1.0
            raise AttributeError(
                f"the edges have no column {name!r}; they have: {', '.join(self._columns) or 'none'}"
            ) from None


class View(Protocol):
    """What the interpreter lends a vertex while its `compute()` runs."""

    id: int
    superstep: int
    num_vertices: int
    num_edges: int
    out_degree: int
    in_degree: int

    def out_edges(self) -> Iterator[Edge]: ...
    def send(self, edge: Edge, message: Any) -> None: ...
    def send_to(self, vertex_id: int, message: Any) -> None: ...
    def halt(self) -> None: ...
    def retire(self) -> None: ...
    def aggregate(self, name: str) -> Any: ...
    def contribute(self, name: str, value: Any) -> None: ...


class Vertex:
    """The base of every vertex program. Subclass it and write `compute()`.

    Class arguments:
        message: The type of a message: `int`, `float`, `bool`, `VertexId`, a NumPy scalar type, or a
            `NamedTuple` of these. Leave it out in a program that sends nothing.
        combiner: A function of two messages that gives one, associative and commutative. Needed only where
            `compute()` does not show it; `min`, `max` and a function of your own work.
        directed: False for a program of undirected graphs: a directed graph is run with every edge in both
            directions.
    """

    declaration: ClassVar[Declaration] = Declaration((), (), (), None, (), None)
    view: View

    def __init_subclass__(
        cls,
        message: Any = None,
        combiner: Callable[[Any, Any], Any] | None = None,
        directed: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        frame = inspect.currentframe()
        scope = dict(frame.f_back.f_locals) if frame is not None and frame.f_back is not None else {}
        cls.declaration = _declare(cls, message, combiner, directed, scope)

    def __init__(self, **params: Any) -> None:
        """Bind the run's parameters.

        Raises:
            ConfigError: If a parameter is unknown, missing, or of the wrong type.
        """
        fields = {field.name: field for field in self.declaration.params}
        for name in params:
            if name not in fields:
                near = difflib.get_close_matches(name, fields, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                known = ", ".join(fields) or "none"
                raise ConfigError(f"{type(self).__name__} has no parameter {name!r}{hint} It has: {known}")
        for name, field in fields.items():
            value = params.get(name, field.default)
            if value is Field.REQUIRED:
                raise ConfigError(f"{type(self).__name__} needs {name}=: a parameter without a default")
            object.__setattr__(self, name, _checked(type(self).__name__, field, value))

    def compute(self, messages: Any) -> None:
        """Run one superstep of one vertex. Subclasses write this."""
        raise NotImplementedError(f"{type(self).__name__} has no compute()")

    @property
    def params(self) -> dict[str, Any]:
        """The run's parameters by name."""
        return {field.name: getattr(self, field.name) for field in self.declaration.params}

    @property
    def id(self) -> int:
        """The user's own id of this vertex."""
        return self.view.id

    @property
    def superstep(self) -> int:
        """The superstep that runs, counted from 0."""
        return self.view.superstep

    @property
    def num_vertices(self) -> int:
        """The number of vertices of the whole graph."""
        return self.view.num_vertices

    @property
    def num_edges(self) -> int:
        """The number of directed edges of the whole graph (an undirected edge counts in both directions)."""
        return self.view.num_edges

    @property
    def out_degree(self) -> int:
        """The number of edges out of this vertex."""
        return self.view.out_degree

    @property
    def in_degree(self) -> int:
        """The number of edges into this vertex."""
        return self.view.in_degree

    @property
    def out_edges(self) -> Iterator[Edge]:
        """The edges out of this vertex, in ascending order of their targets."""
        return self.view.out_edges()

    def send(self, edge: Edge, message: Any) -> None:
        """Send a message along an out-edge; it is read in the next superstep."""
        self.view.send(edge, message)

    def send_to_neighbors(self, message: Any) -> None:
        """Send one message along every out-edge."""
        for edge in self.view.out_edges():
            self.view.send(edge, message)

    def send_to(self, vertex_id: int, message: Any) -> None:
        """Send a message to any vertex by its id. An id that is not in the graph ends the run with an error."""
        self.view.send_to(vertex_id, message)

    def vote_to_halt(self) -> None:
        """Sleep until a message arrives."""
        self.view.halt()

    def retire(self) -> None:
        """Halt for good: later messages are dropped unread."""
        self.view.retire()

    def __setattr__(self, name: str, value: Any) -> None:
        declared = self.declaration
        field = next((f for f in declared.states if f.name == name), None)
        if name == "view":
            object.__setattr__(self, name, value)
        elif field is not None:
            object.__setattr__(self, name, field.convert(value))
        elif isinstance(getattr(type(self), name, None), Aggregator):
            getattr(type(self), name).__set__(self, value)
        elif any(name == f.name for f in declared.params):
            raise AttributeError(f"{name!r} is a parameter of the run; compute() cannot assign it")
        else:
            raise AttributeError(
                f"{type(self).__name__} declares no field {name!r}: write '{name}: State[float] = 0.0' in the class"
            )


def _declare(
    cls: type[Vertex],
    message: Any,
    combiner: Callable[[Any, Any], Any] | None,
    directed: bool | None,
    scope: dict[str, Any],
) -> Declaration:
    inherited = cls.declaration
    states = {f.name: f for f in inherited.states}
    params = {f.name: f for f in inherited.params}
    for name, annotation in inspect.get_annotations(cls).items():
        written = _evaluate(cls, annotation, scope) if isinstance(annotation, str) else annotation
        marks = getattr(written, "__metadata__", ())
        if _STATE not in marks and _PARAM not in marks:
            continue
        default = cls.__dict__.get(name, Field.REQUIRED)
        if _STATE in marks:
            states[name] = _state(cls, name, written.__origin__, default, _VERTEX_ID in marks)
        else:
            params[name] = Field(name, _param_type(written.__origin__), default, _VERTEX_ID in marks)
    aggregators = {a.name: a for a in inherited.aggregators}
    aggregators |= {name: a for name, a in vars(cls).items() if isinstance(a, Aggregator)}
    message_type, fields = inherited.message_type, inherited.message
    if message is not None:
        message_type, fields = _message(cls, message)
    return Declaration(
        tuple(states.values()),
        tuple(params.values()),
        tuple(aggregators.values()),
        message_type,
        fields,
        combiner or inherited.combiner,
        inherited.directed if directed is None else directed,
    )


def _evaluate(cls: type, text: str, scope: dict[str, Any]) -> Any:
    module = inspect.getmodule(cls)
    names = {**(vars(module) if module else {}), **scope}
    try:
        return eval(text, names)
    except NameError as error:
        raise CompileError(f"{cls.__name__}: the annotation {text!r} cannot be understood: {error}") from None


def _state(cls: type, name: str, type_: Any, default: Any, is_vertex_id: bool) -> Field:
    if not _is_number_type(type_):
        raise CompileError(
            f"{cls.__name__}.{name}: State[{type_!r}] is not supported: "
            "use int, float, bool, VertexId or a NumPy scalar type"
        )
    value = type_(0) if default is Field.REQUIRED else default
    return Field(name, type_, value, is_vertex_id)


def _param_type(type_: Any) -> type | None:
    return type_ if _is_number_type(type_) else None


def _is_number_type(type_: Any) -> bool:
    if type_ in (int, float, bool):
        return True
    return isinstance(type_, type) and issubclass(type_, (np.bool_, np.integer, np.floating))


def _message(cls: type, message: Any) -> tuple[type | None, tuple[Field, ...]]:
    if hasattr(message, "_fields") and isinstance(message, type):
        hints = typing.get_type_hints(message, include_extras=True)
        return message, tuple(_message_field(cls, name, hints.get(name)) for name in message._fields)  # type: ignore[attr-defined]
    return None, (_message_field(cls, "value", message),)


def _message_field(cls: type, name: str, written: Any) -> Field:
    type_ = getattr(written, "__origin__", written)
    if not _is_number_type(type_):
        raise CompileError(
            f"{cls.__name__}: message={written!r} is not supported: "
            "use int, float, bool, VertexId, a NumPy scalar type, or a NamedTuple of these"
        )
    return Field(name, type_, None, _VERTEX_ID in getattr(written, "__metadata__", ()))


def _checked(program: str, field: Field, value: Any) -> Any:
    if field.type is None or field.is_vertex_id:
        return value
    is_number = isinstance(value, (int, float, np.number, np.bool_)) and not (
        isinstance(value, bool) and field.type not in (bool, np.bool_)
    )
    is_fraction = is_number and np.dtype(field.type).kind in "iu" and value != int(value)
    if not is_number or is_fraction:
        raise ConfigError(f"{program}: {field.name}={value!r} is not of type {field.type.__name__}")
    return field.type(value)


def _readable(value: Any) -> Any:
    """Return the aggregated value as a number whose `+=` makes a contribution."""
    return _AddableFloat(value) if isinstance(value, (float, np.floating)) else _AddableInt(value)


class _Contribution:
    """A sum that also knows what was added: `self.x += given` assigns one; in a local variable it is the sum."""

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
    made = kind(so_far + (given.item() if isinstance(given, np.generic) else given))  # Python's int has no end
    made.given = given
    return made
