"""Eigenvector centrality against dense power iteration, and against NetworkX on a connected graph."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, adjacency_of, as_networkx, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import results_of

from sigps.apps import EigenvectorCentrality


def iterated(sample: Sample, rounds: int) -> dict[Any, float]:
    shifted = adjacency_of(sample) + np.eye(len(vertices_of(sample)))
    scores = np.ones(len(shifted)) / np.sqrt(len(shifted))
    for _ in range(rounds):
        scores = scores @ shifted
        scores = scores / np.linalg.norm(scores)
    return dict(zip(vertices_of(sample), scores.tolist(), strict=True))


def check(sample: Sample, rounds: int) -> None:
    expected = iterated(sample, rounds)
    program = EigenvectorCentrality(iterations=rounds, tolerance=0.0)
    for way, result in results_of(program, sample, runs_of(sample)):
        assert by_id(result, "score") == pytest.approx(expected, rel=1e-11), way
        assert result.supersteps == rounds + 2, way


@pytest.mark.parametrize(("name", "rounds"), in_turn(NAMES, [0, 12, 1]))
def test_scores_are_those_of_dense_power_iteration(name: str, rounds: int) -> None:
    check(BATTERY[name], rounds)


@RANDOM
@given(samples(), st.integers(0, 6))
def test_scores_on_random_graphs(sample: Sample, rounds: int) -> None:
    check(sample, rounds)


@pytest.mark.parametrize("name", ["grid", "path_undirected", "complete_5", "directed_cycle"])
def test_converged_scores_are_those_of_networkx(name: str) -> None:
    sample = BATTERY[name]
    simple = (nx.DiGraph if sample.directed else nx.Graph)(as_networkx(sample))
    expected = nx.eigenvector_centrality_numpy(simple, weight=None)
    for way, result in results_of(
        EigenvectorCentrality(iterations=1000, tolerance=1e-12), sample, runs_of(sample)
    ):
        assert by_id(result, "score") == pytest.approx(expected, rel=1e-8), way
        assert result.supersteps < 1000, way
