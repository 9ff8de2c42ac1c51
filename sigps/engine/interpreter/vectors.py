"""Vectors in the interpreter: the rules of numbers done number by number, and assignments that copy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sigps.model.aggregator import Aggregator
from sigps.model.vector import Vector

__all__ = ["by_number", "copied", "of_vectors", "reductions", "start_of_sum", "store_item"]


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


def copied(value: Any) -> Any:
    """Return what an assignment stores: a vector is a value, so it is copied."""
    if isinstance(value, Vector):
        return value.copy()
    if isinstance(value, tuple) and any(isinstance(item, (Vector, tuple)) for item in value):
        items = [copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def store_item(owner: Any, name: str, at: Any, value: Any, combine: Callable[[Any, Any], Any] | None) -> None:
    """Do `owner.name[at] = value`, or with `combine` `owner.name[at] += value` and the like.

    The field is assigned with one number changed. An aggregator is given a contribution of one number, and zeros.
    """
    values = getattr(owner, name)
    if isinstance(getattr(type(owner), name, None), Aggregator):
        aggregator = next(a for a in owner.declaration.aggregators if a.name == name)
        given = Vector(aggregator.identity)
        given[at] = value
        owner.view.contribute(name, given)
        return
    if combine is not None:
        value = combine(values[at], value)
    values[at] = value
    setattr(owner, name, values)


def start_of_sum(messages: Any, element: Callable[[Any], Any] | None) -> Any:
    """Return what a sum over messages begins with: a vector of zeros where there are none to say how long it is."""
    zero = getattr(messages, "zero", None)
    if zero is None or messages:
        return 0
    zero = zero if element is None else element(zero)
    return zero.each(lambda number: number * 0) if isinstance(zero, Vector) else 0
