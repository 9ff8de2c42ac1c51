"""What operators and functions of compute() mean, in Python: the rules of docs/program-model.md, "Arithmetic".

Whole numbers have 64 bits and a sign, whatever type NumPy gave them; what has no result raises. Where one side is a
`np.uint64`, the result is modulo 2**64. Floats are IEEE's. Anything else (texts, lists) means what Python says.

Compiled engines have rules of their own (`native/operators.py`), and a test compares the two.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from sigps.engine.interpreter.vectors import by_number, of_vectors, reductions
from sigps.model.vector import NO_ORDER, Vector
from sigps.model.vertex import Edge
from sigps.model.wrapping import wrapping

__all__ = [
    "NO_EDGE",
    "NO_ID",
    "OPERATORS",
    "UNARY",
    "WRAPPING",
    "NoResultError",
    "chained",
    "compared",
    "in_place",
    "standing_for",
]

_LEAST, _MOST, _MASK = -(2**63), 2**63 - 1, 2**64 - 1

_OVERFLOW = "a whole number does not fit 64 bits, or the type that is declared"
_ZERO = "a whole number is divided by zero"
NO_EDGE = "the vertex has no such out-edge: positions are 0 to self.out_degree - 1"
NO_ID = "None is used as a number, or as the id of a vertex: ask 'is None' before"
_CONVERSION = "int() of a float that is NaN, infinite or beyond 64 bits"


class NoResultError(ArithmeticError):
    """Arithmetic has no result."""


def _fits(value: int) -> int:
    if not _LEAST <= value <= _MOST:
        raise NoResultError(_OVERFLOW)
    return value


def _refuse_none(*values: Any) -> None:
    if any(value is None for value in values):
        raise NoResultError(NO_ID)


def _number(value: Any) -> Any:
    """Return a number as bool, int, float or np.uint64; None for anything else."""
    if isinstance(value, (int, float)):  # subclasses too
        return value
    if isinstance(value, np.generic):
        if isinstance(value, np.uint64):
            return value
        if value.dtype.kind in "biuf":
            return value.item()
    return None


# --- whole numbers ----------------------------------------------------------


def _divided(a: int, b: int) -> int:
    if b == 0:
        raise NoResultError(_ZERO)
    return _fits(a // b)


def _rest(a: int, b: int) -> int:
    if b == 0:
        raise NoResultError(_ZERO)
    return a % b


def _power(a: int, b: int) -> int:
    if b < 0:
        raise NoResultError("a whole number to a negative power: use floats")
    if b > 64 and a not in (-1, 0, 1):
        raise NoResultError(_OVERFLOW)
    return _fits(a ** (b if b <= 64 else 64 + b % 2))


def _shift_count(b: int) -> int:
    if b < 0:
        raise NoResultError("a shift by a negative number")
    return min(b, 64)


_WHOLE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: _fits(a + b),
    "-": lambda a, b: _fits(a - b),
    "*": lambda a, b: _fits(a * b),
    "//": _divided,
    "%": _rest,
    "**": _power,
    "<<": lambda a, b: _fits(a << _shift_count(b)),
    ">>": lambda a, b: a >> _shift_count(b),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}

_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    **_WHOLE,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: _divided(a >> 1, b) if b == 0 else a // b,
    "**": lambda a, b: pow(a, b, 2**64),
    "<<": lambda a, b: a << _shift_count(b),
}
"""Of numbers below 2**64; the result is taken modulo 2**64."""


def _unsigned(name: str, a: Any, b: Any) -> np.uint64:
    if name in ("<<", ">>", "**") and not isinstance(b, np.uint64) and b < 0:
        _WHOLE[name](1, int(b))  # raises
    return np.uint64(_UNSIGNED[name](int(a) & _MASK, int(b) & _MASK) & _MASK)


# --- floats -----------------------------------------------------------------


@functools.cache
def _libm() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m"))


@functools.cache
def _of_libm(name: str) -> Callable[..., float]:
    """Return a function of C's math library, which has an answer for every argument."""
    function = getattr(_libm(), name)
    function.restype = ctypes.c_double
    return lambda *values: float(function(*map(ctypes.c_double, values)))


def _quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a != a or a == 0:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _float_power(a: float, b: float) -> float:
    try:
        found = a**b
    except (OverflowError, ZeroDivisionError):
        return _of_libm("pow")(a, b)
    return found if isinstance(found, float) else math.nan  # a root of a negative number is complex


_REAL: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "//": lambda a, b: a // b if b != 0 else _quotient(a, b),
    "%": lambda a, b: a % b if b != 0 else math.nan,
    "**": _float_power,
}


# --- operators --------------------------------------------------------------


def _binary(
    name: str, plain: Callable[[Any, Any], Any], table: dict[str, Callable[[int, int], int]]
) -> Callable[[Any, Any], Any]:
    whole, real = table.get(name), _REAL.get(name)

    def compute(a: Any, b: Any) -> Any:
        if type(a) is float and type(b) is float and real is not None:
            return real(a, b)
        if type(a) is int and type(b) is int and whole is not None:
            return whole(a, b)
        if isinstance(a, Vector) or isinstance(b, Vector):
            return by_number(compute, a, b)
        x, y = _number(a), _number(b)
        if x is None or y is None:
            _refuse_none(a, b)
            return plain(a, b)
        if isinstance(x, float) or isinstance(y, float) or whole is None:
            return plain(a, b) if real is None else real(float(x), float(y))
        if isinstance(x, np.uint64) or isinstance(y, np.uint64):
            return _unsigned(name, x, y)
        if isinstance(x, bool) and isinstance(y, bool) and name in "&|^":
            return plain(x, y)
        return whole(int(x), int(y))

    return compute


_WRAPPING: dict[str, Callable[[int, int], int]] = {
    **_WHOLE,
    "+": lambda a, b: wrapping(a + b),
    "-": lambda a, b: wrapping(a - b),
    "*": lambda a, b: wrapping(a * b),
    "<<": lambda a, b: wrapping(a << _shift_count(b)),
    "**": lambda a, b: wrapping(pow(a, b, 2**64)) if b >= 0 else _power(a, b),
}

_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor,
}  # fmt: skip

OPERATORS = {name: _binary(name, plain, _WHOLE) for name, plain in _PLAIN.items()}

WRAPPING = {name: _binary(name, plain, _WRAPPING) for name, plain in _PLAIN.items()}
"""The same between the parentheses of `wrapping()`."""


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def compared(name: str, a: Any, b: Any) -> Any:
    """Return `a <operator> b`: where a whole number meets a float, both are floats."""
    if isinstance(a, Vector) or isinstance(b, Vector):
        return by_number(functools.partial(compared, name), a, b)
    if name not in ("==", "!="):
        _refuse_none(a, b)
    if type(a) is type(b):
        return _COMPARE[name](a, b)
    x, y = _number(a), _number(b)
    if x is None or y is None:
        return _COMPARE[name](a, b)
    if isinstance(x, float) != isinstance(y, float):
        return _COMPARE[name](float(x), float(y))
    return (
        _COMPARE[name](int(x), int(y))
        if isinstance(x, np.uint64) or isinstance(y, np.uint64)
        else _COMPARE[name](x, y)
    )


def chained(names: Sequence[str], first: Any, *others: Callable[[], Any]) -> Any:
    """Return `first <operator> other <operator> ...`; what comes after a comparison that fails is not computed."""
    for name, other in zip(names, others, strict=True):
        second = other()
        found = compared(name, first, second)
        if not found:
            return found
        first = second
    return found


def in_place(name: str, plain: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Return what `a <operator>= b` leaves in a; what says itself what that is (aggregators, lists) is asked."""
    if hasattr(type(a), plain.__name__.replace("i", "__i", 1) + "__"):
        return plain(a, b)
    return OPERATORS[name](a, b)


def _minus(a: Any) -> Any:
    x = _number(a)
    if x is None:
        _refuse_none(a)
        return -a
    return -x if isinstance(x, float) else _fits(-int(x))


def _plus(a: Any) -> Any:
    x = _number(a)
    return +a if x is None else (int(x) if isinstance(x, bool) else x)


def _inverted(a: Any) -> Any:
    x = _number(a)
    if x is None or isinstance(x, float):
        return ~a
    return np.uint64(~int(x) & _MASK) if isinstance(x, np.uint64) else ~int(x)


def _of_each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda a: by_number(function, a) if isinstance(a, Vector) else function(a)


UNARY = {name: _of_each(function) for name, function in {"-": _minus, "+": _plus, "~": _inverted}.items()}


# --- functions --------------------------------------------------------------


def _int(*values: Any) -> Any:
    if len(values) != 1:
        return int(*values)
    x = _number(values[0])
    if x is None:
        _refuse_none(values[0])
        return int(values[0])
    if isinstance(x, float):
        if not -(2.0**63) <= x < 2.0**63:
            raise NoResultError(_CONVERSION)
        return int(x)
    return _fits(int(x))


def _float(*values: Any) -> Any:
    _refuse_none(*values)
    return float(*values)


def _abs(value: Any) -> Any:
    x = _number(value)
    if x is None or isinstance(x, float):
        return abs(value if x is None else x)
    return x if isinstance(x, np.uint64) else _fits(abs(int(x)))


def _round(value: Any, *digits: Any) -> Any:
    x = _number(value)
    if x is None or digits:
        return round(value, *digits)
    return _int(_of_libm("rint")(x)) if isinstance(x, float) else _fits(int(x))


def _sum(values: Iterable[Any], start: Any = 0) -> Any:
    total = start
    for value in values:
        total = OPERATORS["+"](total, value)
    return total


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return min or max: of what it runs over, a NaN loses against every number, and alone it is infinite."""
    lost = math.inf if function is min else -math.inf

    def extreme(*values: Any, **options: Any) -> Any:
        if len(values) != 1 or isinstance(values[0], tuple):
            _refuse_none(*(values if len(values) != 1 else values[0]))
            return function(*values, **options)
        given = list(values[0])
        if any(map(_has_vector, given)):
            raise TypeError(NO_ORDER)
        if options.get("key") is not None:
            return _best_by(function, lost, given, **options)
        _refuse_none(*given)
        return function([_with_first(value, lost) for value in given], **options)

    return extreme


def _has_vector(message: Any) -> bool:
    return isinstance(message, tuple) and any(
        isinstance(part, Vector) or _has_vector(part) for part in message
    )


def _best_by(
    function: Callable[..., Any], lost: float, values: list[Any], key: Callable[[Any], Any], **default: Any
) -> Any:
    """Return the first edge with the best key; of messages with that key min() the smallest, max() the largest."""
    if not values and default:
        return default["default"]
    if not values:
        raise NoResultError(NO_EDGE)
    keys = [_with_first(key(value), lost) for value in values]
    if isinstance(values[0], Edge):
        return values[function(range(len(values)), key=keys.__getitem__)]
    return function(zip(keys, [_with_first(value, lost) for value in values], strict=True))[1]


def _sorted(values: Any, **options: Any) -> Any:
    """Sort a tuple as compiled code does, by insertion: where a value is NaN, the order depends on how it is done."""
    if not isinstance(values, tuple) or options:
        return sorted(values, **options)
    found = list(values)
    for last in range(1, len(found)):
        for i in range(last, 0, -1):
            if compared("<", found[i], found[i - 1]):
                found[i - 1], found[i] = found[i], found[i - 1]
    return found


def _with_first(message: Any, lost: float) -> Any:
    """Return a number, or a tuple with its first number, that is `lost` where it was NaN."""
    if not isinstance(message, tuple):
        return lost if isinstance(message, float) and message != message else message
    first = message[0] if message else None
    if not isinstance(first, float) or first == first:
        return message
    changed = lost, *message[1:]
    return type(message)(*changed) if hasattr(message, "_fields") else changed


def _pow(a: Any, b: Any, *modulo: Any) -> Any:
    return pow(a, b, *modulo) if modulo else OPERATORS["**"](a, b)


def _divmod(a: Any, b: Any) -> Any:
    return OPERATORS["//"](a, b), OPERATORS["%"](a, b)


def _to_whole(function: Callable[[float], int], name: str) -> Callable[[Any], int]:
    """Return math.floor or the like, which returns an int."""

    def rounded(value: Any) -> int:
        x = _number(value)
        if x is None:
            return function(value)
        return int(_int(_of_libm(name)(x) if isinstance(x, float) else x))

    return rounded


def _real(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function of floats that answers as IEEE has it where Python's raises."""

    def compute(*values: Any) -> Any:
        numbers = [_number(value) for value in values]
        if any(number is None for number in numbers):
            return function(*values)
        reals = [float(number) for number in numbers]
        try:
            return float(function(*reals))
        except (ValueError, OverflowError):
            return _of_libm(name)(*reals)

    return compute


def _copysign(a: Any, b: Any) -> float:
    """math.copysign, to which every NaN is positive."""
    sign = float(b)
    return math.copysign(float(a), 0.0 if sign != sign else sign)


def _dot(a: Any, b: Any) -> Any:
    if not isinstance(a, Vector) or not isinstance(b, Vector):
        return operator.matmul(a, b)
    return _sum(OPERATORS["*"](a, b))


OPERATORS["@"] = WRAPPING["@"] = _dot


def _always(name: str, count: int) -> Callable[..., Any]:
    """Return a function of C's math library, where Python has its own way to compute it."""

    def compute(*values: Any) -> Any:
        if len(values) != count:
            raise TypeError(f"{name}() takes {count} argument{'s' * (count > 1)} here")
        return _of_libm(name)(*map(float, values))

    return compute


def _narrowed(kind: Any) -> Callable[..., Any]:
    """Return a NumPy type of whole numbers as a function: what does not fit raises."""

    def convert(*values: Any) -> Any:
        x = _number(values[0]) if len(values) == 1 else None
        if x is None:
            return kind(*values)
        whole = _int(x) if isinstance(x, float) else int(x)
        if not np.iinfo(kind).min <= whole <= np.iinfo(kind).max:
            raise NoResultError(_OVERFLOW)
        return kind(whole)

    return convert


_OF_FLOATS = [
    "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "exp2", "atan2", "fmod", "fabs",
]  # fmt: skip


def _numpy_extreme(function: Any) -> Callable[[Any, Any], Any]:
    """np.minimum and np.maximum: NaN wins, and of equals the first; NumPy takes either of 0.0 and -0.0."""
    extreme = _extreme(function)

    def compute(a: Any, b: Any) -> Any:
        lost = [float(x) for x in (a, b) if isinstance(x, (float, np.floating)) and x != x]
        return lost[0] if lost else extreme(a, b)

    return compute


def _functions() -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {
        min: _extreme(min), max: _extreme(max), sorted: _sorted,
        int: _int, float: _float, abs: _abs, round: _round, sum: _sum, pow: _pow, divmod: _divmod,
        math.floor: _to_whole(math.floor, "floor"), math.ceil: _to_whole(math.ceil, "ceil"),
        math.trunc: _to_whole(math.trunc, "trunc"),
        math.lgamma: _always("lgamma", 1), math.gamma: _always("tgamma", 1),
        math.hypot: _always("hypot", 2), np.hypot: _always("hypot", 2),
        math.pow: _always("pow", 2), np.float_power: _always("pow", 2),
        math.copysign: _copysign, np.copysign: _copysign,
        np.abs: _abs, np.absolute: _abs,
        np.minimum: _numpy_extreme(min), np.maximum: _numpy_extreme(max),
    }  # fmt: skip
    for name in _OF_FLOATS:
        of_numpy = "arc" + name[1:] if name[0] == "a" else name
        real = _real(getattr(math, name), name) if hasattr(math, name) else _always(name, 1)
        for module, other in ((math, name), (np, of_numpy)):
            if hasattr(module, other):
                found[getattr(module, other)] = real
    for other, name in (("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("rint", "rint")):
        found[getattr(np, other)] = _always(name, 1)
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        found[kind] = _narrowed(kind)
    for function, name in {
        np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/", np.floor_divide: "//", np.mod: "%",
        np.power: "**", np.bitwise_and: "&", np.bitwise_or: "|", np.bitwise_xor: "^", operator.add: "+",
        operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    }.items():  # fmt: skip
        found[function] = OPERATORS[name]
    return found


_TYPES = {np.float32, np.float64, np.bool_}
_FUNCTIONS = reductions(_functions(), _sum, _dot)


def standing_for(function: Any) -> Any:
    """Return what a built-in function, or one of math and NumPy, means in compute(); None for any other."""
    try:
        found = _FUNCTIONS.get(function)
    except TypeError:  # not hashable
        return None
    if found is None and (isinstance(function, np.ufunc) or function in _TYPES):
        found = _FUNCTIONS[function] = of_vectors(function)
    return found
