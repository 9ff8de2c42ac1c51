"""Ego networks against a plain search and a look at every edge, and against NetworkX."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, RUNS, arcs_of, by_id, first_id, neighbours_of, runs_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import results_of

from sigps import Result
from sigps.apps import EgoNet


def found(sample: Sample, source: Any, hops: int) -> dict[Any, int]:
    """Search level by level; who is not found has -1."""
    neighbours = neighbours_of(sample)
    hop = dict.fromkeys(neighbours, -1) | {source: 0}
    level = {source}
    for step in range(1, hops + 1):
        level = {w for v in level for w in neighbours[v] if hop[w] < 0}
        hop |= dict.fromkeys(level, step)
    return hop


def edges_of(result: Result) -> list[tuple[Any, Any, bool]]:
    fields = result.edges.sources, result.edges.targets, result.edges["inside"]
    return sorted(zip(*(field.tolist() for field in fields), strict=True))


def check(sample: Sample, hops: int) -> None:
    source = first_id(sample)
    hop = found(sample, source, hops)
    ends = [sorted(pair) for pair in zip(sample.sources, sample.targets, strict=True)]
    inside = sorted((low, high, hop[low] >= 0 and hop[high] >= 0) for low, high in ends)
    graph = nx.MultiGraph([(s, t) for s, t, _ in arcs_of(sample, directed=True)])
    graph.add_node(source)
    network = nx.ego_graph(graph, source, radius=hops)
    for way, result in results_of(EgoNet(source=source, hops=hops), sample, runs_of(sample)):
        assert by_id(result, "hop") == hop, way
        assert edges_of(result) == inside, way
        totals = {"vertices": len(network), "edges": network.number_of_edges()}
        assert result.aggregators == totals, way
        assert result.supersteps <= hops + 2, way


@pytest.mark.parametrize(("name", "hops"), in_turn(NAMES, [0, 3, 1]))
def test_the_network_is_that_of_a_search(name: str, hops: int) -> None:
    check(BATTERY[name], hops)


@RANDOM
@given(samples(), st.integers(0, 4))
def test_networks_in_random_graphs(sample: Sample, hops: int) -> None:
    check(sample, hops)


def test_an_edge_along_the_rim_is_inside_and_one_that_leaves_it_is_not() -> None:
    sample = Sample([0, 0, 1, 1, 2, 3], [1, 2, 2, 3, 4, 4], directed=False)
    check(sample, 1)
    (_, result), *_ = results_of(EgoNet(source=0), sample, RUNS[:1])
    assert [edge[:2] for edge in edges_of(result) if edge[2]] == [(0, 1), (0, 2), (1, 2)]
