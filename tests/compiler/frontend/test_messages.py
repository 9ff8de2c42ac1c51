"""Slots, lists and the interpreter read the same messages, on random graphs too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from cells import program_of
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_cases import CASES, kite

from sigps import Graph, State, Vertex, run
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption

WAYS: list[dict[str, Any]] = [
    {"direction": "pull"},
    {"direction": "push"},
    {"direction": "push", "threads": 2},
    {"threads": 2, "deterministic": True},
]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw a small graph with parallel edges, self-loops, isolated vertices and two columns."""
    n = draw(st.integers(1, 7))
    ends = st.integers(0, n - 1)
    edges = draw(
        st.lists(st.tuples(ends, ends, st.integers(1, 8), st.integers(-3, 9)), min_size=1, max_size=20)
    )
    sources, targets, weights, capacities = (list(column) for column in zip(*edges, strict=True))
    ids = np.array([3 * v - 4 for v in range(n)])
    return Graph.from_edges(
        ids[sources],
        ids[targets],
        weights=np.array(weights) / 2,
        vertices=[*ids, 9],
        columns={"capacity": np.array(capacities)},
    )


@pytest.mark.parametrize(
    "name",
    ["market", "fold_loop", "listed", "filtered", "alternatives", "walk"],
)
@settings(max_examples=10, deadline=None)
@given(graph=graphs())
def test_all_ways_agree_on_random_graphs(name: str, graph: Graph) -> None:
    program: Vertex = CASES[name].program()
    judge = run(program, graph, device="python", max_supersteps=8)
    for way in WAYS:
        result = run(program, graph, device="cpu", max_supersteps=8, **way)
        assert (result.supersteps, result.reason) == (judge.supersteps, judge.reason), way
        for field in judge.fields:
            np.testing.assert_allclose(
                result[field], judge[field], rtol=1e-9, atol=1e-12, err_msg=f"{way} {field}"
            )


@pytest.mark.parametrize("name", ["market", "fold_loop", "filtered", "two_sends", "walk", "joined_offers"])
def test_single_precision(name: str) -> None:
    case = CASES[name]
    judge = run(case.program(), case.graph(), device="python", precision="single")
    result = run(case.program(), case.graph(), device="cpu", precision="single")
    for field in judge.fields:
        assert result[field].dtype == judge[field].dtype
        assert result[field].dtype != np.float64
        np.testing.assert_allclose(result[field], judge[field], rtol=1e-5)


@pytest.mark.parametrize("weight", [np.float32, np.int64, np.int8])
def test_weights_of_every_type(weight: Any) -> None:
    program = CASES["filtered"].program()
    judge = run(program, kite(weight), device="python")
    result = run(program, kite(weight), device="cpu")
    np.testing.assert_allclose(result["value"], judge["value"], rtol=1e-12)


def test_ids_that_are_no_positions() -> None:
    for ids in (("a", "b", "c", "d", "x"), (-(2**62), -7, 5, 10**15, 10**16 + 1)):
        graph = kite(ids=ids)
        program = program_of(
            """
            if self.superstep == 0:
                self.send_to_neighbors(self.id)
                self.least = self.id
            self.least = min(self.least, min(messages, default=self.least))
            self.vote_to_halt()
            """,
            "least: State[VertexId] = -1",
            message="message=VertexId",
        )
        judge = run(program, graph, device="python")
        assert judge["least"].tolist() == [ids[0], ids[0], ids[0], ids[1], ids[4]]
        assert run(program, graph, device="cpu")["least"].tolist() == judge["least"].tolist()


@pytest.mark.parametrize(
    ("body", "consumption"),
    [
        ("self.x = sum(messages)", Consumption.COMBINED),
        ("for m in messages:\n    self.x += m", Consumption.COMBINED),
        ("for m in messages:\n    if m > self.p:\n        self.x += m", Consumption.COMBINED),
        ("for m in messages:\n    self.x = min(self.x, m)\n    self.x += m", Consumption.LISTED),
        ("for m in messages:\n    if m > self.x:\n        self.x += m", Consumption.LISTED),
        ("y = 0.0\nfor m in messages:\n    y += m * self.x\nself.x = y", Consumption.LISTED),
        ("self.x = sum(1 for m in messages if m > min(messages, default=0.0))", Consumption.LISTED),
        ("if messages:\n    self.x = min(messages)\nelse:\n    self.x = -1.0", Consumption.COMBINED),
        ("if not messages:\n    self.x = -1.0\nelse:\n    self.x = max(messages)", Consumption.COMBINED),
        ("self.x = max(messages) if messages and self.superstep else -1.0", Consumption.COMBINED),
        (
            "if len(messages) > 0:\n    for m in messages:\n        self.x = m - min(messages)",
            Consumption.LISTED,
        ),
        ("sum = 1.0\nfor m in messages:\n    sum += m\nself.x = sum", Consumption.COMBINED),
        ("self.x = bool(messages) + 2 * any(m > 1 for m in messages)", Consumption.COMBINED),
        ("max = 2\nfor m in messages:\n    self.x += m * max", Consumption.LISTED),
    ],
)
def test_slots_only_where_the_order_cannot_matter(body: str, consumption: Consumption) -> None:
    send = "\nif self.superstep < 2:\n    for edge in self.out_edges:\n        self.send(edge, edge.weight)"
    program = program_of(body + send + "\nself.vote_to_halt()", "p: Param[float] = 1.0")
    assert analyse(program).consumption is consumption
    graph = CASES["narrow"].graph()
    judge = run(program, graph, device="python")
    assert run(program, graph, device="cpu")["x"].tolist() == pytest.approx(judge["x"].tolist())


@pytest.mark.parametrize(
    "body", ["self.x += sum(messages)", "for m in messages:\n    self.x = m\nself.x += 1.0"]
)
def test_messages_that_no_vertex_sends(body: str) -> None:
    program = program_of(f"{body}\nself.vote_to_halt()")
    judge = run(program, kite(), device="python")
    assert run(program, kite(), device="cpu")["x"].tolist() == judge["x"].tolist()


class Parcel(NamedTuple):
    """A message whose last parts may be left out."""

    size: int
    weight: float = 2.5
    is_fragile: bool = True


class Sends(Vertex, message=Parcel):
    size: State[int] = 0
    weight: State[float] = 0.0
    fragile: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.size += m.size
            self.weight += m.weight
            self.fragile += m.is_fragile
        if self.superstep == 0:
            self.send_to_neighbors(Parcel(1))
        elif self.superstep == 1:
            for edge in self.out_edges:
                self.send(edge, Parcel(is_fragile=False, size=10))
        self.vote_to_halt()


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_parts_of_a_message_that_are_left_out_have_their_defaults(device: Any) -> None:
    result = run(Sends(), Graph.from_edges([0, 1], [1, 2]), device=device)
    assert result["size"].tolist() == [0, 1, 11]
    assert result["weight"].tolist() == [0.0, 2.5, 5.0]
    assert result["fragile"].tolist() == [0, 1, 1]
