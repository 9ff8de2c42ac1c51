"""Searches from 64 sources at once against NetworkX's from each of them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, as_networkx, runs_of, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from thread_group import run_ranks
from ways import results_of

from sigps import run
from sigps.apps import MultiSourceBFS


def levels_of(sample: Sample, sources: dict[int, Any]) -> list[list[int]]:
    """Return the distance of each vertex, ids ascending, in each of 64 searches; `sources` are by search."""
    graph, ids = as_networkx(sample), vertices_of(sample)
    rows = np.full((len(ids), 64), -1)
    for k, source in sources.items():
        found = nx.single_source_shortest_path_length(graph, source)
        rows[:, k] = [found.get(v, -1) for v in ids]
    return rows.tolist()


def masks_of(levels: list[list[int]]) -> list[int]:
    return [sum(1 << k for k, level in enumerate(row) if level >= 0) for row in levels]


@pytest.mark.parametrize("name", NAMES)
def test_the_first_vertices_are_sources_without_a_column(name: str) -> None:
    sample = BATTERY[name]
    numbers = {v: i if isinstance(v, str) else v for i, v in enumerate(vertices_of(sample))}
    expected = levels_of(sample, {k: v for v, k in numbers.items() if 0 <= k < 64})
    for way, result in results_of(MultiSourceBFS(), sample, runs_of(sample)):
        assert result["distance"].tolist() == expected, way
        assert result["distance"].dtype == np.int16
        assert result["found"].tolist() == masks_of(expected), way
        assert result.reason == "converged"


@RANDOM
@given(samples(), st.data())
def test_searches_of_random_graphs(sample: Sample, data: Any) -> None:
    ids = vertices_of(sample)
    sources = data.draw(st.dictionaries(st.integers(0, 63), st.sampled_from(ids), max_size=64))
    sources = {k: v for v, k in {v: k for k, v in sources.items()}.items()}  # one search a source
    expected = levels_of(sample, sources)
    for ranks, device in ((1, "python"), (1, "cpu"), (2, "cpu"), (3, "cpu")):

        def found(group: Any, device: Any = device) -> list[list[int]]:
            mine = {v: k + 1 for k, v in sources.items()} if group.rank == 0 else {}
            graph = sample.build(group=group).with_vertex_columns({"search": mine}, local=True)
            rows: list[list[int]] = run(MultiSourceBFS(), graph, device=device)["distance"].tolist()
            return rows

        assert run_ranks(ranks, found)[0] == expected
