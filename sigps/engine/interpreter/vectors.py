"""Vectors in the interpreter: the rules of numbers, number by number; what is assigned a number is another vector."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sigps.errors import CompileError
from sigps.model.aggregator import Aggregator
from sigps.model.records import no_part
from sigps.model.vector import INSIDE, Vector

__all__ = [
    "by_number",
    "item_of",
    "of_vectors",
    "reductions",
    "start_of_sum",
    "store_item",
    "whole",
    "with_item",
]


def by_number(function: Callable[..., Any], *values: Any) -> Vector:
    """Return what a function of numbers makes of each number of some vectors; a number stands for a vector of it."""
    first = next(value for value in values if isinstance(value, Vector))
    return first.each(lambda _, *numbers: function(*numbers), *values)


def of_vectors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of numbers that takes vectors too."""

    def compute(*values: Any, **options: Any) -> Any:
        if any(isinstance(value, Vector) for value in values):
            return by_number(function, *values)
        return function(*values, **options)

    return compute


_WHOLE = (min, max, sum, int, float)
"""Functions that do not work number by number."""


def reductions(
    functions: dict[Any, Callable[..., Any]], total: Callable[..., Any], dot: Callable[..., Any]
) -> dict[Any, Callable[..., Any]]:
    """Return functions of numbers that take vectors too, and those of one vector."""
    found = {f: g if f in _WHOLE else of_vectors(g) for f, g in functions.items()}
    found[np.where] = of_vectors(lambda condition, a, b: a if condition else b)
    of_one: dict[Any, Callable[..., Any]] = {
        np.sum: total, np.any: any, np.all: all, np.min: functions[min], np.max: functions[max],
        np.argmin: _place_of(functions[min], math.inf), np.argmax: _place_of(functions[max], -math.inf),
    }  # fmt: skip
    for function, reduce in of_one.items():
        found[function] = _of_one_vector(function, reduce)
    found[np.dot] = lambda a, b: dot(a, b) if isinstance(a, Vector) else np.dot(a, b)
    return found


def _of_one_vector(function: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: reduce(*values) if isinstance(values[0], Vector) else function(*values)


def _place_of(extreme: Callable[..., Any], lost: float) -> Callable[[Vector], int]:
    """Return what finds the first position of the least or greatest number; a NaN is as the number that loses."""

    def place(vector: Vector) -> int:
        best = extreme(vector)
        return next(i for i, number in enumerate(vector) if (lost if number != number else number) == best)

    return place


def with_item(variable: Any, at: Any, value: Any) -> Any:
    """Return what `variable[at] = value` leaves in the variable: another vector, since a vector is a value."""
    if isinstance(variable, Vector):
        variable = variable.copy()
    variable[at] = value
    return variable


def whole(value: Any, file: str, line: int, part: str = "") -> Any:
    """Return something of which a part is assigned that is no variable and no field; by its name, or an item.

    Raises:
        CompileError: If it is a vector or a NamedTuple.
    """
    is_record = bool(part) and isinstance(value, tuple)
    if isinstance(value, Vector) or is_record:
        source = linecache.getline(file, line).strip()
        raise CompileError(no_part(part) if is_record else INSIDE, file=file, line=line, source=source)
    return value


def item_of(owner: Any, name: str, at: Any) -> Any:
    """Return `owner.name[at]`, to which something is added; of an aggregator nothing is read."""
    is_aggregator = isinstance(getattr(type(owner), name, None), Aggregator)
    return None if is_aggregator else getattr(owner, name)[at]


def store_item(
    owner: Any,
    name: str,
    at: Any,
    value: Any,
    old: Any = None,
    combine: Callable[[Any, Any], Any] | None = None,
) -> None:
    """Do `owner.name[at] = value`, or with `combine` `owner.name[at] += value` and the like of `item_of`.

    The field is assigned with one number changed. An aggregator is given a contribution of one number, and zeros.
    """
    if isinstance(getattr(type(owner), name, None), Aggregator):
        aggregator = next(a for a in owner.declaration.aggregators if a.name == name)
        given = Vector(aggregator.identity)
        given[at] = value
        owner.view.contribute(name, given)
        return
    values = getattr(owner, name)
    value = value if combine is None else combine(old, value)
    if isinstance(values, Vector):
        setattr(owner, name, with_item(values, at, value))
    else:
        values[at] = value


def start_of_sum(messages: Any, element: Callable[[Any], Any] | None) -> Any:
    """Return what a sum over messages begins with: a vector of zeros where there are none to say how long it is."""
    zero = getattr(messages, "zero", None)
    if zero is None or messages:
        return 0
    zero = zero if element is None else element(zero)
    return zero.each(lambda number: number * 0) if isinstance(zero, Vector) else 0
