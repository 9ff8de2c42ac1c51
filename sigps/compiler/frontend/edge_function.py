"""The outbox record and the edge function, out of the statements of compute() that send.

The record holds the largest subexpressions of a message that depend on the sending vertex alone: in
`best + edge.weight` it is `best`. What depends on the run alone, and the sender's id, is computed again at the edge.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sigps.compiler.frontend.absent import held, message_name
from sigps.compiler.frontend.grammar import action_of, reject_edge
from sigps.compiler.frontend.lower import record_name
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import (
    assign,
    assigned_names,
    at,
    cast,
    expression,
    is_self,
    statements,
    substitute,
    tuple_of,
)
from sigps.compiler.program import Delivery
from sigps.model.records import Record
from sigps.native.trees import copied, walk

__all__ = ["Sends", "as_record", "no_message"]


@dataclass
class Sends:
    """How a program sends, and compute()'s body with the sends replaced.

    Attributes:
        record: Initial values of the outbox record's fields `__r0`, `__r1`, ...
        edge_body: The body of the edge function over `__r0`, ..., `__w_<column>`, `__source` and `__target`.
        is_uniform: Whether all messages of a superstep are equal: no sender and no edge changes them.
        is_sender_id: Whether the message is the sender's id and nothing else.
        columns: The edge columns that the edge function reads.
        reads_target: Whether it reads the id of the edge's target.
        needs_end_ids: Whether it does more with the ids of an edge's ends than to compare the two.
        obstacle: Why the program sends direct messages; empty where it does not.
    """

    delivery: Delivery
    body: list[ast.stmt]
    record: list[ast.expr] = field(default_factory=list)
    edge_body: list[ast.stmt] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    reads_target: bool = False
    is_uniform: bool = False
    is_sender_id: bool = False
    needs_end_ids: bool = True
    obstacle: str = ""


def as_record(body: list[ast.stmt], sites: list[ast.stmt], subject: Subject) -> Sends:
    """Return compute()'s body with each site replaced by an assignment to the record, and the edge function's body.

    Args:
        body: compute()'s body.
        sites: The statements that send; at most one of them runs in a run of compute().
        subject: The class.
    """
    local_names = assigned_names(body) | {"messages"}
    assigned: dict[str, list[ast.expr]] = {}
    for node in (n for statement in body for n in walk(statement)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    built = [_Site(site, subject, local_names, assigned) for site in sites]
    shared = len(built) == 1 or all(b.is_plain for b in built)
    sends = Sends(Delivery.RECORD, [])
    replacements: dict[int, list[ast.stmt]] = {}
    for number, site in enumerate(built):
        first = 0 if shared else len(sends.record) or 1
        names = [f"__r{first + i}" for i in range(len(site.captures))]
        code = statements("__sent = True")
        if not shared:
            code += [assign("__r0", ast.Constant(number))]
            sends.record = sends.record or [ast.Constant(0)]
        code += [assign(name, value) for name, (value, _) in zip(names, site.captures, strict=True)]
        replacements[id(site.statement)] = at(code, site.statement)
        if not shared or number == 0:
            sends.record += [initial for _, initial in site.captures]
            places: dict[str, ast.expr] = {
                f"__capture{i}": ast.Name(name, ast.Load()) for i, name in enumerate(names)
            }
            edge_body = [substitute(s, places) for s in site.edge_body]
            if shared:
                sends.edge_body = edge_body
            else:
                test = expression(f"__r0 == {number}")
                sends.edge_body += at([ast.If(test, edge_body, [])], site.statement)
    if not shared:
        sends.edge_body += built[-1].nothing()
    sends.body = _replace(body, replacements)
    sends.columns = tuple(dict.fromkeys(c for b in built for c in b.columns))
    sends.reads_target = any(b.reads_target for b in built)
    reads_ends = any(b.reads_source or b.reads_target for b in built)
    sends.is_uniform = not sends.record and not sends.columns and not reads_ends
    sends.is_sender_id = len(built) == 1 and built[0].is_sender_id
    sends.needs_end_ids = _needs_end_ids(sends.edge_body)
    return sends


def _needs_end_ids(edge_body: Sequence[ast.stmt]) -> bool:
    """Tell whether `__source` and `__target` stand anywhere but on the two sides of == and !=."""
    nodes = [node for statement in edge_body for node in walk(statement)]
    compared = {
        id(side)
        for node in nodes
        if isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        for side in (node.left, node.comparators[0])
        if {_end(node.left), _end(node.comparators[0])} == {"__source", "__target"}
    }
    return any(_end(node) is not None and id(node) not in compared for node in nodes)


def _end(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) and node.id in ("__source", "__target") else None


class _Site(ast.NodeTransformer):
    """One statement that sends: the values captured in the record, and its part of the edge function."""

    def __init__(
        self,
        statement: ast.stmt,
        subject: Subject,
        local_names: set[str],
        assigned: dict[str, list[ast.expr]],
    ) -> None:
        self._assigned = assigned
        self.statement = statement
        self._subject = subject
        self._dtypes = subject.message_dtypes
        self.captures: list[tuple[ast.expr, ast.expr]] = []
        self.columns: list[str] = []
        self.reads_source = False
        self.reads_target = False
        self.is_sender_id = False
        self._edge = ""
        block: Sequence[ast.stmt] = [statement]
        if isinstance(statement, ast.For):
            self._edge = statement.target.id  # type: ignore[attr-defined]
            block = statement.body
        self._edge_locals = assigned_names(block)
        self._vertex_locals = local_names - self._edge_locals - {self._edge}
        self.edge_body = [self.visit(copied(s)) for s in block]
        if isinstance(statement, ast.For):
            self.edge_body += self.nothing()
        self.is_plain = not isinstance(statement, ast.For) and len(self.captures) == len(self._dtypes)

    def nothing(self) -> list[ast.stmt]:
        return at([no_message(self._subject)], self.statement)

    def visit_Expr(self, node: ast.Expr) -> Any:
        if action_of(node) is None:
            return self.generic_visit(node)
        message = node.value.args[-1]  # type: ignore[attr-defined]
        parts = self._subject.message_parts(message)
        values = []
        precision = self._subject.precision
        for part, kept in zip(parts, self._subject.message, strict=True):
            dtype = kept.dtype(precision)
            is_id = _is_own_id(part)
            # In a narrower type ids wrap: the smallest id need not be the smallest message.
            self.is_sender_id = len(parts) == 1 and is_id and (dtype.kind == "f" or dtype == np.int64)
            if self._scope(part) == "vertex":
                values.append(
                    self._capture(held(kept, precision, part), held(kept, precision, ast.Constant(0)))
                )
            else:
                values.append(held(kept, precision, self.visit(part)))
        return at([ast.Return(tuple_of([ast.Constant(True), tuple_of(values)]))], node)[0]

    def visit_Continue(self, node: ast.Continue) -> Any:
        return self.nothing()[0]

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
            if self._scope(node) == "vertex":
                record = self._record_of(node, frozenset())
                if record is not None:
                    return at([self._capture_fields(node, record)], node)[0]
                return self._capture(node, ast.Constant(0))
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == self._edge
            ):
                return at([self._edge_attribute(node)], node)[0]
            if _is_own_id(node):
                self.reads_source = True
                return ast.copy_location(ast.Name("__source", ast.Load()), node)
            if isinstance(node, ast.Name) and node.id == self._edge:
                reject_edge(node)
        return super().visit(node)

    def _edge_attribute(self, node: ast.Attribute) -> ast.expr:
        if node.attr == "target":
            self.reads_target = True
            return ast.Name("__target", ast.Load())
        if node.attr not in self.columns:
            self.columns.append(node.attr)
        return ast.Name(f"__w_{node.attr}", ast.Load())

    def _capture(self, value: ast.expr, initial: ast.expr) -> ast.expr:
        for number, (captured, _) in enumerate(self.captures):
            if ast.dump(captured) == ast.dump(value):
                return ast.Name(f"__capture{number}", ast.Load())
        self.captures.append((value, initial))
        return ast.copy_location(ast.Name(f"__capture{len(self.captures) - 1}", ast.Load()), value)

    def _record_of(self, node: ast.expr, seen: frozenset[str]) -> Record | None:
        """Return the state or message whose NamedTuple an expression is like; None where none is known."""
        ways: list[ast.expr] = []
        if is_self(node):
            return self._subject.records.get(node.attr)
        if isinstance(node, ast.IfExp):
            ways = [node.body, node.orelse]
        elif isinstance(node, ast.Name) and node.id not in seen:
            ways, seen = self._assigned.get(node.id, []), seen | {node.id}
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "_replace"
        ):
            ways = [node.func.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            made = self._subject.names.meanings.get(node.func.id)
            return next((r for r in self._known_records() if r.cls is made), None)
        return next((r for r in (self._record_of(way, seen) for way in ways) if r is not None), None)

    def _known_records(self) -> Iterator[Record]:
        yield from self._subject.records.values()
        if self._subject.message_record is not None:
            yield self._subject.message_record

    def _capture_fields(self, whole: ast.expr, record: Record) -> ast.expr:
        """Capture a NamedTuple field by field; the edge function makes it anew: the outbox record holds numbers."""
        is_message = record is self._subject.message_record
        return self._fields_of(whole, record, message_name if is_message else record_name)

    def _fields_of(self, whole: ast.expr, record: Record, name_of: Callable[[Record], str]) -> ast.expr:
        parts = [ast.Attribute(copied(whole), name, ast.Load()) for name in record.names]
        return ast.Call(
            ast.Name(name_of(record), ast.Load()),
            [
                self._fields_of(part, kind, name_of)
                if isinstance(kind, Record)
                else self._capture(part, held(kind, self._subject.precision, ast.Constant(0)))
                for part, kind in zip(parts, record.parts, strict=True)
            ],
            [],
        )

    def _scope(self, node: ast.AST) -> str:
        """Return what a value depends on: the `edge`, the sending `vertex`, or the run alone (`uniform`).

        The sender's id counts as `edge`: edge() is given it, so no record holds it.
        """
        scope = "uniform"
        names = {n.id for n in walk(node) if isinstance(n, ast.Name)}
        if names & {self._edge, *self._edge_locals}:
            return "edge"
        calls = [n.func.attr for n in walk(node) if isinstance(n, ast.Call) and is_self(n.func)]
        if not all(self._subject.is_uniform(name) for name in calls if self._subject.method(name)):
            return "vertex"
        for child in walk(node):
            if _is_own_id(child):
                return "edge"
            if isinstance(child, ast.Name) and child.id in self._vertex_locals:
                scope = "vertex"
            if is_self(child) and not self._subject.is_uniform(child.attr):
                scope = "vertex"
        return scope


def no_message(subject: Subject) -> ast.stmt:
    """Build the return of an edge function for an edge without a message."""
    zeros = tuple_of([cast(d, ast.Constant(0)) for d in subject.message_dtypes])
    return ast.Return(tuple_of([ast.Constant(False), zeros]))


def _is_own_id(node: ast.AST) -> bool:
    return is_self(node) and node.attr == "id"


def _replace(block: Sequence[ast.stmt], replacements: dict[int, list[ast.stmt]]) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in block:
        if id(statement) in replacements:
            result += replacements[id(statement)]
            continue
        for name in ("body", "orelse"):
            if isinstance(getattr(statement, name, None), list):
                setattr(statement, name, _replace(getattr(statement, name), replacements))
        result.append(statement)
    return result
