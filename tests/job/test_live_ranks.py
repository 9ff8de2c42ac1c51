"""Streams on several ranks, against the interpreter on graphs built anew."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from histories import History, drawn, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup, run_ranks
from turns import in_turn, some_of

import sigps
from sigps import Graph, Param, State, Updates, VertexId
from sigps.apps import BFS, LCC, SSSP, WCC, Triangles
from sigps.engine.cpu import measures
from sigps.job import live_ranks
from sigps.model.vertex import Vertex

KEYS = {
    "SSSP": ["distance"],
    "WCC": ["component"],
    "BFS": ["level", "parent"],
    "Rhythmic": ["when", "weight"],
    "Greatest": ["found"],
    "Lightest": ["label"],
    "Triangles": ["triangles"],
    "LCC": ["links", "neighbors", "coefficient"],
}


class Rhythmic(Vertex, message=float):
    """The superstep in which a vertex is reached, by edges that pass messages in some, and the heaviest of these."""

    source: Param[VertexId]
    when: State[int] = -1
    weight: State[float] = 0.0

    def compute(self, messages):
        if messages or (self.superstep == 0 and self.id == self.source):
            self.when = self.superstep
            self.weight = max(messages, default=0.0)
            for edge in self.out_edges:
                if (edge.weight + self.superstep) % 3 > 0:
                    self.send(edge, edge.weight)
            self.retire()
        self.vote_to_halt()


def values_of(result: sigps.Result, names: list[str]) -> dict[Any, tuple[Any, ...]]:
    columns = [result[name].tolist() for name in names]
    return dict(zip(result.ids.tolist(), zip(*columns, strict=True), strict=True))


def streamed(
    program: Vertex, first: Any, batches: list[Updates], ranks: int, **options: Any
) -> list[tuple[dict[Any, Any], str, str, list[Any]]]:
    """Return after each batch the values, the path, why, and the ids that changed; rank 0 has all."""
    names = KEYS[type(program).__name__]

    def of(group: ThreadGroup) -> list[tuple[dict[Any, Any], str, str, list[Any]]]:
        found = []
        with sigps.stream(program, first(group=group), device="cpu", threads=1, **options) as live:
            for batch in batches:
                result = live.apply(batch)
                told = result.path, result.why, result.changed_ids.tolist()
                found.append((values_of(result, names), *told))
        return found

    found = run_ranks(ranks, of)
    for of_rank in found[1:]:
        assert [entry[1:3] for entry in of_rank] == [entry[1:3] for entry in found[0]]
    return found[0]


@settings(max_examples=drawn(30), deadline=None)
@given(
    histories(),
    st.sampled_from([name for name in KEYS if name not in ("Greatest", "Lightest")]),
    st.integers(2, 4),
    st.data(),
)
def test_results_are_those_of_a_graph_built_anew(
    history: History, name: str, ranks: int, data: st.DataObject
) -> None:
    first = np.asarray(history.first().ids)[0]
    source = first if isinstance(first, str) else int(first)
    program = {
        "SSSP": SSSP(source=source),
        "WCC": WCC(),
        "BFS": BFS(source=source),
        "Rhythmic": Rhythmic(source=source),
        "Triangles": Triangles(),
        "LCC": LCC(),
    }[name]
    guard = data.draw(st.sampled_from(["incremental", "auto"]))
    found = streamed(program, history.first, history.updates(), ranks, guard=guard)
    judges = [sigps.run(program, judge, device="python") for judge in history.judges()]
    before = values_of(sigps.run(program, history.first(), device="python"), KEYS[name])
    for (values, _, why, changed), judge in zip(found, judges, strict=True):
        expected = values_of(judge, KEYS[name])
        assert values == expected
        assert why
        moved = {v for v in expected if before.get(v) != expected[v]}
        assert moved <= set(changed)
        assert name == "SSSP" or moved == set(changed)  # parents may be others
        before = expected


PROGRAMS = [SSSP(source=0), WCC(), BFS(source=0), Rhythmic(source=0)]


@pytest.mark.parametrize(
    ("of", "among"),
    in_turn(
        itertools.product(PROGRAMS, [False, True]),
        [(1, 1), (2, 1 << 10), (3, 1 << 10), (3, 2), (4, 1 << 10)],
        times=2,
    ),
)
def test_larger_graphs_go_on(
    of: tuple[Vertex, bool], among: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (program, deletes), (ranks, spare) = of, among
    monkeypatch.setattr(live_ranks, "_SPARE", 1 << 30)
    monkeypatch.setattr(live_ranks, "_LEAST_SPARE", spare)  # with few slots partitions are laid out

    def first(**options: Any) -> Graph:
        return sigps.generate("grid", rows=40, columns=40, weights="random", **options)

    draw = np.random.default_rng(4)
    batches = []
    for _ in range(4):
        at, ends = draw.integers(0, 1599, 20), draw.integers(0, 1600, (2, 4))
        batches.append(Updates((*ends, draw.integers(1, 9, 4)), (at, at + 1) if deletes else None))
    found = streamed(program, first, batches, ranks, guard="incremental")
    graph = first()
    for batch, (values, path, why, _) in zip(batches, found, strict=True):
        graph = graph.apply(batch.inserts, batch.deletes)
        judge = Graph.from_edges(
            *[graph.to_arrow()[name].to_numpy() for name in ("source", "target", "weight")],
            vertices=range(1600),
            directed=graph.directed,
        )
        expected = sigps.run(program, judge, device="cpu", asynchronous=False)
        assert values == values_of(expected, KEYS[type(program).__name__])
        assert path == "incremental", why


class Greatest(Vertex, message=int, directed=False):
    """The greatest id of a vertex's component, counted from 10 on."""

    found: State[int] = 0

    def compute(self, messages):
        best = max(messages, default=self.id + 10)
        if self.superstep == 0 or best > self.found:
            self.found = best
            self.send_to_neighbors(self.found)
        self.vote_to_halt()


class Lightest(Vertex, message=float, directed=False):
    """The least id of a vertex's component, and a half: labels that are no whole numbers."""

    label: State[float] = 0.0

    def compute(self, messages):
        best = self.id + 0.5 if self.superstep == 0 else min(messages, default=self.label)
        if self.superstep == 0 or best < self.label:
            self.label = best
            self.send_to_neighbors(best)
        self.vote_to_halt()


@pytest.mark.parametrize(("program", "ranks"), in_turn([WCC(), Greatest()], [3, 2]))
def test_labels_that_hold_each_other_up_are_trimmed(program: Vertex, ranks: int) -> None:
    draw, n = np.random.default_rng(3), 120
    sources, targets = np.arange(n), (np.arange(n) + 1) % 60 + 60 * (np.arange(n) // 60)  # two circles
    bridges = np.array([[0, 7, 40], [60, 80, 119]])
    first_ends = np.concatenate([sources, bridges[0]]), np.concatenate([targets, bridges[1]])
    batches = [Updates(None, tuple(bridges[:, :2])), Updates(None, tuple(bridges[:, 2:]))]
    batches += [Updates(([5], [5 + n]), (sources[:1], targets[:1])), Updates(tuple(bridges[::-1, :1]))]
    edges = np.array(first_ends)
    for _ in range(8):
        batches.append(
            Updates(tuple(draw.integers(0, n, (2, 2))), tuple(edges[:, draw.integers(0, edges.shape[1], 4)]))
        )

    def first(**options: Any) -> Graph:
        return Graph.from_edges(*first_ends, vertices=range(n), directed=False, **options)

    found = streamed(program, first, batches, ranks, guard="incremental")
    graph = first()
    for batch, (values, path, why, _) in zip(batches, found, strict=True):
        graph = graph.apply(batch.inserts, batch.deletes)
        assert values == values_of(sigps.run(program, graph, device="python"), KEYS[type(program).__name__])
        assert path == "incremental", why


def test_labels_that_are_held_up_otherwise_stay() -> None:
    def of(group: ThreadGroup) -> list[int]:
        graph = sigps.generate("grid", rows=30, columns=30, group=group)
        with sigps.stream(WCC(), graph, device="cpu", threads=1, guard="incremental") as live:
            results = [live.apply(deletes=([at], [at + 1])) for at in (17, 505, 871)]
            live.apply(inserts=([899], [900]))  # a new vertex, so partitions are laid out
            results.append(live.apply(deletes=([100], [101])))
            labels = live.apply(deletes=([0, 0], [1, 30]))["component"].tolist()
            assert set(labels) == ({0, 1} if group.rank == 0 else {1})
            results.append(live.apply(deletes=([2], [32])))
        return [sum(entry.active for entry in result.stats) for result in results]

    assert run_ranks(3, of)[0] == [12, 0, 0, 0, 0]  # of the first row those behind the edge


@pytest.mark.parametrize("ranks", [2, 3])
def test_full_runs_that_went_round_take_priority_order(ranks: int) -> None:
    def first(**options: Any) -> Graph:
        return sigps.generate("grid", rows=64, columns=64, weights="random", **options)

    draw = np.random.default_rng(8)
    batches = [
        Updates(([0], [5], [3])),
        Updates(([4095], [4096], [2])),
    ]  # a new vertex, so partitions are laid out
    inner = np.array([20, 40, 60]) * 64 + 30  # what stands above holds up those behind these edges, too
    batches.append(Updates(None, (inner, inner + 1)))
    for _ in range(4):
        at = draw.integers(0, 64 * 63, 60)
        batches.append(Updates((*draw.integers(0, 4096, (2, 2)), [4, 9]), (at, at + 64)))

    def of(group: ThreadGroup) -> list[Any]:
        found = []
        with sigps.stream(WCC(), first(group=group), device="cpu", threads=1, guard="full") as live:
            sent = [live.result.stats.num_messages]
            live.apply(batches[0])
            sent.append(live.result.stats.num_messages)
            live._guard = "incremental"
            for batch in batches[1:]:
                result = live.apply(batch)
                ran = sum(entry.active for entry in result.stats)
                found.append((values_of(result, ["component"]), result.path, ran))
        return [sent, found]

    sent, found = run_ranks(ranks, of)[0]
    assert sent[1] < sent[0] / 4  # so nothing tells when vertices took their keys
    graph = first().apply(batches[0].inserts)
    assert found[1][2] == 0
    for batch, (values, path, _) in zip(batches[1:], found, strict=True):
        graph = graph.apply(batch.inserts, batch.deletes)
        judge = sigps.run(WCC(), graph, device="cpu", asynchronous=False)
        assert values == values_of(judge, ["component"])
        assert path == "incremental"


def test_a_vertex_is_not_held_up_by_a_ghost_that_it_holds_up() -> None:
    def first(**options: Any) -> Graph:
        ends = [*range(39), 5], [*range(1, 40), 7]
        return Graph.from_edges(*ends, vertices=range(40), directed=False, **options)

    batches = [Updates(None, ([5], [7])), Updates(([39], [1])), Updates(None, ([0], [1]))]
    found = streamed(WCC(), first, batches, 2, guard="incremental")
    assert [path for _, path, _, _ in found] == ["incremental"] * 3
    assert [values for values, *_ in found][2] == {v: (min(v, 1),) for v in range(40)}


def test_labels_that_are_no_whole_numbers_are_not_trimmed() -> None:
    def first(**options: Any) -> Graph:
        return Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 1], directed=False, **options)

    batches = [Updates(None, ([0], [1])), Updates(([0], [3]))]
    found = streamed(Lightest(), first, batches, 2, guard="incremental")
    assert [path for _, path, _, _ in found] == ["full", "incremental"]
    assert "where messages are keys in whole numbers" in found[0][2]
    assert [[values[v][0] for v in range(4)] for values, *_ in found] == [[0.5, 1.5, 1.5, 1.5], [0.5] * 4]


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_source_of_a_deleted_edge_is_no_ghost_any_more(ranks: int) -> None:
    size, cut = 40, np.arange(10, 30)

    def first(**options: Any) -> Graph:
        return Graph.from_edges(range(size - 1), range(1, size), vertices=range(size), **options)

    batch = Updates(([0], [size]), (cut, cut + 1))  # a new vertex, so partitions are laid out
    ((values, path, _, _),) = streamed(BFS(source=0), first, [batch], ranks, guard="incremental")
    assert path == "incremental"
    assert [values[v][0] for v in range(size + 1)] == [*range(11), *[-1] * 29, 1]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_what_a_ghost_no_longer_sends_is_lost(ranks: int) -> None:
    ends = [*range(5), 5, *range(20, 34)], [*range(1, 6), 35, *range(21, 35)]
    weights = [1, 1, 2, 1, 1, 3, *[1] * 14]

    def first(**options: Any) -> Graph:
        return Graph.from_edges(*ends, weights, vertices=range(36), **options)

    batch = Updates(([2], [5], [3]))  # in superstep 3, not 5: its message does not pass then
    ((values, path, _, _),) = streamed(Rhythmic(source=0), first, [batch], ranks, guard="incremental")
    assert path == "incremental"
    assert values_of(sigps.run(Rhythmic(source=0), first(), device="python"), ["when"])[35] == (6,)
    assert [values[v][0] for v in (0, 1, 2, 3, 4, 5, 35)] == [0, 1, 2, 3, 4, 3, -1]


def test_what_would_cost_too_much_is_given_up_by_all() -> None:
    def first(**options: Any) -> Graph:
        return sigps.generate("rmat", scale=8, weights="random", **options)

    draw = np.random.default_rng(2)
    batches = [
        Updates((*draw.integers(0, 256, (2, size)), draw.integers(1, 9, size))) for size in (2000, 9000, 3)
    ]
    found = streamed(SSSP(source=0), first, batches, 2)
    graph = first()
    for batch, (values, *_) in zip(batches, found, strict=True):
        graph = graph.apply(batch.inserts)
        assert values == values_of(sigps.run(SSSP(source=0), graph, device="python"), ["distance"])
    assert [path for _, path, _, _ in found] == ["full", "full", "incremental"]
    assert "needed more than" in found[0][2]
    assert found[1][2].startswith("guard: the batch names 18,000 of ")


def test_no_batch_is_too_large_to_be_followed_where_that_is_asked_for() -> None:
    def first(**options: Any) -> Graph:
        return sigps.generate("rmat", scale=8, **options)

    draw = np.random.default_rng(2)
    batch = Updates(tuple(draw.integers(0, 256, (2, 9000))))
    ((values, path, _, _),) = streamed(WCC(), first, [batch], 2, guard="incremental")
    graph = first().apply(batch.inserts)
    assert values == values_of(sigps.run(WCC(), graph, device="python"), ["component"])
    assert path == "incremental"


@pytest.mark.parametrize("program", [Triangles(), LCC()])
@pytest.mark.parametrize(("directed", "ranks", "guard"), [(True, 2, "auto"), (False, 3, "incremental")])
def test_measures_are_counted_along_a_batch(
    program: Vertex, directed: bool, ranks: int, guard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "_WORTH_THREADS", 0)
    draw, n = np.random.default_rng(5), 300
    edges = (n * draw.random((2, 4000)) ** 2).astype(int)
    batches = []
    for size in (1, 20, 10, 3000, 15):
        at = draw.integers(0, 4000, size)
        inserts = tuple(np.append(ends, n + len(batches)) for ends in draw.integers(0, n, (2, size)))
        batches.append(Updates(inserts, tuple(edges[:, at])))
    names = KEYS[type(program).__name__]

    def of(group: ThreadGroup) -> list[Any]:
        graph = Graph.from_edges(*edges, vertices=range(n), directed=directed, group=group)
        found = []
        with sigps.stream(program, graph, device="cpu", threads=2, guard=guard) as live:
            for batch in batches:
                result = live.apply(batch)
                told = result.path, result.changed_ids.tolist(), result.stats[0].active
                found.append((values_of(result, names), result.aggregators, *told))
        return found

    found = run_ranks(ranks, of)[0]
    graph = Graph.from_edges(*edges, vertices=range(n), directed=directed)
    before = values_of(sigps.run(program, graph, device="python"), names)
    for batch, (values, aggregators, _, changed, active) in zip(batches, found, strict=True):
        graph = graph.apply(batch.inserts, batch.deletes)
        judge = Graph.from_edges(
            *[graph.to_arrow()[name].to_numpy() for name in ("source", "target")],
            vertices=range(graph.num_vertices),
            directed=directed,
        )
        expected = sigps.run(program, judge, device="python")
        assert (values, aggregators) == (values_of(expected, names), expected.aggregators)
        assert changed == [v for v in values if before.get(v) != values[v]]
        assert len(changed) <= active <= graph.num_vertices
        before = values
    of_many = "full" if guard == "auto" else "incremental"
    assert [path for _, _, path, _, _ in found] == [*["incremental"] * 3, of_many, "incremental"]


def test_measures_on_ranks_without_vertices() -> None:
    def first(**options: Any) -> Graph:
        return Graph.from_edges([0, 1], [1, 0], vertices=range(2), **options)

    batches = [Updates(([0], [2])), Updates(([2], [1])), Updates(None, ([1], [0])), Updates()]
    found = streamed(LCC(), first, batches, 4, guard="incremental")
    assert [path for _, path, _, _ in found] == ["incremental"] * 4
    assert [[values[v][0] for v in range(3)] for values, *_ in found] == [
        [0, 0, 0],
        [1, 1, 2],
        [1, 1, 1],
        [1, 1, 1],
    ]


@pytest.mark.parametrize(
    ("program", "directed", "duplicates"),
    some_of(itertools.product(PROGRAMS, [True, False], ["keep", "drop"]), 6),
)
def test_rows_of_partitions_change_in_place(program: Vertex, directed: bool, duplicates: Any) -> None:
    draw = np.random.default_rng(6)
    ends, weights = draw.integers(0, 60, (2, 1500)), draw.integers(1, 9, 1500)
    options: dict[str, Any] = {"directed": directed, "duplicates": duplicates}
    key = KEYS[type(program).__name__]

    def of(group: ThreadGroup) -> list[Any]:
        graph, found = Graph.from_edges(*ends, weights, group=group, **options), []
        with sigps.stream(program, graph, device="cpu", threads=1, guard="incremental") as live:
            rows = None
            for batch in batches:
                result = live.apply(batch)
                held = getattr(live._live, "_rows")  # noqa: B009
                found.append((values_of(result, key), result.path, held is not None and held is rows))
                rows = held
        return found

    batches = [
        Updates((*draw.integers(0, 60, (2, 5)), draw.integers(1, 9, 5)), tuple(draw.integers(0, 60, (2, 40))))
        for _ in range(6)
    ]
    found = run_ranks(2, of)[0]
    graph = Graph.from_edges(*ends, weights, **options)
    for batch, (values, _, _) in zip(batches, found, strict=True):
        graph = graph.apply(batch.inserts, batch.deletes)
        assert values == values_of(sigps.run(program, graph, device="python"), key)
    is_turned = isinstance(program, WCC) and directed
    assert {in_place for _, _, in_place in found[1:]} == {not is_turned}
