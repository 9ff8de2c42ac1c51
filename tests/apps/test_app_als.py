"""ALS against the same turns with NumPy's solver, and the loss against its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import arcs_of, runs_of, vertices_of
from battery import BATTERY, Sample
from numpy.typing import NDArray
from ways import Way, results_of

from sigps import run
from sigps.apps import ALS

NAMES = [
    "one_vertex",
    "self_loop",
    "isolated",
    "path",
    "star_out",
    "star_in",
    "grid",
    "parallel_edges",
    "string_ids",
]

Arcs = list[tuple[int, int, float]]


def ratings(seed: int) -> Sample:
    """Users 0 to 29, items 100 to 119: products of three factors, and noise."""
    draw = np.random.default_rng(seed)
    one, other = draw.normal(size=(30, 3)), draw.normal(size=(20, 3))
    known = [(u, i) for u in range(30) for i in range(20) if draw.random() < 0.5]
    weights = [float(one[u] @ other[i] + 0.1 * draw.normal()) for u, i in known]
    return Sample([u for u, _ in known], [100 + i for _, i in known], weights)


def indexed(sample: Sample) -> Arcs:
    index = {v: i for i, v in enumerate(vertices_of(sample))}
    return [(index[s], index[t], w) for s, t, w in arcs_of(sample)]


def solved(arcs: Arcs, known: NDArray[Any], regularisation: float) -> NDArray[Any]:
    """Return the best vectors of sources, by NumPy."""
    found = np.zeros_like(known)
    for v in range(len(known)):
        rows = [(known[t], w) for s, t, w in arcs if s == v]
        a = sum((np.outer(f, f) for f, _ in rows), regularisation * np.eye(16))
        found[v] = np.linalg.solve(a, sum((w * f for f, w in rows), np.zeros(16)))
    return found


def loss_of(arcs: Arcs, user: NDArray[Any], item: NDArray[Any], regularisation: float) -> float:
    errors = sum((w - user[s] @ item[t]) ** 2 for s, t, w in arcs)
    return float(errors + regularisation * ((user**2).sum() + (item**2).sum()))


def check(sample: Sample, iterations: int, regularisation: float, ways: list[Way] | None = None) -> None:
    begin = results_of(ALS(iterations=0), sample, [Way(device="python")])[0][1]["item"]
    assert (np.abs(begin) <= 0.25).all()
    assert len(np.unique(begin)) == begin.size
    arcs = indexed(sample)
    item, user = begin, np.zeros_like(begin)
    for _ in range(iterations):
        user = solved(arcs, item, regularisation)
        item = solved([(t, s, w) for s, t, w in arcs], user, regularisation)
    program = ALS(iterations=iterations, regularisation=regularisation)
    for way, result in results_of(program, sample, ways or runs_of(sample)):
        np.testing.assert_allclose(result["user"], user, rtol=1e-7, atol=1e-9, err_msg=str(way))
        np.testing.assert_allclose(result["item"], item, rtol=1e-7, atol=1e-9, err_msg=str(way))
        loss = loss_of(arcs, user, item, regularisation)
        assert result.aggregators["loss"] == pytest.approx(loss, rel=1e-8, abs=1e-9), way
        assert result.supersteps == 2 * iterations + 1


@pytest.mark.parametrize("name", NAMES)
def test_factors_are_those_of_numpy(name: str) -> None:
    check(BATTERY[name], iterations=2, regularisation=0.1)


def test_factors_of_ratings_are_those_of_numpy() -> None:
    check(ratings(1), iterations=3, regularisation=0.5)


def test_the_loss_falls_from_turn_to_turn() -> None:
    sample, losses = ratings(2), []
    for supersteps in range(2, 14):
        program = ALS(iterations=20, regularisation=0.05)
        graph = sample.build()
        losses.append(run(program, graph, device="cpu", max_supersteps=supersteps).aggregators["loss"])
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < 0.5 * losses[0]
