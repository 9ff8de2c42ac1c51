"""What the comparison of partitions counts, against a plain loop over edges."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from places import REPOSITORY

from sigps.graph.generators.generate import generate

BENCH = REPOSITORY / "scripts" / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("partitioning")


def count_by_hand(graph, owners, num_parts, place):
    """Count edges, foreign edges, and what crosses: a vertex's record, then sums for it, once a pair of parts."""
    edges, foreign = [0] * num_parts, [0] * num_parts
    records, sums = set(), set()
    for source in range(graph.num_vertices):
        for target in graph.targets[int(graph.offsets[source]) : int(graph.offsets[source + 1])].tolist():
            part = place(source, target)
            edges[part] += 1
            foreign[part] += part != owners[source]
            records.add((source, owners[source], part))
            sums.add((target, part, owners[target]))
    crossing = np.zeros((num_parts, num_parts), dtype=int)
    for _, begin, end in [*records, *sums]:
        crossing[begin, end] += begin != end
    return edges, foreign, crossing.tolist()


@pytest.mark.parametrize("num_parts", [2, 4, 8])
@pytest.mark.parametrize("layout", ["1-D", "2-D", "hubs"])
@pytest.mark.parametrize("block_edges", [1 << 23, 7])
@pytest.mark.parametrize(
    "graph",
    [generate("rmat", scale=6, edge_factor=4), generate("grid", rows=5, columns=6)],
    ids=["rmat", "grid"],
)
def test_counts_are_those_of_a_plain_loop(bench, monkeypatch, graph, layout, num_parts, block_edges):
    monkeypatch.setattr(bench, "BLOCK_EDGES", block_edges)
    owners = np.random.default_rng(3).integers(0, num_parts, graph.num_vertices)
    degrees = graph.out_degrees()
    hubs = degrees > 4
    width = {2: 2, 4: 2, 8: 4}[num_parts]
    cell = np.arange(num_parts).reshape(-1, width)

    def place(source, target):
        if layout == "2-D":
            (row, _), (_, column) = (np.argwhere(cell == owners[v])[0] for v in (source, target))
            return int(cell[row, column])
        return int(owners[source] if layout == "hubs" and hubs[target] else owners[target])

    rule = {"1-D": bench.by_target, "2-D": bench.by_grid(num_parts), "hubs": bench.by_target_unless_hub}
    found = bench.count(graph, owners, num_parts, rule[layout], hubs)
    expected = count_by_hand(graph, owners.tolist(), num_parts, place)
    assert (found.edges.tolist(), found.foreign.tolist(), found.crossing.tolist()) == expected
    assert found.vertices.tolist() == [int((owners == part).sum()) for part in range(num_parts)]
