"""The most similar vertices against all pairs of sets of neighbours."""

from __future__ import annotations

import math
from typing import Any

import pytest
from app_judges import QUICK_RUNS, RANDOM, neighbours_of, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps.apps import MostSimilar

MEASURES = ["jaccard", "overlap", "cosine", "adamic_adar", "resource_allocation"]


def score(near: dict[Any, set[Any]], u: Any, v: Any, measure: str) -> float:
    common = near[u] & near[v]
    if not common:
        return 0.0
    if measure == "adamic_adar":
        return sum(1 / math.log(len(near[w])) for w in common)
    if measure == "resource_allocation":
        return sum(1 / len(near[w]) for w in common)
    product = len(near[u]) * len(near[v])
    below = {
        "jaccard": len(near[u] | near[v]),
        "overlap": min(len(near[u]), len(near[v])),
        "cosine": math.sqrt(product),
    }
    return len(common) / below[measure]


def check(sample: Sample, k: int, measure: str, ways: list[Way], at_a_time: int = 1 << 24) -> None:
    near, ids = neighbours_of(sample), vertices_of(sample)
    scores = {u: {v: score(near, u, v, measure) for v in ids if v != u} for u in ids}
    ranked = [sorted((-s, v) for v, s in scores[u].items() if s > 0.0)[:k] for u in ids]
    nobody = None if isinstance(ids[0], str) else -1
    program = MostSimilar(k=k, measure=measure, at_a_time=at_a_time)
    for way, result in results_of(program, sample, ways):
        found = zip(ids, result["similar"].tolist(), result["score"].tolist(), strict=True)
        for (u, similar, given_scores), best in zip(found, ranked, strict=True):
            rest = k - len(best)
            expected = [-s for s, _ in best] + [0.0] * rest
            assert given_scores == pytest.approx(expected, rel=1e-12), way
            assert similar[len(best) :] == [nobody] * rest, way
            if measure in ("jaccard", "overlap", "cosine"):
                assert similar[: len(best)] == [v for _, v in best], way
            else:  # rounding decides between equal ones
                assert len(set(similar[: len(best)])) == len(best), way
                theirs = [scores[u][v] for v in similar[: len(best)]]
                assert theirs == pytest.approx(expected[: len(best)], rel=1e-12), way


@pytest.mark.parametrize("name", NAMES)
def test_the_best_of_all_pairs(name: str) -> None:
    at = NAMES.index(name)
    check(BATTERY[name], 3, MEASURES[at % 5], runs_of(BATTERY[name]))
    check(BATTERY[name], 3, MEASURES[(at + 2) % 5], [Way()], at_a_time=7)


@RANDOM
@given(samples(), st.integers(1, 12), st.sampled_from(MEASURES))
def test_the_best_of_random_graphs(sample: Sample, k: int, measure: str) -> None:
    check(sample, k, measure, QUICK_RUNS)
