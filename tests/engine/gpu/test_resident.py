"""What graphs keep on a GPU makes room for runs that need it."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigps
from sigps.apps import BFS, WCC, OutDegree, PageRank
from sigps.engine.gpu.spec import GpuSpec
from sigps.graph.formats.packed_store import save_packed

pytest.importorskip("cuda.core")


def partition_of(graph: sigps.Graph) -> Any:
    ((_, subgraph),) = graph.derived("partitions", dict).values()
    return subgraph


def test_the_oldest_goes_and_what_is_in_use_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    from host_gpu import GPU, use_host_as_gpu

    from sigps.engine.gpu import resident

    use_host_as_gpu(monkeypatch)
    graphs = [sigps.generate("path", n=40 + i) for i in range(4)]
    for graph in graphs:
        sigps.run(BFS(source=0), graph, device="cuda")
    kept = [resident.graphs_on_gpu(partition_of(graph), GPU) for graph in graphs]
    laid_out = [[weakref.ref(found) for found in graph.values()] for graph in kept]
    assert [len(found) for found in laid_out] == [1] * 4
    in_use = laid_out[1][0]()

    def free_bytes(wanted: int = 0) -> int:
        gc.collect()
        return 10 * sum(found() is None for (found,) in laid_out)

    monkeypatch.setattr(resident, "free_bytes", free_bytes)
    assert resident.make_room(10, GPU, besides=[partition_of(graphs[0])]) == 10
    assert [found() is None for (found,) in laid_out] == [False, False, True, False]
    assert list(kept[1].values()) == [in_use]
    assert resident.make_room(1000, GPU) == 30
    assert [found() is None for (found,) in laid_out] == [True, False, True, True]
    levels = sigps.run(BFS(source=0), graphs[2], device="cuda")["level"]
    assert levels.tolist() == list(range(42))


def test_what_is_kept_twice_goes_with_both(monkeypatch: pytest.MonkeyPatch) -> None:
    from host_gpu import GPU, use_host_as_gpu

    from sigps.engine.gpu import resident

    use_host_as_gpu(monkeypatch)
    graph = sigps.generate("path", n=40)
    sigps.run(BFS(source=0), graph, device="cuda")
    kept = resident.graphs_on_gpu(partition_of(graph), GPU)
    kept["tiles that do not pay"] = next(iter(kept.values()))
    laid_out = weakref.ref(kept["tiles that do not pay"])
    monkeypatch.setattr(resident, "free_bytes", lambda wanted=0: gc.collect() * 0 + 10 * (laid_out() is None))
    assert resident.make_room(10, GPU) == 10
    assert not kept


class Counted:
    """The memory that runs and results have of the device in one piece each, of so many bytes in all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import cupy
        from host_gpu import Pointer

        from sigps.device import cuda
        from sigps.engine.gpu import placement, resident

        self.num_bytes, self.most, self._arrays = 1 << 30, 0, weakref.WeakValueDictionary[int, Any]()

        def alloc(size: int) -> Any:
            memory = np.empty(size, np.uint8)
            self._arrays[id(memory)] = memory
            self.most = max(self.most, self.taken)
            return Pointer(memory)

        def free_bytes(wanted: int = 0) -> int:
            return self.num_bytes - self.taken

        monkeypatch.setattr(cupy.cuda, "alloc", alloc)
        for module in (cuda, resident, placement):
            monkeypatch.setattr(module, "free_bytes", free_bytes)

    @property
    def taken(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    from host_gpu import use_host_as_gpu

    use_host_as_gpu(monkeypatch)
    return Counted(monkeypatch)


def test_results_come_to_the_host_where_a_run_needs_their_room(counted: Counted) -> None:
    graph = sigps.generate("rmat", scale=9)
    expected = sigps.run(BFS(source=0), graph, device="cpu")
    results = [sigps.run(BFS(source=0), graph, device="cuda") for _ in range(3)]
    of_a_result = counted.taken // 3
    assert of_a_result > 0
    counted.num_bytes = 4 * of_a_result  # no run fits, whatever leaves
    with pytest.raises(sigps.DeviceError):
        sigps.run(BFS(source=0), graph, device="cuda")
    assert counted.taken == 3 * of_a_result
    counted.num_bytes = counted.most  # of the last run: one more needs the room of one result
    results.append(sigps.run(BFS(source=0), graph, device="cuda"))
    assert counted.taken == 3 * of_a_result  # of four: the oldest has left
    for found in results:
        np.testing.assert_array_equal(np.asarray(found["level"]), np.asarray(expected["level"]))
        assert_equal_ids(found["parent"], expected["parent"])
        np.testing.assert_array_equal(np.asarray(found.to_cupy("level")), np.asarray(expected["level"]))


def assert_equal_ids(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(expected))
    np.testing.assert_array_equal(found.filled(-1), expected.filled(-1))


@pytest.mark.parametrize("program", [PageRank(iterations=3), OutDegree()])
def test_results_make_room_for_runs_on_packed_edges(
    program: sigps.Vertex, counted: Counted, tmp_path: Path
) -> None:
    sigps.generate("rmat", scale=9).save(tmp_path / "store", packed=True)
    graph = sigps.load(tmp_path / "store")
    field = program.declaration.states[0].name
    expected = np.asarray(sigps.run(program, graph, device="cpu")[field])
    given: Any = {"device": "cuda", "stream": "always"}
    counted.num_bytes = 1
    with pytest.raises(sigps.DeviceError, match="edges packed") as refused:
        sigps.run(program, graph, **given)
    counted.num_bytes = 1 << 30
    results = [sigps.run(program, graph, **given) for _ in range(3)]
    of_a_result = counted.taken // 3
    (needed,) = re.findall(r"needs ([\d,]+)", str(refused.value))
    counted.num_bytes = int(needed.replace(",", "")) + 2 * of_a_result
    results.append(sigps.run(program, sigps.load(tmp_path / "store"), **given))  # which is laid out anew
    assert counted.taken == 3 * of_a_result  # of four: the oldest has left
    for found in results:
        np.testing.assert_allclose(np.asarray(found[field]), expected, rtol=1e-12)


def test_packed_edges_stay_for_the_next_run_until_all_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from host_gpu import use_host_as_gpu

    from sigps.device import cuda
    from sigps.engine.gpu import placement, resident

    made, free = list[Any](), [1]

    class Noted(placement.PackedGraph):
        def __init__(self, *given: Any, **more: Any) -> None:
            made.append(weakref.ref(self))
            super().__init__(*given, **more)

    whole = sigps.generate("rmat", scale=9, seed=1).undirected(simple=True)
    save_packed(whole, tmp_path / "store", order="degree", page_arcs=1 << 9)
    graph, program = sigps.load(tmp_path / "store"), PageRank(iterations=3)
    use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(placement, "PackedGraph", Noted)
    for module in (cuda, resident, placement):
        monkeypatch.setattr(module, "free_bytes", lambda wanted=0: free[0])
    with pytest.raises(sigps.DeviceError, match="edges packed") as refused:
        sigps.run(program, graph, device="cuda", stream="always")
    (needed,) = re.findall(r"needs ([\d,]+)", str(refused.value))
    monkeypatch.setattr(GpuSpec, "num_bytes", lambda *given: {"all edges": 1 << 40})
    free[0] = int(needed.replace(",", ""))
    for _ in range(3):
        sigps.run(program, graph, device="cuda")
    assert len(made) == 1
    assert made[0]() is not None
    monkeypatch.setattr(Noted, "bytes_in_spare_room", 1 << 41)
    sigps.run(program, graph, device="cuda")
    assert made[0]() is None  # with its room there might have been enough
    assert len(made) == 2
    monkeypatch.setattr(Noted, "bytes_in_spare_room", 0)
    for module in (cuda, resident, placement):
        monkeypatch.setattr(module, "free_bytes", lambda wanted=0: 1 << 20 if made[1]() else 1 << 30)
    sigps.run(program, graph, device="cuda")
    assert made[1]() is None  # a run that takes more than its pages have left
    assert len(made) == 3


def test_a_result_that_several_hold_leaves_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    import host_gpu

    from sigps.engine.gpu import resident
    from sigps.engine.gpu.device_fields import DeviceFields

    host_gpu.use_host_as_gpu(monkeypatch)
    values, order = np.arange(50, dtype=np.int32), np.arange(50, dtype=np.uint32)[::-1].copy()
    values[7] = np.iinfo(np.int32).min
    expected = values[order].astype(np.int64)
    expected[values[order] == values[7]] = np.iinfo(np.int64).min
    array = values.copy().view(host_gpu.Array)
    is_there = weakref.ref(array)
    one = DeviceFields(
        host_gpu.GPU, {"parent": (array, np.dtype(np.int64))}, order.view(host_gpu.Array), {"parent"}
    )
    del array
    one["parent"][3] = 99
    other = one.again()
    elsewhere = host_gpu.GPU.__class__(**{**vars(host_gpu.GPU), "ordinal": 1})
    monkeypatch.setattr(resident, "free_bytes", lambda wanted=0: 10 * (is_there() is None))
    assert resident.make_room(10, elsewhere) == 0
    assert resident.make_room(10, host_gpu.GPU, needed=0) == 0
    assert is_there() is not None
    assert resident.make_room(10, host_gpu.GPU) == 10
    assert one["parent"][3] == 99
    for found in (other, one.again()):
        np.testing.assert_array_equal(found["parent"], expected)
        np.testing.assert_array_equal(found.none_of("parent"), expected == np.iinfo(np.int64).min)
        np.testing.assert_array_equal(np.asarray(found.on_device("parent")), values[order])


@pytest.mark.gpu
def test_graphs_take_turns_where_one_fits() -> None:
    graphs = [sigps.generate("rmat", scale=16, seed=seed) for seed in (1, 2)]
    expected = [sigps.run(WCC(), graph, device="cpu")["component"] for graph in graphs]
    num_bytes = 12 * graphs[0].num_edges + (24 << 20)
    for _ in range(2):
        for graph, components in zip(graphs, expected, strict=True):
            found = sigps.run(WCC(), graph, device="cuda", device_memory=num_bytes, stream="never")
            np.testing.assert_array_equal(np.asarray(found["component"]), components)
            del found


@pytest.mark.gpu
def test_results_of_many_runs_are_held_where_one_fits() -> None:
    graph = sigps.generate("rmat", scale=16)
    expected = sigps.run(WCC(), graph, device="cpu")["component"]
    limit = 12 * graph.num_edges + (24 << 20)
    given: Any = {"device": "cuda", "stream": "never", "device_memory": limit}
    results = [sigps.run(WCC(), graph, **given) for _ in range(limit // (4 * graph.num_vertices) + 1)]
    for found in results[::20]:
        np.testing.assert_array_equal(np.asarray(found.to_cupy("component").get()), expected)
        np.testing.assert_array_equal(np.asarray(found["component"]), expected)


@pytest.mark.gpu
def test_pages_that_a_run_kept_make_room_for_rows(tmp_path: Path) -> None:
    sigps.generate("rmat", scale=16).save(tmp_path / "store", packed=True)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(WCC(), graph, device="cpu")["component"]
    limit = None
    for transfer in ("auto", "bulk", "rows", "auto"):
        for _ in range(2):
            if limit is None:
                limit = least_memory(graph)
            given: Any = {"device_memory": limit, "stream": "always", "transfer": transfer}
            found = sigps.run(WCC(), graph, device="cuda", **given)
            np.testing.assert_array_equal(np.asarray(found["component"]), expected)
            del found


def least_memory(graph: sigps.Graph) -> int:
    """Return what a run says that it takes with its edges on the host, and its answer."""
    with pytest.raises(sigps.DeviceError) as caught:
        sigps.run(WCC(), graph, device="cuda", device_memory="1MB", stream="always")
    found = re.search(r"needs ([\d,]+)", str(caught.value))
    assert found is not None
    return int(found[1].replace(",", "")) + 32 * graph.num_vertices
