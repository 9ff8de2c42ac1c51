from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sigps import Aggregator
from sigps.engine.aggregates import Aggregates
from sigps.model.aggregator import cells_of
from sigps.native.sums import spread


def named(**aggregators: Aggregator[Any]) -> list[Aggregator[Any]]:
    for name, aggregator in aggregators.items():
        aggregator.__set_name__(object, name)
    return list(aggregators.values())


def step(ranks: list[Aggregates], totals: list[list[tuple[Any, ...]]]) -> list[dict[str, Any]]:
    """Let every rank pack its totals and take in everyone's."""
    words = np.stack([rank.pack(mine) for rank, mine in zip(ranks, totals, strict=True)])
    for rank in ranks:
        rank.advance(words)
    return [rank.by_name() for rank in ranks]


def test_before_anything_was_given_the_identity_is_read() -> None:
    aggregates = Aggregates(
        named(
            a=Aggregator.sum(int),
            b=Aggregator.min(float),
            c=Aggregator.max(np.int16),
            d=Aggregator.any(),
            e=Aggregator.all(),
            f=Aggregator.custom(math.gcd, identity=0, type=int),
        )
    )
    expected = {"a": 0, "b": math.inf, "c": -(2**15), "d": False, "e": True, "f": 0}
    assert aggregates.by_name() == expected
    assert step([aggregates], [[]]) == [expected]


def test_totals_of_threads_and_ranks_become_one_value_everywhere() -> None:
    def made() -> Aggregates:
        return Aggregates(
            named(
                total=Aggregator.sum(int),
                low=Aggregator.min(float),
                high=Aggregator.max(np.uint64),
                some=Aggregator.any(),
                every=Aggregator.all(),
                bits=Aggregator.custom(lambda a, b: a | b, identity=0, type=int),
            )
        )

    ranks = [made(), made(), made()]
    first = [(-3, 2.5, 2**63, False, True, 1), (4, 1.5, 7, False, True, 4)]  # two threads
    second = [(10, math.inf, 2**64 - 1, True, True, 8)]
    third: list[tuple[Any, ...]] = []  # no vertex of its own
    expected = {"total": 11, "low": 1.5, "high": 2**64 - 1, "some": True, "every": True, "bits": 13}
    assert step(ranks, [first, second, third]) == [expected] * 3
    assert step(ranks, [[], [(1, 9.0, 0, False, False, 0)], []])[0] == {
        "total": 1,
        "low": 9.0,
        "high": 0,
        "some": False,
        "every": False,
        "bits": 0,
    }


def test_persistent_values_keep_what_was_given_before() -> None:
    aggregates = Aggregates(
        named(
            ever=Aggregator.sum(int, persistent=True),
            most=Aggregator.max(float, persistent=True),
            now=Aggregator.sum(int),
        )
    )
    assert step([aggregates], [[(5, 1.0, 5)]]) == [{"ever": 5, "most": 1.0, "now": 5}]
    assert step([aggregates], [[(2, 0.5, 2)]]) == [{"ever": 7, "most": 1.0, "now": 2}]
    assert step([aggregates], [[]]) == [{"ever": 7, "most": 1.0, "now": 0}]


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_deterministic_sums_of_floats_do_not_depend_on_who_gave_what(dtype: Any) -> None:
    terms = np.random.default_rng(4).normal(size=120) * 10.0 ** np.arange(-60, 60).clip(-30, 30)

    def sum_of(parts: list[np.ndarray[Any, Any]]) -> float:
        ranks = [Aggregates(cells_of(*named(x=Aggregator.sum(dtype)))) for _ in parts]
        given = [[spread(float(np.dtype(dtype).type(term))) for term in part] for part in parts]
        return step(ranks, given)[0]["x"]

    whole = sum_of([terms])
    assert whole == np.dtype(dtype).type(math.fsum(np.asarray(terms, dtype=dtype).astype(float)))
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(terms)
        assert sum_of(np.array_split(shuffled, 4)) == whole


def test_a_log_keeps_what_a_sum_goes_on_from() -> None:
    aggregates = Aggregates(cells_of(*named(x=Aggregator.sum(float, persistent=True))))
    step([aggregates], [[spread(1e16), spread(1.25)]])
    saved = [value.tolist() for value in aggregates.saved_values()]
    again = Aggregates(cells_of(*named(x=Aggregator.sum(float, persistent=True))))
    again.restore(saved)
    assert again.read("x") == math.fsum([1e16, 1.25])
    assert step([again], [[spread(-1e16)]]) == [{"x": 1.25}]  # of the rounded sum 2.0 would be left
    plain = Aggregates(named(x=Aggregator.sum(float, persistent=True)))
    plain.restore(saved)  # a run that is not deterministic rounds
    assert plain.read("x") == math.fsum([1e16, 1.25])
    again.restore([0.1])  # of such a run
    assert again.read("x") == 0.1
