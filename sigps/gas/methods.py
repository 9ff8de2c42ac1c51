"""A method of a class of phases, as statements that can be put in place: its returns at the end, its names its own."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sigps.native.source import parse_function, reject

__all__ = ["Method", "attribute_of", "is_straight_line", "nodes_of", "replaced", "stored_attribute"]


class Method:
    """One method of the user's: its tree, with locals that no other method has.

    Args:
        function: The method.
        owner: The name of its class.
        arguments: What its arguments become.

    Raises:
        CompileError: If its source cannot be read, or it takes other arguments.
    """

    def __init__(self, function: Callable[..., Any], owner: str, arguments: Sequence[str]) -> None:
        tree = parse_function(function, owner)
        self.name, self.function, self.line = function.__name__, function, tree.lineno
        given = [arg.arg for arg in tree.args.args]
        is_plain = len(given) == sum(isinstance(n, ast.arg) for n in ast.walk(tree.args))
        if not is_plain or tree.args.defaults or len(given) != len(arguments):
            reject(tree, f"{self.name} must be written as 'def {self.name}({', '.join(arguments)})'")
        names = {old: f"{old}_in_{self.name}" for old in _stored(tree.body)}
        new = names | dict(zip(given, arguments, strict=True))
        body = [_Renaming(new).visit(statement) for statement in tree.body]
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # the docstring
        self.body: list[ast.stmt] = [s for s in body if not isinstance(s, ast.Pass)]
        self.tree = tree

    def with_result(self) -> list[ast.stmt]:
        """Return its statements, where each `return x` at the end of a path becomes `changed = x`; none is True.

        Raises:
            CompileError: If it returns from within a loop.
        """
        for loop in (n for s in self.body for n in ast.walk(s) if isinstance(n, (ast.For, ast.While))):
            for node in ast.walk(loop):
                if isinstance(node, ast.Return):
                    reject(
                        node, f"{self.name}() returns from within a loop: set a variable and return it last"
                    )
        return _with_result(copy.deepcopy(self.body), self.tree)

    def reads(self, owner: str = "self") -> set[str]:
        """Return every attribute of a name that it reads or assigns."""
        return {name for node in nodes_of(self.body) if (name := attribute_of(node, owner))}

    def results(self) -> list[ast.expr | None]:
        """Return what each `return` has."""
        return [n.value for s in self.body for n in ast.walk(s) if isinstance(n, ast.Return)]


def attribute_of(node: ast.AST, owner: str) -> str:
    """Return the name of an attribute of a name; empty for any other expression."""
    is_it = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == owner
    return node.attr if is_it else ""  # type: ignore[attr-defined]


def stored_attribute(node: ast.AST, owner: str) -> str:
    """Return the name of an attribute of a name where it is assigned; else empty."""
    return attribute_of(node, owner) if isinstance(getattr(node, "ctx", None), ast.Store) else ""


def nodes_of(body: Iterable[ast.AST]) -> list[ast.AST]:
    """Return all nodes of statements."""
    return [node for statement in body for node in ast.walk(statement)]


def replaced(tree: Any, change: Callable[[ast.AST], ast.AST | None]) -> Any:
    """Return a copy of a tree in which `change` replaces nodes, outermost first; None keeps a node."""
    return _Replacing(change).visit(copy.deepcopy(tree))


def is_straight_line(body: Iterable[ast.stmt]) -> bool:
    """Tell whether statements are assignments of one target each, none of which depends on a branch."""
    return all(isinstance(s, ast.Assign) and len(s.targets) == 1 for s in body)


class _Replacing(ast.NodeTransformer):
    def __init__(self, change: Callable[[ast.AST], ast.AST | None]) -> None:
        self._change = change

    def visit(self, node: ast.AST) -> Any:
        new: Any = self._change(node)
        return self.generic_visit(node) if new is None else ast.copy_location(new, node)


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node


def _stored(body: Sequence[ast.stmt]) -> set[str]:
    stored = (n for s in body for n in ast.walk(s) if isinstance(n, ast.Name))
    return {n.id for n in stored if isinstance(n.ctx, ast.Store)}


def _with_result(body: list[ast.stmt], place: ast.AST) -> list[ast.stmt]:
    for at, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            return [*body[:at], _changed(statement.value or ast.Constant(True), statement)]
        has_return = any(isinstance(n, ast.Return) for n in ast.walk(statement))
        if isinstance(statement, ast.If) and has_return:
            rest = body[at + 1 :]
            statement.body = _with_result([*statement.body, *copy.deepcopy(rest)], place)
            statement.orelse = _with_result([*statement.orelse, *rest], place)
            return body[: at + 1]
        if has_return:
            returned = next(n for n in ast.walk(statement) if isinstance(n, ast.Return))
            reject(returned, "it returns from within this statement: set a variable and return it last")
    return [*body, _changed(ast.Constant(True), body[-1] if body else place)]


def _changed(value: ast.expr, place: ast.AST) -> ast.stmt:
    made = ast.copy_location(ast.Assign([ast.Name("changed", ast.Store())], value), place)
    return ast.fix_missing_locations(made)
