"""Syntax trees as values."""

from __future__ import annotations

import ast
import threading
from collections import deque
from collections.abc import Iterator
from typing import TypeVar

__all__ = ["copied", "parse", "parse_expression", "walk"]

T = TypeVar("T")

_parsing = threading.Lock()


def parse(text: str) -> ast.Module:
    """Return the tree of a text as `ast.parse` does, in one thread at a time.

    Python 3.11 before 3.11.8 counts the depth of the trees that all threads make in one place: where two made some at
    once, it raised SystemError now and then (CPython, issue 106905).
    """
    with _parsing:
        return ast.parse(text)


def parse_expression(text: str) -> ast.expr:
    """Return the tree of an expression, in one thread at a time, as `parse` does."""
    with _parsing:
        return ast.parse(text, mode="eval").body


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
