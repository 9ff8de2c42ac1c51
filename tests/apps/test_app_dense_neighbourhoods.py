"""Bounds of edges against a plain peeling of trusses and NetworkX's; DN-graphs against components of what is left."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, by_id, neighbours_of, runs_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from turns import half_of
from ways import Way, results_of

from sigps import Vertex
from sigps.apps import BiTriDN, DNGraphs, TriDN

Bounds = dict[frozenset[Any], int]


def peeled(near: dict[Any, set[Any]]) -> Bounds:
    """Take away an edge with the fewest triangles left, again and again; it kept as many as any before it."""
    left = {v: set(ends) for v, ends in near.items()}
    bounds: Bounds = {}
    reached = 0
    while edges := [(v, w) for v in left for w in left[v] if repr(v) < repr(w)]:
        v, w = min(edges, key=lambda edge: len(left[edge[0]] & left[edge[1]]))
        reached = max(reached, len(left[v] & left[w]))
        bounds[frozenset((v, w))] = reached
        left[v].remove(w)
        left[w].remove(v)
    return bounds


def groups_of(near: dict[Any, set[Any]], bounds: Bounds) -> dict[Any, Any]:
    """For each level the components of the edges that reach it; those without an edge above it are DN-graphs."""
    groups: dict[Any, Any] = dict.fromkeys(near)
    for level in sorted({b for b in bounds.values() if b > 0}):
        graph = nx.Graph(tuple(e) for e, b in bounds.items() if b >= level)
        for component in nx.connected_components(graph):
            inside = [b for e, b in bounds.items() if b >= level and e <= component]
            if max(inside) == level:
                groups |= dict.fromkeys(component, min(component))
    return groups


def bounds_of(result: Any) -> Bounds:
    ends = zip(result.edges.sources.tolist(), result.edges.targets.tolist(), strict=True)
    return {
        frozenset(pair): b
        for pair, b in zip(ends, result.edges["bound"].tolist(), strict=True)
        if pair[0] != pair[1]
    }


def check(program: type[Vertex], sample: Sample, ways: list[Way] | None = None) -> None:
    near = neighbours_of(sample)
    expected = peeled(near)
    for way, result in results_of(program(), sample, ways or runs_of(sample)):
        assert bounds_of(result) == expected, way
        assert by_id(result, "density") == {
            v: max((expected[frozenset((v, w))] for w in near[v]), default=0) for v in near
        }, way
        if program is DNGraphs:
            groups = groups_of(near, expected)
            assert by_id(result, "group") == groups, way


@pytest.mark.parametrize(
    ("program", "name"), half_of([TriDN, BiTriDN, DNGraphs], [name for name in NAMES if name != "skewed"])
)
def test_bounds_are_those_of_a_plain_peeling(program: type[Vertex], name: str) -> None:
    check(program, BATTERY[name])


@RANDOM
@given(samples())
def test_bounds_and_groups_on_random_graphs(sample: Sample) -> None:
    check(DNGraphs, sample)


def two_levels() -> Sample:
    """A clique of 6 within edges of triangles, a clique of 4 beside it, a tail, and a clique of 3 far away."""
    edges = [(v, w) for v in range(6) for w in range(v)]
    edges += [(6, 0), (6, 1), (6, 2), (7, 6), (7, 0)]
    edges += [(v, w) for v in range(8, 12) for w in range(8, v)] + [(8, 7), (12, 11)]
    edges += [(20, 21), (21, 22), (20, 22)]
    sources, targets = zip(*edges, strict=True)
    return Sample(list(sources), list(targets), directed=False)


def test_a_group_beside_a_denser_one_is_none() -> None:
    sample = two_levels()
    check(DNGraphs, sample)
    (_, result), *_ = results_of(DNGraphs(), sample, [Way()])
    groups = by_id(result, "group")
    assert [groups[v] for v in (0, 5, 6, 7, 8, 11, 12, 20)] == [0, 0, None, None, 8, 8, None, 20]


@pytest.mark.parametrize("program", [TriDN, BiTriDN])
def test_bounds_are_two_less_than_the_trusses_of_networkx(program: type[Vertex]) -> None:
    near = neighbours_of(BATTERY["skewed"])
    whole = nx.Graph((v, w) for v in near for w in near[v])
    for way, result in results_of(program(), BATTERY["skewed"], [Way(threads=2), Way(3, partitioner="hash")]):
        bounds = bounds_of(result)
        levels = sorted(set(bounds.values()))
        assert len(levels) > 4
        for level in levels:
            expected = {frozenset(edge) for edge in nx.k_truss(whole, level + 2).edges}
            assert {e for e, b in bounds.items() if b >= level} == expected, way
