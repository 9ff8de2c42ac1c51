from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigps.engine.exact_sum import LIMBS, from_limbs, to_limbs

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def exact(terms: list[float]) -> float:
    """Slow twin: a sum of fractions, rounded once."""
    total = sum((Fraction(t) for t in terms), Fraction(0))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@given(st.lists(FINITE, max_size=40))
def test_a_sum_is_the_float_nearest_to_the_exact_one(terms: list[float]) -> None:
    assert from_limbs(to_limbs(np.array(terms, dtype=np.float64))) == exact(terms)


@given(st.lists(FINITE, max_size=30), st.integers(0, 30), st.randoms(use_true_random=False))
def test_neither_order_nor_grouping_matters(terms: list[float], cut: int, random: object) -> None:
    whole = to_limbs(np.array(terms, dtype=np.float64))
    shuffled = list(terms)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    parts = [np.array(p, dtype=np.float64) for p in (shuffled[:cut], shuffled[cut:])]
    assert np.array_equal(to_limbs(parts[0]) + to_limbs(parts[1]), whole)


@pytest.mark.parametrize(
    ("terms", "total"),
    [
        ([], 0.0),
        ([0.0, -0.0], 0.0),
        ([1e100, 1.0, -1e100], 1.0),
        ([5e-324, 5e-324], 1e-323),  # the smallest numbers there are
        ([-5e-324], -5e-324),
        ([1.7976931348623157e308] * 2, math.inf),
        ([-1.7976931348623157e308] * 2, -math.inf),
        ([1.7976931348623157e308] * 2 + [-1.7976931348623157e308], 1.7976931348623157e308),
        ([math.inf, 1.0], math.inf),
        ([-math.inf, 1.0], -math.inf),
        ([1.0, 2.0**-53], 1.0),  # a tie: rounded to even
        ([1.0, 2.0**-53, 5e-324], 1.0 + 2.0**-52),
    ],
)
def test_ends_of_the_range(terms: list[float], total: float) -> None:
    assert from_limbs(to_limbs(np.array(terms))) == total


@pytest.mark.parametrize("terms", [[math.nan], [math.inf, -math.inf], [math.nan, math.inf]])
def test_what_is_no_number_is_nan(terms: list[float]) -> None:
    assert math.isnan(from_limbs(to_limbs(np.array(terms))))


def test_more_terms_than_a_block() -> None:
    terms = np.tile([0.1, -0.3, 1e16, 7e-300], 300_000)
    assert from_limbs(to_limbs(terms)) == math.fsum(terms)


def test_float32_terms_count_as_they_are() -> None:
    terms = np.array([0.1, 0.2, 1e30], dtype=np.float32)
    limbs = to_limbs(terms)
    assert limbs.shape == (LIMBS,)
    assert from_limbs(limbs) == math.fsum(terms.astype(float))
