"""Random numbers by counter: the i-th number is a pure function of i and a seed.

There is no state: any rank computes any element in any order, so a generated graph does not depend on how its
edges are divided into chunks. The bits come from the finaliser of splitmix64, a bijection of 64-bit words:

    bits(counter, lane) = splitmix64(counter * 64 + lane + (seed + 1) * GOLDEN)     (modulo 2**64)

A counter identifies an edge or a vertex, a lane one of its up to 64 draws.
Paper: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators. OOPSLA 2014.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "FEISTEL_ROUNDS",
    "GOLDEN",
    "LANES",
    "below",
    "hash_pairs",
    "hash_strings",
    "permute",
    "random_bits",
    "round_key",
    "seed_key",
    "splitmix64",
    "splitmix64_int",
    "subkey",
    "threshold",
]

GOLDEN = 0x9E3779B97F4A7C15
LANES = 64
FEISTEL_ROUNDS = 6

_MASK = (1 << 64) - 1
_MULTIPLIER_1 = 0xBF58476D1CE4E5B9
_MULTIPLIER_2 = 0x94D049BB133111EB


def splitmix64(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words; a bijection. Returns a new array of the same shape."""
    mixed = words ^ (words >> np.uint64(30))
    mixed *= np.uint64(_MULTIPLIER_1)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(_MULTIPLIER_2)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def splitmix64_int(word: int) -> int:
    """Scramble one 64-bit word as `splitmix64` does, without NumPy's overflow warnings on scalars."""
    word &= _MASK
    word = (word ^ (word >> 30)) * _MULTIPLIER_1 & _MASK
    word = (word ^ (word >> 27)) * _MULTIPLIER_2 & _MASK
    return word ^ (word >> 31)


def seed_key(seed: int) -> int:
    """Return the word at which a seed's counters start: `(seed + 1) * GOLDEN` modulo 2**64."""
    return (seed + 1) * GOLDEN & _MASK


def subkey(seed: int, purpose: int) -> int:
    """Return a seed's key for one purpose, such as a permutation; independent of its counters."""
    return splitmix64_int(splitmix64_int(seed) + purpose)


def random_bits(counters: ArrayLike, lane: int, seed: int) -> NDArray[np.uint64]:
    """Return 64 random bits a counter.

    Args:
        counters: Whole numbers in 0 .. 2**58 - 1, one a draw.
        lane: Which of the counter's draws, 0 to 63.
        seed: Any whole number.

    Example:
        >>> [hex(word) for word in random_bits([0, 1], lane=0, seed=1).tolist()]
        ['0x6e789e6aa1b965f4', '0x27b0f6e26c58cf1d']
    """
    words = np.array(counters, dtype=np.uint64, ndmin=1)
    words *= np.uint64(LANES)
    words += np.uint64(seed_key(seed) + lane & _MASK)
    return splitmix64(words)


def threshold(probability: float) -> int:
    """Return t such that `(bits >> 11) * 2**-53 < probability` is exactly `bits >> 11 < t`."""
    return math.ceil(probability * 2.0**53)


def below(bits: NDArray[np.uint64], bound: int) -> NDArray[np.int64]:
    """Return whole numbers in 0 .. bound - 1 for a bound up to 2**32, from the top 32 bits."""
    return ((bits >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).view(np.int64)


def hash_pairs(first: NDArray[np.int64], second: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Return 64 bits a pair of ids, the same for (u, v) and (v, u)."""
    low = np.minimum(first, second).view(np.uint64) + np.uint64(seed_key(seed))
    return splitmix64(splitmix64(low) + np.maximum(first, second).view(np.uint64))


def hash_strings(words: NDArray[np.uint64], strings: NDArray[np.str_]) -> NDArray[np.uint64]:
    """Return each word combined with the letters of one string; equal words and strings give equal results."""
    letters = np.ascontiguousarray(strings).view(np.uint32).reshape(strings.size, strings.dtype.itemsize // 4)
    for letter in letters.T:  # as many as the longest string has, 0 after a string's last
        words = np.where(letter > 0, splitmix64(words) + letter, words)
    return words


def permute(values: NDArray[np.int64], size: int, key: int | NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the image of each value under a random permutation of 0 .. size - 1.

    There is no table: a Feistel network permutes the words of ceil(log2(size)) bits, and is applied again to a word of
    at least `size` until the result is below (cycle walking), fewer than twice on average.

    Args:
        values: Whole numbers in 0 .. size - 1.
        size: How many values are permuted, up to 2**63 - 1.
        key: Chooses the permutation; an array chooses one for each value.

    Example:
        >>> permute(np.arange(5), 5, key=1).tolist()
        [0, 1, 3, 2, 4]
    """
    num_bits = max(size - 1, 0).bit_length()
    words = _feistel(values.astype(np.uint64), num_bits, key)
    outside = np.flatnonzero(words >= np.uint64(size))
    while outside.size:
        keys = key if isinstance(key, int) else key[outside]
        words[outside] = _feistel(words[outside], num_bits, keys)
        outside = outside[words[outside] >= np.uint64(size)]
    return words.view(np.int64)


def round_key(key: int, number: int) -> int:
    """Return the key of one Feistel round."""
    return splitmix64_int(key + (number + 1) * GOLDEN)


def _feistel(words: NDArray[np.uint64], num_bits: int, key: int | NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Permute words of `num_bits` bits: even rounds change the high half, odd rounds the low half."""
    low_bits = num_bits // 2
    low_mask = np.uint64((1 << low_bits) - 1)
    high_mask = np.uint64((1 << (num_bits - low_bits)) - 1)
    shift = np.uint64(low_bits)
    high, low = words >> shift, words & low_mask
    for number in range(FEISTEL_ROUNDS):
        offset = _round_keys(key, number)
        if number % 2 == 0:
            high ^= splitmix64(low + offset) & high_mask
        else:
            low ^= splitmix64(high + offset) & low_mask
    return (high << shift) | low


def _round_keys(key: int | NDArray[np.uint64], number: int) -> np.uint64 | NDArray[np.uint64]:
    if isinstance(key, int):
        return np.uint64(round_key(key, number))
    return splitmix64(key + np.uint64((number + 1) * GOLDEN & _MASK))
