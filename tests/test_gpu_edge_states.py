"""Values kept on edges, and the edges of neighbours, on a GPU: as interpreted, saved, and refused where not built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY, Sample
from edge_programs import Closeness, EdgeTriangles, Loudest, Marks, Mirrors, Returns, Waves
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_edge_states import Posts, Signs, Unasked
from test_equality import NAMES, samples
from test_gpu_engine import assert_as_judged, rows_of_every_kind
from test_gpu_snapshot import MAKERS, assert_near, written
from thread_group import ThreadGroup
from ways import Way, assert_same

from sigps import Checkpoint, DeviceError, Graph, Vertex, generate, run
from sigps.apps import BiTriDN, DNGraphs, EgoNet, StreamDN, TriDN
from sigps.engine.gpu_graph import GpuGraph

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
    assert size * (size - 1) > 2 * size + 4096  # more mail than there is room for at first
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
                assert_near(after.edge_state(field.name), whole.edge_state(field.name), field.name)


def test_where_there_is_no_memory_to_bring_it_in_order_the_host_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = BATTERY["skewed"].build().undirected()
    engine = MAKERS["cuda"](BiTriDN(), graph)
    engine.lease(100)
    expected = engine.edge_state("bound")
    on_host = GpuGraph.walked_before

    def full(self: GpuGraph, xp: Any) -> Any:
        import cupy

        if xp is cupy:
            raise cupy.cuda.memory.OutOfMemoryError(1, 1, 1)
        return on_host(self, xp)

    monkeypatch.setattr(GpuGraph, "walked_before", full)
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


def test_several_ranks_are_refused(run_ranks: Any) -> None:
    def attempt(group: ThreadGroup) -> str:
        with pytest.raises(DeviceError) as error:
            run(Marks(), BATTERY["grid"].build(group=group), device="cuda")
        return str(error.value)

    says = "is not built for values kept on edges (EdgeState) on several ranks yet"
    assert all(says in told for told in run_ranks(2, attempt))
