"""Edge betweenness against NetworkX, of the same graph without loops and repeats."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, arcs_of, as_networkx, drawn, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps import Graph, Result
from sigps.apps import edge_betweenness

WAYS = [Way(), Way(device="python"), Way(2, partitioner="hash"), Way(3, partitioner="vertices")]


def counted(sample: Sample, sources: list[Any] | None, normalised: bool) -> dict[Any, float]:
    """Return NetworkX's centrality of each pair of vertices with an edge."""
    graph = (nx.DiGraph if sample.directed else nx.Graph)(as_networkx(sample))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    n = len(graph)
    if sources is None:
        found = nx.edge_betweenness_centrality(graph, normalized=normalised, backend="networkx")
    else:
        subset = nx.edge_betweenness_centrality_subset(graph, sources, list(graph))
        halves = 1 if sample.directed or not normalised else 2
        scale = n / len(sources) * (halves / max(1, n * (n - 1)) if normalised else 1)
        found = {pair: scale * value for pair, value in subset.items()}
    both = found if sample.directed else found | {(v, u): value for (u, v), value in found.items()}
    return both | {(v, v): 0.0 for v in graph}


def check(sample: Sample, ways: list[Way], sources: list[Any] | None = None, **chosen: Any) -> None:
    normalised = chosen.setdefault("normalised", True)
    expected = counted(sample, sources, normalised)
    arcs = sorted((s, t) for s, t, _ in arcs_of(sample) if sample.directed or s <= t)
    most = {v: max((expected[a] for a in arcs if v in a), default=0.0) for v in vertices_of(sample)}
    for way, result in results_of(partial(edge_betweenness, **chosen), sample, ways):
        edges = result.edges
        assert list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)) == arcs, way
        assert edges["centrality"] == pytest.approx([expected[arc] for arc in arcs], rel=1e-10, abs=1e-14), (
            way
        )
        assert result["most"] == pytest.approx(list(most.values()), rel=1e-10, abs=1e-14), way
        assert result.reason == "converged", way


@pytest.mark.parametrize("name", NAMES)
def test_centralities_are_those_of_networkx(name: str) -> None:
    check(BATTERY[name], WAYS if name != "skewed" else WAYS[::2])
    check(BATTERY[name], WAYS[:1], normalised=False)


@RANDOM
@given(samples(), st.integers(0, 12), st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_estimates_on_random_graphs(sample: Sample, asked: int, seed: int, normalised: bool) -> None:
    sources = drawn(sample, asked, seed)
    check(sample, WAYS[1:3], sources, samples=asked, seed=seed, normalised=normalised)


def test_many_sources_are_searched_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = BATTERY["grid"].build()
    whole = edge_betweenness(graph, device="cpu")
    monkeypatch.setattr("sigps.apps.driving.MOST_VALUES", 61)
    parts = edge_betweenness(graph, device="cpu")
    assert parts.edges["centrality"].tolist() == whole.edges["centrality"].tolist()
    assert parts.supersteps == whole.supersteps


def test_the_bridge_between_two_cliques_has_the_most() -> None:
    edges = [(a + k, b + k) for k in (0, 6) for a in range(6) for b in range(a)]
    graph = Graph.from_edges(*zip(*edges, (5, 6), strict=True), directed=False)
    found: Result = edge_betweenness(graph, normalised=False)
    table = found.edges.to_pandas().nlargest(1, "centrality")
    assert table.to_numpy().tolist() == [[5, 6, 36.0]]
