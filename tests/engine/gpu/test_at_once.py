"""Fixed points found at once on a GPU: the kernels' text on the host, under the engine, against the interpreter."""

from __future__ import annotations

from math import inf
from typing import Any

import host_gpu
import numpy as np
import pytest
from battery import BATTERY
from host_kernels import host_kernels
from turns import in_turn, some_of

from sigps import Graph, Param, Result, State, Vertex, generate, run
from sigps.apps import SSSP, WCC
from sigps.device.linking import link_kernel
from sigps.engine import fixed_points
from sigps.engine.gpu import components, path_lengths
from sigps.engine.gpu.components import component_macros
from sigps.engine.gpu.path_lengths import path_macros


@pytest.fixture
def host_is_gpu(monkeypatch: Any) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(fixed_points, "LEAST_EDGES", 0)
    monkeypatch.setattr(fixed_points, "LEAST_REAL_ON_GPU", 0)

    def of_paths(gpu: Any, *given: Any) -> Any:
        return host_kernels("path_lengths", path_macros(*given))

    def of_components(gpu: Any, *given: Any) -> Any:
        return host_kernels("components", component_macros(*given))

    monkeypatch.setattr(path_lengths, "_kernels", of_paths)
    monkeypatch.setattr(components, "_kernels", of_components)


def was_at_once(result: Result) -> bool:
    return [s.direction for s in result.stats][1:] == ["at once"]


def drawn(weights: Any, seed: int, *, directed: bool, num_vertices: int = 150) -> Graph:
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, num_vertices, (2, 3 * num_vertices)) * 3 + 5
    return Graph.from_edges(*ends, weights=draw.choice(weights, 3 * num_vertices), directed=directed)


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("weights", "precision", "seed"),
    in_turn([range(1, 256), [0, 1], [1000, 70_000]], ["single", "double"], range(3), times=3),
    ids=str,
)
def test_path_lengths(weights: Any, seed: int, precision: Any) -> None:
    graph = drawn(list(weights), seed, directed=seed % 2 == 0)
    source = int(graph.ids.to_oids(np.arange(1))[0])
    found = run(SSSP(source=source), graph, device="cuda", precision=precision)
    expected = run(SSSP(source=source), graph, device="python", precision=precision)
    assert was_at_once(found)
    for name in ("distance", "parent"):
        assert found[name].tolist() == expected[name].tolist()
    assert found.stats[-1].active == np.isfinite(expected["distance"]).sum() - 1


class Lengths(Vertex, message=float):
    """As SSSP, without parents."""

    source: Param[int] = 5
    best: State[float] = inf

    def compute(self, messages):
        received = (
            (0.0 if self.id == self.source else inf) if self.superstep == 0 else min(messages, default=inf)
        )
        if received < self.best:
            self.best = received
            for edge in self.out_edges:
                self.send(edge, self.best + edge.weight)
        self.vote_to_halt()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("weights", "seed"),
    in_turn([[0.1, 0.7, 1.3], [1e-17, 1.0, 3e5, 0.0], [0.1, 1e307], [5e-324, 1e-310]], range(3), times=2),
    ids=str,
)
def test_lengths_with_real_weights(weights: list[float], seed: int) -> None:
    graph = drawn(weights, seed, directed=seed % 2 == 0)
    source = int(graph.ids.to_oids(np.arange(1))[0])
    found, expected = (run(Lengths(source=source), graph, device=device) for device in ("cuda", "python"))
    assert was_at_once(found)
    assert found["best"].tolist() == expected["best"].tolist()
    assert found.stats[-1].active == np.isfinite(expected["best"]).sum() - 1


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("weights", "precision"),
    [([-0.5, 1.0], "double"), ([0.1, 0.7], "single"), ([1e308, 1.5e308], "double")],
    ids=["below", "single", "long"],
)
def test_other_lengths_with_real_weights_go_by_supersteps(weights: list[float], precision: Any) -> None:
    graph = drawn(weights, 1, directed=True)
    if weights[0] < 0:  # without circles
        ends = np.arange(80)
        graph = Graph.from_edges(ends + 5, ends + 6, weights=np.resize(weights, 80))
    found, expected = (
        run(Lengths(source=5), graph, device=device, precision=precision) for device in ("cuda", "python")
    )
    assert not was_at_once(found)
    assert found["best"].tolist() == expected["best"].tolist()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("weights", [[0.5, 1.0], [2.0**24, 1.0], [3.0, 3.0]], ids=["halves", "long", "equal"])
def test_other_lengths_go_by_supersteps(weights: list[float]) -> None:
    graph = drawn(weights, 1, directed=False)
    found = run(SSSP(source=5), graph, device="cuda", precision="single")
    expected = run(SSSP(source=5), graph, device="python", precision="single")
    assert not was_at_once(found)
    assert found["distance"].tolist() == expected["distance"].tolist()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("name", some_of([name for name in BATTERY if name != "empty"], 10))
def test_battery(name: str) -> None:
    graph = BATTERY[name].build()
    source = graph.ids.to_oids(np.arange(1)).tolist()[0]
    has_components = graph.num_edges > 0 and name != "skewed"  # others go in priority order, by kernels
    programs = (SSSP(source=source), WCC()) if has_components else (SSSP(source=source),)
    for program in programs:
        found, expected = (run(program, graph, device=device) for device in ("cuda", "python"))
        for field in expected.fields:
            assert found[field].tolist() == expected[field].tolist()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("edges", [30, 100, 160, 600])
def test_components(edges: int) -> None:
    draw = np.random.default_rng(edges)
    graph = Graph.from_edges(*draw.permutation(3000)[draw.integers(0, 200, (2, edges))], vertices=[7])
    found, expected = (run(WCC(), graph, device=device) for device in ("cuda", "python"))
    assert was_at_once(found)
    assert found["component"].tolist() == expected["component"].tolist()
    own = graph.ids.to_oids(np.arange(graph.num_vertices))
    assert found.stats[-1].active == (expected["component"] != own).sum()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    "types",
    [
        ("float32", "float32", "int32", "int32", 4),
        ("float64", "int64", "int64", "int64", 32),
        ("float64", "float32", "int32", "int32", 4, True),
    ],
    ids=["narrow", "wide", "real"],
)
def test_path_lengths_link(types: Any, arch: str) -> None:
    assert b"relax_piles" in link_kernel("path_lengths", arch, path_macros(*types))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("value", ["int32", "uint64"])
def test_components_link(value: str, arch: str) -> None:
    linked = link_kernel("components", arch, component_macros(value, arch == "sm_80"))
    assert b"join_trees_thread_mapped" in linked


def strips() -> dict[str, Graph]:
    """Meshes of many shapes: square, a path, weights of 0, directed, of several parts, with few edges to many."""
    draw = np.random.default_rng(5)
    ends = draw.integers(0, 20_000, (2, 60_000))
    near = np.sort(draw.integers(0, 30_000, (2, 50_000)), axis=0)
    near[1] = near[0] + near[1] % 7 + 1
    return {
        "square": generate("grid", rows=130, columns=170, weights="random"),
        "path": Graph.from_edges(range(20_000), range(1, 20_001), np.arange(20_000) % 7, directed=False),
        "directed": Graph.from_edges(*ends, draw.integers(0, 3, 60_000).astype(np.float32)),
        "undirected": Graph.from_edges(*ends, draw.integers(0, 300, 60_000), directed=False),
        "parts": Graph.from_edges(*near[:, ::3] * 11, draw.integers(1, 9, 16_667) * 1000.0, directed=False),
    }


def graph_ends(graph: Graph) -> tuple[Any, Any]:
    degrees = np.diff(graph.offsets).astype(np.int64)
    return np.repeat(graph.ids.to_oids(np.arange(graph.num_vertices)), degrees), graph.ids.to_oids(
        graph.targets
    )


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["square", "path", "directed", "undirected", "parts"])
def test_on_a_device(name: str, monkeypatch: Any) -> None:
    """Four times, since threads meet in another order each time."""
    monkeypatch.setattr(fixed_points, "LEAST_REAL_ON_GPU", 0)
    graph = strips()[name]
    source = graph.ids.to_oids(np.arange(1)).tolist()[0]
    for precision in ("single", "double"):
        for program in (SSSP(source=source), WCC()):
            judge = run(program, graph, device="cpu", precision=precision, asynchronous=False)  # type: ignore[arg-type]
            for _ in range(4):
                found = run(program, graph, device="cuda", precision=precision)  # type: ignore[arg-type]
                assert was_at_once(found)
                for field in judge.fields:
                    assert np.array_equal(found[field], judge[field])
    real = Graph.from_edges(*graph_ends(graph), np.random.default_rng(1).random(graph.num_edges))
    judge = run(Lengths(source=source), real, device="cpu", asynchronous=False)
    for _ in range(4):
        found = run(Lengths(source=source), real, device="cuda")
        assert was_at_once(found)
        assert np.array_equal(found["best"], judge["best"])
