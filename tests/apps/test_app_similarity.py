"""Similarity against NetworkX's link prediction, and against sets of neighbours."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import pytest
from app_judges import QUICK_RUNS, RANDOM, as_networkx, by_id, first_id, neighbours_of, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps import Graph, run_many
from sigps.apps import Similarity


def check(sample: Sample, source: Any, ways: list[Way]) -> None:
    near = neighbours_of(sample)
    graph = nx.Graph(as_networkx(sample))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    others = [v for v in graph if v != source]
    pairs = [(source, v) for v in others]
    common = {v: len(near[v] & near[source]) for v in others}
    least = {v: max(1, min(len(near[v]), len(near[source]))) for v in others}
    expected = {
        "common": common,
        "jaccard": {v: value for _, v, value in nx.jaccard_coefficient(graph, pairs)},
        "overlap": {v: common[v] / least[v] for v in others},
        "cosine": {
            v: common[v] / math.sqrt(len(near[v]) * len(near[source])) if common[v] else 0 for v in others
        },
        "adamic_adar": {v: value for _, v, value in nx.adamic_adar_index(graph, pairs)},
        "resource_allocation": {v: value for _, v, value in nx.resource_allocation_index(graph, pairs)},
    }
    for way, result in results_of(Similarity(source=source), sample, ways):
        for field, values in expected.items():
            assert by_id(result, field) == pytest.approx(values | {source: 0}, rel=1e-12), (way, field)
        assert result.reason == "converged"


@pytest.mark.parametrize("name", NAMES)
def test_measures_are_those_of_networkx(name: str) -> None:
    sample = BATTERY[name]
    check(sample, first_id(sample), runs_of(sample))


@RANDOM
@given(samples(), st.integers(0, 8))
def test_measures_on_random_graphs(sample: Sample, at: int) -> None:
    ids = vertices_of(sample)
    check(sample, ids[at % len(ids)], QUICK_RUNS)


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_pairs_are_many_sources(device: str) -> None:
    graph = Graph.from_edges([0, 0, 1, 1, 2, 4], [2, 3, 2, 3, 3, 3], directed=False)
    found = run_many(Similarity, graph, source=[0, 4, 2], device=device)
    assert [result.top("jaccard", 1)[0] for result in found] == [(1, 1.0), (0, 0.5), (3, 0.4)]
