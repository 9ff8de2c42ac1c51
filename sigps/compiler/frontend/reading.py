"""The walk over compute() that finds each use of `messages`; a subclass returns what replaces it."""

from __future__ import annotations

import ast
import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sigps.compiler.frontend.grammar import is_messages
from sigps.compiler.frontend.lower import LowerFields
from sigps.compiler.frontend.reductions import Reduction, match_reduction
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import assign, at, expression, substitute, visited
from sigps.compiler.program import Consumption, Slot
from sigps.native.source import as_written, reject

__all__ = ["Messages", "NotCombinableError", "Reader", "bind_message"]


@dataclass
class Messages:
    """How a program reads messages, and compute()'s body with the reading replaced.

    Attributes:
        lift: One expression for each inbox field, over the message `__m` and parameters of the run.
        functions: Reductions of lists, one function for each.
        methods: User methods without effects that `lift` and `functions` call.
        obstacle: Why messages must be listed; empty where they combine.
    """

    consumption: Consumption
    body: list[ast.stmt]
    slots: list[Slot] = field(default_factory=list)
    lift: list[ast.expr] = field(default_factory=list)
    functions: list[ast.FunctionDef] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)
    obstacle: str = ""


class NotCombinableError(Exception):
    """A use of `messages` that no slot can express; its text is the reason."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(f"line {getattr(node, 'lineno', '?')}: {as_written(reason)}")


class Reader(ast.NodeTransformer, ABC):
    """Replaces each use of `messages` in compute() by what the methods `reduce`, `loop` and `truth` return."""

    consumption: Consumption

    def __init__(self, subject: Subject, body: Sequence[ast.stmt]) -> None:
        self.subject = subject
        self.dtypes = subject.message_dtypes
        self.result = Messages(self.consumption, [])
        self._num_guards = 0

    def read(self, body: list[ast.stmt]) -> Messages:
        self.result.body = visited(self, body)
        self.finish()
        return self.result

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "bool" and len(node.args) == 1:
            node.args = [self._truth(node.args[0])]
        reduction = match_reduction(node)
        if reduction is None or not is_messages(reduction.source):
            return self.generic_visit(node)
        self._check(reduction)
        if reduction.default is not None:
            reduction.default = self.visit(reduction.default)
        return at([self.reduce(reduction)], node)[0]

    def _check(self, reduction: Reduction) -> None:
        op, node = reduction.op, reduction.node
        if reduction.needs_default and not (self._num_guards and not reduction.conditions):
            reject(
                node,
                f"{op}() of messages needs default=..., or to stand under 'if messages:': "
                "a vertex may have none",
            )
        variable, element = reduction.variable, reduction.element
        if isinstance(variable, ast.Tuple):
            self.check_parts(variable, len(variable.elts))
        is_whole = (
            isinstance(variable, ast.Name) and isinstance(element, ast.Name) and element.id == variable.id
        )
        if is_whole and op in ("sum", "any", "all") and self.subject.message_type is not None:
            name = self.subject.message[0].name
            reject(node, f"{op}() of whole NamedTuples means nothing: write {op}(m.{name} for m in messages)")

    def visit_For(self, node: ast.For) -> Any:
        if is_messages(node.iter):
            if isinstance(node.target, ast.Tuple):
                self.check_parts(node.target, len(node.target.elts))
            elif isinstance(node.target, ast.Name):
                self.check_fields(node, node.target.id)
            return at(self.loop(node), node)
        return self.generic_visit(node)

    def visit_If(self, node: Any) -> Any:
        """Visit the test and both branches. In a branch that runs only with messages, min() needs no default."""
        shows = (_shows_messages(node.test), _shows_none(node.test))
        node.test = self.visit(self._truth(node.test))
        for name, is_shown in zip(("body", "orelse"), shows, strict=True):
            self._num_guards += is_shown
            branch = getattr(node, name)
            setattr(node, name, visited(self, branch) if isinstance(branch, list) else self.visit(branch))
            self._num_guards -= is_shown
        return node

    visit_IfExp = visit_If  # noqa: N815

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            node.operand = self._truth(node.operand)
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        node.values = [self._truth(v) for v in node.values]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id == "messages":
            reject(
                node,
                "messages can be reduced (sum, min, max, any, all, len), tested, or looped over in compute"
                "(), not stored, indexed or handed on",
            )
        return node

    @abstractmethod
    def reduce(self, reduction: Reduction) -> ast.expr:
        """Return what stands in the place of a reduction."""

    @abstractmethod
    def loop(self, node: ast.For) -> list[ast.stmt]:
        """Return what stands in the place of a loop over the messages."""

    @abstractmethod
    def truth(self) -> ast.expr:
        """Return whether there is a message."""

    def finish(self) -> None:
        return

    def _truth(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name) and node.id == "messages":
            return at([self.truth()], node)[0]
        return node

    def check_parts(self, node: ast.AST, count: int) -> None:
        """Refuse to unpack a message into another number of names than it has fields."""
        if self.subject.message_type is None:
            reject(node, "a message is one number here, so it cannot be taken apart")
        if count != len(self.subject.message):
            reject(node, f"a message has {len(self.subject.message)} fields, not {count}")

    def check_fields(self, tree: ast.AST, message: str) -> None:
        """Refuse to read a field that messages do not have."""
        names = [f.name for f in self.subject.message]
        kind = self.subject.message_type
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                continue
            if node.value.id == message and (kind is None or node.attr not in names):
                has = "it is one number" if kind is None else f"it has: {', '.join(names)}"
                reject(node, f"a message has no field {node.attr!r}; {has}")

    def over_message(self, node: ast.expr, variable: ast.expr) -> ast.expr:
        """Return an expression with the loop's variables replaced by the message's."""
        if isinstance(variable, ast.Name):
            self.check_fields(node, variable.id)
            return substitute(node, {variable.id: ast.Name("__m", ast.Load())})
        assert isinstance(variable, ast.Tuple)
        names = zip(variable.elts, self.subject.message, strict=True)
        return substitute(node, {n.id: expression(f"__m.{f.name}") for n, f in names})  # type: ignore[attr-defined]

    def lowered(self, node: ast.expr) -> ast.expr:
        lower = LowerFields(self.subject)
        result: ast.expr = lower.visit(copy.deepcopy(node))
        self.result.methods |= lower.methods
        return result


def bind_message(target: ast.expr, subject: Subject) -> list[ast.stmt]:
    """Return the statements that assign the message `__m` or its fields to a loop's variables."""
    if isinstance(target, ast.Name):
        return [assign(target.id, ast.Name("__m", ast.Load()))]
    assert isinstance(target, ast.Tuple)
    return [
        assign(t.id, expression(f"__m.{f.name}"))  # type: ignore[attr-defined]
        for t, f in zip(target.elts, subject.message, strict=True)
    ]


def _shows_messages(test: ast.expr) -> bool:
    """Tell whether a true test means that there are messages."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_shows_messages(v) for v in test.values)
    return is_messages(test) or ast.unparse(test) in (
        "len(messages) > 0",
        "len(messages) != 0",
        "len(messages) >= 1",
    )


def _shows_none(test: ast.expr) -> bool:
    """Tell whether a false test means that there are messages."""
    is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and is_messages(test.operand)
    return is_not or ast.unparse(test) == "len(messages) == 0"
