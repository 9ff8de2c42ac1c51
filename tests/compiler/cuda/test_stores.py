"""Which state fields compute() assigned, and whether it wrote to edges: told for every way in which it may."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from sigps import State, Vertex
from sigps.compiler.cuda.stores import reporting_changes, reports_changes
from sigps.compiler.frontend.analysis import analyse

BODIES: dict[str, tuple[str, tuple[bool, ...]]] = {
    "nothing": ("pass", (False, False, False)),
    "one": ("__s_a = 5", (True, False, False)),
    "another": ("__s_b += 1", (False, True, False)),
    "both at once": ("__s_a, __s_b = __s_b, __s_a", (True, True, False)),
    "the same value": ("__s_a = __s_a", (True, False, False)),
    "annotated": ("__s_b: int = 3", (False, True, False)),
    "on the path taken": ("if __s_a == 1:\n  __s_b = 2\nelse:\n  __s_a = 3", (False, True, False)),
    "on another path": ("if __s_a == 7:\n  __s_b = 2", (False, False, False)),
    "by a loop": ("for __s_a in range(3):\n  pass", (True, False, False)),
    "by a loop of nothing": ("for __s_a in range(0):\n  pass", (False, False, False)),
    "within a loop": ("while __s_b < 9:\n  __s_b += 1", (False, True, False)),
    "within an expression": ("x = (__s_a := 4)", (True, False, False)),
    "an edge": ("for at in range(2):\n  __pending_kept[at] = 5", (False, False, True)),
    "an edge, and a field": ("__pending_kept[0] = __s_a\n__s_b = 3", (False, True, True)),
    "an edge among others": ("x, (__pending_kept[0], __s_a) = 1, (2, 3)", (True, False, True)),
    "no edge": ("for at in range(0):\n  __pending_kept[at] = 5", (False, False, False)),
    "before it returns": ("__s_a = 2\nif __s_a:\n  return (__s_a, __s_b), 0, (), ()", (True, False, False)),
}


def outcome_of(body: str) -> Any:
    lines = ["def compute(__state):", "    __s_a, __s_b = __state", *(f"    {x}" for x in body.split("\n"))]
    module = ast.parse("\n".join([*lines, "    return (__s_a, __s_b), 0, (), ()"]))
    assert reports_changes(module)
    before = ast.unparse(module)
    names: dict[str, Any] = {"__pending_kept": [0, 0]}
    exec(compile(reporting_changes(module), "told", "exec"), names)
    assert ast.unparse(module) == before  # the program's own functions stay as they are
    return names["compute"]((1, 2))


@pytest.mark.parametrize("case", BODIES)
def test_what_was_assigned_is_told(case: str) -> None:
    body, changed = BODIES[case]
    state, *_, told = outcome_of(body)
    assert told == changed
    assert [a == b or c for a, b, c in zip(state, (1, 2), changed[:2], strict=True)] == [True, True]


class Returns(Vertex):
    """Three ways out of compute()."""

    a: State[int] = 0
    b: State[int] = 0

    def compute(self, messages):
        self.vote_to_halt()
        if self.id == 1:
            self.a = 1
            return
        if self.id == 2:
            return
        self.b = 2


def test_each_return_tells_once() -> None:
    module = reporting_changes(analyse(Returns()).module)
    function = next(n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == "compute")
    returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    assert len(returned) == 3
    for value in returned:
        assert isinstance(value, ast.Tuple)
        assert len(value.elts) == 5


def test_state_that_is_handed_on_is_not_looked_into() -> None:
    assert not reports_changes(ast.parse("def compute(__state):\n    return __compute(__state)"))
    assert not reports_changes(ast.parse("def compute(__state):\n    () = __state\n    return (), 0, (), ()"))
