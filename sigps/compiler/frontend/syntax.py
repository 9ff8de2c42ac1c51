"""Small builders and tests for Python syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

import numpy as np

from sigps.native.trees import copied, parse, parse_expression, walk

__all__ = [
    "VECTOR",
    "assign",
    "assigned_names",
    "at",
    "cast",
    "expression",
    "function",
    "is_self",
    "loaded_names",
    "placed",
    "rename",
    "scalar_type",
    "statements",
    "substitute",
    "tuple_of",
    "visited",
]

VECTOR = "__vector_"
"""What names of vector types in generated code begin with; behind it the type of the numbers, and how many."""

Node = TypeVar("Node", bound=ast.AST)


def expression(text: str, **parts: ast.expr) -> ast.expr:
    """Parse one expression, with parts in the place of their names; it has no line number until `at` gives it one."""
    return substitute(_unplaced(parse_expression(text)), parts)


def statements(text: str) -> list[ast.stmt]:
    """Parse statements; they have no line numbers until `at` gives them some."""
    return [_unplaced(statement) for statement in parse(text).body]


def _unplaced(tree: Node) -> Node:
    for node in walk(tree):
        for attribute in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            node.__dict__.pop(attribute, None)
    return tree


def assign(name: str, value: ast.expr) -> ast.Assign:
    """Build `name = value`."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def tuple_of(values: Sequence[ast.expr]) -> ast.Tuple:
    """Build a tuple."""
    return ast.Tuple(list(values), ast.Load())


def cast(dtype: np.dtype[Any], value: ast.expr) -> ast.expr:
    """Return the expression that turns a value into one NumPy scalar type, or a vector of one."""
    return ast.Call(expression(scalar_type(dtype)), [value], [])


def scalar_type(dtype: np.dtype[Any]) -> str:
    """Return the text that names a NumPy scalar type, or that of a vector, in generated code."""
    if dtype.shape:
        return f"{VECTOR}{dtype.base.name}_{dtype.shape[0]}"
    return f"__np.{'bool_' if dtype.kind == 'b' else dtype.name}"


def at(nodes: Iterable[Node], place: ast.AST) -> list[Node]:
    """Give new nodes the position of an old one, so that errors point into the user's file."""
    placed = []
    file = getattr(place, "sigps_file", None)
    for node in nodes:
        for child in walk(node):
            if "lineno" in child._attributes and not hasattr(child, "lineno"):
                ast.copy_location(child, place)
            if file is not None and not hasattr(child, "sigps_file"):
                child.sigps_file = file  # type: ignore[attr-defined]
        placed.append(ast.fix_missing_locations(node))
    return placed


def placed(node: Node, file: str, line: int, number: int = 0) -> Node:
    """Give a new node a place outside compiled functions; `number` tells it from others in that line."""
    for child in walk(node):
        child.sigps_file = file  # type: ignore[attr-defined]
        if "lineno" in child._attributes:
            child.lineno = child.end_lineno = line  # type: ignore[attr-defined]
            child.col_offset, child.end_col_offset = number, number + 1  # type: ignore[attr-defined]
    return node


def function(name: str, params: Sequence[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
    """Build a function."""
    tree = statements(f"def {name}({', '.join(params)}): pass")[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.body = list(body)
    return tree


def is_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Tell whether a node is `self.something`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def visited(visitor: ast.NodeTransformer, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a block as a visitor leaves it; the list may be changed in place."""
    block = ast.Module(body, [])
    visitor.generic_visit(block)
    return block.body


def assigned_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names assigned anywhere inside."""
    return _names(nodes, ast.Store)


def loaded_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names read anywhere inside."""
    return _names(nodes, ast.Load)


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    found = (n for node in nodes for n in walk(node) if isinstance(n, ast.Name))
    return {n.id for n in found if isinstance(n.ctx, context)}


def rename(tree: Node, names: Mapping[str, str]) -> Node:
    """Return a copy with local names replaced."""
    tree = copied(tree)
    for node in walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
    return tree


def substitute(node: Node, parts: Mapping[str, ast.expr]) -> Node:
    """Return a copy in which every read of these names is an expression."""

    class Substitute(ast.NodeTransformer):
        def visit_Name(self, found: ast.Name) -> ast.expr:
            is_read = found.id in parts and isinstance(found.ctx, ast.Load)
            return copied(parts[found.id]) if is_read else found

    result: Node = Substitute().visit(copied(node))
    return result
