"""Measures that look from all sources: against walks in powers of the matrix, distances, and NetworkX."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, adjacency_of, as_networkx, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from ways import results_of

from sigps.apps import Dependencies, Distances, betweenness, closeness, eccentricities


def walks_of(sample: Sample) -> tuple[Any, Any]:
    """Return distances, [n, n], and the numbers of shortest paths, which are the walks with the fewest edges."""
    one_way = adjacency_of(sample)
    step = np.minimum(1.0, one_way + one_way.T)  # parallel edges count once
    np.fill_diagonal(step, 0.0)
    n = len(step)
    distance, paths, walks = np.full((n, n), np.inf), np.zeros((n, n)), np.eye(n)
    for length in range(n):
        is_new = (walks > 0) & np.isinf(distance)
        distance[is_new], paths[is_new] = length, walks[is_new]
        walks = is_new * walks @ step
    return distance, paths


def dependencies_on(s: int, distance: Any, paths: Any) -> Any:
    """Return, of each vertex v, the sum over targets of the share of the paths from s that lead through v."""
    n = len(distance)
    found = np.zeros(n)
    for t in np.flatnonzero(np.isfinite(distance[s])):
        is_between = distance[s] + distance[:, t] == distance[s, t]
        is_between[[s, t]] = False
        for v in np.flatnonzero(is_between):
            found[v] += paths[s, v] * paths[v, t] / paths[s, t]
    return found


def check(sample: Sample) -> None:
    distance, paths = walks_of(sample)
    ids = vertices_of(sample)
    shares = np.array([dependencies_on(s, distance, paths) for s in range(len(ids))])
    source = len(ids) // 2
    for way, result in results_of(Dependencies(source=ids[source]), sample, runs_of(sample)):
        assert by_id(result, "dependency") == pytest.approx(
            dict(zip(ids, shares[source], strict=True)), rel=1e-10, abs=1e-13
        ), way
        assert result.reason == "converged", way
    for way, result in results_of(Distances(source=ids[source]), sample, runs_of(sample)):
        expected = np.where(np.isfinite(distance[source]), distance[source], -1.0)
        assert list(by_id(result, "distance").values()) == expected.astype(int).tolist(), way
    graph = sample.build()
    assert betweenness(graph, normalised=False)["centrality"] == pytest.approx(
        shares.sum(axis=0) / 2, rel=1e-10, abs=1e-13
    )
    farthest = np.where(np.isfinite(distance), distance, -1).max(axis=0)
    assert eccentricities(graph)["eccentricity"].tolist() == farthest.astype(int).tolist()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "skewed"])
def test_measures_are_those_of_counted_walks(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_measures_on_random_graphs(sample: Sample) -> None:
    check(sample)


@pytest.mark.parametrize("name", NAMES)
def test_measures_are_those_of_networkx_where_edges_are_simple(name: str) -> None:
    graph = nx.Graph(as_networkx(BATTERY[name]))
    graph.remove_edges_from(nx.selfloop_edges(graph))
    sources, targets = zip(*graph.edges, strict=True) if graph.edges else ((), ())
    built = Sample(list(sources), list(targets), directed=False, vertices=list(graph)).build()
    ids = sorted(graph)
    between, near = nx.betweenness_centrality(graph), nx.closeness_centrality(graph)
    assert betweenness(built)["centrality"] == pytest.approx([between[v] for v in ids], rel=1e-10, abs=1e-14)
    assert closeness(built)["closeness"] == pytest.approx([near[v] for v in ids], rel=1e-12)


def test_some_sources_stand_for_all() -> None:
    graph = BATTERY["star_out"].build()
    assert betweenness(graph, sources=[1, 2], normalised=False)["centrality"][0] == 9 / 2 / 2 * 2 * 8
    assert betweenness(graph, sources=[0, 1, 2], normalised=False)["centrality"][0] == 9 / 2 / 2 * 2 * 8
    assert eccentricities(graph, sources=[0])["eccentricity"].tolist() == [0] + [1] * 9
    assert closeness(graph, sources=np.array([0]))["closeness"][1] == pytest.approx(9 * 9 / (9 * 10))
