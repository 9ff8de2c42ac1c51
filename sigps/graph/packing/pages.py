"""Pages of rows: packed and unpacked one by one, each by itself. DESIGN.md has the layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.graph.packing.streams import (
    CHUNK,
    bit_length,
    most_words,
    pack_stream,
    unpack_chunk,
    unpack_stream,
)
from sigps.native.kernel import compiled

__all__ = [
    "ALIGNMENT",
    "PAGE_ARCS",
    "most_page_words",
    "most_words_to_degrees",
    "pack_rows",
    "unpack_degrees",
    "unpack_rows",
]

PAGE_ARCS = 1 << 18
"""Arcs, and rows, that a page holds at most."""
ALIGNMENT = 32
"""Words, of which a page has a multiple, and the last is zero: 128 bytes, a line of the memory of GPUs."""


def most_page_words(num_rows: int, num_arcs: int) -> int:
    """Return how many words a page takes at most."""
    chunks = most_words(num_rows) + most_words(min(num_rows, num_arcs)) + most_words(num_arcs)
    words = _most_table_words(num_rows, num_arcs) + chunks
    return -(-(words + 1) // ALIGNMENT) * ALIGNMENT


def most_words_to_degrees(num_rows: int, num_arcs: int) -> int:
    """Return in how many words of a page, from its first one on, its degrees end at the latest."""
    return max(ALIGNMENT, _most_table_words(num_rows, num_arcs) + most_words(num_rows))


def _most_table_words(num_rows: int, num_arcs: int) -> int:
    """Return the words of a page's header and of its tables, behind which the degrees are, at most."""
    streams = (num_rows, 1), (min(num_rows, num_arcs), 1), (num_arcs, 2)
    return _HEADER_WORDS + sum(entry * -(-count // CHUNK) for count, entry in streams)


@compiled
def pack_rows(
    degrees: NDArray[np.uint32],
    targets: NDArray[np.uint32],
    first_row: np.uint64,
    firsts: NDArray[np.uint32],
    gaps: NDArray[np.uint32],
    words: NDArray[np.uint32],
) -> np.uint64:
    """Write a page, and return its words.

    Args:
        degrees: [rows], arcs of each row in this page.
        targets: [arcs], ascending in each row.
        first_row: The number of the first row.
        firsts: [rows], scratch.
        gaps: [arcs], scratch.
        words: [most_page_words], written.
    """
    num_rows, num_arcs = np.uint64(degrees.size), np.uint64(targets.size)
    num_firsts, near_bits, plain_bits = np.uint64(0), 0, 0
    least, e = np.uint64(1), np.uint64(0)
    for r in range(num_rows):
        degree = np.uint64(degrees[r])
        if degree > np.uint64(0):
            target, row = np.uint64(targets[e]), first_row + np.uint64(r)
            is_far = max(target, row) - min(target, row) >= np.uint64(1 << 31)  # twice that has no 32 bits
            near_bits += _NEVER if is_far else bit_length(_near(target, row))
            plain_bits += bit_length(targets[e])
            num_firsts += np.uint64(1)
            for i in range(e + np.uint64(1), e + degree):
                if targets[i] == targets[i - np.uint64(1)]:
                    least = np.uint64(0)
            e += degree
    is_near = near_bits < plain_bits
    num_gaps = num_arcs - num_firsts
    degrees_table = np.uint64(_HEADER_WORDS)
    firsts_table = degrees_table + _chunks_of(num_rows)
    gaps_table = firsts_table + _chunks_of(num_firsts)
    at = gaps_table + np.uint64(2) * _chunks_of(num_gaps)
    f, g, e = np.uint64(0), np.uint64(0), np.uint64(0)
    for r in range(num_rows):
        degree = np.uint64(degrees[r])
        if degree > np.uint64(0):
            target = np.uint64(targets[e])
            firsts[f] = _near(target, first_row + np.uint64(r)) if is_near else targets[e]
            f += np.uint64(1)
            for i in range(e + np.uint64(1), e + degree):
                if g % np.uint64(CHUNK) == np.uint64(0):
                    entry = gaps_table + np.uint64(2) * (g // np.uint64(CHUNK))
                    words[entry + np.uint64(1)] = targets[i - np.uint64(1)]
                gaps[g] = targets[i] - targets[i - np.uint64(1)] - np.uint32(least)
                g += np.uint64(1)
            e += degree
    words[0], words[1], words[2] = np.uint32(num_rows), np.uint32(num_firsts), np.uint32(num_arcs)
    words[3] = np.uint32(least | (np.uint64(2) if is_near else np.uint64(0)))
    words[4], words[5], words[6] = np.uint32(degrees_table), np.uint32(firsts_table), np.uint32(gaps_table)
    words[7] = np.uint32(0)
    one, two = np.uint64(1), np.uint64(2)
    at = pack_stream(degrees, num_rows, words, degrees_table, one, at)
    at = pack_stream(firsts, num_firsts, words, firsts_table, one, at)
    at = pack_stream(gaps, num_gaps, words, gaps_table, two, at)
    end = (at + np.uint64(ALIGNMENT)) & ~np.uint64(ALIGNMENT - 1)
    for i in range(at, end):
        words[i] = np.uint32(0)
    return end


@compiled
def unpack_rows(
    words: NDArray[np.uint32],
    num_vertices: np.uint64,
    first_row: np.uint64,
    num_rows: np.uint64,
    degrees: NDArray[np.uint32],
    firsts: NDArray[np.uint32],
    gaps: NDArray[np.uint32],
    targets: NDArray[np.uint32],
) -> bool:
    """Read a page; return whether it is one, with so many rows and arcs, whose targets are vertices.

    Whatever it holds, nothing outside of the arrays is read or written.

    Args:
        words: The page.
        num_vertices: What every target must be below.
        first_row: The number of the first row.
        num_rows: How many rows it must have.
        degrees: [rows rounded up to 32], written.
        firsts: As many, scratch.
        gaps: [1024], scratch.
        targets: [arcs], written.
    """
    num_arcs = np.uint64(targets.size)
    if np.uint64(words.size) < np.uint64(ALIGNMENT):
        return False
    num_firsts, flags = np.uint64(words[1]), np.uint64(words[3])
    if np.uint64(words[0]) != num_rows or np.uint64(words[2]) != num_arcs:
        return False
    if num_firsts > num_rows or num_firsts > num_arcs:
        return False
    one, two = np.uint64(1), np.uint64(2)
    if not unpack_stream(words, np.uint64(words[4]), one, num_rows, degrees):
        return False
    if not unpack_stream(words, np.uint64(words[5]), one, num_firsts, firsts):
        return False
    num_gaps, table, g = num_arcs - num_firsts, np.uint64(words[6]), np.uint64(0)
    if table + two * _chunks_of(num_gaps) > np.uint64(words.size):
        return False
    least, is_near = flags & one, (flags & two) != np.uint64(0)
    e, f = np.uint64(0), np.uint64(0)
    for r in range(num_rows):
        degree = np.uint64(degrees[r])
        if degree == np.uint64(0):
            continue
        if f == num_firsts or degree > num_arcs - e:
            return False
        target = np.uint64(firsts[f])
        if is_near:
            half = target >> one
            target = first_row + np.uint64(r) + (~half if (target & one) != np.uint64(0) else half)
        if target >= num_vertices:
            return False
        f += one
        targets[e] = np.uint32(target)
        e += one
        end = e + degree - one
        while e < end:
            if g == num_gaps:
                return False
            place = g % np.uint64(CHUNK)
            if place == np.uint64(0):
                chunk = np.uint64(words[table + two * (g // np.uint64(CHUNK))])
                if not unpack_chunk(words, chunk, min(num_gaps - g, np.uint64(CHUNK)), gaps, np.uint64(0)):
                    return False
            run = min(end - e, min(np.uint64(CHUNK) - place, num_gaps - g))
            for i in range(run):
                target += np.uint64(gaps[place + np.uint64(i)]) + least
                targets[e + np.uint64(i)] = np.uint32(target & np.uint64(0xFFFFFFFF))
            e += run
            g += run
        if target >= num_vertices:  # the row's highest: targets ascend, and 2**18 gaps do not reach 2**64
            return False
    return bool(e == num_arcs and f == num_firsts)


@compiled
def unpack_degrees(words: NDArray[np.uint32], num_rows: np.uint64, degrees: NDArray[np.uint32]) -> bool:
    """Read how many arcs each row of a page has, [rows rounded up to 32]; return whether it has so many rows.

    The words need not be all of the page (`most_words_to_degrees`).
    Whatever the page holds, nothing outside of the arrays is read or written.
    """
    if np.uint64(words.size) < np.uint64(ALIGNMENT) or np.uint64(words[0]) != num_rows:
        return False
    return unpack_stream(words, np.uint64(words[4]), np.uint64(1), num_rows, degrees)


_HEADER_WORDS = 8
_NEVER = 1 << 30


def _chunks_of(count: np.uint64) -> np.uint64:
    return (count + np.uint64(CHUNK - 1)) // np.uint64(CHUNK)


def _near(target: np.uint64, row: np.uint64) -> np.uint32:
    """Return how far a target is from its row: twice the distance, or where it is below that less one."""
    if target >= row:
        return np.uint32((target - row) << np.uint64(1))
    return np.uint32(((row - target) << np.uint64(1)) - np.uint64(1))
