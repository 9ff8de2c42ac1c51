"""What of Python's grammar can be compiled: the loops and actions of a vertex, and what to write instead of others."""

from __future__ import annotations

import ast
from typing import TypeGuard

from sigps.compiler.frontend.keyed import is_grouped
from sigps.compiler.frontend.syntax import is_self
from sigps.model.vector import INSIDE
from sigps.native.source import reject
from sigps.native.trees import walk

__all__ = [
    "ACTIONS",
    "GROUP",
    "SENDS",
    "action_of",
    "check_actions",
    "check_pair",
    "is_common_neighbors",
    "is_edge_loop",
    "is_messages",
    "is_out_edges",
    "refuse",
    "reject_edge",
]

ACTIONS = {"send": 2, "send_to": 2, "send_to_neighbors": 1, "vote_to_halt": 0, "retire": 0}
"""The methods by which a vertex acts, and how many arguments each takes."""

GROUP = "__group"
"""What the names of groups begin with, where a loop over `messages.grouped()` is read."""

SENDS = ("send", "send_to", "send_to_neighbors")

_INNER = "a function inside compute() cannot be compiled: write a method or a function of the module"
_REFUSED: dict[type[ast.AST], str] = {
    ast.Try: "'try' cannot be compiled: test for the case before it happens",
    ast.TryStar: "'try' cannot be compiled: test for the case before it happens",
    ast.With: "'with' cannot be compiled: open nothing in compute()",
    ast.Raise: "'raise' cannot be compiled: store an error code in a State field",
    ast.Assert: "'assert' cannot be compiled: run with device='python' to check assumptions",
    ast.Lambda: "a lambda cannot be compiled: write a method or a function of the module",
    ast.FunctionDef: _INNER,
    ast.AsyncFunctionDef: _INNER,
    ast.ClassDef: "a class inside compute() cannot be compiled: write it in the module",
    ast.Import: "an import inside compute() cannot be compiled: import at the top of the file",
    ast.ImportFrom: "an import inside compute() cannot be compiled: import at the top of the file",
    ast.Global: "'global' cannot be compiled: vertices share values through aggregators",
    ast.Nonlocal: "'nonlocal' cannot be compiled: vertices share values through aggregators",
    ast.Delete: "'del' cannot be compiled: leave the variable be",
    ast.Yield: "'yield' cannot be compiled: send messages instead",
    ast.YieldFrom: "'yield' cannot be compiled: send messages instead",
    ast.List: "a list cannot be compiled: use State fields, tuples or local variables; a vector is "
    "Vector[float, 2]((x, y))",
    ast.Dict: "a dict cannot be compiled: use State fields, tuples or local variables",
    ast.Set: "a set cannot be compiled: use State fields, tuples or local variables",
    ast.ListComp: "a list comprehension cannot be compiled: reduce with sum(), min(), max(), any(), all()",
    ast.DictComp: "a dict comprehension cannot be compiled: use a loop",
    ast.SetComp: "a set comprehension cannot be compiled: use a loop",
    ast.JoinedStr: "an f-string cannot be compiled: print and format with device='python'",
    ast.Starred: "'*' cannot be compiled: name the arguments",
}
_CALLS_REFUSED = {
    "print": "print() cannot be compiled: run with device='python', or trace=[ids]",
    "breakpoint": "breakpoint() cannot be compiled: run with device='python'",
    "super": "super() cannot be compiled: give the shared part a method name of its own",
    "list": "list() cannot be compiled: loop over the messages themselves",
    "set": "set() cannot be compiled: use State fields, tuples or local variables",
    "dict": "dict() cannot be compiled: use State fields, tuples or local variables",
    "next": "next() cannot be compiled: the order of messages is unspecified; use min() or max()",
    "enumerate": "enumerate() is written 'for i, x in enumerate(values)', in a generator over a variable or a field",
    "zip": "zip() is written 'for a, b in zip(ones, others)', in a generator over variables or fields",
    "isinstance": "isinstance() cannot be compiled: a message has the one type that the class declares",
    "getattr": "getattr() cannot be compiled: write self.name",
    "hasattr": "hasattr() cannot be compiled: write self.name",
    "setattr": "setattr() cannot be compiled: write self.name = value",
    "open": "open() cannot be compiled: read data before the run, into Param fields or edge columns",
    "input": "input() cannot be compiled: give the value as a Param",
    "str": "str() cannot be compiled: compute with numbers",
}


def refuse(tree: ast.FunctionDef) -> None:
    """Raise a CompileError at the first thing in a function that cannot be compiled."""
    for node in [child for statement in tree.body for child in walk(statement)]:
        refusal = _REFUSED.get(type(node))
        if refusal is not None:
            reject(node, refusal)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS_REFUSED:
            reject(node, _CALLS_REFUSED[node.func.id])
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            _check_item(node)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "sorted":
            _check_sorted(node)
    for node in walk(tree):
        if isinstance(node, ast.For):
            _check_loop(node)


def _check_item(node: ast.Subscript) -> None:
    if not isinstance(node.value, ast.Name) and not is_self(node.value):
        reject(node, INSIDE)


def _check_sorted(node: ast.Call) -> None:
    source = node.args[0] if node.args else node
    if is_messages(source) or is_out_edges(source) or isinstance(source, ast.GeneratorExp):
        reject(node, "sorted() takes a few values here: keep the best ones in local variables while looping")
    if len(node.args) != 1 or node.keywords:
        reject(node, "sorted() takes one tuple here, and no key= or reverse=: 'low, high = sorted((a, b))'")


def _check_loop(node: ast.For) -> None:
    source = node.iter
    is_range = (
        isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range"
    )
    is_tuple = isinstance(getattr(source, "value", None), tuple) or isinstance(source, (ast.Name, ast.Tuple))
    is_values = isinstance(source, (ast.Attribute, ast.BinOp, ast.UnaryOp, ast.IfExp))  # those of a vector
    is_edges = is_out_edges(source)
    is_pairs, is_groups = is_common_neighbors(source), is_grouped(source)
    if not (
        is_range or is_tuple or is_values or is_edges or is_pairs or is_groups
    ):  # of fields see prepare.py
        reject(
            node,
            "a loop runs over messages, messages.grouped(...), self.out_edges, self.common_neighbors(edge), "
            "range(...), a vector or a tuple; "
            "this one does not",
        )
    target = node.target
    is_parts = isinstance(target, ast.Tuple) and all(isinstance(t, ast.Name) for t in target.elts)
    if is_pairs:
        check_pair(target)
    if is_groups and not (is_parts and len(target.elts) == 2):  # type: ignore[attr-defined]
        reject(target, "grouped() gives pairs: 'for key, group in messages.grouped(...)'")
    if not isinstance(target, ast.Name) and not (is_parts and not is_edges and not is_range):
        reject(node, "the loop variable must be one name, or a name for each field of a message")


def is_messages(node: ast.AST) -> bool:
    """Tell whether an expression is `messages`, or a group of them."""
    return isinstance(node, ast.Name) and (node.id == "messages" or node.id.startswith(GROUP))


def is_out_edges(node: ast.AST) -> bool:
    """Tell whether an expression is `self.out_edges`."""
    return is_self(node) and node.attr == "out_edges"


def is_edge_loop(node: ast.AST) -> bool:
    """Return whether a statement is a loop over self.out_edges."""
    return isinstance(node, ast.For) and is_out_edges(node.iter)


def action_of(node: ast.AST) -> str | None:
    """Return the name of the action that a statement calls, or None."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and is_self(call.func):
        name: str = call.func.attr
        return name if name in ACTIONS else None
    return None


def is_common_neighbors(node: ast.AST) -> TypeGuard[ast.Call]:
    """Tell whether an expression is `self.common_neighbors(...)`."""
    return isinstance(node, ast.Call) and is_self(node.func) and node.func.attr == "common_neighbors"


def check_pair(target: ast.expr) -> None:
    """Refuse a target of a loop over `common_neighbors()` that is not two names."""
    is_pair = isinstance(target, ast.Tuple) and all(isinstance(t, ast.Name) for t in target.elts)
    if not is_pair or len(target.elts) != 2:  # type: ignore[attr-defined]
        reject(target, "common_neighbors() gives pairs: 'for one, other in self.common_neighbors(edge)'")


def check_actions(statement: ast.stmt) -> None:
    """Refuse an action that is not a statement by itself, or has other arguments than it takes."""
    done = {
        node.value
        for node in walk(statement)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and is_self(node.value.func)
    }
    calls = {node.func: node for node in walk(statement) if isinstance(node, ast.Call)}
    for node in walk(statement):
        if not is_self(node) or node.attr not in ACTIONS:
            continue
        action = node.attr
        call = calls.get(node)
        if call is None or call not in done:
            reject(node, f"self.{action}(...) gives no value: call it on a line of its own")
        if call.keywords or len(call.args) != ACTIONS[action]:
            count = ACTIONS[action]
            reject(node, f"self.{action}() takes {count} argument{'s' * (count != 1)}, without names")


def reject_edge(node: ast.AST) -> None:
    """Refuse to use an edge as a value."""
    reject(
        node,
        "an edge can only be used as edge.target, edge.weight, edge.<column>, edge.<what is kept there>, or in "
        "self.send(edge, ...) and self.common_neighbors(edge); it cannot be given to a method",
    )
