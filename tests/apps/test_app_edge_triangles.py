"""Triangles on edges against sets of neighbours, and against NetworkX's triangles of vertices."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, by_id, neighbours_of, runs_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from ways import Way, results_of

from sigps.apps import EdgeTriangles


def kept_on_edges(result: Any) -> list[tuple[Any, Any, int]]:
    columns = result.edges.sources, result.edges.targets, result.edges["triangles"]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def check(sample: Sample, ways: list[Way] | None = None) -> None:
    near = neighbours_of(sample)
    expected = {(v, w): len(near[v] & near[w]) for v in near for w in near[v]} | {(v, v): 0 for v in near}
    most = {v: max((expected[v, w] for w in near[v]), default=0) for v in near}
    for way, result in results_of(EdgeTriangles(), sample, ways or runs_of(sample)):
        kept = kept_on_edges(result)
        assert len(kept) == len(sample.sources), way
        assert kept == [(v, w, expected[v, w]) for v, w, _ in kept], way
        assert by_id(result, "most") == most, way
        assert (result.supersteps, result.reason) == (1, "converged"), way


@pytest.mark.parametrize("name", NAMES)
def test_triangles_are_common_neighbours(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_triangles_on_random_graphs(sample: Sample) -> None:
    check(sample)


def test_loops_have_none_and_parallel_edges_the_same() -> None:
    sample = Sample([0, 0, 1, 2, 1, 2, 3], [1, 1, 2, 0, 1, 3, 3], directed=False)
    check(sample)
    (_, result), *_ = results_of(EdgeTriangles(), sample, [Way()])
    kept = {frozenset((v, w)): n for v, w, n in kept_on_edges(result)}
    assert kept == {
        frozenset((0, 1)): 1,
        frozenset((1, 2)): 1,
        frozenset((0, 2)): 1,
        frozenset((1,)): 0,
        frozenset((2, 3)): 0,
        frozenset((3,)): 0,
    }


def test_the_edges_of_a_vertex_have_twice_its_triangles() -> None:
    near = neighbours_of(BATTERY["skewed"])
    triangles = nx.triangles(nx.Graph((v, w) for v in near for w in near[v]))
    for way, result in results_of(EdgeTriangles(), BATTERY["skewed"], [Way(threads=2), Way(3)]):
        each = {frozenset((v, w)): n for v, w, n in kept_on_edges(result) if v != w}
        for v, count in triangles.items():
            assert sum(each[frozenset((v, w))] for w in near[v]) == 2 * count, way
