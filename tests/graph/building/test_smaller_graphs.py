"""Subgraphs among vertices, and graphs contracted by labels, against plain Python filters and counters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from sigps import Graph, GraphError

COLUMN = "half"


def with_columns(sample: Any, **options: Any) -> Graph:
    graph = sample.build(columns={COLUMN: [0.5 * (at + 1) for at in range(len(sample.sources))]}, **options)
    return graph.with_vertex_columns({"age": np.arange(3.0 * graph.num_vertices).reshape(-1, 3)})


def edges(graph: Graph) -> list[tuple[Any, ...]]:
    table = graph.to_arrow().to_pydict()
    return list(zip(*table.values(), strict=True))


def ids(graph: Graph) -> list[Any]:
    return graph.ids.to_oids(np.arange(graph.num_vertices)).tolist()


@pytest.mark.parametrize("size", [1, 3])
def test_a_subgraph_has_what_its_vertices_had(sample, size, run_ranks):
    whole = with_columns(sample)
    chosen = [vertex for at, vertex in enumerate(ids(whole)) if at % 3 != 1]
    ages = dict(zip(ids(whole), whole.vertex_columns["age"].tolist(), strict=True))

    def cut(group: Any) -> tuple[Any, ...]:
        graph = with_columns(sample, group=group).subgraph(chosen[::-1][group.rank :: size])
        own = np.arange(graph.first_row, graph.first_row + graph.num_rows)
        return ids(graph), edges(graph), graph.ids.to_oids(own).tolist(), graph.vertex_columns["age"].tolist()

    parts = run_ranks(size, cut)
    assert all(part[0] == chosen for part in parts)
    expected = [edge for edge in edges(whole) if {*edge[:2]} <= {*chosen}]
    assert [edge for part in parts for edge in part[1]] == expected
    assert {v: age for part in parts for v, age in zip(*part[2:], strict=True)} == {
        v: ages[v] for v in chosen
    }


@pytest.mark.parametrize("size", [1, 3])
def test_a_subgraph_of_edges_has_these_and_their_ends(sample, size, run_ranks):
    whole = with_columns(sample)
    pairs = sorted({edge[:2] for edge in edges(whole)}, key=str)[::2]
    turned = [pair if whole.directed or at % 2 else pair[::-1] for at, pair in enumerate(pairs)]
    ages = dict(zip(ids(whole), whole.vertex_columns["age"].tolist(), strict=True))

    def cut(group: Any) -> tuple[Any, ...]:
        mine = turned[group.rank :: size]
        graph = with_columns(sample, group=group).edge_subgraph([a for a, _ in mine], [b for _, b in mine])
        own = np.arange(graph.first_row, graph.first_row + graph.num_rows)
        return ids(graph), edges(graph), graph.ids.to_oids(own).tolist(), graph.vertex_columns["age"].tolist()

    parts = run_ranks(size, cut)
    expected = [edge for edge in edges(whole) if edge[:2] in pairs]
    assert [edge for part in parts for edge in part[1]] == expected
    chosen = [v for v in ids(whole) if any(v in pair for pair in pairs)]
    assert all(part[0] == chosen for part in parts)
    assert {v: age for part in parts for v, age in zip(*part[2:], strict=True)} == {
        v: ages[v] for v in chosen
    }


def test_edges_that_are_not_there_are_named() -> None:
    graph = Graph.from_edges([1, 2], [2, 3])
    with pytest.raises(GraphError, match="no edge from 2 to 1"):
        graph.edge_subgraph([1, 2], [2, 1])
    with pytest.raises(GraphError, match="targets names 9"):
        graph.edge_subgraph([1], [9])
    with pytest.raises(GraphError, match="sources has 2 ids and targets 1"):
        graph.edge_subgraph([1, 2], [2])


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("given", ["all", "own rows"])
def test_contracted_weights_are_sums(sample, size, given, run_ranks):
    whole = sample.build()
    labels = [f"g{at * 7 % 4}" for at in range(whole.num_vertices)]
    of_vertex = dict(zip(ids(whole), labels, strict=True))

    def contracted(group: Any) -> tuple[Any, Any, Any]:
        graph = sample.build(group=group)
        rows = slice(graph.first_row, graph.first_row + graph.num_rows)
        small = graph.contract(np.array(labels, "U")[rows] if given == "own rows" else labels)
        return ids(small), edges(small), small.directed

    parts = run_ranks(size, contracted)
    sums: Counter[tuple[str, ...]] = Counter()
    for source, target, *weight in edges(whole):
        ends = of_vertex[source], of_vertex[target]
        sums[ends if whole.directed else tuple(sorted(ends))] += weight[0] if weight else 1
    assert all(part[0] == sorted(set(labels)) and part[2] == whole.directed for part in parts)
    assert {edge[:2]: edge[2] for part in parts for edge in part[1]} == sums


def test_a_subgraph_of_a_graph_with_text_ids():
    graph = Graph.from_edges(["ann", "bob", "bob"], ["bob", "cy", "dora"], directed=False)
    assert edges(graph.subgraph(["dora", "bob", "ann"])) == [("ann", "bob"), ("bob", "dora")]


def test_the_report_of_a_subgraph_counts_what_is_left():
    graph = Graph.from_edges([0, 0, 1, 2, 3], [1, 1, 1, 3, 4], directed=False).subgraph([0, 1, 2])
    report = graph.report
    assert (report.edges_given, report.edges_stored, report.isolated) == (3, 5, 1)
    assert (report.duplicates, report.self_loops, report.base, report.id_map) == (1, 1, 0, "identity")


def test_unknown_vertices_and_missing_labels_are_refused():
    graph = Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(GraphError, match="ids names 9, and the graph has no such vertex"):
        graph.subgraph([0, 9])
    with pytest.raises(GraphError, match="labels has 2 values, and the graph 3 vertices"):
        graph.contract([0, 1])
    with pytest.raises(GraphError, match=r"labels: some are missing \(masked\)"):
        graph.contract(np.ma.MaskedArray([0, 1, 2], [False, True, False]))
    with pytest.raises(GraphError, match="labels: ids must be whole numbers or strings"):
        graph.contract([True, False, True])


def test_an_error_of_one_rank_ends_all(run_ranks):
    def cut(group: Any) -> str:
        graph = Graph.from_edges([0, 1], [1, 2], group=group)
        with pytest.raises(GraphError) as caught:
            graph.subgraph([9] if group.rank == 1 else [0])
        return str(caught.value)

    assert all("9" in message for message in run_ranks(2, cut))
