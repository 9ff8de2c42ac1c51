"""Values kept on edges, and the edges of neighbours, on a GPU: as interpreted, on any number of ranks, and saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY, NAMES, Sample
from edge_logs import LOGS, assert_goes_on
from edge_programs import (
    Closeness,
    EdgeTriangles,
    Loudest,
    Marks,
    Mirrors,
    Posts,
    Returns,
    Signs,
    Unasked,
    Waves,
)
from gpu_ways import assert_as_judged, rows_of_every_kind
from graphs import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snapshots import MAKERS, assert_near, written
from thread_group import ThreadGroup
from ways import Way, assert_same, results_of

from sigps import Checkpoint, Graph, Result, Vertex, generate, run
from sigps.apps import BiTriDN, DNGraphs, EgoNet, StreamDN, TriDN
from sigps.engine.gpu.walked_rows import WalkedRows

pytestmark = pytest.mark.gpu

PROGRAMS = [EdgeTriangles, Waves, Marks, Mirrors, Returns, Closeness, Loudest, Signs, BiTriDN, DNGraphs]
WAYS = [Way(device="cuda", direction=direction) for direction in ("auto", "push", "pull")]


@pytest.mark.parametrize("graph", NAMES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_ways_agree(program: type[Vertex], graph: str) -> None:
    assert_as_judged(program(), BATTERY[graph].build(), ways=WAYS)


@given(samples(), st.sampled_from(PROGRAMS), st.sampled_from(WAYS))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_random_graphs(sample: Sample, program: type[Vertex], way: Way) -> None:
    assert_as_judged(program(), sample.build(), ways=[way])


@pytest.mark.parametrize("program", [EdgeTriangles, Waves, Marks, Returns, Closeness, Loudest, BiTriDN])
def test_rows_of_every_kind(program: type[Vertex]) -> None:
    assert_as_judged(program(), rows_of_every_kind(directed=program is Waves), judge="cpu", ways=WAYS[:1])


@pytest.mark.parametrize("program", [BiTriDN(), TriDN(), StreamDN(scans=8), EgoNet(source=3, hops=2)])
def test_dense_neighbourhoods_of_a_larger_graph(program: Vertex) -> None:
    graph = generate("rmat", scale=10, seed=1).undirected()
    assert_as_judged(program, graph, judge="cpu", ways=WAYS)


@pytest.mark.parametrize("program", [Waves, Marks, Returns])
def test_single_precision(program: type[Vertex]) -> None:
    for graph in ("skewed", "parallel_edges_undirected"):
        assert_as_judged(program(), BATTERY[graph].build(), judge="cpu", ways=WAYS[:1], precision="single")


def test_without_edge_states_neighbours_are_read_too() -> None:
    for mode in ("plain", "triangles"):
        assert_as_judged(Unasked(mode=mode), BATTERY["grid"].build(), ways=WAYS)


def test_a_vertex_whose_mail_overflows_writes_its_edges_once() -> None:
    size = 200
    sources, targets = np.triu_indices(size, 1)
    assert size * (size - 1) > 2 * size + 4096  # more direct messages than the first capacity
    result = run(Posts(), Graph.from_edges(sources, targets, directed=False), device="cuda", max_supersteps=2)
    assert (result.edges["kept"] == 2).all()
    assert result["x"].tolist() == [size - 1] * size


# --- state logs ------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [("cuda", "cuda"), ("cuda", "cpu"), ("cuda", "python"), ("cpu", "cuda"), ("python", "cuda")],
)
@pytest.mark.parametrize("program", [Marks, Mirrors, Returns, BiTriDN])
def test_another_engine_goes_on_where_one_stopped(program: type[Vertex], first: str, second: str) -> None:
    made = program()
    for name in ("hub_on_a_partition_border", "parallel_edges_undirected"):
        graph = BATTERY[name].build()
        graph = graph if made.declaration.directed else graph.undirected()
        whole = MAKERS["python"](made, graph)
        supersteps = len(whole.lease(100).stats)
        for stop in range(1, supersteps):
            before, after = MAKERS[first](made, graph), MAKERS[second](made, graph)
            before.lease(stop)
            snapshot = before.save()
            before.lease(1)  # what was saved is no longer the engine's
            after.restore(written(snapshot))
            after.lease(100)
            for field in made.declaration.states:
                assert_near(after.state(field.name), whole.state(field.name), field.name)
            for field in made.declaration.edge_states:
                assert_near(*(np.asarray(e.edge_state(field.name)) for e in (after, whole)), field.name)


def test_where_there_is_no_memory_to_bring_it_in_order_the_host_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = BATTERY["skewed"].build().undirected()
    engine = MAKERS["cuda"](BiTriDN(), graph)
    engine.lease(100)
    expected = np.asarray(engine.edge_state("bound"))
    on_host = WalkedRows._orders

    def full(self: WalkedRows, xp: Any) -> Any:
        import cupy

        if xp is cupy:
            raise cupy.cuda.memory.OutOfMemoryError(1, 1, 1)
        return on_host(self, xp)

    monkeypatch.setattr(WalkedRows, "_orders", full)
    assert expected.max() > 1
    np.testing.assert_array_equal(engine.edge_state("bound"), expected)
    np.testing.assert_array_equal(np.asarray(engine.save().edges[0]), expected)


@pytest.mark.parametrize(("first", "second"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
def test_a_log_goes_on_on_another_device(first: Any, second: Any, tmp_path: Path) -> None:
    graph = BATTERY["skewed"].build()
    whole = run(BiTriDN(), graph, device="python")
    log = Checkpoint(tmp_path, every=1)
    run(BiTriDN(), graph, device=first, max_supersteps=2, checkpoint=log)
    assert_same(run(BiTriDN(), graph, device=second, checkpoint=log, resume=True), whole, exact=True)


# --- several ranks ---------------------------------------------------------

RANKS = [
    Way(device="cuda"),
    Way(2, device="cuda"),
    Way(2, device="cuda", direction="push", partitioner="hash"),
    Way(3, device="cuda", direction="pull", partitioner="hash"),
    Way(3, device="cuda", direction="push", partitioner="function"),
]
OF_RANKS = [EdgeTriangles, Waves, Marks, Mirrors, Returns, Closeness, Loudest, Signs]
"""Those of small graphs; dense neighbourhoods have larger ones."""


def assert_ranks_agree(program: Vertex, sample: Sample, ways: list[Way], judge: str = "python") -> None:
    """Check ranks, which are threads and share a GPU, against another device."""
    expected = results_of(program, sample, [Way(device=judge)])[0][1]
    for way, result in results_of(program, sample, ways):
        try:
            assert result.device == "cuda"
            assert_same(result, expected, exact=False)
        except AssertionError as error:
            error.add_note(f"{type(program).__name__} {program.params} on {way}")
            raise


@pytest.mark.parametrize("graph", NAMES)
@pytest.mark.parametrize("program", OF_RANKS)
def test_ranks_agree(program: type[Vertex], graph: str) -> None:
    turn = OF_RANKS.index(program) + NAMES.index(graph)
    assert_ranks_agree(program(), BATTERY[graph], RANKS if graph == "skewed" else RANKS[turn % 2 :: 2])


@given(samples(), st.sampled_from(OF_RANKS), st.sampled_from(RANKS))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_ranks_agree_on_random_graphs(sample: Sample, program: type[Vertex], way: Way) -> None:
    assert_ranks_agree(program(), sample, [way])


@pytest.mark.parametrize(
    "program", [TriDN(), BiTriDN(), StreamDN(scans=8), DNGraphs(), EgoNet(source=3, hops=2)], ids=type
)
def test_dense_neighbourhoods_on_ranks(program: Vertex) -> None:
    assert_ranks_agree(program, BATTERY["skewed"], RANKS, judge="cpu")


@pytest.mark.parametrize("program", [EdgeTriangles, Waves, Marks, Returns, Closeness, Loudest, BiTriDN])
def test_rows_of_every_kind_on_ranks(program: type[Vertex], run_ranks: Any) -> None:
    directed = program is Waves
    expected = run(program(), rows_of_every_kind(directed), device="cpu")

    def work(group: ThreadGroup) -> Result:
        graph = rows_of_every_kind(directed, group=group)
        return run(program(), graph, device="cuda", partitioner="hash")

    for size in (2, 3):
        assert_same(run_ranks(size, work)[0], expected, exact=False)


@pytest.mark.parametrize("program", [Waves, Marks, Returns])
def test_single_precision_on_ranks(program: type[Vertex], run_ranks: Any) -> None:
    sample = BATTERY["skewed"]
    expected = run(program(), sample.build(), device="cpu", precision="single")

    def work(group: ThreadGroup) -> Result:
        return run(program(), sample.build(group=group), device="cuda", precision="single")

    assert_same(run_ranks(2, work)[0], expected, exact=False, relative=1e-5)


def test_a_vertex_whose_mail_overflows_on_ranks_writes_its_edges_once(run_ranks: Any) -> None:
    size = 200
    sources, targets = np.triu_indices(size, 1)
    assert size * (size - 1) // 2 > size + 4096  # more direct messages a rank than the first capacity

    def work(group: ThreadGroup) -> Result:
        graph = Graph.from_edges(sources, targets, directed=False, group=group)
        return run(Posts(), graph, device="cuda", max_supersteps=2, partitioner="hash")

    result = run_ranks(2, work)[0]
    assert (result.edges["kept"] == 2).all()
    assert result["x"].tolist() == [size - 1] * size


@pytest.mark.parametrize("program", [EdgeTriangles, Marks, Mirrors, Returns, BiTriDN])
def test_cpu_cores_beside_a_gpu(program: type[Vertex], run_ranks: Any) -> None:
    sample = BATTERY["skewed"]
    expected = run(program(), sample.build(), device="cpu")

    def mixed(group: ThreadGroup) -> Result:
        device: Any = "cuda" if group.rank else "cpu"
        return run(program(), sample.build(group=group), device=device, partitioner="hash")

    assert_same(run_ranks(3, mixed)[0], expected, exact=False)


@pytest.mark.parametrize(("first", "second"), LOGS)
@pytest.mark.parametrize("program", [Marks, Returns, Mirrors, BiTriDN])
def test_logs_of_other_ranks_and_devices(
    program: type[Vertex], first: tuple[int, str], second: tuple[int, str], tmp_path: Path
) -> None:
    sample = BATTERY["hub_on_a_partition_border" if program is not BiTriDN else "complete_5"]
    assert_goes_on(program, sample, first, second, tmp_path)
