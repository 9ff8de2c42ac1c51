"""What a program may do, and probably does not mean: a sentence each, for `explain`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.native.trees import copied, walk

__all__ = ["find_doubts"]

_IDS = {"__id": "self.id", "__source": "self.id", "__target": "edge.target"}


def find_doubts(program: VertexProgram) -> list[str]:
    """Return what looks unintended in a program that compiles, with lines. O(size of the program)."""
    found = [*_halting(program), *_messages(program), *_aggregators(program)]
    for function in program.module.body:
        if isinstance(function, ast.FunctionDef) and function.name not in ("lift", "merge", "fold", "emit"):
            found += _Looks(program).at(function)
    return list(dict.fromkeys(found))


def _halting(program: VertexProgram) -> Iterator[str]:
    compute = program.function("compute")
    assert compute is not None
    flags = {"__halt", "__retired"}
    stores = [n for n in walk(compute) if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) in flags]
    if not program.has_master and not any(ast.unparse(n.value) == "True" for n in stores):
        yield (
            "no vertex ever halts: without self.vote_to_halt() or self.retire() the run ends at max_supersteps, "
            "or never"
        )


def _messages(program: VertexProgram) -> Iterator[str]:
    if program.consumption is not Consumption.NONE and program.delivery is Delivery.NONE:
        yield "messages are read, and none is ever sent"


def _aggregators(program: VertexProgram) -> Iterator[str]:
    compute = program.function("compute")
    assert compute is not None
    body = [node for statement in compute.body if not _unpacks(statement) for node in walk(statement)]
    names = {node.id for node in body if isinstance(node, ast.Name)}
    for aggregator in program.aggregators:
        name = aggregator.name
        if not aggregator.is_shared and f"__a_{name}" in names and f"__value_{name}" not in names:
            yield f"the aggregator {name!r} is read, and gets no contribution: self.{name} += x gives one"


def _unpacks(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.value) == "__aggregates"


class _Looks(ast.NodeVisitor):
    """Looks through one function."""

    def __init__(self, program: VertexProgram) -> None:
        self._found: list[str] = []
        states = zip(program.states, program.state_dtypes, strict=True)
        self._kinds: dict[str, Any] = {f"__s_{f.name}": dtype for f, dtype in states}
        self._kinds |= {f"__p_{f.name}": f.dtype() for f in program.params}
        self._kinds |= {f"__a_{a.name}": a.field.dtype() for a in program.aggregators}

    def at(self, function: ast.FunctionDef) -> list[str]:
        self.visit(function)
        return self._found

    def _say(self, node: ast.AST, text: str) -> None:
        self._found.append(f"line {getattr(node, 'lineno', '?')}: {text}")

    def visit_Call(self, node: ast.Call) -> None:
        """Look for ids that are sent as floats."""
        self.generic_visit(node)
        named = ast.unparse(node.func)
        if named in ("__np.float32", "__np.float64") and len(node.args) == 1:
            self._check_id(node.args[0], np.dtype(named.removeprefix("__np.")), node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Look for ids that are stored as floats."""
        self.generic_visit(node)
        for target in node.targets:
            kind = self._kinds.get(getattr(target, "id", ""))
            if kind is not None and kind.kind == "f":
                self._check_id(node.value, kind, node)

    def _check_id(self, value: ast.expr, kind: np.dtype[Any], node: ast.AST) -> None:
        """An id beyond 2**24 or 2**53 becomes that of another vertex."""
        if isinstance(value, ast.Name) and value.id in _IDS:
            bits = 24 if kind.itemsize == 4 else 53
            self._say(
                node,
                f"{_IDS[value.id]} goes into a {kind}, which tells ids apart up to 2**{bits}: declare a VertexId",
            )

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Look for differences of np.uint64, which are large where they would be negative."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Sub) and any(self._is_unsigned(n) for n in (node.left, node.right)):
            self._say(
                node,
                f"{_as_written(node)} is of np.uint64: where it would be negative it is near 2**64. Write int(...) "
                "around both if it may be",
            )

    def visit_Compare(self, node: ast.Compare) -> None:
        """Look for == of floats that are computed, or have a fraction no float holds."""
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        if not any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
            return
        constants = [n.value for n in sides if isinstance(n, ast.Constant) and isinstance(n.value, float)]
        has_fraction = any(
            value == value and abs(value) < 2**53 and value * 2**20 % 1 != 0 for value in constants
        )
        computed = any(self._is_float_sum(n) for n in sides)
        if has_fraction or computed:
            self._say(
                node,
                f"{_as_written(node)} compares floats for equality, which rounding decides: write abs(a - b) < ...",
            )

    def _is_unsigned(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self._kinds.get(node.id) == np.uint64

    def _is_float_sum(self, node: ast.expr) -> bool:
        """Tell whether an expression computes with a field that is a float."""
        if not isinstance(node, ast.BinOp) or isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            return False
        names = [n.id for n in walk(node) if isinstance(n, ast.Name)]
        return any(name in self._kinds and self._kinds[name].kind == "f" for name in names)


def _as_written(node: ast.AST) -> str:
    """Return an expression with names as the user wrote them."""

    class Named(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.Name:
            prefix = next((p for p in ("__s_", "__p_", "__a_") if name.id.startswith(p)), None)
            return ast.Name(f"self.{name.id[len(prefix) :]}", name.ctx) if prefix else name

    return ast.unparse(Named().visit(copied(node)))
