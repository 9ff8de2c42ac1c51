"""Declared contractions that decide by themselves whether they go on without barriers."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from engines import compiled, laid_out
from thread_group import run_ranks

from sigps import GAS, Aggregator, Graph, Param, State, Vertex, generate, run
from sigps.engine.cpu import progress
from sigps.engine.fixed_points import NEAR_IDS, contracts_without_barriers
from sigps.engine.partition.degree_order import build_by_degree


class Rank(GAS, asynchronous=0.85):
    """PageRank from 1."""

    tolerance: Param[float] = 1e-9
    rank: State[float] = 1.0

    def gather(self, edge):
        return edge.source.rank / edge.source.out_degree

    def apply(self, total):
        old = self.rank
        self.rank = 0.15 + 0.85 * total
        return abs(self.rank - old) > self.tolerance


class Means(Vertex, message=float, asynchronous=0.9):
    """Nine tenths of the neighbours' mean; those of even ids alone send, and each message is more than nothing."""

    value: State[float] = 0.0
    moved = Aggregator.any()
    every: Param[int] = 2

    def compute(self, messages):
        """Send until nobody moved."""
        if self.superstep > 1 and not self.moved:
            self.vote_to_halt()
            return
        if self.superstep > 0:
            value = 0.9 * max(messages, default=0.0)
            self.moved += abs(value - self.value) > 1e-7
            self.value = value
        if self.id % self.every == 0:
            self.send_to_neighbors(self.value + 1.0)


def grid() -> Graph:
    return generate("grid", rows=120, columns=120)


def of_arcs(graph: Graph) -> Graph:
    """Return the directed graph of an undirected one's arcs: it has no proof that messages go both ways."""
    sources = np.repeat(np.arange(graph.num_vertices), np.diff(graph.offsets).astype(np.int64))
    return Graph.from_edges(sources, graph.targets.astype(np.int64), directed=True)


def directions(program: Vertex, graph: Graph, **options: Any) -> list[str]:
    result = run(program, graph, **{"device": "cpu", "threads": 2, **options})
    return [entry.direction for entry in result.stats]


@pytest.mark.parametrize(
    ("factor", "rate", "near", "is_free"),
    [
        (0.85, 0.79, 0.66, True),
        (0.85, 0.76, 0.40, True),
        (0.85, 0.75, 0.90, False),  # supersteps are fast
        (0.85, 0.83, 0.39, False),  # edges go far
        (0.85, 0.43, 0.02, False),
        (0.85, float("nan"), 0.9, False),
        (0.85, 0.0, 1.0, False),
        (0.5, 0.5, 0.9, True),
        (0.99, 0.97, 0.9, False),
    ],
)
def test_the_decision(factor: float, rate: float, near: float, is_free: bool) -> None:
    assert contracts_without_barriers(factor=factor, rate=rate, near=near)[1] is is_free


def test_a_slow_contraction_of_near_ids_goes_on_without_barriers(caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    graph = of_arcs(grid())
    found = run(Rank(), graph, device="cpu", threads=2)
    ways = [entry.direction for entry in found.stats]
    assert ways[-1] == "async"
    assert set(ways[:-1]) == {"pull"}
    assert len(ways) == 17
    assert "Rank goes on without barriers after 16 supersteps: a superstep leaves 0.8" in caplog.text
    expected = run(Rank(tolerance=1e-13), graph, device="cpu", asynchronous=False)["rank"]
    np.testing.assert_allclose(found["rank"], expected, rtol=0, atol=1e-9 / (1 - 0.85))
    assert found.reason == "converged"


def test_a_linear_one_has_no_more_supersteps_where_messages_go_both_ways(caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    graph = generate("rmat", scale=12, directed=False)
    found = run(Rank(), graph, device="cpu", threads=2)
    assert [entry.direction for entry in found.stats] == ["pull", "async"]
    assert "Rank goes on without barriers after superstep 0" in caplog.text
    expected = run(Rank(tolerance=1e-13), graph, device="cpu", asynchronous=False)["rank"]
    np.testing.assert_allclose(found["rank"], expected, rtol=0, atol=1e-9 / (1 - 0.85))


def test_a_fast_contraction_stays_with_supersteps(caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    graph = of_arcs(generate("rmat", scale=12, directed=False))
    found = run(Rank(), graph, device="cpu", threads=1)
    expected = run(Rank(), graph, device="cpu", threads=1, asynchronous=False)
    assert found["rank"].tolist() == expected["rank"].tolist()
    assert len(found.stats) == len(expected.stats) > 16
    assert "Rank goes on by supersteps after 16 supersteps" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"deterministic": True},
        {"asynchronous": False},
        {"max_supersteps": 40},
        {"schedule": "edge"},
        {"direction": "pull"},
    ],
)
def test_what_asks_for_supersteps_has_them(options: dict[str, Any]) -> None:
    assert "async" not in directions(Rank(tolerance=1e-4), grid(), **options)


def test_ranks_have_supersteps() -> None:
    def ran(group: Any) -> list[str]:
        return directions(
            Rank(tolerance=1e-4), generate("grid", rows=120, columns=120, group=group), threads=1
        )

    assert all("async" not in ways for ways in run_ranks(2, ran))


@pytest.mark.parametrize(("every", "last"), [(1, "async"), (2, "pull")])
def test_silent_vertices_keep_supersteps(every: int, last: str) -> None:
    graph = grid()
    found = run(Means(every=every), graph, device="cpu", threads=2)
    expected = run(Means(every=every), graph, device="cpu", asynchronous=False)["value"]
    np.testing.assert_allclose(found["value"], expected, rtol=0, atol=1e-5)
    ways = {"async" if entry.direction == "async" else "pull" for entry in found.stats}
    assert last in ways
    assert ("async" in ways) is (every == 1)


@pytest.mark.parametrize("lease", [1, 3, 1 << 62])
def test_leases_change_nothing_of_the_decision(lease: int) -> None:
    engine = compiled(Rank(), of_arcs(grid()), 1, asynchronous=True)
    ways: list[str] = []
    ended = False
    while not ended:
        outcome = engine.lease(lease)
        ways += [entry.direction for entry in outcome.stats]
        ended = outcome.ended
    assert ways == ["pull"] * 16 + ["async"]


class Lost(Rank):
    """One rank grows beyond all numbers, and its neighbours' with it."""

    def apply(self, total):
        old = self.rank
        self.rank = 0.15 + 0.85 * total
        if self.id == 7:
            self.rank = old * 1e30
        return self.rank < 2.0 and abs(self.rank - old) > 1e-3


def test_states_that_are_no_numbers_any_more_keep_supersteps() -> None:
    assert "async" not in directions(Lost(), grid())


def test_near_edges_are_counted_by_numbers_of_the_graph() -> None:
    n = 4 * NEAR_IDS
    vertices = np.arange(n)
    near = np.stack([vertices[:-1], vertices[1:]])
    far = np.stack([vertices[: n // 2], vertices[: n // 2] + n // 2])
    graph = Graph.from_edges(*np.concatenate([near, far], axis=1))
    share = (n - 1) / (n - 1 + n // 2)
    by_degree = build_by_degree(graph, 2)
    assert by_degree.gids is not None
    for subgraph in (laid_out(graph)[0], by_degree):
        assert progress.share_of_near_edges(subgraph) == pytest.approx(share, abs=0.01)
