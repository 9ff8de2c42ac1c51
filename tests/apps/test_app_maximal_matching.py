"""Maximal matchings: by their properties, and against going through the edges one by one."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import DEVICES, RANDOM, RUNS, by_id, neighbours_of, runs_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import Way, results_of

from sigps import generate, run
from sigps.apps import MaximalMatching
from sigps.apps.hashing import hashed


def check(sample: Sample, seed: int, ways: list[Way] | None = None) -> None:
    neighbours = neighbours_of(sample)
    graph = nx.Graph((u, v) for u, around in neighbours.items() for v in around)
    expected = dict.fromkeys(neighbours) | taken_in_order(neighbours, seed)
    for way, result in results_of(MaximalMatching(seed=seed), sample, ways or runs_of(sample)):
        mates = by_id(result, "mate")
        matched = {v: mate for v, mate in mates.items() if mates.get(mate) == v != mate}
        assert nx.is_maximal_matching(graph, matched), way
        assert {mates[v] for v in mates.keys() - matched.keys()} <= {None}, way
        assert mates == expected, way
        assert result.reason == "converged", way


def taken_in_order(neighbours: dict[Any, set[Any]], seed: int) -> dict[Any, Any]:
    """Take every edge whose ends are free; compute() sees the places of ids that are strings."""
    numbers = {v: i if isinstance(v, str) else v for i, v in enumerate(sorted(neighbours))}
    edges = [(u, v) for u in neighbours for v in neighbours[u] if numbers[u] < numbers[v]]

    def order(edge: tuple[Any, Any]) -> tuple[int, int, int]:
        low, high = (numbers[v] for v in edge)
        return hashed(high, hashed(low, seed)), low, high

    mates: dict[Any, Any] = {}
    for u, v in sorted(edges, key=order):
        if u not in mates and v not in mates:
            mates[u], mates[v] = v, u
    return mates


@pytest.mark.parametrize(("name", "seed"), in_turn(NAMES, [0, 1, -(10**12)]))
def test_mates_are_neighbours_and_none_can_be_added(name: str, seed: int) -> None:
    check(BATTERY[name], seed)


@RANDOM
@given(samples(), st.integers(-(2**63), 2**63 - 1))
def test_matchings_on_random_graphs(sample: Sample, seed: int) -> None:
    check(sample, seed)


@RANDOM
@given(st.lists(st.tuples(st.integers(-6, -1), st.integers(0, 5)), min_size=1), st.integers(0, 9))
def test_matchings_of_bipartite_graphs(edges: list[tuple[int, int]], seed: int) -> None:
    lefts, rights = zip(*edges, strict=True)
    check(Sample(list(lefts), list(rights), directed=False), seed)


@pytest.mark.parametrize("seed", range(4))
def test_a_vertex_whose_id_is_that_of_no_vertex(seed: int) -> None:
    check(Sample([-1, -1, -1, -1, 0, 1], [-1, 0, 1, 2, 0, 2], directed=False), seed)
    check(Sample([-1], [-1], directed=False, vertices=[0]), seed)


def test_edges_of_one_priority_are_taken_in_order_of_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigps.apps.maximal_matching.hashed", lambda vertex, seed: 7)
    monkeypatch.setattr(f"{__name__}.hashed", lambda vertex, seed: 7)
    for name in ["complete_5", "grid", "hub_on_a_partition_border", "string_ids"]:
        check(BATTERY[name], 0, [way for way in RUNS if way.device == "python"])


def test_a_seed_gives_one_matching_and_another_seed_another() -> None:
    found = [taken_in_order(neighbours_of(BATTERY["grid"]), seed) for seed in range(8)]
    assert len({frozenset(mates.items()) for mates in found}) > 4


@pytest.mark.parametrize("device", DEVICES)
def test_a_round_takes_two_supersteps_and_the_last_one_finds_nobody(device: Any) -> None:
    for name, supersteps in [("only_isolated", 2), ("path_of_two", 3)]:
        sample = BATTERY.get(name, Sample([0], [1], directed=False))
        assert run(MaximalMatching(), sample.build(), device=device).supersteps == supersteps


def test_on_a_long_path_as_many_are_matched_as_in_random_order_and_in_few_rounds() -> None:
    graph = generate("grid", rows=1, columns=20000)
    for seed in range(4):
        result = run(MaximalMatching(seed=seed), graph, device="cpu")
        assert np.mean(~result["mate"].mask) == pytest.approx(1 - np.exp(-2), abs=0.01)
        assert result.supersteps < 30
