"""Streams on several GPUs, whose kernels run on the host, against full runs on graphs built anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import host_streams
import numpy as np
import pytest
from histories import History, assert_parents_hold, drawn, histories
from host_lease import run_leases_by_their_text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, Updates, Vertex
from sigps.apps import SSSP, WCC
from sigps.engine.gpu import placement

FIELDS = {"SSSP": "distance", "WCC": "component", "BFS": "level"}

quick = settings(
    max_examples=drawn(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=[2, 3])
def ranks(request: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """Ranks that are threads, with few spare ghosts."""
    return use_ranks(monkeypatch, request.param)


def use_ranks(monkeypatch: pytest.MonkeyPatch, ranks: int, spare: int = 64) -> int:
    host_streams.use_host_for_streams(monkeypatch, ranks)
    monkeypatch.setattr(placement, "_LEAST_SPARE", spare)
    return ranks


Found = tuple[sigps.Result, str, str, list[Any]]


def streamed(
    program: Vertex, first: Callable[..., Graph], batches: list[Updates], ranks: int, **options: Any
) -> list[list[Found]]:
    """Return of each rank after each batch the result, the path, why, and the ids that changed."""

    def of(group: ThreadGroup) -> list[Found]:
        found = []
        how = {"device": "cuda", "transport": "peer", "asynchronous": False, **options}
        with sigps.stream(program, first(group=group), **how) as live:
            for batch in batches:
                result = live.apply(batch)
                found.append((result, result.path, result.why, result.changed_ids.tolist()))
                if options.get("gather", True):
                    assert live.graph.num_edges == result_edges(live.graph)
        return found

    found = run_ranks(ranks, of)
    for of_rank in found[1:]:
        assert [entry[1:3] for entry in of_rank] == [entry[1:3] for entry in found[0]]
    return found


def result_edges(graph: Graph) -> int:
    return int(graph.group.all_reduce(np.array([graph.targets.size]), "sum")[0])


def assert_follows(program: Vertex, history: History, ranks: int, **options: Any) -> None:
    """Compare a stream with full runs, batch by batch."""
    field = FIELDS[type(program).__name__]
    found = streamed(program, history.first, history.updates(), ranks, **options)[0]
    graphs = [history.first(), *history.judges()]
    before = sigps.run(program, graphs[0], device="python")
    may_go_on = history.options.get("duplicates", "keep") in ("keep", "drop")
    may_go_on &= not (isinstance(program, WCC) and history.options["directed"])
    for (result, path, why, changed), graph, older in zip(found, graphs[1:], graphs[:-1], strict=True):
        expected = sigps.run(program, graph, device="python")
        assert result[field].tolist() == expected[field].tolist()
        assert result.device == "cuda"
        if isinstance(program, SSSP):
            assert_parents_hold(result, graph)
        if options["guard"] == "incremental":
            is_same = np.asarray(graph.ids).tolist() == np.asarray(older.ids).tolist()
            assert (path == "incremental") == (may_go_on and is_same), why
        known = dict(zip(np.asarray(older.ids).tolist(), before[field].tolist(), strict=True))
        now = dict(zip(np.asarray(graph.ids).tolist(), expected[field].tolist(), strict=True))
        assert {v for v, value in now.items() if known.get(v) != value or v not in known} <= set(changed)
        before = expected


@quick
@given(history=histories())
def test_shortest_paths_are_those_of_a_full_run(history: History, ranks: int) -> None:
    source = np.asarray(history.first().ids)[0]
    program = SSSP(source=source if isinstance(source, str) else int(source))
    assert_follows(program, history, ranks, guard="incremental")


@quick
@given(history=histories(), choice=st.sampled_from(["auto", "incremental", "full"]))
def test_components_are_those_of_a_full_run(history: History, choice: Any, ranks: int) -> None:
    assert_follows(WCC(), history, ranks, guard=choice)


def graphs_of(ends: Any, weights: Any, n: int, *, directed: bool) -> Callable[..., Graph]:
    def first(**options: Any) -> Graph:
        return Graph.from_edges(*ends, weights, vertices=range(n), directed=directed, **options)

    return first


def assert_batches(
    program: Vertex, first: Any, batches: list[Updates], ranks: int, **options: Any
) -> list[tuple[str, str]]:
    """Compare a stream with full runs on graphs built anew; return paths and why."""
    field = FIELDS[type(program).__name__]
    found = streamed(program, first, batches, ranks, **options)[0]
    graph = first()
    for batch, (result, *_) in zip(batches, found, strict=True):
        graph = graph.apply(batch.inserts, batch.deletes)
        rows = graph.to_arrow().to_pydict()
        judge = Graph.from_edges(*rows.values(), vertices=range(graph.num_vertices), directed=graph.directed)
        expected = sigps.run(program, judge, device="cpu", asynchronous=False)
        assert result[field].tolist() == expected[field].tolist()
        if isinstance(program, SSSP):
            assert_parents_hold(result, judge)
    return [(path, why) for _, path, why, _ in found]


def drawn_batches(n: int, ends: Any, sizes: list[int], weights: Any, seed: int = 3) -> list[Updates]:
    draw = np.random.default_rng(seed)
    batches = []
    for size in sizes:
        inserts = (*(n * draw.random((2, size)) ** 2).astype(int), draw.choice(weights, size))
        gone = draw.integers(0, ends.shape[1], size)
        batches.append(Updates(inserts, tuple(ends[:, gone])))
    return batches


@pytest.mark.parametrize("weights", [[1, 2, 3], [0, 0, 1], [1.0, 1e-20, 0.5]], ids=str)
@pytest.mark.parametrize("directed", [True, False])
def test_many_batches(weights: list[float], directed: bool, ranks: int) -> None:
    draw, n = np.random.default_rng(11), 120
    ends = (n * draw.random((2, 3 * n)) ** 3).astype(int)
    first = graphs_of(ends, draw.choice(weights, 3 * n), n, directed=directed)
    batches = drawn_batches(n, ends, [40, 1, 30, 2, 35, 7], weights)
    for program in (SSSP(source=0), *([] if directed else [WCC()])):
        told = assert_batches(program, first, batches, ranks, guard="incremental")
        assert {path for path, _ in told} == {"incremental"}


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("program", [SSSP(source=0), WCC()])
def test_leases_go_on_by_their_text(program: Vertex, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease begins with marks of vertices and ghosts, pulled and pushed, where others have spare places."""
    ranks = use_ranks(monkeypatch, 3)
    launched = run_leases_by_their_text(monkeypatch, blocks)

    def first(**options: Any) -> Graph:
        return sigps.generate("grid", rows=12, columns=15, weights="random", **options)

    draw = np.random.default_rng(5)
    batches = []
    for size in (1, 6, 30):
        at = draw.integers(0, 164, size)
        inserts = *draw.integers(0, 180, (2, size)), draw.integers(1, 9, size)
        batches.append(Updates(inserts, ([*at, 0, 0], [*(at + 15), 1, 15])))
    told = assert_batches(program, first, batches, ranks, guard="incremental")
    assert {path for path, _ in told} == {"incremental"}
    assert len(launched) > ranks * len(batches)


def test_components_part_and_join(ranks: int) -> None:
    """Rings over all ranks are cut and joined, beside vertices of many edges and of none."""
    draw, n = np.random.default_rng(5), 300
    ring, hub = np.arange(200), np.unique(draw.integers(100, 150, 20))
    ends = np.array([np.append(ring, hub), np.append(np.roll(ring, 1), np.full(hub.size, 100))])
    first = graphs_of(ends, np.ones(ends.shape[1]), n, directed=False)
    batches = []
    for i, size in enumerate([1, 2, 5, 40, 3, 1, 1, 80]):
        gone, new = draw.integers(0, ends.shape[1], size), draw.integers(0, n, (2, size // 2 * (i % 3)))
        batches.append(Updates((*new, np.ones(new.shape[1])), tuple(ends[:, gone])))
    told = assert_batches(WCC(), first, batches, ranks, guard="incremental")
    assert {path for path, _ in told} == {"incremental"}
