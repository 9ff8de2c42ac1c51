"""Streams: whole numbers below 2**32, bit-packed in groups of 32 and chunks of 32 groups. DESIGN.md has the layout.

A group has one width, the bits that it keeps of each of its numbers. Up to seven numbers may be longer: their upper
bits, 11 at most, are exceptions behind the chunk's groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.native.primitives import float_bits, scratch

__all__ = ["CHUNK", "bit_length", "most_words", "pack_stream", "unpack_chunk", "unpack_stream"]

CHUNK = 1024
"""Numbers of a chunk."""


def most_words(count: int) -> int:
    """Return how many words a stream of `count` numbers takes at most, without its table."""
    return -(-count // CHUNK) * (_HEADER_WORDS + 1) + -(-count // _GROUP) * _GROUP


def bit_length(value: np.uint32) -> int:
    """Return how many bits a number has, 0 of 0. For kernels."""
    return (float_bits(float(value) + 0.5) >> 52) - 1022


def pack_stream(
    values: NDArray[np.uint32],
    count: np.uint64,
    words: NDArray[np.uint32],
    table: np.uint64,
    stride: np.uint64,
    at: np.uint64,
) -> np.uint64:
    """Write a stream; return where it ends. For kernels.

    Args:
        values: [at least count].
        count: How many of them.
        words: The page.
        table: Where the table is: entry c, `stride` words behind the one before, gets the place of chunk c.
        stride: Words of an entry.
        at: Where the chunks are written.
    """
    long = scratch(_MOST_OF_CHUNK)
    lengths = scratch(33)
    for chunk in range((count + np.uint64(CHUNK - 1)) // np.uint64(CHUNK)):
        words[table + stride * np.uint64(chunk)] = np.uint32(at)
        first = np.uint64(chunk) * np.uint64(CHUNK)
        header = at
        for i in range(np.uint64(_HEADER_WORDS)):
            words[header + i] = np.uint32(0)
        at += np.uint64(_HEADER_WORDS)
        num_long = np.uint64(0)
        num_groups = (min(count - first, np.uint64(CHUNK)) + np.uint64(_GROUP - 1)) >> np.uint64(5)
        for group in range(num_groups):
            begin = first + np.uint64(group) * np.uint64(_GROUP)
            end = min(begin + np.uint64(_GROUP), count)
            for k in range(np.uint64(33)):
                lengths[k] = np.uint64(0)
            longest = 0
            for i in range(begin, end):
                length = bit_length(values[i])
                lengths[np.uint64(length)] += np.uint64(1)
                longest = max(longest, length)
            # The width that takes the fewest bits, with 16 for each number that is longer.
            width, num_own, tried, longer = (
                longest if longest < 31 else 32,
                np.uint64(0),
                longest,
                np.uint64(0),
            )
            cost = _GROUP * width
            while tried > 0 and longest - tried < _HIGH_BITS and longer <= np.uint64(_MOST_LONG):
                longer += lengths[np.uint64(tried)]
                tried -= 1
                taken = _GROUP * tried + 16 * int(longer)
                if taken < cost and longer <= np.uint64(_MOST_LONG) and tried < 31:
                    width, num_own, cost = tried, longer, taken
            code = np.uint64(min(width, 31)) | (num_own << np.uint64(5))
            words[header + (np.uint64(group) >> np.uint64(2))] |= np.uint32(
                code << ((np.uint64(group) & np.uint64(3)) << np.uint64(3))
            )
            bits, mask = np.uint64(width), (np.uint64(1) << np.uint64(width)) - np.uint64(1)
            held, filled = np.uint64(0), np.uint64(0)
            for i in range(begin, begin + np.uint64(_GROUP)):
                value = np.uint64(values[i]) if i < end else np.uint64(0)
                if value > mask:
                    long[num_long] = (i - begin) | ((value >> bits) << np.uint64(5))
                    num_long += np.uint64(1)
                held |= (value & mask) << filled
                filled += bits
                if filled >= np.uint64(32):
                    words[at] = np.uint32(held & np.uint64(0xFFFFFFFF))
                    at += np.uint64(1)
                    held >>= np.uint64(32)
                    filled -= np.uint64(32)
        long[num_long] = np.uint64(0)
        for i in range((num_long + np.uint64(1)) >> np.uint64(1)):
            pair = np.uint64(i) << np.uint64(1)
            words[at] = np.uint32(long[pair] | (long[pair + np.uint64(1)] << np.uint64(16)))
            at += np.uint64(1)
    return at


def unpack_chunk(
    words: NDArray[np.uint32], at: np.uint64, count: np.uint64, out: NDArray[np.uint32], to: np.uint64
) -> bool:
    """Write the numbers of a chunk, with zeros behind them to the end of a group; return whether it lies in the page.

    For kernels. Whatever the page holds, nothing outside of it is read.

    Args:
        words: The page; a chunk ends before its last word.
        at: Where the chunk begins.
        count: How many numbers it has, at most 1024.
        out: Written from `to` on, as many as the chunk's groups have.
        to: Where to.
    """
    num_groups = (count + np.uint64(_GROUP - 1)) >> np.uint64(5)
    payload, num_words, num_long = at + np.uint64(_HEADER_WORDS), np.uint64(0), np.uint64(0)
    if payload > np.uint64(words.size):
        return False
    for group in range(num_groups):
        code = _code_of(words, at, np.uint64(group))
        num_words += _width_of(code)
        num_long += code >> np.uint64(5)
    if payload + num_words + ((num_long + np.uint64(1)) >> np.uint64(1)) >= np.uint64(words.size):
        return False
    long = (payload + num_words) << np.uint64(1)  # in half words
    for group in range(num_groups):
        code = _code_of(words, at, np.uint64(group))
        width = _width_of(code)
        mask = (np.uint64(1) << width) - np.uint64(1)
        begin = to + (np.uint64(group) << np.uint64(5))
        source = min(
            payload, np.uint64(words.size) - np.uint64(2)
        )  # two words: of no bits it may be the last one
        for i in range(np.uint64(_GROUP)):
            bit = np.uint64(i) * width
            word = source + (bit >> np.uint64(5))
            pair = np.uint64(words[word]) | (np.uint64(words[word + np.uint64(1)]) << np.uint64(32))
            out[begin + np.uint64(i)] = np.uint32((pair >> (bit & np.uint64(31))) & mask)
        payload += width
        for i in range(long, long + (code >> np.uint64(5))):
            half = words[i >> np.uint64(1)] >> np.uint32((i & np.uint64(1)) << np.uint64(4))
            place = begin + (np.uint64(half) & np.uint64(31))
            upper = (np.uint64(half) & np.uint64(0xFFFF)) >> np.uint64(5)
            out[place] |= np.uint32((upper << width) & np.uint64(0xFFFFFFFF))
        long += code >> np.uint64(5)
    return True


def unpack_stream(
    words: NDArray[np.uint32], table: np.uint64, stride: np.uint64, count: np.uint64, out: NDArray[np.uint32]
) -> bool:
    """Write the numbers of a stream; return whether it lies in the page. For kernels.

    Args:
        words: The page.
        table: Where its table is.
        stride: Words of an entry of the table.
        count: How many numbers it has.
        out: [count rounded up to groups], written.
    """
    num_chunks = (count + np.uint64(CHUNK - 1)) // np.uint64(CHUNK)
    lies_within = bool(table + stride * num_chunks <= np.uint64(words.size))
    chunk = np.uint64(0)
    while lies_within and chunk < num_chunks:
        first = chunk * np.uint64(CHUNK)
        place = np.uint64(words[table + stride * chunk])
        lies_within = unpack_chunk(words, place, min(count - first, np.uint64(CHUNK)), out, first)
        chunk += np.uint64(1)
    return lies_within


_GROUP = 32
_HEADER_WORDS = (
    8  # a byte a group: its width in 5 bits, where 31 stands for 32, and how many exceptions it has
)
_MOST_LONG, _HIGH_BITS = 7, 11
_MOST_OF_CHUNK = 256


def _code_of(words: NDArray[np.uint32], at: np.uint64, group: np.uint64) -> np.uint64:
    word = np.uint64(words[at + (group >> np.uint64(2))])
    return (word >> ((group & np.uint64(3)) << np.uint64(3))) & np.uint64(255)


def _width_of(code: np.uint64) -> np.uint64:
    width = code & np.uint64(31)
    return width + np.uint64(1) if width == np.uint64(31) else width
