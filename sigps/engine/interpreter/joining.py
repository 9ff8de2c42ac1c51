"""Values given the type that compiled code gives them where they are written (`compiler/cpu/joined.py`)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sigps.compiler.cpu.joined import Joined, Places
from sigps.model.vector import Vector
from sigps.native.types import NONE, OPTIONAL, UINT, Number, Tuple, Type
from sigps.native.types import Vector as VectorKind

__all__ = ["as_type", "by_arguments", "mark", "marked_names"]


def mark(tree: ast.FunctionDef, places: Places) -> list[Type]:
    """Mark the nodes of a function at some places: `sigps_joined` is a position in what is returned."""
    kinds: list[Type] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.arg)):
            file = getattr(node, "sigps_file", "")
            place = file, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
            if place in places:
                node.sigps_joined = len(kinds)  # type: ignore[union-attr]
                kinds.append(places[place])
    return kinds


def marked_names(target: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a statement assigns and that are marked, each with its mark."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and hasattr(node, "sigps_joined"):
            yield node.id, node.sigps_joined


def as_type(kind: Type, value: Any) -> Any:
    """Return a number as a float, a np.uint64 or a vector, where the type is one, also inside a tuple."""
    if isinstance(kind, Tuple) and isinstance(value, tuple):
        items = [as_type(k, v) for k, v in zip(kind.items, value, strict=True)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(kind, VectorKind):
        numbers = value if isinstance(value, Vector) else [value] * kind.length
        return Vector([as_type(kind.element, number) for number in numbers])
    if isinstance(kind, Number) and isinstance(value, (int, float, np.number, np.bool_)):
        if kind.is_float:
            return float(value)
        return np.uint64(value) if kind == UINT else value
    return value


def by_arguments(function: Any, joined: Joined, place: tuple[str, int], make: Callable[[Places], Any]) -> Any:
    """Return a function that is one for some types of arguments and another for others, as compiled code has it."""
    made: list[tuple[tuple[Type, ...], Any]] = []
    for kinds, places in joined.variants[place]:
        made.append((kinds, make(places | joined.places)))
    signature = inspect.signature(function)

    def call(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        values = list(bound.arguments.values())
        fitting = (one for kinds, one in made if _fit(kinds, values[len(values) - len(kinds) :]))
        return next(fitting, made[0][1])(*given, **named)

    return call


def _fit(kinds: Sequence[Type], values: Sequence[Any]) -> bool:
    return all(map(_fits, kinds, values))


def _fits(kind: Type, value: Any) -> bool:
    """Tell whether a value is of a type, as far as what is computed depends on it."""
    if isinstance(kind, Tuple):
        return isinstance(value, tuple) and len(value) == len(kind.items) and _fit(kind.items, value)
    if isinstance(kind, VectorKind):
        return isinstance(value, Vector) and len(value) == kind.length and _fits(kind.element, value[0])
    if value is None or kind == NONE:
        return value is None and kind in (NONE, OPTIONAL)
    if not isinstance(kind, Number) or isinstance(value, (tuple, Vector)):
        return False
    is_float = isinstance(value, (float, np.floating))
    return kind.is_float == is_float and (kind == UINT) == isinstance(value, np.uint64)
