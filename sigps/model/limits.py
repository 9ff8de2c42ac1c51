"""What a parameter may be, a range of numbers or one of a few values, and conditions between parameters.

    damping: Param[float] = between(0, 1, default=0.85)
    attenuation: Param[float] = above(0)  # without a default it must be given
    dangling: Param[str] = one_of("redistribute", "leak", default="redistribute")

A program with other values is refused when it is made: before a graph is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from sigps.errors import nearest

__all__ = [
    "REQUIRED",
    "Choice",
    "Limited",
    "Range",
    "above",
    "at_least",
    "between",
    "finite",
    "one_of",
    "requires",
]

Open = Literal["", "low", "high", "both"]
Method = TypeVar("Method", bound=Callable[[Any], bool])


class _Required:
    """Stands for the default of a parameter that must be given."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


@dataclass(frozen=True)
class Range:
    """Numbers between two ends, which are in it unless they are `open`. NaN is in none."""

    low: float
    high: float
    open: Open = ""

    def holds(self, numbers: Any) -> Any:
        """Return whether a number is in the range, or each one of an array."""
        is_above = self.low < numbers if self.open in ("low", "both") else self.low <= numbers
        is_below = numbers < self.high if self.open in ("high", "both") else numbers <= self.high
        return is_above & is_below

    def problem(self, value: Any) -> str:
        """Return what is wrong with a number or an array of them; empty where nothing is."""
        if isinstance(value, np.ndarray):
            outside = np.flatnonzero(~self.holds(value))
            return f"holds {value[outside[0]]} at position {outside[0]}, not {self}" if outside.size else ""
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
            return f"is no number {self}"
        if self.holds(value):
            return ""
        is_unbounded = math.isinf(value) and math.isinf(self.high - self.low)
        return f"is not {self}{' and finite' * is_unbounded}"

    def example(self, wanted: int) -> float:
        """Return a number in the range: the wanted one if it is."""
        middle = (self.low + self.high) / 2
        tried = (wanted, self.low, self.high, self.low + 1, self.high - 1, middle)
        return next(number for number in tried if math.isfinite(number) and self.holds(number))

    def __str__(self) -> str:
        """Return it in words; that an open end at infinity asks for finite numbers goes without saying."""
        if self.open == "" and math.isfinite(self.high - self.low):
            return f"from {self.low} to {self.high}"
        low = f"{'above' if self.open in ('low', 'both') else 'at least'} {self.low}"
        high = f"{'below' if self.open in ('high', 'both') else 'at most'} {self.high}"
        ends = [low] * (self.low > -math.inf) + [high] * (self.high < math.inf)
        return " and ".join(ends) or "a number"


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]

    def problem(self, value: Any) -> str:
        """Return what is wrong with a value; empty where nothing is."""
        if any(isinstance(value, type(known)) and value == known for known in self.values):
            return ""
        known = ", ".join(map(repr, self.values))
        return f"is none of {known}{nearest(value, map(str, self.values)).removesuffix('.')}"

    def example(self, _: int) -> Any:
        """Return one of the values."""
        return self.values[0]

    def __str__(self) -> str:
        return " or ".join(map(repr, self.values))


@dataclass(frozen=True)
class Limited:
    """What a class body gives a parameter: what it may be, and its default."""

    limits: Range | Choice
    default: Any


def between(low: float, high: float, *, open: Open = "", default: Any = REQUIRED) -> Any:
    """Let a parameter be a number from `low` to `high`. NaN is none; a `float | None` may be None, too.

    `damping: Param[float] = between(0, 1, default=0.85)`. Of a `Table` each number must be.

    Args:
        low: The lower end.
        high: The upper end.
        open: Which ends are no such numbers themselves: "low", "high" or "both".
        default: The parameter's value where none is given; without it, it must be given.

    >>> str(between(0, 1, open="high").limits)
    'at least 0 and below 1'
    """
    if open not in ("", "low", "high", "both"):
        raise TypeError(f"between(open={open!r}): give 'low', 'high' or 'both'")
    if not (low < high or (low == high and not open)):
        raise TypeError(f"between({low}, {high}): no number is between them")
    return Limited(Range(low, high, open), default)


def at_least(low: float, *, default: Any = REQUIRED) -> Any:
    """Let a parameter be a finite number that is `low` or more: see `between`."""
    return between(low, math.inf, open="high", default=default)


def above(low: float, *, default: Any = REQUIRED) -> Any:
    """Let a parameter be a finite number above `low`: see `between`."""
    return between(low, math.inf, open="both", default=default)


def finite(*, default: Any = REQUIRED) -> Any:
    """Let a parameter be any number but NaN and the infinite ones: see `between`."""
    return between(-math.inf, math.inf, open="both", default=default)


def one_of(*values: Any, default: Any = REQUIRED) -> Any:
    """Let a parameter be one of some values.

    `dangling: Param[str] = one_of("redistribute", "leak", default="redistribute")`.
    """
    if not values:
        raise TypeError("one_of() takes the values that a parameter may have")
    return Limited(Choice(values), default)


def requires(condition: str) -> Callable[[Method], Method]:
    """Declare a condition between parameters: a method of the class that returns whether it holds.

        @requires("one and zero are different vertices")
        def has_two_ends(self):
            return self.one != self.zero

    Args:
        condition: What must be true, for the error message and `sigps explain`.
    """
    if not isinstance(condition, str):
        raise TypeError("requires() takes the condition in words: @requires('low is below high')")

    def mark(method: Method) -> Method:
        method.__dict__["condition"] = condition
        return method

    return mark
