"""Sums that do not depend on order: against exact fractions, in every order, compiled and in plain Python."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from sigps.native.kernel import compiled
from sigps.native.sums import EMPTY, added, rounded, spread, total

CASES = {
    "none": [],
    "zeros": [0.0, -0.0],
    "one": [0.1],
    "cancels": [1e16, 1.0, 1.0, -1e16],
    "cancels_all": [0.1, 0.7, -0.7, -0.1],
    "tiny": [5e-324, 5e-324, -1e-310, 2.5e-308],
    "large": [1e308, 1e308, -1e308],
    "too_large": [1e308, 1e308],
    "half_up": [1.0, 2.0**-53, 2.0**-80],
    "half_to_even": [1.0, 2.0**-53],
    "half_to_odd": [1.0 + 2.0**-52, 2.0**-53],
    "below_a_power": [2.0, -(2.0**-52), -(2.0**-70)],
    "tenths": [0.1] * 1000,
    "mixed": [
        random.Random(3).uniform(-1, 1) * 10.0 ** random.Random(i).randrange(-8, 8) for i in range(500)
    ],
}


def nearest(values: list[float]) -> float:
    """Return the float nearest to the exact sum."""
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@pytest.mark.parametrize("name", CASES)
def test_a_sum_is_the_nearest_float(name: str) -> None:
    values = CASES[name]
    assert rounded(*total(values)) == nearest(values)
    assert rounded(*total([-v for v in values])) == -nearest(values)


@pytest.mark.parametrize("seed", range(20))
def test_one_term_comes_back(seed: int) -> None:
    drawn = random.Random(seed)
    for _ in range(200):
        value = np.array([drawn.getrandbits(64)], dtype=np.uint64).view(np.float64)[0].item()
        if value == value:
            assert rounded(*spread(value)) == value


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([math.inf, 1.0], math.inf),
        ([-math.inf, 1e308], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0, math.inf], math.nan),
    ],
)
def test_terms_that_are_not_finite(values: list[float], expected: float) -> None:
    for order in (values, values[::-1]):
        assert repr(rounded(*total(order))) == repr(expected)


@pytest.mark.parametrize("seed", range(30))
def test_order_and_grouping_do_not_matter(seed: int) -> None:
    drawn = random.Random(seed)
    spans = [(-300, 300), (-40, 10), (-3, 3)]
    low, high = spans[seed % 3]
    values = [drawn.uniform(-1, 1) * 10.0 ** drawn.randrange(low, high) for _ in range(60)]
    expected = total(values)
    for _ in range(5):
        drawn.shuffle(values)
        cut = drawn.randrange(60)
        assert added(*total(values[cut:]), *total(values[:cut])) == expected
    size = max(map(abs, values))
    assert abs(Fraction(rounded(*expected)) - sum(map(Fraction, values))) <= (
        Fraction(size) * len(values) / 2**64 + Fraction(math.ulp(rounded(*expected))) / 2
    )


def add_array(values: np.ndarray) -> float:
    window, upper, middle, lower = 0, 0, 0, 0
    for i in range(values.size):
        w, u, m, n = spread(values[i])
        window, upper, middle, lower = added(window, upper, middle, lower, w, u, m, n)
    return rounded(window, upper, middle, lower)


@pytest.mark.parametrize("name", CASES)
def test_compiled_code_has_the_same_bits(name: str) -> None:
    values = np.array(CASES[name], dtype=np.float64)
    found = compiled(add_array)(values)
    assert np.float64(found).tobytes() == np.float64(rounded(*total(CASES[name]))).tobytes()


def test_the_sum_of_nothing_changes_nothing() -> None:
    assert added(*EMPTY, *spread(0.3)) == spread(0.3) == added(*spread(0.3), *EMPTY)
    assert rounded(*EMPTY) == 0.0
