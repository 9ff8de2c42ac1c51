"""Which vertices measures look from: all, or a sample without repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from app_judges import drawn, vertices_of
from battery import BATTERY

from sigps import ConfigError, Graph, GraphError
from sigps.apps import closeness, eccentricities, harmonic
from sigps.apps.sources import sources_of


@pytest.mark.parametrize("name", ["grid", "string_ids", "sparse_ids"])
def test_all_vertices_or_those_that_hashes_fall_on(name: str) -> None:
    sample = BATTERY[name]
    graph, ids = sample.build(), vertices_of(sample)
    for samples in (0, len(ids), len(ids) + 1):
        assert sources_of(graph, samples, seed=3) == ids
    for samples, seed in ((1, 0), (3, -(2**63)), (len(ids) - 1, 2**63 - 1)):
        found = sources_of(graph, samples, seed)
        assert len(set(found)) == samples
        assert found == drawn(sample, samples, seed)


def test_every_vertex_is_drawn_as_often() -> None:
    graph = BATTERY["grid"].build()
    counts = Counter(v for seed in range(2000) for v in sources_of(graph, 4, seed))
    assert (
        sum((count - 400) ** 2 / 400 for count in counts.values()) < 45.3
    )  # chi-square of 19 degrees: one in 1,500


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="samples=-1"):
        closeness(BATTERY["grid"].build(), samples=-1)
    with pytest.raises(GraphError, match="no vertices"):
        closeness(Graph.from_edges([], []))


@pytest.mark.parametrize("measure", [closeness, eccentricities, harmonic])
def test_a_source_that_is_no_vertex_is_named_as_such(measure: Callable[..., Any]) -> None:
    texts = Graph.from_edges(["ann", "bob"], ["bob", "cy"], directed=False)
    numbers = Graph.from_edges([1, 2], [2, 3], directed=False)
    for graph, sources, missing in (
        (texts, ["ann", "zz"], "'zz'"),
        (texts, [5], "5"),
        (numbers, [3, 9], "9"),
        (numbers, ["zz"], "'zz'"),
    ):
        with pytest.raises(GraphError, match=f"sources: there is no vertex {missing} in the graph"):
            measure(graph, sources=sources)
    with pytest.raises(ConfigError, match=r"sources=\[\] names no vertex"):
        measure(numbers, sources=[])
