"""Semi-clusters against the definition, with sets and sorting, and scores against NetworkX."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, arcs_of, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from ways import assert_same, results_of

from sigps.apps import SemiClustering
from sigps.apps.semi_clustering import KEEP, NOBODY, PENALTY, SIZE


def graph_of(sample: Sample) -> Any:
    """Return the weights between each two, by the numbers that compute() sees of ids that are strings."""
    numbers = {v: i if isinstance(v, str) else v for i, v in enumerate(vertices_of(sample))}
    graph = nx.Graph()
    graph.add_nodes_from(numbers.values())
    for s, t, w in arcs_of(sample, directed=True):
        if s != t:
            before = graph.get_edge_data(numbers[s], numbers[t], {"weight": 0.0})["weight"]
            graph.add_edge(numbers[s], numbers[t], weight=before + w)
    return graph


def score_of(graph: Any, group: tuple[int, ...]) -> float:
    if len(group) == 1:
        return 1.0
    inside = graph.subgraph(group).size("weight")
    boundary = nx.cut_size(graph, group, weight="weight")
    return (inside - PENALTY * boundary) / (len(group) * (len(group) - 1) / 2)


def grown(graph: Any, iterations: int) -> dict[int, list[tuple[int, ...]]]:
    """Return the groups that each vertex keeps, best first, by the definition."""

    def first(groups: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
        places = {g: (*g, *[NOBODY] * (SIZE - len(g))) for g in groups}
        return sorted(groups, key=lambda g: (-score_of(graph, g), places[g]))[:KEEP]

    best = {v: [(v,)] for v in graph}
    sent = {v: [(v,)] for v in graph}
    for _ in range(iterations):
        passed = {}
        for v in graph:
            came = {group for u in graph[v] for group in sent[u]}
            joined = {tuple(sorted((*g, v))) for g in came if v not in g and len(g) < SIZE}
            passed[v] = first(came | joined)
            best[v] = first({*best[v]} | {g for g in came | joined if v in g})
        sent = passed
    return best


def check(sample: Sample, iterations: int = 5) -> None:
    weights = [
        round(8 * w) / 4 for w in sample.weights or [1.0] * len(sample.sources)
    ]  # their sums are exact
    sample = Sample(sample.sources, sample.targets, weights, sample.directed, sample.vertices)
    graph = graph_of(sample)
    expected = grown(graph, iterations)
    results = results_of(SemiClustering(iterations=iterations), sample, runs_of(sample))
    for way, result in results:
        assert_same(result, results[0][1], exact=True)
        rows = zip(expected, result["best.members"].tolist(), result["best.score"].tolist(), strict=True)
        for v, members, scores in rows:
            parts = [members[k : k + SIZE] for k in range(0, KEEP * SIZE, SIZE)]
            groups = [tuple(g[: g.index(NOBODY)] if NOBODY in g else g) for g in parts]
            assert [g for g in groups if g] == expected[v], (way, v)
            assert scores[: len(expected[v])] == pytest.approx([score_of(graph, g) for g in expected[v]])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "skewed"])
def test_groups_are_those_of_the_definition(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_groups_of_random_graphs(sample: Sample) -> None:
    check(sample)


def test_two_heavy_triangles_are_the_best_groups_of_their_vertices() -> None:
    edges = [(1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (5, 6)]
    weights = [3.0, 3.0, 3.0, 1.0, 3.0, 3.0, 3.0]
    sample = Sample(*map(list, zip(*edges, strict=True)), weights, directed=False)
    for way, result in results_of(SemiClustering(), sample, runs_of(sample)):
        best = result["best.members"][:, :SIZE].tolist()
        assert best == [[1, 2, 3, NOBODY]] * 3 + [[4, 5, 6, NOBODY]] * 3, way
        assert result["best.score"][:, 0].tolist() == pytest.approx([(9 - PENALTY) / 3] * 6), way
