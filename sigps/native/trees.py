"""Syntax trees as values."""

from __future__ import annotations

import ast
from typing import TypeVar

__all__ = ["copied"]

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
