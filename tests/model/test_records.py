"""States that are NamedTuples: what results hold, and what is refused."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from cells import program_of
from turns import in_turn
from vector_programs import Cluster, Gathers, Spot

import sigps
from sigps import CompileError, State, Vector, Vertex, run

GRAPH = sigps.Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2])


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_result_has_the_parts_and_the_whole(device: str) -> None:
    result = run(Gathers(), GRAPH, device=device, max_supersteps=1)
    assert result["cluster.size"].tolist() == [1] * 4
    assert result["cluster.spot.centre"].tolist() == [[0.5, 1.5]] * 4
    assert result["cluster.spot.level"].tolist() == [0] * 4
    assert result["empty.level"].tolist() == [0] * 4
    assert result["seen"].tolist() == [3] * 4
    whole = result["cluster"]
    assert whole.dtype.names == ("size", "spot.centre", "spot.level", "is_closed")
    assert whole["spot.centre"].shape == (4, 2)
    assert result["cluster.spot"]["level"].tolist() == [0] * 4


def test_parts_begin_with_arrays() -> None:
    sizes = np.array([5, 6, 7, 8])
    result = run(Gathers(), GRAPH, device="cpu", max_supersteps=1, initial={"cluster.size": sizes})
    assert result["cluster.size"].tolist() == sizes.tolist()


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize("begins", ["tuple", "plus"])
def test_a_record_is_assigned_whole(device: str, begins: str) -> None:
    class Wrong(Vertex):
        spot: State[Spot]

        def compute(self, messages):
            if self.superstep == 0:
                self.spot = (1.0, 2, 3)
            self.vote_to_halt()

    class Adds(Vertex):
        spot: State[Spot]

        def compute(self, messages):
            self.spot += 1
            self.vote_to_halt()

    with pytest.raises((CompileError, TypeError)):
        run({"tuple": Wrong, "plus": Adds}[begins](), GRAPH, device=device)


class Unfit(NamedTuple):
    name: str
    at: Vector[float, 2]


def test_parts_have_types_of_states() -> None:
    with pytest.raises(CompileError, match=r"Unfit\.name is a <class 'str'>"):

        class P(Vertex):
            unfit: State[Unfit]


def test_a_default_that_does_not_fit_is_refused() -> None:
    with pytest.raises(CompileError, match=r"centre cannot begin as \(1.0,\)"):

        class P(Vertex):
            spot: State[Spot] = Spot((1.0,), 2)

    with pytest.raises(CompileError, match="write a Cluster"):

        class Q(Vertex):
            cluster: State[Cluster] = 7


NESTED = """
class In(NamedTuple):
    a: int
    b: float
class Both(NamedTuple):
    k: float
    part: In
    z: int = 1
def nearer(one, other):
    return one if one.part.b < other.part.b else other
"""
SENDS = """
if self.superstep == 0:
    for e in self.out_edges:
        self.send(e, Both(e.weight, In(self.id, self.id * 0.5)))
self.vote_to_halt()
"""
WEIGHTED = sigps.Graph.from_edges([1, 2, 3, 1], [0, 0, 0, 2], weights=[4.0, 2.0, 3.0, 1.0])
"""Vertex 0 gets (4.0, (1, 0.5), 1), (2.0, (2, 1.0), 1) and (3.0, (3, 1.5), 1)."""


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.x = sum(m.k * m.part.b for m in messages)", 8.5),
        ("m = min(messages, default=Both(9.0, In(1, 2.0)))\nself.x = m.k * 100 + m.part.a * 10 + m.part.b", 221.0),
        ("m = max((m.part for m in messages), default=In(0, 7.0))\nself.x = m.a * 10 + m.b", 31.5),
        ("if messages:\n    m = max(messages, key=lambda m: m.part.b)\n    self.x = m.k", 3.0),
        ("for m in messages:\n    n = m._replace(k=0.5)\n    self.x += n.k * n.part.a", 3.0),
        ("for m in messages:\n    if m.k < 3:\n        n = m._replace(k=0.5)\n        self.x = n.k + n.part.b", 1.5),
        ("for k, part, z in messages:\n    self.x += k * part.a + z", 20.0),
        ("for m in messages:\n    if m.part.a == 2:\n        self.x = m.part.a + m.part.b\n        break", 3.0),
        ("for a, group in messages.grouped(lambda m: m.part.a % 2):\n    self.x += a * sum(m.k for m in group)", 7.0),
        ("self.x = messages.most_common(lambda m: m.part.a, weight=lambda m: m.part.b, default=0)", 3.0),
    ],
)  # fmt: skip
def test_messages_may_have_namedtuples_in_them(body: str, expected: float, device: str) -> None:
    program = program_of(
        f"if self.superstep == 1:\n    {body.replace(chr(10), chr(10) + '    ')}{SENDS}",
        before=NESTED,
        message="message=Both",
    )
    assert run(program, WEIGHTED, device=device)["x"][0] == expected


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize(("case", "other"), in_turn(
    [
        ("own._replace(k=2.0)", 2.0 * 60),
        ("own._replace(k=edge.weight)._replace(z=0)", 4.0 * 10 + 2.0 * 20 + 3.0 * 30),
        ("own if self.id > 1 else Both(0.5, In(4, 2.0))", 0.5 * 42 + 3.0 * 50),
        ("own if edge.weight > 2 else own._replace(k=1.0, part=In(2, edge.weight))", 3.0 * 40 + 1.0 * 22),
        ("Both(1.0, In(1, edge.weight) if self.id > 2 else own.part)", 1.0 * 43),
        ("own._replace(part=own.part._replace(a=5)) if self.id == 1 else own", 3.0 * 50 + 3.0 * 50),
        ("nearer(own, Both(0.5, In(4, edge.weight - 3.5), 1))", 3.0 * 10 + 0.5 * 38.5 + 0.5 * 39.5),
        ("self.made(edge.weight) if self.id > 1 else own", 3.0 * 10 + 2.0 * 70 + 3.0 * 70),
        ("self.made(edge.weight)._replace(k=1.0)", 3.0 * 70),
    ],
    ["pass", "self.send_to(2, own._replace(k=0.0))"],  # then messages are direct
))  # fmt: skip
def test_what_is_sent_may_be_chosen_and_changed(case: tuple[str, float], other: str, device: str) -> None:
    sent, expected = case
    body = f"""
        self.x += sum(m.k * (10 * m.part.a + m.part.b) for m in messages)
        own = Both(3.0, In(self.id, 0.0), 1)
        if self.superstep == 0:
            {other}
            for edge in self.out_edges:
                if edge.target == 0:
                    self.send(edge, {sent})
        self.vote_to_halt()
    """
    made = "def made(self, k):\n    return Both(k, In(7, 0.0), 1)"
    program = program_of(body, made, before=NESTED, message="message=Both")
    assert run(program, WEIGHTED, device=device)["x"].tolist() == [expected, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_combiner_may_take_messages_with_namedtuples_in_them(device: str) -> None:
    program = program_of(
        f"for m in messages:\n    self.x = m.k{SENDS}", before=NESTED, message="message=Both, combiner=nearer"
    )
    assert run(program, WEIGHTED, device=device)["x"].tolist() == [4.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("self.x = sum(m.part.c for m in messages)", "In has no 'c'; it has: a, b"),
        ("self.x = sum(m.prt.b for m in messages)", "no field 'prt'; it has: k, part, z"),
        ("self.x = sum(m.part for m in messages)", r"sum\(\) of a In means nothing: write sum\(m.part.a"),
        (
            "for m in messages:\n    m.part.a = 3",
            r"a part of a NamedTuple is not assigned: .* x._replace\(a=...\)",
        ),
        ("self.send_to_neighbors(Both(1.0, In(1)))", "In takes exactly these fields: a, b"),
        ("self.send_to_neighbors(Both(1.0, 3))", "a message's part is a In, and 3 is none"),
        (
            "b = Both(1.0, In(1, 2.0))\nself.send_to_neighbors(b._replace(l=3))",
            "Both has no field 'l'; it has: k, part, z",
        ),
        (
            "self.send_to_neighbors(self.x if self.x else self.id)",
            r"a message is written as Both\(...\) where it is sent, or as a var",
        ),
        ("self.send_to_neighbors(float(self.id))", r"a message is written as Both\(...\) where it is sent"),
    ],
)
def test_what_is_no_part_of_a_message_is_refused(body: str, text: str) -> None:
    program = program_of(f"{body}{SENDS}", before=NESTED, message="message=Both")
    with pytest.raises(CompileError, match=text):
        run(program, WEIGHTED, device="cpu")


def test_a_part_of_a_message_that_has_no_type_is_named() -> None:
    with pytest.raises(CompileError, match=r"the message's part\.b: str is not supported"):
        program_of("pass", before=NESTED.replace("b: float", "b: str"), message="message=Both")
