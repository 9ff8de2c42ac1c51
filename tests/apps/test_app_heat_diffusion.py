"""Heat diffusion against products with the dense Laplacian, and against the matrix exponential for small steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from app_judges import RANDOM, arcs_of, by_id, first_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from turns import in_turn
from ways import results_of

from sigps import run
from sigps.apps import HeatDiffusion


def laplacian_of(sample: Sample) -> NDArray[np.float64]:
    index = {v: i for i, v in enumerate(vertices_of(sample))}
    laplacian = np.zeros((len(index), len(index)))
    for s, t, weight in arcs_of(sample, directed=True):
        for u, v in ((index[s], index[t]), (index[t], index[s])):
            laplacian[u, u] += weight
            laplacian[u, v] -= weight
    return laplacian


def stepped(sample: Sample, source: Any, rate: float, steps: int) -> dict[Any, float]:
    laplacian, ids = laplacian_of(sample), vertices_of(sample)
    heat = np.array([float(v == source) for v in ids])
    for _ in range(steps):
        heat = heat - rate * laplacian @ heat
    return dict(zip(ids, heat.tolist(), strict=True))


def stable_rate(sample: Sample) -> float:
    return float(0.9 / max(1.0, np.diag(laplacian_of(sample)).max()))


def check(sample: Sample, steps: int) -> None:
    source, rate = first_id(sample), stable_rate(sample)
    expected = stepped(sample, source, rate, steps)
    for way, result in results_of(
        HeatDiffusion(source=source, rate=rate, steps=steps), sample, runs_of(sample)
    ):
        assert by_id(result, "heat") == pytest.approx(expected, rel=1e-9, abs=1e-14), way
        assert result["heat"].sum() == pytest.approx(1.0, abs=1e-12), way
        assert result["heat"].min() >= -1e-15, way
        assert result.supersteps == steps + 1, way


@pytest.mark.parametrize(("name", "steps"), in_turn(NAMES, [0, 15, 1]))
def test_heat_is_that_of_products_with_the_laplacian(name: str, steps: int) -> None:
    check(BATTERY[name], steps)


@RANDOM
@given(samples(), st.integers(0, 6))
def test_heat_on_random_graphs(sample: Sample, steps: int) -> None:
    check(sample, steps)


def test_small_steps_near_the_matrix_exponential() -> None:
    sample = BATTERY["grid"]
    exact = scipy.linalg.expm(-0.5 * laplacian_of(sample))[0]
    heat = run(HeatDiffusion(source=0, rate=0.5 / 5000, steps=5000), sample.build())["heat"]
    np.testing.assert_allclose(heat, exact, atol=1e-3)
