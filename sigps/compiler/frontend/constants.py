"""Constant folding: what is fixed when a program is compiled, and the branches that it rules out."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.compiler.frontend.syntax import at, cast, is_self, visited
from sigps.native.trees import copied

__all__ = ["Constants", "constant_of", "fold_constants"]


@dataclass(frozen=True)
class Constants:
    """Which `self.x` are fixed when a program is compiled.

    Attributes:
        values: Those of class attributes, and of parameters that are not one number.
        vectors: Those of parameters that are vectors: the type of the row, and its numbers.
        numbers: Parameters that are one number, and so never None.
        properties: Names of the user's properties: read without a call.
    """

    values: Mapping[str, Any]
    vectors: Mapping[str, tuple[np.dtype[Any], tuple[Any, ...]]]
    numbers: Collection[str]
    properties: Collection[str]


def fold_constants(tree: ast.FunctionDef, fixed: Constants) -> ast.FunctionDef:
    """Return a copy with constants in place and without the branches that never run."""
    folded: ast.FunctionDef = _Folder(fixed).visit(copied(tree))
    return folded


def constant_of(value: Any) -> Any:
    """Return a number, string, None or tuple of these as plain Python; `NotImplemented` for anything else."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return value.item()
    if value is None:
        return None
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if type(value) is tuple:
        parts = tuple(constant_of(v) for v in value)
        return NotImplemented if NotImplemented in parts else parts
    return NotImplemented


_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: lambda a, b: a is b if b is None else a == b,
    ast.IsNot: lambda a, b: a is not b if b is None else a != b,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


class _Folder(ast.NodeTransformer):
    def __init__(self, fixed: Constants) -> None:
        self._fixed = fixed

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not is_self(node) or not isinstance(node.ctx, ast.Load):
            return node
        if node.attr in self._fixed.values:
            return ast.copy_location(ast.Constant(self._fixed.values[node.attr]), node)
        if node.attr in self._fixed.vectors:
            dtype, numbers = self._fixed.vectors[node.attr]
            return at([cast(dtype, ast.Constant(numbers))], node)[0]  # type: ignore[arg-type]
        if node.attr in self._fixed.properties:
            return ast.copy_location(ast.Call(node, [], []), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        left, right = node.left, node.comparators[0]
        is_number = is_self(left) and left.attr in self._fixed.numbers
        self.generic_visit(node)
        if len(node.ops) != 1 or type(node.ops[0]) not in _OPERATORS:
            return node
        if is_number and isinstance(right, ast.Constant) and right.value is None:
            return ast.copy_location(ast.Constant(isinstance(node.ops[0], (ast.IsNot, ast.NotEq))), node)
        values = [_value(side) for side in (node.left, node.comparators[0])]
        if NotImplemented in values:
            return node
        try:
            value = _OPERATORS[type(node.ops[0])](*values)
        except TypeError:
            return node
        return ast.copy_location(ast.Constant(value), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """In Python an integer to a negative power is a float; compiled integers would give 0."""
        self.generic_visit(node)
        if (
            isinstance(node.op, ast.Pow)
            and isinstance(node.right, ast.UnaryOp)
            and isinstance(node.right.op, ast.USub)
        ):
            one = ast.copy_location(ast.Constant(1.0), node)
            node.left = ast.copy_location(ast.BinOp(node.left, ast.Mult(), one), node)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.copy_location(ast.Constant(not node.operand.value), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Drop constants that cannot decide the result, but never the last value, which may be the result."""
        self.generic_visit(node)
        decisive = isinstance(node.op, ast.Or)
        kept: list[ast.expr] = []
        for value in node.values:
            is_constant = isinstance(value, ast.Constant)
            if not is_constant or value is node.values[-1] or bool(value.value) is decisive:  # type: ignore[attr-defined]
                kept.append(value)
            if is_constant and bool(value.value) is decisive:  # type: ignore[attr-defined]
                break
        node.values = kept
        return kept[0] if len(kept) == 1 else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_If(self, node: ast.If) -> Any:
        test = node.test
        node.test = test = self.visit(test)
        decided = _truth(test)
        if decided is None:
            node.body, node.orelse = visited(self, node.body) or [_nothing(node)], visited(self, node.orelse)
            return node
        return visited(self, node.body if decided else node.orelse)

    def visit_For(self, node: ast.For | ast.While) -> Any:
        self.generic_visit(node)
        node.body = node.body or [_nothing(node)]
        return node

    visit_While = visit_For  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Drop annotations too: the names in them need not be defined."""
        node.body = visited(self, node.body) or [_nothing(node)]
        node.returns, node.decorator_list = None, []
        for arg in node.args.args:
            arg.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        return ast.copy_location(ast.Assign([node.target], node.value), node) if node.value else None

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Drop docstrings."""
        self.generic_visit(node)
        return None if isinstance(node.value, ast.Constant) else node


def _truth(test: ast.expr) -> bool | None:
    """Return the constant truth of a test, or None; `x and False` is false for every x."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.BoolOp):
        last = test.values[-1]
        is_decisive = isinstance(last, ast.Constant) and bool(last.value) is isinstance(test.op, ast.Or)
        return bool(last.value) if is_decisive else None  # type: ignore[attr-defined]
    return None


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple) and all(isinstance(e, ast.Constant) for e in node.elts):
        return tuple(e.value for e in node.elts)  # type: ignore[attr-defined]
    return NotImplemented


def _nothing(node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Pass(), node)
