"""Longest paths against NetworkX, and against the recursion of the definition."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import DEVICES, RANDOM, arcs_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from hypothesis import given
from hypothesis import strategies as st
from ways import results_of

from sigps import generate, run
from sigps.apps import LongestPath


def graph_of(sample: Sample) -> Any:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(vertices_of(sample))
    graph.add_weighted_edges_from(arcs_of(sample))
    return graph


def behind_cycles(graph: Any) -> set[Any]:
    """Return the vertices that some cycle leads to, those on it among them."""
    on_cycles = {v for c in nx.strongly_connected_components(graph) for v in c if len(c) > 1}
    on_cycles |= set(nx.nodes_with_selfloops(graph))
    return on_cycles.union(*(nx.descendants(graph, v) for v in on_cycles))


def check(sample: Sample) -> None:
    graph = graph_of(sample)
    nobody = None if isinstance(next(iter(graph)), str) else -1
    endless = behind_cycles(graph)
    lengths = dict.fromkeys(endless, float("inf"))
    previous = dict.fromkeys(endless, nobody)
    rest = graph.subgraph(set(graph) - endless)
    for v in nx.topological_sort(rest):
        before = [(-(lengths[u] + w), u) for u, _, w in rest.in_edges(v, data="weight") if lengths[u] + w > 0]
        longest, last = min(before, default=(0.0, nobody))
        lengths[v], previous[v] = -longest, last
    hops = len(list(nx.topological_generations(rest))) - 1
    for way, result in results_of(LongestPath(), sample, runs_of(sample)):
        assert by_id(result, "length") == lengths, way  # sums of one order: exact
        assert by_id(result, "previous") == previous, way
        assert result.aggregators["is_acyclic"] == (not endless), way
        assert {v for v, count in by_id(result, "waiting").items() if count > 0} == endless, way
        if not endless:
            assert result.supersteps == hops + 1, way
            simple = nx.DiGraph()
            simple.add_nodes_from(graph)
            for u, v, w in graph.edges(data="weight"):
                simple.add_edge(u, v, weight=max(w, simple.get_edge_data(u, v, {"weight": w})["weight"]))
            assert max(result["length"]) == nx.dag_longest_path_length(simple), way


@pytest.mark.parametrize("name", NAMES)
def test_lengths_are_those_of_the_recursion_and_of_networkx(name: str) -> None:
    check(BATTERY[name])


VERTEX = st.integers(0, 8)
WEIGHTS = st.sampled_from([-2.0, 0.0, 0.5, 1.0, 1.0, 3.0])


@RANDOM
@given(st.lists(st.tuples(VERTEX, VERTEX, WEIGHTS), max_size=24), st.permutations(range(9)), st.booleans())
def test_lengths_on_random_graphs(edges: list[Any], ids: list[int], is_acyclic: bool) -> None:
    """Edges of acyclic graphs go up, in an order of their own."""
    if is_acyclic:
        edges = [(min(s, t), max(s, t), w) for s, t, w in edges if s != t]
    sources, targets = [ids[s] for s, _, _ in edges], [ids[t] for _, t, _ in edges]
    check(Sample(sources, targets, [w for _, _, w in edges], vertices=list(range(9))))


@pytest.mark.parametrize("device", DEVICES)
def test_a_cycle_at_the_end_of_a_path_leaves_the_path_its_lengths(device: Any) -> None:
    graph = Sample([0, 1, 2, 3, 4], [1, 2, 3, 2, 5], [2.0, 3.0, 1.0, 1.0, 7.0]).build()
    result = run(LongestPath(), graph, device=device)
    inf = float("inf")
    assert result["length"].tolist() == [0.0, 2.0, inf, inf, 0.0, 7.0]
    assert result["previous"].tolist() == [-1, 0, -1, -1, -1, 4]
    assert not result.aggregators["is_acyclic"]


def test_an_undirected_edge_is_a_cycle() -> None:
    result = run(LongestPath(), generate("grid", rows=2, columns=2), device="cpu")
    assert not result.aggregators["is_acyclic"]
