"""Reductions of messages and of edges (sum, min, max, any, all, len): matched, and written out as loops."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.compiler.frontend.grammar import is_common_neighbors, is_messages, is_out_edges
from sigps.compiler.frontend.keys import KEY_FUNCTIONS, OWN
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import (
    assign,
    assigned_names,
    at,
    expression,
    function,
    loaded_names,
    statements,
    tuple_of,
)
from sigps.compiler.program import Join
from sigps.native.primitives import VALUE_FUNCTIONS, lost_in_max, lost_in_min
from sigps.native.source import reject
from sigps.native.trees import copied

__all__ = [
    "NAN_FUNCTIONS",
    "Loop",
    "Reduction",
    "key_without_nan",
    "match_reduction",
    "names_from_outside",
    "numeric",
    "reduction_call",
    "without_nan",
]

Loop = Callable[[list[ast.stmt]], list[ast.stmt]]
"""Writes a loop around its body."""


@dataclass
class Reduction:
    """One call of sum, min, max, any, all or len.

    Attributes:
        op: `sum`, `min`, `max`, `any`, `all` or `len`.
        source: What is reduced: `messages`, `self.out_edges` or `self.common_neighbors(edge)`.
        variable: The loop's variable, or a tuple of them.
        element: The expression reduced, over the variable.
        conditions: The filters.
        default: The value without elements; the start of a sum; None if not given.
        key: By what min() and max() compare, over the variable; None where they compare the elements. The element is
            then what has the best key: the constant None for an edge, which is given as a position (`keys.py`).
    """

    op: str
    source: ast.expr
    variable: ast.expr
    element: ast.expr
    conditions: list[ast.expr]
    default: ast.expr | None
    node: ast.Call
    key: ast.expr | None = None

    @property
    def needs_default(self) -> bool:
        return self.op in ("min", "max") and self.default is None


def match_reduction(node: ast.Call) -> Reduction | None:
    """Return the reduction of messages or edges that a call is, or None."""
    op = getattr(node.func, "id", "")
    is_by_key = op in KEY_FUNCTIONS
    op = op.removeprefix(OWN).removesuffix("_by") if is_by_key else op
    if op not in _LOOPS or not node.args:
        return None
    first = node.args[0]
    if isinstance(first, ast.GeneratorExp):
        source = first.generators[0]
        if len(first.generators) != 1 or source.is_async:
            reject(node, "a reduction has one 'for' inside it: write a loop")
        if not (is_messages(source.iter) or is_out_edges(source.iter) or is_common_neighbors(source.iter)):
            if not is_by_key:
                return None  # of a vector, a tuple or a range (native/comprehensions.py)
            reject(
                node,
                f"{op}() can reduce messages, self.out_edges or self.common_neighbors(edge) by a key; this runs over "
                "something else: write a loop",
            )
        reduction = Reduction(op, source.iter, source.target, first.elt, source.ifs, None, node)
        if is_by_key:
            reduction.key, *element = first.elt.elts  # type: ignore[attr-defined]
            reduction.element = element[0] if element else ast.Constant(None)
    elif is_messages(first):
        each = ast.Name("__each", ast.Load())
        reduction = Reduction(op, first, ast.Name("__each", ast.Store()), each, [], None, node)
    elif is_common_neighbors(first):
        reject(node, f"{op}() cannot take pairs: {op}(... for one, other in self.common_neighbors(edge))")
    elif is_out_edges(first):
        reject(
            node,
            f"{op}() cannot take edges: use self.out_degree, or {op}(edge.weight for edge in self.out_edges)",
        )
    else:
        return None
    reduction.default = _default(node, op)
    return reduction


def _default(node: ast.Call, op: str) -> ast.expr | None:
    given = {k.arg: k.value for k in node.keywords}
    if op == "sum" and len(node.args) == 2:
        given["start"] = node.args[1]
    allowed = {"sum": "start", "min": "default", "max": "default"}.get(op)
    if len(node.args) > (2 if op == "sum" else 1) or set(given) - {allowed}:
        extra = f" and {allowed}=" if allowed else ""
        reject(node, f"{op}() of messages or edges takes what it reduces{extra}, nothing else")
    return next(iter(given.values()), None)


def reduction_call(
    name: str,
    reduction: Reduction,
    item: Sequence[ast.stmt],
    subject: Subject,
    span: tuple[str, str] = ("__begin", "__end"),
    loop: Loop | None = None,
) -> tuple[ast.FunctionDef, ast.expr]:
    """Write a reduction out as a function of a loop, and its call.

    Args:
        name: The function's.
        reduction: The reduction, its expressions lowered to plain names.
        item: Statements that bind element number `__i` of the span.
        subject: The class.
        span: Names of the first position and of the one past the last.
        loop: Writes the loop, where it is not one over the span.
    """
    start, update, result = _LOOPS[reduction.op]
    element = numeric(reduction.element, None) if reduction.op == "sum" else reduction.element
    if reduction.op in ("min", "max") and not isinstance(element, ast.Tuple):
        element = without_nan(reduction.op, element, None)
    if reduction.op == "len" or (reduction.op == "sum" and reduction.default is None and _counts(reduction)):
        start, update, result = _COUNTING
    if reduction.key is not None:
        element, update = _compared_by_key(reduction, span[0], subject)
    skip: list[ast.stmt] = [
        ast.If(ast.UnaryOp(ast.Not(), c), [ast.Continue()], []) for c in reduction.conditions
    ]
    body = [*item, *skip, assign("__x", element), *statements(update)]
    loops: list[ast.stmt] = [
        ast.For(ast.Name("__i", ast.Store()), expression(f"range({', '.join(span)})"), body, [])
    ]
    if loop is not None:
        loops = loop(body)
    before = statements(start)
    if reduction.key is None or reduction.default is not None:
        before = [assign("__acc", reduction.default or ast.Constant(0)), *before]
    if reduction.needs_default and reduction.key is None:
        # At least one element exists here: the first one is the start.
        first = [assign("__i", ast.Name(span[0], ast.Load())), *item, assign("__acc", element)]
        before = copied([*first, *statements(start)])
    code = [*before, *loops, *statements(f"return {result}")]
    captured = names_from_outside(code, subject)
    definition = function(name, captured, at(code, reduction.node))
    is_found = reduction.op in ("min", "max")
    kept = (result,) if reduction.key is None else ("__best", "__acc")
    joined = update if is_found or reduction.op in ("any", "all") else f"{result} = {result} + __x"
    definition.sigps_join = Join(kept, joined, is_found, reduction.op in ("sum", "len"))  # type: ignore[attr-defined]
    call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(c, ast.Load()) for c in captured], [])
    return at([definition], reduction.node)[0], at([call], reduction.node)[0]


def names_from_outside(code: Sequence[ast.AST], subject: Subject) -> list[str]:
    """Return the variables that the code of a function of its own is given: those that it reads and never sets."""
    known = {
        "__i",
        "__m",
        "__np",
        "__Message",
        "__mark_row",
        "__next_common",
        *NAN_FUNCTIONS,
        *VALUE_FUNCTIONS,
    }
    names = (
        loaded_names(code) - assigned_names(code) - known - set(subject.names.meanings) - set(dir(builtins))
    )
    made = ("__method_", "__reduce", "__message_", "__record_")
    return sorted(name for name in names if not name.startswith(made))


def _compared_by_key(reduction: Reduction, begin: str, subject: Subject) -> tuple[ast.expr, str]:
    """Return a pair of key and element, and the update by which the best pair is kept."""
    op, key, element = reduction.op, reduction.key, reduction.element
    assert key is not None
    sign = tie = "<" if op == "min" else ">"
    if isinstance(element, ast.Constant) and element.value is None:
        element, tie = expression(f"__np.int64(__i - {begin})"), "<"
    elif subject.message_type is not None and ast.unparse(element) == "__m":
        names = [f.name for f in subject.message]
        fields = [
            without_nan(op, expression(f"__m.{names[0]}"), None),
            *(expression(f"__m.{n}") for n in names[1:]),
        ]
        element = subject.made_message(fields)
    elif not isinstance(element, ast.Tuple):
        element = without_nan(op, element, None)
    update = (
        "(__this, __item) = __x\n"
        "if not __found:\n    __best = __this\n    __acc = __item\n"
        f"elif __this {sign} __best or (__this == __best and __item {tie} __acc):\n"
        "    __best = __this\n    __acc = __item\n__found = True"
    )
    return tuple_of([key_without_nan(op, key), element]), update


_LOOPS = {
    "sum": ("", "__acc = __acc + __x", "__acc"),
    "min": ("__found = False", "if not __found or __x < __acc:\n    __acc = __x\n__found = True", "__acc"),
    "max": ("__found = False", "if not __found or __x > __acc:\n    __acc = __x\n__found = True", "__acc"),
    "any": ("__acc = False", "__acc = __acc or bool(__x)", "__acc"),
    "all": ("__acc = True", "__acc = __acc and bool(__x)", "__acc"),
    "len": ("__acc = 0", "__acc = __acc + 1", "__acc"),
}


_COUNTING = "__count = 0", "__count = __count + __x", "__count"
"""A sum of small constants, or of truth values, begins at 0, and never leaves 64 bits: no addition is checked."""


def _counts(reduction: Reduction) -> bool:
    element = reduction.element
    is_small = isinstance(element, ast.Constant) and type(element.value) is int and abs(element.value) < 2**16
    return is_small or _is_truth(element)


def _is_truth(element: ast.expr) -> bool:
    is_not = isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.Not)
    return is_not or isinstance(element, ast.Compare)


NAN_FUNCTIONS = {"__lost_in_min": lost_in_min, "__lost_in_max": lost_in_max}


def without_nan(op: str, element: ast.expr, dtype: Any) -> ast.expr:
    """Return what min() or max() takes of an element: a NaN loses against every number, in whatever order they come."""
    if dtype is not None and dtype.base.kind != "f":
        return element
    return ast.Call(ast.Name(f"__lost_in_{op}", ast.Load()), [element], [])


def key_without_nan(op: str, key: ast.expr) -> ast.expr:
    """Return a key whose number, or first number, loses where it is NaN."""
    if isinstance(key, ast.Tuple) and key.elts:
        return tuple_of([without_nan(op, key.elts[0], None), *key.elts[1:]])
    return without_nan(op, key, None)


def numeric(element: ast.expr, dtype: Any) -> ast.expr:
    """Return a truth value as an integer, as Python's sum() adds it."""
    is_truth = isinstance(element, (ast.Compare, ast.BoolOp)) or (
        isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.Not)
    )
    if is_truth or (dtype is not None and dtype == np.bool_):
        return ast.BinOp(ast.Constant(0), ast.Add(), element)
    return element
