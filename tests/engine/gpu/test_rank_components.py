"""Components at once on several GPUs: the kernels' text on the host, under the engine, against the interpreter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import host_peers
import numpy as np
import pytest
from battery import BATTERY
from host_kernels import host_kernels
from thread_group import ThreadGroup, run_ranks
from turns import in_turn, some_of

from sigps import Graph, Result, State, Vertex, VertexId, generate, run
from sigps.apps import WCC
from sigps.device.linking import link_kernel
from sigps.engine import fixed_points
from sigps.engine.gpu import numbering, priority, rank_components
from sigps.engine.gpu.components import component_macros
from sigps.engine.gpu.priority import bucket_macros

pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")


def use_host(monkeypatch: Any, ranks: int, least_edges: int = 0) -> None:
    host_peers.use_host_as_peers(monkeypatch, ranks)
    monkeypatch.setattr(fixed_points, "LEAST_EDGES", least_edges)

    def of_components(gpu: Any, *given: Any) -> Any:
        return host_kernels("rank_components", component_macros(*given))

    def of_buckets(gpu: Any, *given: Any) -> Any:
        kernels = host_kernels("buckets", bucket_macros(*given))
        return kernels["find_best_warp_mapped"], kernels["release_warp_mapped"]

    monkeypatch.setattr(rank_components, "_kernels", of_components)
    monkeypatch.setattr(priority, "_kernels", of_buckets)


Made = Callable[[ThreadGroup | None], Graph]


def results(program: Vertex, made: Made, ranks: int, **options: Any) -> tuple[Result, Result]:
    """Return what ranks find, and the interpreter."""
    found = run_ranks(
        ranks, lambda group: run(program, made(group), device="cuda", transport="peer", **options)
    )
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


@pytest.mark.parametrize(
    ("ranks", "num_edges", "partitioner"),
    some_of(
        [
            *((2, 40, "edges"), (3, 40, "hash"), (4, 110, "edges"), (4, 40, "vertices")),
            *((3, 110, "vertices"), (2, 110, "hash"), (2, 600, "vertices"), (3, 600, "edges")),
            (4, 600, "hash"),
        ],
        5,
    ),
)
def test_drawn_graphs(num_edges: int, ranks: int, partitioner: str, monkeypatch: Any) -> None:
    use_host(monkeypatch, ranks)
    found, judge = results(WCC(), drawn(num_edges + ranks, 200, num_edges), ranks, partitioner=partitioner)
    assert_at_once(found, judge, "component", judge.ids)


@pytest.mark.parametrize("least_edges", [0, 1 << 20])
def test_ghosts_that_are_read_often_and_others(least_edges: int, monkeypatch: Any) -> None:
    use_host(monkeypatch, 3, least_edges)
    few_hot = functools.partial(numbering.number_ghosts, most_hot=96)
    monkeypatch.setattr(numbering, "number_ghosts", few_hot)
    found, judge = results(WCC(), drawn(11, 200, 300), 3, partitioner="hash")
    assert found["component"].tolist() == judge["component"].tolist()
    assert ("at once" in [s.direction for s in found.stats]) == (least_edges == 0)


class Greatest(Vertex, message=VertexId, directed=False):
    """The greatest id of each component."""

    greatest: State[VertexId] = -1

    def compute(self, messages):
        received = self.id if self.superstep == 0 else max(messages, default=self.greatest)
        if self.superstep == 0 or received > self.greatest:
            self.greatest = received
            self.send_to_neighbors(received)
        self.vote_to_halt()


class Downstream(Vertex, message=VertexId):
    """The least id from which a directed path leads here."""

    least: State[VertexId] = -1

    def compute(self, messages):
        received = self.id if self.superstep == 0 else min(messages, default=self.least)
        if self.superstep == 0 or received < self.least:
            self.least = received
            self.send_to_neighbors(received)
        self.vote_to_halt()


@pytest.mark.parametrize(("num_edges", "precision"), [(60, "single"), (400, "double")])
def test_greatest_ids(num_edges: int, precision: Any, monkeypatch: Any) -> None:
    """Some are below 0, and do not fit 32 bits."""
    use_host(monkeypatch, 3)
    ends = np.random.default_rng(num_edges).integers(-75, 75, (2, num_edges)) * 10**9
    made: Made = lambda group: Graph.from_edges(*ends, directed=False, group=group)  # noqa: E731
    found, judge = results(Greatest(), made, 3, partitioner="hash", precision=precision)
    assert_at_once(found, judge, "greatest", judge.ids)


def path_in_turn(group: ThreadGroup | None) -> Graph:
    """Neighbours are mostly on different ranks, so that a component is made of as many trees as it has vertices."""
    order = np.random.default_rng(3).permutation(300)
    return Graph.from_edges(order[:-1], order[1:], directed=False, group=group)


def two_stars(group: ThreadGroup | None) -> Graph:
    """Two hubs whose leaves know them alone; those of one hub are ends of more edges than a warp takes."""
    hub, leaves = np.repeat([0, 1], [2500, 2400]), np.arange(2, 4902)
    return Graph.from_edges(hub, leaves, directed=False, group=group)


def cliques(group: ThreadGroup | None) -> Graph:
    """Ten parts of 40 vertices, each of which has more edges than a thread takes."""
    ends = np.stack(np.triu_indices(40, 1))
    parts = (np.arange(10)[:, None, None] + 10 * ends[None]).transpose(1, 0, 2).reshape(2, -1)
    return Graph.from_edges(*parts, directed=False, group=group)


def ring_of_pairs(group: ThreadGroup | None) -> Graph:
    """Multiple edges, loops, and weights nobody reads."""
    ids = np.arange(60)
    sources, targets = np.concatenate([ids, ids, ids]), np.concatenate([ids, (ids + 2) % 60, (ids + 2) % 60])
    return Graph.from_edges(sources, targets, weights=sources * 0.5, directed=False, group=group)


def grid(group: ThreadGroup | None) -> Graph:
    return generate("grid", rows=17, columns=23, group=group)


@pytest.mark.parametrize(
    ("made", "ranks_by"),
    in_turn([path_in_turn, two_stars, cliques, ring_of_pairs, grid], [(2, "hash"), (4, "edges")]),
)
def test_shapes(made: Made, ranks_by: tuple[int, str], monkeypatch: Any) -> None:
    ranks, partitioner = ranks_by
    use_host(monkeypatch, ranks)
    found, judge = results(WCC(), made, ranks, partitioner=partitioner)
    assert_at_once(found, judge, "component", judge.ids)


@pytest.mark.parametrize("owner", [0, 2])
def test_one_rank_has_all(owner: int, monkeypatch: Any) -> None:
    use_host(monkeypatch, 3)
    found, judge = results(WCC(), grid, 3, partitioner=lambda ids: np.full(ids.size, owner))
    assert_at_once(found, judge, "component", judge.ids)
    assert found.stats[-1].bytes_moved == 0


@pytest.mark.parametrize("degree", [10, 100, 2500])
def test_an_edge_in_one_row_alone(degree: int, monkeypatch: Any) -> None:
    """It leads from vertex 2, whose first edges lead to its own side, to vertex 5, whose first two lead to the hubs.

    Vertex 5 is in the tree of the greatest hub by then, so that only vertex 2 looks at it: by a thread, a warp, or all.
    """
    use_host(monkeypatch, 2)
    leaves = {0: degree + 20, 1: degree + 10, 2: degree, 3: 6, 4: 6}
    hubs = np.repeat([*leaves], [*leaves.values()])
    sources = np.concatenate([[0, 0, 1, 5, 2, 2], hubs])
    targets = np.concatenate([[1, 5, 5, 2, 3, 4], np.arange(6, 6 + hubs.size)])
    made: Made = lambda group: Graph.from_edges(sources, targets, directed=False, group=group)  # noqa: E731
    found, judge = results(WCC(), made, 2, partitioner=lambda ids: np.ones(ids.size, dtype=np.int64))
    assert_at_once(found, judge, "component", judge.ids)
    assert not found["component"].any()


def test_what_crosses(monkeypatch: Any) -> None:
    """A cycle over two ranks in turn: each has a ghost of every vertex of the other's; one tree's root a ghost."""
    use_host(monkeypatch, 2)
    ids = np.arange(10)
    made: Made = lambda group: Graph.from_edges(ids, (ids + 1) % 10, directed=False, group=group)  # noqa: E731
    found, judge = results(WCC(), made, 2, partitioner=lambda ids: ids % 2)
    assert_at_once(found, judge, "component", judge.ids)
    # 10 roots, and a pair of trees from each rank: all of its own vertices are one tree through the other's.
    assert found.stats[-1].bytes_moved == 10 * 4 + 2 * 8


@pytest.mark.parametrize("name", some_of([name for name in BATTERY if name != "empty"], 8))
def test_battery(name: str, monkeypatch: Any) -> None:
    use_host(monkeypatch, 3)
    sample = BATTERY[name]
    found, judge = results(WCC(), lambda group: sample.build(group=group), 3, partitioner="vertices")
    assert found["component"].tolist() == judge["component"].tolist()


def test_directed_edges_go_in_priority_order(monkeypatch: Any) -> None:
    use_host(monkeypatch, 2)
    found, judge = results(Downstream(), drawn(2, 200, 500), 2, partitioner="hash")
    assert found["least"].tolist() == judge["least"].tolist()
    assert "at once" not in [s.direction for s in found.stats]
    assert len(found.stats) > 2


@pytest.mark.parametrize("options", [{"direction": "pull"}, {"asynchronous": False}], ids=str)
def test_supersteps_where_they_are_asked_for(options: Any, monkeypatch: Any) -> None:
    use_host(monkeypatch, 2)
    found, judge = results(WCC(), drawn(4, 200, 500), 2, **options)
    assert found["component"].tolist() == judge["component"].tolist()
    assert "at once" not in [s.direction for s in found.stats]


def test_small_graphs_keep_their_supersteps(monkeypatch: Any) -> None:
    use_host(monkeypatch, 2, least_edges=1201)
    found, judge = results(WCC(), drawn(4, 200, 600), 2)
    assert found["component"].tolist() == judge["component"].tolist()
    assert "at once" not in [s.direction for s in found.stats]


def test_without_memory_on_one_rank(monkeypatch: Any) -> None:
    use_host(monkeypatch, 3)
    asked: list[int] = []

    def fits(num_bytes: int) -> bool:
        asked.append(num_bytes)
        return len(asked) != 2

    monkeypatch.setattr(rank_components, "fits", fits)
    found, judge = results(WCC(), drawn(4, 200, 600), 3)
    assert found["component"].tolist() == judge["component"].tolist()
    assert "at once" not in [s.direction for s in found.stats]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("value", ["int32", "uint64"])
def test_kernels_link(value: str, arch: str) -> None:
    linked = link_kernel("rank_components", arch, component_macros(value, arch == "sm_80"))
    assert b"join_ghosts_thread_mapped" in linked
