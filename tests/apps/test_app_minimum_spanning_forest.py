"""Minimum spanning forests: against NetworkX, and edge by edge against taking them in their order."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import DEVICES, RANDOM, arcs_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph
from ways import Way, results_of

from sigps import Graph, Result, generate, run
from sigps.apps import MinimumSpanningForest


def undirected(sample: Sample) -> Any:
    graph = nx.MultiGraph()
    graph.add_nodes_from(vertices_of(sample))
    graph.add_weighted_edges_from(arcs_of(sample, directed=True))
    return graph


def taken_in_order(sample: Sample) -> set[tuple[Any, Any, float]]:
    """Go through the edges by weight and then by their ends; take each that connects two trees."""
    graph = nx.Graph()
    graph.add_nodes_from(vertices_of(sample))
    links = {(weight, min(s, t), max(s, t)) for s, t, weight in arcs_of(sample) if s != t}
    for weight, low, high in sorted(links):
        if not nx.has_path(graph, low, high):
            graph.add_edge(low, high, weight=weight)
    return {(min(u, v), max(u, v), weight) for u, v, weight in graph.edges(data="weight")}


def kept(result: Result) -> list[tuple[Any, Any, float]]:
    """Return the edges that vertices keep, and check that those are not roots."""
    columns = [by_id(result, name) for name in ("low", "high", "weight")]
    edges = {v: tuple(column[v] for column in columns) for v in columns[0]}
    nothing = (None, None, 0.0)
    roots = {v for v, root in by_id(result, "component").items() if v == root}
    assert {v for v, edge in edges.items() if edge == nothing} == roots
    return [edge for v, edge in edges.items() if v not in roots]


def check(sample: Sample, ways: list[Way] | None = None) -> None:
    graph = undirected(sample)
    referee = list(nx.minimum_spanning_edges(graph, keys=False, data=True))
    expected = taken_in_order(sample)
    roots = None
    for way, result in results_of(MinimumSpanningForest(), sample, ways or runs_of(sample)):
        edges = kept(result)
        assert len(edges) == len(set(edges)) == result.aggregators["edges"] == len(referee), way
        assert set(edges) == expected, way
        assert nx.is_forest(nx.Graph([(low, high) for low, high, _ in edges] or [(0, 1)])), way
        total = math.fsum(data["weight"] for _, _, data in referee)
        assert result.aggregators["total"] == pytest.approx(total, rel=1e-12), way
        components = by_id(result, "component")
        roots = roots or components
        assert components == roots, way
        for component in nx.connected_components(graph):
            assert {components[v] for v in component} <= component, way
            assert len({components[v] for v in component}) == 1, way
        assert result["is_inner"].all(), way
        assert result.reason == "converged", way


@pytest.mark.parametrize("name", NAMES)
def test_forests_are_those_of_networkx(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_forests_of_random_graphs(sample: Sample) -> None:
    check(sample)


@RANDOM
@given(
    st.lists(
        st.tuples(st.integers(-8, 8), st.integers(-8, 8), st.sampled_from([-2.5, -1.0, 0.0, 1.0, 1e300])),
        min_size=1,
        max_size=60,
    )
)
def test_weights_of_any_sign_tie_and_may_be_huge(edges: list[tuple[int, int, float]]) -> None:
    sources, targets, weights = (list(column) for column in zip(*edges, strict=True))
    check(Sample(sources, targets, weights, directed=False))


def test_a_vertex_whose_id_is_that_of_no_vertex() -> None:
    check(Sample([-1, -1, -1, 0], [-1, 0, 1, 2], directed=False))
    check(Sample([-1, -2], [-1, -1], directed=False, vertices=[0]))


def test_the_lightest_of_parallel_edges_is_kept_whichever_way_it_leads() -> None:
    graph = Graph.from_edges([0, 1, 0, 1], [1, 0, 1, 1], weights=[3.0, 1.0, 2.0, 0.5])
    result = run(MinimumSpanningForest(), graph, device="python")
    assert kept(result) == [(0, 1, 1.0)]
    assert result["component"].tolist() == [0, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_how_many_supersteps_it_takes(device: Any) -> None:
    alone, pair = BATTERY["only_isolated"], Sample([0], [1], directed=False)
    tail = BATTERY[
        "path_undirected"
    ]  # the last points 1, 2, 4 and 5 vertices ahead, to a root that does not answer
    look_and_pick, end = 2, 2
    for sample, supersteps in [
        (alone, look_and_pick + 1),
        (pair, look_and_pick + 4 + look_and_pick + end),
        (tail, look_and_pick + 1 + 3 * 2 + 2 + look_and_pick + end),
    ]:
        assert run(MinimumSpanningForest(), sample.build(), device=device).supersteps == supersteps


@pytest.mark.parametrize("distinct", [2, 10**6])
@pytest.mark.parametrize(
    "graph",
    [
        generate("rmat", scale=10, seed=3),
        generate("erdos_renyi", n=2000, m=2500, seed=3),
        generate("grid", rows=1, columns=3000),
        Graph.from_edges(np.zeros(3000, int), np.arange(1, 3001), directed=False),
    ],
    ids=["skewed", "sparse", "path", "star"],
)
def test_larger_forests_weigh_what_those_of_scipy_do(graph: Graph, distinct: int) -> None:
    arcs = graph.to_scipy().tocoo()
    ahead = arcs.row < arcs.col
    weights = np.random.default_rng(7).integers(1, distinct, ahead.sum(), endpoint=True).astype(float)
    weighted = Graph.from_edges(arcs.row[ahead], arcs.col[ahead], weights, directed=False)
    expected = csgraph.minimum_spanning_tree(weighted.to_scipy())
    result = run(MinimumSpanningForest(), weighted, device="cpu")
    assert (result.aggregators["total"], result.aggregators["edges"]) == (expected.sum(), expected.nnz)
    assert result["weight"].sum() == expected.sum()
    assert result.supersteps < 120
