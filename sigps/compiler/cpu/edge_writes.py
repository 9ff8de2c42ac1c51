"""Whether a call of compute() wrote to edges: only the rows of vertices that did are committed."""

from __future__ import annotations

import ast

from sigps.compiler.program import VertexProgram
from sigps.kernels.cpu.arguments import WROTE
from sigps.native.trees import copied, parse_expression, walk

__all__ = ["telling_edge_writes"]

_WROTE, _PENDING = "__wrote", "__pending_"


def telling_edge_writes(program: VertexProgram) -> ast.Module:
    """Return a program's functions; where it keeps values on edges, compute() returns whether it wrote some: WROTE."""
    if not program.edge_states:
        return program.module
    module = copied(program.module)
    function = next(n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == "compute")
    _Telling().generic_visit(function)
    function.body.insert(0, ast.copy_location(_set(False), function.body[0]))
    return ast.fix_missing_locations(module)


class _Telling(ast.NodeTransformer):
    """Sets a variable after each assignment to an edge state, and returns it among the flags."""

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        return self._told(node, node.targets)

    def visit_AugAssign(self, node: ast.AugAssign | ast.AnnAssign) -> list[ast.stmt]:
        return self._told(node, [node.target])

    visit_AnnAssign = visit_AugAssign  # noqa: N815

    def visit_Return(self, node: ast.Return) -> ast.Return:
        assert isinstance(node.value, ast.Tuple)  # which all returns share, the object too
        state, flags, *others = node.value.elts
        told = parse_expression(f"__np.uint8(__flags | ({WROTE} if {_WROTE} else 0))")
        assert isinstance(told, ast.Call)
        assert isinstance(told.args[0], ast.BinOp)
        told.args[0].left = flags
        return ast.copy_location(ast.Return(ast.Tuple([state, told, *others], ast.Load())), node)

    def _told(self, node: ast.stmt, targets: list[ast.expr]) -> list[ast.stmt]:
        if not any(_is_of_edges(target) for target in targets):
            return [node]
        return [node, ast.copy_location(_set(True), node)]


def _is_of_edges(target: ast.expr) -> bool:
    stored = (n for n in walk(target) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return any(ast.unparse(n.value).startswith(_PENDING) for n in stored)


def _set(value: bool) -> ast.stmt:
    return ast.Assign([ast.Name(_WROTE, ast.Store())], ast.Constant(value))
