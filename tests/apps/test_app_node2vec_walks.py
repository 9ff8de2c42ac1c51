"""Walks of node2vec: each step is an edge, and as frequent as the definition says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from app_judges import RANDOM, arcs_of, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from scipy.stats import chisquare
from ways import assert_same, results_of

from sigps import Graph, Result, run
from sigps.apps import Node2vecWalks


def check(sample: Sample) -> None:
    """Walk along edges, and the same way everywhere; compute() sees the places of ids that are strings."""
    ids = vertices_of(sample)
    numbers = {v: i if isinstance(v, str) else v for i, v in enumerate(ids)}
    arcs = {(numbers[s], numbers[t]) for s, t, _ in arcs_of(sample, directed=False)}
    program = Node2vecWalks(p=0.5, q=2.0, length=7)
    results = results_of(program, sample, runs_of(sample))
    for _, result in results:
        assert_same(result, results[0][1], exact=True)
        for v, walk in zip(ids, result["walk"].tolist(), strict=True):
            if any(numbers[v] == s for s, _ in arcs):
                assert all(step in arcs for step in zip([numbers[v], *walk], walk, strict=False))
            else:
                assert walk == [-1] * 7


@pytest.mark.parametrize("name", [name for name in NAMES if name != "skewed"])
def test_walks_go_along_edges(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_walks_on_random_graphs(sample: Sample) -> None:
    check(sample)


EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (3, 4), (2, 4), (4, 5), (4, 5), (5, 5)]
"""Triangles, squares, an end, a parallel edge and a loop: in the tests, of many copies."""
COPIES = 400


def walked(p: float, q: float, length: int, device: str) -> tuple[Graph, Result]:
    pairs = np.array([(s + 6 * k, t + 6 * k) for k in range(COPIES) for s, t in EDGES])
    graph = Graph.from_edges(pairs[:, 0], pairs[:, 1], directed=False)
    program = Node2vecWalks(p=p, q=q, length=length)
    return graph, run(program, graph, device=device, seed=5)


def exact(p: float, q: float, t: int | None, v: int) -> dict[int, float]:
    """Return the chance of each next vertex after a step from t to v; None: of the first step."""
    weights: Counter[int] = Counter()
    around = {x for e in EDGES for x in e if t in e and x != t} | ({t} if (t, t) in EDGES else set())
    for s, x in [*EDGES, *((x, s) for s, x in EDGES if s != x)]:
        if s == v:
            weights[x] += 1.0 if t is None else 1 / p if x == t else 1.0 if x in around else 1 / q
    return {x: weight / weights.total() for x, weight in sorted(weights.items())}


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.25), (0.3, 0.6)])
def test_steps_are_as_frequent_as_the_definition_says(p: float, q: float) -> None:
    """Compiled: the interpreter takes the same steps, above, and longer."""
    _, result = walked(p, q, 6, "cpu")
    taken: Counter[tuple[int | None, int, int]] = Counter()
    for start, walk in zip(result.ids.tolist(), result["walk"].tolist(), strict=True):
        path = [start % 6, *(x % 6 for x in walk)]
        taken[None, path[0], path[1]] += 1
        taken.update(zip(path, path[1:], path[2:], strict=False))
    assert taken.total() == 6 * 6 * COPIES
    pairs = sorted({(t, v) for t, v, _ in taken}, key=str)
    assert len(pairs) == 6 + 15  # first steps; arcs, of the loop one and of parallel edges two
    values = []
    for t, v in pairs:
        chances = exact(p, q, t, v)
        counts = [taken[t, v, x] for x in chances]
        assert sum(counts) == sum(n for (a, b, _), n in taken.items() if (a, b) == (t, v))
        expected = [sum(counts) * chance for chance in chances.values()]
        if len(chances) > 1:
            values.append(chisquare(counts, expected).pvalue)
    assert min(values) > 0.01 / len(values)
    assert max(values) < 1 - 0.01 / len(values) or len(values) < 5


def test_the_seed_of_the_run_draws_other_walks() -> None:
    graph = BATTERY["grid"].build()
    walks = [run(Node2vecWalks(), graph, seed=seed)["walk"].tolist() for seed in (0, 0, 1)]
    assert walks[0] == walks[1] != walks[2]
