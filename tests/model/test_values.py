"""A vector is a value: what is assigned, bound, handed on or run over is not changed with the variable it came from."""

from __future__ import annotations

from typing import Any

import pytest
from battery import BATTERY
from cells import program_of
from drawn_programs import call_compute, call_on_host
from host_cpp import has_compiler

from sigps import CompileError, Graph, Vertex, run
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption

ONE = BATTERY["one_vertex"].build()
DEVICES = ["python", "cpu"]

BEFORE = """
class Spot(NamedTuple):
    at: Vector[float, 3]
    level: int
"""
FIELDS = """
v: State[Vector[float, 3]] = (1.0, 2.0, 3.0)
w: State[Vector[float, 3]] = 0.0
spot: State[Spot] = Spot((4.0, 5.0, 6.0), 7)
def change(self):
    self.v[0] = 9.0
def times(self, a):
    for x in a:
        a[2] *= x
    return a
"""


def program(body: str, **given: Any) -> Vertex:
    return program_of(body, FIELDS, before=BEFORE, **given)


def interpreted(made: Vertex) -> dict[str, Any]:
    result = run(made, ONE, device="python")
    return {name: result[name][0].tolist() for name in "vw"}


@pytest.mark.parametrize(
    ("body", "v", "w"),
    [
        ("a = b = self.v; a[0] = 9.0; self.w = b", [1, 2, 3], [1, 2, 3]),
        ("a = self.v; self.change(); self.w = a", [9, 2, 3], [1, 2, 3]),
        ("t = ((self.v, 1), 2); self.v[0] = 9.0; self.w = t[0][0]", [9, 2, 3], [1, 2, 3]),
        ("s = Spot(self.v, 1); self.v[0] = 9.0; self.w = s.at", [9, 2, 3], [1, 2, 3]),
        ("a = self.spot.at; a[0] = 9.0; self.w = self.spot.at; self.v = a", [9, 5, 6], [4, 5, 6]),
        ("c = sum(a := self.v); a[0] = c; self.w = a", [1, 2, 3], [6, 2, 3]),
        (
            "a, b = self.v, self.w\nfor c in (a, b):\n    c[0] = 9.0\nself.v, self.w = b, a",
            [0, 0, 0],
            [1, 2, 3],
        ),
        ("for c, x in zip((self.v, self.w), (8.0, 9.0)):\n    c[0] = x", [1, 2, 3], [0, 0, 0]),
        (
            "match (self.v, 1):\n    case (a, 1):\n        a[0] = 9.0\n        self.w = a",
            [1, 2, 3],
            [9, 2, 3],
        ),
        ("a = self.v\nfor x in a:\n    a[2] += x\nself.w = a", [1, 2, 3], [1, 2, 9]),
        ("for i, x in enumerate(self.v):\n    self.v[(i + 1) % 3] += x", [4, 3, 5], [0, 0, 0]),
        (
            "for x, y in zip(self.v, self.w):\n    self.v[2] += x\n    self.w[1] += x + y",
            [1, 2, 9],
            [0, 6, 0],
        ),
        ("self.w = self.times(self.v)", [1, 2, 3], [1, 2, 18]),
        ("self.v[0], self.v[1] = self.v[1], self.v[0]", [2, 1, 3], [0, 0, 0]),
        ("i, self.v[i] = 2, 9.0", [1, 2, 9], [0, 0, 0]),
        ("i = 0; self.v[i], i = 9.0, 2; self.w[i] = 8.0", [9, 2, 3], [0, 0, 8]),
        ("self.v[0] = self.w[1] = 5.0", [5, 2, 3], [0, 5, 0]),
        ("i = 0; self.v[(i := i + 1)] += 5.0; self.w[i] = 1.0", [1, 7, 3], [0, 1, 0]),
    ],
)
def test_what_is_bound_is_not_changed(body: str, v: list[float], w: list[float]) -> None:
    if "\n" not in body:
        body = body.replace("; ", "\n")
    made = program(f"{body}\nself.vote_to_halt()")
    for found in (interpreted(made), call_compute(made).states):
        assert (found["v"], found["w"]) == (v, w)


def test_a_trace_shows_what_a_vector_was_before() -> None:
    result = run(program("self.v[0] = 9.0\nself.vote_to_halt()"), ONE, device="python", trace=[7])
    (entry,) = result.trace
    assert (list(entry["before"]["v"]), list(entry["after"]["v"])) == ([1, 2, 3], [9, 2, 3])


PART = "a number of a vector that is a part of something else cannot be assigned: .* x._replace"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("self.spot.at[0] = 1.0", PART),
        ("self.spot.at[0] += 1.0", PART),
        ("self.spot.at[0], self.x = 1.0, 2.0", PART),
        ("s.at[1] *= 2.0", PART),
        ("self.spot.level = 3", r"a part of a NamedTuple is not assigned: .* x._replace\(level=...\)"),
        ("self.spot.level += 3", r"a part of a NamedTuple is not assigned: .* x._replace\(level=...\)"),
        ("self.spot.at += 3.0", r"a part of a NamedTuple is not assigned: .* x._replace\(at=...\)"),
        ("s.level += 3", r"a part of a NamedTuple is not assigned: .* x._replace\(level=...\)"),
    ],
)
def test_a_part_of_a_record_is_not_assigned(device: str, line: str, says: str) -> None:
    with pytest.raises(CompileError, match=says) as caught:
        run(program(f"s = self.spot\n{line}\nself.w = s.at\nself.vote_to_halt()"), ONE, device=device)
    assert caught.value.source == line


@pytest.mark.parametrize("device", DEVICES)
def test_a_part_of_a_message_is_not_assigned(device: str) -> None:
    body = "for m in messages:\n    m.at[0] = 1.0\nself.send_to_neighbors(self.spot)\nself.vote_to_halt()"
    graph = Graph.from_edges([0], [1])
    with pytest.raises(CompileError, match=PART) as caught:
        run(program(body, message="message=Spot"), graph, device=device)
    assert caught.value.source == "m.at[0] = 1.0"


@pytest.mark.parametrize("device", DEVICES)
def test_messages_with_vectors_have_no_order(device: str) -> None:
    body = "if messages:\n    self.v = max(messages, key=lambda m: m.level).at\nself.send_to_neighbors(self.spot)"
    graph = Graph.from_edges([0], [1])
    with pytest.raises((CompileError, TypeError), match="messages with vectors have no order"):
        run(program(body, message="message=Spot"), graph, device=device)


STAR = Graph.from_edges([0, 1, 2], [3, 3, 3])
SEND = "\nif self.superstep == 0:\n    self.send_to_neighbors(Spot((self.id, 1.0, 2.0), self.id))\nself.vote_to_halt()"


@pytest.mark.parametrize(
    ("body", "v", "w"),
    [  # at a vertex that hears of levels 0, 1 and 2
        ("for m in messages:\n    self.v[0] = self.v[0] * 2.0 + 1.0", [15, 2, 3], [0, 0, 0]),
        ("for m in messages:\n    self.v[0] = self.v[1] + 1.0\n    self.v[1] = self.v[0] * 2.0",
            [15, 30, 3], [0, 0, 0]),
        ("for m in messages:\n    if self.v[0] < 5.0:\n        self.w[1] += 1.0\n    self.v[0] = 5.0",
            [5, 2, 3], [0, 1, 0]),
        ("c = 0.0\nv = self.v\nfor m in messages:\n    if v[0] < 5.0:\n        c += 1\n    v[0] = 5.0\nself.w[0] = c",
            [1, 2, 3], [1, 0, 0]),
        ("for m in messages:\n    self.v[0] = 1.0\n    self.v += m.at * 0.0 + 1.0", [2, 5, 6], [0, 0, 0]),
        ("i = 0\nfor m in messages:\n    i += 1\n    self.v[i % 3] = 9.0", [9, 9, 9], [0, 0, 0]),
        ("for m in messages:\n    self.v[m.level] = 9.0", [9, 9, 9], [0, 0, 0]),
        ("for m in messages:\n    a = m.at\n    a[0] = 1.0\n    self.w += a\nfor m in messages:\n    self.v += m.at",
            [4, 5, 9], [3, 3, 6]),
        ("for at, level in messages:\n    at[0] = 1.0\n    self.w += at\nfor m in messages:\n    self.v += m.at",
            [4, 5, 9], [3, 3, 6]),
        ("for m in messages:\n    a = self.w\n    a[0] = 4.0\n    self.v += a", [13, 2, 3], [0, 0, 0]),
    ],
)  # fmt: skip
def test_a_loop_over_messages_that_changes_numbers_reads_them_one_by_one(
    body: str, v: list[float], w: list[float]
) -> None:
    made = program(body + SEND, message="message=Spot")
    assert analyse(made).consumption is Consumption.LISTED
    for device in DEVICES:
        result = run(made, STAR, device=device)
        assert (result["v"][3].tolist(), result["w"][3].tolist()) == (v, w), device


def test_a_loop_over_messages_may_set_a_number_and_still_combine() -> None:
    made = program(
        "for m in messages:\n    self.w += m.at\n    self.v[1] = 5.0" + SEND, message="message=Spot"
    )
    assert analyse(made).consumption is Consumption.COMBINED
    for device in DEVICES:
        result = run(made, STAR, device=device)
        assert (result["v"][3].tolist(), result["w"][3].tolist()) == ([1, 5, 3], [3, 3, 6]), device


NANS = ["math.nan", "-math.nan", "self.x / 0.0", "-(self.x / 0.0)", "math.sqrt(-1.0 - self.x)"]


def test_every_nan_is_positive_to_copysign() -> None:
    made = [
        program(
            f"a = {nan}\nself.w = (math.copysign(2.0, a), np.copysign(3.0, -a), math.copysign(4.0, -0.0))\n"
            "self.v = np.copysign(self.v, -Vector[float, 3](a))\nself.vote_to_halt()"
        )
        for nan in NANS
    ]
    found = [interpreted(m) for m in made] + [call_compute(m).states for m in made]
    found += [called.states for called in call_on_host(made)] if has_compiler() else []
    assert all((f["v"], f["w"]) == ([1, 2, 3], [2, 3, -4]) for f in found)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions_one_by_one_read_parts_of_records_and_functions(device: str) -> None:
    body = (
        "self.x = max((m.at[1] for m in messages if m.level > self.x), default=self.spot.at[1])\n"
        "self.w[0] = messages.most_common(key=lambda m: int(m.at[2]) + m.level, default=-1)"
    )
    result = run(program(body + SEND, message="message=Spot"), STAR, device=device)
    assert result["x"].tolist() == [5.0, 5.0, 5.0, 5.0]
    assert result["w"][:, 0].tolist() == [-1, -1, -1, 2]
