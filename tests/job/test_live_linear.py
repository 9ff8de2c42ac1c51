"""Streams within a tolerance, against systems of equations that NumPy solves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gas_programs import Rank
from histories import History, drawn, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sigps
from sigps import ConfigError, Graph, Param, State, Updates, Vertex
from sigps.apps import SSSP, Katz, PageRank


class Weighted(Vertex, message=float):
    """Each value is 1, and a share of what weighted edges bring."""

    share: Param[float] = 0.01
    value: State[float] = 1.0

    def compute(self, messages):
        if self.superstep > 0:
            self.value = 1.0 + self.share * sum(messages)
        if self.superstep >= 60:
            self.vote_to_halt()
        else:
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.value)


PROGRAMS = {
    "ranks": PageRank(),
    "leaking": PageRank(dangling="leak", damping=0.7),
    "katz": Katz(attenuation=0.02),
    "weighted": Weighted(),
    "declared": Rank(),
}


def solution(graph: Graph, name: str) -> NDArray[np.float64]:
    """Solve the program's equations in the order of ids."""
    n, table = graph.num_vertices, graph.to_arrow()
    at = {v: i for i, v in enumerate(np.asarray(graph.ids).tolist())}
    arcs = np.zeros((n, n))
    for s, t, w in zip(*(table[c].to_pylist() for c in ("source", "target", "weight")), strict=True):
        amount = w if name == "weighted" else 1
        arcs[at[t], at[s]] += amount
        if not graph.directed and s != t:
            arcs[at[s], at[t]] += amount
    if name in ("katz", "weighted"):
        return np.linalg.solve(np.eye(n) - (0.02 if name == "katz" else 0.01) * arcs, np.ones(n))
    damping, out = (0.7 if name == "leaking" else 0.85), arcs.sum(axis=0)
    shares = np.where(out > 0, arcs / np.where(out > 0, out, 1), 1 / n if name == "ranks" else 0)
    sum_of_own = n if name == "declared" else 1
    return np.linalg.solve(np.eye(n) - damping * shares, np.full(n, (1 - damping) / n * sum_of_own))


@settings(max_examples=drawn(25), deadline=None)
@given(histories(), st.sampled_from(sorted(PROGRAMS)), st.sampled_from([1e-2, 1e-6, 1e-10]))
def test_values_are_within_the_tolerance_of_the_solution(
    history: History, name: str, tolerance: float
) -> None:
    with sigps.stream(PROGRAMS[name], history.first(), device="cpu", tolerance=tolerance, threads=1) as live:
        field = next(iter(live.result.fields))
        for (inserts, deletes), judge in zip(history.batches, history.judges(), strict=True):
            columns = [[edge[i] for edge in inserts] for i in range(3)]
            before = live.result
            result = live.apply(Updates(tuple(columns), ([s for s, _ in deletes], [t for _, t in deletes])))
            expected = solution(judge, name)
            assert np.abs(result[field] - expected).max() <= tolerance * 1.001 * expected.max()
            assert (np.abs(result[field] - expected) <= tolerance * 1.001 * expected + 1e-15).all()
            update = live.graph.update
            assert result.path == ("full" if update.new_vertices else "incremental")
            if not update.new_vertices:
                moved = result.ids[result[field] != before[field]]
                assert result.changed_ids.tolist() == moved.tolist()


@pytest.mark.parametrize("directed", [True, False])
def test_larger_graphs_are_pushed_and_swept(directed: bool) -> None:
    draw, n = np.random.default_rng(3), 500
    edges = (n * draw.random((2, 3000)) ** 2).astype(int)
    graph = Graph.from_edges(*edges, np.ones(3000, dtype=int), vertices=range(n), directed=directed)
    seen = set()
    with sigps.stream(PageRank(), graph, device="cpu", tolerance=1e-8) as live:
        for size in (1, 300, 2, 1):
            at = draw.integers(0, 3000, size)
            inserts = *draw.integers(0, n, (2, size)), np.ones(size, dtype=int)
            result = live.apply(inserts=inserts, deletes=tuple(edges[:, at]))
            expected = solution(live.graph, "ranks")
            assert (np.abs(result["rank"] - expected) <= 1e-8 * expected).all()
            assert result["rank"].sum() == pytest.approx(1, rel=1e-8)
            seen.add(result.stats[0].direction)
    assert seen <= {"push", "pull"}
    assert "pull" in seen


def test_a_small_change_far_from_all_else_is_pushed_alone() -> None:
    ring = np.arange(4000)
    graph = Graph.from_edges(ring, np.roll(ring, -1))
    with sigps.stream(PageRank(dangling="leak"), graph, device="cpu", tolerance=1e-6) as live:
        result = live.apply(inserts=([10], [2000]))
        assert (result.path, result.stats[0].direction) == ("incremental", "push")
        assert result.stats[0].messages < 1000
        assert {11, 2000} < set(result.changed_ids.tolist()) < set(range(4000))


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        (SSSP(source=0), {}, "SSSP is not followed within a tolerance: not linear: there is not one sum"),
        (PageRank(iterations=2), {}, "halts in superstep 2: let it have more iterations"),
        (Katz(attenuation=0.9), {}, "does not come to rest"),
        (Katz(attenuation=-0.1), {}, "or multiples below it"),
        (PageRank(), {"tolerance": 1.0}, "tolerance=1.0 must be a share from 1e-12 to less than 1"),
        (PageRank(), {"tolerance": "1e-6"}, "tolerance='1e-6' must be a share"),
        (PageRank(), {"device": "python"}, "the interpreter always runs in full"),
        (PageRank(), {"initial": {"rank": [0.5] * 4}}, "does not depend on the values"),
    ],
)
def test_what_does_not_go_on_is_refused(program: Vertex, options: dict[str, Any], message: str) -> None:
    graph = Graph.from_edges([0, 1, 2, 3, 0, 1], [1, 2, 3, 0, 2, 3], directed=False)
    with pytest.raises(ConfigError, match=message):
        sigps.stream(program, graph, **{"device": "cpu", "tolerance": 1e-6} | options)


@pytest.mark.parametrize("damping", [0.999, 0.9999])
def test_slow_rounds_come_to_rest(damping: float) -> None:
    """Errors fall by a thousandth in a sweep, and less; the judge is a dense system of equations."""
    graph = sigps.generate("rmat", scale=7)
    n = graph.num_vertices
    counts = np.zeros((n, n))
    np.add.at(counts, (graph.targets, np.repeat(np.arange(n), graph.out_degrees())), 1)
    degrees = counts.sum(axis=0)
    spread = np.where(degrees > 0, counts / np.maximum(degrees, 1), 1 / n)
    ranks = np.linalg.solve(np.eye(n) - damping * spread, np.full(n, (1 - damping) / n))
    with sigps.stream(PageRank(damping=damping), graph, device="cpu", tolerance=1e-8) as live:
        np.testing.assert_allclose(live.result["rank"], ranks, rtol=1e-8)


def test_a_batch_that_has_no_solution_is_refused_and_the_stream_goes_on() -> None:
    ring, program = np.arange(8), Katz(attenuation=0.3)
    graph = Graph.from_edges(ring, np.roll(ring, -1))
    everyone = [part.ravel() for part in np.meshgrid(ring, ring)]
    with sigps.stream(program, graph, device="cpu", tolerance=1e-9, guard="incremental") as live:
        for _ in range(2):
            with pytest.raises(ConfigError, match="does not come to rest"):
                live.apply(inserts=everyone)
            assert live.graph.num_edges == 8
            assert live.result["score"] == pytest.approx(np.full(8, 1 / 0.7), rel=1e-9)
        result = live.apply(inserts=([0], [2]))
        arcs = np.roll(np.eye(8), 1, axis=0)
        arcs[2, 0] = 1
        assert result["score"] == pytest.approx(np.linalg.solve(np.eye(8) - 0.3 * arcs, np.ones(8)), rel=1e-9)
        assert result.path == "incremental"
