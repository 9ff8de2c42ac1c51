"""Louvain's moves against NetworkX's modularity: it rises in every round, and in the end no single move raises it."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, RUNS, arcs_of, by_id, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from ways import results_of

from sigps import run
from sigps.apps import LouvainMoves


def modularity(sample: Sample, communities: dict[Any, Any]) -> float:
    """Return NetworkX's; 0 without edges, where it has none."""
    if not sample.sources:
        return 0.0
    members: dict[Any, set[Any]] = {}
    for v, community in communities.items():
        members.setdefault(community, set()).add(v)
    graph = nx.MultiGraph()
    graph.add_nodes_from(communities)
    graph.add_weighted_edges_from(arcs_of(sample, directed=True))
    return float(nx.community.modularity(graph, members.values()))


def neighbours(sample: Sample) -> dict[Any, set[Any]]:
    found: dict[Any, set[Any]] = {v: set() for v in vertices_of(sample)}
    for s, t, _ in arcs_of(sample, directed=False):
        found[t].add(s)
    return found


def check(sample: Sample, most_vertices: int = 20) -> None:
    first = None
    for way, result in results_of(LouvainMoves(), sample, RUNS):
        communities = by_id(result, "community")
        reached = modularity(sample, communities)
        assert result["share"].sum() == pytest.approx(reached, abs=1e-12), way
        assert result.reason == "converged", way
        assert first in (None, (communities, result.supersteps)), way  # whole weights: gains are the same
        first = (communities, result.supersteps)
    near = neighbours(sample)
    for v in list(communities)[:most_vertices]:
        for other in {communities[u] for u in near[v]}:
            assert modularity(sample, {**communities, v: other}) <= reached + 1e-8


@pytest.mark.parametrize("name", NAMES)
def test_no_move_raises_the_modularity_in_the_end(name: str) -> None:
    check(BATTERY[name])


@RANDOM
@given(samples())
def test_no_move_raises_the_modularity_of_random_graphs(sample: Sample) -> None:
    weights = [float(1 + int(4 * abs(weight))) for weight in sample.weights or []]
    check(Sample(sample.sources, sample.targets, weights or None, sample.directed, sample.vertices))


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_modularity_rises_in_every_round(device: Any) -> None:
    draw = np.random.default_rng(3)
    blocks = np.repeat(np.arange(4), 12)
    pairs = [
        (i, j)
        for i in range(48)
        for j in range(i)
        if draw.random() < (0.5 if blocks[i] == blocks[j] else 0.05)
    ]
    sources, targets = (list(ends) for ends in zip(*pairs, strict=True))
    sample = Sample(sources, targets, draw.random(len(pairs)).round(3).tolist(), directed=False)
    graph, reached = sample.build(), []
    for rounds in range(200):
        result = run(LouvainMoves(), graph, device=device, max_supersteps=5 * rounds + 1)
        reached.append(modularity(sample, by_id(result, "community")))
        if result.reason == "converged":
            break
    assert result.reason == "converged"
    assert len(reached) > 5
    rises = np.diff(reached[:-1])  # the last round found nothing
    assert (rises[:-1] > 0).all()
    assert reached[-1] > 0.35


def test_cliques_on_a_ring_are_communities() -> None:
    edges = [(8 * k + v, 8 * k + w) for k in range(6) for v in range(8) for w in range(v)]
    edges += [(8 * k, (8 * k + 15) % 48) for k in range(6)]
    sources, targets = (list(ends) for ends in zip(*edges, strict=True))
    result = run(LouvainMoves(), Sample(sources, targets, directed=False).build(), device="cpu")
    found = result["community"].reshape(6, 8)
    assert (found == found[:, :1]).all()
    assert len(np.unique(found)) == 6
