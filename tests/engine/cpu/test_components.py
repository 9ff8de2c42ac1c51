"""Components found at once: states are those of supersteps one by one, in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from cells import run_cell

from sigps import Graph, Result, generate, run
from sigps.apps import WCC
from sigps.engine import fixed_points

SPREAD = """
class Spread(Vertex, message=VertexId, directed=False):
    best: State[VertexId] = -1

    def compute(self, messages):
        if self.superstep == 0:
            self.best = self.id
            self.send_to_neighbors(self.best)
        else:
            received = max(messages, default=self.best)
            if received > self.best:
                self.best = received
                self.send_to_neighbors(received)
        self.vote_to_halt()
"""


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: Any) -> None:
    monkeypatch.setattr(fixed_points, "LEAST_EDGES", 0)


def was_at_once(result: Result) -> bool:
    return [s.direction for s in result.stats][1:] == ["at once"]


def spread() -> Any:
    return run_cell(SPREAD)["Spread"]()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("edges", [20, 60, 100, 300])
def test_drawn_graphs(edges: int, threads: int) -> None:
    """Components of all sizes, whose vertices are in no order; edges within ranges of threads, and between them."""
    draw = np.random.default_rng(edges)
    graph = Graph.from_edges(*draw.permutation(1000)[draw.integers(0, 100, (2, edges))], vertices=[2000, 7])
    for program, field in ((WCC(), "component"), (spread(), "best")):
        found = run(program, graph, device="cpu", threads=threads)
        assert was_at_once(found)
        assert found[field].tolist() == run(program, graph, device="python")[field].tolist()


@pytest.mark.parametrize("name", BATTERY)
def test_battery(name: str) -> None:
    if name == "empty":
        return
    graph = BATTERY[name].build()
    found = run(WCC(), graph, device="cpu", threads=2)
    assert found["component"].tolist() == run(WCC(), graph, device="python")["component"].tolist()


def test_edges_of_one_direction_go_by_supersteps() -> None:
    """The least id that reaches a vertex is another than that of its component."""
    cell = SPREAD.replace("directed=False", "directed=True")
    graph = Graph.from_edges([1, 2, 9], [2, 3, 2])
    found = run(run_cell(cell)["Spread"](), graph, device="cpu")
    assert not was_at_once(found)
    assert found["best"].tolist() == [1, 9, 9, 9]


@pytest.mark.parametrize("options", [{"asynchronous": False}, {"direction": "pull"}], ids=str)
def test_options_that_want_supersteps_get_them(options: dict[str, Any]) -> None:
    graph = generate("grid", rows=5, columns=9)
    assert not was_at_once(run(WCC(), graph, device="cpu", **options))


def test_a_larger_mesh() -> None:
    graph = generate("grid", rows=70, columns=90)
    for threads in (1, 3):
        found = run(WCC(), graph, device="cpu", threads=threads)
        assert was_at_once(found)
        assert not found["component"].any()
