"""Personalised PageRank against NetworkX, and against the walk's distribution step by step."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, RUNS, arcs_of, as_networkx, by_id, first_id, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from ways import results_of

from sigps.apps import PersonalisedPageRank


def walked(sample: Sample, source: Any, damping: float, steps: int) -> dict[Any, float]:
    """Follow the probability of each arc, `steps` times."""
    arcs = arcs_of(sample)
    ranks = {v: float(v == source) for v in vertices_of(sample)}
    leaving = {v: [t for s, t, _ in arcs if s == v] for v in ranks}
    for _ in range(steps):
        after = dict.fromkeys(ranks, 0.0)
        for v, rank in ranks.items():
            after[source] += (1 - damping) * rank
            for target in leaving[v] or [source]:
                after[target] += damping * rank / len(leaving[v] or [source])
        ranks = after
    return ranks


@pytest.mark.parametrize("name", NAMES)
def test_ranks_are_those_of_networkx(name: str) -> None:
    sample = BATTERY[name]
    source = first_id(sample)
    walk = as_networkx(sample)
    expected = nx.pagerank(walk, alpha=0.8, personalization={source: 1}, tol=1e-13, max_iter=500, weight=None)
    program = PersonalisedPageRank(source=source, damping=0.8, iterations=500, tolerance=1e-12)
    for way, result in results_of(program, sample, RUNS):
        assert by_id(result, "rank") == pytest.approx(expected, rel=1e-7, abs=1e-12), way
        assert result["rank"].sum() == pytest.approx(1.0, abs=1e-12), way
        assert result.supersteps <= 300, way


@RANDOM
@given(samples(), st.integers(0, 5))
def test_ranks_after_some_steps_on_random_graphs(sample: Sample, steps: int) -> None:
    source = vertices_of(sample)[-1]
    program = PersonalisedPageRank(source=source, damping=0.7, iterations=steps)
    expected = walked(sample, source, 0.7, steps)
    for way, result in results_of(program, sample, RUNS):
        assert by_id(result, "rank") == pytest.approx(expected, rel=1e-12, abs=1e-15), way
        assert result.supersteps == steps + 1, way
