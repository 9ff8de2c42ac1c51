"""Closeness against NetworkX, and its estimate against distances from the sources that it draws."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, RUNS, as_networkx, by_id, drawn, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps.apps import closeness


def estimated(sample: Sample, sources: list[Any]) -> dict[Any, float]:
    graph = nx.Graph(as_networkx(sample))
    n, k = len(graph), len(sources)
    away = [nx.single_source_shortest_path_length(graph, source) for source in sources]
    scores = {}
    for v in graph:
        known = [lengths[v] for lengths in away if v in lengths]
        others, total = n / k * len(known) - 1, n / k * sum(known)
        scores[v] = others / (n - 1) * others / total if total else 0.0
    return scores


def check(sample: Sample, ways: list[Way] | None = None) -> None:
    expected = nx.closeness_centrality(nx.Graph(as_networkx(sample)))
    for way, result in results_of(closeness, sample, ways or runs_of(sample)):
        assert by_id(result, "closeness") == pytest.approx(expected, rel=1e-12), way
        assert result.reason == "converged", way


@pytest.mark.parametrize("name", NAMES)
def test_closeness_is_that_of_networkx(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_closeness_on_random_graphs(sample: Sample) -> None:
    check(sample)


@RANDOM
@given(samples(), st.integers(0, 12), st.integers(-(2**63), 2**63 - 1))
def test_estimates_on_random_graphs(sample: Sample, asked: int, seed: int) -> None:
    n = len(vertices_of(sample))
    sources = drawn(sample, asked if 0 < asked < n else n, seed)
    expected = estimated(sample, sources)
    for way, result in results_of(partial(closeness, samples=asked, seed=seed), sample, runs_of(sample)):
        assert by_id(result, "closeness") == pytest.approx(expected, rel=1e-12), way


@pytest.mark.parametrize("seed", range(4))
def test_in_a_connected_graph_the_estimate_is_that_of_eppstein_and_wang(seed: int) -> None:
    sample = BATTERY["grid"]
    graph = nx.Graph(as_networkx(sample))
    n, k = 20, 6
    lengths = [nx.single_source_shortest_path_length(graph, s) for s in drawn(sample, k, seed)]
    expected = {v: 1 / sum(n * away[v] / (k * (n - 1)) for away in lengths) for v in graph}
    for way, result in results_of(partial(closeness, samples=k, seed=seed), sample, runs_of(sample)):
        assert by_id(result, "closeness") == pytest.approx(expected, rel=1e-12), way


def test_a_source_that_reaches_nobody_says_nothing() -> None:
    for way, result in results_of(partial(closeness, samples=2), BATTERY["only_isolated"], RUNS):
        assert result["closeness"].tolist() == [0.0, 0.0, 0.0], way
        assert result.supersteps == 1, way  # both searches are one run


def test_the_mean_distance_over_seeds_nears_the_true_one() -> None:
    graph = BATTERY["grid"].build()
    estimates = [1 / closeness(graph, samples=4, seed=s, device="cpu")["closeness"] for s in range(100)]
    exact = 1 / closeness(graph, device="cpu")["closeness"]
    error = np.std(estimates, axis=0) / np.sqrt(100)
    assert (np.abs(np.mean(estimates, axis=0) - exact) < 4 * error).all()
