"""Edges that stay on a GPU's host: which, and that every program runs on them as on edges in memory."""

from __future__ import annotations

from typing import Any

import host_gpu
import numpy as np
import pytest
from battery import BATTERY

import sigps
from sigps.apps import BFS, SSSP, PageRank
from sigps.engine.gpu import placement
from sigps.engine.gpu.spilling import Spilling, choose_spilling
from sigps.errors import ConfigError, DeviceError

COUNTS: dict[str, Any] = {
    "num_vertices": 1 << 20,
    "num_edges": 1 << 24,
    "num_columns": 0,
    "run_bytes": 1 << 27,
}


@pytest.mark.parametrize(
    ("stream", "free", "is_limited", "expected"),
    [
        ("auto", 1 << 30, False, None),  # 5 bytes an edge, 64 a vertex and the run fit
        ("auto", 400 << 20, True, None),  # laid out a piece at a time
        ("auto", 232 << 20, True, 0.5),
        ("never", 1 << 20, True, None),
        ("always", 1 << 30, False, 0.0),
        ("always", 232 << 20, True, 0.5),
    ],
)
def test_what_is_left_of_the_memory_holds_edges(
    stream: Any, free: int, is_limited: bool, expected: float | None
) -> None:
    found = choose_spilling(stream, free=free, is_limited=is_limited, **COUNTS)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.share == pytest.approx(expected, abs=0.01)


def test_what_has_to_be_on_the_device_is_refused_by_its_bytes() -> None:
    with pytest.raises(DeviceError, match=r"201,326,592 even with its edges on the host"):
        choose_spilling("auto", free=1 << 27, is_limited=True, **COUNTS)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_other_devices_have_no_such_limit(device: str) -> None:
    graph = sigps.Graph.from_edges([0], [1])
    with pytest.raises(ConfigError, match="host_memory"):
        sigps.run(BFS(source=0), graph, device=device, device_memory="1GB")  # type: ignore[arg-type]


@pytest.mark.parametrize("graph", ["skewed", "weight_ties"])
@pytest.mark.parametrize("program", [PageRank(iterations=3), BFS(source=0), SSSP(source=0)])
def test_pieces_come_to_their_positions(
    program: sigps.Vertex, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = BATTERY[graph]
    expected = sigps.run(program, sample.build(), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(placement, "choose_spilling", lambda *_, **__: Spilling(0.5, 1))
    found = sigps.run(program, sample.build(), device="cuda", stream="always")
    assert found.device == "cuda"
    for field in expected.fields:
        np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-12)


def test_what_fits_stays_on_the_device_for_later_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = BATTERY["skewed"].build()
    expected = sigps.run(BFS(source=0), graph, device="python")["level"]
    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(placement, "_MANY", 1 << 60)  # so that it is asked
    chosen: list[Spilling | None] = []

    def choose(*args: Any, **options: Any) -> Spilling | None:
        chosen.append(choose_spilling(*args, **options))
        return chosen[-1]

    monkeypatch.setattr(placement, "choose_spilling", choose)
    for _ in range(2):
        found = sigps.run(BFS(source=0), graph, device="cuda")
        np.testing.assert_array_equal(found["level"], expected)
    assert chosen == [None]  # the second run finds it there


@pytest.mark.gpu
@pytest.mark.parametrize("limit", ["90MB", "110MB", None])
@pytest.mark.parametrize("program", [PageRank(iterations=5), BFS(source=0), SSSP(source=0)])
def test_runs_stay_within_their_limit(program: sigps.Vertex, limit: str | None) -> None:
    import cupy

    graph = sigps.generate("rmat", scale=17, weights="random", seed=3)
    expected = sigps.run(program, graph, device="cpu")
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.used_bytes()
    found = sigps.run(program, graph, device="cuda", stream="always", device_memory=limit)
    if limit is not None:
        assert pool.total_bytes() - before <= int(limit[:-2]) * 10**6
    for field in expected.fields:
        np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-9)
    assert pool.used_bytes() > before  # the graph is kept, within the next run's limit too
    sigps.run(program, graph, device="cuda", stream="always", device_memory=limit)
