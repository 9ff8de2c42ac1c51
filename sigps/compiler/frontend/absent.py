"""None where a vertex id may be missing: tests of it become calls, and what is kept as `VertexId | None` is marked."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from sigps.compiler.frontend.syntax import assign, at, cast, expression
from sigps.model.fields import Field
from sigps.model.records import Record

__all__ = ["held", "marked", "message_name", "message_of", "name_none_tests", "nested"]


def name_none_tests(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Write each comparison with None that no constant decides as `__is_none(x)`, in place."""
    found: ast.FunctionDef = _Tests().visit(tree)
    return found


def held(field: Field, precision: Literal["single", "double"], value: ast.expr) -> ast.expr:
    """Return the expression that turns a value into what a field holds."""
    if field.may_be_none:
        return ast.Call(ast.Name("__id_or_none", ast.Load()), [value], [])
    return cast(field.dtype(precision), value)


def marked(fields: dict[str, Field]) -> list[ast.stmt]:
    """Return statements after which local names are known to be None where their fields may be."""
    return [
        assign(name, expression(f"__id_or_none({name})"))
        for name, field in fields.items()
        if field.may_be_none
    ]


def message_of(fields: Sequence[Field], parts: Iterable[str], record: Record | None) -> str:
    """Return the text of the message that is made of values in memory, by its fields."""
    seen = [f"__id_or_none({part})" if f.may_be_none else part for f, part in zip(fields, parts, strict=True)]
    return seen[0] if record is None else nested(record, iter(seen))


def nested(record: Record, parts: Iterator[str]) -> str:
    """Return the text of a message that is a NamedTuple, made of the texts of its numbers and vectors."""
    held = [nested(p, parts) if isinstance(p, Record) else next(parts) for p in record.parts]
    return f"{message_name(record)}({', '.join(held)})"


def message_name(record: Record) -> str:
    """Return the name in the generated module of the class of messages, or of a part of one."""
    return f"__message_{record.name.replace('.', '_of_')}" if record.name else "__Message"


class _Tests(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            return node
        sides = [node.left, node.comparators[0]]
        others = [side for side in sides if not (isinstance(side, ast.Constant) and side.value is None)]
        if len(others) != 1:
            return node
        test: ast.expr = ast.Call(ast.Name("__is_none", ast.Load()), others, [])
        if isinstance(node.ops[0], (ast.IsNot, ast.NotEq)):
            test = ast.UnaryOp(ast.Not(), test)
        return at([test], node)[0]
