"""Katz centrality against the solution of its linear equations, and walks counted one length after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import RANDOM, RUNS, adjacency_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import results_of

from sigps.apps import Katz


def solved(sample: Sample, attenuation: float) -> dict[Any, float]:
    matrix = adjacency_of(sample)
    scores = np.linalg.solve(np.eye(len(matrix)) - attenuation * matrix.T, np.ones(len(matrix)))
    return dict(zip(vertices_of(sample), scores.tolist(), strict=True))


def counted(sample: Sample, attenuation: float, longest: int) -> dict[Any, float]:
    matrix = adjacency_of(sample)
    ways = scores = np.ones(len(matrix))
    for _ in range(longest):
        ways = attenuation * (ways @ matrix)
        scores = scores + ways
    return dict(zip(vertices_of(sample), scores.tolist(), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_scores_solve_the_equations(name: str) -> None:
    sample = BATTERY[name]
    attenuation = 0.6 / max(1.0, adjacency_of(sample).sum(axis=0).max())
    for way, result in results_of(Katz(attenuation=attenuation, tolerance=1e-12), sample, runs_of(sample)):
        assert by_id(result, "score") == pytest.approx(solved(sample, attenuation), rel=1e-10), way
        assert result.supersteps < 100, way


@pytest.mark.parametrize("attenuation", [-5.0, -0.9, 5.0])
def test_scores_that_grow_for_ever_are_not_taken_for_settled(attenuation: float) -> None:
    """On triangles, where every eigenvalue of 2 or -1 is too large, until scores are infinite."""
    sample = Sample([0, 0, 1], [1, 2, 2], directed=False)
    for iterations in (50, 1100):
        for way, result in results_of(Katz(attenuation=attenuation, iterations=iterations), sample, RUNS[:2]):
            assert result.supersteps == iterations + 1, way
            assert result.aggregators["change"] > 0.1, way
    (_, result), *_ = results_of(Katz(attenuation=-0.3), sample, RUNS[:1])
    assert by_id(result, "score") == pytest.approx(solved(sample, -0.3), rel=1e-8)
    assert (result.supersteps < 100, result.aggregators["change"] <= 1e-9) == (True, True)


@RANDOM
@given(samples(), st.integers(0, 6), st.sampled_from([0.0, 0.1, 1.0]))
def test_scores_count_walks_on_random_graphs(sample: Sample, longest: int, attenuation: float) -> None:
    expected = counted(sample, attenuation, longest)
    program = Katz(attenuation=attenuation, iterations=longest, tolerance=0.0)
    for way, result in results_of(program, sample, runs_of(sample)):
        assert by_id(result, "score") == pytest.approx(expected, rel=1e-12), way
