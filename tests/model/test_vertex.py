"""What a class declares, what it may not, and parameters as they are given."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from cells import run_cell

from sigps import Aggregator, CompileError, ConfigError, Graph, Param, State, Vertex, VertexId, inf, run
from sigps.model.vertex import Edge


class Pair(NamedTuple):
    near: VertexId
    far: np.float32


class Parent(Vertex, message=Pair, combiner=min):
    start: Param[VertexId]
    factor: Param[float] = 2
    count: Param[np.int8] = 3
    switch: Param[bool] = False
    mode: Param[str] = "fast"
    limit: Param[float | None] = None
    a: State[int] = -1
    b: State[np.float32]
    total = Aggregator.sum(int)


class Child(Parent):
    c: State[VertexId] = -1
    factor: Param[float] = 3.0


def test_a_declaration() -> None:
    declared = Parent.declaration
    assert [(f.name, f.type, f.default, f.is_vertex_id) for f in declared.states] == [
        ("a", int, -1, False),
        ("b", np.float32, 0.0, False),
    ]
    assert [(f.name, f.type, f.is_vertex_id) for f in declared.params] == [
        ("start", int, True),
        ("factor", float, False),
        ("count", np.int8, False),
        ("switch", bool, False),
        ("mode", None, False),
        ("limit", None, False),
    ]
    assert [(f.name, f.type, f.is_vertex_id) for f in declared.message] == [
        ("near", int, True),
        ("far", np.float32, False),
    ]
    assert (declared.message_type, declared.combiner, declared.directed) == (Pair, min, True)
    assert [(a.name, a.kind, a.identity) for a in declared.aggregators] == [("total", "sum", 0)]


def test_a_class_inherits_and_overrides() -> None:
    declared = Child.declaration
    assert [f.name for f in declared.states] == ["a", "b", "c"]
    assert Child(start=0).params["factor"] == 3.0
    assert declared.message_type is Pair


def test_precision_moves_floats_only() -> None:
    states = Parent.declaration.states
    assert [f.dtype("single") for f in states] == [np.int64, np.float32]
    assert Parent.declaration.params[1].dtype("single") == np.float32
    assert Parent.declaration.params[1].dtype() == np.float64


def test_parameters_take_their_type() -> None:
    params = Parent(start="ann", factor=1, count=np.int64(5), switch=True, limit=2.5).params
    assert params == {"start": "ann", "factor": 1.0, "count": 5, "switch": True, "mode": "fast", "limit": 2.5}
    assert [type(params[n]) for n in ("factor", "count", "switch")] == [float, np.int8, bool]


def test_parameters_have_names() -> None:
    with pytest.raises(ConfigError, match=r"Parent takes parameters by their names: Parent\(start=5\)"):
        Parent(5)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "Parent needs start=: a parameter without a default"),
        ({"strat": 1}, "Parent has no parameter 'strat'; did you mean 'start'?"),
        ({"start": 1, "factor": "x"}, "factor='x' is not of type float"),
        ({"start": 1, "factor": True}, "factor=True is not of type float"),
        ({"start": 1, "factor": None}, "factor=None is not of type float"),
        ({"start": 1, "count": 2.5}, "count=2.5 is not of type int8"),
        ({"start": 1, "count": 300}, "count=300 is not of type int8"),
        ({"start": 1, "count": inf}, "count=inf is not of type int8"),
        ({"start": 1, "count": float("nan")}, "count=nan is not of type int8"),
    ],
)
def test_wrong_parameters(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Parent(**given)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("class P(Vertex):\n    x: State[str] = ''", "State[str] is not supported: use int, float"),
        ("class P(Vertex):\n    x: State[np.float16]", "State[float16] is not supported"),
        ("class P(Vertex):\n    x: State[complex]", "State[complex] is not supported"),
        ("class P(Vertex):\n    x: State[int] = 2.5", "State[int] cannot begin as 2.5"),
        ("class P(Vertex):\n    x: State[int] = inf", "State[int] cannot begin as inf"),
        ("class P(Vertex):\n    x: State[int] = 2**70", "cannot begin as 1180591620717411303424"),
        ("class P(Vertex):\n    x: State[np.uint8] = -1", "State[uint8] cannot begin as -1"),
        ("class P(Vertex):\n    x: State[float] = None", "State[float] cannot begin as None"),
        ("class P(Vertex):\n    id: State[int] = 0", "every vertex has a 'id' of its own"),
        ("class P(Vertex):\n    send: Param[int] = 0", "every vertex has a 'send' of its own"),
        ("class P(Vertex):\n    __x: State[int] = 0", "reserved: choose another"),
        ("class P(Vertex):\n    x: Param[int] = 'a'", "x='a' is not of type int"),
        (
            "class P(Vertex):\n    x: 'State[Missing]' = 0",
            "the annotation 'State[Missing]' cannot be understood",
        ),
        ("class P(Vertex, message=str):\n    pass", "message=str is not supported"),
        ("class P(Vertex, message=float | None):\n    pass", "is not supported: use int, float"),
        (
            "class M(NamedTuple):\n    a: str\nclass P(Vertex, message=M):\n    pass",
            "the message's a: str is not",
        ),
        ("class P(Vertex, message=int, combiner=3):\n    pass", "combiner=3 is no function of two messages"),
        (
            "class M(NamedTuple):\n    a: int\nclass P(Vertex, message=M, combiner=sum):\n    pass",
            "combiner=sum cannot add NamedTuples",
        ),
        (
            "class P(Vertex, directed=False, both_ways=True):\n    pass",
            "directed=False takes the direction away from edges",
        ),
        ("class P(Vertex, simple=True):\n    pass", "simple=True is for programs of undirected graphs"),
        ("a = Aggregator.sum(str)", "takes a type"),
        ("a = Aggregator.custom(3, identity=0.0)", "a function before it"),
    ],
)
def test_wrong_declarations(line: str, says: str) -> None:
    with pytest.raises(CompileError) as caught:
        run_cell(line)
    assert says in str(caught.value)


def test_an_aggregator_is_read_as_a_number_and_contributed_to() -> None:
    source = """
    class P(Vertex):
        total = Aggregator.sum(float)
        count = Aggregator.sum(int)
        x: State[float] = 0.0
        def compute(self, messages):
            share = self.total
            share += 0.5
            share += 0.25
            self.x = share
            count = self.count
            count += 1.5
            self.x += count
            self.total += 2.0
            self.count += 1
            self.count += 1
            if self.superstep == 1:
                self.vote_to_halt()
    """
    program = run_cell(source)["P"]()
    graph = Graph.from_edges([0], [1])
    for device in ("python", "cpu"):
        result = run(program, graph, device=device)
        assert result["x"].tolist() == [4.0 + 0.75 + 4 + 1.5] * 2
        assert result.aggregators == {"total": 4.0, "count": 4}


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("self.total = 3", "contribute with 'self.total \\+= x'"),
        ("self.y = 3", "declares no field 'y'"),
        ("self.p = 3", "is a parameter of the run"),
        ("self.x = 'a'", "could not convert"),
    ],
)
def test_the_interpreter_refuses_too(statement: str, says: str) -> None:
    source = f"""
    class P(Vertex):
        total = Aggregator.sum(float)
        p: Param[int] = 1
        x: State[float] = 0.0
        def compute(self, messages):
            {statement}
    """
    with pytest.raises((AttributeError, ValueError), match=says):
        run(run_cell(source)["P"](), Graph.from_edges([0], [1]), device="python")


def test_an_edge_without_weights_weighs_one() -> None:
    edge = Edge(0, 7, {"length": 3})
    assert (edge.target, edge.weight, edge.length) == (7, 1.0, 3)
    with pytest.raises(AttributeError, match="the edges have no column 'width'; they have: length"):
        edge.width  # noqa: B018
