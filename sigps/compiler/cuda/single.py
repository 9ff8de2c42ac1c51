"""Single precision inside compute(): what Python's `float` is in arrays, it is in registers too.

A GPU divides doubles in some thirty instructions, and a program that keeps floats in 32 bits needs no more.
`+ - * /` of a float and any number are done in float32, as are quotients of whole numbers; contributions to
aggregators are still summed in the type that those have. Imports numba-cuda.
"""

from __future__ import annotations

import ast
import copy
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.extending import overload

__all__ = ["in_single", "single_operations"]

_NAMES = {ast.Add: "__add", ast.Sub: "__sub", ast.Mult: "__mul", ast.Div: "__div"}
_OPERATORS = {"__add": operator.add, "__sub": operator.sub, "__mul": operator.mul, "__div": operator.truediv}
_LARGEST = float(np.finfo(np.float32).max)


def in_single(module: ast.Module) -> ast.Module:
    """Return a program's functions with calls of `single_operations` in the place of operators."""
    written: ast.Module = _InSingle().visit(copy.deepcopy(module))
    return ast.fix_missing_locations(written)


@functools.cache
def single_operations() -> dict[str, Callable[..., Any]]:
    """Return the functions that `in_single` writes calls of, by their names."""
    return {name: _single(operation) for name, operation in _OPERATORS.items()}


class _InSingle(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("float64", "uint8"):
            return node  # what the compiler itself writes: contributions, and flags
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in _NAMES:
            return node
        return _call(_NAMES[type(node.op)], [node.left, node.right], node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in _NAMES or not isinstance(node.target, ast.Name):
            return node
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        value = _call(_NAMES[type(node.op)], [before, node.value], node)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is not float or abs(node.value) > _LARGEST:
            return node
        single = ast.Attribute(ast.Name("__np", ast.Load()), "float32", ast.Load())
        return ast.copy_location(ast.Call(single, [node], []), node)


def _call(name: str, arguments: list[ast.expr], like: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), like)


def _single(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def stand_in(a: Any, b: Any) -> Any:
        raise NotImplementedError("compiled code only")

    @overload(stand_in)
    def typed(a, b):  # type: ignore[no-untyped-def]
        numbers = (types.Integer, types.Float, types.Boolean)
        if not (isinstance(a, numbers) and isinstance(b, numbers)):
            return lambda a, b: operation(a, b)
        if operation is operator.truediv or isinstance(a, types.Float) or isinstance(b, types.Float):
            return lambda a, b: operation(np.float32(a), np.float32(b))
        return lambda a, b: operation(a, b)

    return stand_in
