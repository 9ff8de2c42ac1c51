"""Streams on several GPUs, whose kernels run on the host, against full runs on graphs built anew."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import host_streams
import numpy as np
import pytest
from histories import History, assert_parents_hold, drawn, histories
from host_lease import run_leases_by_their_text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from monotone_programs import Joined
from thread_group import ThreadGroup, run_ranks
from turns import in_turn

import sigps
from sigps import Graph, Updates, Vertex
from sigps.apps import BFS, CDLP, SSSP, WCC
from sigps.device.linking import link_kernel
from sigps.engine.gpu import (
    arrivals,
    arrivals_ranks,
    edited_rows,
    following,
    live,
    live_ranks,
    numbering,
    peer_buffers,
    peers,
    placement,
)
from sigps.errors import DeviceError, SigpsError
from sigps.graph.later import LaterGraph
from sigps.job import guard
from sigps.job.stream import Stream

FIELDS = {"SSSP": "distance", "WCC": "component", "BFS": "level", "Joined": "component"}

quick = settings(
    max_examples=drawn(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Ranks that are threads, with few spare ghosts: three, of which one may be between others, or have nothing."""
    return use_ranks(monkeypatch, 3)


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
        if isinstance(program, BFS):
            assert result["parent"].tolist() == expected["parent"].tolist()
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


@quick
@given(history=histories(), choice=st.sampled_from(["auto", "incremental", "full"]))
def test_levels_are_those_of_a_full_run(history: History, choice: Any, ranks: int) -> None:
    source = np.asarray(history.first().ids)[0]
    program = BFS(source=source if isinstance(source, str) else int(source))
    assert_follows(program, history, ranks, guard=choice)


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
        if isinstance(program, BFS):
            assert result["parent"].tolist() == expected["parent"].tolist()
    return [(path, why) for _, path, why, _ in found]


def drawn_batches(n: int, ends: Any, sizes: list[int], weights: Any, seed: int = 3) -> list[Updates]:
    draw = np.random.default_rng(seed)
    batches = []
    for size in sizes:
        inserts = (*(n * draw.random((2, size)) ** 2).astype(int), draw.choice(weights, size))
        gone = draw.integers(0, ends.shape[1], size)
        batches.append(Updates(inserts, tuple(ends[:, gone])))
    return batches


@pytest.mark.parametrize(
    ("of", "ranks"), in_turn([([1, 2, 3], True), ([0, 0, 1], False), ([1.0, 1e-20, 0.5], False)], [2, 3])
)
def test_many_batches(of: tuple[list[float], bool], ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, directed = of
    use_ranks(monkeypatch, ranks)
    draw, n = np.random.default_rng(11), 120
    ends = (n * draw.random((2, 3 * n)) ** 3).astype(int)
    first = graphs_of(ends, draw.choice(weights, 3 * n), n, directed=directed)
    batches = drawn_batches(n, ends, [40, 1, 30, 2, 35, 7], weights)
    for program in (SSSP(source=0), BFS(source=0), *([] if directed else [WCC()])):
        told = assert_batches(program, first, batches, ranks, guard="incremental")
        assert {path for path, _ in told} == {"incremental"}


@pytest.mark.parametrize(("program", "blocks"), in_turn([SSSP(source=0), WCC()], [2, 1]))
def test_leases_go_on_by_their_text(program: Vertex, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease begins with marks of vertices and ghosts, pulled and pushed, where others have spare places."""
    ranks = use_ranks(monkeypatch, 3)
    launched = run_leases_by_their_text(monkeypatch, blocks)
    if blocks == 2:  # and few ghosts that lie apart
        few_hot = functools.partial(numbering.number_ghosts, most_hot=96)
        monkeypatch.setattr(numbering, "number_ghosts", few_hot)

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
    draw, n = np.random.default_rng(5), 180
    ring, hub = np.arange(120), np.unique(draw.integers(60, 90, 20))
    ends = np.array([np.append(ring, hub), np.append(np.roll(ring, 1), np.full(hub.size, 60))])
    first = graphs_of(ends, np.ones(ends.shape[1]), n, directed=False)
    batches = []
    for i, size in enumerate([1, 2, 5, 40, 1, 80]):
        gone, new = draw.integers(0, ends.shape[1], size), draw.integers(0, n, (2, size // 2 * (i % 3)))
        batches.append(Updates((*new, np.ones(new.shape[1])), tuple(ends[:, gone])))
    told = assert_batches(WCC(), first, batches, ranks, guard="incremental")
    assert {path for path, _ in told} == {"incremental"}


def test_what_is_held_up_from_elsewhere_goes_on_holding_up(ranks: int) -> None:
    """A vertex that lost an edge, but not its key, holds up the next one, until the edge between them goes."""
    first = graphs_of(([0, 0, 1, 2, 3], [1, 2, 3, 3, 4]), np.ones(5), 5, directed=False)
    batches = [Updates(None, ([1], [3])), Updates(None, ([3], [4]))]
    told = assert_batches(Joined(), first, batches, ranks, guard="incremental")
    assert [path for path, _ in told] == ["incremental"] * 2


def chain(n: int, **more: Any) -> Callable[..., Graph]:
    return lambda **o: Graph.from_edges(
        range(n - 1), range(1, n), np.ones(n - 1), vertices=range(n), **more, **o
    )


@pytest.mark.parametrize("program", [SSSP(source=0), WCC()])
def test_each_rank_keeps_its_part(program: Vertex, ranks: int) -> None:
    """Rows on the hosts wait until all ranks read them, and results stay as they were."""
    field = FIELDS[type(program).__name__]
    first = chain(40, directed=False)
    batches = [(([0], [20], [1.0]), None), (None, ([20, 7], [0, 8])), (([3, 3], [30, 31], [2.0, 2.0]), None)]

    def of(group: ThreadGroup) -> Any:
        graph, found = first(group=group), []
        how: dict[str, Any] = {"device": "cuda", "transport": "peer", "gather": False}
        with sigps.stream(program, graph, guard="incremental", asynchronous=False, **how) as live:
            for inserts, deletes in batches:
                result = live.apply(inserts=inserts, deletes=deletes)
                assert type(live.graph) is LaterGraph
                found.append((result, live.graph.num_edges, result.changed_ids.tolist()))
            assert type(live.graph) is LaterGraph
            assert result.update.inserted == 2
            assert type(live.graph) is Graph
            rows = live.graph.to_arrow().to_pydict()
        values = [(result.ids.tolist(), result[field].tolist()) for result, *_ in found]
        return values, [count for _, count, _ in found], [ids for *_, ids in found], rows

    found = run_ranks(ranks, of)
    graph, before = first(), sigps.run(program, first(), device="python")[field]
    for k, (inserts, deletes) in enumerate(batches):
        graph = graph.apply(inserts, deletes)
        expected = sigps.run(program, graph, device="python")[field]
        told = {v: x for values, *_ in found for v, x in zip(*values[k], strict=True)}
        assert told == dict(enumerate(expected.tolist()))
        assert sorted(v for _, _, changed, _ in found for v in changed[k]) == (
            np.flatnonzero(before != expected).tolist()
        )
        assert [counts[k] for _, counts, *_ in found] == [graph.num_edges] * ranks
        before = expected
    edges = [
        dict(zip(zip(r["source"], r["target"], strict=True), r["weight"], strict=True)) for *_, r in found
    ]
    judge = graph.to_arrow().to_pydict()
    assert {k: w for part in edges for k, w in part.items()} == dict(
        zip(zip(judge["source"], judge["target"], strict=True), judge["weight"], strict=True)
    )


def test_each_rank_tells_what_changed_where_rows_are_laid_out_anew(ranks: int) -> None:
    first = chain(40, directed=False)
    batches = [Updates(None, ([30], [31], [1.0])), Updates(([0], [35], [1.0]))]
    found = streamed(SSSP(source=0), first, batches, ranks, guard="incremental", gather=False)
    assert [entry[1] for entry in found[0]] == ["full", "incremental"]
    graph, before = first(), sigps.run(SSSP(source=0), first(), device="python")["distance"]
    for k, batch in enumerate(batches):
        graph = graph.apply(batch.inserts, batch.deletes)
        now = sigps.run(SSSP(source=0), graph, device="python")["distance"]
        told = {v for of_rank in found for v in of_rank[k][3]}
        assert set(np.flatnonzero(before != now).tolist()) <= told
        before = now


def test_ids_of_two_results_wait_to_be_read(ranks: int) -> None:
    """The memory of others is let go of, and that of all when the stream is closed."""

    def of(group: ThreadGroup) -> Any:
        how: dict[str, Any] = {"device": "cuda", "transport": "peer", "gather": False}
        with sigps.stream(
            SSSP(source=0), chain(40)(group=group), guard="incremental", asynchronous=False, **how
        ) as live:
            found: list[Any] = [live.apply(inserts=([0], [k], [1.0])) for k in (39, 30, 20, 10)]
            wait = [result._changed._find is not None for result in found]
        left = [result._changed._find is not None for result in found]
        return wait, left, [result.changed_ids.tolist() for result in found]

    found = run_ranks(ranks, of)
    assert [(wait, left) for wait, left, _ in found] == [([False] * 2 + [True] * 2, [False] * 4)] * ranks
    expected = [[39], list(range(30, 39)), list(range(20, 30)), list(range(10, 20))]
    assert [sorted(v for *_, ids in found for v in ids[k]) for k in range(4)] == expected


@pytest.mark.parametrize(("begins", "short"), in_turn([True, False], ["all", "one"]))
def test_rows_that_do_not_fit_run_in_full(
    short: str, begins: bool, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first, and where rows are laid out anew."""
    without: list[int] = []

    def fits(needed: Any) -> None:
        without.append(threading.get_ident())
        if short == "all" or without[0] == threading.get_ident():
            raise DeviceError("the GPU has 0 bytes free", rank=0)

    def of(group: ThreadGroup) -> Any:
        how: dict[str, Any] = {"device": "cuda", "transport": "peer", "asynchronous": False}
        with sigps.stream(SSSP(source=0), chain(20)(group=group), guard="incremental", **how) as live:
            if not begins:
                group.barrier()
                if group.rank == 0:
                    monkeypatch.setattr(edited_rows, "check_fits", fits)
                group.barrier()
            result = live.apply(deletes=([4], [5], [1.0]))
            return result["distance"].tolist(), result.path, live._live is None, live._why

    if begins:
        monkeypatch.setattr(edited_rows, "check_fits", fits)
    monkeypatch.setattr(peer_buffers, "_idle", {})
    found = run_ranks(ranks, of)
    assert found[0][0] == [0, 1, 2, 3, 4, *[np.inf] * 15]
    for _, path, is_plain, why in found:
        assert (path, is_plain) == ("full", True)
        assert "do not fit the GPU" in why
    assert [len(idle) for idle in peer_buffers._idle.values()] == [2] * ranks


def test_memory_is_given_back_where_a_stream_does_not_begin(
    ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(engine: Any) -> None:
        raise DeviceError("the GPU has 0 bytes free", rank=0)

    monkeypatch.setattr(live_ranks.GpuRankedLiveEngine, "_find_obstacle", fails)
    monkeypatch.setattr(peer_buffers, "_idle", {})
    with pytest.raises(DeviceError, match="rows that follow do not fit"):
        streamed(SSSP(source=0), chain(20), [], ranks)
    assert [len(idle) for idle in peer_buffers._idle.values()] == [2] * ranks


def test_more_ghosts_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks, n = use_ranks(monkeypatch, 2, spare=2), 80
    monkeypatch.setattr(placement, "_SPARE", 1 << 30)
    batches = [
        Updates(([0, 1], [n - 1, n - 2], [1.0, 1.0])),
        Updates((range(9), range(n - 9, n), np.full(9, 2.0))),
        Updates(([2], [n - 20], [0.5]), ([0], [1])),
    ]
    told = assert_batches(SSSP(source=0), chain(n), batches, ranks, guard="incremental")
    assert [path for path, _ in told] == ["incremental", "full", "incremental"]
    assert "than there is room for" in told[1][1]


def test_what_costs_too_much_is_given_up_by_all(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Supersteps or rounds of trimming, on ranks that have none themselves, too."""
    monkeypatch.setattr(live, "_BEGIN", 0)
    monkeypatch.setattr(guard, "_LEAST", 0)
    for name, cost in (("SUPERSTEP", 1), ("ROUND", 5), ("AT_A_TIME", 2)):
        monkeypatch.setattr(live, name, cost)
        monkeypatch.setattr(live_ranks, name, cost)

    def first(**options: Any) -> Graph:
        return sigps.generate("grid", rows=12, columns=12, weights="random", **options)

    draw, batches = np.random.default_rng(3), []
    for size in (1, 30, 1, 60, 2, 90):
        at = draw.integers(0, 143, size)
        batches.append(Updates((*draw.integers(0, 144, (2, 4)), draw.integers(1, 256, 4)), (at, at + 1)))
    told = assert_batches(SSSP(source=0), first, batches, ranks)
    assert {path for path, _ in told} == {"incremental", "full"}
    assert all("needed more than" in why for path, why in told if path == "full")


def test_levels_that_cost_too_much_are_given_up_by_all(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of levels, rounds of trimming, and what computes again; the next batch goes on from a full run's levels."""
    monkeypatch.setattr(guard, "_LEAST", 0)
    for name, cost in (("_BEGIN", 0), ("_SUPERSTEP", 2), ("ROUND", 5), ("_OF_SEARCH", 1)):
        monkeypatch.setattr(arrivals, name, cost)
    monkeypatch.setattr(arrivals_ranks, "ROUND", 5)

    def first(**options: Any) -> Graph:
        return sigps.generate("grid", rows=12, columns=12, weights="random", **options)

    draw, batches = np.random.default_rng(3), []
    for size in (1, 30, 1, 60, 2, 90, 1):
        at = draw.integers(0, 143, size)
        batches.append(
            Updates((*draw.integers(0, 144, (2, size % 7)), draw.integers(1, 256, size % 7)), (at, at + 1))
        )
    told = assert_batches(BFS(source=0), first, batches, ranks)
    assert {path for path, _ in told} == {"incremental", "full"}
    assert all("needed more than" in why for path, why in told if path == "full")


@pytest.mark.parametrize("choice", [{"field": "distance", "below": 3, "fraction": 0.3}, "function", "full"])
def test_guards(choice: Any, ranks: int) -> None:
    asked = []

    def is_far(found: Any) -> bool:
        asked.append((found.ids.tolist(), found.edges, found.num_edges))
        return bool(found.ids.min() > 2)

    batches = [Updates(([5], [7], [1.0])), Updates(([0], [1], [0.5]))]
    given = is_far if choice == "function" else choice
    told = assert_batches(SSSP(source=0), chain(10), batches, ranks, guard=given)
    assert [path for path, _ in told] == ["full" if choice == "full" else "incremental", "full"]
    if choice == "function":
        assert sorted(asked) == sorted([([7], 2, 10), ([1], 2, 11)] * ranks)


@pytest.mark.parametrize("choice", ["incremental", "full"])
def test_numbers_below_0_are_refused_by_all(choice: Any, ranks: int) -> None:
    batches = [Updates(([5], [7], [1.0])), Updates(([3], [8], [-1.0])), Updates(([1], [9], [0.5]))]
    told = assert_batches(SSSP(source=0), chain(10), batches, ranks, guard=choice)
    assert [path for path, _ in told] == [choice, "full", "full"]
    assert all("below 0" in why for _, why in told[1:])


def test_numbers_below_0_are_refused_where_rows_are_laid_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks, n = use_ranks(monkeypatch, 2, spare=2), 80
    monkeypatch.setattr(placement, "_SPARE", 1 << 30)
    batches = [Updates((range(9), range(n - 9, n), np.full(9, -2.0)))]
    told = assert_batches(SSSP(source=0), chain(n), batches, ranks, guard="incremental")
    assert [path for path, _ in told] == ["full"]
    assert "below 0" in told[0][1]


def test_edges_are_deleted_by_their_columns(ranks: int) -> None:
    def first(**options: Any) -> Graph:
        return Graph.from_edges(
            [0, 0, 1, 2], [1, 1, 2, 3], [1.0, 2.0, 1.0, 1.0], vertices=range(9), **options
        )

    batches = [Updates(None, ([0], [1], [1.0])), Updates(([0], [3], [0.5]), ([1], [2]))]
    told = assert_batches(SSSP(source=0), first, batches, ranks, guard="incremental")
    assert [path for path, _ in told] == ["full", "incremental"]
    assert "by their columns" in told[0][1]


@pytest.mark.parametrize(
    ("program", "why", "transport"),
    [
        (CDLP(), "built for monotone programs", "peer"),
        (WCC(), "do not follow in both directions", "peer"),
        (SSSP(source=0), "write into each other's memory", "mpi"),
    ],
)
def test_what_several_gpus_do_not_follow_runs_in_full(
    program: Any, why: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = 2
    host_streams.use_host_for_streams(monkeypatch, ranks if transport == "peer" else 1)
    first, batches = chain(12), [Updates(([0], [5], [1.0])), Updates(None, ([0], [1]))]
    found = streamed(program, first, batches, ranks, transport=transport)[0]
    graph = first()
    for batch, (result, path, told, _) in zip(batches, found, strict=True):
        graph = graph.apply(batch.inserts, batch.deletes)
        expected = sigps.run(program, graph, device="python")
        field = next(iter(expected.fields))
        assert result[field].tolist() == expected[field].tolist()
        assert path == "full"
        assert why in told


def test_streams_one_after_another_take_the_same_memory(ranks: int) -> None:
    for _ in range(3):
        told = assert_batches(
            SSSP(source=0), chain(30), [Updates(([0], [9], [1.0]))], ranks, guard="incremental"
        )
        assert [path for path, _ in told] == ["incremental"]


def test_a_rank_that_does_not_come_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another rank's kernel waits for it as long as kernels wait."""
    ranks = use_ranks(monkeypatch, 2)
    monkeypatch.setattr(peers, "_LONGEST_WAIT", 1.0)
    monkeypatch.setattr(Stream, "_forget", lambda stream, live, why: None)
    follow = live_ranks.GpuRankedLiveEngine.follow_batch

    def fails_on_rank_1(engine: Any, *given: Any, **more: Any) -> None:
        if engine._exchange.rank == 1:
            raise DeviceError("the GPU has 0 bytes free", rank=1)
        follow(engine, *given, **more)

    def of(group: ThreadGroup) -> str:
        how: dict[str, Any] = {"device": "cuda", "transport": "peer", "guard": "incremental"}
        with sigps.stream(SSSP(source=0), chain(9)(group=group), asynchronous=False, **how) as live:
            monkeypatch.setattr(live_ranks.GpuRankedLiveEngine, "follow_batch", fails_on_rank_1)
            with pytest.raises(SigpsError) as raised:
                live.apply(inserts=([0], [5], [1.0]))
        return str(raised.value)

    found = run_ranks(ranks, of)
    assert "rank 1" in found[0]
    assert "did not come to where ranks meet in time" in found[0]


@pytest.mark.parametrize(
    ("of", "arch"),
    in_turn(
        [("float64", "float32", True, True, True), ("int64", "uint8", False, False, False)],
        ["sm_80", "sm_90"],
    ),
)
def test_kernels_link(of: Any, arch: str) -> None:
    pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")
    assert b"go_on_among_ranks" in link_kernel("live_ranks", arch, following.live_macros(*of, 0))


def test_ranks_on_cores_and_gpus_run_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    host_streams.use_host_for_streams(monkeypatch, 1)

    def of(group: ThreadGroup) -> tuple[str, str, Any]:
        graph = Graph.from_edges([0, 1, 2], [1, 2, 3], directed=False, group=group)
        with sigps.stream(WCC(), graph, device="cuda" if group.rank else "cpu") as live:
            result = live.apply(deletes=([1], [2]))
            return result.path, result.why, result["component"] if group.rank == 0 else None

    found = run_ranks(2, of)
    assert [entry[0] for entry in found] == ["full", "full"]
    assert "cpu and cuda at once" in found[0][1]
    assert found[0][2].tolist() == [0, 0, 2, 2]


def test_kernels_of_first_arrivals_link() -> None:
    pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")
    macros = arrivals.arrival_macros("float32", True, 1)
    assert b"settle_among_ranks" in link_kernel("arrivals_ranks", "sm_90", macros)
