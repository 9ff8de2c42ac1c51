"""Whole numbers in the text of files, which may have any number of digits and promise anything."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sigps.errors import GraphError

__all__ = ["header_counts", "is_float", "is_rounded", "whole_number"]


def whole_number(text: str) -> int | None:
    """Return the whole number within int64 that decimal digits stand for; None if the text is none.

    >>> whole_number("-007"), whole_number("²"), whole_number("9" * 5000)
    (-7, None, None)
    """
    found = _WHOLE.fullmatch(text)
    value = int(found[1] + found[2]) if found else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def is_float(text: str) -> bool:
    """Return whether a text is a number with or without a fraction and an exponent, or infinity, or NaN.

    >>> [is_float(text) for text in ("-1.5e3", ".5", "inf", "1_0", "٣")]
    [True, True, True, False, False]
    """
    return _FLOAT.fullmatch(text) is not None


def is_rounded(text: str) -> bool:
    """Return whether a text is a whole number, written as one, that no float64 equals.

    >>> [is_rounded(text) for text in ("9007199254740992", "-9007199254740993", "1e300", "0.1")]
    [False, True, False, False]
    """
    found = _DECIMAL.fullmatch(text)
    return found is not None and int(found[1]) != int(float(found[1]))


def header_counts(words: Sequence[str], rule: str, line: str, where: str) -> list[int]:
    """Return the counts in a file's header.

    Args:
        words: The counts as the file has them.
        rule: What the line must be, in errors.
        line: The line.
        where: The file and the line's number.

    Raises:
        GraphError: If one is no whole number from 0 to the largest int64.
    """
    found = [whole_number(word) for word in words]
    counts = [count for count in found if count is not None and count >= 0]
    if len(counts) < len(words):
        raise GraphError(f"{where}: {rule}, with counts below 2**63, not {line[:80]!r}")
    return counts


_DIGITS = r"[0-9]+\.?[0-9]*|\.[0-9]+"
_FLOAT = re.compile(rf"[+-]?(?:(?:{_DIGITS})(?:e[+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?0*([0-9]{1,300})")
_WHOLE = re.compile(r"(-?)0*([0-9]{1,19})")
