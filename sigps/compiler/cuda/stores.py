"""Which state fields a call of compute() assigned, and whether it wrote to edges: only these are written back.

Most vertices of a search take a path that leaves their state alone, and a GPU would move it through memory and
back. The CPU's loops keep it in their caches, so they write all of it. What was not written to edges is not committed:
a minimum spanning forest writes to edges in two of its five phases.
"""

from __future__ import annotations

import ast

from sigps.native.trees import copied, walk

__all__ = ["reporting_changes", "reports_changes"]

_STATE, _CHANGED, _PENDING = "__s_", "__changed_", "__pending_"
_EDGES = f"{_STATE}__edges"


def reports_changes(module: ast.Module) -> bool:
    """Return whether compute() assigns state fields itself, and not through another function."""
    return bool(_fields(_compute(module)))


def reporting_changes(module: ast.Module) -> ast.Module:
    """Return a program's functions, of which compute() also returns, for each field, whether it was assigned.

    And last, whether it wrote to edges.
    """
    written = copied(module)
    function = _compute(written)
    names = [*_fields(function), _EDGES]
    function.body = [s for statement in function.body for s in _Reporting(names).flattened(statement)]
    begin = next(i for i, s in enumerate(function.body) if _unpacks_state(s)) + 1
    in_expressions = {n.target.id for n in walk(function) if isinstance(n, ast.NamedExpr)}
    function.body[begin:begin] = [_set(name, name in in_expressions) for name in names]
    return ast.fix_missing_locations(written)


class _Reporting(ast.NodeTransformer):
    """Sets a flag after each assignment of a field, and returns the flags with the outcome."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def flattened(self, statement: ast.stmt) -> list[ast.stmt]:
        if _unpacks_state(statement):
            return [statement]
        visited = self.visit(statement)
        return visited if isinstance(visited, list) else [visited]

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        return [node, *self._flags(*node.targets)]

    def visit_AugAssign(self, node: ast.AugAssign | ast.AnnAssign) -> list[ast.stmt]:
        return [node, *self._flags(node.target)]

    visit_AnnAssign = visit_AugAssign  # noqa: N815

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.body[:0] = self._flags(node.target)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        assert isinstance(node.value, ast.Tuple)  # which all returns share
        flags: list[ast.expr] = [ast.Name(_flag(name), ast.Load()) for name in self._names]
        node.value = ast.Tuple([*node.value.elts, ast.Tuple(flags, ast.Load())], ast.Load())
        return node

    def _flags(self, *targets: ast.expr) -> list[ast.stmt]:
        stored = {n.id for target in targets for n in walk(target) if isinstance(n, ast.Name)}
        if any(map(_is_of_edges, targets)):
            stored.add(_EDGES)
        return [_set(name, True) for name in self._names if name in stored]


def _compute(module: ast.Module) -> ast.FunctionDef:
    return next(n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == "compute")


def _fields(function: ast.FunctionDef) -> list[str]:
    """Return the names that the state is unpacked to, in its order; none where it is handed on as it is."""
    for statement in function.body:
        if _unpacks_state(statement):
            assert isinstance(statement, ast.Assign)
            return [n.id for n in walk(statement.targets[0]) if isinstance(n, ast.Name)]
    return []


def _unpacks_state(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name):
        return False
    names = [n.id for n in walk(statement.targets[0]) if isinstance(n, ast.Name)]
    return statement.value.id == "__state" and bool(names) and all(n.startswith(_STATE) for n in names)


def _is_of_edges(target: ast.expr) -> bool:
    stored = (n for n in walk(target) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return any(ast.unparse(n.value).startswith(_PENDING) for n in stored)


def _flag(name: str) -> str:
    return _CHANGED + name.removeprefix(_STATE)


def _set(name: str, value: bool) -> ast.stmt:
    return ast.Assign([ast.Name(_flag(name), ast.Store())], ast.Constant(value))
