"""Which sums of messages never leave 64 bits: those of small numbers, since a vertex gets fewer than 2**32 messages."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence

from sigps.compiler.frontend.edge_function import Sends
from sigps.compiler.frontend.reading import Messages
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.program import Delivery, Slot
from sigps.native.trees import walk

__all__ = ["mark_small_sums"]

_LIMIT = 2**31
"""A number is small below that: 2**32 of them have 64 bits and a sign."""


def mark_small_sums(subject: Subject, messages: Messages, sends: Sends) -> list[Slot]:
    """Return the slots; of each sum it is told whether it adds up small numbers, by their type or as constants."""
    small = _small_fields(subject, sends)
    found, first = [], 0
    for slot in messages.slots:
        parts = messages.lift[first : first + len(slot.names)]
        first += len(slot.names)
        is_small = slot.op == "sum" and all(_is_small(part, small) for part in parts)
        found.append(dataclasses.replace(slot, is_small=is_small))
    return found


def _small_fields(subject: Subject, sends: Sends) -> dict[str, bool]:
    """Return of each field of a message whether all its values are small; `""` is a message of one number."""
    sent = [
        node.value.elts[1]
        for statement in sends.edge_body
        for node in walk(statement)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
    ]
    names = [""] if subject.message_type is None else [f.name for f in subject.message]
    found = {}
    for i, (name, dtype) in enumerate(zip(names, subject.message_dtypes, strict=False)):
        values = [m.elts[i] for m in sent if isinstance(m, ast.Tuple)]
        are_small = sends.delivery is Delivery.RECORD and len(values) == len(sent)
        are_small = are_small and all(_is_small(value, {}) for value in values)
        found[name] = dtype.kind in "ib" and (dtype.itemsize <= 4 or are_small)
    return found


def _is_small(node: ast.expr, fields: dict[str, bool]) -> bool:
    """Tell whether an expression over a message `__m` is a small signed number or a truth value, whatever it is."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and abs(node.value) < _LIMIT
    if isinstance(node, ast.IfExp):
        return _is_small(node.body, fields) and _is_small(node.orelse, fields)
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):  # 0 + x, as truth values become numbers
        return isinstance(node.left, ast.Constant) and node.left.value == 0 and _is_small(node.right, fields)
    if isinstance(node, ast.Name):
        return node.id == "__m" and fields.get("", False)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "__m" and fields.get(node.attr, False)
    is_cast = isinstance(node, ast.Call) and ast.unparse(node.func) in _CASTS
    return is_cast and _all_small(node.args, fields)  # type: ignore[attr-defined]


_CASTS = ("__np.int64", "__np.int32", "__np.int16", "__np.int8", "__np.bool_", "int", "bool")


def _all_small(nodes: Sequence[ast.expr], fields: dict[str, bool]) -> bool:
    return all(_is_small(node, fields) for node in nodes)
