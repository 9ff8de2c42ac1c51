"""Louvain and Leiden: modularity by NetworkX, planted communities, connected ones, and the same ones on all ranks."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import QUICK_RUNS, RANDOM, RUNS, arcs_of, by_id, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from turns import half_of
from ways import Way, results_of

from sigps.apps import leiden, louvain


def as_multigraph(sample: Sample) -> Any:
    graph = nx.MultiGraph()
    graph.add_nodes_from(vertices_of(sample))
    graph.add_weighted_edges_from(arcs_of(sample, directed=True))
    return graph


def groups_of(communities: dict[Any, int]) -> list[set[Any]]:
    """Return the communities in the order of their numbers, which must be that of their smallest members."""
    groups: dict[int, set[Any]] = {}
    for v, number in communities.items():
        groups.setdefault(number, set()).add(v)
    assert list(groups) == list(range(len(groups)))
    return list(groups.values())


def check(sample: Sample, find: Any, ways: list[Way], resolution: float = 1.0) -> None:
    graph = as_multigraph(sample)
    first = None
    for way, result in results_of(partial(find, resolution=resolution), sample, ways):
        groups = groups_of(by_id(result, "community"))
        assert first in (None, (groups, result.supersteps)), way
        first = (groups, result.supersteps)
        reached = result.aggregators["modularity"]
        if graph.size("weight") > 0:
            expected = nx.community.modularity(graph, groups, resolution=resolution)
            assert reached == pytest.approx(expected, abs=1e-12), way
            assert (
                reached >= nx.community.modularity(graph, [{v} for v in graph], resolution=resolution) - 1e-9
            )
        else:
            assert all(len(group) == 1 for group in groups)
        if find is leiden:
            assert all(nx.is_connected(graph.subgraph(group)) for group in groups), way


@pytest.mark.parametrize(("find", "name"), half_of([louvain, leiden], NAMES, whole=["grid", "skewed"]))
def test_communities_of_the_battery(find: Any, name: str) -> None:
    several = {"grid": RUNS, "skewed": [Way(), Way(2, partitioner="hash")]}
    check(BATTERY[name], find, several.get(name, QUICK_RUNS))


@RANDOM
@given(samples())
def test_communities_of_random_graphs(sample: Sample) -> None:
    weights = [float(int(4 * abs(weight))) for weight in sample.weights or []]
    whole = Sample(sample.sources, sample.targets, weights or None, sample.directed, sample.vertices)
    check(whole, leiden, QUICK_RUNS, resolution=1.5)


def planted(groups: int, size: int, inside: float, outside: float) -> Sample:
    draw = np.random.default_rng(3)
    block = np.repeat(np.arange(groups), size)
    upper = np.triu(draw.random((block.size,) * 2) < np.where(block[:, None] == block, inside, outside), 1)
    sources, targets = np.nonzero(upper)
    return Sample(sources.tolist(), targets.tolist(), directed=False)


@pytest.mark.parametrize("find", [louvain, leiden])
def test_planted_communities_are_found_on_any_ranks(find: Any) -> None:
    sample = planted(groups=6, size=20, inside=0.5, outside=0.02)
    check(sample, find, runs_of(sample))
    ((_, result),) = results_of(find, sample, [Way()])
    assert result["community"].tolist() == np.repeat(np.arange(6), 20).tolist()


@pytest.mark.parametrize("find", [louvain, leiden])
def test_as_good_as_the_communities_of_networkx(find: Any) -> None:
    sample = planted(groups=12, size=25, inside=0.15, outside=0.03)
    graph = as_multigraph(sample)
    ((_, result),) = results_of(find, sample, [Way()])
    best = max(
        nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=seed))
        for seed in range(3)
    )
    assert result.aggregators["modularity"] >= 0.97 * best


@pytest.mark.gpu
@pytest.mark.parametrize("find", [louvain, leiden])
def test_a_gpu_finds_the_same_communities(find: Any) -> None:
    graph = planted(groups=12, size=25, inside=0.15, outside=0.03).build()
    one, other = (find(graph, device=device) for device in ("cpu", "cuda"))
    assert one["community"].tolist() == other["community"].tolist()
