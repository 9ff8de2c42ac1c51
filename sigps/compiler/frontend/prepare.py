"""Methods that act are inlined where compute() calls them, and every `self.x` is checked.

Afterwards the body holds only `self.<field>`, `self.<action>(...)`, calls of methods without effects,
`self.out_edges`, `messages`, local names, and global names of the generated module.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from sigps.compiler.frontend.grammar import ACTIONS, check_actions
from sigps.compiler.frontend.subject import DRAWS, Subject
from sigps.compiler.frontend.syntax import assigned_names, is_self, rename
from sigps.native.source import reject
from sigps.native.trees import copied, walk

__all__ = ["check_call", "check_fields", "inlined", "prepare"]


def prepare(tree: ast.FunctionDef, subject: Subject) -> list[ast.stmt]:
    """Return compute()'s body, checked, with the user's methods that act inlined.

    Raises:
        CompileError: If something in it cannot be compiled.
    """
    body = inlined(tree, subject)
    for statement in body:
        check_fields(statement, subject)
        check_actions(statement)
    return body


def inlined(tree: ast.FunctionDef, subject: Subject) -> list[ast.stmt]:
    """Return a function's body with the user's methods that act inlined.

    Raises:
        CompileError: If one of them cannot be put in place where it is called.
    """
    return _Methods(subject).block(copied(tree.body))


def check_fields(tree: ast.AST, subject: Subject) -> None:
    """Raise a CompileError for a `self.x` that does not exist, or is assigned and must not be."""
    calls = {id(node.func): node for node in walk(tree) if isinstance(node, ast.Call)}
    for node in walk(tree):
        if not isinstance(node, ast.Attribute) or not is_self(node):
            continue
        if subject.method(node.attr) is not None:
            check_call(node, calls.get(id(node)), subject)
        elif node.attr == "common_neighbors":
            _check_pairs(node, calls.get(id(node)))
        elif node.attr in DRAWS:
            _check_draw(node, calls.get(id(node)))
        elif node.attr not in ACTIONS and node.attr not in ("out_edges", "has_edge"):
            _check_field(node, subject)


def check_call(node: ast.Attribute, call: ast.Call | None, subject: Subject) -> None:
    """Refuse a method of the user's that is not called, or with other arguments than it takes."""
    if call is None:
        reject(node, f"the method self.{node.attr} can only be called: self.{node.attr}(...)")
    args = subject.tree(node.attr).args
    most = len(args.args) - (not subject.is_static(node.attr))
    least = most - len(args.defaults)
    if call.keywords or not least <= len(call.args) <= most:
        count = f"{least}" if least == most else f"{least} to {most}"
        reject(node, f"self.{node.attr}() takes {count} argument{'s' * (most != 1)}, without names")


def _check_draw(node: ast.Attribute, call: ast.Call | None) -> None:
    if call is None:
        reject(node, f"self.{node.attr} is called: {DRAWS[node.attr][1]}")


def _check_pairs(node: ast.Attribute, call: ast.Call | None) -> None:
    if call is None or call.keywords or len(call.args) != 1 or not isinstance(call.args[0], ast.Name):
        reject(
            node,
            "common_neighbors() takes the variable of a loop over self.out_edges: self.common_neighbors(edge)",
        )


def _check_field(node: ast.Attribute, subject: Subject) -> None:
    name = node.attr
    if subject.scope(name) is None:
        subject.reject_unknown(node)
    if isinstance(node.ctx, ast.Load) or name in {*subject.states, *subject.records, *subject.aggregators}:
        return
    what = "a parameter of the run" if name in subject.params else "read-only"
    reject(node, f"self.{name} cannot be assigned: it is {what}. Only State fields can")


class _Methods:
    """Inlines methods that act (assign, send, halt) or take `messages` where they are called."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._num_inlined = 0

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            result += self._statement(statement)
        return result

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        for branch in ("body", "orelse"):
            if isinstance(getattr(statement, branch, None), list):
                setattr(statement, branch, self.block(getattr(statement, branch)))
        call = getattr(statement, "value", None)
        name = self._acting(call)
        if name is not None and isinstance(statement, (ast.Expr, ast.Assign, ast.Return)):
            assert isinstance(call, ast.Call)
            return self._inline(statement, call, name)
        own = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
        nested = [n for e in own for n in walk(e) if self._acting(n) is not None]
        if nested:
            reject(
                nested[0],
                "a method that assigns fields, sends, halts, or is given the messages is called on a line of "
                "its own: 'self.method(...)' or 'x = self.method(...)'",
            )
        return [statement]

    def _acting(self, node: Any) -> str | None:
        if isinstance(node, ast.Call) and is_self(node.func):
            name: str = node.func.attr
            takes_messages = any(isinstance(a, ast.Name) and a.id == "messages" for a in node.args)
            if self._subject.method(name) is not None and (takes_messages or self._subject.has_effects(name)):
                return name
        return None

    def _inline(self, statement: ast.stmt, call: ast.Call, name: str) -> list[ast.stmt]:
        tree = self._subject.tree(name)
        check_call(call.func, call, self._subject)  # type: ignore[arg-type]
        for child in walk(tree):
            if isinstance(child, ast.Return) and child is not tree.body[-1]:
                reject(
                    child,
                    f"{name}() assigns fields, sends, halts, or reads messages: it is put in place where it "
                    "is called, and its only 'return' must be its last line",
                )
        params = [arg.arg for arg in tree.args.args][0 if self._subject.is_static(name) else 1 :]
        missing = len(params) - len(call.args)
        arguments = [*call.args, *tree.args.defaults[len(tree.args.defaults) - missing :]]
        self._num_inlined += 1
        placed = {arg.arg: arg for arg in tree.args.args}
        new = {old: f"__in{self._num_inlined}_{old}" for old in assigned_names(tree.body) | set(params)}
        binding = []
        for param, argument in zip(params, arguments, strict=True):
            if isinstance(argument, ast.Name) and argument.id == "messages":
                new[param] = "messages"
            else:
                target = ast.copy_location(ast.Name(new[param], ast.Store()), placed[param])
                target.sigps_file = getattr(placed[param], "sigps_file", "")  # type: ignore[attr-defined]
                binding.append(ast.copy_location(ast.Assign([target], copied(argument)), call))
        body = rename(tree, new).body
        for node in (n for statement in (*body, *binding) for n in walk(statement)):
            node.sigps_copy = self._num_inlined  # type: ignore[attr-defined]
        value: ast.expr = ast.copy_location(ast.Constant(0), call)
        if isinstance(body[-1], ast.Return):
            value = body.pop().value or value  # type: ignore[attr-defined]
        result = [*binding, *self.block(body)]
        if not isinstance(statement, ast.Expr):
            statement.value = value  # type: ignore[attr-defined]
            result += self._statement(statement)
        return [ast.fix_missing_locations(s) for s in result]
