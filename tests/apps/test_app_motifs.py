"""Motifs against every set of three and of four vertices, by the degrees inside; and numbers of cliques by NetworkX."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, neighbours_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from ways import Way, results_of

from sigps.apps import FourCycles, motifs

WAYS = [Way(), Way(device="python"), Way(2, partitioner="hash"), Way(3, partitioner="vertices", threads=2)]

SHAPES: dict[str, list[tuple[int, int]]] = {
    "wedges": [(0, 1), (1, 2)],
    "triangles": [(0, 1), (1, 2), (2, 0)],
    "paths": [(0, 1), (1, 2), (2, 3)],
    "stars": [(0, 1), (0, 2), (0, 3)],
    "cycles": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "paws": [(0, 1), (1, 2), (2, 0), (0, 3)],
    "diamonds": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)],
    "cliques": [*combinations(range(4), 2)],
}


def degrees_inside(edges: list[tuple[Any, Any]], vertices: Any) -> tuple[int, ...]:
    """Return the degrees in ascending order: no two of the connected shapes have the same."""
    return tuple(sorted(sum(v in edge for edge in edges) for v in vertices))


def counted(sample: Sample) -> dict[str, int]:
    """Look at every set of three and of four vertices, and at every set of the edges inside it."""
    near, by_degrees = neighbours_of(sample), {}
    for shape, edges in SHAPES.items():
        by_degrees[degrees_inside(edges, range(1 + max(map(max, edges))))] = shape
    found = dict.fromkeys(SHAPES, 0) | {
        f"induced_{s}": 0 for s in SHAPES if s not in ("triangles", "cliques")
    }
    for size in (3, 4):
        for vertices in combinations(vertices_of(sample), size):
            inside = [(u, v) for u, v in combinations(vertices, 2) if v in near[u]]
            for number in range(size - 1, len(inside) + 1):
                for edges in combinations(inside, number):
                    shape = by_degrees.get(degrees_inside(list(edges), vertices))
                    found[shape or ""] = found.get(shape or "", 0) + 1
                    if number == len(inside) and f"induced_{shape}" in found:
                        found[f"induced_{shape}"] += 1
    found.pop("", None)  # not connected
    return found


def check(sample: Sample, ways: list[Way]) -> None:
    expected = counted(sample)
    for way, result in results_of(motifs, sample, ways):
        assert result.aggregators == expected, way
        assert result.reason == "converged", way


@pytest.mark.parametrize("name", [name for name in NAMES if name != "skewed"])
def test_every_set_of_four_vertices_is_counted(name: str) -> None:
    check(BATTERY[name], WAYS)


@RANDOM
@given(samples())
def test_random_graphs(sample: Sample) -> None:
    check(sample, WAYS[1:3])


def test_more_neighbours_than_are_marked_at_a_time() -> None:
    """A clique of 270, in which the lowest vertex has 269 higher neighbours, and a star that hangs on it."""
    n = 270
    sources, targets = np.triu_indices(n, 1)
    sample = Sample([*sources, *[0] * 40], [*targets, *range(n, n + 40)], directed=False)
    for way, result in results_of(motifs, sample, WAYS[:1]):
        found = result.aggregators
        assert (found["triangles"], found["cliques"]) == (comb(n, 3), comb(n, 4)), way
        assert (found["cycles"], found["diamonds"]) == (3 * comb(n, 4), 6 * comb(n, 4)), way
        assert found["induced_paws"] == comb(n - 1, 2) * 40, way
        assert found["induced_wedges"] == (n - 1) * 40 + comb(40, 2), way
        assert found["induced_stars"] == (n - 1) * comb(40, 2) + comb(40, 3), way
        assert [found[f"induced_{shape}"] for shape in ("paths", "cycles", "diamonds")] == [0, 0, 0], way


def test_a_skewed_graph_and_cycles_in_parts() -> None:
    sample = BATTERY["skewed"]
    graph = nx.Graph([(u, v) for u, near in neighbours_of(sample).items() for v in near])
    cliques = sum(len(c) == 4 for c in nx.enumerate_all_cliques(graph))
    steps = nx.to_numpy_array(graph, dtype=int)
    shared = np.triu(steps @ steps, 1)
    cycles = (shared * (shared - 1) // 2).sum() // 2
    for way, result in results_of(motifs, sample, WAYS[:3:2]):
        assert result.aggregators["cliques"] == cliques, way
        assert result.aggregators["cycles"] == cycles, way
    for way, result in results_of(FourCycles(at_a_time=1000), sample, WAYS[:3:2]):
        assert result.aggregators["whole"] == result["cycles"].sum() == cycles, way
        assert result.supersteps > 20, way
