"""Exact sums of float64, so that a sum does not depend on the order or grouping of its terms.

A term is an integer of 53 bits times a power of two. Terms are added as integers, in one pair of 64-bit words
for each power (the upper and lower half of the 53 bits), which add up over ranks like any integers; only the
end result is rounded. The words hold 2**36 terms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LIMBS", "from_limbs", "to_limbs"]

_POWERS = 2200
_LOWEST = -1100
LIMBS = 2 * _POWERS + 3
"""Words that one sum takes: two for each power of two, and counts of inf, -inf and NaN."""

_HALF = 26
_BLOCK = 1 << 20


def to_limbs(terms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the exact sum of finite terms, and counts of the others, [LIMBS] int64. O(terms)."""
    limbs = np.zeros(LIMBS, dtype=np.int64)
    for start in range(0, terms.size, _BLOCK):
        block = terms[start : start + _BLOCK]
        finite = np.isfinite(block)
        if not finite.all():
            limbs[-3:] += [int(np.sum(test(block))) for test in (np.isposinf, np.isneginf, np.isnan)]
            block = block[finite]
        fractions, powers = np.frexp(block)
        whole = (fractions * 2.0**53).astype(np.int64)
        upper = whole >> _HALF
        lower = whole - (upper << _HALF)
        places = powers - _LOWEST
        # A block's halves stay below 2**48, so float64 weights add them exactly.
        limbs[:_POWERS] += np.bincount(places, upper.astype(np.float64), _POWERS).astype(np.int64)
        limbs[_POWERS:-3] += np.bincount(places, lower.astype(np.float64), _POWERS).astype(np.int64)
    return limbs


def from_limbs(limbs: NDArray[np.int64]) -> float:
    """Return the float nearest to the exact sum.

    >>> from_limbs(to_limbs(np.array([1e100, 1.0, -1e100])))
    1.0
    """
    plus, minus, nans = (int(n) for n in limbs[-3:])
    if nans or (plus and minus):
        return float("nan")
    if plus or minus:
        return float("inf") if plus else float("-inf")
    total = 0
    for place in np.flatnonzero(limbs[:_POWERS] | limbs[_POWERS:-3]):
        mantissa = (int(limbs[place]) << _HALF) + int(limbs[_POWERS + place])
        total += mantissa << int(place)
    from fractions import Fraction

    exact = Fraction(total) * Fraction(2) ** (_LOWEST - 53)
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
