"""Core numbers against a plain peeling, and against NetworkX where it takes the graph."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, arcs_of, as_networkx, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from ways import results_of

from sigps.apps import KCore


def peeled(sample: Sample) -> dict[Any, int]:
    """Take away a vertex of the fewest neighbours, again and again."""
    arcs = {(s, t) for s, t, _ in arcs_of(sample, directed=False) if s != t}
    left, core, cores = set(vertices_of(sample)), 0, {}
    while left:
        degrees = Counter({v: 0 for v in left})
        degrees.update(s for s, t in arcs if s in left and t in left)
        lowest = min(left, key=lambda v: degrees[v])
        core = cores[lowest] = max(core, degrees[lowest])
        left.remove(lowest)
    return cores


def check(sample: Sample) -> None:
    expected = peeled(sample)
    for way, result in results_of(KCore(), sample, runs_of(sample)):
        assert by_id(result, "core") == expected, way
        assert (result["left"] <= result["core"]).all(), way


@pytest.mark.parametrize("name", [name for name in NAMES if name != "skewed"])
def test_core_numbers_are_those_of_a_plain_peeling(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_core_numbers_on_random_graphs(sample: Sample) -> None:
    check(sample)


def test_core_numbers_are_those_of_networkx() -> None:
    simple = nx.Graph(as_networkx(BATTERY["skewed"]))
    simple.remove_edges_from(nx.selfloop_edges(simple))
    expected = nx.core_number(simple)
    assert len(set(expected.values())) > 5
    sources, targets = zip(*simple.edges, strict=True)
    sample = Sample(list(sources), list(targets), directed=False, vertices=list(simple))
    for way, result in results_of(KCore(), sample, runs_of(sample)):
        assert by_id(result, "core") == expected, way
