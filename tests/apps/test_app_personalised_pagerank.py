"""Personalised PageRank against NetworkX, and against the walk's distribution step by step."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, arcs_of, as_networkx, by_id, first_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from thread_group import run_ranks
from turns import in_turn
from ways import results_of

from sigps import run
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
    for way, result in results_of(program, sample, runs_of(sample)):
        assert by_id(result, "rank") == pytest.approx(expected, rel=1e-7, abs=1e-12), way
        assert result["rank"].sum() == pytest.approx(1.0, abs=1e-12), way
        assert result.supersteps <= 300, way


@RANDOM
@given(samples(), st.integers(1, 5))
def test_ranks_after_some_steps_on_random_graphs(sample: Sample, steps: int) -> None:
    source = vertices_of(sample)[-1]
    program = PersonalisedPageRank(source=source, damping=0.7, iterations=steps)
    expected = walked(sample, source, 0.7, steps)
    for way, result in results_of(program, sample, runs_of(sample)):
        assert by_id(result, "rank") == pytest.approx(expected, rel=1e-12, abs=1e-15), way
        assert result.supersteps == steps + 1, way


@pytest.mark.parametrize(("name", "how"), in_turn(NAMES, ["column", "initial", "nothing"]))
def test_returns_in_proportion_to_a_column(name: str, how: str) -> None:
    sample = BATTERY[name]
    ids = vertices_of(sample)
    weights = {v: float(1 + 5 * (i % 3)) for i, v in enumerate(ids)}
    given = {v: w for v, w in weights.items() if w > 1} or weights
    judge = given if how != "nothing" else None
    expected = nx.pagerank(
        as_networkx(sample), alpha=0.8, personalization=judge, tol=1e-13, max_iter=500, weight=None
    )
    program = PersonalisedPageRank(damping=0.8, iterations=500, tolerance=1e-12)
    for way in runs_of(sample):

        def on_rank(group: Any, way: Any = way) -> Any:
            graph = sample.build(group=group)
            if how == "column":
                graph = graph.with_vertex_columns({"personalisation": given})
            initial = {"personalisation": given} if how == "initial" else None
            return run(program, graph, initial=initial, **way.options())

        result = run_ranks(way.ranks, on_rank)[0]
        assert by_id(result, "rank") == pytest.approx(expected, rel=1e-7, abs=1e-12), way
        assert result.supersteps <= 300, way
