"""Harmonic labels against dense sweeps, and against the solution of their linear equations."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, arcs_of, as_networkx, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import assume, given
from hypothesis import strategies as st
from ways import results_of

from sigps.apps import HarmonicLabels


def swept(sample: Sample, one: Any, zero: Any, rounds: int) -> dict[Any, float]:
    scores = {**dict.fromkeys(vertices_of(sample), 0.5), zero: 0.0, one: 1.0}
    arcs = arcs_of(sample, directed=False)
    for _ in range(rounds):
        means = {}
        for v in scores:
            near = [(scores[s], weight) for s, t, weight in arcs if t == v]
            total = sum(weight for _, weight in near)
            means[v] = sum(score * weight for score, weight in near) / total if total > 0 else scores[v]
        scores = {**means, zero: 0.0, one: 1.0}
    return scores


def solved(sample: Sample, one: Any, zero: Any) -> dict[Any, float]:
    """Kirchhoff's law at every vertex between the two."""
    ids = vertices_of(sample)
    index = {v: i for i, v in enumerate(ids)}
    equations, values = np.zeros((len(ids), len(ids))), np.zeros(len(ids))
    for s, t, weight in arcs_of(sample, directed=False):
        equations[index[t], index[t]] += weight
        equations[index[t], index[s]] -= weight
    graph = nx.Graph(as_networkx(sample))
    near = nx.node_connected_component(graph, one) | nx.node_connected_component(graph, zero)
    for v in ids:
        if v in (one, zero) or v not in near:
            equations[index[v]] = np.arange(len(ids)) == index[v]
            values[index[v]] = 1.0 if v == one else 0.0 if v == zero else 0.5
    return dict(zip(ids, np.linalg.solve(equations, values).tolist(), strict=True))


def ends_of(sample: Sample) -> tuple[Any, Any]:
    ids = vertices_of(sample)
    return ids[0], ids[-1]


@pytest.mark.parametrize("name", [name for name in NAMES if len(set(ends_of(BATTERY[name]))) == 2])
def test_scores_solve_the_equations(name: str) -> None:
    sample = BATTERY[name]
    one, zero = ends_of(sample)
    expected = solved(sample, one, zero)
    program = HarmonicLabels(one=one, zero=zero, tolerance=1e-13)
    compiled = [way for way in runs_of(sample) if way.device == "cpu"]  # hundreds of supersteps
    for way, result in results_of(program, sample, compiled):
        assert by_id(result, "score") == pytest.approx(expected, abs=1e-9), way
        assert result.supersteps < 1001, way


@RANDOM
@given(samples(), st.integers(0, 6))
def test_scores_after_some_rounds_on_random_graphs(sample: Sample, rounds: int) -> None:
    one, zero = ends_of(sample)
    assume(one != zero)
    expected = swept(sample, one, zero, rounds)
    program = HarmonicLabels(one=one, zero=zero, iterations=rounds, tolerance=0.0)
    for way, result in results_of(program, sample, runs_of(sample)):
        assert by_id(result, "score") == pytest.approx(expected, rel=1e-11, abs=1e-14), way
        assert result.supersteps <= rounds + 1, way
