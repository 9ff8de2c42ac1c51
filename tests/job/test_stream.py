"""Streams against full runs on graphs built anew."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from graphs import busy_graph
from histories import History, assert_parents_hold, drawn, histories
from hypothesis import given, settings
from monotone_programs import Lowest
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import ConfigError, Graph, GraphError, Param, State, Updates, Vertex, VertexId
from sigps.apps import BFS, SSSP, WCC, KHop, LabelPropagation, PageRank
from sigps.job import guard as guards
from sigps.job.guard import Affected, allowance, refusal


@settings(max_examples=drawn(30), deadline=None)
@given(histories(may_drop=False))
def test_shortest_paths_are_those_of_a_full_run(history: History) -> None:
    graph = history.first()
    source = np.asarray(graph.ids)[0]
    source = source if isinstance(source, str) else int(source)
    with sigps.stream(SSSP(source=source), graph, device="cpu", guard="incremental", threads=1) as live:
        before = live.result
        for batch, judge in zip(history.updates(), history.judges(), strict=True):
            known = np.asarray(live.graph.ids)
            result = live.apply(batch)
            was = not live.graph.update.is_renumbered
            expected = sigps.run(SSSP(source=source), judge, device="python")
            assert result["distance"].tolist() == expected["distance"].tolist()
            assert result.path == ("incremental" if was else "full")
            assert_parents_hold(result, judge)
            found = dict(zip(np.asarray(judge.ids).tolist(), result["distance"].tolist(), strict=True))
            moved = set(found) - set(known.tolist())
            moved |= {
                v for v, d in zip(known.tolist(), before["distance"].tolist(), strict=True) if found[v] != d
            }
            assert moved <= set(result.changed_ids.tolist())
            before = result


@settings(max_examples=drawn(30), deadline=None)
@given(histories(may_drop=False))
def test_components_are_those_of_a_full_run(history: History) -> None:
    with sigps.stream(WCC(), history.first(), device="cpu", guard="incremental", threads=1) as live:
        before = live.result
        for batch, judge in zip(history.updates(), history.judges(), strict=True):
            known = np.asarray(live.graph.ids)
            result = live.apply(batch)
            expected = sigps.run(WCC(), judge, device="python")
            assert result["component"].tolist() == expected["component"].tolist()
            found = dict(zip(np.asarray(judge.ids).tolist(), result["component"].tolist(), strict=True))
            moved = set(found) - set(known.tolist())
            moved |= {
                v for v, c in zip(known.tolist(), before["component"].tolist(), strict=True) if found[v] != c
            }
            assert moved == set(result.changed_ids.tolist())
            before = result


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("program", [SSSP(source=0), WCC()])
def test_larger_graphs_whose_supersteps_are_pulled_and_pushed(program: Vertex, directed: bool) -> None:
    draw = np.random.default_rng(4)
    n = 3000
    sources, targets = (n * draw.random((2, 5 * n)) ** 2).astype(int)
    edges = list(zip(sources.tolist(), targets.tolist(), draw.integers(1, 90, 5 * n).tolist(), strict=True))
    batches: list[Any] = []
    for size in (1, 40, 2000, 3):
        ends = draw.integers(0, n, (2, size)).tolist()
        inserts = list(zip(*ends, draw.integers(1, 90, size).tolist(), strict=True))
        batches.append((inserts, [edges[i][:2] for i in draw.integers(0, len(edges), size)]))
    history = History(edges, list(range(n)), batches, {"directed": directed})
    name = "distance" if isinstance(program, SSSP) else "component"
    with sigps.stream(program, history.first(), device="cpu", guard="incremental") as live:
        for batch, judge in zip(history.updates(), history.judges(), strict=True):
            expected = sigps.run(program, judge, device="cpu")
            np.testing.assert_array_equal(live.apply(batch)[name], expected[name])


@pytest.mark.parametrize("weights", [[1, 2, 3], [0, 0, 1], [1.0, 1e-20, 0.5], [5, 5]])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("program", [SSSP(source=0), WCC()])
def test_many_batches_of_deletes_and_inserts(program: Vertex, directed: bool, weights: list[float]) -> None:
    draw = np.random.default_rng(11)
    n, key = 250, "distance" if isinstance(program, SSSP) else "component"
    edges = [*draw.integers(0, n, (2, 3 * n)), draw.choice(weights, 3 * n)]
    graph = Graph.from_edges(*edges, vertices=range(n), directed=directed)
    with sigps.stream(program, graph, device="cpu", guard="incremental", threads=1) as live:
        for _ in range(12):
            size = int(draw.integers(1, 120))
            at = draw.integers(0, edges[0].size, size)
            gone = np.isin(edges[0] * n + edges[1], edges[0][at] * n + edges[1][at])
            if not directed:
                gone |= np.isin(edges[1] * n + edges[0], edges[0][at] * n + edges[1][at])
            new = [*draw.integers(0, n, (2, size)), draw.choice(weights, size)]
            result = live.apply(inserts=tuple(new), deletes=(edges[0][at], edges[1][at]))
            edges = [np.concatenate([old[~gone], more]) for old, more in zip(edges, new, strict=True)]
            judge = Graph.from_edges(*edges, vertices=range(n), directed=directed)
            assert result.path == "incremental"
            np.testing.assert_array_equal(result[key], sigps.run(program, judge, device="cpu")[key])


def test_messages_that_are_worse_than_earlier_ones_are_not_all_there_is() -> None:
    """Vertex 2 sends -5 at first and 6 when it hears less itself: 3 takes the first one on any graph."""
    graph = Graph.from_edges([0, 2, 3], [2, 3, 4], weights=[1.0, 1.0, 1.0])
    with sigps.stream(Lowest(), graph, device="cpu", guard="incremental") as live:
        result = live.apply(inserts=([2, 0], [4, 1], [0.5, -3.0]))
        result = live.apply(inserts=([1], [2], [-1.0]))
        result = live.apply(deletes=([2], [3]))
        result = live.apply(inserts=([2], [3], [1.0]))
        judge = Graph.from_edges(
            [0, 3, 2, 0, 1, 2], [2, 4, 4, 1, 2, 3], weights=[1.0, 1.0, 0.5, -3.0, -1.0, 1.0]
        )
        assert result["least"].tolist() == sigps.run(Lowest(), judge, device="python")["least"].tolist()
        assert "does not stand for all" in result.why


class Reached(Vertex, message=bool):
    """The superstep in which a vertex is reached along edges of at least some weight, and its square."""

    source: Param[int]
    least: Param[float]
    square: State[int] = 7
    when: State[int] = -1

    def compute(self, messages):
        if any(messages) or (self.superstep == 0 and self.id == self.source):
            self.when = self.superstep
            self.square = self.superstep * 2 + self.id
            for edge in self.out_edges:
                if edge.weight >= self.least:
                    self.send(edge, True)
            self.retire()
        self.vote_to_halt()


def is_equal(found: sigps.Result, expected: sigps.Result) -> bool:
    return all(found[name].tolist() == expected[name].tolist() for name in expected.fields)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(
    ("program", "shape"),
    [
        (BFS(source=0), "sparse"),
        (BFS(source=0), "dense"),
        (BFS(source=0), "path"),
        (BFS(source=0), "small"),
        (Reached(source=0, least=2.0), "sparse"),
        (Reached(source=0, least=2.0), "small"),
    ],
)
def test_first_arrivals_are_those_of_a_graph_built_anew(program: Vertex, directed: bool, shape: str) -> None:
    draw = np.random.default_rng(len(shape))
    n, m = {"sparse": (50, 60), "dense": (40, 250), "path": (40, 39), "small": (6, 5)}[shape]
    ends = np.stack([np.arange(m), np.arange(1, m + 1)]) if shape == "path" else draw.integers(0, n, (2, m))
    edges = [*ends, draw.integers(1, 4, m).astype(float)]
    graph = Graph.from_edges(*edges, vertices=range(n), directed=directed)
    with sigps.stream(program, graph, device="cpu", guard="incremental", threads=1) as live:
        before = live.result
        for _ in range(50):
            size = int(draw.integers(1, 6))
            at = draw.integers(0, edges[0].size, size) if edges[0].size else np.empty(0, dtype=int)
            gone = np.isin(edges[0] * n + edges[1], edges[0][at] * n + edges[1][at])
            if not directed:
                gone |= np.isin(edges[1] * n + edges[0], edges[0][at] * n + edges[1][at])
            new = [*draw.integers(0, n, (2, size)), draw.integers(1, 4, size).astype(float)]
            result = live.apply(inserts=tuple(new), deletes=(edges[0][at], edges[1][at]))
            edges = [np.concatenate([old[~gone], more]) for old, more in zip(edges, new, strict=True)]
            judge = Graph.from_edges(*edges, vertices=range(n), directed=directed)
            assert is_equal(result, sigps.run(program, judge, device="python"))
            assert result.path == "incremental"
            shown = [[r[name].tolist() for name in r.fields] for r in (before, result)]
            moved = [v for v in range(n) if any(was[v] != now[v] for was, now in zip(*shown, strict=True))]
            assert moved == result.changed_ids.tolist()
            before = result


@settings(max_examples=drawn(30), deadline=None)
@given(histories(may_drop=False))
def test_levels_and_parents_are_those_of_a_full_run(history: History) -> None:
    graph = history.first()
    source = np.asarray(graph.ids)[0]
    program = BFS(source=source if isinstance(source, str) else int(source))
    with sigps.stream(program, graph, device="cpu", guard="incremental", threads=1) as live:
        for batch, judge in zip(history.updates(), history.judges(), strict=True):
            result = live.apply(batch)
            assert is_equal(result, sigps.run(program, judge, device="python"))
            assert result.path == ("full" if live.graph.update.is_renumbered else "incremental")


@pytest.mark.parametrize("program", [BFS(source=0), SSSP(source=0), WCC()])
def test_full_runs_when_vertices_have_come_behind_all_others(program: Vertex) -> None:
    sources, targets = np.zeros(2, int), np.array([1, 2])
    graph = Graph.from_edges(sources, targets, directed=False)
    with sigps.stream(program, graph, device="cpu", guard="full", asynchronous=False, threads=1) as live:
        for first in (3, 5, 40, 200):
            more = np.arange(first, 2 * first)
            result = live.apply(inserts=(more // 2, more))
            sources, targets = np.append(sources, more // 2), np.append(targets, more)
            expected = sigps.run(program, Graph.from_edges(sources, targets, directed=False), device="python")
            for name in expected.fields:
                assert result[name].tolist() == expected[name].tolist(), name
            assert result.why == "guard='full'"


def test_a_source_that_comes_later() -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    with sigps.stream(Reached(source=7, least=0.0), graph, device="cpu", guard="incremental") as live:
        assert live.result["when"].tolist() == [-1, -1, -1]
        result = live.apply(inserts=([7, 3], [1, 7]))
        assert dict(zip(result.ids.tolist(), result["when"].tolist(), strict=True)) == {
            0: -1,
            1: 1,
            2: 2,
            3: -1,
            7: 0,
        }
        assert result.path == "incremental"
        assert result.changed_ids.tolist() == [1, 2, 3, 7]


@pytest.mark.parametrize("program", [SSSP(source=0), WCC(), BFS(source=0)])
def test_vertices_that_are_deleted_leave_results(program: Vertex) -> None:
    ends = [0, 1, 2, 3, 0], [1, 2, 3, 4, 4]
    graph = Graph.from_edges(*ends, [1.0, 1.0, 1.0, 1.0, 9.0])
    with sigps.stream(program, graph, device="cpu", guard="incremental", window=5) as live:
        live.apply(Updates(([4], [2], [1.0]), times=[1]))
        result = live.apply(delete_vertices=[3])
        judge = Graph.from_edges([0, 1, 0, 4], [1, 2, 4, 2], [1.0, 1.0, 9.0, 1.0])
        assert is_equal(result, sigps.run(program, judge, device="python"))
        assert (result.path, result.why) == ("full", "vertices were deleted")
        live.apply(Updates(([2], [5], [1.0]), times=[2], delete_vertices=[4]))
        last = live.apply(Updates(([1], [5], [1.0]), times=[6]))  # what ended in 4 would be too old now
        assert last.update.missing == 0
        judge = Graph.from_edges([0, 1, 2, 1], [1, 2, 5, 5], [1.0] * 4)
        assert is_equal(last, sigps.run(program, judge, device="python"))
        assert last.path == "incremental"


def test_larger_graphs_of_first_arrivals() -> None:
    graph = sigps.generate("rmat", scale=12, weights="random")
    ids = np.asarray(graph.ids)
    program = BFS(source=int(ids[np.argmax(graph.out_degrees())]))
    draw, paths = np.random.default_rng(2), []
    with sigps.stream(program, graph, device="cpu") as live:
        for size in (1, 1, 30, 30_000, 5, 30_000, 5):
            at = draw.integers(0, live.graph.num_edges, size)
            gone = np.searchsorted(live.graph.offsets, at, side="right") - 1, live.graph.targets[at]
            ends = ids[draw.integers(0, ids.size, (2, size))]
            result = live.apply(inserts=(*ends, np.ones(size)), deletes=(ids[gone[0]], ids[gone[1]]))
            assert is_equal(result, sigps.run(program, live.graph, device="cpu"))
            paths.append(result.path)
    assert paths[3] == "full"
    assert {paths[4], paths[6]} == {"incremental"}


def test_other_programs_on_ranks_and_the_interpreter_run_in_full() -> None:
    def of(program: Vertex, group: ThreadGroup | None = None, **options: Any) -> tuple[list[float], str, str]:
        graph = Graph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0], group=group)
        with sigps.stream(program, graph, **options) as live:
            result = live.apply(inserts=([0, 3], [2, 4], [0.5, 2.0]))
            assert result.path == "full"
            name = "distance" if isinstance(program, SSSP) else "label"
            found = dict(zip(result.ids.tolist(), result[name].tolist(), strict=True))
            return [found.get(v, -1.0) for v in range(5)], result.why, str(result.changed_ids.tolist())

    distances = [0.0, 1.0, 0.5, 1.5, 3.5]
    newer = Graph.from_edges([0, 1, 2, 0, 3], [1, 2, 3, 2, 4], [1.0, 1.0, 1.0, 0.5, 2.0])
    labels, why, _ = run_ranks(2, lambda group: of(LabelPropagation(seed=1), group, device="cpu"))[0]
    assert labels == sigps.run(LabelPropagation(seed=1), newer, device="python")["label"].tolist()
    assert "no fixed rounds: compute() reads its messages one by one" in why
    assert of(SSSP(source=0), device="python") == (
        distances,
        "the interpreter always runs in full",
        "[2, 3, 4]",
    )


@pytest.mark.parametrize("program", [KHop(source=0), PageRank(iterations=3)])
def test_other_programs_run_in_full(program: Vertex) -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], [1, 1, 1])
    with sigps.stream(program, graph, device="cpu") as live:
        result = live.apply(inserts=([0, 2], [3, 3], [1, 1]))
        expected = sigps.run(program, live.graph, device="cpu")
        assert result.path == "full"
        assert result.why
        for name in expected.fields:
            np.testing.assert_array_equal(result[name], expected[name])
        assert 3 in result.changed_ids


def test_a_parent_that_was_trimmed_is_replaced_where_the_length_stays() -> None:
    graph = Graph.from_edges([0, 0, 1, 1], [2, 3, 2, 3], [0.0, 0.0, 1.0, 1.0], directed=False)
    with sigps.stream(SSSP(source=0), graph, device="cpu", guard="incremental") as live:
        result = live.apply(deletes=([0], [2]))
        assert result["distance"].tolist() == [0, 1, 2, 0]
        assert result["parent"].tolist() == [0, 3, 1, 0]
        assert result.changed_ids.tolist() == [1, 2]


@pytest.mark.parametrize("duplicates", ["drop", "sum", "min", "max"])
def test_parallel_edges_are_reduced_as_when_the_graph_was_built(duplicates: str) -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [5.0, 5.0], duplicates=duplicates)
    with sigps.stream(SSSP(source=0), graph, device="cpu", guard="incremental") as live:
        for weight in (7.0, 3.0):
            result = live.apply(inserts=([0], [1], [weight]))
            expected = sigps.run(SSSP(source=0), live.graph, device="python")
            assert result["distance"].tolist() == expected["distance"].tolist()
            assert result.path == ("incremental" if duplicates == "drop" else "full")


@pytest.mark.parametrize("program", [SSSP(source=0), WCC()])
def test_a_mesh_whose_full_run_is_found_at_once(program: Vertex) -> None:
    graph = sigps.generate("grid", rows=80, columns=80, weights="random")
    draw = np.random.default_rng(9)
    name = "distance" if isinstance(program, SSSP) else "component"
    with sigps.stream(program, graph, device="cpu", guard="incremental") as live:
        assert live.result.supersteps < 20
        for _ in range(4):
            at = draw.integers(0, 6399, 30)
            ends, weights = draw.integers(0, 6400, (2, 3)), draw.integers(1, 256, 3)
            result = live.apply(inserts=(*ends, weights), deletes=(at, at + 1))
            expected = sigps.run(program, live.graph, device="cpu", asynchronous=False)
            assert result.path == "incremental"
            np.testing.assert_array_equal(result[name], expected[name])


def test_earlier_results_stay_as_they_were() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [5.0, 5.0])
    with sigps.stream(SSSP(source=0), graph, device="cpu", guard="incremental") as live:
        first = live.result
        second = live.apply(inserts=([0], [2], [1.0]))
        third = live.apply(deletes=([0], [2]))
    assert live.result["distance"].tolist() == [0, 5, 10]
    assert [r["distance"].tolist() for r in (first, second, third)] == [[0, 5, 10], [0, 5, 1], [0, 5, 10]]
    assert [r.changed_ids.tolist() for r in (second, third)] == [[2], [2]]


def test_the_last_result_is_there_when_nobody_kept_it() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [5.0, 5.0])
    with sigps.stream(SSSP(source=0), graph, device="cpu", guard="incremental") as live:
        live.apply(inserts=([0], [2], [1.0]))
        kept = live.result
        assert kept.path == "incremental"
        live.apply(inserts=([0], [1], [2.0]))
        assert kept["distance"].tolist() == [0, 5, 1]
        assert live.result["distance"].tolist() == [0, 2, 1]
        assert live.result["parent"].tolist() == [0, 0, 0]


class LargestDegree(Vertex, message=int, directed=False):
    """The largest degree of a component: monotone, but it depends on degrees."""

    largest: State[int] = -1

    def compute(self, messages):
        found = self.out_degree if self.superstep == 0 else max(messages, default=self.largest)
        if self.superstep == 0 or found > self.largest:
            self.largest = found
            self.send_to_neighbors(found)
        self.vote_to_halt()


class Shifted(Vertex, message=float):
    """Hops from a source, as a sum with a constant, which ends in no column."""

    source: Param[VertexId]
    hops: State[float] = sigps.inf

    def compute(self, messages):
        best = 0.0 if self.superstep == 0 and self.id == self.source else min(messages, default=sigps.inf)
        if best < self.hops:
            self.hops = best
            self.send_to_neighbors(best + 1.0)
        self.vote_to_halt()


@pytest.mark.parametrize("has_in_edges", [True, False])
def test_components_of_a_directed_graph_follow_its_undirected_form(has_in_edges: bool) -> None:
    graph = Graph.from_edges([0, 1, 2, 4], [1, 2, 0, 5], vertices=range(7))
    if has_in_edges:
        graph.in_edges()
    with sigps.stream(WCC(), graph, device="cpu", guard="incremental", threads=1) as live:
        first = live.apply(inserts=([3], [4]))
        form = live.graph.undirected()
        second = live.apply(inserts=([6, 2], [3, 1]), deletes=([0], [1]))
        assert live.graph.undirected()._version.rows._arena is form._version.rows._arena  # type: ignore[union-attr]
        third = live.apply(deletes=([1, 2, 2], [2, 0, 1]))
    assert first["component"].tolist() == [0, 0, 0, 3, 3, 3, 6]
    assert second["component"].tolist() == [0, 0, 0, 3, 3, 3, 3]
    assert third["component"].tolist() == [0, 1, 2, 3, 3, 3, 3]
    assert third.path == "incremental"


def test_what_reads_degrees_runs_in_full() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], directed=False)
    with sigps.stream(LargestDegree(), graph, device="cpu") as live:
        result = live.apply(inserts=([1, 1], [0, 2]))
        assert (result.path, result["largest"].tolist()) == ("full", [4, 4, 4])
        assert "degree" in result.why


def test_a_record_that_is_not_the_state() -> None:
    ring = np.arange(50)
    graph = Graph.from_edges(ring, np.roll(ring, -1))
    with sigps.stream(Shifted(source=0), graph, device="cpu", guard="incremental") as live:
        near = live.apply(inserts=([0], [40]))
        assert near["hops"].tolist() == [*range(40), *range(1, 11)]
        far = live.apply(deletes=([0, 20], [40, 21]))
        assert far["hops"].tolist() == [*range(21), *[np.inf] * 29]


@pytest.mark.parametrize("kind", ["inserts", "deletes", "both"])
@pytest.mark.parametrize("program", [SSSP(source=0), WCC()])
def test_a_run_that_costs_too_much_is_given_up(
    program: Vertex, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever may be spent, never more is, and the result is that of a full run."""
    graph = sigps.generate("grid", rows=40, columns=40, weights="random")
    key = "distance" if isinstance(program, SSSP) else "component"
    spent = {}
    for most in (0, 1, 5, 30, 100, 300, 1000, 3000, 10_000, 100_000):
        monkeypatch.setattr(guards, "_SHARE", 1 << 60)
        monkeypatch.setattr(guards, "_LEAST", most)
        draw = np.random.default_rng(3)
        with sigps.stream(program, graph, device="cpu", threads=1) as live:
            for at in range(3):
                ends, weights = draw.integers(0, 1600, (2, 4)), draw.integers(1, 256, 4)
                gone = draw.integers(0, 1599, 20)
                result = live.apply(
                    inserts=None if kind == "deletes" else (*ends, weights),
                    deletes=None if kind == "inserts" else (gone, gone + 1),
                )
                expected = sigps.run(program, live.graph, device="cpu", asynchronous=False)
                np.testing.assert_array_equal(result[key], expected[key])
                assert live._live is not None
                assert live._live._spending is not None
                assert live._live._spending.spent <= most
                assert (result.path == "full") == ("needed more than" in result.why)
                if result.path == "incremental" and at == 0:
                    spent[most] = live._live._spending.spent
    assert 0 not in spent
    assert len(set(spent.values())) == 1  # the same work is counted, whatever may be spent
    assert set(spent) == {
        most for most in (1, 5, 30, 100, 300, 1000, 3000, 10_000, 100_000) if most >= spent[100_000]
    }


@pytest.mark.parametrize("guard", ["full", "auto"])
def test_lighter_edges_are_found_by_pulls_of_later_full_runs(guard: Any) -> None:
    draw = np.random.default_rng(8)
    graph = Graph.from_edges(*draw.integers(0, 400, (2, 12_000)), draw.integers(100, 200, 12_000))
    with sigps.stream(SSSP(source=0), graph, device="cpu", guard=guard, asynchronous=False) as live:
        for _ in range(3):
            new = *draw.integers(0, 400, (2, 3000)), draw.integers(1, 5, 3000)
            result = live.apply(inserts=new)
            expected = sigps.run(SSSP(source=0), live.graph, device="cpu")
            np.testing.assert_array_equal(result["distance"], expected["distance"])


@pytest.mark.parametrize("guard", ["full", "incremental"])
@pytest.mark.parametrize("program", [SSSP(source=0), BFS(source=0)])
def test_rows_by_source_move_to_another_arena_alone(program: Vertex, guard: Any) -> None:
    draw, moves = np.random.default_rng(5), []
    graph = Graph.from_edges(*draw.integers(0, 1500, (2, 4000)), np.ones(4000), vertices=range(1500))
    options = {"device": "cpu", "asynchronous": False}
    with sigps.stream(program, graph, guard=guard, **options) as live:
        arenas: Any = (None, None)
        for at in range(40):
            targets = draw.integers(0, 1500, 200)
            result = live.apply(inserts=(np.full(200, at % 4), targets, np.ones(200)))
            judge = Graph.from_edges(
                *[live.graph.to_arrow()[name].to_numpy() for name in ("source", "target", "weight")],
                vertices=range(1500),
            )
            expected = sigps.run(program, judge, **options)
            name = next(iter(expected.fields))
            np.testing.assert_array_equal(result[name], expected[name])
            version = live.graph._version
            assert version is not None
            assert version.inward is not None
            before, arenas = arenas, (version.rows._arena, version.inward._arena)
            moves.append(tuple(one is not other for one, other in zip(before, arenas, strict=True)))
    assert (True, False) in moves  # by source, but not by target


class TestGuard:
    def affected(self, **changed: Any) -> Affected:
        given = {
            "ids": np.arange(10),
            "fields": {"level": np.arange(10)},
            "edges": 100,
            "num_vertices": 1000,
            "num_edges": 10_000,
            "last_messages": 8_000,
        }
        return Affected(**(given | changed))

    @pytest.mark.parametrize(
        ("guard", "changed", "refused"),
        [
            ("auto", {"edges": 9_999}, False),
            ("full", {}, True),
            ("incremental", {"edges": 9_999}, False),
            ({"field": "level", "below": 2, "fraction": 0.3}, {}, False),
            ({"field": "level", "below": 4, "fraction": 0.3}, {}, True),
            ({"field": "level", "below": 4, "fraction": 0.3}, {"ids": np.empty(0)}, False),
            (lambda affected: affected.num_vertices < 10, {}, True),
            (lambda affected: True, {}, False),
        ],
    )
    def test_table(self, guard: Any, changed: dict[str, Any], refused: bool) -> None:
        assert bool(refusal(guard, self.affected(**changed))) == refused

    @pytest.mark.parametrize(
        ("guard", "last_messages", "most"),
        [
            ("auto", 1_000_000, 100_000),
            ("auto", 999_999, 99_999),
            ("auto", 0, 4096),
            ("auto", 40_960, 4096),
            ("auto", 40_970, 4097),
            ({"field": "level", "below": 2, "fraction": 0.3}, 1_000_000, 100_000),
            (lambda affected: True, 1_000_000, 100_000),
            ("incremental", 1_000_000, None),
        ],
    )
    def test_what_an_incremental_run_may_cost(self, guard: Any, last_messages: int, most: int | None) -> None:
        assert allowance(guard, last_messages) == most

    @pytest.mark.parametrize(
        ("guard", "message"),
        [
            ("never", "guard='never' must be"),
            ({"field": "level"}, "must have field, below and fraction"),
            ({"field": "level", "below": 2, "fraction": 0.1}, "has no state 'level'"),
            ({"field": "distance", "below": "2", "fraction": 0.1}, "must be a number"),
        ],
    )
    def test_what_is_none_is_refused(self, guard: Any, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            sigps.stream(SSSP(source=0), Graph.from_edges([0], [1]), guard=guard)


class TestWindow:
    def test_old_edges_go(self) -> None:
        graph = Graph.from_edges([0], [1], vertices=range(5))
        with sigps.stream(WCC(), graph, device="cpu", window=10) as live:
            live.apply(Updates(([1, 2], [2, 3]), times=[0, 5]))
            assert live.result["component"].tolist() == [0, 0, 0, 0, 4]
            live.apply(Updates(([3], [4]), times=[12]))
            assert live.graph.to_arrow().to_pydict() == {"source": [0, 2, 3], "target": [1, 3, 4]}
            assert live.result["component"].tolist() == [0, 0, 2, 2, 2]

    def test_a_newer_parallel_edge_stays(self) -> None:
        graph = Graph.from_edges([], [], np.empty(0, dtype=np.int64), vertices=range(3))
        with sigps.stream(SSSP(source=0), graph, device="cpu", window=10) as live:
            live.apply(Updates(([0, 0], [1, 1], [3, 7]), times=[0, 5]))
            live.apply(Updates(([1], [2], [1]), times=[12]))
            assert live.result["distance"].tolist() == [0, 7, 8]

    def test_what_was_deleted_does_not_expire(self) -> None:
        graph = Graph.from_edges([], [], vertices=range(3))
        with sigps.stream(WCC(), graph, device="cpu", window=10, missing="error") as live:
            live.apply(Updates(([0], [1]), times=[0]))
            live.apply(deletes=([0], [1]))
            live.apply(Updates(([1], [2]), times=[50]))
            assert live.graph.num_edges == 1

    def test_inserts_need_times(self) -> None:
        with (
            sigps.stream(WCC(), Graph.from_edges([0], [1]), device="cpu", window=1) as live,
            pytest.raises(ConfigError, match="every insert needs a time"),
        ):
            live.apply(inserts=([0], [1]))


def test_a_refused_batch_leaves_all_as_it_was() -> None:
    graph = Graph.from_edges([0], [1])
    with sigps.stream(WCC(), graph, device="cpu", missing="error") as live:
        with pytest.raises(GraphError, match="match no edge"):
            live.apply(inserts=([7], [8]), deletes=([1], [0]))
        assert live.graph is graph
        assert live.apply(inserts=([1], [2]))["component"].tolist() == [0, 0, 0]


def test_a_closed_stream_takes_nothing() -> None:
    before = set(threading.enumerate())
    live = sigps.stream(WCC(), busy_graph(), device="cpu", threads=3)
    live.apply(inserts=([5, 1], [9, 1700], [1.0, 1.0]))
    live.close()
    assert set(threading.enumerate()) <= before
    assert live.result["component"].tolist() == [0] * 1501 + [0]
    with pytest.raises(ConfigError, match="closed"):
        live.apply(inserts=([0], [1]))
