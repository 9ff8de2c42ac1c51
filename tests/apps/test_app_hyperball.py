"""HyperBall against HyperLogLog counters of exact balls, register by register, and its error against exact counts."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import as_networkx, runs_of, splitmix, vertices_of
from battery import BATTERY, Sample
from numpy.typing import NDArray
from ways import Way, results_of

from sigps import ConfigError, Graph
from sigps.apps import HyperBall, effective_diameter

NAMES = [
    "one_vertex",
    "self_loop",
    "isolated",
    "path",
    "star_in",
    "grid",
    "directed_cycle",
    "string_ids",
    "sparse_ids",
    "skewed",
]


def distances_to(sample: Sample) -> list[NDArray[Any]]:
    """Return for each vertex the distances from those that reach it, -1 from others; ids ascend."""
    graph, ids = nx.DiGraph(as_networkx(sample)).reverse(), vertices_of(sample)
    found = [nx.single_source_shortest_path_length(graph, v) for v in ids]
    return [np.array([lengths.get(u, -1) for u in ids]) for lengths in found]


def places_of(sample: Sample, seed: int) -> list[tuple[int, int]]:
    """Return of each vertex the register, the last 8 bits, and the value, 1 more than the zeros that end the others."""
    ids = vertices_of(sample)
    drawn = [f"{splitmix(i if isinstance(v, str) else v, seed):064b}" for i, v in enumerate(ids)]
    return [(int(bits[-8:], 2), 1 + len(bits[:-8]) - len(bits[:-8].rstrip("0"))) for bits in drawn]


def counted(places: list[tuple[int, int]]) -> NDArray[Any]:
    registers = np.zeros(256, int)
    for register, value in places:
        registers[register] = max(registers[register], value)
    return registers


def estimate(registers: NDArray[Any]) -> float:
    """HyperLogLog, figure 3 of the paper, without the correction of large ranges."""
    raw = 0.7213 / (1 + 1.079 / 256) * 256**2 / np.exp2(-registers.astype(float)).sum()
    zeros = int((registers == 0).sum())
    return 256 * math.log(256 / zeros) if raw <= 2.5 * 256 and zeros else float(raw)


@pytest.mark.parametrize("name", NAMES)
def test_counters_are_those_of_the_balls(name: str) -> None:
    sample, seed = BATTERY[name], 5
    near, places = distances_to(sample), places_of(sample, seed)
    steps = max(int(d.max()) for d in near)
    sizes = np.array(
        [
            [estimate(counted([p for p, d in zip(places, row, strict=True) if 0 <= d <= t])) for row in near]
            for t in range(steps + 1)
        ]
    )
    gained = np.diff(sizes, axis=0, prepend=0.0)
    harmonic = sum((gained[t] / t for t in range(1, steps + 1)), np.zeros(len(near)))
    pairs = np.zeros(64)
    pairs[: steps + 1] = gained.sum(axis=1)
    registers = [counted([p for p, d in zip(places, row, strict=True) if d >= 0]).tolist() for row in near]
    ways = runs_of(sample)
    for way, result in results_of(HyperBall(seed=seed), sample, ways):
        assert result["registers"].tolist() == registers, way
        assert result["size"] == pytest.approx(sizes[-1], rel=1e-12), way
        assert result["harmonic"] == pytest.approx(harmonic, rel=1e-9, abs=1e-9), way
        assert result.aggregators["pairs"] == pytest.approx(pairs, rel=1e-9, abs=1e-7), way
        assert result.reason == "converged"


def test_the_error_is_that_of_256_registers() -> None:
    """Over 12 seeds the mean error of a vertex that 3,000 reach is that of an unbiased estimate."""
    draw = np.random.default_rng(4)
    sources, targets = draw.integers(0, 3000, (2, 12_000)).tolist()
    sample = Sample(sources, targets, vertices=list(range(3000)))
    graph = nx.DiGraph(as_networkx(sample))
    counts = np.array([1 + len(nx.ancestors(graph, v)) for v in range(0, 3000, 500)])
    harmonic = [nx.harmonic_centrality(graph, [v])[v] for v in range(0, 3000, 500)]
    errors, ratios = [], []
    for seed in range(12):
        ((_, result),) = results_of(HyperBall(seed=seed), sample, [Way()])
        errors.append(result["size"][::500] / counts - 1.0)
        ratios.append(result["harmonic"][::500] / harmonic - 1.0)
    assert (counts > 1000).any()
    assert 0.03 < np.sqrt(np.mean(np.square(errors))) < 0.10  # 1.04 / 16 = 0.065
    assert abs(np.mean(errors)) < 0.05
    assert abs(np.mean(ratios)) < 0.05


def test_the_effective_diameter_is_near_that_of_exact_distances() -> None:
    sample = BATTERY["skewed"]
    found = np.concatenate(distances_to(sample))
    counts = np.cumsum(np.bincount(found[found >= 0]))
    steps = np.interp(0.9 * counts[-1], counts, np.arange(counts.size))
    first = None
    for way, result in results_of(effective_diameter, sample, [Way(), Way(2, partitioner="hash")]):
        assert result.aggregators["effective_diameter"] == pytest.approx(steps, rel=0.1), way
        function = result.aggregators["neighbourhood"]
        assert function[: counts.size] == pytest.approx(counts, rel=0.1), way
        assert first is None or result["size"].tolist() == first, way
        first = result["size"].tolist()


def test_the_effective_diameter_of_two_vertices_and_of_none_near() -> None:
    pair = Graph.from_edges([0], [1], directed=False)
    half = effective_diameter(pair, share=0.75, device="python").aggregators["effective_diameter"]
    assert half == pytest.approx(0.5, abs=0.05)  # 2 pairs at 0 steps, 4 within 1
    alone = Graph.from_edges([0], [0], directed=False)
    assert effective_diameter(alone, device="python").aggregators["effective_diameter"] == 0.0
    path = Graph.from_edges(range(200), range(1, 201))
    assert effective_diameter(path, device="cpu").aggregators["effective_diameter"] == math.inf
    with pytest.raises(ConfigError, match="share=90 must be above 0, and at most 1"):
        effective_diameter(path, share=90)
