"""Copies of syntax trees."""

from __future__ import annotations

import ast
import gc
import inspect
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from sigps.native import trees
from sigps.native.trees import copied, parse, walk


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


def test_threads_parse_at_the_same_time() -> None:
    """Python 3.11.7 raised SystemError here in most attempts, where threads called `ast.parse` themselves."""
    text = "def f(a):\n" + "".join(f"    a = (a + {i}) * a[{i}](a, [1, {{3: 4}}])\n" for i in range(60))

    class Yields:
        """A cycle whose collection lets other threads go on, in the middle of a tree."""

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            time.sleep(0)

    def work(_: int) -> set[str]:
        found = set()
        for _ in range(40):
            for _ in range(3):
                Yields()
            found.add(ast.dump(parse(text)))
        return found

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(5)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
    assert found == [{ast.dump(ast.parse(text))}] * 4
