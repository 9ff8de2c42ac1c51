"""Harmonic closeness against NetworkX, and its estimate against distances from the sources that it draws."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import pytest
from app_judges import QUICK_RUNS, RANDOM, as_networkx, by_id, drawn, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps.apps import harmonic


def check(sample: Sample, sources: list[Any], ways: list[Way], **given: Any) -> None:
    graph = nx.Graph(as_networkx(sample))
    n = len(graph)
    sums = nx.harmonic_centrality(graph, sources=sources)
    counts = {v: max(1, len(sources) - (v in sources)) for v in graph}
    for normalised in (True, False):
        scale = 1 if normalised else n - 1
        expected = {v: scale * sums[v] / counts[v] for v in graph}
        for way, result in results_of(partial(harmonic, normalised=normalised, **given), sample, ways):
            assert by_id(result, "harmonic") == pytest.approx(expected, rel=1e-12), way
            assert result.reason == "converged", way


@pytest.mark.parametrize("name", NAMES)
def test_harmonic_closeness_is_that_of_networkx(name: str) -> None:
    sample = BATTERY[name]
    check(sample, vertices_of(sample), runs_of(sample) if name != "skewed" else [Way(2)])


def test_harmonic_closeness_of_all_sources_is_not_scaled() -> None:
    sample = BATTERY["grid"]
    ((_, result),) = results_of(partial(harmonic, normalised=False), sample, [Way()])
    assert by_id(result, "harmonic") == pytest.approx(nx.harmonic_centrality(as_networkx(sample)))


@RANDOM
@given(samples(), st.integers(0, 12), st.integers(-(2**63), 2**63 - 1))
def test_estimates_on_random_graphs(sample: Sample, asked: int, seed: int) -> None:
    n = len(vertices_of(sample))
    sources = drawn(sample, asked if 0 < asked < n else n, seed)
    check(sample, sources, QUICK_RUNS, samples=asked, seed=seed)
