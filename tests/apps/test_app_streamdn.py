"""Estimated bounds against a plain simulation of the same scans, and against true bounds where chance allows."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import neighbours_of, runs_of
from battery import BATTERY, Sample
from ways import Way, results_of

from sigps import Graph, generate, run
from sigps.apps import BiTriDN, StreamDN, TriDN
from sigps.apps.hashing import hashed

Edge = tuple[Any, Any]


def simulated(near: dict[Any, set[Any]], scans: int, bits: int, seed: int) -> dict[Edge, int]:
    """Take edges away level by level, on sets of neighbours; an edge is the pair of its ends, the lower first."""
    left = {v: set(ends) for v, ends in near.items()}
    bounds = dict.fromkeys(((v, w) for v in near for w in near[v] if v < w), 0)
    superstep, level = 0, 1
    while edges := [(v, w) for v in left for w in left[v] if v < w]:
        hits = dict.fromkeys(edges, 0)
        for _ in range(scans):
            low = {
                v: min(hashed(w, hashed(superstep, seed)) >> (64 - bits) for w in ends)
                for v, ends in left.items()
                if ends
            }
            for v, w in edges:
                hits[v, w] += low[v] == low[w]
            superstep += 1
        superstep += 1
        shared = {
            (v, w): round(count / (scans + count) * (len(left[v]) + len(left[w])))
            for (v, w), count in hits.items()
        }
        gone = [edge for edge in edges if shared[edge] < level]
        for v, w in gone:
            bounds[v, w] = level - 1
            left[v].remove(w)
            left[w].remove(v)
        if not gone:
            level = min(shared.values()) + 1
    return bounds


def bounds_of(result: Any) -> dict[Edge, int]:
    found: dict[Edge, int] = {}
    edges = result.edges
    for v, w, bound in zip(
        edges.sources.tolist(), edges.targets.tolist(), edges["bound"].tolist(), strict=True
    ):
        if v != w:
            found[v, w] = max(bound, found.get((v, w), 0))
    return found


@pytest.mark.parametrize(
    "name", ["complete_5", "self_loop_undirected", "sparse_ids", "parallel_edges", "grid", "only_isolated"]
)
def test_bounds_are_those_of_a_simulation(name: str) -> None:
    sample = BATTERY[name]
    expected = simulated(neighbours_of(sample), 12, 16, 5)
    for way, result in results_of(StreamDN(scans=12, bits=16, seed=5), sample, runs_of(sample)):
        assert bounds_of(result) == expected, way
        assert result.reason == "stopped"


@pytest.mark.slow
def test_bounds_of_a_skewed_graph_are_those_of_a_simulation() -> None:
    edges = generate("rmat", scale=6, edge_factor=8, seed=2)
    sources = np.repeat(np.arange(edges.num_vertices), np.diff(edges.offsets).astype(int)).tolist()
    sample = Sample(sources, edges.targets.tolist(), vertices=list(range(edges.num_vertices)))
    expected = simulated(neighbours_of(sample), 24, 32, 1)
    assert len(set(expected.values())) > 4
    for way, result in results_of(
        StreamDN(scans=24, seed=1), sample, [Way(threads=2), Way(3, partitioner="hash")]
    ):
        assert bounds_of(result) == expected, way


def test_more_scans_come_nearer_to_the_true_bounds() -> None:
    graph = generate("rmat", scale=7, edge_factor=8, seed=1)
    true = run(BiTriDN(), graph).edges["bound"]
    few, many = (run(StreamDN(scans=n), graph).edges["bound"] for n in (4, 128))
    assert np.corrcoef(true, many)[0, 1] > 0.9
    assert np.abs(many - true).mean() < np.abs(few - true).mean() / 2


def test_bounds_come_out_as_much_too_low_as_the_page_says() -> None:
    graph = Graph.from_networkx(nx.karate_club_graph(), weight=None)
    true = run(TriDN(), graph).edges["bound"]
    assert true.mean() == pytest.approx(1.36, abs=0.005)
    for scans, error in ((64, -0.41), (256, -0.02)):
        found = [run(StreamDN(scans=scans, seed=s), graph).edges["bound"] - true for s in range(5)]
        assert np.mean(found) == pytest.approx(error, abs=0.005)


def test_too_few_bits_hit_by_chance() -> None:
    """The ends of a star's edges share nobody; hashes of one bit say otherwise."""
    sample = BATTERY["star_out"]
    for bits, shares in ((32, False), (1, True)):
        (_, result), *_ = results_of(StreamDN(scans=16, bits=bits), sample, [Way()])
        assert (result.edges["bound"].max() > 0) == shares
