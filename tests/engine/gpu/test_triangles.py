"""Neighbours, and links among them, counted on a GPU: against counting pair by pair, NetworkX, and the CPU."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import as_networkx, by_id
from battery import BATTERY, Sample
from gpu_ways import rows_of_every_kind
from graphs import samples
from hypothesis import HealthCheck, given, settings
from neighbor_measures import Around, counted, run_on
from ways import Way

import sigps
from sigps import Graph, Result, State, Vertex, neighbor_links, run
from sigps.apps import LCC, Triangles
from sigps.device.cuda import free_bytes
from sigps.engine.gpu import triangles as gpu_triangles
from sigps.engine.gpu.simple_rows import Counting
from sigps.errors import DeviceError

pytestmark = pytest.mark.gpu

SCHEDULES = [
    Counting(),
    Counting(lanes=32, loads=1, threads=1024, blocks_per_sm=1),
    Counting(lanes=4, loads=2, bitmap=64, keys=5, chunk=7, block_mapped=3),
    Counting(bitmap=32, keys=64, chunk=16, block_mapped=1),
    Counting(block_mapped=1 << 30),
]
"""As it is used; with the largest blocks; with numbers beyond the bitmap and vertices cut in both ways; blocks for
all; warps for all."""

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def assert_counted(result: Result, sample: Sample) -> None:
    assert result.device == "cuda"
    near, links = by_id(result, "near"), by_id(result, "links")
    assert {v: (near[v], links[v]) for v in near} == counted(sample)


@pytest.mark.parametrize("name", [name for name in BATTERY if name != "empty"])
def test_the_battery(name: str) -> None:
    result = run(Around(), BATTERY[name].build(), device="cuda")
    assert_counted(result, BATTERY[name])
    assert set(result["steps"].tolist()) <= {6}


@given(samples())
@FEW
def test_random_graphs(sample: Sample) -> None:
    assert_counted(run(Around(), sample.build(), device="cuda"), sample)


@pytest.mark.parametrize("name", ["skewed", "grid", "complete_5", "parallel_edges_undirected"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_several_ranks_share_the_work(name: str, ranks: int) -> None:
    assert_counted(run_on(Way(ranks, device="cuda"), Around(), BATTERY[name]), BATTERY[name])


def rmat(directed: bool) -> Graph:
    """Loops, parallel edges, arcs both ways, and hubs."""
    draw = np.random.default_rng(3)
    sources, targets = ((3000 * draw.random(60_000) ** 2).astype(int) for _ in range(2))
    return Graph.from_edges(sources, targets, directed=directed, vertices=range(3100))


def complete(num_vertices: int, directed: bool) -> Graph:
    """Every pair, the lower to the higher."""
    sources, targets = np.triu_indices(num_vertices, 1)
    return Graph.from_edges(sources, targets, directed=directed)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("counting", SCHEDULES, ids=str)
@pytest.mark.parametrize("make", [rmat, rows_of_every_kind])
def test_all_schedules_agree_with_the_cpu(
    make: Any, counting: Counting, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_triangles, "Counting", lambda: counting)
    expected, found = (run(Around(), make(directed), device=device) for device in ("cpu", "cuda"))
    assert found.device == "cuda"
    for field in ("near", "links"):
        np.testing.assert_array_equal(found[field], expected[field])


@pytest.mark.parametrize("directed", [False, True])
def test_more_lower_neighbours_than_a_task_takes(directed: bool) -> None:
    n = Counting().keys + 300
    result = run(Around(), complete(n, directed), device="cuda")
    assert set(result["near"].tolist()) == {n - 1}
    assert set(result["links"].tolist()) == {(n - 1) * (n - 2) // (2 if directed else 1)}


@pytest.mark.parametrize("name", ["skewed", "grid", "hub_on_a_partition_border"])
def test_triangles_are_those_of_networkx(name: str) -> None:
    result = run(Triangles(), BATTERY[name].build(), device="cuda")
    simple = nx.Graph(as_networkx(BATTERY[name]))
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    expected = nx.triangles(simple)
    assert by_id(result, "triangles") == expected
    assert result.aggregators["corners"] == sum(expected.values())


def test_a_hub_of_sources_is_none_of_targets() -> None:
    """A vertex with a hundred thousand out-edges and no in-edge has a high degree all the same."""
    n = 100_000
    graph = Graph.from_edges(np.zeros(n, dtype=int), np.arange(1, n + 1), directed=True)
    result = run(Around(), graph, device="cuda")
    assert result["near"].tolist() == [n] + [1] * n
    assert not result["links"].any()


class _Heard(Vertex, message=int):
    """Reads messages one by one, so that edges lie in the order of ids."""

    links: State[int] = neighbor_links
    heard: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.heard = (self.heard * 3 + m) % 1_000_003
        if self.superstep == 0:
            self.send_to_neighbors(1)
        self.vote_to_halt()


@pytest.mark.parametrize("name", ["skewed", "complete_5"])
def test_edges_in_the_order_of_ids(name: str) -> None:
    found = by_id(run(_Heard(), BATTERY[name].build(directed=False), device="cuda"), "links")
    sample = BATTERY[name]
    undirected = Sample(sample.sources, sample.targets, directed=False, vertices=sample.vertices)
    assert found == {v: links for v, (_, links) in counted(undirected).items()}


def test_a_graph_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = BATTERY["skewed"].build()
    first = run(Around(), graph, device="cuda")
    monkeypatch.setattr(gpu_triangles, "simple_rows", None)
    again = run(LCC(), graph, device="cuda")
    np.testing.assert_array_equal(again["links"], first["links"])
    with pytest.raises(TypeError):
        run(Around(), BATTERY["skewed"].build(), device="cuda")


@pytest.mark.parametrize(
    ("name", "directed"),
    [("bytes_while_copied", False), ("bytes_while_counted", False), ("bytes_while_counted", True)],
)
def test_what_does_not_fit_is_refused(name: str, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = rmat(directed)
    run(Around(), sigps.generate("rmat", scale=4), device="cuda")
    monkeypatch.setattr(gpu_triangles, name, lambda *_: free_bytes() + 2**40)
    with pytest.raises(DeviceError, match=r"bytes free and this run needs .* for counting links"):
        run(Around(), graph, device="cuda")
