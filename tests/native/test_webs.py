"""Names are split where no read joins their assignments, and only there."""

from __future__ import annotations

import ast

import pytest
from cells import program_of

from sigps import Graph, run
from sigps.native.webs import split_variables


def split(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    tree = ast.parse(f"def f(a):\n{lines}").body[0]
    assert isinstance(tree, ast.FunctionDef)
    return "\n".join(ast.unparse(statement) for statement in split_variables(tree).body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("t = a\nx = t\nt = 0.5\ny = t", "t = a\nx = t\nt.1 = 0.5\ny = t.1"),
        ("a = a + 1\nreturn a", "a.1 = a + 1\nreturn a.1"),
        ("t = 1\nif a:\n    t = 2\nreturn t", "t = 1\nif a:\n    t = 2\nreturn t"),
        ("if a:\n    t = 1\n    x = t\nelse:\n    t = 2\n    x = t\nreturn x", None),
        ("t = 0\nwhile a > t:\n    t = t + 1\nreturn t", "t = 0\nwhile a > t:\n    t = t + 1\nreturn t"),
        ("t = 0\nfor i in a:\n    if i:\n        break\n    t = i\nreturn t", None),
        ("t = 0\nt += a\nreturn t", "t = 0\nt += a\nreturn t"),
    ],
)
def test_names(body: str, expected: str | None) -> None:
    found = split(body)
    if expected is not None:
        assert found == expected
        return
    assert found.count("x.1") == 0  # what a later read joins stays one variable
    assert found.splitlines()[-1] == body.splitlines()[-1]


def test_parts_of_a_name_have_types_of_their_own() -> None:
    body = "t = self.id\nself.n = t + 1\nt = 0.5\nfor i in range(3):\n    t = t * 2\nself.x = t\nself.vote_to_halt()"
    program = program_of(body, "n: State[int] = 0")
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    for device in ("python", "cpu"):
        result = run(program, graph, device=device)
        assert (result["n"].tolist(), result["x"].tolist()) == ([1, 2, 3], [4.0] * 3)
