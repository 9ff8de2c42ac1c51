"""From `self.x` to plain local names, and the lines that give those names their values.

    self.superstep -> __superstep      self.rank (state)     -> __s_rank
    self.damping   -> __p_damping      self.error (read)     -> __a_error
    self.error += x -> __c_error = <the aggregator's operation>(__c_error, x)
"""

from __future__ import annotations

import ast
from typing import Any

from sigps.compiler.source import reject
from sigps.compiler.subject import ENV, VERTEX, Subject, is_self
from sigps.compiler.syntax import assign, at, expression, statements

__all__ = ["LowerFields", "unpack"]

_CONTRIBUTE = {
    "sum": "__c_{0} + __value",
    "min": "min(__c_{0}, __value)",
    "max": "max(__c_{0}, __value)",
    "any": "bool(__c_{0} or __value)",
    "all": "bool(__c_{0} and __value)",
    "custom": "__fold_{0}(__c_{0}, __value)",
}


class LowerFields(ast.NodeTransformer):
    """Rewrites every `self.` in place and notes the pure methods that are called."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.methods: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> Any:  # noqa: N802
        if not is_self(node):
            return self.generic_visit(node)
        name = node.attr
        if name in ENV or name in VERTEX:
            lowered = f"__{name}"
        elif name in self._subject.states:
            lowered = f"__s_{name}"
        elif name in self._subject.params:
            lowered = f"__p_{name}"
        elif name in self._subject.aggregators:
            lowered = f"__a_{name}"
        else:
            reject(node, f"self.{name} cannot be used this way in compute()")
        return ast.copy_location(ast.Name(lowered, node.ctx), node)

    def visit_Assign(self, node: ast.Assign) -> Any:  # noqa: N802
        for target in node.targets:
            if is_self(target) and target.attr in self._subject.aggregators:  # type: ignore[attr-defined]
                name = target.attr  # type: ignore[attr-defined]
                reject(node, f"an aggregator cannot be assigned: contribute with 'self.{name} += x'")
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:  # noqa: N802
        target = node.target
        if not is_self(target) or target.attr not in self._subject.aggregators:  # type: ignore[attr-defined,union-attr]
            return self.generic_visit(node)
        name = target.attr  # type: ignore[attr-defined,union-attr]
        if not isinstance(node.op, ast.Add):
            reject(node, f"'self.{name} += x' gives a contribution, whatever the aggregator does; no other operator")
        combine = _CONTRIBUTE[self._subject.aggregators[name].kind].format(name)
        code = [assign("__value", self.visit(node.value)), *statements(f"__c_{name} = {combine}")]
        return at(code, node)

    def visit_Call(self, node: ast.Call) -> Any:  # noqa: N802
        if not is_self(node.func):
            return self.generic_visit(node)
        name = node.func.attr  # type: ignore[attr-defined]
        if self._subject.method(name) is None:
            reject(node, f"self.{name}() cannot be called here")
        node.args = [self.visit(arg) for arg in node.args]
        if node.keywords:
            reject(node, f"self.{name}() takes its arguments without names")
        self.methods.add(name)
        node.func = ast.copy_location(ast.Name(f"__method_{name}", ast.Load()), node.func)
        node.args = [*method_context(name, self._subject), *node.args]
        return at([node], node)[0]

    def visit_Expr(self, node: ast.Expr) -> Any:  # noqa: N802
        call = node.value
        if isinstance(call, ast.Call) and is_self(call.func):
            action = call.func.attr  # type: ignore[attr-defined]
            if action in ("vote_to_halt", "retire"):
                flag = "__halt" if action == "vote_to_halt" else "__retired"
                return at(statements(f"{flag} = True"), node)[0]
        return self.generic_visit(node)


def method_context(name: str, subject: Subject) -> list[ast.expr]:
    """Return the arguments that lend a pure method what it reads of the run and the vertex."""
    if subject.is_static(name):
        return []
    given = [expression("env"), expression("params")]
    if is_uniform_method(name, subject):
        return given
    states = ", ".join(f"__s_{s}" for s in subject.states)
    state = expression(f"({states},)" if states else "()")
    return [*given, expression("aggregates"), expression("vertex"), state]


def is_uniform_method(name: str, subject: Subject) -> bool:
    return all(subject.reach(r) == "uniform" for r in subject.method_reads(name))


def unpack(subject: Subject, *tuples: str) -> list[ast.stmt]:
    """Return the lines that name the parts of the tuples that a function is given."""
    parts = {
        "env": [f"__{n}" for n in ENV],
        "params": [f"__p_{n}" for n in subject.params],
        "aggregates": [f"__a_{n}" for n in subject.aggregators],
        "vertex": [f"__{n}" for n in VERTEX],
        "state": [f"__s_{n}" for n in subject.states],
    }
    code = [f"({', '.join(parts[t])},) = {t}" for t in tuples if parts[t]]
    return statements("\n".join(code))
