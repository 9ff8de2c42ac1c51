"""Biconnected components, articulation points and bridges against those of NetworkX."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import QUICK_RUNS, RANDOM, RUNS, as_networkx, by_id
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from ways import Way, results_of

from sigps import Graph
from sigps.apps import biconnected


def check(sample: Sample, ways: list[Way]) -> None:
    graph = nx.Graph(as_networkx(sample))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    expected = {frozenset(map(frozenset, edges)) for edges in nx.biconnected_component_edges(graph)}
    bridges = {frozenset(edge) for edge in nx.bridges(graph)}
    for way, result in results_of(biconnected, sample, ways):
        block, level, parent = (by_id(result, field) for field in ("block", "level", "parent"))
        found: dict[int, set[Any]] = {}
        for edge in graph.edges:
            found.setdefault(block[max(edge, key=level.__getitem__)], set()).add(frozenset(edge))
        assert {frozenset(edges) for edges in found.values()} == expected, way
        assert sorted(found) == list(range(result.aggregators["blocks"])) == list(range(len(expected))), way
        first_seen = [number for v, number in block.items() if parent[v] != v]
        assert list(dict.fromkeys(first_seen)) == sorted(found), way
        assert all((number == -1) == (parent[v] == v) for v, number in block.items()), way
        cuts = {v for v, cut in by_id(result, "is_articulation").items() if cut}
        assert cuts == set(nx.articulation_points(graph)), way
        found_bridges = {frozenset((v, parent[v])) for v, cut in by_id(result, "is_bridge").items() if cut}
        assert found_bridges == bridges, way


@pytest.mark.parametrize("name", NAMES)
def test_blocks_are_those_of_networkx(name: str) -> None:
    several = {"grid": RUNS, "skewed": [Way(), Way(2, partitioner="hash")]}
    check(BATTERY[name], several.get(name, QUICK_RUNS))


@RANDOM
@given(samples())
def test_blocks_of_random_graphs(sample: Sample) -> None:
    check(sample, QUICK_RUNS)


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize("edges", [25, 40, 60])
def test_blocks_of_sparse_graphs(edges: int, device: Any) -> None:
    drawn = nx.gnm_random_graph(40, edges, seed=edges)
    sources, targets = (list(ends) for ends in zip(*drawn.edges, strict=True))
    check(Sample(sources, targets, directed=False), [Way(device=device), Way(3, device=device)])


def test_blocks_of_vertices_with_names() -> None:
    graph = Graph.from_edges(["a", "b", "c", "c"], ["b", "c", "a", "d"], directed=False)
    result = biconnected(graph, device="python")
    assert by_id(result, "block") == {"a": -1, "b": 0, "c": 0, "d": 1}
    assert by_id(result, "parent") == {"a": "a", "b": "a", "c": "a", "d": "c"}
