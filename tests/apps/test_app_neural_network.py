"""Neural networks against products with a sparse matrix of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from app_judges import RANDOM, RUNS, arcs_of, by_id, first_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import results_of

from sigps.apps import NeuralNetwork


def swept(sample: Sample, source: Any, bias: float, steps: int) -> dict[Any, float]:
    """Return tanh(bias + W x) again and again; parallel arcs add up in W, whose rows are targets."""
    ids = vertices_of(sample)
    index = {v: i for i, v in enumerate(ids)}
    arcs = arcs_of(sample)
    places = [index[t] for _, t, _ in arcs], [index[s] for s, _, _ in arcs]
    weights = scipy.sparse.csr_array(
        ([w for *_, w in arcs], places), shape=(len(ids), len(ids)), dtype=np.float64
    )
    held = np.array([v == source for v in ids])
    activity = np.where(held, 1.0, 0.0)
    for _ in range(steps):
        activity = np.where(held, 1.0, np.tanh(bias + weights @ activity))
    return dict(zip(ids, activity.tolist(), strict=True))


def check(sample: Sample, bias: float, steps: int) -> None:
    source = first_id(sample)
    expected = swept(sample, source, bias, steps)
    for way, result in results_of(
        NeuralNetwork(source=source, bias=bias, steps=steps), sample, runs_of(sample)
    ):
        assert by_id(result, "activity") == pytest.approx(expected, rel=1e-9, abs=1e-12), way
        assert (result.supersteps, result.reason) == (steps + 1, "converged"), way


@pytest.mark.parametrize(("name", "how"), in_turn(NAMES, [(0.5, 0), (-0.25, 12)]))
def test_activities_are_those_of_sparse_products(name: str, how: tuple[float, int]) -> None:
    check(BATTERY[name], *how)


@RANDOM
@given(samples(), st.floats(-2.0, 2.0), st.integers(0, 5))
def test_activities_on_random_graphs(sample: Sample, bias: float, steps: int) -> None:
    check(sample, bias, steps)


def test_by_default_nothing_holds_back_what_the_source_excites() -> None:
    for _, result in results_of(NeuralNetwork(source=0), BATTERY["path"], RUNS):
        assert result.supersteps == 21
        assert (result["activity"] > 0.0).all()


@pytest.mark.parametrize("directed", [True, False])
def test_neurons_that_inhibit(directed: bool) -> None:
    """Weights of both signs, small enough that what rounding leaves does not grow."""
    draw = np.random.default_rng(3)
    ends = draw.integers(0, 200, (2, 1000)).tolist()
    sample = Sample(*ends, draw.normal(0.0, 0.3, 1000).tolist(), directed=directed)
    check(sample, 0.1, 40)
    activities = swept(sample, first_id(sample), 0.1, 40).values()
    assert min(activities) < -0.2
