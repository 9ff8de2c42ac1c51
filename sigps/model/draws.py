"""Random numbers of vertices: each is a pure function of the run's seed, the vertex, the superstep, and its number.

So they are the same on every device, for every number of ranks, and in every order of vertices. The bits are those of
Philox 4x32 with 10 rounds (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the key is the
seed; the counter is the vertex's id (64 bits), the superstep, and how many draws this compute() made before.

Every engine runs these functions; compiled ones compile them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["choose", "philox", "random", "random_int"]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEP_0, _STEP_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


def philox(seed: int, vertex: int, superstep: int, number: int) -> tuple[np.uint64, np.uint64]:
    """Return the first two of the four words of 32 bits of a draw."""
    c0, c1 = np.uint64(vertex & 0xFFFFFFFF), np.uint64((vertex >> 32) & 0xFFFFFFFF)
    c2, c3 = np.uint64(superstep & 0xFFFFFFFF), np.uint64(number & 0xFFFFFFFF)
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64((seed >> 32) & 0xFFFFFFFF)
    for _ in range(10):
        product_0, product_1 = _MULTIPLIER_0 * c0, _MULTIPLIER_1 * c2
        c0, c2 = (product_1 >> _HALF) ^ c1 ^ k0, (product_0 >> _HALF) ^ c3 ^ k1
        c1, c3 = product_1 & _LOW, product_0 & _LOW
        k0, k1 = (k0 + _STEP_0) & _LOW, (k1 + _STEP_1) & _LOW
    return c0, c1


def random(seed: int, vertex: int, superstep: int, number: int) -> float:
    """Return a number in [0, 1), a multiple of 2**-53."""
    high, low = philox(seed, vertex, superstep, number)
    return (
        float((high >> np.uint64(5)) * np.uint64(67108864) + (low >> np.uint64(6))) * 1.1102230246251565e-16
    )


def random_int(seed: int, vertex: int, superstep: int, number: int, below: int) -> int:
    """Return a whole number from 0 to below - 1; `below` is 1 or more.

    Numbers differ in probability by less than one part in 2**64 / below.
    """
    most = np.uint64(below - 1)  # of which there is none where nothing is below
    high, low = philox(seed, vertex, superstep, number)
    if most < _LOW:
        count = most + np.uint64(1)
        return int((high * count + ((low * count) >> _HALF)) >> _HALF)
    return int(((high << _HALF) | low) % (most + np.uint64(1)))


def choose(seed: int, vertex: int, superstep: int, number: int, weights: Sequence[float]) -> int:
    """Return a position in `weights`, numbers that are not negative, with a probability in proportion to it."""
    total = 0.0
    for weight in weights:
        total += weight
    rest = random(seed, vertex, superstep, number) * total
    found, at = 0, 0
    for weight in weights:
        if weight > 0.0 and rest >= 0.0:
            found = at
        rest -= weight
        at += 1  # noqa: SIM113 - compiled code has no enumerate()
    return found
