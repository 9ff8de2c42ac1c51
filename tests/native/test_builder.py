"""What the builder refuses, at the line where it stands; and what types it gives parameters."""

from __future__ import annotations

import pytest
from battery import BATTERY
from cells import program_of
from drawn_programs import call_compute, call_on_host
from host_cpp import has_compiler

from sigps import CompileError, Graph, run

GRAPH = Graph.from_edges([0, 1, 2], [1, 2, 0])


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("def f(self, a):\n    if a > 1:\n        return 2", "on one path and None on another"),
        ("def f(self, a):\n    for i in range(a):\n        return i", "on one path and None on another"),
        ("def f(self, a):\n    return self.f(a - 1) if a else 0", "calls itself"),
        ("def f(self, a):\n    return (1, 2)[5]", "has no part 5"),
        ("def f(self, a):\n    return 1.5 & 2", "whole numbers"),
        ("def f(self, a):\n    return 9223372036854775808", "np.uint64"),
    ],
)
def test_refused(method: str, says: str) -> None:
    program = program_of("self.x = self.f(self.id)\nself.vote_to_halt()", method)
    with pytest.raises(CompileError, match=says):
        run(program, GRAPH, device="cpu")


def test_all_paths_return() -> None:
    method = "def f(self, a):\n    while True:\n        if a > 1:\n            return a\n        a += 1"
    program = program_of("self.x = self.f(self.id)\nself.vote_to_halt()", method)
    for device in ("python", "cpu"):
        assert run(program, GRAPH, device=device)["x"].tolist() == [2.0] * 3


ARGUMENTS = """
k: State[np.uint8] = 5
b: State[bool] = True
parts: State[float] = 0.0
def halved(self, number):
    while number > 1:
        number = number / 2
    return number
def doubled(self, number):
    if number:
        number = number * 2
    return number
def filled(self, vector):
    if self.k > 0:
        vector = vector + Vector[float, 3](1.5)
    return sum(vector)
def found(self, other, number):
    if number > 7:
        other = self.id
    return number if other is None else -1
"""
BODY = """
self.parts = self.filled(self.k)
self.x = self.halved(self.k) + self.doubled(self.b) + self.found(None, self.k)
self.vote_to_halt()
"""


def test_a_parameter_has_the_type_of_all_that_is_assigned_to_it() -> None:
    program = program_of(BODY, ARGUMENTS, before="from sigps import Vector")
    judge = run(program, BATTERY["one_vertex"].build(), device="python")
    called = [call_compute(program), *(call_on_host([program]) if has_compiler() else ())]
    for found in called:
        assert found.fault is None
        assert found.states["x"] == judge["x"][0] == 0.625 + 2 + 5
        assert found.states["parts"] == judge["parts"][0] == 19.5


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("self.v.sum()", r"Vector\[float, 3\] has no method 'sum': write sum\(v\)"),
        ("self.x.hypot(3)", "float has no method 'hypot'"),
        ("sum(e.target.foo(2) for e in self.out_edges)", "int has no method 'foo'"),
        ("self.v[1:2][0](4)", "this is float, which cannot be called"),
        ("Vector[float, self.id](self.x)[0]", "the length of a vector is a constant"),
    ],
)
def test_errors_are_in_the_words_of_compute(call: str, says: str) -> None:
    program = program_of(
        f"self.x = {call}", "v: State[Vector[float, 3]] = 0.0", before="from sigps import Vector"
    )
    with pytest.raises(CompileError, match=says) as caught:
        run(program, GRAPH, device="cpu")
    assert "__" not in str(caught.value)
