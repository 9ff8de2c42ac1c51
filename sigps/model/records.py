"""States that are NamedTuples: each part is a state of its own, `cluster.size`, in an array of its own."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sigps.errors import CompileError
from sigps.model.fields import Field, kept_type
from sigps.model.numbers import TYPES, is_number_type
from sigps.model.vector import Vector, VectorType

__all__ = ["Record", "is_record_type", "no_part", "record_of", "vectors_of", "with_vectors"]


@dataclass(frozen=True)
class Record:
    """A state that is a NamedTuple, or a part of one that is.

    Attributes:
        name: Its name; of a part with that of the whole before it: `cluster.centre`.
        cls: The user's class.
        parts: Numbers and vectors as fields, NamedTuples as records; in the order of the class.
    """

    name: str
    cls: type
    parts: tuple[Field | Record, ...]

    def fields(self) -> Iterator[Field]:
        """Yield the states that it is made of."""
        for part in self.parts:
            if isinstance(part, Record):
                yield from part.fields()
            else:
                yield part

    def with_lengths(self, values: Mapping[str, Any]) -> Record:
        """Return the record of a program with such parameters: its vectors have their lengths."""
        parts = (
            p.with_lengths(values) if isinstance(p, Record) else p.with_length(values) for p in self.parts
        )
        return replace(self, parts=tuple(parts))

    @property
    def names(self) -> list[str]:
        """The names of its parts, as the class has them."""
        return [part.name.rpartition(".")[2] for part in self.parts]

    def flat(self, given: Any) -> Iterator[Any]:
        """Yield the numbers and vectors of a tuple, in the order of `fields()`.

        Raises:
            TypeError: If it is no such tuple.
        """
        if not isinstance(given, tuple) or len(given) != len(self.parts):
            raise TypeError(f"{self.name or 'a message'} is a {self.cls.__name__}, and {given!r} is none")
        for part, value in zip(self.parts, given, strict=True):
            if isinstance(part, Record):
                yield from part.flat(value)
            else:
                yield value

    def of(self, values: Iterator[Any]) -> Any:
        """Return the NamedTuple of some values, in the order of `fields()`."""
        return self.cls(*(p.of(values) if isinstance(p, Record) else next(values) for p in self.parts))

    def build(self, values: Mapping[str, Any]) -> Any:
        """Return the NamedTuple of some values, by the names of states."""
        return self.cls(*(p.build(values) if isinstance(p, Record) else values[p.name] for p in self.parts))

    def values(self, given: Any) -> dict[str, Any]:
        """Return what compute() assigned, by the names of states.

        Raises:
            TypeError, ValueError, OverflowError: If it is no such tuple, or a part does not fit.
        """
        if not isinstance(given, tuple) or len(given) != len(self.parts):
            raise TypeError(f"{self.name} is a {self.cls.__name__}, and {given!r} is none")
        found: dict[str, Any] = {}
        for part, value in zip(self.parts, given, strict=True):
            found |= part.values(value) if isinstance(part, Record) else {part.name: part.assigned(value)}
        return found


def no_part(name: str) -> str:
    """Return what is wrong with `x.name = 1.0` where x is a NamedTuple."""
    return f"a part of a NamedTuple is not assigned: assign a new one, as in x = x._replace({name}=...)"


def is_record_type(type_: Any) -> bool:
    """Tell whether a type is a NamedTuple's."""
    return isinstance(type_, type) and issubclass(type_, tuple) and hasattr(type_, "_fields")


@functools.lru_cache(maxsize=256)
def vectors_of(cls: Any) -> dict[str, VectorType]:
    """Return the fields of a NamedTuple class that are vectors of a known length, by their names."""
    names, found = vars(sys.modules.get(cls.__module__, typing)), {}
    annotations = {n: a for base in cls.__mro__ for n, a in inspect.get_annotations(base).items()}
    for field, written in annotations.items():
        with contextlib.suppress(NameError):  # a name of a function, which nobody else knows
            one = types.SimpleNamespace(__annotations__={field: written})
            type_, _ = kept_type(typing.get_type_hints(one, names, include_extras=True)[field])
            if isinstance(type_, VectorType) and not isinstance(type_.length, str):
                found[field] = type_
    return found


def with_vectors(record: Any) -> Any:
    """Return a NamedTuple in which numbers and tuples given for vectors are vectors.

    Raises:
        TypeError, ValueError, OverflowError: If they do not fit.
    """
    kinds = vectors_of(record.__class__)
    given = {name: getattr(record, name) for name in kinds}
    made = {name: kinds[name](value) for name, value in given.items() if not isinstance(value, Vector)}
    return record._replace(**made) if made else record


def record_of(owner: str, name: str, cls: Any, default: Any, scope: Mapping[str, Any]) -> Record:
    """Return the record of a declared state.

    Args:
        owner: The class that declares it.
        name: Its name.
        cls: The NamedTuple class.
        default: What it begins with; `Field.REQUIRED` for zeros.
        scope: The names that annotations may use.

    Raises:
        CompileError: If a part has no type that a state can have, or the default does not fit.
    """
    where = f"{owner}.{name}: {cls.__name__}"
    if default is not Field.REQUIRED and not (
        isinstance(default, tuple) and len(default) == len(cls._fields)
    ):
        raise CompileError(f"{where} cannot begin as {default!r}: write a {cls.__name__}")
    try:
        hints = typing.get_type_hints(cls, localns=dict(scope), include_extras=True)
    except NameError as error:
        raise CompileError(f"{where} cannot be understood: {error}") from None
    parts: list[Field | Record] = []
    for i, part in enumerate(cls._fields):
        written = hints.get(part)
        type_, id = kept_type(written)
        begin: Any = default[i] if isinstance(default, tuple) else default
        if is_record_type(type_):
            parts.append(record_of(owner, f"{name}.{part}", type_, begin, scope))
            continue
        if not is_number_type(type_) and not isinstance(type_, VectorType):
            raise CompileError(f"{where}.{part} is a {type_}: use {TYPES}, or a NamedTuple of these")
        field = Field(f"{name}.{part}", type_, None, id.is_vertex_id, may_be_none=id.may_be_none)
        try:
            zero = None if id.may_be_none else field.element.type(0)  # type: ignore[misc]
            value = field.exactly(zero if begin is Field.REQUIRED else begin)
        except (TypeError, ValueError, OverflowError) as error:
            raise CompileError(f"{where}.{part} cannot begin as {begin!r}: {error}") from None
        parts.append(replace(field, default=value))
    return Record(name, cls, tuple(parts))
