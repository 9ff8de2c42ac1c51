"""Values on edges beside packed rows that stream to a GPU: as on CPU cores, wherever they lie."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host_gpu
import numpy as np
import pytest
from crafted_stores import change_header
from packed_runs import on_ranks
from value_programs import VALUES

import sigps
from sigps import Checkpoint, ConfigError, DeviceError, Graph, GraphError, Result, run
from sigps.compiler.frontend.analysis import analyse
from sigps.device.pinned_block import PinnedBlock
from sigps.engine.contract import RunOptions
from sigps.engine.gpu import placement
from sigps.engine.gpu.crossing_plan import bytes_to_cross
from sigps.engine.gpu.crossing_values import CrossingValues
from sigps.engine.gpu.edge_states import restore_edge_states
from sigps.engine.gpu.packed_edges import PackedGraph
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.table import engine_of
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.paged import PagedRows
from sigps.job.streaming import Streaming, decide_streaming

STAYS = [[True, True], [False, True], [False, False]]


def assert_equal(found: Result, expected: Result) -> None:
    """Compare fields, values on edges and supersteps."""
    for mine, theirs in ((found, expected), (found.edges, expected.edges)):
        for name in theirs.fields if isinstance(theirs, Result) else theirs:
            one, other = np.asarray(mine[name]), np.asarray(theirs[name])
            if one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=name)
            else:
                assert one.tolist() == other.tolist(), name
    assert found.supersteps == expected.supersteps


def stored(folder: Path, scale: int, page_arcs: int) -> Graph:
    """Return a graph opened from a packed store, with a vertex whose row spans pages."""
    made = sigps.generate("rmat", scale=scale, seed=2, weights="random").undirected()
    save_packed(made, folder / "store", order="given", page_arcs=page_arcs)
    return sigps.load(folder / "store")


@pytest.mark.gpu
@pytest.mark.parametrize("page_arcs", [256, 1 << 18])
@pytest.mark.parametrize("name", VALUES)
def test_as_on_cores(name: str, page_arcs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = stored(tmp_path, 11, page_arcs)
    expected = run(VALUES[name], graph, device="cpu", stream="never", max_supersteps=40)
    for stays in STAYS:
        monkeypatch.setattr(placement, "_stays", lambda wanted, room, stays=stays: stays)
        graph = sigps.load(tmp_path / "store")
        for more in ({}, {"host_memory": "16MB"}):
            found = run(VALUES[name], graph, device="cuda", stream="always", max_supersteps=40, **more)
            assert_equal(found, expected)
        assert not graph.is_laid_out
        assert found.stats[0].bytes_read > 0


@pytest.mark.gpu
def test_limits_of_the_gpu_are_kept(tmp_path: Path) -> None:
    import cupy

    graph = stored(tmp_path, 17, 1 << 14)
    expected = {
        name: run(VALUES[name], graph, device="cpu", max_supersteps=12) for name in ("estimates", "forest")
    }
    pool = cupy.get_default_memory_pool()
    for limit in (600, 250, 120):
        for name, judge in expected.items():
            graph = sigps.load(tmp_path / "store")
            pool.free_all_blocks()
            before = pool.used_bytes()
            found = run(
                VALUES[name],
                graph,
                device="cuda",
                device_memory=limit * 10**6,
                max_supersteps=12,
                stream="always",
            )
            assert pool.total_bytes() - before <= limit * 10**6
            assert_equal(found, judge)


@pytest.mark.gpu
@pytest.mark.parametrize("stays", STAYS)
def test_state_logs_go_on(stays: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = stored(tmp_path, 9, 64)
    monkeypatch.setattr(placement, "_stays", lambda wanted, room: stays)
    for name in ("estimates", "forest"):
        expected = run(VALUES[name], graph, device="cpu")
        log = Checkpoint(str(tmp_path / name), every=2)
        for stop, device in ((5, "cuda"), (9, "cpu"), (None, "cuda")):
            options: dict[str, Any] = {"max_supersteps": stop, "checkpoint": log, "resume": True}
            found = run(VALUES[name], graph, device=device, stream="always", **options)
        assert_equal(found, expected)


def test_what_cannot_stream_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    spec = engine_of("cuda").streaming
    assert spec is not None
    graph = stored(tmp_path, 6, 64)
    for program, why in ((sigps.apps.TriDN(), "looks through rows of neighbours"), (VALUES["returns"], "")):
        found = spec.streaming_obstacle(analyse(program), graph, RunOptions())
        assert why in found
        assert bool(why) == bool(found)
    save_packed(graph, tmp_path / "degree", order="degree", page_arcs=64)
    by_degree = sigps.load(tmp_path / "degree")
    assert "by degree" in spec.streaming_obstacle(analyse(VALUES["returns"]), by_degree, RunOptions())
    with pytest.raises(ConfigError, match="looks through rows of neighbours"):
        run(sigps.apps.TriDN(), graph, device="cuda", transfer="bulk")


def test_what_they_take_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, program = stored(tmp_path, 8, 256), VALUES["returns"]
    host_gpu.use_host_as_gpu(monkeypatch)

    def decided(free: int) -> Streaming:
        monkeypatch.setattr(host_gpu, "FREE_BYTES", free)
        options = RunOptions(stream="always", device_memory=free)
        given: dict[str, Any] = {"host_memory": None, "stream": "always", "threads": [1]}
        found = decide_streaming(program, analyse(program), graph, "cuda", options, **given)
        assert found is not None
        return found

    values, reverse = 2 * 16 * graph.num_edges, 8 * graph.num_edges
    most = decided(1 << 30)
    beside = sum(most.resident.values())
    assert (most.values, most.spilled) == (values + reverse, 0)
    for room, on_device in ((values, values), (values - 1, reverse), (reverse - 1, 0)):
        found = decided(beside + room)
        assert (found.values, found.spilled) == (on_device, values + reverse - on_device)
        assert "on the GPU's host" in str(found)


def test_host_memory_is_of_values_and_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, program = stored(tmp_path, 8, 64), VALUES["returns"]
    expected = run(program, graph, device="python", max_supersteps=6)
    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(placement, "_stays", lambda wanted, room: [False, False])
    place, placed = PackedGraph.place_values, list[PackedGraph]()

    def noted(self: PackedGraph, *given: Any, **options: Any) -> None:
        place(self, *given, **options)
        placed.append(self)

    monkeypatch.setattr(PackedGraph, "place_values", noted)
    values = (2 * 16 + 8) * graph.num_edges
    options: dict[str, Any] = {"device": "cuda", "stream": "always", "max_supersteps": 6}
    for room in (1 << 30, graph.packed.rows.num_bytes // 2):
        assert_equal(run(program, graph, host_memory=values + room, **options), expected)
        pages = placed.pop().packed
        assert 0 < pages.host_bytes <= room
        assert pages.is_fed == (room < 1 << 30)
    with pytest.raises(DeviceError, match=f"values on edges take {values:,} bytes of this host's memory"):
        run(program, graph, host_memory=values - 1, **options)


def test_what_crosses_between_ranks_is_in_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of `returns` has a number and two values, which are both read of the other end."""
    graph, program, ranks = stored(tmp_path, 8, 256), VALUES["returns"], 3
    host_gpu.use_host_as_gpu(monkeypatch)
    make, made = CrossingValues.__init__, list[Any]()

    def noted(self: CrossingValues, *given: Any) -> None:
        make(self, *given)
        made.append(self)

    monkeypatch.setattr(CrossingValues, "__init__", noted)
    on_ranks(ranks, program, tmp_path / "store", stream="always", max_supersteps=4)
    assert len(made) == ranks
    given: dict[str, Any] = {"host_memory": None, "stream": "always", "threads": [1] * ranks}
    options = RunOptions(stream="always", device_memory=1 << 30)
    for values in made:
        rank, crossing = values._exchange.rank, values._crossing
        planned = decide_streaming(program, analyse(program), graph, "cuda", options, **given, rank=rank)
        assert planned is not None
        entries = -(-crossing.most // (ranks - 1))
        assert values._entries.nbytes == ranks * entries * 24
        arrive, arrays = 24 * entries * (ranks - 1), (values._entries, values._counts, values._columns)
        taken = arrive + sum(array.nbytes for array in (*arrays, values._before))
        assert taken == bytes_to_cross(analyse(program), crossing.most, values._num_rows, ranks)
        assert taken <= planned.resident["values that cross"]
        num_edges = values._num_edges
        assert planned.values == (2 + 1) * 16 * num_edges + 8 * num_edges
        assert 0 < crossing.num_copies <= num_edges


def test_what_a_run_begins_with_is_written_before_what_it_goes_on_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    pending, is_done = np.empty(5, np.int64), []

    class Late:
        """A stream whose first kernel ends when it is waited for."""

        def synchronize(self) -> None:
            pending[:] = 7
            is_done.append(True)

    monkeypatch.setattr(sys.modules["cupy"].cuda, "get_current_stream", Late)
    memory: Any = SimpleNamespace(has_values_on_host=True, edge_states=lambda: ([pending], []))
    restore_edge_states(memory, (np.arange(5),))
    assert is_done
    assert pending.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("stays", STAYS)
def test_a_run_keeps_what_the_graph_forgets(
    stays: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = stored(tmp_path, 6, 256)
    expected = run(VALUES["forest"], graph, device="cpu", stream="never")
    monkeypatch.setattr(placement, "_stays", lambda wanted, room: stays)
    find, launch = PackedGraph.reverse, host_gpu._LeaseKernel.launch
    found: list[Any] = []

    def found_and_forgotten(self: PackedGraph) -> Any:
        reverse = find(self)
        self.forget("reverse")  # as where a run beside this one has it elsewhere
        found.append(weakref.ref(reverse))
        return reverse

    def launched(*given: Any, **more: Any) -> None:
        assert found[-1]() is not None
        launch(*given, **more)

    monkeypatch.setattr(PackedGraph, "reverse", found_and_forgotten)
    monkeypatch.setattr(host_gpu._LeaseKernel, "launch", launched)
    graph = sigps.load(tmp_path / "store")
    assert_equal(run(VALUES["forest"], graph, device="cuda", stream="always"), expected)
    assert found


def test_memory_of_the_host_goes_when_the_device_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    runtime = sys.modules["cupy"].cuda.runtime
    events: list[str] = []
    monkeypatch.setattr(runtime, "deviceSynchronize", lambda: events.append("waited"))
    monkeypatch.setattr(runtime, "hostUnregister", lambda address: events.append("unpinned"))
    graph = stored(tmp_path, 6, 256)
    run(VALUES["forest"], graph, device="cuda", stream="always")
    del graph
    gc.collect()
    assert events[-2:] == ["waited", "unpinned"]


def test_values_on_the_host_go_when_the_device_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    cuda = sys.modules["cupy"].cuda
    events: list[str] = []

    class Pinned(host_gpu._Pinned):
        def __del__(self) -> None:
            events.append("freed")

    monkeypatch.setattr(cuda, "PinnedMemory", Pinned)
    monkeypatch.setattr(cuda.runtime, "deviceSynchronize", lambda: events.append("waited"))
    pointer = PinnedBlock(100, "values").pointer
    assert events == []
    del pointer
    assert events == ["waited", "freed"]


@pytest.mark.parametrize("parallel", [False, True])
def test_a_store_that_is_not_symmetric_is_refused(
    parallel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row has as many edges as lead to it, so that counts do not tell."""
    ring = np.arange(400)
    sources, targets = (
        np.append(ring, ring),
        np.append((ring + 1) % 400, (ring + (1 if parallel else 399)) % 400),
    )
    count = 800 if parallel else 400
    made = Graph.from_edges(sources[:count], targets[:count], directed=True)
    save_packed(made, tmp_path / "store", order="given", page_arcs=64)
    change_header(tmp_path / "store", lambda header: header.update(directed=False))
    host_gpu.use_host_as_gpu(monkeypatch)
    with pytest.raises(GraphError, match="some edges are stored at one of their ends only"):
        run(VALUES["forest"], sigps.load(tmp_path / "store"), device="cuda", stream="always")


def test_parallel_edges_and_loops_are_symmetric(tmp_path: Path) -> None:
    sources, targets = np.array([0, 0, 1, 1, 2, 3, 3]), np.array([1, 1, 1, 2, 3, 0, 3])
    save_packed(
        Graph.from_edges(sources, targets, directed=False), tmp_path / "store", order="given", page_arcs=4
    )
    edges = whole_edges(sigps.load(tmp_path / "store"))
    found = np.concatenate([part.copy() for _, part in edges.each_reverse()])
    ends, owners = edges.all_ends(), np.repeat(np.arange(4), np.diff(edges.offsets.astype(int)))
    np.testing.assert_array_equal(ends[found], owners)
    np.testing.assert_array_equal(owners[found], ends)


def whole_edges(graph: Graph) -> StreamedEdges:
    assert graph.packed is not None
    return StreamedEdges(PagedRows(graph.packed.rows, 1), graph.num_vertices)
