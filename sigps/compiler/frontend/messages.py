"""How compute() reads its messages: in slots that combine them, by key, as one combined message, or as a list.

Where every use of `messages` is a reduction of something that depends only on the message and the run, the
reductions become slots (`slots.py`): one value each, combined on the way. Two folds make two slots.

    best = min(messages, default=inf)                slot 0: min of m
    for m in messages: total += m * self.damping     slot 1: sum of m * damping

Where every use is one `most_common()`, the engine finds the key, and hands over that and its total. Any other use needs
the messages as a list; where some of them go by key, one that is sorted by it. With `combiner=` there is one message at
most.
"""

from __future__ import annotations

import ast

from sigps.compiler.frontend.grammar import is_messages
from sigps.compiler.frontend.keyed import Keyed, match_keyed
from sigps.compiler.frontend.lists import Listed
from sigps.compiler.frontend.reading import Messages, NotCombinableError, Reader, bind_message
from sigps.compiler.frontend.reductions import Reduction
from sigps.compiler.frontend.slots import Combined, Grouped
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import expression, placed, visited
from sigps.compiler.program import Consumption, Delivery, Slot
from sigps.native.source import reject
from sigps.native.trees import copied, walk

__all__ = ["consume_messages"]


def consume_messages(body: list[ast.stmt], subject: Subject, delivery: Delivery) -> Messages:
    """Derive how a program reads its messages, which are delivered in this way."""
    reads = [n for s in body for n in walk(s) if is_messages(n)]
    if not reads:
        return Messages(Consumption.NONE, body)
    if not subject.message:
        reject(
            reads[0],
            f"{subject.name} reads messages, but declares none: class {subject.name}(Vertex, message=float)",
        )
    if subject.combiner is not None:
        return _Single(subject, body).read(body)
    is_keyed = any(match_keyed(n) for s in body for n in walk(s))
    try:
        if is_keyed and delivery is Delivery.DIRECT:
            raise NotCombinableError(body[0], "direct messages are listed, so keys are found in lists")
        return (Grouped if is_keyed else Combined)(subject, body).read(copied(body))
    except NotCombinableError as reason:
        messages = Listed(subject, body).read(body)
        messages.obstacle = str(reason)
        return messages


class _Single(Reader):
    """`combiner=` leaves at most one message, `__m`."""

    consumption = Consumption.SINGLE

    def reduce(self, reduction: Reduction) -> ast.expr:
        element = self.over_message(reduction.element, reduction.variable)
        has: ast.expr = expression("__has")
        if reduction.conditions:
            conditions = [self.over_message(c, reduction.variable) for c in reduction.conditions]
            has = ast.BoolOp(ast.And(), [has, *conditions])
        op, default = reduction.op, reduction.default
        if op == "len":
            return ast.IfExp(has, ast.Constant(1), ast.Constant(0))
        if op == "any":
            return ast.BoolOp(ast.And(), [has, element])
        if op == "all":
            return ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), has), element])
        if op == "sum":
            value = ast.IfExp(has, element, ast.Constant(0))
            return value if default is None else ast.BinOp(default, ast.Add(), value)
        return element if default is None else ast.IfExp(has, element, default)

    def loop(self, node: ast.For) -> list[ast.stmt]:
        node.body = [*bind_message(node.target, self.subject), *visited(self, node.body)]
        node.target = ast.Name("__once", ast.Store())
        node.iter = expression("range(1 if __has else 0)")
        return [node]

    def truth(self) -> ast.expr:
        return expression("__has")

    def loop_groups(self, node: ast.For, keyed: Keyed, group: str) -> list[ast.stmt]:
        reject(node, "combiner= leaves one message at most: there is nothing to group")

    def most_common(self, keyed: Keyed) -> ast.expr:
        reject(keyed.node, "combiner= leaves one message at most: there is nothing to group")

    def finish(self) -> None:
        names = [f.name for f in self.subject.message]
        scalar = self.subject.message_type is None
        self.result.lift = [expression("__m" if scalar else f"__m.{n}") for n in names]
        combiner = self.subject.combiner
        op = next((f.__name__ for f in (min, max, sum) if f is combiner), "user")
        fields = tuple(f"__g{i}" for i in range(len(names)))
        self.result.slots = [Slot(op, fields, "m")]
        file, line = self.subject.cls.declaration.place
        self.result.places = [placed(ast.Pass(), file, line)]
