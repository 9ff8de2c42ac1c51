"""Copies of syntax trees."""

from __future__ import annotations

import ast
import inspect

from sigps.native import trees
from sigps.native.trees import copied, walk


def test_a_copy_is_the_same_and_nothing_of_it_is_shared() -> None:
    tree = ast.parse(inspect.getsource(trees))
    twin = copied(tree)
    assert ast.dump(twin, include_attributes=True) == ast.dump(tree, include_attributes=True)
    nodes = [node for node in ast.walk(tree) if node._fields]
    assert {id(node) for node in nodes}.isdisjoint(id(node) for node in ast.walk(twin))
    before = ast.dump(tree)
    twin.body.clear()
    assert ast.dump(tree) == before


def test_marks_on_nodes_and_lists_of_nodes_are_copied() -> None:
    statements = ast.parse("a = b\nc = d").body
    statements[0].sigps_file = "somewhere"  # type: ignore[attr-defined]
    twins = copied(statements)
    assert twins is not statements
    assert [ast.unparse(s) for s in twins] == ["a = b", "c = d"]
    assert twins[0].sigps_file == "somewhere"


def test_a_walk_is_that_of_python() -> None:
    tree = ast.parse(
        inspect.getsource(trees) + "\nasync def f(*a, b=1, **c):\n    return {**c, 'x': lambda: (yield)}\n"
    )
    assert [id(node) for node in walk(tree)] == [id(node) for node in ast.walk(tree)]
    seen = []
    for node in walk(tree):  # children are known before a node is changed
        seen.append(node)
        if isinstance(node, ast.Module):
            node.body = []
    assert len(seen) > 100
