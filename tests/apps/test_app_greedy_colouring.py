"""Greedy colourings: by their two properties, and against NetworkX in the same order."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from app_judges import RANDOM, by_id, neighbours_of, runs_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import results_of

from sigps.apps import GreedyColouring
from sigps.apps.hashing import hashed


def check(sample: Sample, seed: int) -> None:
    neighbours = neighbours_of(sample)
    for way, result in results_of(GreedyColouring(seed=seed), sample, runs_of(sample)):
        colours = by_id(result, "colour")
        for v, around in neighbours.items():
            near = {colours[u] for u in around}
            assert colours[v] not in near, (way, v)
            assert near >= set(range(colours[v])), (way, v)  # no smaller colour is free
        if not isinstance(min(neighbours), str):  # names have numbers of their own in compute()
            assert colours == coloured_in_order(neighbours, seed), way


def coloured_in_order(neighbours: dict[Any, set[Any]], seed: int) -> dict[Any, int]:
    def order(graph: Any, colours: Any) -> list[Any]:
        return sorted(graph, key=lambda v: (hashed(v, seed), v))

    found: dict[Any, int] = nx.greedy_color(nx.Graph(neighbours), strategy=order)
    return found


@pytest.mark.parametrize(("name", "seed"), in_turn(NAMES, [0, 1, -(10**12)]))
def test_neighbours_differ_and_no_smaller_colour_is_free(name: str, seed: int) -> None:
    check(BATTERY[name], seed)


@RANDOM
@given(samples(), st.integers(-(2**63), 2**63 - 1))
def test_colours_on_random_graphs(sample: Sample, seed: int) -> None:
    check(sample, seed)
