"""What Python's operators and functions mean for numbers, in terms of an emitter's operations.

Integers have 64 bits and a sign, whatever was declared; what does not fit is a fault. Where one side is a `np.uint64`,
`+ - * << ~` and the others are modulo 2**64. Floats are IEEE's. Of vectors all is done number by number, and a number
beside a vector stands for a vector of it. The interpreter's form of these rules is
`engine/interpreter/arithmetic.py`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.model.fields import NO_VERTEX
from sigps.native.bounds import Bounds, bounds_of_result, bounds_of_type, fits_int, join_bounds
from sigps.native.emitter import Emitter
from sigps.native.lanes import Lanes
from sigps.native.source import UnfitError
from sigps.native.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    OPTIONAL,
    UINT,
    Number,
    Scalar,
    Tuple,
    Type,
    Vector,
    flat,
    join,
)  # fmt: skip

__all__ = [
    "FUNCTIONS",
    "MOST_SORTED",
    "NO_LITERAL",
    "PROBLEMS",
    "Fault",
    "Operators",
    "UnfitError",
    "Value",
    "join_values",
    "tuple_of",
]

NO_LITERAL: Any = object()

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "==",
    ast.IsNot: "!=",
}  # fmt: skip


class Fault:
    """What compute() did that has no result: the low bits of a fault."""

    (
        OVERFLOW,
        ZERO_DIVISION,
        CONVERSION,
        NEGATIVE_SHIFT,
        NEGATIVE_POWER,
        INTERRUPTED,
        NO_EDGE,
        NO_ITEM,
        NO_VERTEX,
        NO_ENTRY,
        NO_VALUE,
    ) = range(1, 12)


MOST_SORTED = 8
"""How many values sorted() takes in compiled code, which compares each with all before it."""

PROBLEMS = {
    Fault.OVERFLOW: "a whole number does not fit 64 bits, or the type that is declared",
    Fault.ZERO_DIVISION: "a whole number is divided by zero",
    Fault.CONVERSION: "int() of a float that is NaN, infinite or beyond 64 bits",
    Fault.NEGATIVE_SHIFT: "a shift by a negative number",
    Fault.NEGATIVE_POWER: "a whole number to a negative power: use floats",
    Fault.INTERRUPTED: "interrupted",
    Fault.NO_EDGE: "the vertex has no such out-edge: positions are 0 to self.out_degree - 1",
    Fault.NO_ITEM: "the vector has no such position: they are 0 to its length - 1",
    Fault.NO_ENTRY: "the table has no such position: they are 0 to its length - 1, or -length to -1",
    Fault.NO_VALUE: "min() or max() of nothing has no value: give it a default=",
    Fault.NO_VERTEX: "None is used as a number, or as the id of a vertex: ask 'is None' before",
}
"""What a ComputeError says."""


@dataclass(frozen=True)
class Value:
    """A value while code is emitted.

    Attributes:
        kind: Its type.
        handle: The emitter's, of a number or array.
        items: The parts of a tuple.
        literal: The number as written, where it is a constant.
        bounds: Between what whole numbers it is known to lie, closer than its type says.
    """

    kind: Type
    handle: Any = None
    items: tuple[Value, ...] = ()
    literal: Any = NO_LITERAL
    bounds: Bounds = None

    @property
    def range(self) -> Bounds:
        """Between what whole numbers it lies; None for floats, and for what is no number."""
        if isinstance(self.literal, int):
            return int(self.literal), int(self.literal)
        return self.bounds or bounds_of_type(self.kind)

    def handles(self) -> list[Any]:
        """Return the handles of its numbers and arrays, in the order of `flat`."""
        return (
            [h for item in self.items for h in item.handles()]
            if self.items
            else ([] if not list(flat(self.kind)) else [self.handle])
        )


class Operators:
    """Emits operations.

    Args:
        emitter: Emits them.
        fault: Called with a kind of fault and a bool: whether it happens. None where arithmetic is the machine's: what
            does not fit wraps around.
        real: The type of floats while computing.
        wraps: Whether whole numbers wrap around where they leave 64 bits.
    """

    def __init__(
        self,
        emitter: Emitter,
        fault: Callable[[int, Any], None] | None,
        real: Number = FLOAT,
        *,
        wraps: bool = False,
    ) -> None:
        self.emitter, self.real = emitter, real
        self._given_fault, self._wraps = fault, wraps
        self._is_checked = fault is not None and not wraps
        self._fault = fault or _no_fault

    def constant(self, value: Any) -> Value:
        """Return a Python number, or a tuple of these."""
        if isinstance(value, tuple):
            items = tuple(self.constant(v) for v in value)
            return Value(Tuple(tuple(i.kind for i in items)), items=items)
        if isinstance(value, (bool, np.bool_)):
            return Value(BOOL, self.emitter.constant(BOOL, bool(value)), literal=bool(value))
        if isinstance(value, np.generic):
            kind = Number.of(value.dtype)
            return Value(kind, self.emitter.constant(kind, value.item()))
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise UnfitError(
                    f"{value} has more than 64 bits: write np.uint64({value}), whose arithmetic wraps around"
                )
            return Value(INT, self.emitter.constant(INT, value), literal=value)
        if isinstance(value, float):
            return Value(self.real, self.emitter.constant(self.real, value), literal=value)
        raise UnfitError(f"{value!r} is a {type(value).__name__}: compute with numbers")

    def each(self, compute: Callable[..., Value], *values: Value) -> Value | None:
        """Return what `compute` makes of numbers, for each number of some vectors; None where none is a vector.

        It is called once, with operators of vectors and the values as numbers.
        """
        lengths = {value.kind.length for value in values if isinstance(value.kind, Vector)}
        if not lengths:
            return None
        if len(lengths) > 1:
            raise UnfitError(f"these vectors have different lengths: {', '.join(map(str, sorted(lengths)))}")
        (length,) = lengths
        e, given = self.emitter, self._given_fault

        def fault(kind: int, happens: Any) -> None:
            assert given is not None
            given(kind, e.some(happens, Vector(BOOL, length)))

        lanes: Any = Lanes(e, length)
        ops = Operators(lanes, fault if given is not None else None, self.real, wraps=self._wraps)
        return _widened(compute(ops, *(self._as_lanes(value, length) for value in values)), length)

    def _as_lanes(self, value: Value, length: int) -> Value:
        if isinstance(value.kind, Vector):
            return Value(value.kind.element, value.handle)
        kind = self.number(value, "what is computed with a vector")
        return Value(kind, self.emitter.splat(value.handle, Vector(kind, length)), literal=value.literal)

    def number(self, value: Value, doing: str) -> Number:
        if value.kind == NONE:
            guesses = getattr(self.emitter, "guesses", None)
            if guesses is not None:
                guesses.append(True)
                return INT
            raise UnfitError(
                f"{doing} takes numbers, and this is None: what may be no vertex is declared as VertexId | None"
            )
        if not isinstance(value.kind, Number):
            raise UnfitError(f"{doing} takes numbers, and this is {_article(value.kind)}")
        if value.kind == OPTIONAL:
            self._fault(Fault.NO_VERTEX, self.is_none(value).handle)
            return INT
        return value.kind

    # None, of vertex ids.

    def is_none(self, value: Value) -> Value:
        """Return `x is None`: of a number that lost its type on the way through memory, too."""
        if value.kind not in (INT, OPTIONAL) or value.literal is not NO_LITERAL:
            return self.constant(value.kind == NONE)
        e = self.emitter
        return Value(BOOL, e.compare("==", INT, value.handle, e.constant(INT, NO_VERTEX)))

    def as_id(self, value: Value) -> Value:
        """Return what is stored or sent as `VertexId | None`."""
        if value.kind == NONE:
            return self.to(value, OPTIONAL)
        return self.to(value if value.kind == OPTIONAL else self.declared(value, INT), OPTIONAL)

    def known(self, value: Value) -> Value:
        """Return a value that must not be None."""
        return Value(self.number(value, "this"), value.handle) if value.kind == OPTIONAL else value

    # Conversions.

    def to(self, value: Value, kind: Type) -> Value:
        """Convert to a type that `join` returned for this value's."""
        if value.kind == kind:
            return value
        if isinstance(kind, Tuple):
            items = tuple(self.to(v, k) for v, k in zip(value.items, kind.items, strict=True))
            return Value(kind, items=items)
        if isinstance(kind, Vector) and isinstance(value.kind, Number):
            return Value(kind, self.emitter.splat(self.to(value, kind.element).handle, kind))
        if value.kind == NONE:
            return Value(OPTIONAL, self.emitter.constant(INT, NO_VERTEX))
        assert isinstance(kind, (Number, Vector))
        assert isinstance(value.kind, (Number, Vector))
        if OPTIONAL in (value.kind, kind):
            given, to = (INT if k == OPTIONAL else k for k in (value.kind, kind))
            return Value(kind, self.emitter.cast(value.handle, given, to))
        bounds = value.range if kind == INT else None
        return Value(kind, self.emitter.cast(value.handle, value.kind, kind), bounds=bounds)

    def declared(self, value: Value, kind: Scalar) -> Value:
        """Convert to a declared type, as what is stored and sent is: it must fit."""
        if isinstance(kind, Vector):
            return self._declared_vector(value, kind)
        given = self.number(value, "what is stored or sent")
        if kind.kind == "b" or given == kind:
            return self.truth(value) if kind.kind == "b" else self.known(value)
        if given.is_float and not kind.is_float:
            raise UnfitError(f"a float becomes {_article(kind)} here: write int(...) to drop its fraction")
        if not kind.is_float:
            self._check_fits(value, given, kind)
        return Value(kind, self.emitter.cast(value.handle, given, kind))

    def _declared_vector(self, value: Value, kind: Vector) -> Value:
        """Convert a vector, as many numbers in a tuple, or one number for all."""
        element = kind.element
        if isinstance(value.kind, Tuple):
            if len(value.items) != kind.length:
                raise UnfitError(f"{kind} is given {len(value.items)} numbers")
            items = [self.declared(v, element).handle for v in value.items]
            return Value(kind, self.emitter.pack(items, kind))
        if isinstance(value.kind, Vector):
            if value.kind.length != kind.length:
                raise UnfitError(f"{kind} is given a vector of {value.kind.length}")
            converted = self.each(lambda ops, v: ops.declared(v, element), value)
            assert converted is not None
            return converted
        return Value(kind, self.emitter.splat(self.declared(value, element).handle, kind))

    def _check_fits(self, value: Value, given: Number, kind: Number) -> None:
        if not self._is_checked:
            return
        e, (low, high) = self.emitter, _bounds(kind)
        known = value.range
        if known is not None and low <= known[0] and known[1] <= high:
            return
        if UINT in (given, kind):  # one of them does not fit the other's sign
            limit = e.constant(given, high if given == UINT else 0)
            self._fault(Fault.OVERFLOW, e.compare(">" if given == UINT else "<", given, value.handle, limit))
            return
        wide = e.cast(value.handle, given, INT)
        back = e.cast(e.cast(value.handle, given, kind), kind, INT)
        self._fault(Fault.OVERFLOW, e.compare("!=", INT, wide, back))

    def truth(self, value: Value) -> Value:
        if isinstance(value.kind, Vector):
            raise UnfitError("a vector is neither true nor false: write any(...) or all(...) of it")
        if value.kind == NONE:
            return self.constant(False)
        if value.kind == OPTIONAL:
            e, is_some = self.emitter, self.emitter.invert(self.is_none(value).handle)
            return Value(BOOL, e.binary("&", BOOL, is_some, e.cast(value.handle, INT, BOOL)))
        kind = self.number(value, "a condition")
        if kind.kind == "b":
            return value
        if value.literal is not NO_LITERAL:
            return self.constant(bool(value.literal))
        return Value(BOOL, self.emitter.cast(value.handle, kind, BOOL))

    def to_int(self, value: Value) -> Value:
        """Return int(x)."""
        e, kind = self.emitter, self.number(value, "int()")
        if kind.is_float:
            low = e.compare(">=", kind, value.handle, e.constant(kind, -(2.0**63)))
            high = e.compare("<", kind, value.handle, e.constant(kind, 2.0**63))
            self._fault(Fault.CONVERSION, e.invert(e.binary("&", BOOL, low, high)))
        elif kind == UINT:
            self._fault(Fault.OVERFLOW, e.compare(">", kind, value.handle, e.constant(kind, 2**63 - 1)))
        return Value(INT, e.cast(value.handle, kind, INT), literal=_int(value.literal))

    def to_float(self, value: Value) -> Value:
        kind = self.number(value, "float()")
        return Value(self.real, self.emitter.cast(value.handle, kind, self.real))

    def _both(self, a: Value, b: Value, doing: str) -> tuple[Number, Any, Any]:
        """Return the type in which two numbers are computed with, and both as such."""
        one, other = self.number(a, doing), self.number(b, doing)
        kind = INT
        if one.is_float or other.is_float:
            kind = self.real
        elif UINT in (one, other):
            kind = UINT
        return kind, self.emitter.cast(a.handle, one, kind), self.emitter.cast(b.handle, other, kind)

    # Operators.

    def binary(self, operator: ast.operator, a: Value, b: Value) -> Value:
        """Return `a <operator> b`."""
        op = _BINARY.get(type(operator))
        if op is None:
            raise UnfitError("this operator is not one of numbers")
        found = self.each(lambda ops, x, y: ops.binary(operator, x, y), a, b)
        if found is not None:
            return found
        kind, x, y = self._both(a, b, f"the operator {op}")
        if op == "/":
            x, y = (self.to_float(v).handle for v in (a, b))
            return Value(self.real, self.emitter.binary("/", self.real, x, y))
        if op == "**":
            return self._power(b, kind, x, y)
        if kind.is_float:
            if op in ("//", "%"):
                return Value(kind, self._floor_float(op, kind, x, y))
            if op not in ("+", "-", "*"):
                raise UnfitError(f"the operator {op} is one of whole numbers, and this is a float")
            return Value(kind, self.emitter.binary(op, kind, x, y))
        if op in ("&", "|", "^") and a.kind == b.kind == BOOL:
            return Value(BOOL, self.emitter.binary(op, BOOL, a.handle, b.handle))
        bounds = bounds_of_result(op, a.range, b.range) if kind == INT else None
        bounds = bounds if fits_int(bounds) else None
        if op in ("&", "|", "^"):
            return Value(kind, self.emitter.binary(op, kind, x, y), bounds=bounds)
        if op in ("<<", ">>"):
            return Value(kind, self._shift(op, kind, x, y, b), bounds=bounds)
        if op in ("//", "%"):
            return Value(kind, self._floor_int(op, kind, x, y, b))
        if bounds is not None:
            return Value(kind, self.emitter.binary(op, kind, x, y), bounds=bounds)
        return Value(kind, self._checked(op, kind, x, y))

    def _checked(self, op: str, kind: Number, x: Any, y: Any) -> Any:
        if kind == UINT or not self._is_checked:
            return self.emitter.binary(op, kind, x, y)
        result, overflows = self.emitter.overflows(op, kind, x, y)
        self._fault(Fault.OVERFLOW, overflows)
        return result

    def _floor_int(self, op: str, kind: Number, x: Any, y: Any, b: Value) -> Any:
        e, zero, one = self.emitter, self.emitter.constant(kind, 0), self.emitter.constant(kind, 1)
        if b.literal is NO_LITERAL or not b.literal:
            is_zero = e.compare("==", kind, y, zero)
            self._fault(Fault.ZERO_DIVISION, is_zero)
            y = e.select(is_zero, one, y, kind)
        if kind == UINT:
            return e.binary("/" if op == "//" else "%", kind, x, y)
        if b.literal is NO_LITERAL or b.literal == -1:
            minus = e.compare("==", kind, y, e.constant(kind, -1))
            if op == "//":
                least = e.compare("==", kind, x, e.constant(kind, -(2**63)))
                self._fault(Fault.OVERFLOW, e.binary("&", BOOL, minus, least))
            opposite = e.binary("-", kind, zero, x)
            y = e.select(minus, one, y, kind)
            x = e.select(minus, opposite, x, kind)
        quotient, rest = e.binary("/", kind, x, y), e.binary("%", kind, x, y)
        is_left = e.compare("!=", kind, rest, zero)
        differs = e.compare("<", kind, e.binary("^", kind, rest, y), zero)
        below = e.binary("&", BOOL, is_left, differs)
        if op == "//":
            return e.binary("-", kind, quotient, e.cast(below, BOOL, kind))
        return e.select(below, e.binary("+", kind, rest, y), rest, kind)

    def _floor_float(self, op: str, kind: Number, x: Any, y: Any) -> Any:
        """As Python computes them; by zero, IEEE's quotient and NaN."""
        e, zero = self.emitter, self.emitter.constant(kind, 0.0)
        rest = e.math("fmod", kind, [x, y])
        differs = e.compare("!=", BOOL, e.compare("<", kind, y, zero), e.compare("<", kind, rest, zero))
        is_left = e.compare("!=", kind, rest, zero)
        moved = e.select(differs, e.binary("+", kind, rest, y), rest, kind)
        modulo = e.select(is_left, moved, e.math("copysign", kind, [zero, y]), kind)
        if op == "%":
            return modulo
        exact = e.binary("/", kind, e.binary("-", kind, x, rest), y)
        is_moved = e.binary("&", BOOL, differs, is_left)
        exact = e.select(is_moved, e.binary("-", kind, exact, e.constant(kind, 1.0)), exact, kind)
        whole = e.math("floor", kind, [exact])
        above = e.compare(">", kind, e.binary("-", kind, exact, whole), e.constant(kind, 0.5))
        whole = e.select(above, e.binary("+", kind, whole, e.constant(kind, 1.0)), whole, kind)
        quotient = e.binary("/", kind, x, y)
        whole = e.select(
            e.compare("!=", kind, exact, zero), whole, e.math("copysign", kind, [zero, quotient]), kind
        )
        return e.select(e.compare("==", kind, y, zero), quotient, whole, kind)

    def _shift(self, op: str, kind: Number, x: Any, y: Any, b: Value) -> Any:
        e, zero = self.emitter, self.emitter.constant(kind, 0)
        given = self.number(b, "a shift")
        if given.kind == "i" and (b.literal is NO_LITERAL or b.literal < 0):
            self._fault(Fault.NEGATIVE_SHIFT, e.compare("<", given, b.handle, e.constant(given, 0)))
        if b.literal is not NO_LITERAL and 0 <= b.literal < 64 and (op == ">>" or kind == UINT):
            return e.binary(op, kind, x, y)
        most = e.constant(kind, 63)
        is_far = e.compare(">", UINT, e.cast(y, kind, UINT), e.constant(UINT, 63))
        by = e.select(is_far, most, y, kind)
        if op == ">>":
            shifted = e.binary(">>", kind, x, by)
            return e.select(is_far, zero, shifted, kind) if kind == UINT else shifted
        shifted = e.select(is_far, zero, e.binary("<<", kind, x, by), kind)
        if kind == INT and self._is_checked:
            back = e.binary(">>", kind, shifted, by)
            is_lost = e.compare("!=", kind, back, x)
            self._fault(Fault.OVERFLOW, is_lost)
        return shifted

    def _power(self, b: Value, kind: Number, x: Any, y: Any) -> Value:
        e = self.emitter
        if kind.is_float:
            return Value(kind, e.math("pow", kind, [x, y]))
        if b.literal is NO_LITERAL or b.literal < 0:
            if b.kind != UINT:
                self._fault(
                    Fault.NEGATIVE_POWER, e.compare("<", INT, self.to(b, INT).handle, e.constant(INT, 0))
                )
            return Value(kind, self._power_loop(kind, x, y))
        result = e.constant(kind, 1)
        for digit in bin(int(b.literal))[2:]:
            result = self._checked("*", kind, result, result)
            if digit == "1":
                result = self._checked("*", kind, result, x)
        return Value(kind, result)

    def _power_loop(self, kind: Number, x: Any, y: Any) -> Any:
        """Multiply, so that an overflow is one of the result: a base of more than 1 overflows within 64 rounds."""
        e, one = self.emitter, self.emitter.constant(kind, 1)
        result, left = e.variable(kind), e.variable(kind)
        e.write(result, one)
        e.write(left, y)

        def small() -> None:  # of -1, 0 and 1 only whether the power is odd matters
            odd = e.binary("&", kind, y, one)
            is_some = e.compare(">", kind, y, e.constant(kind, 0))
            more = e.select(is_some, e.binary("+", kind, one, e.binary("^", kind, odd, one)), y, kind)
            e.write(left, more)

        def round_() -> None:
            done = e.compare("<=", kind, e.read(left), e.constant(kind, 0))
            e.if_(done, e.break_, lambda: None)
            e.write(result, self._checked("*", kind, e.read(result), x))
            e.write(left, e.binary("-", kind, e.read(left), one))
            if kind == UINT:
                return
            is_over = e.compare(">", kind, e.read(left), e.constant(kind, 64))
            e.if_(is_over, lambda: e.write(left, e.constant(kind, 64)), lambda: None)

        square = e.binary("*", kind, x, x)
        is_small = e.compare("==", kind, e.binary("*", kind, square, x), x)
        if kind == INT:
            in_range = e.binary(
                "&", BOOL, e.compare(">=", kind, x, e.constant(kind, -1)), e.compare("<=", kind, x, one)
            )
            is_small = e.binary("&", BOOL, is_small, in_range)
            e.if_(is_small, small, lambda: None)
        e.loop(round_)
        return e.read(result)

    def unary(self, operator: ast.unaryop, a: Value) -> Value:
        """Return `<operator> a`."""
        e = self.emitter
        found = None if isinstance(operator, ast.Not) else self.each(lambda ops, x: ops.unary(operator, x), a)
        if found is not None:
            return found
        if isinstance(operator, ast.Not):
            return Value(BOOL, e.invert(self.truth(a).handle))
        kind, a = self.number(a, "a sign"), self.known(a)
        if isinstance(operator, ast.UAdd):
            return self.to(a, INT) if kind == BOOL else a
        if isinstance(operator, ast.USub):
            if a.literal is not NO_LITERAL:
                return self.constant(-a.literal)
            if kind.is_float:
                real = self.to_float(a).handle
                return Value(self.real, e.math("neg", self.real, [real]))
            if kind == UINT:
                self._fault(Fault.OVERFLOW, e.compare(">", UINT, a.handle, e.constant(UINT, 2**63)))
                a = Value(INT, e.cast(a.handle, UINT, INT))
                return Value(INT, e.binary("-", INT, e.constant(INT, 0), a.handle))
            return Value(INT, self._checked("-", INT, e.constant(INT, 0), self.to(a, INT).handle))
        if kind.is_float:
            raise UnfitError("the operator ~ is one of whole numbers, and this is a float")
        kind = UINT if kind == UINT else INT
        return Value(
            kind,
            e.binary("^", kind, self.to(a, kind).handle, e.constant(kind, -1 if kind == INT else 2**64 - 1)),
        )

    def compare(self, operator: ast.cmpop, a: Value, b: Value) -> Value:
        """Return `a <operator> b`, exact for whole numbers; tuples compare item by item."""
        op = _COMPARE.get(type(operator))
        if op is None:
            raise UnfitError("this comparison is not one of numbers")
        if isinstance(a.kind, Tuple) and isinstance(b.kind, Tuple):
            return self._compare_tuples(op, a, b)
        found = self.each(lambda ops, x, y: ops.compare(operator, x, y), a, b)
        if found is not None:
            return found
        if op in ("==", "!=") and NONE in (a.kind, b.kind):
            found = self.is_none(a if b.kind == NONE else b)
            return found if op == "==" else self.unary(ast.Not(), found)
        if op in ("==", "!="):
            a, b = (Value(INT, v.handle) if v.kind == OPTIONAL else v for v in (a, b))
        one, other = self.number(a, "a comparison"), self.number(b, "a comparison")
        e = self.emitter
        if UINT in (one, other) and not one.is_float and not other.is_float and "i" in (one.kind, other.kind):
            return self._compare_signs(op, a, b)
        kind, x, y = self._both(a, b, "a comparison")
        if a.kind == b.kind and not one.is_float:
            kind, x, y = one, a.handle, b.handle
        return Value(BOOL, e.compare(op, kind, x, y))

    def _compare_signs(self, op: str, a: Value, b: Value) -> Value:
        """Compare a signed and an unsigned number: what is negative is less than all that have no sign."""
        e, first = self.emitter, a.kind != UINT
        signed, unsigned = (a, b) if first else (b, a)
        wide = self.to(signed, INT).handle
        as_unsigned = e.cast(wide, INT, UINT)
        x, y = (as_unsigned, unsigned.handle) if first else (unsigned.handle, as_unsigned)
        is_negative = e.compare("<", INT, wide, e.constant(INT, 0))
        when_negative = op == "!=" or (op in ("<", "<=") if first else op in (">", ">="))
        answer = e.constant(BOOL, when_negative)
        return Value(BOOL, e.select(is_negative, answer, e.compare(op, UINT, x, y), BOOL))

    def _compare_tuples(self, op: str, a: Value, b: Value) -> Value:
        if len(a.items) != len(b.items):
            raise UnfitError("these tuples have different lengths")
        e, equal = self.emitter, e_true(self.emitter)
        strict = {"<": ast.Lt(), "<=": ast.Lt(), ">": ast.Gt(), ">=": ast.Gt()}.get(op)
        answer = e.constant(BOOL, False)
        for one, other in zip(a.items, b.items, strict=True):
            if strict is not None:
                less = self.compare(strict, one, other).handle
                answer = e.binary("|", BOOL, answer, e.binary("&", BOOL, equal, less))
            equal = e.binary("&", BOOL, equal, self.compare(ast.Eq(), one, other).handle)
        if op == "!=":
            return Value(BOOL, e.invert(equal))
        if op == "==":
            return Value(BOOL, equal)
        return Value(BOOL, e.binary("|", BOOL, answer, equal) if op in ("<=", ">=") else answer)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Return a or b, both of which are there; of a vector of conditions, each number of the one or the other."""
        if isinstance(condition.kind, Vector):
            found = self.each(lambda ops, c, x, y: ops.select(c, x, y), condition, a, b)
            assert found is not None
            return found
        kind = join_values(a, b)
        a, b = self.to(a, kind), self.to(b, kind)
        if isinstance(kind, Tuple):
            items = tuple(self.select(condition, x, y) for x, y in zip(a.items, b.items, strict=True))
            return Value(kind, items=items)
        assert isinstance(kind, (Number, Vector))
        selected = self.emitter.select(condition.handle, a.handle, b.handle, kind)
        return Value(kind, selected, bounds=join_bounds(a.range, b.range) if kind == INT else None)

    # Functions.

    def math(self, name: str, values: Sequence[Value]) -> Value:
        """Call a function of floats."""
        return Value(self.real, self.emitter.math(name, self.real, [self.to_float(v).handle for v in values]))

    def extreme(self, name: str, values: Sequence[Value]) -> Value:
        """Return min() or max() of some numbers or tuples: of equal ones the first, as Python does."""
        best = values[0]
        operator: ast.cmpop = ast.Lt() if name == "min" else ast.Gt()
        for value in values[1:]:
            best = self.select(self.compare(operator, value, best), value, best)
        return best

    def sorted(self, values: Sequence[Value]) -> list[Value]:
        """Return a few values in ascending order, equal ones in theirs."""
        if len(values) > MOST_SORTED:
            raise UnfitError(
                f"sorted() takes a tuple of at most {MOST_SORTED} values, and this has {len(values)}"
            )
        found = list(values)
        for last in range(1, len(found)):
            for i in range(last, 0, -1):
                a, b = found[i - 1], found[i]
                is_less = self.compare(ast.Lt(), b, a)
                found[i - 1], found[i] = self.select(is_less, b, a), self.select(is_less, a, b)
        return found

    def absolute(self, value: Value) -> Value:
        kind = self.number(value, "abs()")
        if kind.is_float:
            return self.math("fabs", [value])
        if kind.kind in "bu":
            return self.to(value, UINT if kind == UINT else INT)
        wide = self.to(value, INT)
        is_negative = self.compare(ast.Lt(), wide, self.constant(0))
        e = self.emitter
        opposite, overflows = e.overflows("-", INT, e.constant(INT, 0), wide.handle)
        self._fault(Fault.OVERFLOW, e.binary("&", BOOL, is_negative.handle, overflows))
        return Value(INT, e.select(is_negative.handle, opposite, wide.handle, INT))


def _widened(value: Value, length: int) -> Value:
    """Return what was computed as numbers as vectors."""
    if isinstance(value.kind, Tuple):
        return tuple_of([_widened(v, length) for v in value.items])
    assert isinstance(value.kind, Number)
    return Value(Vector(value.kind, length), value.handle)


def tuple_of(items: Sequence[Value]) -> Value:
    """Return a tuple of some values."""
    return Value(Tuple(tuple(v.kind for v in items)), items=tuple(items))


def join_values(a: Value, b: Value) -> Type:
    """Return the type of what is one of two values. A constant that is not negative may be a np.uint64, too."""
    kinds = [a.kind, b.kind]
    for i, value in enumerate((a, b)):
        if (
            kinds[1 - i] == UINT
            and value.kind == INT
            and value.literal is not NO_LITERAL
            and value.literal >= 0
        ):
            return UINT
    kind = join(*kinds)
    if kind is None:
        raise UnfitError(f"this is {_article(a.kind)} or {_article(b.kind)}: a value has one type")
    return kind


def _no_fault(kind: int, happens: Any) -> None:
    """Do nothing about a fault."""


def e_true(emitter: Emitter) -> Any:
    return emitter.constant(BOOL, True)


def _bounds(kind: Number) -> tuple[int, int]:
    if kind.kind == "b":
        return 0, 1
    info = np.iinfo(kind.dtype)
    return int(info.min), int(info.max)


def _int(literal: Any) -> Any:
    is_whole = literal is not NO_LITERAL and (not isinstance(literal, float) or math.isfinite(literal))
    return int(literal) if is_whole else NO_LITERAL


def _article(kind: Type) -> str:
    text = str(kind)
    return text if text == "None" else f"{'an' if text[0] in 'aeio' else 'a'} {text}"


_FLOATS = [
    "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "exp2",
]  # fmt: skip
_PAIRS = {"atan2": "atan2", "hypot": "hypot", "fmod": "fmod", "pow": "pow"}

Function = Callable[[Operators, Sequence[Value]], Value]


def _of_math(name: str) -> Function:
    return lambda ops, values: ops.math(name, values)


def _copysign(ops: Operators, values: Sequence[Value]) -> Value:
    """math.copysign, to which every NaN is positive: its sign depends on how, and where, it was computed."""
    number, of = values
    each = ops.each(lambda one, x, y: _copysign(one, [x, y]), number, of)
    if each is not None:
        return each
    e, sign = ops.emitter, ops.to_float(of).handle
    is_nan = e.compare("!=", ops.real, sign, sign)
    sign = e.select(is_nan, e.constant(ops.real, 0.0), sign, ops.real)
    return Value(ops.real, e.math("copysign", ops.real, [ops.to_float(number).handle, sign]))


def _is(name: str) -> Function:
    def test(ops: Operators, values: Sequence[Value]) -> Value:
        e = ops.emitter
        x = ops.to_float(values[0]).handle
        is_nan = e.compare("!=", ops.real, x, x)
        is_infinite = e.compare("==", ops.real, e.math("fabs", ops.real, [x]), e.constant(ops.real, math.inf))
        either = e.binary("|", BOOL, is_nan, is_infinite)
        return Value(
            BOOL,
            {"isnan": is_nan, "isinf": is_infinite}.get(name) if name != "isfinite" else e.invert(either),
        )

    return test


def _rounded(name: str) -> Function:
    """math.floor and the like, which return an int."""
    return lambda ops, values: ops.to_int(
        ops.math(name, values) if ops.number(values[0], name).is_float else values[0]
    )


def _gcd(ops: Operators, values: Sequence[Value]) -> Value:
    e = ops.emitter
    if any(ops.number(value, "gcd()").is_float for value in values):
        raise UnfitError("gcd() takes whole numbers, and this is a float")
    one, other = e.variable(INT), e.variable(INT)
    e.write(one, ops.absolute(ops.to(values[0], INT)).handle)
    e.write(other, ops.absolute(ops.to(values[1], INT)).handle)

    def round_() -> None:
        divisor = e.read(other)
        e.if_(e.compare("==", INT, divisor, e.constant(INT, 0)), e.break_, lambda: None)
        rest = e.binary("%", INT, e.read(one), divisor)
        e.write(one, divisor)
        e.write(other, rest)

    e.loop(round_)
    return Value(INT, e.read(one))


def _sign(ops: Operators, values: Sequence[Value]) -> Value:
    x = values[0]
    zero, one = ops.constant(0), ops.constant(1)
    kind = ops.number(x, "sign")
    above, below = ops.compare(ast.Gt(), x, zero), ops.compare(ast.Lt(), x, zero)
    answer = ops.select(above, one, ops.select(below, ops.constant(-1), zero))
    if not kind.is_float:
        return answer
    real = ops.to_float(x)
    is_nan = ops.compare(ast.NotEq(), real, real)
    return ops.select(is_nan, real, ops.to_float(answer))


def _numpy_extreme(name: str) -> Function:
    """np.minimum and np.maximum: NaN wins."""

    def extreme(ops: Operators, values: Sequence[Value]) -> Value:
        a, b = values
        best = ops.extreme(name, [a, b])
        if not isinstance(best.kind, Number) or not best.kind.is_float:
            return best
        a, b = ops.to(a, best.kind), ops.to(b, best.kind)
        best = ops.select(ops.compare(ast.NotEq(), b, b), b, best)
        return ops.select(ops.compare(ast.NotEq(), a, a), a, best)

    return extreme


FUNCTIONS: dict[Any, tuple[int, Function]] = {}
"""How many arguments functions of Python, math and NumPy take, and what they emit."""


def _fill() -> None:
    FUNCTIONS[abs] = FUNCTIONS[np.abs] = FUNCTIONS[np.absolute] = (1, lambda ops, v: ops.absolute(v[0]))
    FUNCTIONS[int] = (1, lambda ops, v: ops.to_int(v[0]))
    FUNCTIONS[float] = (1, lambda ops, v: ops.to_float(v[0]))
    FUNCTIONS[bool] = (1, lambda ops, v: ops.truth(v[0]))
    FUNCTIONS[round] = (1, _rounded("rint"))
    FUNCTIONS[pow] = (2, lambda ops, v: ops.binary(ast.Pow(), *v))
    FUNCTIONS[divmod] = (
        2,
        lambda ops, v: tuple_of([ops.binary(ast.FloorDiv(), *v), ops.binary(ast.Mod(), *v)]),
    )
    for name in _FLOATS:
        for module, other in (
            (math, name),
            (np, {"a": "arc"}.get(name[0], "") + name[1:] if name[0] == "a" else name),
        ):
            if hasattr(module, other):
                FUNCTIONS[getattr(module, other)] = (1, _of_math(name))
    for name, made in _PAIRS.items():
        FUNCTIONS[getattr(math, name)] = (2, _of_math(made))
    numpy = {
        "arctan2": "atan2",
        "hypot": "hypot",
        "fmod": "fmod",
        "float_power": "pow",
    }
    for name, made in numpy.items():
        FUNCTIONS[getattr(np, name)] = (2, _of_math(made))
    FUNCTIONS[math.copysign] = FUNCTIONS[np.copysign] = (2, _copysign)
    FUNCTIONS[math.fabs] = FUNCTIONS[np.fabs] = (1, _of_math("fabs"))
    FUNCTIONS[math.lgamma] = (1, _of_math("lgamma"))
    FUNCTIONS[math.gamma] = (1, _of_math("tgamma"))
    for name in ("isnan", "isinf", "isfinite"):
        FUNCTIONS[getattr(math, name)] = FUNCTIONS[getattr(np, name)] = (1, _is(name))
    for name in ("floor", "ceil", "trunc"):
        FUNCTIONS[getattr(math, name)] = (1, _rounded(name))
        FUNCTIONS[getattr(np, name)] = (1, _of_math(name))
    FUNCTIONS[np.rint] = (1, _of_math("rint"))
    FUNCTIONS[np.sign] = (1, _sign)
    FUNCTIONS[math.gcd] = FUNCTIONS[np.gcd] = (2, _gcd)
    FUNCTIONS[np.minimum] = (2, _numpy_extreme("min"))
    FUNCTIONS[np.maximum] = (2, _numpy_extreme("max"))
    FUNCTIONS[np.where] = (3, lambda ops, v: ops.select(*v))
    FUNCTIONS[np.square] = (1, lambda ops, v: ops.binary(ast.Mult(), v[0], v[0]))
    for function, operator in {
        np.add: ast.Add(), np.subtract: ast.Sub(), np.multiply: ast.Mult(), np.divide: ast.Div(),
        np.true_divide: ast.Div(), np.floor_divide: ast.FloorDiv(), np.mod: ast.Mod(), np.remainder: ast.Mod(),
        np.power: ast.Pow(), np.bitwise_and: ast.BitAnd(), np.bitwise_or: ast.BitOr(), np.bitwise_xor: ast.BitXor(),
    }.items():  # fmt: skip
        FUNCTIONS[function] = (2, _operator(operator))


def _operator(operator: ast.operator) -> Function:
    return lambda ops, values: ops.binary(operator, *values)


_fill()
