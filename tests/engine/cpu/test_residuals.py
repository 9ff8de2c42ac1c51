"""Linear contractions whose changes are passed on, against linear equations that NumPy solves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from engines import compiled
from gas_programs import Rank

from sigps import Aggregator, Graph, Param, State, Vertex, generate, run
from sigps.engine.cpu import residuals
from sigps.engine.cpu.crew import Schedule
from sigps.engine.cpu.residuals import find_claim, may_relax, relaxation_of


class Weighed(Vertex, message=float, asynchronous=0.9):
    """A share of what the neighbours have, weighed along edges and by what leads away from them, and the degree."""

    share: Param[float] = 0.9
    value: State[float] = 3.0
    moved = Aggregator.any()

    def compute(self, messages):
        """Send until nobody moved."""
        if self.superstep > 1 and not self.moved:
            self.vote_to_halt()
            return
        if self.superstep > 0:
            value = 1.0 + self.in_degree + self.share * sum(messages)
            self.moved += abs(value - self.value) > 1e-9
            self.value = value
        for edge in self.out_edges:
            self.send(edge, edge.weight * self.value)


class Tilted(Weighed, asynchronous=0.9):
    """The same, but an edge passes the less the greater its target's id is."""

    def compute(self, messages):
        """Send until nobody moved."""
        if self.superstep > 1 and not self.moved:
            self.vote_to_halt()
            return
        if self.superstep > 0:
            value = 1.0 + self.in_degree + self.share * sum(messages)
            self.moved += abs(value - self.value) > 1e-9
            self.value = value
        for edge in self.out_edges:
            self.send(edge, edge.weight * self.value / (1.0 + edge.target))


def drawn(seed: int, *, directed: bool) -> Graph:
    """Return a graph with loops, parallel edges and vertices of one direction, whose weights make a contraction."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 50))
    ends = draw.integers(0, n, (2, 3 * n))
    most = np.bincount(ends.ravel(), minlength=n).max()
    return Graph.from_edges(*ends, weights=draw.random(3 * n) / most, directed=directed)


def arcs_of(graph: Graph) -> tuple[Any, Any]:
    sources = np.repeat(np.arange(graph.num_vertices), np.diff(graph.offsets).astype(int))
    return sources, graph.targets.astype(int)


def fixed_point(graph: Graph, program: Vertex) -> Any:
    """Solve the equations that the program describes."""
    n = graph.num_vertices
    sources, targets = arcs_of(graph)
    matrix = np.zeros((n, n))
    if isinstance(program, Rank):
        np.add.at(matrix, (targets, sources), 1.0)
        return np.linalg.solve(
            np.eye(n) - 0.85 * matrix / np.maximum(matrix.sum(axis=0), 1), np.full(n, 0.15)
        )
    weights = np.asarray(graph.columns["weight"], dtype=float)
    if isinstance(program, Tilted):
        weights = weights / (1.0 + graph.ids.to_oids(targets))
    np.add.at(matrix, (targets, sources), weights)
    return np.linalg.solve(np.eye(n) - program.share * matrix, 1.0 + np.bincount(targets, minlength=n))


def came_near(program: Vertex, graph: Graph, threads: int, **options: Any) -> tuple[Any, int]:
    """Return the states that changes passed on leave, without what compute() makes of them then; and edges read."""
    engine = compiled(program, graph, threads, blocks=Schedule(), **options)
    engine.lease(1)
    counts = engine._fused._come_near()  # type: ignore[union-attr]
    (values,) = engine.fields().values()
    return values, int(counts[3])


@pytest.fixture
def on_all_cores(monkeypatch: Any) -> None:
    monkeypatch.setattr(residuals, "most_cores", lambda num_edges: 8)


@pytest.mark.usefixtures("on_all_cores")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "program",
    [Rank(tolerance=1e-11), Weighed(), Weighed(share=-0.5), Tilted()],
    ids=["Rank", "Weighed", "less", "Tilted"],
)
def test_states_come_near_those_of_the_equations(program: Vertex, directed: bool, threads: int) -> None:
    for seed in range(5):
        graph = drawn(seed, directed=directed)
        found, read = came_near(program, graph, threads)
        np.testing.assert_allclose(found, fixed_point(graph, program), rtol=0, atol=1e-7)
        assert read > graph.num_edges
        whole = run(program, graph, device="cpu", asynchronous=True, threads=threads)
        (values,) = (whole[name] for name in whole.fields)
        np.testing.assert_allclose(values, fixed_point(graph, program), rtol=0, atol=1e-7)


@pytest.mark.parametrize("sample", BATTERY.values(), ids=BATTERY)
def test_small_graphs(sample: Any) -> None:
    graph = sample.build()
    found, _ = came_near(Rank(tolerance=1e-11), graph, 2)
    np.testing.assert_allclose(found, fixed_point(graph, Rank()), rtol=0, atol=1e-8)


def test_more_than_the_residual_is_taken_where_messages_go_both_ways(monkeypatch: Any) -> None:
    graph = generate("grid", rows=40, columns=40)
    program = Rank(tolerance=1e-9)
    few = came_near(program, graph, 1)[1]
    monkeypatch.setattr(residuals, "relaxation_of", lambda factor, is_symmetric: 1.0)
    assert few < 0.6 * came_near(program, graph, 1)[1]


@pytest.mark.parametrize(
    ("program", "directed", "relaxes"),
    [
        (Rank(), False, True),
        (Weighed(), False, True),
        (Rank(), True, False),
        (Tilted(), False, False),  # messages along an edge are others in the other direction
    ],
    ids=["Rank", "Weighed", "one way", "Tilted"],
)
def test_what_may_relax(program: Vertex, directed: bool, relaxes: bool) -> None:
    engine = compiled(program, drawn(1, directed=directed), 1, blocks=Schedule())
    assert may_relax(engine._state) is relaxes
    assert find_claim(engine._state) is not None


def test_negative_multiples_are_not_relaxed(monkeypatch: Any) -> None:
    seen = []
    monkeypatch.setattr(
        residuals, "relaxation_of", lambda factor, is_symmetric: seen.append(is_symmetric) or 1.0
    )
    for share in (0.5, -0.5):
        came_near(Weighed(share=share), drawn(1, directed=False), 1)
    assert seen == [True, False]


@pytest.mark.parametrize(
    ("threads", "options", "has_claim"),
    [(4, {}, True), (5, {}, False), (1, {"deterministic": True}, False)],
    ids=str,
)
def test_many_cores_pull_and_so_do_exact_sums(threads: int, options: Any, has_claim: bool) -> None:
    engine = compiled(Rank(), drawn(1, directed=True), threads, blocks=Schedule(), **options)
    assert (find_claim(engine._state) is not None) is has_claim


def test_single_precision_pulls() -> None:
    graph = drawn(1, directed=False)
    found = run(Rank(tolerance=1e-5), graph, device="cpu", asynchronous=True, precision="single")["rank"]
    np.testing.assert_allclose(found, fixed_point(graph, Rank()), rtol=0, atol=1e-3)


class Growing(Weighed, asynchronous=0.5):
    """No contraction, whatever it says."""

    def compute(self, messages):
        """Send for some supersteps."""
        if self.superstep > 1 and not self.moved:
            self.vote_to_halt()
            return
        if self.superstep > 0:
            value = 1.0 + 3.0 * sum(messages)
            self.moved += abs(value - self.value) < 1e9
            self.value = value
        for edge in self.out_edges:
            self.send(edge, self.value)


def test_what_is_no_contraction_after_all_ends_as_it_says() -> None:
    graph = generate("grid", rows=5, columns=5)
    found = run(Growing(), graph, device="cpu", asynchronous=True, threads=1)["value"]
    assert (found > 1e8).all()


@pytest.mark.parametrize(("factor", "expected"), [(0.0, 1.0), (0.6, 1 / 0.9), (0.8, 1.25)])
def test_relaxation(factor: float, expected: float) -> None:
    assert relaxation_of(factor, is_symmetric=True) == pytest.approx(expected)
    assert relaxation_of(factor, is_symmetric=False) == 1.0


class Nearly(Weighed, asynchronous=0.99):
    """The same, of which less is lost."""


def test_what_grows_where_vertices_take_more_is_put_back() -> None:
    """A loop that passes a negative number: 1.75 times its residual is too much for its vertex, without end."""
    graph = Graph.from_edges([0, 1, 2], [0, 2, 3], weights=[-1.0, 0.5, 0.3], directed=False)
    found = run(Nearly(share=0.98), graph, device="cpu", asynchronous=True)
    np.testing.assert_allclose(found["value"], fixed_point(graph, Nearly(share=0.98)), atol=1e-6)
