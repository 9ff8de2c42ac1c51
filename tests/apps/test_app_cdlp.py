"""CDLP against a loop that counts labels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from app_judges import RANDOM, arcs_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import results_of

from sigps.apps import CDLP


def propagated(sample: Sample, iterations: int) -> dict[Any, Any]:
    labels = {v: v for v in vertices_of(sample)}
    for _ in range(iterations):
        counts: dict[Any, Counter[Any]] = {v: Counter() for v in labels}
        for s, t, _ in arcs_of(sample, directed=False):
            counts[t][labels[s]] += 1
        labels = {
            v: min(count, key=lambda label: (-count[label], label)) if count else labels[v]
            for v, count in counts.items()
        }
    return labels


def check(sample: Sample, iterations: int) -> None:
    expected = propagated(sample, iterations)
    for way, result in results_of(CDLP(iterations=iterations), sample, runs_of(sample)):
        assert by_id(result, "label") == expected, way
        assert result.supersteps == iterations + 1, way


@pytest.mark.parametrize(("name", "iterations"), in_turn(NAMES, [0, 4, 1]))
def test_each_vertex_has_the_label_that_is_most_frequent(name: str, iterations: int) -> None:
    check(BATTERY[name], iterations)


@RANDOM
@given(samples(), st.integers(1, 6))
def test_labels_on_random_graphs(sample: Sample, iterations: int) -> None:
    check(sample, iterations)


def test_a_neighbour_in_both_directions_counts_twice() -> None:
    graph = Sample([9, 8, 0], [8, 9, 9])
    assert propagated(graph, 1)[9] == 8  # 0 once, 8 twice
    check(graph, 1)
