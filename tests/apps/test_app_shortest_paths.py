"""The k shortest paths against all paths that visit no vertex twice, in order, from NetworkX."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import QUICK_RUNS, RANDOM, RUNS, as_networkx, first_id, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps import ConfigError, Graph, GraphError, Result
from sigps.apps import shortest_paths

Path = tuple[float, list[Any], list[float]]


def all_paths(sample: Sample, source: Any, target: Any, weight: str | None = "weight") -> list[Path]:
    """Return length, vertices and distances of each path, the equally long by edges, then from the target back."""
    graph = as_networkx(sample)
    shortest = nx.DiGraph() if sample.directed else nx.Graph()
    shortest.add_nodes_from(graph)
    for u, v, length in graph.edges(data="weight"):
        if not shortest.has_edge(u, v) or length < shortest[u][v]["weight"]:
            shortest.add_edge(u, v, weight=length)
    found = []
    for path in [[source]] if source == target else nx.all_simple_paths(shortest, source, target):
        lengths = [shortest[u][v]["weight"] if weight else 1 for u, v in pairwise(path)]
        found.append((float(sum(lengths)), path, np.cumsum([0.0, *lengths]).tolist()))
    return sorted(found, key=lambda one: (one[0], len(one[1]), one[1][::-1]))


def paths_of(result: Result) -> list[Path]:
    """Return the same of a result."""
    found = []
    for number, length in enumerate(result.aggregators["length"].tolist()):
        rows = result["path"] == number
        found.append((length, result.ids[rows].tolist(), result["distance"][rows].tolist()))
    assert sum(len(path) for _, path, _ in found) == len(result.ids)
    assert result["path"].tolist() == sorted(result["path"].tolist())
    return found


def check(sample: Sample, source: Any, target: Any, k: int, ways: list[Way] = QUICK_RUNS) -> None:
    for weight in ("weight", None):
        expected = all_paths(sample, source, target, weight)[:k]
        program = partial(shortest_paths, source=source, target=target, k=k, weight=weight)
        for way, result in results_of(program, sample, ways):
            assert paths_of(result) == expected, way
            assert result.reason == "converged", way


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("empty", "skewed", "grid")])
def test_paths_of_the_battery(name: str) -> None:
    sample = BATTERY[name]
    for target in {*vertices_of(sample)[:1], *vertices_of(sample)[-1:]}:
        check(sample, first_id(sample), target, k=7)


@pytest.mark.parametrize("k", [1, 2, 40, 1000])
def test_paths_across_a_grid(k: int) -> None:
    check(BATTERY["grid"], 0, 19, k, {40: RUNS, 1000: [Way()]}.get(k, QUICK_RUNS))


@RANDOM
@given(samples(), st.data())
def test_paths_of_random_graphs(sample: Sample, data: st.DataObject) -> None:
    if ids := vertices_of(sample):
        weights = sample.weights and [round(10 * weight) for weight in sample.weights[:14]]  # sums are exact
        few = Sample(sample.sources[:14], sample.targets[:14], weights, sample.directed, ids)
        check(
            few,
            data.draw(st.sampled_from(ids)),
            data.draw(st.sampled_from(ids)),
            data.draw(st.integers(1, 30)),
        )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_paths_of_small_dense_graphs_with_ties_and_lengths_of_0(directed: bool, seed: int) -> None:
    """Many ways are equally long, and the tree leads back into most of what they keep."""
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, 7, (2, 16)).tolist()
    sample = Sample(
        *ends, draw.choice([0, 0, 1, 1, 2, 5], 16).astype(float).tolist(), directed, list(range(7))
    )
    check(sample, 0, 6, 1000, [Way(device="cpu"), *QUICK_RUNS] if seed == 0 else [Way(device="python")])


@pytest.mark.parametrize("directed", [False, True])
def test_the_first_of_very_many_paths_are_those_of_networkx(directed: bool) -> None:
    graph = nx.gnm_random_graph(60, 240, seed=4, directed=directed)
    draw = np.random.default_rng(4)
    for u, v in graph.edges:
        graph[u][v]["weight"] = draw.random()
    built = Graph.from_networkx(graph)
    found = paths_of(shortest_paths(built, 0, 59, k=30, device="cpu"))
    expected = [
        path for path, _ in zip(nx.shortest_simple_paths(graph, 0, 59, "weight"), range(30), strict=False)
    ]
    assert [path for _, path, _ in found] == expected
    for length, path, _ in found:
        assert length == pytest.approx(nx.path_weight(graph, path, "weight"), rel=1e-12)


def test_lengths_may_be_any_column_and_vertices_have_names() -> None:
    columns = {"toll": [3, 1, 1], "minutes": [1.0, 1.0, 1.0]}
    graph = Graph.from_edges(["a", "a", "b"], ["c", "b", "c"], columns=columns)
    by_toll = shortest_paths(graph, "a", "c", k=5, weight="toll", device="python")
    assert paths_of(by_toll) == [(2.0, ["a", "b", "c"], [0.0, 1.0, 2.0]), (3.0, ["a", "c"], [0.0, 3.0])]
    for weight in ("minutes", "weight", None):
        found = shortest_paths(graph, "a", "c", weight=weight, device="python")
        assert paths_of(found) == [(1.0, ["a", "c"], [0.0, 1.0])]


def test_no_path_is_an_empty_result() -> None:
    result = shortest_paths(Graph.from_edges([0, 2], [1, 3]), 1, 0, k=3, device="python")
    assert (result.ids.tolist(), result["path"].tolist(), result["distance"].tolist()) == ([], [], [])
    assert result.aggregators["length"].tolist() == []


def test_what_cannot_be_is_named() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], weights=[1.0, -2.5])
    with pytest.raises(GraphError, match=r"target=.*no vertex 9"):
        shortest_paths(graph, 0, 9, weight=None)
    with pytest.raises(GraphError, match=r"source=.*no vertex 'a'"):
        shortest_paths(graph, "a", 0, weight=None)
    with pytest.raises(GraphError, match=r"'weight' must be at least 0, but an edge has -2\.5"):
        shortest_paths(graph, 0, 2)
    with pytest.raises(ConfigError, match=r"no edge column 'toll'; its columns are: weight"):
        shortest_paths(graph, 0, 2, weight="toll")
    for k in (0, -1, 1.5, "2", True):
        with pytest.raises(ConfigError, match="k="):
            shortest_paths(graph, 0, 2, k=k)
