"""Betweenness against counts of walks in powers of the matrix, and against NetworkX where edges are simple."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, adjacency_of, as_networkx, by_id, drawn, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import Way, results_of

from sigps.apps import betweenness


def counted(sample: Sample, sources: list[Any] | None = None) -> dict[Any, float]:
    """Add up the shares of shortest paths that lead through each vertex; those are walks with the fewest edges."""
    one_way = adjacency_of(sample)
    step = np.minimum(1.0, one_way + one_way.T)  # parallel edges count once
    np.fill_diagonal(step, 0.0)
    n = len(step)
    distance, paths, walks = np.full((n, n), np.inf), np.zeros((n, n)), np.eye(n)
    for length in range(n):
        is_new = (walks > 0) & np.isinf(distance)
        distance[is_new], paths[is_new] = length, walks[is_new]
        walks = is_new * walks @ step
    ids = vertices_of(sample)
    scores = dict.fromkeys(ids, 0.0)
    for s in range(n) if sources is None else map(ids.index, sources):
        for t in np.flatnonzero(np.isfinite(distance[s])):
            is_between = distance[s] + distance[:, t] == distance[s, t]
            is_between[[s, t]] = False
            for v in np.flatnonzero(is_between):
                scores[ids[v]] += paths[s, v] * paths[v, t] / paths[s, t]
    return scores


def simple(sample: Sample) -> tuple[Sample, Any]:
    """Return the sample without parallel edges and loops, undirected, also as a NetworkX graph."""
    graph = nx.Graph(as_networkx(sample))
    graph.remove_edges_from(nx.selfloop_edges(graph))
    sources, targets = zip(*graph.edges, strict=True) if graph.edges else ((), ())
    return Sample(list(sources), list(targets), directed=False, vertices=list(graph)), graph


def check(sample: Sample, ways: list[Way] | None = None) -> None:
    expected = {v: score / 2 for v, score in counted(sample).items()}
    for way, result in results_of(partial(betweenness, normalised=False), sample, ways or runs_of(sample)):
        assert by_id(result, "centrality") == pytest.approx(expected, rel=1e-10, abs=1e-14), way
        assert result.reason == "converged", way


@pytest.mark.parametrize("name", [name for name in NAMES if name != "skewed"])
def test_centralities_are_shares_of_counted_paths(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_centralities_on_random_graphs(sample: Sample) -> None:
    check(sample)


@pytest.mark.parametrize(("name", "normalised"), in_turn(NAMES, [False, True]))
def test_centralities_are_those_of_networkx(name: str, normalised: bool) -> None:
    sample, graph = simple(BATTERY[name])
    expected = nx.betweenness_centrality(graph, normalized=normalised)
    for way, result in results_of(partial(betweenness, normalised=normalised), sample, runs_of(sample)):
        assert by_id(result, "centrality") == pytest.approx(expected, rel=1e-10, abs=1e-14), way


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("name", "seed"), [("grid", 0), ("grid", 5), ("two_components", 1), ("skewed", 2)])
def test_estimates_come_from_the_vertices_whose_turns_are_first(
    name: str, seed: int, normalised: bool
) -> None:
    sample, graph = simple(BATTERY[name])
    sources = drawn(sample, 3, seed)
    n = len(graph)
    halves = nx.betweenness_centrality_subset(graph, sources, list(graph))
    scale = (n - 1) * (2 / ((n - 1) * (n - 2)) if normalised else 1)
    expected = {v: scale * half / (2 if v in sources else 3) for v, half in halves.items()}
    chosen = {"samples": 3, "seed": seed, "normalised": normalised}
    for way, result in results_of(partial(betweenness, **chosen), sample, runs_of(sample)):
        assert by_id(result, "centrality") == pytest.approx(expected, rel=1e-10, abs=1e-14), way


@RANDOM
@given(samples(), st.integers(0, 12), st.integers(-(2**63), 2**63 - 1))
def test_estimates_agree_on_random_graphs(sample: Sample, asked: int, seed: int) -> None:
    n = len(vertices_of(sample))
    sources = drawn(sample, asked, seed)
    k = len(sources)
    shares = {v: (n - 1) / max(1, k - (v in sources)) / 2 for v in vertices_of(sample)}
    expected = {v: shares[v] * score for v, score in counted(sample, sources).items()}
    chosen = {"samples": asked, "seed": seed, "normalised": False}
    for way, result in results_of(partial(betweenness, **chosen), sample, runs_of(sample)):
        assert by_id(result, "centrality") == pytest.approx(expected, rel=1e-10, abs=1e-14), way


def test_as_many_samples_as_vertices_give_the_exact_form() -> None:
    sample = BATTERY["grid"]
    exact, sampled = (betweenness(sample.build(), samples=k, device="cpu") for k in (0, 20))
    assert exact["centrality"].tolist() == sampled["centrality"].tolist()


def test_the_mean_over_seeds_nears_the_exact_form_at_sources_and_elsewhere() -> None:
    graph = BATTERY["grid"].build()
    drawn_of = [drawn(BATTERY["grid"], 4, seed) for seed in range(150)]
    found = [betweenness(graph, samples=4, seed=s, device="cpu")["centrality"] for s in range(150)]
    estimates, is_source = (
        np.array(found),
        np.array([np.isin(np.arange(20), sources) for sources in drawn_of]),
    )
    exact = betweenness(graph, device="cpu")["centrality"]
    for where in (is_source, ~is_source):
        errors = (estimates - exact)[
            where
        ]  # over vertices too: a source's share is a quarter of 3 others' without it
        assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)
