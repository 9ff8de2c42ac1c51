"""Strong components against plain searches from every vertex, and against NetworkX and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, RUNS, arcs_of, as_networkx, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from scipy.sparse import csgraph
from turns import in_turn
from ways import Way, results_of

from sigps import Graph, run
from sigps.apps import SCC


def searched(sample: Sample) -> dict[Any, Any]:
    """Search from every vertex: its component is the vertices that it reaches and that reach it."""
    after: dict[Any, list[Any]] = {v: [] for v in vertices_of(sample)}
    for s, t, _ in arcs_of(sample):
        after[s].append(t)
    reached = {}
    for v in after:
        seen, left = {v}, [v]
        while left:
            new = set(after[left.pop()]) - seen
            seen |= new
            left += new
        reached[v] = seen
    return {v: min(u for u in reached[v] if v in reached[u]) for v in after}


def check(sample: Sample, referee: Callable[[Sample], dict[Any, Any]] = searched) -> None:
    expected = referee(sample)
    for way, result in results_of(SCC(), sample, runs_of(sample)):
        assert by_id(result, "component") == expected, way
        assert result.reason == "converged", way


def by_networkx(sample: Sample) -> dict[Any, Any]:
    graph = as_networkx(sample)
    components = nx.strongly_connected_components(graph if sample.directed else graph.to_directed())
    return {v: min(component) for component in components for v in component}


@pytest.mark.parametrize(("name", "referee"), in_turn(NAMES, [searched, by_networkx]))
def test_components_are_those_of_searches(name: str, referee: Callable[[Sample], dict[Any, Any]]) -> None:
    check(BATTERY[name], referee)


@RANDOM
@given(samples())
def test_components_of_random_graphs(sample: Sample) -> None:
    check(sample)


def rings(num_rings: int, size: int, ids: Callable[[int], int]) -> Sample:
    """Rings, from each of which an edge leads to the next, and one over it."""
    sources, targets = [], []
    for first in range(0, num_rings * size, size):
        sources += range(first, first + size)
        targets += [*range(first + 1, first + size), first]
        sources += [first, first + 1]
        targets += [first + size, first + 2 * size]
    return Sample([ids(v) for v in sources], [ids(v) for v in targets])


@pytest.mark.parametrize("ids", [lambda v: v, lambda v: 40 - v, lambda v: v * 7 % 31 - 15])
def test_chains_of_components_come_apart(ids: Callable[[int], int]) -> None:
    """Ids ascend, descend or jump along the chain: the first colour reaches all of it, its end only, or some."""
    sample = rings(6, 4, ids)
    assert len(set(searched(sample).values())) > 6
    check(sample)


def test_a_path_is_trimmed_from_both_ends() -> None:
    for way, result in results_of(SCC(), Sample(list(range(20)), list(range(1, 21))), RUNS[:4]):
        assert result["component"].tolist() == list(range(21)), way
        assert result.supersteps == 1 + 11, way  # the vertex in the middle goes in superstep 11


@pytest.mark.parametrize("num_edges", [300, 450, 900])
def test_sparse_and_dense_graphs_as_scipy_has_them(num_edges: int) -> None:
    draw = np.random.default_rng(num_edges)
    graph = Graph.from_edges(*draw.integers(0, 300, (2, num_edges)), vertices=range(300))
    matrix = graph.to_scipy()
    matrix.sum_duplicates()  # with entries twice SciPy finds other components
    _, labels = csgraph.connected_components(matrix, directed=True, connection="strong")
    firsts = [int(np.flatnonzero(labels == label)[0]) for label in labels]
    assert 1 < len(set(firsts)) < 300 or num_edges == 300
    for options in (Way().options(), Way(threads=2, direction="push").options()):
        assert run(SCC(), graph, **options)["component"].tolist() == firsts
