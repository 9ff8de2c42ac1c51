"""Streams of programs of fixed rounds and local measures on several ranks, against graphs built anew."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from histories import History, drawn, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from round_programs import Denser, Halves, Mixture
from thread_group import ThreadGroup, run_ranks
from turns import some_of

import sigps
from sigps import Graph, Param, SigpsError, State, Updates, Vertex, neighbor_links
from sigps.apps import CDLP, HeatDiffusion, PageRank, WeightedLabels
from sigps.engine.cpu import rank_rows, rounds
from sigps.job import live_run

Told = tuple[dict[str, Any], list[Any], str, str, list[Any]]


def streamed(
    program: Vertex, first: Callable[..., Graph], batches: list[Updates], ranks: int, **options: Any
) -> list[Told]:
    """Return at first and after each batch the fields, the ids, the path, why, and the ids that changed, of rank 0."""

    def of(group: ThreadGroup) -> list[Told]:
        found = []
        with sigps.stream(program, first(group=group), device="cpu", **{"threads": 1} | options) as live:
            for batch in [None, *batches]:
                result = live.result if batch is None else live.apply(batch)
                fields = {name: result[name] for name in result.fields}
                changed = result.changed_ids.tolist()
                found.append((fields, result.ids.tolist(), result.path, result.why, changed))
        return found

    found = run_ranks(ranks, of)
    for of_rank in found[1:]:
        assert [entry[2:4] for entry in of_rank] == [entry[2:4] for entry in found[0]]
    return found[0]


def assert_equal(told: Told, expected: sigps.Result, before: Told | None) -> None:
    """The same bits, and the very vertices changed that have others than before."""
    fields, ids, _, why, changed = told
    assert ids == expected.ids.tolist()
    assert why
    for name in expected.fields:
        other = np.ma.getdata(expected[name])
        is_same = fields[name].tolist() == expected[name].tolist()
        assert (
            is_same if other.dtype.kind in "OUT" else np.ma.getdata(fields[name]).tobytes() == other.tobytes()
        )
    if before is not None:
        assert sorted(changed) == sorted(moved(before, told))


def moved(before: Told, after: Told) -> list[Any]:
    was, now = (
        {v: [values[i] for values in entry[0].values()] for i, v in enumerate(entry[1])}
        for entry in (before, after)
    )
    return [v for v in now if v not in was or was[v] != now[v]]


@pytest.fixture
def never_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no superstep run all vertices, which on small graphs costs less."""
    monkeypatch.setattr(rounds, "is_large", lambda *sizes: False)


NAMES = ["labels", "weighted", "heat", "ranks", "mixture", "denser"]


@settings(max_examples=drawn(30), deadline=None)
@given(
    histories(),
    st.sampled_from(NAMES),
    st.integers(2, 4),
    st.sampled_from([0, 2, 3]),
    st.booleans(),
    st.data(),
)
def test_rounds_are_those_of_a_graph_built_anew(
    history: History, name: str, ranks: int, turn: int, lays_out: bool, data: st.DataObject
) -> None:
    graph = history.first()
    first = np.asarray(graph.ids)[0]
    source = first if isinstance(first, str) else int(first)
    programs: dict[str, Callable[[], Vertex]] = {
        "labels": lambda: CDLP(iterations=4),
        "weighted": lambda: WeightedLabels(iterations=3),
        "heat": lambda: HeatDiffusion(source=source, rate=0.1, steps=5),
        "ranks": lambda: PageRank(iterations=4, dangling="leak"),
        "mixture": Mixture,
        "denser": Denser,
    }
    program = programs[name]()
    seed = {"seed": 3} if name == "mixture" else {}
    guard = data.draw(st.sampled_from(["incremental", "auto", "full"]))
    with pytest.MonkeyPatch.context() as patch:
        # What all ranks agree on tells here and there that all vertices run.
        patch.setattr(
            rounds, "is_large", lambda listed, edges, n, m: turn > 0 and (listed + edges) % turn == 1
        )
        patch.setattr(rank_rows, "_LEAST", 0 if lays_out else 1 << 12)
        found = streamed(program, history.first, history.updates(), ranks, guard=guard, **seed)
    judge = history.first()
    assert_equal(found[0], sigps.run(program, judge, device="python", **seed), None)
    for before, told, judge, version in zip(
        found, found[1:], history.judges(), history.newer(history.first()), strict=False
    ):
        assert_equal(told, sigps.run(program, judge, device="python", **seed), before)
        update = version.update
        anew = update.is_renumbered or (name == "ranks" and update.new_vertices > 0) or guard == "full"
        is_given_up = name == "denser" and guard == "auto"
        assert told[2] == ("full" if anew else "incremental") or is_given_up


LARGER = [
    CDLP(),
    HeatDiffusion(source=0, rate=1e-4),
    PageRank(dangling="leak", iterations=12),
    WeightedLabels(),
]


@pytest.mark.parametrize(
    ("program", "ranks", "directed"), some_of(itertools.product(LARGER, [2, 3], [True, False]), 6)
)
def test_larger_graphs_on_several_threads_as_deterministic_runs(
    program: Vertex, ranks: int, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "is_large", lambda listed, edges, n, m: 2 * listed > n)
    draw, n = np.random.default_rng(5), 2000
    ends, weights = (n * draw.random((2, 5 * n)) ** 2).astype(int), draw.integers(1, 90, 5 * n)
    batches = []
    for size in (1, 30, 3000, 2, 40):
        inserts = *draw.integers(0, n, (2, size)), draw.integers(1, 90, size)
        batches.append(Updates(inserts, tuple(ends[:, draw.integers(0, 5 * n, size)])))

    def first(**options: Any) -> Graph:
        return Graph.from_edges(*ends, weights, vertices=range(n), directed=directed, **options)

    found = streamed(program, first, batches, ranks, deterministic=True, threads=2)
    graph = first()
    for batch, before, told in zip(batches, found, found[1:], strict=False):
        graph = graph.apply(batch.inserts, batch.deletes)
        arrow = graph.to_arrow()
        judge = Graph.from_edges(
            *[arrow[name].to_numpy() for name in ("source", "target", "weight")],
            vertices=range(n),
            directed=directed,
        )
        assert_equal(told, sigps.run(program, judge, device="cpu", deterministic=True), before)
        assert told[2] == "incremental"


class Walks(Vertex, message=int):
    """The sum of ids along all walks of some steps that end at a vertex."""

    steps: Param[int] = 6
    total: State[int] = 0

    def compute(self, messages):
        self.total = self.id if self.superstep == 0 else self.id + sum(messages)
        if self.superstep < self.steps:
            self.send_to_neighbors(self.total)
        else:
            self.vote_to_halt()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_source_of_a_new_edge_tells_all_its_records(
    ranks: int, directed: bool, never_large: None
) -> None:
    n, far = 40, ([3], [39])

    def first(**options: Any) -> Graph:
        return Graph.from_edges(range(n - 1), range(1, n), vertices=range(n), directed=directed, **options)

    # While the edge is away vertex 3 has other records.
    batches = [Updates(far), Updates(None, far), Updates(([1], [3])), Updates(far), Updates(None, ([1], [3]))]
    found = streamed(Walks(), first, batches, ranks, guard="incremental")
    graph = first()
    for batch, before, told in zip(batches, found, found[1:], strict=False):
        graph = graph.apply(batch.inserts, batch.deletes)
        assert_equal(told, sigps.run(Walks(), graph, device="python"), before)
        assert told[2] == "incremental"


def test_a_batch_tells_what_it_changes_alone() -> None:
    def of(group: ThreadGroup) -> list[tuple[int, int]]:
        graph = sigps.generate("grid", rows=300, columns=300, group=group)
        with sigps.stream(Walks(), graph, device="cpu", threads=1) as live:
            results = [live.result, live.apply(inserts=([44_999], [45_000])), live.apply(inserts=([0], [2]))]
            return [
                (sum(entry.active for entry in r.stats), sum(entry.bytes_moved for entry in r.stats))
                for r in results
            ]

    full, near, away = run_ranks(2, of)[0]
    assert full[0] == 7 * 90_000
    heads = 2 * 7 * 32
    assert full[1] > 6 * 2 * 300 * 8 + heads  # the records of two rows of the grid
    assert 2 <= near[0] < 1500
    assert heads < near[1] < full[1]
    assert away[0] < 1500
    assert (
        away[1] == 2 * 6 * 32
    )  # records of inner vertices stay here, and no superstep reads those of the last


class Sends(Vertex, message=int):
    """Begins with a measure, and sends it."""

    links: State[int] = neighbor_links

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(self.links)
        else:
            self.links = max(messages, default=0)
            self.vote_to_halt()


class Reads(Vertex):
    """Begins with a measure, and reads a degree."""

    links: State[int] = neighbor_links

    def compute(self, messages):
        self.links -= self.out_degree
        self.vote_to_halt()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("program", [Sends(), Reads()])
def test_measures_are_sent_and_beside_degrees(program: Vertex, directed: bool, never_large: None) -> None:
    draw, n = np.random.default_rng(5), 200
    ends = (n * draw.random((2, 2000)) ** 2).astype(int)
    batches = [
        Updates(tuple(draw.integers(0, n, (2, size))), tuple(ends[:, draw.integers(0, 2000, size)]))
        for size in (1, 20, 3)
    ]

    def first(**options: Any) -> Graph:
        return Graph.from_edges(*ends, vertices=range(n), directed=directed, **options)

    found = streamed(program, first, batches, 3)
    graph = first()
    for batch, before, told in zip(batches, found, found[1:], strict=False):
        graph = graph.apply(batch.inserts, batch.deletes)
        assert_equal(told, sigps.run(program, graph, device="python"), before)
        assert told[2] == "incremental"


def test_a_guard_sees_what_a_batch_may_change() -> None:
    seen = []

    def guard(affected: sigps.Affected) -> bool:
        named = affected.ids.tolist(), affected.fields["label"].tolist(), affected.edges, affected.num_edges
        seen.append(named)
        return len(named[0]) < 4

    def first(**options: Any) -> Graph:
        return Graph.from_edges(range(9), range(1, 10), directed=False, **options)

    batches = [Updates(([0], [9])), Updates(([0, 5], [9, 6]), ([1], [2]))]
    found = streamed(CDLP(iterations=0), first, batches, 2, guard=guard)
    assert [told[2] for told in found[1:]] == ["incremental", "full"]
    assert found[2][3] == "the guard's function"
    assert (
        seen[::2]
        == seen[1::2]
        == [
            ([0, 9], [0, 9], 4, 20),
            ([0, 1, 2, 5, 6, 9], [0, 1, 2, 5, 6, 9], 14, 22),
        ]
    )
    below = {"field": "label", "below": 5, "fraction": 0.4}
    found = streamed(CDLP(iterations=0), first, batches, 3, guard=below)
    assert [told[2] for told in found[1:]] == ["full", "full"]
    assert found[1][3] == "guard: of 50 % of the affected vertices label is below 5"


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two ranks with three vertices each, and one or two of the other's: records of 8 bytes, which are states, too.
    monkeypatch.setattr(rounds, "available_memory", lambda: 4 * 2 * 3 * 8 * 5)

    def first(**options: Any) -> Graph:
        return Graph.from_edges([0, 1, 2, 4], [1, 2, 3, 5], directed=False, **options)

    for iterations, path in ((2, "incremental"), (3, "full")):
        found = streamed(CDLP(iterations=iterations), first, [Updates(([3], [5]))], 2)
        graph = first().apply(([3], [5]))
        assert_equal(found[1], sigps.run(CDLP(iterations=iterations), graph, device="python"), found[0])
        assert found[1][2] == path
    assert "supersteps take " in found[1][3]


def test_more_vertices_than_rounds_name_run_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_run, "_MOST_VERTICES", 9)
    graph = functools.partial(Graph.from_edges, range(9), range(1, 10), directed=False)
    found = streamed(CDLP(), graph, [Updates(([0], [5]))], 2)
    assert found[1][2:4] == ("full", "on several ranks rounds go on among 9 vertices at most")
    monkeypatch.setattr(live_run, "_MOST_VERTICES", 10)
    assert streamed(CDLP(), graph, [Updates(([0], [5]))], 2)[1][2] == "incremental"


@pytest.mark.parametrize("guard", ["incremental", "full"])
def test_after_an_error_of_one_rank_batches_run_in_full_on_all(guard: Any) -> None:
    def of(group: ThreadGroup) -> tuple[str, list[Any]]:
        graph = Graph.from_edges([0, 1, 2], [5, 5, 0], vertices=range(6), group=group)
        with sigps.stream(Halves(), graph, device="cpu", threads=1, guard=guard) as live:
            with pytest.raises(SigpsError) as caught:
                live.apply(inserts=([4], [5]))
            kept = live.result["value"].tolist()
            result = live.apply(deletes=([0], [5]))
            told = [kept, result["value"].tolist(), result.path, result.why]
            return f"{type(caught.value).__name__}: {caught.value}", told

    (at_0, told), (at_1, _) = run_ranks(2, of)
    assert at_1.startswith("ComputeError: ")
    assert "vertex 5" in at_1
    assert at_0 == f"GraphError: rank 1 failed: {at_1}"
    assert told == [[6, 4, 4, 4, 4, 12], [6, 4, 4, 4, 4, 6], "full", "a batch before ended with an error"]


@pytest.mark.parametrize("ranks", [2, 3])
def test_edges_that_expire_and_vertices_that_go(ranks: int, never_large: None) -> None:
    batches = [
        Updates(([0], [5]), times=[20]),
        Updates(([1, 9], [6, 10]), times=[25, 26]),
        Updates(([3], [9]), times=[31]),
        Updates(delete_vertices=[4]),
    ]

    def first(**options: Any) -> Graph:
        return Graph.from_edges(range(9), range(1, 10), directed=False, **options)

    found = streamed(CDLP(), first, batches, ranks, window=10)
    graph = first()
    changes = [(([0], [5]), None), (([1, 9], [6, 10]), None), (([3], [9]), ([0], [5])), (None, None)]
    for (inserts, deletes), batch, before, told in zip(changes, batches, found, found[1:], strict=False):
        graph = graph.apply(inserts, deletes, delete_vertices=batch.delete_vertices)
        assert_equal(told, sigps.run(CDLP(), graph, device="python"), before)
    assert [told[2] for told in found[1:]] == ["incremental", "incremental", "incremental", "full"]
