"""Whole numbers that wrap around where they leave 64 bits, instead of ending the run."""

from __future__ import annotations

__all__ = ["wrapping"]


def wrapping(value: int) -> int:
    """Return a whole number modulo 2**64, from -2**63 to 2**63 - 1.

    In compute() every `+ - * << **` and sign between the parentheses wraps around: `wrapping(h * 31 + self.id)`.
    Elsewhere such a result ends the run with a `ComputeError`. `np.uint64` wraps around everywhere.

    >>> wrapping(2**63)
    -9223372036854775808
    """
    return (int(value) + 2**63) % 2**64 - 2**63
