"""What a state may begin with: neighbours, and arcs among them, against counting in plain Python and NetworkX."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from app_judges import RANDOM, RUNS, as_networkx, by_id
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from neighbor_measures import Around, counted, run_on
from ways import Way

from sigps import Checkpoint, CompileError, Graph, State, Vertex, neighbor_links, num_neighbors, run
from sigps.apps import LCC, Triangles
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.graph.measures import triangle_kernel as kernel
from sigps.system.checkpoint.resume import Identity


@pytest.mark.parametrize("way", RUNS)
@pytest.mark.parametrize("name", NAMES)
def test_states_begin_with_what_is_around(name: str, way: Way) -> None:
    result = run_on(way, Around(), BATTERY[name])
    near, links = by_id(result, "near"), by_id(result, "links")
    assert {v: (near[v], links[v]) for v in near} == counted(BATTERY[name])
    assert set(result["steps"].tolist()) == {6}


@given(samples())
@RANDOM
def test_random_graphs(sample: Sample) -> None:
    for way in (Way(), Way(2, threads=2)):
        result = run_on(way, Around(), sample)
        near, links = by_id(result, "near"), by_id(result, "links")
        assert {v: (near[v], links[v]) for v in near} == counted(sample)


@pytest.mark.parametrize("name", NAMES)
def test_triangles(name: str) -> None:
    result = run(Triangles(), BATTERY[name].build())
    simple = nx.Graph(as_networkx(BATTERY[name]))
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    expected = nx.triangles(simple)
    assert by_id(result, "triangles") == expected
    assert result.aggregators["corners"] == sum(expected.values())


@pytest.mark.parametrize("way", RUNS)
def test_coefficients(way: Way) -> None:
    for name in ("skewed", "complete_5", "grid", "parallel_edges_undirected"):
        found = by_id(run_on(way, LCC(), BATTERY[name]), "coefficient")
        for v, (near, links) in counted(BATTERY[name]).items():
            assert found[v] == pytest.approx(links / (near * (near - 1)) if near > 1 else 0.0, rel=1e-12)


def test_more_threads_than_rows() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    assert run(Around(), graph, device="cpu", threads=40)["links"].tolist() == [1, 1, 1]


def test_a_graph_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = BATTERY["skewed"].build()
    first = run(Around(), graph, device="cpu")
    monkeypatch.setattr(kernel, "oriented", None)
    np.testing.assert_array_equal(run(Around(), graph, device="python")["links"], first["links"])
    with pytest.raises(TypeError):
        run(Around(), BATTERY["skewed"].build(), device="cpu")


def test_a_log_keeps_what_became_of_it(tmp_path: Any) -> None:
    graph = BATTERY["grid"].build(directed=False)
    log = Checkpoint(tmp_path, every=1)
    run(Around(), graph, device="cpu", max_supersteps=2, checkpoint=log)
    result = run(Around(), graph, device="python", checkpoint=log, resume=True)
    whole = run(Around(), graph, device="python")
    for field in ("near", "links", "steps"):
        np.testing.assert_array_equal(result[field], whole[field])


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_what_begins_otherwise_is_another_program(device: Any) -> None:
    """The compiled program's key, and that of a log, tell them apart."""
    graph = BATTERY["grid"].build()
    kinds = [_Plain, Around, _Other]
    assert len({analyse(kind()).key for kind in kinds}) == 3
    assert len({Identity.of(kind(), graph, "double").program_key for kind in kinds}) == 3
    assert [run(kind(), graph, device=device)["near"].max() for kind in kinds] == [0, 4, 0]


class _Other(Around):
    near: State[int] = neighbor_links


class _Plain(Around):
    near: State[int] = 0


def test_a_count_is_a_whole_number() -> None:
    with pytest.raises(CompileError, match=r"num_neighbors counts, so it must be a State\[int\]"):
        type("Bad", (Vertex,), {"__annotations__": {"near": State[float]}, "near": num_neighbors})


def test_explain_tells_it() -> None:
    assert "links: int from neighbor_links" in explain(LCC)


@contextmanager
def interpreted(*names: str) -> Iterator[None]:
    """Let Python run these kernels, inside."""
    plain = {name: getattr(kernel, name).py_func for name in names}
    with mock.patch.multiple(kernel, **plain):
        yield


@given(samples(), st.booleans())
@RANDOM
def test_the_plain_kernels_say_the_same(sample: Sample, directed: bool) -> None:
    graph = sample.build()
    directed |= graph.directed
    rank = np.arange(graph.num_vertices, dtype=np.uint32)[::-1].copy()
    with interpreted("_count_oriented", "_place_oriented", "_drop_parallel"):
        plain = kernel.oriented(graph.offsets, graph.targets, rank, directed)
    compiled = kernel.oriented(graph.offsets, graph.targets, rank, directed)
    for a, b in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(a, b)
    rows, ends, ways, _ = plain
    with interpreted("_add_costs"):
        cost = kernel.cost_of_rows(rows, ends)
    np.testing.assert_array_equal(cost, kernel.cost_of_rows(rows, ends))
    found = {}
    for name, arrays in (("links_among_neighbours", (rows, ends, ways)), ("triangles", (rows, ends))):
        for count in (getattr(kernel, name), getattr(kernel, name).py_func):
            marks, counts = np.zeros(rank.size, dtype=np.uint8), np.zeros(rank.size, dtype=np.int64)
            count(np.uint64(0), np.uint64(rank.size), *arrays, marks, counts)
            assert not marks.any()
            np.testing.assert_array_equal(found.setdefault(name, counts), counts)
    if not graph.directed:
        np.testing.assert_array_equal(found["links_among_neighbours"], 2 * found["triangles"])
