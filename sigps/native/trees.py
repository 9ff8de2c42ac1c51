"""Syntax trees as values."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from typing import TypeVar

__all__ = ["copied", "walk"]

T = TypeVar("T")


def copied(tree: T) -> T:
    """Return a copy of a syntax tree, or of a list of them, with the marks on its nodes; other values are shared.

    So are nodes that only say how a name is used, which nothing changes: `ast.parse` shares them, too. Passes over a
    program copy much, and this takes a sixth of the time of `copy.deepcopy`.
    """
    if isinstance(tree, list):
        return [copied(item) for item in tree]  # type: ignore[return-value]
    if not isinstance(tree, ast.AST) or not tree._fields:
        return tree
    made = type(tree).__new__(type(tree))
    held = vars(made)
    for name, value in vars(tree).items():
        held[name] = copied(value) if isinstance(value, (ast.AST, list)) else value
    return made


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree as `ast.walk` does, in its order, in a quarter of the time."""
    waiting = deque([tree])
    while waiting:
        node = waiting.popleft()
        held = vars(node)
        for name in node._fields:
            value = held.get(name)
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting.extend([item for item in value if isinstance(item, ast.AST)])
        yield node
