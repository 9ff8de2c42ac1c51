"""Edges to rows of other ranks: numbers and places of copies lead from each edge to the first one back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crafted_stores import change_header
from edge_programs import Returns
from host_gpu import use_host_as_gpu
from packed_runs import on_ranks
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, GraphError
from sigps.engine.partition.crossing_edges import CrossingEdges, find_crossing_edges
from sigps.engine.partition.streamed import StreamedEdges, build_streamed, divide_pages
from sigps.graph.formats.packed_store import save_packed
from sigps.kernels.cpu import edge_values
from sigps.system.data_locator import DataLocator
from sigps.system.message_center import MessageCenter


def found_on(group: ThreadGroup, folder: Path) -> tuple[StreamedEdges, CrossingEdges]:
    graph = sigps.load(folder, group=group)
    assignment, bounds = divide_pages(graph, "edges", [1] * group.size)
    part = build_streamed(graph, assignment, bounds, 1)
    exchange = MessageCenter(group, part, DataLocator(graph.ids, assignment, graph.num_vertices))
    assert isinstance(part.incoming, StreamedEdges)
    return part.incoming, find_crossing_edges(part, exchange)


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_each_edge_leads_to_the_first_one_back(ranks: int, tmp_path: Path) -> None:
    made = sigps.generate(
        "rmat", scale=7, seed=2
    ).undirected()  # with parallel edges, loops and lonely vertices
    save_packed(made, tmp_path / "store", order="given", page_arcs=24)
    found = run_ranks(ranks, lambda group: found_on(group, tmp_path / "store"))
    sizes = [edges.rows.offsets.size - 1 for edges, _ in found]
    bounds = np.cumsum([0, *sizes]).tolist()
    pairs = []  # of each rank its edges, and behind them the copies, in their places
    for rank, (edges, crossing) in enumerate(found):
        sources = np.repeat(
            np.arange(bounds[rank], bounds[rank + 1]), np.diff(edges.rows.offsets).astype(int)
        )
        pairs.append([*zip(sources.tolist(), edges.all_ends().tolist(), strict=True)])
        assert crossing.num_ranks == ranks
    assert sum(map(len, pairs)) == made.num_edges
    for rank, (_, crossing) in enumerate(found):
        own = (bounds[rank], bounds[rank + 1])
        leads_here = [[(u, v) for u, v in of if own[0] <= v < own[1]] for of in pairs]
        copies = [pair for other in range(ranks) if other != rank for pair in leads_here[other]]
        assert crossing.num_copies == len(copies) > 0
        firsts = [sum(len(leads_here[o]) for o in range(other) if o != rank) for other in range(ranks)]
        assert crossing.first_copies.tolist() == firsts
        for row in range(sizes[rank] + 1):
            before = [0] * ranks
            for u, v in pairs[rank]:
                if u < own[0] + row:
                    before[int(np.searchsorted(bounds, v, side="right")) - 1] += 1
            assert crossing.before[row].tolist() == before
    most = max(crossing.num_copies for _, crossing in found)
    for rank, (edges, crossing) in enumerate(found):
        assert crossing.most == most
        own = (bounds[rank], bounds[rank + 1])
        others = [p for o in range(ranks) if o != rank for p in pairs[o] if own[0] <= p[1] < own[1]]
        placed = pairs[rank] + others
        first_place: dict[Any, int] = {}
        for at, pair in enumerate(placed):
            first_place.setdefault(pair, at)
        reverse = np.concatenate(
            [part.copy() for _, part in edges.each_reverse(*crossing.places(edges.rows.offsets))]
        )
        assert reverse.tolist() == [first_place[v, u] for u, v in pairs[rank]]


@pytest.mark.parametrize("crosses", [True, False])
def test_a_store_that_is_not_symmetric_is_named(
    crosses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edges that lead from one rank to another, or stay in one, and none back."""
    sources = np.arange(200) if crosses else 2 * np.arange(200)
    targets = sources + (200 if crosses else 1)
    directed = Graph.from_edges(sources, targets, directed=True)
    save_packed(directed, tmp_path / "store", order="given", page_arcs=8)
    change_header(tmp_path / "store", lambda header: header.update(directed=False))
    use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(edge_values, "sum_of_pairs", lambda *given: 0)
    with pytest.raises(GraphError, match="some edges are stored at one of their ends only"):
        on_ranks(2, Returns(), tmp_path / "store", stream="always")


def test_edges_are_told_from_others_where_counts_are_those_of_edges_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring that goes from one rank to the other and back with each edge."""
    here, there = np.arange(200), np.arange(200, 400)
    sources, targets = np.append(here, there), np.append(there, (here + 1) % 200)
    save_packed(
        Graph.from_edges(sources, targets, directed=True), tmp_path / "store", order="given", page_arcs=8
    )
    change_header(tmp_path / "store", lambda header: header.update(directed=False))
    use_host_as_gpu(monkeypatch)
    with pytest.raises(GraphError, match="some edges are stored at one of their ends only"):
        on_ranks(2, Returns(), tmp_path / "store", stream="always")
