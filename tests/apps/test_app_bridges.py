"""Bridges against those of NetworkX, and trees by their properties."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import QUICK_RUNS, RANDOM, as_networkx, by_id, runs_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps.apps import Bridges


def check(sample: Sample, ways: list[Way], seed: int = 0) -> None:
    graph = nx.Graph(as_networkx(sample))
    expected = {frozenset(pair) for pair in nx.bridges(graph)}
    roots = {v: min(part) for part in nx.connected_components(graph) for v in part}
    for way, result in results_of(Bridges(seed=seed), sample, ways):
        parents, is_bridge = by_id(result, "parent"), by_id(result, "is_bridge")
        found = [frozenset((v, parents[v])) for v in graph if is_bridge[v]]
        assert len(found) == len(expected), way
        assert set(found) == expected, way
        assert by_id(result, "root") == roots, way
        for v, parent in parents.items():
            level = nx.shortest_path_length(graph, roots[v], v)
            assert by_id(result, "level")[v] == level, way
            before = [u for u in graph[v] if nx.shortest_path_length(graph, roots[v], u) == level - 1]
            assert parent == min(before, default=None), way
        assert result.reason == "converged", way


@pytest.mark.parametrize("name", NAMES)
def test_bridges_are_those_of_networkx(name: str) -> None:
    check(BATTERY[name], runs_of(BATTERY[name]) if name != "skewed" else [Way(), Way(2, partitioner="hash")])


@RANDOM
@given(samples(), st.integers(-(2**63), 2**63 - 1))
def test_bridges_of_random_graphs(sample: Sample, seed: int) -> None:
    check(sample, QUICK_RUNS, seed)


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_bridges_between_rings(device: Any) -> None:
    ring = [(8 * k + v, 8 * k + (v + 1) % 8) for k in range(5) for v in range(8)]
    links = [(8 * k, 8 * k + 13) for k in range(4)]
    sources, targets = (list(ends) for ends in zip(*ring, *links, strict=True))
    check(Sample(sources, targets, directed=False), [Way(device=device), Way(3, device=device)])
