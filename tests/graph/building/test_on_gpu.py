"""Graphs that a GPU builds are those that CPU cores build, array by array."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from sigps import Graph
from sigps.errors import GraphError
from sigps.graph.building import place
from sigps.graph.generators.generate import generate

NOT_COMPARED = {"seconds"}


@pytest.fixture
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "MIN_EDGES", 1)


@pytest.fixture
def launched_kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from sigps.graph.building import on_gpu
    from sigps.graph.generators import on_gpu as drawing

    launched: list[str] = []
    launch = on_gpu.launch

    def counted(gpu: Any, name: str, *arguments: Any) -> None:
        launched.append(name)
        launch(gpu, name, *arguments)

    monkeypatch.setattr(on_gpu, "launch", counted)
    monkeypatch.setattr(drawing, "launch", counted)
    return launched


def assert_same(found: Graph, wanted: Graph) -> None:
    for name in ("offsets", "targets"):
        a, b = getattr(found, name), getattr(wanted, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert found.columns.keys() == wanted.columns.keys()
    for name, column in wanted.columns.items():
        assert found.columns[name].dtype == column.dtype
        np.testing.assert_array_equal(found.columns[name], column)
    assert (found.num_edges, found.directed, found.ids.kind) == (
        wanted.num_edges,
        wanted.directed,
        wanted.ids.kind,
    )
    every = np.arange(wanted.num_vertices)
    np.testing.assert_array_equal(found.ids.to_oids(every), wanted.ids.to_oids(every))
    for field in dataclasses.fields(wanted.report):
        if field.name not in NOT_COMPARED:
            assert getattr(found.report, field.name) == getattr(wanted.report, field.name), field.name
    if wanted.directed:
        a, b = found.in_edges(), wanted.in_edges()
        np.testing.assert_array_equal(a.offsets, b.offsets)
        np.testing.assert_array_equal(a.sources, b.sources)
        for name, column in b.columns.items():
            np.testing.assert_array_equal(a.columns[name], column)


def both(*arguments: Any, **options: Any) -> tuple[Graph, Graph]:
    """Return a graph built on the GPU, in-edges too, and one built on CPU cores."""
    made = [Graph.from_edges(*arguments, device=device, **options) for device in ("cuda", "cpu")]
    for graph, device in zip(made, ("cuda", "cpu"), strict=True):
        with place.building_on(device):
            graph.in_edges()
    return made[0], made[1]


@pytest.mark.gpu
@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("duplicates", ["keep", "drop"])
@pytest.mark.parametrize("self_loops", ["keep", "drop"])
@pytest.mark.parametrize("num_vertices", [1, 40, 3000])
def test_arrays_of_every_kind(
    directed: bool, duplicates: Any, self_loops: Any, num_vertices: int, launched_kernels: list[str]
) -> None:
    cupy = pytest.importorskip("cupy")
    random = np.random.default_rng(num_vertices)
    for num_edges in (1, 31, 2048, 5000, 50_000):
        for low, dtype in ((0, np.int64), (-7, np.int64), (10**12, np.int64), (0, np.uint32), (5, np.int32)):
            ends = [(random.integers(0, num_vertices, num_edges) * 3 + low).astype(dtype) for _ in range(2)]
            columns = {
                "weight": random.random(num_edges).astype(np.float32),
                "kind": random.integers(0, 9, num_edges).astype(np.uint8),
            }
            options = {"directed": directed, "duplicates": duplicates, "self_loops": self_loops}
            launched_kernels.clear()
            assert_same(*both(*ends, **options))
            assert "place_kept_block_mapped" in launched_kernels
            assert_same(*both(*ends, columns=columns, **options))
            on_gpu = [cupy.asarray(array) for array in ends]
            wanted = Graph.from_edges(*ends, columns=columns, device="cpu", **options)
            in_memory = {name: cupy.asarray(column) for name, column in columns.items()}
            assert_same(Graph.from_edges(*on_gpu, columns=in_memory, **options), wanted)


@pytest.mark.gpu
@pytest.mark.usefixtures("_any_size")
def test_vertices_without_an_edge() -> None:
    for named in ([], [5], [-3, 8, 8], list(range(-4, 20))):
        assert_same(*both(np.array([1, 2, 2]), np.array([2, 1, 9]), vertices=np.array(named, np.int64)))


@pytest.mark.gpu
@pytest.mark.usefixtures("_any_size")
def test_ids_far_apart_and_texts_are_numbered_by_cpu_cores(launched_kernels: list[str]) -> None:
    assert_same(*both(np.array([0, 2**40]), np.array([2**50, 1])))
    assert_same(*both(np.array(["a", "c"]), np.array(["b", "a"])))
    assert "mark_ids_i8_thread_mapped" not in launched_kernels


@pytest.mark.gpu
@pytest.mark.usefixtures("_any_size")
def test_wrong_arrays_are_refused_as_on_the_host() -> None:
    cupy = pytest.importorskip("cupy")
    for ends in ((cupy.arange(3), cupy.arange(4)), (cupy.arange(4).reshape(2, 2),) * 2):
        with pytest.raises(GraphError, match="every edge needs one value"):
            Graph.from_edges(*ends)
    with pytest.raises(GraphError, match="weight\\[1\\] is NaN"):
        Graph.from_edges(cupy.arange(2), cupy.arange(2), cupy.asarray([1.0, float("nan")]))


@pytest.mark.gpu
@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("weights", [None, "random"])
@pytest.mark.parametrize(
    "options",
    [
        {"scale": 0, "edge_factor": 3},
        {"scale": 1},
        {"scale": 7, "directed": True},
        {"scale": 11, "duplicates": "keep", "self_loops": "keep"},
        {"scale": 12, "permute": False, "seed": 9},
        {"scale": 13, "a": 0.25, "b": 0.25, "c": 0.25},
    ],
)
def test_recursive_matrices(options: Any, weights: Any, launched_kernels: list[str]) -> None:
    found = generate("rmat", device="cuda", weights=weights, **options)
    assert "draw_rmat_thread_mapped" in launched_kernels
    assert_same(found, generate("rmat", device="cpu", weights=weights, **options))


@pytest.mark.gpu
@pytest.mark.usefixtures("_any_size")
def test_other_generators_and_derived_graphs() -> None:
    for name, options in (("grid", {"rows": 30, "columns": 20, "weights": "random"}), ("star", {"n": 900})):
        pair = [generate(name, device=device, **options) for device in ("cuda", "cpu")]
        assert_same(*pair)
    ends = np.array([0, 1, 1, 4, 4]), np.array([1, 0, 1, 2, 2])
    made = []
    for device in ("cuda", "cpu"):
        with place.building_on(device):
            graph = Graph.from_edges(*ends)
            made.append([graph.undirected(), graph.undirected(simple=True), graph.both_ways()])
    for found, wanted in zip(*made, strict=True):
        assert_same(found, wanted)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(GraphError, match="device='gpu' builds no graphs; choose one of auto, cpu, cuda"):
        Graph.from_edges([0], [1], device="gpu")  # type: ignore[arg-type]


def test_small_graphs_and_those_of_several_ranks_are_built_by_cpu_cores() -> None:
    from thread_group import run_ranks

    with place.building_on("cuda"):
        assert Graph.from_edges([0, 1], [1, 2]).num_edges == 2
        many = np.arange(place.MIN_EDGES)
        sizes = run_ranks(2, lambda group: Graph.from_edges(many, many, group=group).num_edges)
    assert sizes == [place.MIN_EDGES] * 2


@pytest.mark.parametrize("columns", [{}, {"weight": np.empty(0, np.float64)}])
def test_a_graph_that_does_not_fit_the_gpu_is_built_by_cpu_cores(
    monkeypatch: pytest.MonkeyPatch, columns: Any
) -> None:
    import host_gpu

    from sigps.device import cuda
    from sigps.group import Alone

    host_gpu.use_host_as_gpu(monkeypatch)
    needed = place.bytes_to_build(place.MIN_EDGES, columns, symmetric=True)
    for free, fits in ((needed, True), (needed - 1, False)):
        monkeypatch.setattr(cuda, "free_bytes", lambda free=free: free)
        found = place.gpu_for(place.MIN_EDGES, columns, Alone(), symmetric=True)
        assert (found is not None) == fits


@pytest.mark.parametrize(
    ("device", "are_rows", "least"),
    [
        ("auto", False, place.MIN_EDGES),
        ("auto", True, place.MIN_EDGES_COLD),
        ("cuda", False, place.MIN_EDGES),
        ("cuda", True, place.MIN_EDGES),
    ],
)
def test_rows_are_transposed_by_cpu_cores_where_they_are_few(
    device: Any, are_rows: bool, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import host_gpu

    from sigps.group import Alone

    host_gpu.use_host_as_gpu(monkeypatch)
    with place.building_on(device):
        found = [
            place.gpu_for(count, {}, Alone(), symmetric=False, are_rows=are_rows)
            for count in (least - 1, least)
        ]
    assert [gpu is not None for gpu in found] == [False, True]
