"""Programs that send direct messages, walk their edges or read no messages, beside a packed store."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
import send_programs
import vector_programs
from battery import BATTERY
from edge_programs import Marks
from packed_runs import on_ranks
from turns import in_turn
from walk_programs import ALONG_NO_EDGES, UNREAD, WALKS, Around

import sigps
from sigps.apps import BipartiteMatching, Blocks, Node2vecWalks, TriDN
from sigps.compiler.cuda.compile import compile_for_cuda, macros_of
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu import direct_messages
from sigps.engine.gpu.memory_plan import Sizes, plan_run
from sigps.engine.gpu.packed_plan import bytes_beside_packed
from sigps.errors import ConfigError, DeviceError
from sigps.graph.formats.packed_store import save_packed


@pytest.mark.parametrize(
    ("program", "order"),
    in_turn(ALONG_NO_EDGES, ["given", "degree"]),
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_programs_along_no_edges_need_no_page(
    program: sigps.Vertex, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a directed graph, whose ids are any numbers."""
    for directed in (True, False):
        made, folder = BATTERY["skewed"].build(), tmp_path / f"store {directed}"
        save_packed(made if directed else made.undirected(), folder, order=order, page_arcs=8)
        expected = sigps.run(program, sigps.load(folder), device="python")
        with monkeypatch.context() as patched:
            host_gpu.use_host_as_gpu(patched)
            ranks = 1 + (directed == (order == "given"))
            found = on_ranks(ranks, program, folder, stream="always")
            assert not any(s.bytes_read for s in found.stats)
            for field in expected.fields:
                np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]))


@pytest.mark.parametrize(("name", "room"), in_turn(["Flood", "FloodSum"], [100_000, 0]))
def test_messages_that_the_gpu_has_no_memory_for_lie_on_its_host(
    name: str, room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(BATTERY["skewed"].build(), tmp_path / "store", page_arcs=8)
    program = getattr(send_programs, name)(copies=60)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(direct_messages, "fits", lambda num_bytes: False)
    monkeypatch.setattr(direct_messages, "free_bytes", lambda wanted: direct_messages._BESIDE + room)
    monkeypatch.setattr(direct_messages, "_AT_ONCE", 1000)
    on_host = []

    class Spilled(host_gpu._Spilled):
        def __init__(self, num_bytes: int, on_device: int) -> None:
            super().__init__(num_bytes, on_device)
            on_host.append(self.on_host)

    monkeypatch.setattr(direct_messages, "Spilled", Spilled)
    for ranks in (1, 2):
        on_host.clear()
        found = on_ranks(ranks, program, tmp_path / "store", stream="always")
        assert len(on_host) >= 3
        assert all(num_bytes > 0 for num_bytes in on_host)
        for field in expected.fields:
            np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]))
    with pytest.raises(DeviceError, match=r"direct messages of superstep 0 take [\d,]+ bytes; the GPU has"):
        on_ranks(1, program, tmp_path / "store", stream="always", host_memory="20KB")


def test_messages_that_grow_lie_on_the_host_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(BATTERY["skewed"].build(), tmp_path / "store", page_arcs=8)
    program = send_programs.Flood(copies=60)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(direct_messages, "fits", lambda num_bytes: False)
    monkeypatch.setattr(direct_messages, "free_bytes", lambda wanted: direct_messages._BESIDE)
    kind = direct_messages.DirectMessages
    take, host_room, taken = kind._taken, 1 << 30, [0]

    def noted(self: Any, count: int, what: str) -> Any:
        self.host_room = host_room
        found = take(self, count, what)
        taken.append(sum(array.nbytes for array in found.values()))
        return found

    monkeypatch.setattr(kind, "_taken", noted)
    monkeypatch.setattr(kind, "wanted_capacity", lambda self: 2 * self.capacity)
    found = on_ranks(1, program, tmp_path / "store", stream="always")
    most = max(before + after for before, after in itertools.pairwise(taken))
    assert most > max(taken)
    for host_room in (most, most - 1):
        if host_room < most:
            with pytest.raises(DeviceError, match="the GPU has 0 for them, and its host"):
                on_ranks(1, program, tmp_path / "store", stream="always")
        else:
            found = on_ranks(1, program, tmp_path / "store", stream="always")
    for field in expected.fields:
        np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]))


def test_what_walks_edges_and_cannot_stream_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = BATTERY["skewed"].build()
    save_packed(made, tmp_path / "directed", page_arcs=8)
    for order in ("given", "degree"):
        kind: Any = order
        save_packed(made.undirected(simple=True), tmp_path / order, order=kind, page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)

    def refused(match: str, program: sigps.Vertex, store: str, **options: Any) -> None:
        given: dict[str, Any] = {"device": "cuda", "stream": "always", "transfer": "bulk"} | options
        with pytest.raises(ConfigError, match=match):
            sigps.run(program, sigps.load(tmp_path / store), **given)

    refused("the store of a directed graph has in-edges", Around(), "directed")
    refused("of Around walks, in the order of edges, and the rows of .* are by degree", Around(), "degree")
    refused("looks through rows of neighbours, which are in memory", TriDN(), "given")
    refused("keeps values on edges, and sends what goes along them as a record", Marks(), "given")
    refused("or compute.. walks edges, are pulled", Around(), "given", direction="push")
    refused("packed edges are read vertex by vertex", Around(), "given", schedule="edge")


def test_the_plan_has_direct_messages_and_no_pages(tmp_path: Path) -> None:
    made = sigps.generate("rmat", scale=17, edge_factor=4, seed=1, directed=False)
    save_packed(made, tmp_path / "store", order="given")
    graph = sigps.load(tmp_path / "store")
    assert graph.packed is not None
    n = graph.num_vertices
    for program in (send_programs.Flood(), send_programs.FloodSum(), Around(), vector_programs.Throws()):
        derived = analyse(program, "double")
        defines = macros_of(derived, graph.column_types(), narrow_ids=True)
        planned = bytes_beside_packed(
            derived, defines, graph.packed.rows, n, pushes=False, has_heads=False, num_blocks=132
        )
        compiled = compile_for_cuda(derived, graph.column_types(), narrow_ids=True, arch="sm_90")
        plans = [plan_run(compiled, Sizes(count, 0, 0, pulls_alone=True)) for count in (n, 0)]
        by_vertex = plans[0].nbytes + plans[0].state_bytes - plans[1].nbytes - plans[1].state_bytes
        assert planned["state"] + planned.get("messages", 0) == pytest.approx(by_vertex, rel=0.1)
        assert ("unpacking" in planned) == derived.reads_edges
        if derived.reads_edges:
            most = 2 * 132 * max(1 << 18, graph.num_edges // 8) * 20
            assert 132 * (1 << 18) * 12 <= planned["walks"] <= most


def _with_a_hub(scale: int) -> sigps.Graph:
    """Return a graph with a row that spans pages, and one that is a block's in its page."""
    made = sigps.generate("rmat", scale=scale, seed=3)
    rows, hub = made.in_edges(), np.arange(40_000) % made.num_vertices
    ends = np.repeat(np.arange(made.num_vertices), np.diff(rows.offsets).astype(np.int64))
    sources, targets = np.append(rows.sources, hub), np.append(ends, np.full(hub.size, 77))
    weights = ((sources * 7 + targets * 3) % 9 + 1) * 0.5
    graph = sigps.Graph.from_edges(sources, targets, weights=weights)
    return graph.undirected(simple=True)


@pytest.mark.gpu
@pytest.mark.parametrize("page_arcs", [64, 1 << 12, 1 << 18])
@pytest.mark.parametrize("name", [*WALKS, *UNREAD, "blocks"])
def test_walks_on_a_gpu_are_those_of_cpu_cores(name: str, page_arcs: int, tmp_path: Path) -> None:
    program, made = (WALKS | UNREAD).get(name, Blocks()), _with_a_hub(15 if page_arcs > 64 else 11)
    save_packed(made, tmp_path / "store", order="given", page_arcs=page_arcs)
    expected = sigps.run(program, made, device="cpu", max_supersteps=40)
    several: list[dict[str, Any]] = [{}, {"host_memory": "1GB"}, {"device_memory": "6GB"}]
    if page_arcs < 1 << 18:
        several.append({"host_memory": "700KB" if page_arcs == 64 else "1MB"})
    for more in several:
        stored = sigps.load(tmp_path / "store")
        found = sigps.run(program, stored, device="cuda", stream="always", max_supersteps=40, **more)
        assert not stored.is_laid_out
        assert [s.messages for s in found.stats] == [s.messages for s in expected.stats]
        for field in expected.fields:
            mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, err_msg=f"{field} {more}")


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("program", ALONG_NO_EDGES, ids=lambda program: type(program).__name__)
def test_programs_along_no_edges_on_a_gpu(program: sigps.Vertex, order: Any, tmp_path: Path) -> None:
    save_packed(sigps.generate("rmat", scale=13, seed=3), tmp_path / "store", order=order)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(program, graph, device="cpu")
    stored = sigps.load(tmp_path / "store")
    found = sigps.run(program, stored, device="cuda", stream="always")
    assert not stored.is_laid_out
    assert not any(s.bytes_read for s in found.stats)
    for field in expected.fields:
        np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["Flood", "FloodSum"])
def test_messages_outgrow_a_gpu(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """13 M messages of 29 bytes beside 200 MB of the GPU: some of their arrays lie on its host."""
    save_packed(sigps.generate("rmat", scale=16, seed=3), tmp_path / "store")
    stored, program = sigps.load(tmp_path / "store"), getattr(send_programs, name)(copies=200)
    expected = sigps.run(program, stored, device="cpu")
    on_host = []

    class Spilled(direct_messages.Spilled):
        def __init__(self, num_bytes: int, on_device: int) -> None:
            super().__init__(num_bytes, on_device)
            on_host.append(self.on_host)

    monkeypatch.setattr(direct_messages, "Spilled", Spilled)
    limit = 200_000_000
    found = sigps.run(program, stored, device="cuda", stream="always", device_memory=limit)
    assert sum(on_host) > 100_000_000
    for field in expected.fields:
        np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]))


@pytest.mark.gpu
def test_matchings_and_walks_of_apps_on_a_gpu(tmp_path: Path) -> None:
    made = _with_a_hub(13)
    save_packed(made, tmp_path / "store", order="given", page_arcs=1 << 12)
    for program in (Node2vecWalks(), BipartiteMatching()):
        stored = sigps.load(tmp_path / "store")
        expected = sigps.run(program, made, device="cpu", max_supersteps=20, seed=1)
        found = sigps.run(program, stored, device="cuda", stream="always", max_supersteps=20, seed=1)
        for field in expected.fields:
            np.testing.assert_array_equal(
                np.asarray(found[field]), np.asarray(expected[field]), err_msg=field
            )
