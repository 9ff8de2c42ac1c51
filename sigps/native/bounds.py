"""Between what whole numbers a value lies, as far as its expression says: where a result fits, nothing is checked."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul, sub
from typing import Any

from sigps.native.types import Number

__all__ = ["GIVEN", "Bounds", "bounds_of_result", "bounds_of_type", "fits_int", "join_bounds"]

Bounds = tuple[int, int] | None
"""The least and the greatest; None where nothing is known."""

GIVEN: dict[str, tuple[int, int]] = {
    "__superstep": (0, 2**53),
    "__num_vertices": (0, 2**48),
    "__num_edges": (0, 2**56),
    "__out_degree": (0, 2**32),
    "__in_degree": (0, 2**32),
}
"""What the engines promise of what they give."""


def fits_int(bounds: Bounds) -> bool:
    """Tell whether all of it has 64 bits and a sign."""
    return bounds is not None and bounds[0] >= -(2**63) and bounds[1] < 2**63


def bounds_of_type(kind: Any) -> Bounds:
    """Return what a type can hold; None for floats and what is no number.

    >>> bounds_of_type(Number("i", 8)), bounds_of_type(Number("b", 8)), bounds_of_type(Number("f", 32))
    ((-128, 127), (0, 1), None)
    """
    if not isinstance(kind, Number) or kind.is_float:
        return None
    if kind.kind == "b":
        return 0, 1
    return (0, 2**kind.bits - 1) if kind.kind == "u" else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)


def join_bounds(a: Bounds, b: Bounds) -> Bounds:
    """Return those of what is one of two values."""
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def bounds_of_result(op: str, a: Bounds, b: Bounds) -> Bounds:
    """Return those of `a <op> b`, before it is known whether that fits.

    >>> bounds_of_result("-", (0, 5), (1, 2)), bounds_of_result("*", (-3, 2), (4, 5))
    ((-2, 4), (-15, 10))
    >>> bounds_of_result("|", (0, 1), (0, 4)), bounds_of_result("&", None, (0, 255))
    ((0, 7), (0, 255))
    """
    if op == "&":
        tops = [x[1] for x in (a, b) if x is not None and x[0] >= 0]
        return (0, min(tops)) if tops else None
    if a is None or b is None:
        return None
    if op in ("|", "^") and a[0] >= 0 and b[0] >= 0:
        return 0, 2 ** max(a[1], b[1]).bit_length() - 1
    if op == ">>" and b[0] >= 0:
        ends = [x >> min(by, 64) for x in a for by in b]
        return min(ends), max(ends)
    if op not in _EXACT:
        return None
    ends = [_EXACT[op](x, y) for x in a for y in b]
    return min(ends), max(ends)


_EXACT: dict[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}
