"""FastRP against products of sparse matrices in SciPy, of the same drawn vectors, and these against their chances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import matrix_of, runs_of
from battery import BATTERY, Sample
from numpy.typing import NDArray
from scipy.stats import chisquare
from turns import in_turn
from ways import Way, results_of

from sigps import Graph, run
from sigps.apps import FastRP

NAMES = [
    "only_isolated",
    "self_loop_undirected",
    "isolated",
    "grid",
    "parallel_edges",
    "string_ids",
    "skewed",
]

DETERMINISTIC = [
    Way(deterministic=True),
    Way(3, partitioner="hash", deterministic=True),
    Way(2, device="python", partitioner="bfs", deterministic=True),
]


def signs_of(graph: Graph, dimensions: int, seed: int = 0) -> NDArray[Any]:
    """Return the signs of the drawn vectors, as superstep 0 leaves them."""
    program = FastRP(dimensions=dimensions, iteration_weights=[], node_self_influence=1.0)
    return np.sign(run(program, graph, device="python", seed=seed)["embedding"])


def unit(rows: NDArray[Any]) -> NDArray[Any]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


def embedded(sample: Sample, weights: list[float], strength: float, own: float) -> NDArray[Any]:
    steps = matrix_of(sample)
    degree = np.asarray(steps.sum(axis=1)).ravel()
    steps.data /= degree[steps.tocoo().row]
    scale = np.where(degree > 0, degree, 1.0) ** strength
    mean = scale[:, None] * signs_of(sample.build(), 12) * np.sqrt(3 / 12)
    total = own * unit(mean)
    for weight in weights:
        mean = steps @ mean
        total += weight * unit(mean)
    return total


@pytest.mark.parametrize(
    ("name", "how"), in_turn(NAMES, [([0.0, 1.0, 0.5], -0.5, 0.25), ([2.0, -1.0, 0.0, 4.0], 0.75, 0.0)])
)
def test_embeddings_are_sums_of_matrix_products(name: str, how: tuple[list[float], float, float]) -> None:
    sample, (weights, strength, own) = BATTERY[name], how
    expected = embedded(sample, weights, strength, own)
    program = FastRP(
        dimensions=12, iteration_weights=weights, normalization_strength=strength, node_self_influence=own
    )
    bits = None
    ways = runs_of(sample) + (DETERMINISTIC if name != "skewed" else DETERMINISTIC[:2])  # compiled ones
    for way, result in results_of(program, sample, ways):
        np.testing.assert_allclose(result["embedding"], expected, rtol=1e-9, atol=1e-12, err_msg=str(way))
        if way.deterministic:
            bits = result["embedding"].tobytes() if bits is None else bits
            assert result["embedding"].tobytes() == bits, way


def test_a_place_is_positive_or_negative_with_a_chance_of_a_sixth_each() -> None:
    graph = Graph.from_edges([], [], vertices=range(400))
    signs = signs_of(graph, 64)
    counts = [int((signs == sign).sum()) for sign in (-1, 0, 1)]
    assert chisquare(counts, np.array([1 / 6, 2 / 3, 1 / 6]) * signs.size).pvalue > 1e-3
    pairs = signs @ signs.T  # a sum of 64 products, each 1 or -1 with chances of 1/18
    apart = ~np.eye(400, dtype=bool)
    assert np.abs(pairs[apart]).max() < 6 * np.sqrt(64 / 9)
    assert np.var(pairs[apart]) == pytest.approx(64 / 9, rel=0.05)
    places = (signs.T @ signs)[~np.eye(64, dtype=bool)]
    assert np.var(places) == pytest.approx(400 / 9, rel=0.2)
    other = signs_of(graph, 64, seed=1)
    assert abs((signs * other).sum()) < 6 * np.sqrt(signs.size / 9)


def test_vertices_of_a_planted_group_are_near_to_each_other() -> None:
    draw, block = np.random.default_rng(2), np.repeat(np.arange(4), 30)
    chance = np.where(block[:, None] == block, 0.4, 0.02)
    sources, targets = np.nonzero(np.triu(draw.random(chance.shape) < chance, 1))
    graph = Graph.from_edges(sources, targets, directed=False, vertices=range(120))
    vectors = unit(run(FastRP(dimensions=64), graph, device="cpu")["embedding"])
    near = vectors @ vectors.T
    np.fill_diagonal(near, -1.0)
    assert (block[near.argmax(axis=1)] == block).mean() > 0.95
