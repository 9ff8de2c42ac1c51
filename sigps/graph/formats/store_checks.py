"""What a stored array is checked for: that it is what was written, and that nothing in it reaches out of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = ["Rule", "checksum", "rule_of"]


def checksum(raw: NDArray[np.uint8]) -> tuple[int, list[int]]:
    """Return the highest of the 32-bit words of some bytes, and two sums modulo 2**64: of words, and of words by place.

    Any change of one or two words changes one of the sums. At most 2**34 bytes; one pass, at the speed of memory.

    >>> checksum(np.array([7, 0, 0, 0, 9, 0, 0, 0, 3], dtype=np.uint8))
    (9, [19, 15])
    """
    whole = raw.size // 4
    words = np.require(raw[: 4 * whole].view("<u4"), requirements="A")
    sums = np.zeros(2, dtype=np.uint64)
    most = int(_sum_words(words, sums))
    rest = int.from_bytes(raw[4 * whole :].tobytes(), "little")
    plain, by_place = int(sums[0]) + rest, int(sums[1]) + rest * whole
    return max(most, rest), [plain % 2**64, by_place % 2**64]


@compiled
def _sum_words(words: NDArray[np.uint32], sums: NDArray[np.uint64]) -> np.uint32:
    most, plain, by_place = np.uint32(0), np.uint64(0), np.uint64(0)
    for i in range(np.uint64(words.size)):
        word = words[i]
        most = max(most, word)
        plain += np.uint64(word)
        by_place += np.uint64(word) * np.uint64(
            np.uint32(i)
        )  # 32 bits each: vectors of 64-bit products are slow
    sums[0] = plain
    sums[1] = by_place
    return most


Rule = Callable[[NDArray[Any], int | None], str]
"""Takes values of an array, the first of which is the last one before them, and the highest of their 32-bit words where
that is known. Returns what is wrong with them, or an empty text."""


def rule_of(name: str, dtype: np.dtype[Any], num_vertices: int) -> Rule | None:
    """Return what the values of an array must fulfil so that programs stay within bounds; None if they may be any."""
    if name in ("targets", "in-sources"):
        return lambda values, most: _outside(values, most, num_vertices)
    if name in ("offsets", "in-offsets"):
        return lambda values, _: "" if (values[1:] >= values[:-1]).all() else "a row ends before it begins"
    if name == "ids":
        return _misplaced
    if dtype.kind == "b":
        return lambda values, _: "" if values.view(np.uint8).max() < 2 else "a bool is neither 0 nor 1"
    return None


def _outside(values: NDArray[Any], most: int | None, num_vertices: int) -> str:
    if most is None or values.itemsize != 4:
        most = int(values.max())
    return "" if most < num_vertices else f"an edge leads to vertex {most:,} of {num_vertices:,}"


def _misplaced(ids: NDArray[Any], _: int | None) -> str:
    if ids.dtype.kind == "U" and ids.view("<u4").max(initial=0) > _MOST_CHARACTER:
        return "an id is no text"
    return "" if (ids[1:] > ids[:-1]).all() else "ids do not ascend"


_MOST_CHARACTER = 0x10FFFF
