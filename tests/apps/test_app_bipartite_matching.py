"""Bipartite matchings: by their properties, and how often each vertex is chosen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import pytest
from app_judges import DEVICES, RANDOM, arcs_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from ways import assert_same, results_of

from sigps import run
from sigps.apps import BipartiteMatching


def check(sample: Sample) -> None:
    arcs = [(s, t) for s, t, _ in arcs_of(sample)]
    lefts = {s for s, _ in arcs}
    graph = nx.Graph()
    graph.add_nodes_from(vertices_of(sample))
    graph.add_edges_from((s, t) for s, t in arcs if t not in lefts)
    nobody = None if isinstance(next(iter(graph)), str) else -1
    results = results_of(BipartiteMatching(), sample, runs_of(sample))
    for way, result in results:
        mates = by_id(result, "mate")
        matched = {v: mate for v, mate in mates.items() if mates.get(mate) == v}
        assert nx.is_maximal_matching(graph, matched), way
        assert {mates[v] for v in mates.keys() - matched.keys()} <= {nobody}, way
        assert result.reason == "converged", way
        assert_same(result, results[0][1], exact=True)  # a seed gives one matching


@pytest.mark.parametrize("name", NAMES)
def test_mates_are_neighbours_and_none_can_be_added(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_matchings_of_graphs_with_edges_between_left_vertices(sample: Sample) -> None:
    check(sample)


@RANDOM
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(20, 26)), min_size=1, max_size=40))
def test_matchings_of_bipartite_graphs(edges: list[tuple[int, int]]) -> None:
    lefts, rights = zip(*edges, strict=True)
    check(Sample(list(lefts), list(rights)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("is_left_alone", [False, True])
def test_each_neighbour_is_chosen_as_often(is_left_alone: bool, device: Any) -> None:
    """300 stars of five: 600 if by chance; a wrong choice by ids would take one of them always."""
    many = [(5 * k + i, 10**6 + k) for k in range(300) for i in range(5)]
    edges = [(t, s + 2 * 10**6) for s, t in many] if is_left_alone else many
    lefts, rights = zip(*edges, strict=True)
    counts: Counter[int] = Counter()
    for seed in range(2):
        result = run(BipartiteMatching(), Sample(list(lefts), list(rights)).build(), device=device, seed=seed)
        alone = result.ids < 2 * 10**6 if is_left_alone else result.ids >= 10**6
        counts.update((result["mate"][alone & (result.ids >= 10**6)] % 5).tolist())
    assert counts.total() == 600
    assert chisquare([counts[i] for i in range(5)]).pvalue > 0.001


@pytest.mark.parametrize("device", DEVICES)
def test_a_crowd_before_one_is_denied_and_goes_to_sleep(device: Any) -> None:
    """Seven ask one: cycle 0 matches one of them; the others ask once more, and nobody answers."""
    graph = Sample(list(range(7)), [9] * 7).build()
    result = run(BipartiteMatching(), graph, device=device, seed=3)
    assert sorted(result["mate"].tolist()) == [-1] * 6 + [result["mate"][-1], 9]
    assert result.supersteps == 6
