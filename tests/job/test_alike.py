"""Runs that are asked for as earlier ones on their graph: what these left serves them, and nothing of it is stale."""

from __future__ import annotations

import copy
import gc
import importlib.util
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import ConfigError, Graph, GraphError, Param, State, Vertex, from_column
from sigps.apps import BFS, SSSP, WCC, PageRank
from sigps.job import alike

STEP = 1


class Climb(Vertex):
    """Adds `by`, and a number of the module, `rounds` times."""

    by: Param[int] = 1
    rounds: Param[int] = 2
    height: State[int] = 0

    def compute(self, messages):
        self.height += self.by * STEP
        if self.superstep + 1 >= self.rounds:
            self.vote_to_halt()


class Draw(Vertex):
    """A random number a vertex."""

    drawn: State[float] = 0.0

    def compute(self, messages):
        self.drawn = self.random()
        self.vote_to_halt()


class Aged(Vertex):
    """Doubles a column of the graph's vertices."""

    age: State[int] = from_column("age")

    def compute(self, messages):
        self.age *= 2
        self.vote_to_halt()


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A device; of the GPU a stand-in on the host."""
    if request.param == "cuda":
        if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None:
            pytest.skip("cuda-core is not installed: pip install 'sigps[cuda-link]'")
        from host_gpu import use_host_as_gpu

        use_host_as_gpu(monkeypatch)
    return str(request.param)


def drawn_graph(**options: Any) -> Graph:
    draw = np.random.default_rng(5)
    sources, targets = draw.integers(0, 40, (2, 160))
    return Graph.from_edges(sources, targets, weights=draw.integers(1, 9, 160).astype(float), **options)


def fields_of(program: Vertex, graph: Graph, device: str, **options: Any) -> dict[str, Any]:
    result = sigps.run(program, graph, device=device, **options)
    return {"supersteps": result.supersteps, "reason": result.reason} | {
        name: result[name].tolist() for name in result.fields
    }


RUNS: list[tuple[Vertex, dict[str, Any]]] = [
    (BFS(source=0), {}),
    (BFS(source=7), {}),
    (BFS(source=0), {"max_supersteps": 1}),
    (BFS(source=0), {"direction": "pull"}),
    (PageRank(iterations=3), {}),
    (PageRank(iterations=3, damping=0.5), {}),
    (PageRank(iterations=5), {"precision": "single"}),
    (PageRank(iterations=5), {"deterministic": True}),
    (SSSP(source=1), {"asynchronous": False}),
    (SSSP(source=2), {"asynchronous": False}),
    (WCC(), {"asynchronous": False}),
    (WCC(), {"max_supersteps": 2}),
    (Climb(by=3), {}),
    (Climb(by=3, rounds=5), {}),
    (Draw(), {"seed": 1}),
    (Draw(), {}),
    (BFS(source=0), {"initial": {"level": {3: 4}}}),
]


@pytest.mark.parametrize("directed", [True, False])
def test_runs_in_any_order_are_those_on_graphs_of_their_own(device: str, directed: bool) -> None:
    graph = drawn_graph(directed=directed)
    judges = [fields_of(p, drawn_graph(directed=directed), device, **options) for p, options in RUNS]
    order = [*range(len(RUNS))]
    for at in [*order, *reversed(order), *order[::3]]:
        (program, options), expected = RUNS[at], dict(judges[at])
        found = fields_of(program, graph, device, **options)
        if isinstance(program, PageRank) and device == "cpu":  # where a second run adds up in another order
            np.testing.assert_allclose(found.pop("rank"), expected.pop("rank"), rtol=1e-6)
        assert found == expected, (program, options)


def test_a_second_run_prepares_nothing(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = drawn_graph()
    expected = fields_of(BFS(source=4), drawn_graph(), device)
    sigps.run(BFS(source=0), graph, device=device)

    def prepared(*_: Any, **__: Any) -> Any:
        raise AssertionError("a run was prepared that is like an earlier one")

    monkeypatch.setattr(alike, "prepared", prepared)
    assert fields_of(BFS(source=4), graph, device) == expected
    told: list[int] = []
    again = sigps.run(BFS(source=4), graph, device=device, progress=lambda stats: told.append(len(stats)))
    assert told[-1] == again.supersteps
    with pytest.raises(AssertionError, match="was prepared"):
        sigps.run(BFS(source=0), graph, device=device, max_supersteps=3)


def test_ranks_prepare_a_run_once(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, seen = alike.prepared, list[int]()

    def noted(program: Any, graph: Graph, **options: Any) -> Any:
        seen.append(graph.group.rank)
        return prepared(program, graph, **options)

    monkeypatch.setattr(alike, "prepared", noted)
    whole = drawn_graph()
    expected = {s: fields_of(BFS(source=s), whole, "python")["level"] for s in (0, 5, 9)}
    seen.clear()

    def on_ranks(group: ThreadGroup) -> dict[int, Any]:
        graph = drawn_graph(group=group)
        return {s: sigps.run(BFS(source=s), graph, device=device)["level"].tolist() for s in expected}

    assert run_ranks(2, on_ranks)[0] == expected
    assert sorted(seen) == [0, 1]


def test_ranks_that_ask_for_more_are_waited_for(device: str) -> None:
    def on_ranks(group: ThreadGroup) -> list[int]:
        graph, found = drawn_graph(group=group), []
        for _ in range(3):
            progress = (lambda so_far: None) if group.rank else None
            options: dict[str, Any] = {"progress": progress}
            options |= {"threads": 1 + len(found)} if group.rank == 1 else {}
            found.append(sigps.run(BFS(source=0), graph, device=device, **options).supersteps)
        return found

    first, second = run_ranks(2, on_ranks)
    assert first == second == first[:1] * 3


def test_a_run_on_another_gpu_is_prepared_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    from host_gpu import use_host_as_gpu

    from sigps.device import cuda

    use_host_as_gpu(monkeypatch)
    graph, prepared, seen = drawn_graph(), alike.prepared, []

    def noted(*given: Any, **options: Any) -> Any:
        seen.append(cuda.first_gpu())
        return prepared(*given, **options)

    monkeypatch.setattr(alike, "prepared", noted)
    for ordinal in (0, 1, 0, 1):
        token = cuda._first.set(ordinal)
        try:
            sigps.run(BFS(source=0), graph, device="cuda")
        finally:
            cuda._first.reset(token)
    assert seen == [0, 1]


def test_edges_that_leave_a_gpu_are_kept_by_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    from host_gpu import GPU, use_host_as_gpu

    from sigps.engine.gpu import resident

    use_host_as_gpu(monkeypatch)
    graph, expected = drawn_graph(), fields_of(BFS(source=3), drawn_graph(), "cuda")
    sigps.run(BFS(source=0), graph, device="cuda")
    ((_, subgraph),) = graph.derived("partitions", dict).values()
    (laid_out,) = [weakref.ref(found) for found in resident.graphs_on_gpu(subgraph, GPU).values()]
    resident.forget_on_gpu(subgraph, GPU)
    gc.collect()
    assert laid_out() is None
    assert fields_of(BFS(source=3), graph, "cuda") == expected


def test_code_that_changes_is_compiled_anew(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = drawn_graph()
    assert set(fields_of(Climb(by=3), graph, device)["height"]) == {6}
    monkeypatch.setattr(f"{__name__}.STEP", 10)
    assert set(fields_of(Climb(by=3), graph, device)["height"]) == {60}
    monkeypatch.setattr(f"{__name__}.STEP", 1)
    assert set(fields_of(Climb(by=3), graph, device)["height"]) == {6}


def test_versions_of_a_graph_have_runs_of_their_own(device: str) -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    assert fields_of(BFS(source=0), graph, device)["level"] == [0, 1, 2]
    newer = graph.apply(inserts=([0, 2], [2, 9]))
    assert fields_of(BFS(source=0), newer, device)["level"] == [0, 1, 1, 2]
    assert fields_of(BFS(source=0), graph, device)["level"] == [0, 1, 2]
    with pytest.raises(GraphError, match="there is no vertex 9"):
        sigps.run(BFS(source=9), graph, device=device)


def test_columns_of_vertices_are_read_each_time(device: str) -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    for ages in ([1, 2, 3], [4, 5, 6]):
        aged = graph.with_vertex_columns({"age": ages})
        for _ in range(2):
            assert fields_of(Aged(), aged, device)["age"] == [2 * age for age in ages]
    with pytest.raises(GraphError, match="no such column"):
        sigps.run(Aged(), graph, device=device)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"deterministic": True}, {"deterministic": 1}),
        ({"max_supersteps": 1}, {"max_supersteps": True}),
        ({"threads": 1}, {"threads": 1.0}),
        ({}, {"seed": -1}),
        ({}, {"tiles": ["auto"]}),
        ({}, {"precision": "half"}),
        ({}, {"progress": 3}),
    ],
)
def test_what_is_refused_first_is_refused_later(
    device: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    graph = drawn_graph()
    sigps.run(BFS(source=0), graph, device=device, **good)
    with pytest.raises(ConfigError):
        sigps.run(BFS(source=0), graph, device=device, **bad)
    with pytest.raises(GraphError, match="there is no vertex 99"):
        sigps.run(BFS(source=99), graph, device=device, **good)


def test_a_graph_is_freed_without_the_collector(device: str) -> None:
    graph = drawn_graph()
    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            sigps.run(BFS(source=0), graph, device=device)
        known = weakref.ref(graph)
        del graph
        assert known() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_a_graph_is_copied_without_what_runs_left(device: str, copied: Callable[[Graph], Graph]) -> None:
    graph, expected = drawn_graph(), fields_of(BFS(source=3), drawn_graph(), device)
    sigps.run(BFS(source=0), graph, device=device)
    other = copied(graph)
    assert not other.derived("runs asked for", dict)
    assert fields_of(BFS(source=3), other, device) == expected


def test_few_are_kept(device: str) -> None:
    graph = drawn_graph()
    for most in range(1, 40):
        sigps.run(Climb(), graph, device=device, max_supersteps=most)
        assert len(graph.derived("runs asked for", dict)) == min(most, 16)
