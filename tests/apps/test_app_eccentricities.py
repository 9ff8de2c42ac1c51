"""Eccentricities against NetworkX in each component, and their estimates against distances from the sources drawn."""

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

from sigps import generate
from sigps.apps import eccentricities


def farthest(sample: Sample) -> dict[Any, int]:
    graph = nx.Graph(as_networkx(sample))
    found: dict[Any, int] = {}
    for component in nx.connected_components(graph):
        found |= nx.eccentricity(graph.subgraph(component))
    return found


def estimated(sample: Sample, sources: list[Any]) -> dict[Any, int]:
    graph = nx.Graph(as_networkx(sample))
    found = dict.fromkeys(graph, -1)
    for source in sources:
        for v, length in nx.single_source_shortest_path_length(graph, source).items():
            found[v] = max(found[v], length)
    return found


def check(function: Any, sample: Sample, expected: dict[Any, int], ways: list[Way] | None = None) -> None:
    reached = [found for found in expected.values() if found >= 0]
    for way, result in results_of(function, sample, ways or runs_of(sample)):
        assert by_id(result, "eccentricity") == expected, way
        assert result.aggregators["radius"] == min(reached), way
        assert result.aggregators["diameter"] == max(reached), way
        assert result.reason == "converged", way


@pytest.mark.parametrize("name", NAMES)
def test_eccentricities_are_those_of_networkx_in_each_component(name: str) -> None:
    sample = BATTERY[name]
    check(eccentricities, sample, farthest(sample), runs_of(sample))


@RANDOM
@given(samples())
def test_eccentricities_on_random_graphs(sample: Sample) -> None:
    check(eccentricities, sample, farthest(sample))


@RANDOM
@given(samples(), st.integers(0, 12), st.integers(-(2**63), 2**63 - 1))
def test_estimates_on_random_graphs(sample: Sample, asked: int, seed: int) -> None:
    n = len(vertices_of(sample))
    sources = drawn(sample, asked if 0 < asked < n else n, seed)
    check(partial(eccentricities, samples=asked, seed=seed), sample, estimated(sample, sources))


@pytest.mark.parametrize("seed", range(4))
def test_estimates_are_lower_bounds_and_the_diameter_is_not_below_half(seed: int) -> None:
    exact = farthest(BATTERY["grid"])
    result = eccentricities(BATTERY["grid"].build(), samples=2, seed=seed, device="cpu")
    assert all(found <= exact[v] for v, found in by_id(result, "eccentricity").items())
    assert result.aggregators["radius"] <= min(exact.values())
    assert max(exact.values()) / 2 <= result.aggregators["diameter"] <= max(exact.values())


def test_who_is_not_reached_counts_neither_for_the_radius_nor_for_the_diameter() -> None:
    sample = Sample([0, 1, 5, 6], [1, 2, 6, 7], directed=False, vertices=[9])
    sources = [drawn(sample, 1, seed)[0] for seed in range(20)]
    assert {v > 2 for v in sources} == {False, True}
    for seed, source in enumerate(sources):
        check(partial(eccentricities, samples=1, seed=seed), sample, estimated(sample, [source]), RUNS[:2])


def test_the_middle_of_a_long_path_is_nearest_to_both_ends() -> None:
    graph = generate("grid", rows=1, columns=150)
    result = eccentricities(graph, device="cpu")
    assert result["eccentricity"].tolist() == np.maximum(np.arange(150), 149 - np.arange(150)).tolist()
    assert (result.aggregators["radius"], result.aggregators["diameter"]) == (75, 149)
