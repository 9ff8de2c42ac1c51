"""What graphs keep on a GPU makes room for runs that need it."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigps
from sigps.apps import BFS, WCC

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
    assert resident.make_room(10, GPU, besides=partition_of(graphs[0])) == 10
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
    import re

    with pytest.raises(sigps.DeviceError) as caught:
        sigps.run(WCC(), graph, device="cuda", device_memory="1MB", stream="always")
    found = re.search(r"needs ([\d,]+)", str(caught.value))
    assert found is not None
    return int(found[1].replace(",", "")) + 32 * graph.num_vertices
