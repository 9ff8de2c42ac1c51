"""Path lengths along packed edges, page by page: the kernels' text on the host under the engine, and on a GPU."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from host_kernels import host_kernels
from turns import in_turn

import sigps
from sigps import Graph, Param, State, Vertex, VertexId
from sigps.apps import SSSP
from sigps.device.linking import link_kernel
from sigps.engine import fixed_points
from sigps.engine.gpu import engine, packed_lengths
from sigps.engine.gpu.packed_lengths import page_path_macros
from sigps.errors import ConfigError, DeviceError
from sigps.graph.formats.packed_store import save_packed


@pytest.fixture
def host_is_gpu(monkeypatch: Any) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)

    def of_pages(gpu: Any, *types: str) -> Any:
        return host_kernels("packed_lengths", page_path_macros(*types))

    monkeypatch.setattr(packed_lengths, "_kernels", of_pages)
    monkeypatch.setattr(engine, "packed_path_lengths", packed_lengths.packed_path_lengths)


@pytest.fixture
def by_itself(host_is_gpu: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(engine.GpuEngine, "goes_by_pages", True)


def was_at_once(result: sigps.Result) -> bool:
    return [s.direction for s in result.stats][1:] == ["at once"]


def drawn(weights: Any, seed: int, num_vertices: int = 150) -> Graph:
    """Return a graph in which some vertices have many edges, and some none to the others."""
    draw = np.random.default_rng(seed)
    ends = (num_vertices * draw.random((2, 4 * num_vertices)) ** 3).astype(int) + 1
    return Graph.from_edges(*ends, weights=draw.choice(weights, 4 * num_vertices), directed=False)


def of_store(graph: Graph, folder: Path, **options: Any) -> Graph:
    save_packed(graph, folder, **options)
    return sigps.load(folder)


class Lengths(Vertex, message=float):
    """As SSSP, without parents, from two sources."""

    source: Param[VertexId] = 5
    best: State[float] = inf

    def compute(self, messages):
        received = min(messages, default=inf)
        if self.superstep == 0 and (self.id == self.source or self.id == 2):
            received = 3.0 if self.id == 2 else 0.0
        if received < self.best:
            self.best = received
            for edge in self.out_edges:
                self.send(edge, self.best + edge.weight)
        self.vote_to_halt()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("case", "made"),
    in_turn(
        [
            *((16, "given", [0, 1]), (16, "degree", [1000, 70_000])),
            *((300, "degree", range(1, 256)), (1 << 18, "given", [1000, 70_000])),
        ],
        [SSSP, Lengths],
    ),
    ids=str,
)
def test_lengths_and_parents(case: tuple[int, Any, Any], made: type[Vertex], tmp_path: Path) -> None:
    page_arcs, order, weights = case
    graph = of_store(drawn(list(weights), page_arcs), tmp_path / "store", page_arcs=page_arcs, order=order)
    source = int(graph.ids.to_oids(np.arange(1))[0])
    program = made(source=source)
    expected = sigps.run(program, graph, device="python")
    with pytest.raises(DeviceError) as refusal:
        sigps.run(program, graph, device="cuda", stream="always", device_memory="1KB")
    needed = re.search(r"needs ([\d,]+)", str(refusal.value))
    assert needed is not None
    assert graph.packed is not None
    half = int(needed[1].replace(",", "")) + graph.packed.rows.num_bytes
    bytes_read = []
    for limits in ({}, {"device_memory": half}, {"device_memory": "1GB"}):
        stored = sigps.load(tmp_path / "store")
        found = sigps.run(program, stored, device="cuda", stream="always", asynchronous=True, **limits)
        assert was_at_once(found)
        for field in expected.fields:
            assert found[field].tolist() == expected[field].tolist()
        bytes_read.append(found.stats[-1].bytes_read)
    assert bytes_read[0] > bytes_read[2] == 0
    assert page_arcs > 300 or bytes_read[0] > bytes_read[1] > 0


@pytest.mark.usefixtures("by_itself")
@pytest.mark.parametrize(
    ("weights", "ids"),
    [([0.5, 1.0], 1), ([2.0**52, 2.0**51], 1), ([1.0, 2.0], 1 << 40)],
    ids=["halves", "long", "ids"],
)
def test_what_does_not_fit_a_label_goes_by_supersteps(weights: Any, ids: int, tmp_path: Path) -> None:
    ends = np.arange(40)
    made = Graph.from_edges(ends * ids, (ends + 1) * ids, weights=np.resize(weights, 40), directed=False)
    graph = of_store(made, tmp_path / "store", page_arcs=16)
    expected = sigps.run(SSSP(source=0), graph, device="python")
    found = sigps.run(SSSP(source=0), graph, device="cuda", stream="always")
    assert not was_at_once(found)
    for field in expected.fields:
        assert found[field].tolist() == expected[field].tolist()
    assert sum(s.bytes_read for s in found.stats) > 0
    with pytest.raises(ConfigError, match="a column of whole weights"):
        sigps.run(SSSP(source=0), graph, device="cuda", stream="always", asynchronous=True)


@pytest.mark.usefixtures("by_itself")
def test_a_path_of_more_edges_than_a_label_has_goes_by_supersteps(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        packed_lengths, "choose_page_labels", lambda n, length: fixed_points.PageLabels(8, 5, 1 << 40)
    )
    ends = np.arange(80)
    for edges, is_found in ((31, True), (32, False)):
        made = Graph.from_edges(
            ends[:edges], ends[1 : edges + 1], weights=ends[:edges] % 3 + 1.0, directed=False
        )
        graph = of_store(made, tmp_path / f"store{edges}", page_arcs=16)
        expected = sigps.run(SSSP(source=0), graph, device="python")
        found = sigps.run(SSSP(source=0), graph, device="cuda", stream="always")
        assert was_at_once(found) == is_found
        assert found["parent"].tolist() == expected["parent"].tolist()


@pytest.mark.usefixtures("by_itself")
@pytest.mark.parametrize(
    "options", [{"asynchronous": False}, {"transfer": "bulk"}, {"direction": "pull"}], ids=str
)
def test_who_asks_for_supersteps_gets_them(options: Any, tmp_path: Path) -> None:
    graph = of_store(drawn([1.0, 2.0], 1), tmp_path / "store", page_arcs=64)
    expected = sigps.run(SSSP(source=1), graph, device="python")
    found = sigps.run(SSSP(source=1), graph, device="cuda", stream="always", **options)
    assert not was_at_once(found)
    assert found["parent"].tolist() == expected["parent"].tolist()


@pytest.mark.usefixtures("by_itself")
def test_a_mesh_goes_by_supersteps(tmp_path: Path, monkeypatch: Any) -> None:
    made = sigps.generate("grid", rows=9, columns=9, weights="random", seed=1)
    graph = of_store(made, tmp_path / "store", page_arcs=64)
    expected = sigps.run(SSSP(source=1), graph, device="python")
    for least_edges, is_found in ((1 << 14, True), (0, False)):
        monkeypatch.setattr(fixed_points, "LEAST_EDGES", least_edges)
        found = sigps.run(SSSP(source=1), sigps.load(tmp_path / "store"), device="cuda", stream="always")
        assert was_at_once(found) == is_found
        assert found["parent"].tolist() == expected["parent"].tolist()
    found = sigps.run(SSSP(source=1), graph, device="cuda", stream="always", asynchronous=True)
    assert was_at_once(found)


@pytest.mark.parametrize(
    ("types", "arch"),
    in_turn(
        [("float32", "float32", "int32", "int32"), ("float64", "int64", "int64", "int64")], ["sm_80", "sm_90"]
    ),
    ids=str,
)
def test_it_links(types: Any, arch: str) -> None:
    assert b"send_pages" in link_kernel("packed_lengths", arch, page_path_macros(*types))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("scale", "page_arcs", "order"), [(12, 64, "given"), (16, 1 << 13, "degree"), (16, 1 << 18, "degree")]
)
def test_on_a_gpu(scale: int, page_arcs: int, order: Any, tmp_path: Path) -> None:
    made = sigps.generate("rmat", scale=scale, seed=1, weights="random").undirected(simple=True)
    save_packed(made, tmp_path / "store", page_arcs=page_arcs, order=order)
    program = SSSP(source=int(made.ids.to_oids(made.out_degrees().argsort()[-1:])[0]))
    expected = sigps.run(program, made, device="cpu")
    is_asked: Any = {"asynchronous": True}
    for options in (is_asked, is_asked | {"device_memory": "600MB"}, {"asynchronous": False}):
        for _ in range(3):
            stored = sigps.load(tmp_path / "store")
            found = sigps.run(program, stored, device="cuda", stream="always", **options)
            assert was_at_once(found) == options["asynchronous"]
            for field in expected.fields:
                np.testing.assert_array_equal(
                    np.asarray(found[field]), np.asarray(expected[field]), str(options)
                )
