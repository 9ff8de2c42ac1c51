"""Label groups against the labels of `LabelPropagation`, NetworkX's components under one label, and counts of edges."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, arcs_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import assume, given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps import Result, run
from sigps.apps import LabelGroups, LabelPropagation


def propagated(sample: Sample, seed: int) -> Result:
    return run(LabelPropagation(seed=seed), sample.build(), device="python", max_supersteps=500)


def under_one_label(sample: Sample, labels: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """Return the arcs inside groups, without loops; parallel ones each."""
    return [(s, t) for s, t, _ in arcs_of(sample, directed=False) if s != t and labels[s] == labels[t]]


def groups_of(sample: Sample, arcs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    graph = nx.Graph(arcs)
    graph.add_nodes_from(vertices_of(sample))
    return {v: min(component) for component in nx.connected_components(graph) for v in component}


def check(sample: Sample, seed: int, ways: list[Way] | None = None) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return labels and groups."""
    first = propagated(sample, seed)
    labels = by_id(first, "label")
    arcs = under_one_label(sample, labels)
    groups, inside = groups_of(sample, arcs), Counter(s for s, _ in arcs)
    for way, result in results_of(LabelGroups(seed=seed), sample, ways or runs_of(sample)):
        assert by_id(result, "label") == labels, way
        assert by_id(result, "group") == groups, way
        assert by_id(result, "inside") == {v: inside[v] for v in groups}, way
        assert result.reason == "converged", way
        of_labels = [(s.active, s.messages) for s in first.stats]
        assert [(s.active, s.messages) for s in result.stats][: len(of_labels)] == of_labels, way
    return labels, groups


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_components_under_one_label(name: str) -> None:
    check(BATTERY[name], 0)


@RANDOM
@given(samples(), st.integers(-(2**63), 2**63 - 1))
def test_groups_on_random_graphs(sample: Sample, seed: int) -> None:
    # Ids v and -1 - v draw alike, and may swap labels for ever.
    assume(propagated(sample, seed).reason == "converged")
    check(sample, seed)


def test_a_label_may_have_several_groups() -> None:
    ends = np.random.default_rng(2).integers(0, 100, (2, 150)).tolist()
    labels, groups = check(Sample(*ends, directed=False), seed=55)
    assert (len(set(groups.values())), len(set(labels.values()))) == (27, 26)


def test_cliques_are_groups_and_their_density_is_1() -> None:
    edges = [(8 * k + v, 8 * k + w) for k in range(6) for v in range(8) for w in range(v)]
    edges += [(8 * k, (8 * k + 15) % 48) for k in range(6)]
    sources, targets = (list(ends) for ends in zip(*edges, strict=True))
    _, groups = check(Sample(sources, targets, directed=False), seed=0)
    assert sorted(set(groups.values())) == [0, 8, 16, 24, 32, 40]
    ((_, result),) = results_of(LabelGroups(), Sample(sources, targets, directed=False), [Way()])
    for group in set(groups.values()):
        assert result["inside"][result["group"] == group].sum() / (8 * 7) == 1.0
