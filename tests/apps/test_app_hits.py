"""HITS against dense matrix products, and against NetworkX."""

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

from sigps.apps import HITS


def multiplied(sample: Sample, rounds: int) -> tuple[dict[Any, float], dict[Any, float]]:
    matrix = adjacency_of(sample)
    hubs, authorities = np.ones(len(matrix)), np.zeros(len(matrix))
    for _ in range(rounds):
        authorities = hubs @ matrix
        hubs = matrix @ authorities
        authorities, hubs = (x / max(x.sum(), 1e-300) for x in (authorities, hubs))
    ids = vertices_of(sample)
    scaled = hubs / max(hubs.sum(), 1e-300)
    return dict(zip(ids, scaled.tolist(), strict=True)), dict(zip(ids, authorities.tolist(), strict=True))


def check(sample: Sample, rounds: int) -> None:
    hubs, authorities = multiplied(sample, rounds)
    for way, result in results_of(HITS(iterations=rounds), sample, runs_of(sample)):
        assert by_id(result, "hub") == pytest.approx(hubs, rel=1e-11), way
        assert by_id(result, "authority") == pytest.approx(authorities, rel=1e-11), way
        assert result.supersteps == 2 * rounds + 2, way


@pytest.mark.parametrize(("name", "rounds"), in_turn(NAMES, [0, 8, 1]))
def test_scores_are_those_of_matrix_products(name: str, rounds: int) -> None:
    check(BATTERY[name], rounds)


@RANDOM
@given(samples(), st.integers(0, 5))
def test_scores_on_random_graphs(sample: Sample, rounds: int) -> None:
    check(sample, rounds)


def test_scores_are_those_of_networkx() -> None:
    simple = nx.DiGraph(list(as_networkx(BATTERY["skewed"]).edges()))
    sources, targets = zip(*simple.edges, strict=True)
    hubs, authorities = nx.hits(simple, tol=1e-12)
    sample = Sample(list(sources), list(targets))
    for way, result in results_of(HITS(iterations=60), sample, runs_of(sample)):
        assert by_id(result, "hub") == pytest.approx(hubs, rel=1e-6, abs=1e-12), way
        assert by_id(result, "authority") == pytest.approx(authorities, rel=1e-6, abs=1e-12), way
