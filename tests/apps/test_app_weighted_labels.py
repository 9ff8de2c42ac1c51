"""Weighted label propagation against a loop that adds up weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from app_judges import RANDOM, RUNS, arcs_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import results_of

from sigps.apps import CDLP, WeightedLabels


def propagated(sample: Sample, iterations: int) -> dict[Any, Any]:
    labels = {v: v for v in vertices_of(sample)}
    for _ in range(iterations):
        pulls: dict[Any, dict[Any, float]] = {v: {} for v in labels}
        for s, t, weight in arcs_of(sample, directed=False):
            pulls[t][labels[s]] = pulls[t].get(labels[s], 0.0) + weight
        labels = {
            v: min(pull, key=lambda label: (-pull[label], label)) if pull else labels[v]
            for v, pull in pulls.items()
        }
    return labels


def check(sample: Sample, iterations: int) -> None:
    expected = propagated(sample, iterations)
    for way, result in results_of(WeightedLabels(iterations=iterations), sample, runs_of(sample)):
        assert by_id(result, "label") == expected, way
        assert result.supersteps == iterations + 1, way


@pytest.mark.parametrize(("name", "iterations"), in_turn(NAMES, [0, 4, 1]))
def test_each_vertex_has_the_label_of_most_weight(name: str, iterations: int) -> None:
    check(BATTERY[name], iterations)


@RANDOM
@given(samples(), st.integers(1, 6))
def test_labels_on_random_graphs(sample: Sample, iterations: int) -> None:
    whole = [
        float(int(4 * weight)) for weight in sample.weights or []
    ]  # in tenths, the order of sums would show
    check(replace(sample, weights=whole), iterations)


@pytest.mark.parametrize("scale", [2.0**-20, 1.0, 2.0**20])
def test_negative_weights_pull_as_much_at_any_scale(scale: float) -> None:
    """At a vertex to which all edges have negative weights, the label of the least of them is taken."""
    sample = Sample(
        [0, 0, 0, 1, 2], [1, 2, 3, 4, 4], [-3.0 * scale, -1.0 * scale, -2.0 * scale, -scale, -2 * scale]
    )
    assert propagated(sample, 1) == {0: 2, 1: 4, 2: 0, 3: 0, 4: 1}
    check(sample, 1)
    check(sample, 3)


@pytest.mark.parametrize("name", NAMES)
def test_without_weights_labels_are_those_of_cdlp(name: str) -> None:
    sample = replace(BATTERY[name], weights=None)
    mine, theirs = (results_of(p, sample, RUNS[:1])[0][1] for p in (WeightedLabels(), CDLP()))
    assert by_id(mine, "label") == by_id(theirs, "label")
