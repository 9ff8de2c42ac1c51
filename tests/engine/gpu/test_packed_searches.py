"""Searches of directed graphs over packed edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from packed_runs import directed_graph, on_ranks
from turns import in_turn

import sigps
from sigps.apps import BFS, SSSP
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.contract import RunOptions
from sigps.graph.formats.packed_store import save_packed
from sigps.job import streaming

DIRECTED = [BFS(source=0), SSSP(source=0)]


@pytest.mark.parametrize(
    ("program", "order"),
    in_turn(DIRECTED, ["given", "degree"]),
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_searches_of_directed_graphs_stay_packed(
    program: sigps.Vertex, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    save_packed(directed_graph(6), folders, order=order, page_arcs=8)
    expected = sigps.run(program, sigps.load(folders), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    for ranks, more in (
        (1, {"host_memory": "1GB"}),
        (1, {"host_memory": "4KB"}),
        (1, {"transfer": "bulk"}),
        (2, {}),
    ):
        found = on_ranks(ranks, program, folders, stream="always", **more)
        assert sum(s.bytes_read for s in found.stats) > 0
        for field in expected.fields:
            np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]), str(more))


def test_searches_of_directed_graphs_stay_packed_where_the_host_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(directed_graph(6), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(BFS(source=0), graph, device="python")
    for room, stays in ((20_000, True), (1 << 40, False)):
        monkeypatch.setattr(streaming, "available_memory", lambda room=room: room)
        stored = sigps.load(tmp_path / "store")
        if stays:
            found = sigps.run(BFS(source=0), stored, device="cuda", stream="always")
            assert not stored.is_laid_out
            np.testing.assert_array_equal(found["level"], expected["level"])
        else:
            given = BFS(source=0), analyse(BFS(source=0), "double"), stored, RunOptions(stream="always"), 1
            assert "searches a directed graph" in streaming._obstacle_to_packed(*given)


@pytest.mark.gpu
@pytest.mark.parametrize(("order", "scale", "page_arcs"), [("given", 12, 64), ("degree", 16, 1 << 13)])
@pytest.mark.parametrize("program", DIRECTED, ids=lambda program: type(program).__name__)
def test_searches_of_directed_graphs_stay_packed_on_a_gpu(
    program: sigps.Vertex, order: Any, scale: int, page_arcs: int, tmp_path: Path
) -> None:
    made = directed_graph(scale)
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    save_packed(made, folders, order=order, page_arcs=page_arcs)
    graph = sigps.load(folders)
    assert graph.packed is not None
    expected = sigps.run(program, graph, device="cpu")
    room = 400_000 if page_arcs > 64 else 8_000
    assert room < graph.packed.rows.num_bytes
    for more in (
        {"host_memory": "1GB"},
        {"host_memory": "1GB", "device_memory": "40MB" if page_arcs == 64 else "600MB"},
        {"host_memory": room},
        {"transfer": "bulk"},
    ):
        stored = sigps.load(folders)
        found = sigps.run(program, stored, device="cuda", stream="always", **more)
        assert not stored.is_laid_out
        for field in expected.fields:
            mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
            np.testing.assert_array_equal(mine, theirs, f"{field} {more}")
