"""`master()` or `next_phase()` as a function of numbers, which a device may run between two supersteps.

    self.superstep -> __superstep      self.level (shared or aggregated, read) -> __a_level
    self.limit     -> __p_limit        self.level = x  ->  __value_level = x; __a_level = <type of level>(__value_level)
    self.stop()    -> __stops = True   self.wake_all() -> __wakes = True

It may be any Python. What cannot be compiled, or would not come to the same bits on every device, stays that: Python on
the host, and the obstacle says which line is the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sigps.compiler.cpu.inference import master_types
from sigps.compiler.frontend.lower import unpack
from sigps.compiler.frontend.prepare import check_call, inlined
from sigps.compiler.frontend.reductions import NAN_FUNCTIONS
from sigps.compiler.frontend.subject import ENV, Precision, Subject
from sigps.compiler.frontend.syntax import (
    assign,
    at,
    cast,
    expression,
    function,
    is_self,
    statements,
    tuple_of,
    visited,
)
from sigps.compiler.program import MasterFunction
from sigps.errors import CompileError
from sigps.model.fields import Field
from sigps.model.vertex import Vertex
from sigps.native.builder import Functions
from sigps.native.cpp import CppFunctions
from sigps.native.primitives import VALUE_FUNCTIONS
from sigps.native.source import reject
from sigps.native.trees import copied, walk
from sigps.native.types import BOOL

__all__ = ["derive_master"]

_CONTEXT = ("__env", "__params", "__aggregates")

_EXACT = frozenset({"neg", "sqrt", "floor", "ceil", "trunc", "rint", "fabs", "copysign", "fmod"})
"""Functions of C's library whose results have the same bits everywhere."""


def derive_master(
    program: Vertex, params: Mapping[str, Field], precision: Precision
) -> tuple[MasterFunction | None, str]:
    """Return a program's master() or next_phase() as functions of numbers, and why it is none; empty without either.

    Args:
        program: The program.
        params: The parameters that compute() takes.
        precision: The run's.
    """
    if not program.declaration.has_master:
        return None, ""
    subject = Subject(program, "double")
    subject.params = dict(params)
    try:
        return _derived(subject, precision), ""
    except CompileError as error:
        where = f"{Path(error.file).name}:{error.line}: " if error.file and error.line else ""
        return None, where + error.problem


def _derived(subject: Subject, precision: Precision) -> MasterFunction:
    tree = subject.master()
    body = inlined(tree, subject)
    lower = _LowerMaster(subject, precision)
    body = visited(lower, body)
    shared = [a for a in subject.aggregators.values() if a.is_shared]
    result = tuple_of(
        [
            tuple_of([expression(f"__a_{a.name}") for a in shared]),
            expression("__np.uint8((1 if __stops else 0) | (2 if __wakes else 0))"),
        ]
    )
    returns = _Returns(result)
    body = [returns.visit(statement) for statement in body]
    start = [*unpack(subject, *_CONTEXT), *statements("__stops = False\n__wakes = False")]
    functions: list[ast.stmt] = [function("master", _CONTEXT, [*start, *body, ast.Return(result)])]
    functions += _methods(subject, lower.methods, precision)
    module = ast.Module(body=at(functions, tree), type_ignores=[])
    made = MasterFunction(tree.name, module, _namespace(subject, module))
    _check(made, subject, tree)
    return made


def _methods(subject: Subject, names: set[str], precision: Precision) -> list[ast.stmt]:
    """Return the user's methods without effects that are called, by name or from one of them."""
    found: dict[str, ast.stmt] = {}
    waiting = sorted(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        tree = copied(subject.tree(name))
        lower = _LowerMaster(subject, precision)
        is_static = subject.is_static(name)
        given = [arg.arg for arg in tree.args.args][0 if is_static else 1 :]
        start = [] if is_static else unpack(subject, *_CONTEXT)
        context = [] if is_static else list(_CONTEXT)
        body = visited(lower, tree.body)
        made = function(f"__method_{name}", [*context, *given], [*start, *body])
        made.args.args[len(context) :] = tree.args.args[len(tree.args.args) - len(given) :]
        made.args.defaults = tree.args.defaults
        found[name] = at([made], tree)[0]
        waiting += sorted(lower.methods - set(found))
    return list(found.values())


class _LowerMaster(ast.NodeTransformer):
    """Rewrites every `self.x` in place, and collects the user's methods that are called."""

    def __init__(self, subject: Subject, precision: Precision) -> None:
        self._subject, self._precision = subject, precision
        self.methods: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not is_self(node):
            return self.generic_visit(node)
        name, subject = node.attr, self._subject
        is_stored = isinstance(node.ctx, ast.Store)
        if name in subject.aggregators:
            if is_stored and not subject.aggregators[name].is_shared:
                reject(node, f"vertices contribute to the aggregator {name!r}, in compute(); it is read here")
            lowered = f"__value_{name}" if is_stored else f"__a_{name}"
        elif is_stored:
            reject(node, f"self.{name} is no shared value")
        elif name in ENV:
            lowered = f"__{name}"
        elif name in subject.params:
            if self._precision == "single" and subject.params[name].dtype("double").kind == "f":
                reject(node, f"the parameter {name!r} has 32 bits where vertices read it, and 64 here")
            lowered = f"__p_{name}"
        else:
            reject(node, f"self.{name} is nothing that compiled code has between supersteps")
        return ast.copy_location(ast.Name(lowered, node.ctx), node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        names = [n.attr for t in node.targets for n in walk(t) if is_self(n) and isinstance(n.ctx, ast.Store)]
        self.generic_visit(node)
        return at([node, *map(self._typed, names)], node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if not is_self(target):
            return self.generic_visit(node)
        value: ast.expr = ast.BinOp(ast.Attribute(target.value, target.attr, ast.Load()), node.op, node.value)
        return self.visit_Assign(at([ast.Assign([target], value)], node)[0])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if is_self(node.target):
            reject(node, "a field of the class is declared in the class")
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        if isinstance(call, ast.Call) and is_self(call.func) and call.func.attr in ("stop", "wake_all"):
            if call.args or call.keywords:
                reject(call, f"self.{call.func.attr}() takes no arguments")
            flag = "__stops" if call.func.attr == "stop" else "__wakes"
            return at(statements(f"{flag} = True"), node)[0]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if not is_self(node.func):
            return self.generic_visit(node)
        name = node.func.attr
        if self._subject.method(name) is None:
            reject(node, f"self.{name}() cannot be called between supersteps, or not in an expression")
        check_call(node.func, node, self._subject)
        self.methods.add(name)
        made = ast.copy_location(ast.Name(f"__method_{name}", ast.Load()), node.func)
        now = tuple_of([expression(f"__a_{a}") for a in self._subject.aggregators])
        context = [] if self._subject.is_static(name) else [expression("__env"), expression("__params"), now]
        return at([ast.Call(made, [*context, *[self.visit(arg) for arg in node.args]], [])], node)[0]

    def _typed(self, name: str) -> ast.stmt:
        dtype = self._subject.aggregators[name].field.dtype()
        return assign(f"__a_{name}", cast(dtype, ast.Name(f"__value_{name}", ast.Load())))


class _Returns(ast.NodeTransformer):
    def __init__(self, result: ast.expr) -> None:
        self._result = result

    def visit_Return(self, node: ast.Return) -> ast.Return:
        return at([ast.Return(copied(self._result))], node)[0]


def _namespace(subject: Subject, module: ast.Module) -> dict[str, Any]:
    called = {node.id for node in walk(module) if isinstance(node, ast.Name)}
    own = {name: value for name, value in VALUE_FUNCTIONS.items() if name in called}
    return {"__np": np, **NAN_FUNCTIONS, **subject.names.meanings, **own}


def _check(made: MasterFunction, subject: Subject, tree: ast.FunctionDef) -> None:
    """Find the types, and refuse what would mean something else, or come to other bits, than on another device."""
    functions = Functions(made.module, made.namespace)
    params, aggregators = tuple(subject.params.values()), tuple(subject.aggregators.values())
    dtypes = tuple(a.field.dtype() for a in aggregators)
    instance = functions.instance("master", master_types(params, dtypes, "double"))
    for name, kind in instance.variables.items():
        field = name.partition(".")[0].removeprefix("__value_")
        is_truth = kind == BOOL and name.startswith("__value_")
        if is_truth and subject.aggregators[field].field.dtype().kind != "b":
            reject(tree, f"the shared value {field!r} is a number, and is given a truth value")
    if functions.has_open_loops:
        reject(tree, "it has a 'while', which may never end: write a loop over range(...)")
    emitted = CppFunctions(functions)
    emitted.name(instance)
    if inexact := emitted.math - _EXACT:
        reject(tree, f"{min(inexact)}() differs in its last bits from device to device")
