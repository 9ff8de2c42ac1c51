"""The functions lift(), merge(), key(), fold() and emit(): what `compiler/program.py` says of them, as code."""

from __future__ import annotations

import ast

from sigps.compiler.frontend.absent import message_of, nested
from sigps.compiler.frontend.lower import unpack
from sigps.compiler.frontend.reading import Messages
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import (
    at,
    cast,
    expression,
    function,
    placed,
    scalar_type,
    statements,
    tuple_of,
)
from sigps.compiler.program import Slot
from sigps.model.records import Record
from sigps.native.trees import copied

__all__ = ["emit", "fold", "key", "lift", "merge"]


def lift(subject: Subject, messages: Messages, tree: ast.FunctionDef) -> ast.stmt:
    """Build `lift`: one message to one value of every slot."""
    start = unpack(subject, "__env", "__params")
    if messages.lift:
        start += _bound_message(subject)
    return at(
        [function("lift", ["__env", "__params", "__message"], [*start, ast.Return(tuple_of(messages.lift))])],
        tree,
    )[0]


def merge(subject: Subject, messages: Messages) -> ast.stmt:
    """Build `merge`: combine slot by slot. The first message of a vertex is stored as it is."""
    code = statements("if not has:\n    return value")
    first = 0
    results: list[ast.expr] = []
    for slot, place in zip(messages.slots, messages.places, strict=True):
        width = len(slot.names)
        a = [f"inbox[{first + i}]" for i in range(width)]
        b = [f"value[{first + i}]" for i in range(width)]
        before: list[str] = []
        merged = [expression(text) for text in _merged(slot, a, b, before, subject, len(results))]
        code += at(statements("\n".join(before)), place)
        results += at(merged, place)
        first += width
    return function("merge", ["inbox", "has", "value"], [*code, ast.Return(tuple_of(results))])


def _merged(
    slot: Slot, a: list[str], b: list[str], code: list[str], subject: Subject, first: int
) -> list[str]:
    width = len(slot.names)
    if slot.op == "user":
        record = subject.message_record
        given = [", ".join(x) if record is None else nested(record, iter(x)) for x in (a, b)]
        code.append(f"__u = __combiner({given[0]}, {given[1]})")
        types_ = [scalar_type(d) for d in subject.message_dtypes]
        parts = [""] if record is None else _positions(record)
        return [f"{t}(__u{part})" for t, part in zip(types_, parts, strict=True)]
    if slot.op == "key":  # that of both
        return a
    if slot.op == "sum" and slot.is_small:  # the builder checks no addition to a count
        code.append(f"__count{first} = {a[0]}")
        return [f"__count{first} + {b[0]}"]
    if slot.op in _ARITHMETIC:
        return [f"{x} {_ARITHMETIC[slot.op]} {y}" for x, y in zip(a, b, strict=True)]
    if slot.op in ("any", "all"):
        word = "or" if slot.op == "any" else "and"
        return [f"({a[0]} {word} {b[0]})"]
    if slot.op in ("minimum", "maximum"):
        return [f"__np.{slot.op}({a[0]}, {b[0]})"]
    signs = ["<" if op == "min" else ">" for op in slot.ops]
    if width == 1:
        return [f"({b[0]} if {b[0]} {signs[0]} {a[0]} else {a[0]})"]
    # NamedTuples compare field by field, as in Python. The first comparison decides most often.
    test = f"{b[-1]} {signs[-1]} {a[-1]}"
    for x, y, sign in reversed(list(zip(a[:-1], b[:-1], signs[:-1], strict=True))):
        test = f"({y} {sign}= {x} and ({y} {sign} {x} or {test}))"
    code.append(f"__take{first} = {test}")
    return [f"({y} if __take{first} else {x})" for x, y in zip(a, b, strict=True)]


def _positions(record: Record) -> list[str]:
    """Return where the numbers and vectors of a NamedTuple are: `[1][0]` is in the first part of its second."""
    found: list[str] = []
    for i, part in enumerate(record.parts):
        found += [f"[{i}]{at}" for at in (_positions(part) if isinstance(part, Record) else [""])]
    return found


_ARITHMETIC = {"sum": "+", "prod": "*", "or": "|", "and": "&", "xor": "^"}


def key(subject: Subject, messages: Messages, tree: ast.FunctionDef) -> ast.stmt:
    """Build `key`: what lists of messages are sorted by."""
    assert messages.key is not None
    start = unpack(subject, "__env", "__params") + _bound_message(subject)
    body = [*start, ast.Return(copied(messages.key))]
    return at([function("key", ["__env", "__params", "__message"], body)], tree)[0]


_OF_VECTORS = {"min": "__np.minimum({a}, {b})", "max": "__np.maximum({a}, {b})"}


def _bound_message(subject: Subject) -> list[ast.stmt]:
    parts = [f"__message[{i}]" for i in range(len(subject.message))]
    message = message_of(subject.message, parts, subject.message_record)
    return statements(f"__m = {message}")


def fold(subject: Subject) -> ast.stmt:
    """Build `fold`: add one vertex's contributions to the totals."""
    combined = {"sum": "{a} + {b}", "min": "min({a}, {b})", "max": "max({a}, {b})"}
    combined |= {"any": "bool({a} or {b})", "all": "bool({a} and {b})", "custom": "__fold_{name}({a}, {b})"}
    parts = []
    for i, aggregator in enumerate(subject.aggregators.values()):
        rules = combined | _OF_VECTORS if aggregator.field.dtype().shape else combined
        value = rules[aggregator.kind].format(a=f"total[{i}]", b=f"given[{i}]", name=aggregator.name)
        parts.append(placed(cast(aggregator.field.dtype(), expression(value)), *aggregator.place, i))
    return function("fold", ["total", "given"], [ast.Return(tuple_of(parts))])


def emit(width: int) -> ast.stmt:
    """Build `emit`: append a direct message. Past the capacity only the count grows; the engine then enlarges it."""
    lines = ["__n = direct[0][0]", "direct[0][0] = __n + 1", "if __n < len(direct[1]):"]
    lines += ["    direct[1][__n] = kind", "    direct[2][__n] = target"]
    lines += [f"    direct[{4 + i}][__n] = message[{i}]" for i in range(width)]
    return function("emit", ["direct", "kind", "target", "message"], statements("\n".join(lines)))
