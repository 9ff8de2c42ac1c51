"""Components found at once on several GPUs: the kernels' text on the host, under the engine, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import host_peers
import numpy as np
import pytest
from battery import BATTERY
from host_kernels import host_kernels
from thread_group import ThreadGroup, run_ranks

from sigps import Graph, Param, Result, State, Vertex, VertexId, generate, run
from sigps.apps import WCC
from sigps.device.linking import link_kernel
from sigps.engine import fixed_points
from sigps.engine.gpu import priority, rank_components
from sigps.engine.gpu.components import component_macros
from sigps.engine.gpu.priority import bucket_macros

pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")


def use_host(monkeypatch: Any, ranks: int, least_edges: int = 0) -> None:
    host_peers.use_host_as_peers(monkeypatch, ranks)
    monkeypatch.setattr(fixed_points, "LEAST_EDGES", least_edges)

    def of_components(gpu: Any, *given: Any) -> Any:
        return host_kernels("rank_components", component_macros(*given))

    def of_buckets(gpu: Any, *given: Any) -> Any:
        return tuple(host_kernels("buckets", bucket_macros(*given)).values())

    monkeypatch.setattr(rank_components, "_kernels", of_components)
    monkeypatch.setattr(priority, "_kernels", of_buckets)


Made = Callable[[ThreadGroup | None], Graph]


def results(program: Vertex, made: Made, ranks: int, **options: Any) -> tuple[Result, Result]:
    """Return what ranks find, and the interpreter."""
    found = run_ranks(ranks, lambda group: run(program, made(group), device="cuda", transport="peer", **options))
    return found[0], run(program, made(None), device="python")


def assert_at_once(found: Result, judge: Result, field: str, begin: Any) -> None:
    assert found[field].tolist() == judge[field].tolist()
    assert [s.direction for s in found.stats][1:] == ["at once"]
    last = found.stats[-1]
    assert last.superstep == 1
    assert last.messages == judge.stats[0].messages  # all edges were passed
    assert last.active == (judge[field] != begin).sum()


def drawn(seed: int, num_vertices: int, num_edges: int) -> Made:
    draw = np.random.default_rng(seed)
    ends = draw.permutation(10 * num_vertices)[draw.integers(0, num_vertices, (2, num_edges))]
    return lambda group: Graph.from_edges(*ends, vertices=[7], directed=seed % 2 == 0, group=group)


def method(name: str, ranks: int) -> Any:
    return {"last": lambda graph, group: None}.get(name, name)


@pytest.mark.parametrize("partitioner", ["edges", "hash", "vertices"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("num_edges", [40, 110, 600])
def test_drawn_graphs(num_edges: int, ranks: int, partitioner: str, monkeypatch: Any) -> None:
    use_host(monkeypatch, ranks)
    found, judge = results(WCC(), drawn(num_edges + ranks, 200, num_edges), ranks, partitioner=partitioner)
    assert_at_once(found, judge, "component", judge.ids)
