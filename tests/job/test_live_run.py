"""Streams of programs of fixed rounds and local measures, against the interpreter on graphs built anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from histories import History, drawn, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from round_programs import Denser, Halves, Mixture

import sigps
from sigps import ComputeError, Graph, GraphError, Vertex
from sigps.apps import CDLP, LCC, HeatDiffusion, PageRank, Triangles, WeightedLabels
from sigps.engine.cpu import measures, rounds


def assert_same(found: sigps.Result, expected: sigps.Result) -> None:
    """The same bits, supersteps and aggregators; these are sums of floats in another order."""
    for name in expected.fields:
        assert found[name].tobytes() == np.asarray(expected[name]).tobytes() or (
            found[name].dtype.kind in "OUT" and found[name].tolist() == expected[name].tolist()
        )
    assert found.supersteps == expected.supersteps
    assert found.aggregators == pytest.approx(expected.aggregators, nan_ok=True)


def moved(before: sigps.Result, after: sigps.Result) -> list[Any]:
    was = {v: [before[n][i] for n in before.fields] for i, v in enumerate(before.ids.tolist())}
    now = {v: [after[n][i] for n in after.fields] for i, v in enumerate(after.ids.tolist())}
    return [v for v in now if v not in was or was[v] != now[v]]


NAMES = ["labels", "weighted", "heat", "ranks", "mixture", "triangles", "clustering", "denser"]


@settings(max_examples=drawn(30), deadline=None)
@given(histories(), st.sampled_from(NAMES), st.data())
def test_rounds_are_those_of_a_graph_built_anew(history: History, name: str, data: st.DataObject) -> None:
    graph = history.first()
    first = np.asarray(graph.ids)[0]
    programs = {
        "labels": lambda: CDLP(iterations=4),
        "weighted": lambda: WeightedLabels(iterations=3),
        "heat": lambda: HeatDiffusion(
            source=first if isinstance(first, str) else int(first), rate=0.1, steps=5
        ),
        "ranks": lambda: PageRank(iterations=4, dangling="leak"),
        "mixture": Mixture,
        "triangles": Triangles,
        "clustering": LCC,
        "denser": Denser,
    }
    program = programs[name]()
    options = {"seed": 3} if name == "mixture" else {}
    turns = iter(data.draw(st.lists(st.booleans(), max_size=30)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "is_large", lambda *sizes: next(turns, False))
        with sigps.stream(program, graph, device="cpu", guard="incremental", threads=1, **options) as live:
            before = live.result
            for batch, judge in zip(history.updates(), history.judges(), strict=True):
                result = live.apply(batch)
                assert_same(result, sigps.run(program, judge, device="python", **options))
                update = live.graph.update
                anew = update.is_renumbered or (name == "ranks" and update.new_vertices > 0)
                assert result.path == ("full" if anew else "incremental")
                assert sorted(result.changed_ids.tolist()) == sorted(moved(before, result))
                before = result


@pytest.mark.parametrize("directed", [True, False])
def test_larger_graphs_on_several_threads_as_deterministic_runs(
    directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "is_large", lambda listed, edges, n, m: 2 * listed > n)
    draw = np.random.default_rng(5)
    n, programs = 4000, [CDLP(), HeatDiffusion(source=0, rate=1e-4), PageRank(dangling="leak", iterations=12)]
    sources, targets = (n * draw.random((2, 5 * n)) ** 2).astype(int)
    edges = list(zip(sources.tolist(), targets.tolist(), draw.integers(1, 90, 5 * n).tolist(), strict=True))
    batches: list[Any] = []
    for size in (1, 30, 3000, 2):
        ends = draw.integers(0, n + 2, (2, size)).tolist()
        inserts = list(zip(*ends, draw.integers(1, 90, size).tolist(), strict=True))
        batches.append((inserts, [edges[i][:2] for i in draw.integers(0, len(edges), size)]))
    history = History(edges, list(range(n)), batches, {"directed": directed})
    options: Any = {"device": "cpu", "deterministic": True}
    for program in programs:
        with sigps.stream(program, history.first(), threads=3, **options) as live:
            for batch, judge in zip(history.updates(), history.judges(), strict=True):
                assert_same(live.apply(batch), sigps.run(program, judge, **options))


@pytest.mark.parametrize("program", [Triangles(), LCC()])
@pytest.mark.parametrize("directed", [True, False])
def test_measures_on_several_threads(
    program: Vertex, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "_WORTH_THREADS", 0)
    draw, n = np.random.default_rng(5), 400
    edges = (n * draw.random((2, 5000)) ** 2).astype(int)
    graph = Graph.from_edges(*edges, vertices=range(n), directed=directed)
    paths = []
    with sigps.stream(program, graph, device="cpu", threads=3) as live:
        for size in (1, 20, 10, 3000, 15):
            at = draw.integers(0, 5000, size)
            result = live.apply(inserts=tuple(draw.integers(0, n, (2, size))), deletes=tuple(edges[:, at]))
            judge = Graph.from_edges(
                *[live.graph.to_arrow()[name].to_numpy() for name in ("source", "target")],
                vertices=range(n),
                directed=directed,
            )
            assert_same(result, sigps.run(program, judge, device="cpu"))
            paths.append(result.path)
    assert paths == ["incremental", "incremental", "incremental", "full", "incremental"]


def test_measures_after_a_refused_batch_and_with_given_values() -> None:
    graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3], directed=False)
    with sigps.stream(LCC(), graph, device="cpu", missing="error") as live:
        with pytest.raises(GraphError, match="match no edge"):
            live.apply(inserts=([0], [2]), deletes=([3], [1]))
        assert live.apply(inserts=([0], [2]))["links"].tolist() == [4, 2, 4, 2]
        assert live.apply(deletes=([0], [3]))["links"].tolist() == [2, 2, 2, 0]
    with sigps.stream(LCC(), graph, device="cpu", initial={"links": [1, 2, 3, 4]}) as live:
        result = live.apply(inserts=([0], [2]))
        assert (result.path, result["links"].tolist()) == ("incremental", [1, 2, 3, 4])
        assert result["neighbors"].tolist() == [3, 2, 3, 2]


def test_after_an_error_batches_run_in_full() -> None:
    graph = Graph.from_edges([0, 1, 2], [3, 3, 0], vertices=range(6))
    with sigps.stream(Halves(), graph, device="cpu") as live:
        assert live.result["value"].tolist() == [6, 4, 4, 12, 4, 4]
        assert live.apply(inserts=([4], [5])).path == "incremental"
        with pytest.raises(ComputeError, match="vertex 3"):
            live.apply(inserts=([4], [3]))
        assert live.result["value"].tolist() == [6, 4, 4, 12, 4, 6]
        result = live.apply(deletes=([0], [3]))
        assert result["value"].tolist() == [6, 4, 4, 6, 4, 6]
        assert (result.path, result.why) == ("full", "a batch before ended with an error")


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "available_memory", lambda: 4 * 3 * 8 * 6)
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], vertices=range(6))
    for iterations, path in ((2, "incremental"), (3, "full")):
        with sigps.stream(CDLP(iterations=iterations), graph, device="cpu") as live:
            result = live.apply(inserts=([3], [4]))
            assert_same(result, sigps.run(CDLP(iterations=iterations), live.graph, device="python"))
            assert result.path == path
    assert "4 supersteps take 192 bytes" in result.why


def test_given_values_and_vertices_that_change_all() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], [1, 2, 3])
    with sigps.stream(Mixture(), graph, device="cpu", initial={"total": [1.0, 2.0, 4.0]}) as live:
        options: Any = {"initial": {"total": [1.0, 2.0, 4.0]}, "device": "python"}
        assert_same(live.result, sigps.run(Mixture(), graph, **options))
        result = live.apply(inserts=([2], [1], [4]))
        assert_same(result, sigps.run(Mixture(), live.graph, **options))
        assert result.path == "incremental"
    with sigps.stream(PageRank(dangling="leak"), graph, device="cpu") as live:
        result = live.apply(inserts=([2], [3], [1]))
        assert (result.path, result.why) == ("full", "new vertices came between others, or change all")
        assert result.changed_ids.tolist() == [0, 1, 2, 3]
