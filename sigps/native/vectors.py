"""What reads the numbers of one vector: items, sums, extrema, `any` and `all`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from sigps.native.operators import Operators, UnfitError, Value
from sigps.native.types import BOOL, INT, Number, Vector

__all__ = ["dot", "every", "extremum", "item", "place_of_extremum", "some", "total", "without_nan"]

UNROLLED = 32
"""Vectors up to this length are read without a loop: a GPU then keeps them in registers."""


def item(ops: Operators, vector: Value, at: int) -> Value:
    """Return a number of a vector, at a constant position."""
    assert isinstance(vector.kind, Vector)
    e = ops.emitter
    return Value(vector.kind.element, e.item(vector.handle, vector.kind, e.constant(INT, at)))


def _folded(
    ops: Operators, vector: Value, first: Value, begin: int, step: Callable[[Value, Value, Any], Value]
) -> Value:
    """Return what comes of `first` when `step` took each number from a position on, in order, with its position."""
    kind, e = vector.kind, ops.emitter
    assert isinstance(kind, Vector)
    if kind.length <= UNROLLED:
        for at in range(begin, kind.length):
            first = step(first, item(ops, vector, at), e.constant(INT, at))
        return first
    result_kind = step(first, item(ops, vector, 0), e.constant(INT, 0)).kind
    assert isinstance(result_kind, Number)
    held, counter, result = e.variable(kind), e.variable(INT), e.variable(result_kind)
    e.write(held, vector.handle)
    e.write(counter, e.constant(INT, begin))
    e.write(result, ops.to(first, result_kind).handle)

    def body() -> None:
        at = e.read(counter)
        e.if_(e.compare(">=", INT, at, e.constant(INT, kind.length)), e.break_, lambda: None)
        e.write(counter, e.binary("+", INT, at, e.constant(INT, 1)))
        found = step(Value(result_kind, e.read(result)), Value(kind.element, e.read_item(held, kind, at)), at)
        e.write(result, ops.to(found, result_kind).handle)

    e.loop(body)
    return Value(result_kind, e.read(result))


def total(ops: Operators, vector: Value) -> Value:
    """Return sum(v): from the first number to the last."""
    return _folded(ops, vector, ops.constant(0), 0, lambda so_far, x, _: ops.binary(ast.Add(), so_far, x))


def dot(ops: Operators, one: Value, other: Value) -> Value:
    """Return v @ w: the sum of the products, from the first to the last."""
    if not isinstance(one.kind, Vector) or not isinstance(other.kind, Vector):
        raise UnfitError("@ takes two vectors")
    return total(ops, ops.binary(ast.Mult(), one, other))


def without_nan(ops: Operators, value: Value, name: str) -> Value:
    """Return a number, or a vector of these, in which NaN loses against every number in min() or max()."""
    kind = value.kind.element if isinstance(value.kind, Vector) else value.kind
    if not isinstance(kind, Number) or not kind.is_float:
        return value
    lost = ops.constant(math.inf if name == "min" else -math.inf)
    return ops.select(ops.compare(ast.NotEq(), value, value), lost, value)


def extremum(ops: Operators, vector: Value, name: str) -> Value:
    """Return min(v) or max(v); a NaN loses, as among messages."""
    vector = without_nan(ops, vector, name)

    def step(so_far: Value, x: Value, _: Any) -> Value:
        return ops.extreme(name, [so_far, x])

    return _folded(ops, vector, item(ops, vector, 0), 1, step)


def place_of_extremum(ops: Operators, vector: Value, name: str) -> Value:
    """Return the first position of the least or greatest number."""
    vector = without_nan(ops, vector, name)
    is_best = ops.compare(ast.Eq(), vector, extremum(ops, vector, name))
    assert isinstance(vector.kind, Vector)
    e, last = ops.emitter, ops.constant(vector.kind.length)

    def step(so_far: Value, x: Value, at: Any) -> Value:
        is_first = e.binary("&", BOOL, x.handle, e.compare("==", INT, so_far.handle, last.handle))
        return Value(INT, e.select(is_first, at, so_far.handle, INT))

    return _folded(ops, is_best, Value(INT, last.handle), 0, step)


def some(ops: Operators, vector: Value) -> Value:
    """Return any(v)."""
    assert isinstance(vector.kind, Vector)
    truths = ops.declared(vector, Vector(BOOL, vector.kind.length))
    assert isinstance(truths.kind, Vector)
    return Value(BOOL, ops.emitter.some(truths.handle, truths.kind))


def every(ops: Operators, vector: Value) -> Value:
    """Return all(v)."""
    assert isinstance(vector.kind, Vector)
    truths = ops.declared(vector, Vector(BOOL, vector.kind.length))
    false = ops.compare(ast.Eq(), truths, ops.constant(False))
    return Value(BOOL, ops.emitter.invert(some(ops, false).handle))
