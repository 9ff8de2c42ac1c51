"""From `self.x` to local names, and the statements that assign them from the tuples a function is given.

    self.superstep -> __superstep      self.rank (state)     -> __s_rank
    self.damping   -> __p_damping      self.error (read)     -> __a_error
    self.error += x -> __c_error = <type of error>(<the aggregator's operation>(__c_error, x))

What is assigned to a state is cast to its type at once, as in the interpreter: `__s_x = int64(__s_x)`.
"""

from __future__ import annotations

import ast
from typing import Any

from sigps.compiler.frontend.absent import held, marked
from sigps.compiler.frontend.subject import ENV, VERTEX, Subject
from sigps.compiler.frontend.syntax import assign, at, cast, expression, is_self, statements, visited
from sigps.model.records import Record
from sigps.native.source import reject
from sigps.native.trees import walk

__all__ = ["LowerFields", "lowered", "record_name", "state_name", "unpack"]

_CONTRIBUTE = {
    "sum": "__c_{0} + __value_{0}",
    "min": "min(__c_{0}, __value_{0})",
    "max": "max(__c_{0}, __value_{0})",
    "any": "bool(__c_{0} or __value_{0})",
    "all": "bool(__c_{0} and __value_{0})",
    "custom": "__fold_{0}(__c_{0}, __value_{0})",
}


_OF_VECTORS = {"min": "__np.minimum(__c_{0}, __value_{0})", "max": "__np.maximum(__c_{0}, __value_{0})"}


class LowerFields(ast.NodeTransformer):
    """Rewrites every `self.x` in place, and collects the user's methods that are called."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.methods: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not is_self(node):
            return self.generic_visit(node)
        name = node.attr
        if name in ENV or name in VERTEX:
            lowered = f"__{name}"
        elif name in self._subject.states:
            lowered = f"__s_{name}"
        elif name in self._subject.records:
            return at([_record(self._subject.records[name], node.ctx)], node)[0]
        elif name in self._subject.params:
            lowered = f"__p_{name}"
        elif name in self._subject.aggregators:
            lowered = f"__a_{name}"
        else:
            reject(node, f"self.{name} cannot be used this way in compute()")
        return ast.copy_location(ast.Name(lowered, node.ctx), node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        stored = [n for t in node.targets for n in walk(t) if isinstance(n, ast.Attribute) and is_self(n)]
        for target in stored:
            if target.attr in self._subject.aggregators:
                name = target.attr
                self._reject_shared(node, name)
                reject(node, f"an aggregator cannot be assigned: contribute with 'self.{name} += x'")
        self.generic_visit(node)
        whole: list[str] = []
        for target in stored:
            if isinstance(target.ctx, ast.Store):
                record = self._subject.records.get(target.attr)
                whole += [f.name for f in record.fields()] if record is not None else [target.attr]
        return at([node, *[self._typed(name) for name in whole]], node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if isinstance(target, ast.Subscript) and self._is_aggregator(target.value):
            return self._contribute_item(node, target)
        if not isinstance(target, ast.Attribute) or not is_self(target):
            return self.generic_visit(node)
        name = target.attr
        if name in self._subject.records:
            reject(node, f"self.{name} is a NamedTuple: assign a new one, self.{name} = ...")
        if name not in self._subject.aggregators:
            self.generic_visit(node)
            return at([node, self._typed(name)], node)
        self._reject_shared(node, name)
        if not isinstance(node.op, ast.Add):
            reject(
                node,
                f"'self.{name} += x' gives a contribution, whatever the aggregator does; no other operator",
            )
        aggregator = self._subject.aggregators[name]
        is_vector = bool(aggregator.field.dtype().shape)
        rule = _OF_VECTORS.get(aggregator.kind) if is_vector else None
        combined = cast(
            aggregator.field.dtype(), expression((rule or _CONTRIBUTE[aggregator.kind]).format(name))
        )
        value = self.visit(node.value)
        if is_vector:  # a tuple, or a number for all, will do
            value = cast(aggregator.field.dtype(), value)
        return at([assign(f"__value_{name}", value), assign(f"__c_{name}", combined)], node)

    def _is_aggregator(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and is_self(node) and node.attr in self._subject.aggregators

    def _contribute_item(self, node: ast.AugAssign, target: ast.Subscript) -> list[ast.stmt]:
        """Return the contribution of one number of a vector: `self.histogram[k] += 1`."""
        assert isinstance(target.value, ast.Attribute)
        name = target.value.attr
        if not isinstance(node.op, ast.Add):
            reject(
                node,
                f"'self.{name}[k] += x' gives a contribution, whatever the aggregator does; no other operator",
            )
        aggregator = self._subject.aggregators[name]
        so_far = f"__c_{name}[__at_{name}]"
        rule = _CONTRIBUTE[aggregator.kind].replace("__c_{0}", so_far).format(name)
        code = [
            assign(f"__at_{name}", self.visit(target.slice)),
            assign(f"__value_{name}", self.visit(node.value)),
            *statements(f"{so_far} = {rule}"),
        ]
        return at(code, node)

    def _reject_shared(self, node: ast.AST, name: str) -> None:
        if self._subject.aggregators[name].is_shared:
            reject(
                node, f"self.{name} is a shared value: compute() reads it; master() or next_phase() sets it"
            )

    def visit_Call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Attribute) or not is_self(node.func):
            return self.generic_visit(node)
        name = node.func.attr
        if self._subject.method(name) is None:
            reject(node, f"self.{name}() cannot be called here")
        self.methods.add(name)
        function = ast.copy_location(ast.Name(f"__method_{name}", ast.Load()), node.func)
        given = [*_method_context(name, self._subject), *[self.visit(arg) for arg in node.args]]
        return at([ast.Call(function, given, [])], node)[0]

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        if isinstance(call, ast.Call) and is_self(call.func):
            action = call.func.attr
            if action in ("vote_to_halt", "retire"):
                flag = "__halt" if action == "vote_to_halt" else "__retired"
                return at(statements(f"{flag} = True"), node)[0]
        return self.generic_visit(node)

    def _typed(self, state: str) -> ast.stmt:
        value = ast.Name(state_name(state), ast.Load())
        return assign(state_name(state), held(self._subject.states[state], self._subject.precision, value))


def state_name(state: str) -> str:
    """Return the local name of a state, which may be a part of a record: `cluster.size`."""
    return f"__s_{state.replace('.', '_of_')}"


def record_name(record: Record) -> str:
    """Return the name of a record's class in the generated module."""
    return f"__record_{record.name.replace('.', '_of_')}"


def _record(record: Record, context: ast.expr_context) -> ast.expr:
    """Return what a record is made of: its class called with its parts, or where it is assigned, a tuple of these."""
    parts = [
        _record(p, context) if isinstance(p, Record) else ast.Name(state_name(p.name), context)
        for p in record.parts
    ]
    if isinstance(context, ast.Store):
        return ast.Tuple(parts, context)
    return ast.Call(ast.Name(record_name(record), ast.Load()), parts, [])


def lowered(body: list[ast.stmt], subject: Subject) -> tuple[list[ast.stmt], set[str]]:
    """Return a block without `self.x`, and the user's methods that it calls."""
    lower = LowerFields(subject)
    return visited(lower, body), lower.methods


def _method_context(name: str, subject: Subject) -> list[ast.expr]:
    """Return the arguments from which a method without effects reads the run and the vertex."""
    if subject.is_static(name):
        return []
    given = [expression("__env"), expression("__params")]
    if subject.is_uniform(name):
        return given
    states = ", ".join(map(state_name, subject.states))
    state = expression(f"({states},)" if states else "()")
    return [*given, expression("__aggregates"), expression("__vertex"), state]


def unpack(subject: Subject, *tuples: str) -> list[ast.stmt]:
    """Return the statements that unpack the tuples that a function is given into local names."""
    parts = {
        "__env": [f"__{n}" for n in ENV],
        "__params": [f"__p_{n}" for n in subject.params],
        "__aggregates": [f"__a_{n}" for n in subject.aggregators],
        "__vertex": [f"__{n}" for n in VERTEX],
        "__state": [state_name(n) for n in subject.states],
    }
    code = [f"({', '.join(parts[t])},) = {t}" for t in tuples if parts[t]]
    known = {state_name(name): field for name, field in subject.states.items() if "__state" in tuples}
    return [*statements("\n".join(code)), *marked(known)]
