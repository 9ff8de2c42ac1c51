"""Tables: `self.weights[i]` and `len(self.weights)` become calls; a table is nothing else than read so."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from sigps.compiler.frontend.syntax import at, is_self
from sigps.native.source import reject

__all__ = ["name_table_reads"]


def name_table_reads(tree: ast.FunctionDef, tables: Collection[str]) -> ast.FunctionDef:
    """Write each read of a table as a call, in place.

    Raises:
        CompileError: If a table is used otherwise.
    """
    if not tables:
        return tree
    found: ast.FunctionDef = _Reads(tables).visit(tree)
    return found


class _Reads(ast.NodeTransformer):
    def __init__(self, tables: Collection[str]) -> None:
        self._tables = tables

    def _is_table(self, node: ast.AST) -> bool:
        return is_self(node) and node.attr in self._tables

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not self._is_table(node.value):
            return self.generic_visit(node)
        name = ast.unparse(node.value)
        if not isinstance(node.ctx, ast.Load):
            reject(node, f"{name} is a table, and a parameter of the run: it is read only")
        if isinstance(node.slice, ast.Slice):
            reject(node, f"a table is read one number at a time: {name}[i]")
        call = ast.Call(ast.Name("__table_at", ast.Load()), [node.value, self.visit(node.slice)], [])
        return at([call], node)[0]

    def visit_Call(self, node: ast.Call) -> Any:
        is_len = isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1
        if not is_len or not self._is_table(node.args[0]):
            return self.generic_visit(node)
        return at([ast.Call(ast.Name("__table_size", ast.Load()), node.args, [])], node)[0]

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if self._is_table(node):
            name = ast.unparse(node)
            reject(node, f"{name} is a table: read {name}[i] and len({name})")
        return self.generic_visit(node)
