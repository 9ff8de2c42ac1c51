"""K-hop neighbourhoods against NetworkX."""

from __future__ import annotations

import networkx as nx
import pytest
from app_judges import RANDOM, as_networkx, by_id, first_id, runs_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from turns import in_turn
from ways import results_of

from sigps.apps import KHop


def check(sample: Sample, hops: int) -> None:
    graph, source = as_networkx(sample), first_id(sample)
    found = nx.single_source_shortest_path_length(graph, source, cutoff=hops)
    for way, result in results_of(KHop(source=source, hops=hops), sample, runs_of(sample)):
        assert by_id(result, "hop") == {v: found.get(v, -1) for v in graph}, way
        assert result.aggregators["size"] == len(found), way
        assert result.supersteps <= hops + 1, way


@pytest.mark.parametrize(("name", "hops"), in_turn(NAMES, [0, 1, 2, 100]))
def test_the_neighbourhood_is_that_of_networkx(name: str, hops: int) -> None:
    check(BATTERY[name], hops)


@RANDOM
@given(samples(), st.integers(0, 4))
def test_neighbourhoods_in_random_graphs(sample: Sample, hops: int) -> None:
    check(sample, hops)
