"""Sums of floats that do not depend on the order or grouping of their terms: whole numbers in a window of 96 bits.

A float is a whole number of 53 bits times a power of two. Its bits are cut where the exponents of all numbers are cut,
every 32 bits, and go into three words: the window begins with the cut below the leading bit. Words of two sums
whose windows begin alike are added; otherwise the lower window's words are moved to the higher one, and those that are
below it are left out. What is left out depends on the largest term alone, so sums of parts combine in any order to the
same words, which are rounded once at the end. A sum of n terms is off by at most half a unit in its last place and
n * 2**-64 of its largest term. A word holds 2**31 terms. So cut by exponents are floats in J. Demmel, H. D. Nguyen,
"Parallel reproducible summation", IEEE Transactions on Computers, 2015, too.

Every engine runs these functions; compiled ones compile them. A sum is (window, upper, middle, lower). Those of
vectors are only compiled: an assignment copies a vector there.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sigps.native.primitives import float_bits, float_of_bits

__all__ = [
    "EMPTY",
    "WORDS",
    "added",
    "added_each",
    "rounded",
    "rounded_each",
    "rounded_each_single",
    "spread",
    "spread_each",
    "total",
]

WORDS = 4
EMPTY = 0, 0, 0, 0
"""The sum of no terms."""

_NOT_FINITE = 1000
"""The window of a sum with a term that is not finite; its words count inf, -inf and NaN."""

_MASK = 0xFFFFFFFF


def spread(value: float) -> tuple[int, int, int, int]:
    """Return the sum of one term."""
    bits = float_bits(value)
    exponent = (bits >> 52) & 2047
    fraction = np.uint64(bits & 0xFFFFFFFFFFFFF)
    if exponent == 2047:
        is_nan = 1 if fraction != np.uint64(0) else 0
        is_less = 1 if bits < 0 else 0
        return _NOT_FINITE, (1 - is_nan) * (1 - is_less), (1 - is_nan) * is_less, is_nan
    if exponent == 0:
        exponent = 1
    else:
        fraction = fraction | np.uint64(0x10000000000000)
    height = exponent + 51  # of the leading bit, counted from the lowest that a float has
    shift = np.uint64(height & 31)
    leading = fraction << np.uint64(11)
    rest = leading << (shift + np.uint64(1))
    upper = int(leading >> (np.uint64(63) - shift))
    middle, lower = int(rest >> np.uint64(32)), int(rest & np.uint64(_MASK))
    if bits < 0:
        return height >> 5, -upper, -middle, -lower
    return height >> 5, upper, middle, lower


def added(
    window: int, upper: int, middle: int, lower: int, window_2: int, upper_2: int, middle_2: int, lower_2: int
) -> tuple[int, int, int, int]:
    """Return the sum of two sums."""
    if window == window_2:
        return window, upper + upper_2, middle + middle_2, lower + lower_2
    if window > window_2:
        down = window - window_2
        middle_2, lower_2 = (
            upper_2 if down == 1 else 0,
            middle_2 if down == 1 else upper_2 if down == 2 else 0,
        )
        return window, upper, middle + middle_2, lower + lower_2
    down = window_2 - window
    middle, lower = upper if down == 1 else 0, middle if down == 1 else upper if down == 2 else 0
    return window_2, upper_2, middle + middle_2, lower + lower_2


def rounded(window: int, upper: int, middle: int, lower: int) -> float:
    """Return the float nearest to a sum, the even one of two.

    >>> rounded(*total([1e16, 1.0, 1.0, -1e16]))
    2.0
    """
    if window == _NOT_FINITE:
        if lower != 0 or (upper != 0 and middle != 0):
            return float_of_bits(0x7FF8000000000000)
        return float_of_bits(0x7FF0000000000000 if upper != 0 else -0x10000000000000)
    carried = middle + (lower >> 32)
    is_less = upper + (carried >> 32) < 0
    if is_less:
        upper, middle, lower = -upper, -middle, -lower
    middle = middle + (lower >> 32)
    high = np.uint64(upper + (middle >> 32))
    low = (np.uint64(middle & _MASK) << np.uint64(32)) | np.uint64(lower & _MASK)
    exponent = 32 * (window - 2) + 64  # of the lowest bit of `high`, over that of all floats
    if high == np.uint64(0):
        high, low = low, np.uint64(0)
        exponent = exponent - 64
    if high == np.uint64(0):
        return float_of_bits(0)
    step = np.uint64(32)
    while step > np.uint64(0):  # the leading bit to the top
        if high >> (np.uint64(64) - step) == np.uint64(0):
            high = (high << step) | (low >> (np.uint64(64) - step))
            low = low << step
            exponent = exponent - int(step)
        step = step >> np.uint64(1)
    exponent = exponent + 12  # as a float has it
    if exponent >= 2047:
        return float_of_bits(-0x10000000000000 if is_less else 0x7FF0000000000000)
    dropped = np.uint64(11)
    if exponent < 1:
        dropped = np.uint64(12 - exponent)
        exponent = 1
    kept = int(high >> dropped)
    half = np.uint64(1) << (dropped - np.uint64(1))
    rest = high & (half + half - np.uint64(1))
    if rest > half or (rest == half and (low != np.uint64(0) or kept & 1 == 1)):
        kept = kept + 1
    bits = ((exponent - 1) << 52) + kept  # a carry out of `kept` goes to the exponent
    if is_less:
        return float_of_bits(bits - 0x7FFFFFFFFFFFFFFF - 1)
    return float_of_bits(bits)


def spread_each(values):  # type: ignore[no-untyped-def]
    """Return the sums of one term each of the numbers of a vector: four vectors."""
    window = np.where(values == values, 0, 0)
    upper, middle, lower = window, window, window
    for i in range(len(values)):
        window[i], upper[i], middle[i], lower[i] = spread(float(values[i]))
    return window, upper, middle, lower


def added_each(window, upper, middle, lower, window_2, upper_2, middle_2, lower_2):  # type: ignore[no-untyped-def]
    """Return the sums of the numbers of vectors, and of others, each with the other at its position."""
    for i in range(len(window)):
        window[i], upper[i], middle[i], lower[i] = added(
            window[i], upper[i], middle[i], lower[i], window_2[i], upper_2[i], middle_2[i], lower_2[i]
        )
    return window, upper, middle, lower


def rounded_each(window, upper, middle, lower):  # type: ignore[no-untyped-def]
    """Return the floats nearest to the sums of a vector's numbers."""
    found = window * 0.0
    for i in range(len(window)):
        found[i] = rounded(window[i], upper[i], middle[i], lower[i])
    return found


def rounded_each_single(window, upper, middle, lower):  # type: ignore[no-untyped-def]
    """Return the floats of 32 bits nearest to those nearest to the sums of a vector's numbers."""
    found = window * 0.0
    for i in range(len(window)):
        found[i] = np.float32(rounded(window[i], upper[i], middle[i], lower[i]))
    return found


def total(values: Iterable[float]) -> tuple[int, int, int, int]:
    """Return the sum of some terms. O(terms), in plain Python."""
    found = EMPTY
    for value in values:
        found = added(*found, *spread(value))
    return found
