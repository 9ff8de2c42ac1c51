"""sum, min, max, any and all of an expression with `for` over a vector, a tuple or a range: a loop.

sum(x * x for x in v if x > 0)    ->    so_far = 0
for x in v:
if not x > 0: continue
so_far = so_far + x * x
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sigps.native.operators import Fault, Operators, UnfitError, Value
from sigps.native.trees import copied, walk
from sigps.native.types import Number, Vector
from sigps.native.vectors import without_nan

if TYPE_CHECKING:
    from sigps.native.instance import Instance

__all__ = ["FOLDS", "Comprehensions", "Step", "with_own_names"]

FOLDS = (sum, min, max, any, all)
_OPTIONS = {sum: "start", min: "default", max: "default"}


class Step(ast.stmt):
    """A statement of the loop that is no Python: it is emitted by a call."""

    _fields = ()

    def __init__(self, emit: Callable[[], bool]) -> None:
        self.emit = emit


class Comprehensions:
    """The part of a body that emits such loops; what it calls is the body's."""

    _instance: Instance
    _operators: Operators
    _emitter: Any
    _block: Callable[..., bool]
    _for: Callable[[ast.For], None]
    _value: Callable[[ast.expr], Value]
    _truth: Callable[[ast.expr], Value]
    _set: Callable[[str, Value], None]
    _break: Callable[[], None]
    _note_fault: Callable[[int, Any], None]

    def _fold(self, function: Any, node: ast.Call) -> Value:
        """Emit a reduction, and return what it comes to."""
        name = function.__name__
        given = {k.arg: k.value for k in node.keywords}
        if function is sum and len(node.args) == 2:
            given["start"] = node.args[1]
        generator = node.args[0]
        assert isinstance(generator, ast.GeneratorExp)
        if len(generator.generators) != 1 or generator.generators[0].is_async:
            raise UnfitError("a reduction has one 'for' inside it: write a loop")
        if len(node.args) > (2 if function is sum else 1) or set(given) - {_OPTIONS.get(function)}:
            raise UnfitError(
                f"{name}() of an expression with 'for' takes no other arguments here: write a loop"
            )
        (only,) = generator.generators
        place = f"{node.lineno}.{node.col_offset}"
        so_far, found = f"__so_far.{place}", f"__found.{place}"
        start = given.get("start", ast.Constant(0))
        step: Callable[[], bool]
        if function in (any, all):
            self._set(so_far, self._operators.constant(function is all))
            step = self._deciding(function is any, so_far, generator.elt)
        elif function is sum:
            self._set(so_far, self._value(ast.copy_location(start, node)))
            step = self._adding(so_far, generator.elt)
        else:
            self._set(found, self._operators.constant(False))
            step = self._choosing(name, so_far, found, generator.elt)
        skips: list[ast.stmt] = [
            ast.If(ast.UnaryOp(ast.Not(), test), [ast.Continue()], []) for test in only.ifs
        ]
        loop = ast.For(only.target, only.iter, [*skips, Step(step)], [])
        for part in (loop, *skips, *(s.test for s in skips)):  # type: ignore[attr-defined]
            ast.copy_location(part, node)
        self._for(loop)
        if function in (min, max):
            self._end_extreme(name, so_far, found, given.get("default"))
        return self._value(ast.copy_location(ast.Name(so_far, ast.Load()), node))

    def _adding(self, so_far: str, element: ast.expr) -> Callable[[], bool]:
        def add() -> bool:
            before = self._value(ast.copy_location(ast.Name(so_far, ast.Load()), element))
            self._set(so_far, self._operators.binary(ast.Add(), before, self._value(element)))
            return False

        return add

    def _deciding(self, decides: bool, so_far: str, element: ast.expr) -> Callable[[], bool]:
        def decide() -> bool:
            test = self._truth(element)

            def end() -> None:
                self._set(so_far, self._operators.constant(decides))
                self._break()

            e = self._emitter
            e.if_(test.handle if decides else e.invert(test.handle), end, lambda: None)
            return False

        return decide

    def _choosing(self, name: str, so_far: str, found: str, element: ast.expr) -> Callable[[], bool]:
        def choose() -> bool:
            ops, e = self._operators, self._emitter
            value = self._value(element)
            if isinstance(value.kind, Vector) or not isinstance(value.kind, Number):
                raise UnfitError(f"{name}() takes numbers here, and this is {value.kind}")
            value = without_nan(ops, value, name)
            if so_far not in self._instance.variables:
                self._set(so_far, value)
            has_one = self._value(ast.copy_location(ast.Name(found, ast.Load()), element))

            def compare() -> None:
                before = self._value(ast.copy_location(ast.Name(so_far, ast.Load()), element))
                self._set(so_far, ops.extreme(name, [before, value]))

            e.if_(has_one.handle, compare, lambda: self._set(so_far, value))
            self._set(found, ops.constant(True))
            return False

        return choose

    def _end_extreme(self, name: str, so_far: str, found: str, default: ast.expr | None) -> None:
        e = self._emitter
        if so_far not in self._instance.variables:
            raise UnfitError(f"{name}() runs over nothing here")
        has_one = self._value(ast.Name(found, ast.Load()))
        if default is None:
            self._note_fault(Fault.NO_VALUE, e.invert(has_one.handle))
            return
        value = default
        e.if_(e.invert(has_one.handle), lambda: self._set(so_far, self._value(value)), lambda: None)


def with_own_names(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function in which the variables of expressions with `for` have names that nothing else has."""
    if not any(isinstance(node, ast.GeneratorExp) for node in walk(tree)):
        return tree
    tree = copied(tree)
    for number, node in enumerate(_innermost_last(tree)):
        new = {
            name.id: f"{name.id}.for{number}"
            for generator in node.generators
            for name in walk(generator.target)
            if isinstance(name, ast.Name)
        }
        outer = node.generators[0].iter  # is read outside
        kept = {id(name) for name in walk(outer)}
        for name in walk(node):
            if isinstance(name, ast.Name) and name.id in new and id(name) not in kept:
                name.id = new[name.id]
    return tree


def _innermost_last(tree: ast.AST) -> Iterator[ast.GeneratorExp]:
    found = [node for node in walk(tree) if isinstance(node, ast.GeneratorExp)]
    return reversed(found)
