"""Maximal independent sets: by their two properties, and against going through the vertices one by one."""

from __future__ import annotations

from typing import Any

import pytest
from app_judges import RANDOM, by_id, neighbours_of, runs_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import results_of

from sigps.apps import MaximalIndependentSet
from sigps.apps.hashing import hashed


def check(sample: Sample, seed: int) -> None:
    neighbours = neighbours_of(sample)
    for way, result in results_of(MaximalIndependentSet(seed=seed), sample, runs_of(sample)):
        chosen = {v for v, is_in in by_id(result, "chosen").items() if is_in}
        for v, around in neighbours.items():
            assert (v in chosen) == chosen.isdisjoint(around), (way, v)
        if not isinstance(min(neighbours), str):  # names have numbers of their own in compute()
            assert chosen == taken_in_order(neighbours, seed), way


def taken_in_order(neighbours: dict[Any, set[Any]], seed: int) -> set[Any]:
    chosen: set[Any] = set()
    for v in sorted(neighbours, key=lambda v: (hashed(v, seed), v)):
        if chosen.isdisjoint(neighbours[v]):
            chosen.add(v)
    return chosen


@pytest.mark.parametrize(("name", "seed"), in_turn(NAMES, [0, 1, -(10**12)]))
def test_no_two_are_neighbours_and_none_can_be_added(name: str, seed: int) -> None:
    check(BATTERY[name], seed)


@RANDOM
@given(samples(), st.integers(-(2**63), 2**63 - 1))
def test_sets_on_random_graphs(sample: Sample, seed: int) -> None:
    check(sample, seed)


def test_a_seed_gives_one_set_and_another_seed_another() -> None:
    sets = [taken_in_order(neighbours_of(BATTERY["grid"]), seed) for seed in range(8)]
    assert len({frozenset(chosen) for chosen in sets}) > 4
