"""The compiled form of `edge_streams.draw_rmat`: the same edges bit for bit, many times faster.

A block of edges, which stays in the first cache, takes each level together: the processor draws several at once.
The kernel releases the interpreter lock, so several threads draw chunks at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = ["draw"]

_ONE = np.uint64(1)
_BLOCK = np.uint64(512)
_LANES = np.uint64(64)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


@compiled
def draw(
    begin: np.uint64,
    key: np.uint64,
    scale: int,
    thresholds: NDArray[np.uint64],
    round_keys: NDArray[np.uint64],
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> None:
    """Write the ends of edges begin .. begin + len(sources) - 1.

    Args:
        begin: The first edge.
        key: `seed_key(seed)`.
        scale: Levels of the recursion; ids are below 2**scale.
        thresholds: [3] a, a + b, a + b + c in units of 2**-53, ascending.
        round_keys: [FEISTEL_ROUNDS] of the permutation of ids; [0] for none.
        sources: [n] written.
        targets: [n] written.
    """
    to_b, to_c, to_d = thresholds[0], thresholds[1], thresholds[2]
    size = np.uint64(sources.size)
    for block in range((size + _BLOCK - _ONE) // _BLOCK):
        first = block * _BLOCK
        last = min(first + _BLOCK, size)
        for i in range(first, last):
            sources[i] = 0
            targets[i] = 0
        for level in range(scale):
            for i in range(first, last):
                word = _mix(key + (begin + i) * _LANES + np.uint64(level)) >> np.uint64(11)
                in_b, in_c, in_d = np.int64(word >= to_b), np.int64(word >= to_c), np.int64(word >= to_d)
                # Quadrants a, b, c, d are the bits (source, target) = 00, 01, 10, 11.
                sources[i] = (sources[i] << 1) | in_c
                targets[i] = (targets[i] << 1) | (in_b ^ in_c ^ in_d)
        _permute(sources, first, last, scale, round_keys)
        _permute(targets, first, last, scale, round_keys)


@compiled
def _mix(word: np.uint64) -> np.uint64:
    """Scramble a word: `random_bits.splitmix64`."""
    word = (word ^ (word >> np.uint64(30))) * _MULTIPLIER_1
    word = (word ^ (word >> np.uint64(27))) * _MULTIPLIER_2
    return word ^ (word >> np.uint64(31))


@compiled
def _permute(
    words: NDArray[np.int64], first: np.uint64, last: np.uint64, num_bits: int, round_keys: NDArray[np.uint64]
) -> None:
    """Permute words of `num_bits` bits: `random_bits.permute` with the size 2**num_bits."""
    shift = np.uint64(num_bits // 2)
    low_mask = (_ONE << shift) - _ONE
    high_mask = (_ONE << np.uint64(num_bits - num_bits // 2)) - _ONE
    for number in range(round_keys.size):
        round_key = round_keys[number]
        if number % 2 == 0:
            for i in range(first, last):
                word = np.uint64(words[i])
                words[i] = word ^ ((_mix((word & low_mask) + round_key) & high_mask) << shift)
        else:
            for i in range(first, last):
                word = np.uint64(words[i])
                words[i] = word ^ (_mix((word >> shift) + round_key) & low_mask)
