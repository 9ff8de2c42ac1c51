"""Supersteps with few messages, which one cluster of blocks does by itself: the same results, and the same course."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from equality_programs import PROGRAMS, Reach
from gpu_ways import assert_as_judged, assert_same_in_leases
from ways import Way

from sigps import Aggregator, Graph, Param, State, Vertex, run
from sigps.apps import BFS, SSSP, WCC
from sigps.device.cuda import Module, find_gpu
from sigps.engine.gpu import variant as gpu_variant
from sigps.engine.gpu.launch import CLUSTER_DEGREE, NO_CLUSTER, Cluster, choose_cluster
from sigps.kernels.cuda.lease import SMALL_BEFORE_SWITCH

pytestmark = pytest.mark.gpu

WAYS = [Way(device="cuda", direction=direction) for direction in ("auto", "push")]


@pytest.fixture(autouse=True)
def _clusters(_gpu: None) -> None:
    gpu = find_gpu()
    if choose_cluster(gpu.arch) == NO_CLUSTER:
        pytest.skip(f"the blocks of a {gpu.name} cannot meet in clusters")


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Name each kernel that is launched."""
    launched: list[str] = []

    def told(launch: Any, name: str) -> Any:
        def launch_and_tell(*args: Any, **options: Any) -> None:
            launched.append(name)
            launch(*args, **options)

        return launch_and_tell

    class Watched(Module):
        def kernel(self, name: str) -> Any:
            kernel = super().kernel(name)
            for way in ("launch", "launch_cluster"):
                setattr(kernel, way, told(getattr(kernel, way), name))
            return kernel

    monkeypatch.setattr(gpu_variant, "Module", Watched)
    gpu_variant.load_variant.cache_clear()
    yield launched  # type: ignore[misc]
    gpu_variant.load_variant.cache_clear()


def cluster_of(
    monkeypatch: pytest.MonkeyPatch, most_messages: int, threads: int = 512, blocks: int = 16, places: int = 0
) -> None:
    """Let a cluster do supersteps of up to so many messages."""
    monkeypatch.setattr(
        gpu_variant,
        "choose_cluster",
        lambda arch: Cluster(blocks, threads, most_messages, places or most_messages),
    )
    gpu_variant.load_variant.cache_clear()


FAN = 60


def layers(sizes: list[int]) -> Graph:
    """Layers of so many vertices, each with edges to up to `FAN` of the next, which are all reached."""
    begins = np.cumsum([0, *sizes])
    pairs = []
    for a, b, c in zip(begins, begins[1:], begins[2:], strict=False):
        fan = min(FAN, c - b)
        sources = np.repeat(np.arange(a, b), fan)
        pairs.append((sources, b + ((sources - a) * fan + np.tile(np.arange(fan), b - a)) % (c - b)))
    sources, targets = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return Graph.from_edges(sources, targets, 1.0 + (sources * 3 + targets) % 7)


def mesh(width: int, length: int) -> Graph:
    """A strip of squares; weights that make shorter ways of more edges."""
    ids = np.arange(width * length).reshape(length, width)
    sources = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    targets = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
    return Graph.from_edges(sources, targets, 1.0 + (sources * 7 + targets) % 5, directed=False)


class Wave(Vertex, message=int):
    """A vertex that is reached counts itself, and sends how many were reached before it."""

    start: Param[int]
    reached: State[int] = -1
    known: State[int] = 0
    now = Aggregator.sum(int)
    ever = Aggregator.sum(int, persistent=True)
    highest = Aggregator.max(int)

    def compute(self, messages):
        heard = sum(messages)
        is_first = self.superstep == 0 and self.id == self.start
        if is_first or (heard > 0 and self.reached < 0):
            self.reached = self.superstep
            self.known = self.ever + 1000 * self.now + self.highest
            self.now += 1
            self.ever += 1
            self.highest += self.id
            self.send_to_neighbors(1 + heard % 5)
        self.vote_to_halt()


SIZES = [1] * 12 + [40, 40] + [2] * 14 + [60, 900, 20] + [3] * 11 + [60] * 4 + [1] * 30
ON_LAYERS: dict[str, Vertex] = {
    "bfs": BFS(source=0),
    "sssp": SSSP(source=0),
    "reach": Reach(start=0),
    "wave": Wave(start=0),
    "wcc": WCC(),
    "climb": PROGRAMS["climb"],  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", ON_LAYERS)
@pytest.mark.parametrize("most_messages", [1, 9, 90, 2000])
def test_small_supersteps_between_large_ones(
    name: str, most_messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_of(monkeypatch, most_messages)
    assert_as_judged(ON_LAYERS[name], layers(SIZES), judge="cpu", ways=WAYS)


def test_both_have_their_turn(turns: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cluster_of(monkeypatch, 9)
    result = run(BFS(source=0), layers(SIZES), device="cuda")
    assert result.supersteps == len(SIZES)
    np.testing.assert_array_equal(result["level"], np.repeat(np.arange(len(SIZES)), SIZES))
    others = [b for a, b in zip([None, *turns], turns, strict=False) if a != b]
    assert others[:2] == ["run_lease", "run_small_frontier"]
    assert others.count("run_small_frontier") >= 3


def test_few_large_supersteps_are_no_turn(turns: list[str]) -> None:
    run(BFS(source=0), layers([1] * (SMALL_BEFORE_SWITCH - 2)), device="cuda")
    assert turns == ["run_lease"]


def test_without_clusters(turns: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_variant, "choose_cluster", lambda arch: NO_CLUSTER)
    gpu_variant.load_variant.cache_clear()
    assert_as_judged(BFS(source=0), layers(SIZES), judge="cpu", ways=WAYS)
    assert set(turns) == {"run_lease"}


@pytest.mark.parametrize("program", [BFS(source=0), SSSP(source=0), Wave(start=5)])
def test_meshes(program: Vertex) -> None:
    for graph in (mesh(7, 300), mesh(100, 100)):
        assert_as_judged(program, graph, judge="cpu", ways=WAYS, max_supersteps=10_000)


@pytest.mark.parametrize(("threads", "blocks"), [(32, 16), (96, 8), (1024, 2), (256, 1)])
def test_clusters_of_other_sizes(threads: int, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster_of(monkeypatch, 1 << 14, threads, blocks)
    for program in (BFS(source=0), SSSP(source=0), Wave(start=0)):
        assert_as_judged(program, layers(SIZES), judge="cpu", ways=WAYS)


def test_none_where_a_vertex_has_many_edges(turns: list[str]) -> None:
    chain = np.arange(100)
    star = np.full(CLUSTER_DEGREE, 100)
    sources, targets = np.append(chain, star), np.append(chain + 1, 101 + np.arange(CLUSTER_DEGREE))
    for extra, kernels in ((0, {"run_lease", "run_small_frontier"}), (1, {"run_lease"})):
        turns.clear()
        graph = Graph.from_edges(np.append(sources, [100] * extra), np.append(targets, [7] * extra))
        assert_as_judged(BFS(source=0), graph, judge="cpu", ways=WAYS)
        assert set(turns) == kernels


class Linger(Vertex, message=int):
    """A vertex that is reached sends at once, and stays active for a while that depends on its id."""

    left: State[int] = -1
    heard: State[int] = 0

    def compute(self, messages):
        is_first = self.superstep == 0 and self.id == 0
        got = sum(messages)
        if (got > 0 or is_first) and self.left < 0:
            self.left = 3 if self.id % 31 == 5 else 0
            self.send_to_neighbors(1 + got % 3)
        elif self.left > 0:
            self.left -= 1
        self.heard += got
        if self.left <= 0:
            self.vote_to_halt()


def test_others_are_active_while_messages_are_delivered(turns: list[str]) -> None:
    for graph in (layers(SIZES), mesh(3, 200)):
        assert_as_judged(Linger(), graph, judge="python", ways=WAYS)
    assert set(turns) == {"run_lease", "run_small_frontier"}


@pytest.mark.parametrize("size", [1, 5, 13])
def test_in_several_leases(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in (BFS(source=0), Wave(start=0)):
        assert_same_in_leases(program, layers(SIZES), size, monkeypatch, direction="push")
