"""Label propagation: by its end condition, and against a loop that draws the same vertices and labels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from app_judges import RANDOM, RUNS, arcs_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import Way, results_of

from sigps import Graph, run
from sigps.apps import LabelPropagation
from sigps.apps.hashing import hashed


def counted(sample: Sample, labels: dict[Any, Any]) -> dict[Any, Counter[Any]]:
    counts: dict[Any, Counter[Any]] = {v: Counter() for v in labels}
    for s, t, _ in arcs_of(sample, directed=False):
        counts[t][labels[s]] += 1
    return counts


def most_frequent(counts: Counter[Any]) -> set[Any]:
    return {label for label, count in counts.items() if count == max(counts.values())}


def propagated(sample: Sample, seed: int) -> tuple[dict[Any, Any], int]:
    """Let those change that have a rarer label and are drawn, until none has one; compute() sees strings' places."""
    ids = vertices_of(sample)
    numbers = {v: i if isinstance(v, str) else v for i, v in enumerate(ids)}
    labels = {v: v for v in ids}
    superstep = 1
    while True:
        best = {v: most_frequent(counts) for v, counts in counted(sample, labels).items()}
        unsettled = [v for v in ids if best[v] and labels[v] not in best[v]]
        if not unsettled:
            return labels, superstep + 1  # the next one learns of it
        draws = {v: hashed(numbers[v], hashed(superstep, seed)) for v in unsettled}
        for v, draw in draws.items():
            if draw % 2 == 0:
                labels[v] = min(best[v], key=lambda label: (hashed(numbers[label], draw), label))
        superstep += 1


def check(sample: Sample, seed: int, ways: list[Way] | None = None) -> dict[Any, Any]:
    expected, superstep = propagated(sample, seed)
    for way, result in results_of(LabelPropagation(seed=seed), sample, ways or runs_of(sample)):
        labels = by_id(result, "label")
        for v, counts in counted(sample, labels).items():
            assert labels[v] in (most_frequent(counts) or {v}), way
        assert labels == expected, way
        assert result.supersteps == superstep + 1, way
        assert result.reason == "converged", way
    return expected


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_most_frequent_and_those_of_a_plain_loop(name: str) -> None:
    check(BATTERY[name], seed=0)


@RANDOM
@given(samples(), st.integers(-(2**63), 2**63 - 1))
def test_labels_on_random_graphs(sample: Sample, seed: int) -> None:
    check(sample, seed)


def test_both_sides_of_a_bipartite_graph_rest() -> None:
    pairs = [(v, w) for v in range(5) for w in range(5, 11)]
    sources, targets = (list(ends) for ends in zip(*pairs, strict=True))
    check(Sample(sources, targets, directed=False), seed=3)


def test_cliques_have_one_label_each_and_seeds_differ() -> None:
    edges = [(8 * k + v, 8 * k + w) for k in range(6) for v in range(8) for w in range(v)]
    edges += [(8 * k, (8 * k + 15) % 48) for k in range(6)]
    sources, targets = (list(ends) for ends in zip(*edges, strict=True))
    sample = Sample(sources, targets, directed=False)
    found = [check(sample, seed, RUNS[:4]) for seed in range(3)]
    for labels in found:
        assert all(len({labels[8 * k + v] for v in range(8)}) == 1 for k in range(6))
        assert len(set(labels.values())) > 1
    assert found[0] != found[1] != found[2]


def test_labels_of_opposite_ids_rest() -> None:
    """Ids v and -1 - v take their turns apart, else such pairs may swap labels for ever."""
    a = 10**17
    sources, targets = [a + 2, -a - 1, a + 2, a, -a - 1, a + 2], [-a - 3, a + 2, -a - 3, a + 4, -a - 3, a + 4]
    graph = Graph.from_edges(sources, targets, directed=False)
    for seed in range(20):
        assert run(LabelPropagation(seed=seed), graph, device="cpu", max_supersteps=200).reason == "converged"
