"""From a class body to its declaration: annotations are read, types and defaults checked."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from sigps.errors import CompileError, ConfigError
from sigps.model.aggregator import Aggregator
from sigps.model.fields import (
    EDGE_STATE,
    NUMPY_TYPES,
    PARAM,
    SHARED,
    STATE,
    TYPES,
    VERTEX_ID,
    Column,
    Field,
    IdType,
    Measure,
    is_number_type,
    kept_type,
)
from sigps.model.limits import Limited
from sigps.model.records import Record, is_record_type, record_of
from sigps.model.table import Table, TableType
from sigps.model.vector import Vector, VectorType

__all__ = ["Declaration", "checked", "declare"]


@dataclass(frozen=True)
class Declaration:
    """All that a vertex class declares, in the order of the class body. Its text is part of a state log's identity.

    Attributes:
        message_type: The `NamedTuple` class of its messages; None for scalar messages or none at all.
        message: The fields of a message: one for a scalar, none for a program that sends nothing. A field of a
            NamedTuple in a message has the name of that before its own: `spot.level`.
        message_record: The same by `message_type`; None where that is.
        combiner: The explicit combiner, or None.
        has_master: Whether `master()` runs between supersteps, or `next_phase()` between phases.
        has_phases: Whether it is `next_phase()`.
        directed: Whether messages follow the edges' direction; otherwise the graph is taken as undirected.
        simple: Whether that graph is simple: without loops and all but one of parallel edges.
        both_ways: Whether each edge is an out-edge of both its ends, with columns `leads_out` and `leads_in`.
        edge_states: The values that vertices keep on their out-edges.
        reads_neighbors: Whether the code of a method names `common_neighbors`; the compiler finds whether it is called.
        records: The states that are NamedTuples, whose parts are among `states`.
        conditions: The names of methods that return whether a condition between parameters holds, and the conditions.
        given_lengths: Of a program, the parameters that gave vectors their lengths: constants of compiled code.
        place: The file and line of the class, which errors of its combiner name.
        factor: By what compute() is declared to bring two states nearer to each other (`asynchronous=`); None where it
            is not.
        precision: The array type of Python's `float`, where a run does not say.
        parts: What became of the phases of a class of `sigps.gas`: names and sentences, for `explain`.
        kept: What others derived of the class, which goes when the class does.
    """

    states: tuple[Field, ...]
    params: tuple[Field, ...]
    aggregators: tuple[Aggregator[Any], ...]
    message_type: type | None
    message: tuple[Field, ...]
    combiner: Callable[[Any, Any], Any] | None
    directed: bool = True
    has_master: bool = False
    has_phases: bool = False
    both_ways: bool = False
    edge_states: tuple[Field, ...] = ()
    reads_neighbors: bool = False
    place: tuple[str, int] = field(default=("", 0), repr=False, compare=False)
    given_lengths: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    simple: bool = False
    message_record: Record | None = field(default=None, repr=False)
    parts: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)
    factor: float | None = field(default=None, repr=False, compare=False)
    precision: Literal["single", "double"] = field(default="double", repr=False, compare=False)
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @functools.cached_property
    def text(self) -> str:
        """What `repr` says of it, said once: every run describes its class."""
        return repr(self)

    @functools.cached_property
    def lengths(self) -> frozenset[str]:
        """The parameters that say how long vectors are."""
        return frozenset(name for type_ in self._vectors for name in type_.parameters)

    @functools.cached_property
    def may_be_none(self) -> bool:
        """Whether a state, an edge state or a part of a message is a `VertexId | None`."""
        return any(field.may_be_none for field in (*self.states, *self.edge_states, *self.message))

    @property
    def _vectors(self) -> list[VectorType]:
        kept = (*self.states, *self.params, *self.message, *self.edge_states)
        fields = (*kept, *(a.field for a in self.aggregators))
        return [field.type for field in fields if isinstance(field.type, VectorType)]

    def with_lengths(self, values: Mapping[str, Any]) -> Declaration:
        """Return the declaration of a program with such parameters; those that are lengths are fixed in compiled code.

        Raises:
            ConfigError: If a parameter is no length of a vector, or there is none of such a name.
        """
        names = self.lengths
        for name in sorted(names):
            try:
                VectorType(float, name).with_length(values[name])
            except KeyError:
                raise ConfigError(
                    f"there is no parameter {name!r}, which a vector has its length from: {name}: Param[int]"
                ) from None
            except ValueError as error:
                raise ConfigError(f"{name}={values[name]!r}: {error}") from None
        for type_ in self._vectors:
            try:
                type_.with_lengths(values)
            except ValueError as error:
                raise ConfigError(f"{type_!r}: {error}") from None
        return replace(
            self,
            states=tuple(f.with_length(values) for f in self.states),
            params=tuple(f.with_length(values) for f in self.params),
            given_lengths=tuple(sorted(names)),
            records=tuple(r.with_lengths(values) for r in self.records),
            message=tuple(f.with_length(values) for f in self.message),
            message_record=self.message_record and self.message_record.with_lengths(values),
            edge_states=tuple(f.with_length(values) for f in self.edge_states),
            aggregators=tuple(a.with_length(values) for a in self.aggregators),
        )


def declare(
    cls: type,
    root: type,
    inherited: Declaration,
    message: Any,
    combiner: Callable[[Any, Any], Any] | None,
    directed: bool | None,
    both_ways: bool | None,
    simple: bool | None,
    scope: dict[str, Any],
    place: tuple[str, int] = ("", 0),
) -> Declaration:
    """Read what a class body declares; fields of its base come first.

    `root` is `Vertex`, whose names are taken; `inherited` is what the bases of the class declare; `scope` has
    the names that annotations may use; `place` is where the class stands. The others are its arguments; None where
    not given.

    Raises:
        CompileError: If a type, a default, a name or the combiner is wrong.
    """
    states = {f.name: f for f in inherited.states}
    records = {r.name: r for r in inherited.records}
    params = {f.name: f for f in inherited.params}
    edge_states = {f.name: f for f in inherited.edge_states}
    annotations = inspect.get_annotations(cls)
    scope = {name: name for name in annotations} | scope  # a vector's length may be the name of a parameter
    for name, annotation in annotations.items():
        written = annotation
        while isinstance(written, str):
            written = _evaluate(cls, written, scope)
        marks = getattr(written, "__metadata__", ())
        if not {STATE, PARAM, SHARED, EDGE_STATE} & set(marks):
            continue
        _check_name(cls, root, name)
        default = cls.__dict__.get(name, Field.REQUIRED)
        if SHARED in marks:
            _share(cls, name, written.__origin__, default, VERTEX_ID in marks)
        elif STATE in marks and is_record_type(written.__origin__):
            records[name] = record_of(cls.__name__, name, written.__origin__, default, scope)
            states |= {field.name: field for field in records[name].fields()}
        elif STATE in marks:
            states[name] = _state(cls, name, *kept_type(written), default)
        elif EDGE_STATE in marks:
            edge_states[name] = _edge_state(cls, name, *kept_type(written), default)
        else:
            params[name] = _param(cls, name, written.__origin__, default, _names_a_vertex(written))
    aggregators = {a.name: a for a in inherited.aggregators}
    aggregators |= {name: a for name, a in vars(cls).items() if isinstance(a, Aggregator)}
    record, fields = inherited.message_record, inherited.message
    if is_record_type(message):
        record = _message(cls, "", message, scope)
        fields = tuple(record.fields())
    elif message is not None:
        record, fields = None, (_message_field(cls, "value", message),)
    message_type = None if record is None else record.cls
    combiner = combiner or inherited.combiner
    _check_combiner(cls, combiner, message_type)
    directed = inherited.directed if directed is None else directed
    both_ways = inherited.both_ways if both_ways is None else both_ways
    if both_ways and not directed:
        raise CompileError(
            f"{cls.__name__}: directed=False takes the direction away from edges, and both_ways=True makes them "
            "have it; choose one"
        )
    simple = inherited.simple if simple is None else simple
    if simple and directed:
        raise CompileError(
            f"{cls.__name__}: simple=True is for programs of undirected graphs: directed=False"
        )
    has_master, has_phases = _master_of(cls, root)
    return Declaration(
        tuple(states.values()),
        tuple(params.values()),
        tuple(aggregators.values()),
        message_type,
        fields,
        combiner,
        directed,
        has_master,
        has_phases,
        both_ways,
        tuple(edge_states.values()),
        any(_names(value, "common_neighbors") for base in cls.__mro__[:-1] for value in vars(base).values()),
        inherited.place if combiner is inherited.combiner and inherited.combiner else place,
        records=tuple(records.values()),
        simple=simple,
        message_record=record,
        conditions=tuple((dict(inherited.conditions) | _conditions(cls)).items()),
    )


def _conditions(cls: type) -> dict[str, str]:
    """Return the methods of a class that `requires` marks, and what they require."""
    marked = {name: getattr(value, "condition", None) for name, value in vars(cls).items()}
    return {name: text for name, text in marked.items() if isinstance(text, str)}


def _master_of(cls: type, root: type) -> tuple[bool, bool]:
    """Return whether a class or a base of it has `master()` or `next_phase()`, and whether it is the second."""
    written = [name for name in ("master", "next_phase") if getattr(cls, name) is not getattr(root, name)]
    if len(written) > 1:
        raise CompileError(
            f"{cls.__name__}: master() runs after every superstep and next_phase() where it would find nothing left "
            "to do; write one of them"
        )
    return bool(written), written == ["next_phase"]


def _evaluate(cls: type, text: str, scope: dict[str, Any]) -> Any:
    try:
        return eval(text, scope)
    except Exception as error:
        raise CompileError(
            f"{cls.__name__}: the annotation {text!r} cannot be understood: {error}. "
            "Import what it names at the top of the file, not under TYPE_CHECKING"
        ) from None


def _check_name(cls: type, root: type, name: str) -> None:
    if hasattr(root, name) or name == "view":
        raise CompileError(
            f"{cls.__name__}.{name}: every vertex has a {name!r} of its own: choose another name"
        )
    if name.startswith(("__", f"_{cls.__name__.lstrip('_')}__")):
        raise CompileError(
            f"{cls.__name__}.{name}: names that begin with two underscores are reserved: choose another"
        )


def _names_a_vertex(written: Any) -> bool:
    """Return whether a type is `VertexId` or `VertexId | None`."""
    parts = (written, *typing.get_args(written.__origin__))
    return getattr(written.__origin__, "holds_ids", False) or any(
        VERTEX_ID in getattr(part, "__metadata__", ()) for part in parts
    )


class _OnEdges:
    """The class attribute where an `EdgeState` was declared: to read it of a vertex is an error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<kept on edges: {self._name}>"  # the same in every process: part of a state log's identity

    def __get__(self, vertex: Any, owner: type) -> Any:
        if vertex is None:
            return self
        raise AttributeError(f"{self._name!r} is kept on edges: read edge.{self._name} of an out-edge")


def _edge_state(cls: type, name: str, type_: Any, id: IdType, default: Any) -> Field:
    if isinstance(default, Measure):
        raise CompileError(f"{cls.__name__}.{name}: {default!r} is a measure of vertices, not of edges")
    if isinstance(default, Column):
        raise CompileError(
            f"{cls.__name__}.{name}: {default!r} is a column of vertices; copy an edge column in superstep 0: "
            f"edge.{name} = edge.{default.name}"
        )
    if isinstance(default, _OnEdges):
        default = Field.REQUIRED
    if name in ("source", "target", "weight", "index", "reverse", "_columns", "_values"):
        raise CompileError(
            f"{cls.__name__}.{name}: every edge has a {name!r} of its own: choose another name"
        )
    field = _state(cls, name, type_, id, default, "EdgeState")
    setattr(cls, name, _OnEdges(name))
    return field


def _names(value: Any, name: str) -> bool:
    """Return whether the code of a method uses a name."""
    value = getattr(value, "__func__", getattr(value, "fget", value))
    codes = [getattr(value, "__code__", None)]
    while codes:
        code = codes.pop()
        if isinstance(code, types.CodeType):
            if name in code.co_names:
                return True
            codes += code.co_consts
    return False


def _is_field_type(type_: Any) -> bool:
    return is_number_type(type_) or isinstance(type_, VectorType)


def _state(cls: type, name: str, type_: Any, id: IdType, default: Any, kind: str = "State") -> Field:
    if not _is_field_type(type_):
        raise CompileError(f"{cls.__name__}.{name}: {kind}[{_shown(type_)}] is not supported: use {TYPES}")
    if isinstance(default, Measure):
        if type_ is not int:
            raise CompileError(f"{cls.__name__}.{name}: {default!r} counts, so it must be a State[int]")
        return Field(name, type_, 0, measure=default)
    field = Field(name, type_, None, id.is_vertex_id, may_be_none=id.may_be_none)
    column = default if isinstance(default, Column) else None
    if column is not None:
        default = Field.REQUIRED if column.default is None else column.default
    try:
        nothing = None if id.may_be_none else field.element.type(0)  # type: ignore[misc]
        value = field.exactly(nothing if default is Field.REQUIRED else default)
    except (TypeError, ValueError, OverflowError) as error:
        raise CompileError(
            f"{cls.__name__}.{name}: {kind}[{_shown(type_)}] cannot begin as {default!r}: {error}"
        ) from None
    if column is None:
        return replace(field, default=value)
    column = Column(column.name, None if default is Field.REQUIRED else value)
    return replace(field, default=field.exactly(nothing), column=column)


def _share(cls: type, name: str, type_: Any, default: Any, is_vertex_id: bool) -> None:
    """Set the class attribute through which a shared value is read and set."""
    if not is_number_type(type_) or is_vertex_id:
        shown = "VertexId" if is_vertex_id else _shown(type_)
        raise CompileError(
            f"{cls.__name__}.{name}: Shared[{shown}] is not supported: use int, float, bool or {NUMPY_TYPES}"
        )
    try:
        shared = Aggregator.shared(type_, type_(0) if default is Field.REQUIRED else default)
    except (TypeError, ValueError, OverflowError) as error:
        raise CompileError(
            f"{cls.__name__}.{name}: Shared[{_shown(type_)}] cannot begin as {default!r}: {error}"
        ) from None
    shared.__set_name__(cls, name)
    setattr(cls, name, shared)


def _shown(type_: Any) -> str:
    """Return a type as it is written."""
    return type_.__name__ if isinstance(type_, type) else str(type_)


def _param(cls: type, name: str, type_: Any, default: Any, is_vertex_id: bool) -> Field:
    limits = None
    if isinstance(default, Limited):
        limits, default = default.limits, default.default
        if is_vertex_id:
            raise CompileError(f"{cls.__name__}.{name} names a vertex, and may be any of the graph")
        if default is Field.REQUIRED:
            delattr(cls, name)
        else:
            setattr(cls, name, default)
    is_kept = _is_field_type(type_) or isinstance(type_, TableType)
    may_be_none = not is_kept and types.NoneType in typing.get_args(type_)
    field = Field(
        name, type_ if is_kept else None, default, is_vertex_id, may_be_none=may_be_none, limits=limits
    )
    if default is not Field.REQUIRED:
        known = field
        if isinstance(type_, VectorType) and isinstance(type_.length, str):
            if not isinstance(default, (bool, int, float, np.number, np.bool_)):
                raise CompileError(
                    f"{cls.__name__}.{name}: {type_!r} has its length from a parameter, so its default is one number "
                    f"for all, and not {default!r}"
                )
            known = replace(field, type=type_.with_length(1))
        try:
            checked(cls.__name__, known, default)
        except ConfigError as error:
            raise CompileError(str(error)) from None
    return field


def _message(cls: type, name: str, type_: Any, scope: dict[str, Any]) -> Record:
    """Read what messages are made of: a NamedTuple, in which there may be others."""
    try:
        hints = typing.get_type_hints(type_, localns=scope, include_extras=True)
    except NameError as error:
        raise CompileError(
            f"{cls.__name__}: message={type_.__name__} cannot be understood: {error}"
        ) from None
    parts: list[Field | Record] = []
    for field_name in vars(type_)["_fields"]:
        part = f"{name}.{field_name}" if name else field_name
        written = hints.get(field_name)
        is_record = is_record_type(written)
        parts.append(_message(cls, part, written, scope) if is_record else _message_field(cls, part, written))
    return Record(name, type_, tuple(parts))


def _message_field(cls: type, name: str, written: Any) -> Field:
    type_, id = kept_type(written)
    if not _is_field_type(type_):
        where = "message=" if name == "value" else f"the message's {name}: "
        raise CompileError(
            f"{cls.__name__}: {where}{_shown(type_)} is not supported: use {TYPES}, or a NamedTuple of these"
        )
    return Field(name, type_, None, id.is_vertex_id, may_be_none=id.may_be_none)


def _check_combiner(cls: type, combiner: Any, message_type: type | None) -> None:
    if combiner is None:
        return
    if not callable(combiner) or isinstance(combiner, type):
        raise CompileError(
            f"{cls.__name__}: combiner={combiner!r} is no function of two messages: use min, max or your own"
        )
    if combiner is sum and message_type is not None:
        raise CompileError(
            f"{cls.__name__}: combiner=sum cannot add NamedTuples: write a function that adds each field"
        )


def checked(program: str, field: Field, value: Any) -> Any:
    """Return a parameter's value in its type.

    Raises:
        ConfigError: If it is no such value, or not within its limits.
    """
    given = f"{program}: {field.name}={value!r:.80}"
    names_vertices = isinstance(field.type, VectorType) and field.is_vertex_id
    if field.type is not None and (names_vertices or not field.is_vertex_id):
        try:
            value = _named(field, value) if names_vertices else _held(field, value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigError(f"{given} is not of type {field.type.__name__}: {error}") from None
    if field.limits is None or (field.may_be_none and value is None):
        return value
    numbers = value.values if isinstance(value, Table) else value
    if problem := field.limits.problem(np.asarray(numbers) if isinstance(numbers, Vector) else numbers):
        raise ConfigError(f"{given} {problem}{', nor None' * field.may_be_none}")
    return value


def _named(field: Field, value: Any) -> Vector:
    """Return ids as the user names vertices: the graph is not known yet."""
    assert isinstance(field.type, VectorType)
    length = field.dtype().shape[0]
    return Vector(field.type.spread([value] * length if np.isscalar(value) else value))


def _held(field: Field, value: Any) -> Any:
    assert field.type is not None
    return field.type(value if isinstance(field.type, TableType) else field.exactly(value))
