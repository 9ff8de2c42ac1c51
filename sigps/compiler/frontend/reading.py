"""The walk over compute() that finds each use of `messages`; a subclass returns what replaces it."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sigps.compiler.frontend.grammar import GROUP, is_messages
from sigps.compiler.frontend.keyed import Keyed, is_grouped, match_keyed
from sigps.compiler.frontend.lower import LowerFields
from sigps.compiler.frontend.reductions import Reduction, match_reduction
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import (
    assign,
    assigned_names,
    at,
    expression,
    is_self,
    rename,
    substitute,
    visited,
)
from sigps.compiler.program import Consumption, Slot
from sigps.model.vector import NO_ORDER, VectorType
from sigps.native.source import as_written, reject
from sigps.native.trees import copied, walk

__all__ = ["Messages", "NotCombinableError", "Reader", "bind_message", "first_of_vertex"]


@dataclass
class Messages:
    """How a program reads messages, and compute()'s body with the reading replaced.

    Attributes:
        lift: One expression for each inbox field, over the message `__m` and parameters of the run.
        places: What each of `slots` is made of, where an error of combining messages points to.
        functions: Reductions of lists, one function for each.
        methods: User methods without effects that `lift` and `functions` call.
        obstacle: Why messages must be listed; empty where they combine.
        key: What lists are sorted by, over the message `__m` and parameters of the run; None where nothing.
        key_text: The same as the user would write it; empty where nothing.
        takes_one: Whether a loop takes one of several messages.
    """

    consumption: Consumption
    body: list[ast.stmt]
    slots: list[Slot] = field(default_factory=list)
    places: list[ast.AST] = field(default_factory=list)
    lift: list[ast.expr] = field(default_factory=list)
    functions: list[ast.FunctionDef] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)
    obstacle: str = ""
    key: ast.expr | None = None
    key_text: str = ""
    takes_one: bool = False


Tree = TypeVar("Tree", bound=ast.AST)


class NotCombinableError(Exception):
    """A use of `messages` that no slot can express; its text is the reason."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(f"line {getattr(node, 'lineno', '?')}: {as_written(reason)}")


class Reader(ast.NodeTransformer, ABC):
    """Replaces each use of `messages` in compute() by what the abstract methods return."""

    consumption: Consumption

    def __init__(self, subject: Subject, body: Sequence[ast.stmt]) -> None:
        self.subject = subject
        self.dtypes = subject.message_dtypes
        self.result = Messages(self.consumption, [])
        self.local_names = assigned_names(body) | {"messages"}
        self._num_guards = 0
        self._num_groups = 0

    def read(self, body: list[ast.stmt]) -> Messages:
        self.result.body = visited(self, body)
        self.finish()
        return self.result

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "bool" and len(node.args) == 1:
            node.args = [self._truth(node.args[0])]
        keyed = match_keyed(node)
        if keyed is not None:
            self._check_keyed(keyed)
            if is_grouped(node):
                reject(node, "grouped() stands in a loop: 'for key, group in messages.grouped(...)'")
            if keyed.default is None and not self._num_guards:
                reject(
                    node,
                    "most_common() needs default=..., or to stand under 'if messages:': a vertex may have none",
                )
            if keyed.default is not None:
                keyed.default = self.visit(keyed.default)
            return at([self.most_common(keyed)], node)[0]
        reduction = match_reduction(node)
        if reduction is None or not is_messages(reduction.source):
            return self.generic_visit(node)
        self._check(reduction)
        if reduction.default is not None:
            reduction.default = self.visit(reduction.default)
        return at([self.reduce(reduction)], node)[0]

    def _check_keyed(self, keyed: Keyed) -> None:
        source, key = keyed.source, keyed.key
        if not (isinstance(source, ast.Name) and source.id == "messages"):
            reject(keyed.node, "grouped() and most_common() are methods of messages: a group has one key")
        is_whole = isinstance(key, ast.Name) and ast.unparse(key) == ast.unparse(keyed.variable)
        if is_whole and self.subject.message_type is not None:
            name = self.subject.message[0].name
            reject(keyed.node, f"messages are NamedTuples here: name the key, as in lambda m: m.{name}")

    def _check(self, reduction: Reduction) -> None:
        op, node = reduction.op, reduction.node
        has_some = self._num_guards or reduction.source.id != "messages"  # type: ignore[attr-defined]
        if reduction.needs_default and not (has_some and not reduction.conditions):
            reject(
                node,
                f"{op}() of messages needs default=..., or to stand under 'if messages:': "
                "a vertex may have none",
            )
        variable, element = reduction.variable, reduction.element
        if isinstance(variable, ast.Tuple):
            self.check_parts(variable, len(variable.elts))
        if op in ("min", "max"):
            record = self.subject.message_part(self.over_message(element, variable))
            if record is not None and any(isinstance(f.type, VectorType) for f in record.fields()):
                reject(node, NO_ORDER)
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
        if is_grouped(node.iter):
            keyed = match_keyed(node.iter)
            assert keyed is not None
            self._check_keyed(keyed)
            group = f"{GROUP}{self._num_groups}"
            self._num_groups += 1
            name = node.target.elts[1].id  # type: ignore[attr-defined]
            node.body = [rename(statement, {name: group}) for statement in node.body]
            return at(self.loop_groups(node, keyed, group), node)
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
        if is_messages(node):
            reject(
                node,
                "messages and groups of them can be reduced (sum, min, max, any, all, len), tested, or looped over in "
                "compute(), not stored, indexed or handed on",
            )
        return node

    @abstractmethod
    def reduce(self, reduction: Reduction) -> ast.expr:
        """Return what stands in the place of a reduction."""

    @abstractmethod
    def loop(self, node: ast.For) -> list[ast.stmt]:
        """Return what stands in the place of a loop over the messages."""

    @abstractmethod
    def loop_groups(self, node: ast.For, keyed: Keyed, group: str) -> list[ast.stmt]:
        """Return what stands in the place of a loop over the groups of messages, which its body knows by a name."""

    @abstractmethod
    def most_common(self, keyed: Keyed) -> ast.expr:
        """Return what stands in the place of a search for the most common key."""

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
        fields = _parts(self.subject)
        if count != len(fields):
            reject(node, f"a message has {len(fields)} fields, not {count}")

    def check_fields(self, tree: ast.AST, message: str) -> None:
        """Refuse to read a field that messages do not have."""
        names = _parts(self.subject)
        kind = self.subject.message_type
        for node in walk(tree):
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                continue
            if node.attr == "_replace" and kind is not None:
                continue
            if node.value.id == message and (kind is None or node.attr not in names):
                has = "it is one number" if kind is None else f"it has: {', '.join(names)}"
                reject(node, f"a message has no field {node.attr!r}; {has}")

    def over_message(self, node: Tree, variable: ast.expr) -> Tree:
        """Return a tree with the loop's variables replaced by the message's."""
        if isinstance(variable, ast.Name):
            self.check_fields(node, variable.id)
            return substitute(node, {variable.id: ast.Name("__m", ast.Load())})
        assert isinstance(variable, ast.Tuple)
        names = zip(variable.elts, _parts(self.subject), strict=True)
        return substitute(node, {n.id: expression(f"__m.{name}") for n, name in names})  # type: ignore[attr-defined]

    def lowered(self, node: ast.expr) -> ast.expr:
        lower = LowerFields(self.subject)
        result: ast.expr = lower.visit(copied(node))
        self.result.methods |= lower.methods
        return result


def bind_message(target: ast.expr, subject: Subject) -> list[ast.stmt]:
    """Return the statements that assign the message `__m` or its fields to a loop's variables."""
    if isinstance(target, ast.Name):
        return [assign(target.id, ast.Name("__m", ast.Load()))]
    assert isinstance(target, ast.Tuple)
    return [
        assign(t.id, expression(f"__m.{name}"))  # type: ignore[attr-defined]
        for t, name in zip(target.elts, _parts(subject), strict=True)
    ]


def _parts(subject: Subject) -> list[str]:
    """Return the names of the parts of a message: its numbers and vectors, and its NamedTuples as wholes."""
    return (
        [f.name for f in subject.message] if subject.message_record is None else subject.message_record.names
    )


def first_of_vertex(parts: Sequence[ast.expr], subject: Subject, local_names: Collection[str]) -> str:
    """Return the first name in some expressions that belongs to one vertex; empty where none does."""
    for child in (child for part in parts for child in walk(part)):
        if isinstance(child, ast.Name) and child.id in local_names:
            return repr(child.id)
        if is_self(child) and not subject.is_uniform(child.attr):
            return f"self.{child.attr}"
    return ""


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
