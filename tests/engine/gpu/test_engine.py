"""Runs on a GPU: the same results as the interpreter's and the CPU's, in every direction, in and out of order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from battery import BATTERY, NAMES, Sample
from equality_programs import PROGRAMS, Totals, program_for
from float_programs import PROGRAMS as FLOAT_PROGRAMS
from float_programs import bits
from gpu_ways import BUSY, DIRECTIONS, WAYS, assert_as_judged, assert_same_in_leases, fans, rows_of_every_kind
from graphs import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from send_programs import Simmer
from ways import Way, assert_same

from sigps import Graph, State, Vertex, generate, run
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.device.cuda import find_gpu
from sigps.engine.direction import GPU_PULL_GAIN_EARLY
from sigps.engine.gpu.choice import find_gpu_obstacle
from sigps.engine.gpu.launch import NARROW
from sigps.engine.gpu.layout import BLOCK_DEGREE, warp_degree
from sigps.kernels.cuda.lease import HUB_DEGREE

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("graph", NAMES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_ways_agree(program: str, graph: str) -> None:
    assert_as_judged(program_for(program, graph), BATTERY[graph].build())


@pytest.mark.parametrize(
    "graph", ["skewed", "grid", "isolated", "parallel_edges", "hub_on_a_partition_border"]
)
@pytest.mark.parametrize("program", ["pagerank", "sssp", "totals", "spread", "bfs", "market"])
def test_single_precision(program: str, graph: str) -> None:
    assert_as_judged(program_for(program, graph), BATTERY[graph].build(), judge="cpu", precision="single")


@given(samples(), st.sampled_from(list(PROGRAMS)), st.sampled_from(WAYS))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_random_graphs(sample: Sample, name: str, way: Way) -> None:
    made = PROGRAMS[name]
    program = made(sample.vertices[-1]) if callable(made) else made
    assert_as_judged(program, sample.build(), ways=[way])


# --- graphs that reach every schedule --------------------------------------


class Degrees(Vertex):
    """What the degrees of each vertex are."""

    inward: State[int] = 0
    outward: State[int] = 0

    def compute(self, messages):
        self.inward = self.in_degree
        self.outward = self.out_degree
        self.vote_to_halt()


@pytest.mark.parametrize("directed", [True, False])
def test_the_graph_has_rows_of_every_kind(directed: bool) -> None:
    result = run(Degrees(), rows_of_every_kind(directed), device="cuda")
    inward, outward = result["inward"], result["outward"]
    assert np.all(inward[:3] > BLOCK_DEGREE)
    assert (inward[3], inward[4]) == (BLOCK_DEGREE, BLOCK_DEGREE + 1)
    assert set(inward[10:60].tolist()) == {warp_degree(0)}
    assert set(inward[60:110].tolist()) == {warp_degree(0) + 1}
    assert np.all(outward[[0, 2]] > HUB_DEGREE)
    assert inward[-1] == outward[-1] == 0
    if directed:
        assert outward[1] == HUB_DEGREE + 1  # one of them to vertex 2


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", BUSY)
def test_rows_of_every_kind(name: str, directed: bool) -> None:
    assert_as_judged(BUSY[name], rows_of_every_kind(directed), judge="cpu")


@pytest.mark.parametrize("degree", [HUB_DEGREE - 1, HUB_DEGREE, HUB_DEGREE + 1, 3 * HUB_DEGREE])
def test_hubs_that_send_at_once(degree: int) -> None:
    graph = fans(40, degree)
    for program in (BFS(source=0), SSSP(source=0), WCC()):
        assert_as_judged(program, graph, judge="cpu")


def test_more_hubs_than_blocks() -> None:
    gpu = find_gpu()
    blocks = gpu.num_sms * 2048 // NARROW.threads  # no multiprocessor holds more threads
    assert_as_judged(BFS(source=0), fans(blocks + 9, HUB_DEGREE + 1), judge="cpu")


@pytest.mark.parametrize("size", [1, 31, 32, 33, 63, 64, 65, 255, 256, 257])
def test_numbers_of_vertices_around_words_and_blocks(size: int) -> None:
    ring = np.arange(size)
    graph = Graph.from_edges(ring, np.roll(ring, -1), 1.0 + ring % 3)
    for program in (BFS(source=size - 1), SSSP(source=0), WCC(), PageRank(iterations=3)):
        assert_as_judged(program, graph, judge="cpu")


# --- leases ----------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("program", ["pagerank", "bfs", "sssp", "wcc", "totals", "climb"])
def test_several_leases(program: str, direction: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = BATTERY["skewed"].build()
    made = program_for(program, "skewed")
    assert_same_in_leases(made, graph, size, monkeypatch, direction=direction)


def test_rows_of_every_kind_in_several_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block empties the words of block rows for the superstep after; the next lease relies on it."""
    graph = rows_of_every_kind(True)
    for program in (BFS(source=0), SSSP(source=0), PageRank(iterations=5)):
        assert_same_in_leases(program, graph, 1, monkeypatch)


def test_a_run_out_of_order_reports_its_progress() -> None:
    graph = BATTERY["skewed"].build()
    heard: list[int] = []
    result = run(WCC(), graph, device="cuda", progress=lambda stats: heard.append(len(stats)))
    assert heard[-1] == result.supersteps
    np.testing.assert_array_equal(result["component"], run(WCC(), graph, device="python")["component"])


@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
def test_max_supersteps(most: int, direction: str) -> None:
    graph = BATTERY["grid"].build()
    for program in (PageRank(iterations=4), BFS(source=0), WCC(), Totals()):
        options: dict[str, Any] = {"max_supersteps": most, "direction": direction}
        result = run(program, graph, device="cuda", **options)
        assert result.supersteps <= most
        assert_same(result, run(program, graph, device="python", **options), exact=False)


@pytest.mark.parametrize(("length", "judge"), [(700, "python"), (70_000, None)])
def test_many_supersteps(length: int, judge: str | None) -> None:
    """More statistics than come back in one copy; more supersteps than one launch has room for."""
    graph = Graph.from_edges(np.arange(length), np.arange(1, length + 1))
    result = run(BFS(source=0), graph, device="cuda")
    np.testing.assert_array_equal(result["level"], np.arange(length + 1))
    assert [s.superstep for s in result.stats] == list(range(result.supersteps))
    if judge is not None:
        assert_same(result, run(BFS(source=0), graph, device=judge), exact=True)  # type: ignore[arg-type]


def test_pushes_and_pulls_in_turn() -> None:
    """A frontier that grows and shrinks: lists become bits and bits lists, more than once."""
    sizes = [1, 300, 1, 1, 500, 2, 400, 1, 1, 1]
    begins = np.cumsum([0, *sizes])
    pairs = [
        (np.repeat(np.arange(a, b), c - b), np.tile(np.arange(b, c), b - a))
        for a, b, c in zip(begins, begins[1:], begins[2:], strict=False)
    ]
    sources, targets = (np.concatenate(column) for column in zip(*pairs, strict=True))
    graph = Graph.from_edges(sources, targets, 1.0 + (sources * 3 + targets) % 7)
    for program in (BFS(source=0), SSSP(source=0), PROGRAMS["reach"](0)):  # type: ignore[operator]
        assert_as_judged(program, graph, judge="cpu")
    turns = [s.direction for s in run(BFS(source=0), graph, device="cuda").stats]
    assert {"push", "pull"} == set(turns)


def test_a_pull_costs_no_edges_of_those_that_have_retired() -> None:
    """The last messages of a search go to where nearly all have retired: they are pulled, many as they are."""
    graph = generate("rmat", scale=15)
    degrees = np.diff(graph.offsets)
    stats = run(BFS(source=int(degrees.argmax())), graph, device="cuda").stats
    pull_cost, num_retired_edges, differs = int(degrees.sum()) + graph.num_vertices, 0, False
    for before, now in itertools.pairwise(stats):
        num_retired_edges += before.messages  # a vertex that sends along its edges retires
        visits = before.messages * GPU_PULL_GAIN_EARLY
        assert now.direction == ("push" if visits < pull_cost - num_retired_edges else "pull")
        differs |= now.direction == "pull" and visits < pull_cost
    assert differs


@pytest.mark.parametrize("graph", ["skewed", "grid", "isolated", "path", "star_out", "two_components"])
def test_messages_on_their_way_while_others_are_active(graph: str) -> None:
    assert_as_judged(Simmer(), BATTERY[graph].build())
    assert_as_judged(Simmer(), BATTERY[graph].build(), judge="cpu", max_supersteps=3)


def test_a_push_runs_those_too_who_are_active() -> None:
    """Few send in most rounds of core numbers, and everybody who is left is active."""
    graph = generate("rmat", scale=12)
    assert_as_judged(KCore(), graph, judge="cpu", ways=[Way(device="cuda", direction=d) for d in DIRECTIONS])
    stats = run(KCore(), graph, device="cuda").stats
    assert any(s.direction == "push" and s.active > s.messages > 0 for s in stats)
    assert any(s.direction == "push" and s.messages == 0 for s in stats)


def test_messages_on_their_way_between_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    for direction in ("auto", "push"):
        assert_same_in_leases(Simmer(), BATTERY["grid"].build(), 1, monkeypatch, direction=direction)
        assert_same_in_leases(BFS(source=0), fans(40, HUB_DEGREE + 1), 1, monkeypatch, direction=direction)


# --- results ---------------------------------------------------------------


def test_aggregators_carry_on() -> None:
    """Regular, persistent and custom ones, through every lease."""
    graph = BATTERY["skewed"].build()
    assert find_gpu_obstacle(analyse(Totals()), False) is None
    result = run(Totals(), graph, device="cuda", progress=lambda stats: None)
    expected = run(Totals(), graph, device="python")
    assert_same(result, expected, exact=False)
    assert result.aggregators["bits"] == 1023
    assert [type(v) for v in result.aggregators.values()] == [type(v) for v in expected.aggregators.values()]


def test_runs_on_one_graph_do_not_disturb_each_other() -> None:
    graph = BATTERY["skewed"].build()
    programs: list[Callable[[], Vertex]] = [
        lambda: BFS(source=0),
        lambda: PageRank(iterations=5),
        lambda: SSSP(source=0),
        lambda: BFS(source=3),
        WCC,
    ]
    first = [run(make(), graph, device="cuda", asynchronous=False) for make in programs]
    second = [run(make(), graph, device="cuda", asynchronous=False) for make in programs]
    for make, a, b in zip(programs, first, second, strict=True):
        judge = run(make(), graph, device="python")
        assert_same(a, judge, exact=False)
        assert_same(b, judge, exact=False)


@pytest.mark.parametrize("graph", ["skewed", "sparse_ids", "string_ids", "only_isolated"])
def test_to_cupy(graph: str) -> None:
    cupy = pytest.importorskip("cupy")
    result = run(PageRank(iterations=3), BATTERY[graph].build(), device="cuda")
    ranks = result.to_cupy("rank")
    assert isinstance(ranks, cupy.ndarray)
    np.testing.assert_array_equal(cupy.asnumpy(ranks), result["rank"])
    ranks += 1.0
    np.testing.assert_array_equal(cupy.asnumpy(result.to_cupy("rank")), result["rank"])


def test_ids_come_to_cupy_as_they_are() -> None:
    cupy = pytest.importorskip("cupy")
    result = run(BFS(source=5), BATTERY["sparse_ids"].build(), device="cuda")
    parents = cupy.asnumpy(result.to_cupy("parent"))
    np.testing.assert_array_equal(parents, result["parent"].filled(np.iinfo(parents.dtype).min))


def test_string_ids_come_back_as_names() -> None:
    for way in WAYS:
        result = run(BFS(source="bob"), BATTERY["string_ids"].build(), **way.options())
        assert result.ids.tolist() == ["ann", "bob", "dan", "eve", "zoë"], way
        assert result["parent"].tolist() == ["bob", "bob", None, "ann", "eve"], way
        assert result["level"].tolist() == [1, 0, -1, 2, 3], way


@pytest.mark.parametrize("graph", [*NAMES, "fans", "rows"])
@pytest.mark.parametrize("name", FLOAT_PROGRAMS)
def test_deterministic_runs_leave_the_bits_of_a_cpu(name: str, graph: str) -> None:
    others: dict[str, Callable[[], Graph]] = {
        "fans": lambda: fans(20, 6000),
        "rows": lambda: rows_of_every_kind(directed=True),
    }
    build = others[graph] if graph in others else BATTERY[graph].build
    program = FLOAT_PROGRAMS[name]()
    judge = bits(run(program, build(), device="cpu", deterministic=True))
    for direction in DIRECTIONS:
        found = run(program, build(), device="cuda", deterministic=True, direction=direction)
        assert bits(found) == judge, direction
