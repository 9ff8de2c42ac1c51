from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from engines import interpreted, values

from sigps import Aggregator, ComputeError, Graph, Param, State, Vertex, VertexId, run

TRIANGLE = Graph.from_edges([10, 10, 20, 30], [20, 30, 30, 10], weights=[1.0, 2.0, 3.0, 4.0])


class Pair(NamedTuple):
    """Two numbers."""

    number: np.float32
    sender: VertexId


class Sees(Vertex, message=Pair):
    """Writes down everything that a vertex sees."""

    factor: Param[int] = 3
    me: State[VertexId] = -1
    degrees: State[int] = 0
    sizes: State[int] = 0
    targets: State[int] = 0
    weights: State[float] = 0.0
    senders: State[int] = 0
    heard: State[float] = 0.0

    def compute(self, messages):
        if self.superstep == 0:
            self.me = self.id
            self.degrees = 10 * self.out_degree + self.in_degree
            self.sizes = 10 * self.num_vertices + self.num_edges
            for edge in self.out_edges:
                self.targets = 100 * self.targets + edge.target
                self.weights += self.factor * edge.weight
                self.send(edge, Pair(0.1 * edge.weight, self.id))
        for m in messages:
            assert isinstance(m, Pair)
            self.senders = 100 * self.senders + m.sender
            self.heard += m.number
        self.vote_to_halt()


class Talks(Vertex, message=int):
    """Runs whatever Python can: lists, f-strings, try; nothing here compiles."""

    longest: State[int] = 0
    total = Aggregator.sum(int)

    def compute(self, messages):
        words = [f"{self.id}:{m}" for m in sorted(messages)]
        try:
            self.longest = max(len(word) for word in words)
        except ValueError:
            self.longest = -1
        self.total += len(words)
        if self.superstep == 0:
            self.send_to_neighbors(self.id)
        self.vote_to_halt()


class Touches(Vertex):
    """Does what a program must not."""

    what: Param[str]
    value: State[int] = 0
    total = Aggregator.sum(int)
    step: Param[int] = 1

    def compute(self, messages):
        if self.what == "unknown":
            self.valu = 1
        elif self.what == "param":
            self.step = 2
        elif self.what == "aggregator":
            self.total = 5
        self.vote_to_halt()


def test_a_vertex_sees_what_is_promised() -> None:
    engine = interpreted(Sees(), TRIANGLE)
    outcome = engine.lease(100)
    assert outcome.ended
    assert values(engine, "me") == [10, 20, 30]
    assert values(engine, "degrees") == [21, 11, 12]
    assert values(engine, "sizes") == [34, 34, 34]
    assert values(engine, "targets") == [2030, 30, 10]
    assert values(engine, "weights") == [9.0, 9.0, 12.0]
    assert values(engine, "senders") == [30, 10, 1020]  # messages come in the order of their senders
    float32 = np.float32
    expected = [float(float32(0.4)), float(float32(0.1)), float(float32(0.2)) + float(float32(0.3))]
    assert values(engine, "heard") == pytest.approx(expected, rel=1e-9)  # rounded to the message's type
    assert [(s.active, s.messages) for s in outcome.stats] == [(3, 4), (3, 0)]


def test_anything_that_python_runs_runs() -> None:
    engine = interpreted(Talks(), TRIANGLE)
    engine.lease(100)
    assert values(engine, "longest") == [5, 5, 5]
    assert engine.aggregates.by_name() == {"total": 4}


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("unknown", "declares no field 'valu'"),
        ("param", "'step' is a parameter of the run"),
        ("aggregator", r"cannot be assigned: contribute with 'self\.total \+= x'"),
    ],
)
def test_what_compute_must_not_do_is_named_with_its_vertex(what: str, complaint: str) -> None:
    with pytest.raises(AttributeError, match=complaint) as caught:
        interpreted(Touches(what=what), TRIANGLE).lease(1)
    assert caught.value.__notes__ == ["while computing vertex 10 in superstep 0"]


class Grows(Vertex, message=np.int8):
    """A message, or a state, that its type does not hold."""

    what: Param[str]
    value: State[np.int8] = 100

    def compute(self, messages):
        if self.what == "message" and self.id == 20:
            self.send_to_neighbors(int(self.value) + 100)
        if self.what == "state" and self.id == 20:
            self.value = int(self.value) + 100
        self.vote_to_halt()


def test_a_message_that_overflows_its_type_is_named() -> None:
    with pytest.raises(
        ComputeError, match=r"200 does not fit .* int8 \(-128 to 127\), in vertex 20, superstep 0"
    ):
        interpreted(Grows(what="message"), TRIANGLE).lease(1)


def test_a_state_that_overflows_its_type_is_named_with_its_vertex() -> None:
    with pytest.raises(ComputeError, match=r"200 does not fit .*, in vertex 20, superstep 0"):
        interpreted(Grows(what="state"), TRIANGLE).lease(1)


def test_a_class_of_no_module_runs(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "from sigps import State, Vertex\n"
        "class P(Vertex, message=int):\n"
        "    x: State[int] = 0\n"
        "    def compute(self, messages):\n"
        "        self.x = self.id + 1\n"
        "        self.vote_to_halt()\n"
    )
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), names)
    assert run(names["P"](), Graph.from_edges([0], [1]), device="python")["x"].tolist() == [1, 2]


def test_leases_go_on_where_the_last_one_stopped() -> None:
    engine = interpreted(Sees(), TRIANGLE)
    first = engine.lease(1)
    assert (first.ended, engine.superstep, values(engine, "senders")) == (False, 1, [0, 0, 0])
    assert engine.lease(1).ended
    assert values(engine, "senders") == [30, 10, 1020]
    assert engine.lease(1).stats == []


def test_the_users_program_is_left_as_it_was() -> None:
    program = Sees(factor=5)
    before = dict(vars(program))
    interpreted(program, TRIANGLE).lease(100)
    assert vars(program) == before


class Largest(Vertex):
    """Whole constants that are computed on the way to one that fits."""

    most: State[int] = 0
    least: State[int] = 0

    def compute(self, messages):
        self.most = 2**63 - 1 - self.id
        self.least = -(2**63) + self.id
        self.vote_to_halt()


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_constants_may_leave_64_bits_on_the_way(device: str) -> None:
    result = run(Largest(), Graph.from_edges([0], [1]), device=device)
    assert result["most"].tolist() == [9223372036854775807, 9223372036854775806]
    assert result["least"].tolist() == [-9223372036854775808, -9223372036854775807]
