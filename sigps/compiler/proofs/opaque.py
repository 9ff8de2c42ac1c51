"""Values for proofs, which support no more than comparing or copying, and a program's functions run on them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from sigps.compiler.program import VertexProgram
from sigps.native.trees import walk

__all__ = [
    "Casts",
    "Count",
    "CountReadError",
    "Functions",
    "Superstep",
    "Unknown",
    "Value",
    "call_compute",
    "functions",
    "may_not_end",
]

Functions = dict[str, Any]


@functools.total_ordering
class Value:
    """A value that can be compared with other such values, and copied."""

    def __init__(self, order: int) -> None:
        self.order = order

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value):
            raise TypeError("compared with a constant")
        return self.order == other.order

    def __lt__(self, other: Value) -> bool:
        return self.order < other.order

    def _refused(self) -> NoReturn:
        raise TypeError("values can only be compared")

    __hash__ = __bool__ = _refused


class Superstep:
    """A superstep that can only be compared with 0: one proof holds for all supersteps after the first."""

    def __init__(self, is_first: bool) -> None:
        self._is_first = is_first

    def _is_zero(self, other: object) -> bool:
        if type(other) is not int or other != 0:
            raise TypeError("supersteps after the first are all alike")
        return self._is_first

    def _is_positive(self, other: object = 0) -> bool:
        return not self._is_zero(other)

    __eq__ = __le__ = _is_zero
    __ne__ = __gt__ = __bool__ = _is_positive
    __hash__ = None  # type: ignore[assignment]


class Unknown:
    """A value that can only be copied."""

    def _refused(self, *other: object) -> NoReturn:
        raise TypeError("an opaque value was used")

    __eq__ = __hash__ = __bool__ = _refused


class CountReadError(Exception):
    """A degree or a count was read."""


class Count:
    """A degree or a count, which may not even be copied into a result."""

    def _read(self, *other: object) -> Any:
        raise CountReadError

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __index__ = __int__ = __float__ = _read
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _read
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __abs__ = __pow__ = __rpow__ = _read
    __hash__ = None  # type: ignore[assignment]


class Casts:
    """Replaces NumPy: a cast returns the value itself, whose order every type that holds it keeps."""

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        return lambda value: value


def functions(program: VertexProgram, numpy: Any, meanings: Mapping[str, Any]) -> Functions:
    """Return the generated functions, with no other globals than those given, `min` and `max`.

    Args:
        program: The program.
        numpy: Replaces NumPy, whose scalar types are the casts.
        meanings: Global names that the functions may read, and their values.
    """
    names: Functions = {**meanings, "__np": numpy, "__builtins__": {"min": min, "max": max}}
    exec(compile(program.module, program.file, "exec"), names)
    return names


def call_compute(
    names: Functions,
    program: VertexProgram,
    superstep: Superstep,
    vertex: tuple[Any, Any, Any],
    states: tuple[Any, ...],
    inbox: tuple[Any, ...],
    has: bool,
    given: Any,
) -> tuple[tuple[Any, ...], int, tuple[Any, ...]]:
    """Compute one vertex of a program without aggregators; `given` replaces each parameter and count.

    Returns:
        The states, the flags, and the record.
    """
    env = (superstep, given, given)
    params = (given,) * len(program.params)
    after, flags, record, _ = names["compute"](env, params, (), vertex, states, inbox, has, (), ())
    return after, flags, record


def may_not_end(module: ast.Module) -> bool:
    """Tell whether running the functions might take forever."""
    return any(isinstance(node, (ast.For, ast.While)) for node in walk(module))
