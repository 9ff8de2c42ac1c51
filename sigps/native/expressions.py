"""Expressions of a function's body: to values, by calls of an emitter.

A function also returns its fault: 0, or where and how its arithmetic had no result; the first that happened.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
import inspect
import math
import types as python_types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import add, lshift, mul, sub
from typing import Any

import numpy as np

from sigps.model.records import no_part, vectors_of
from sigps.model.vector import Vector as UserVector
from sigps.model.vector import VectorType, no_length
from sigps.model.wrapping import wrapping
from sigps.native import primitives, vectors
from sigps.native.bounds import GIVEN, join_bounds
from sigps.native.comprehensions import FOLDS, Comprehensions
from sigps.native.emitter import Emitter, Finder
from sigps.native.instance import FunctionTable, Instance
from sigps.native.operators import (
    FUNCTIONS,
    NO_LITERAL,
    Fault,
    Operators,
    UnfitError,
    Value,
    join_values,
    tuple_of,
)
from sigps.native.primitives import External, ProgramFunction
from sigps.native.source import reject
from sigps.native.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    OPTIONAL,
    UINT,
    Array,
    Number,
    Scalar,
    Tuple,
    Type,
    Vector,
    flat,
)  # fmt: skip

__all__ = ["Expressions", "as_load", "may_be_unsigned", "whole_constant"]


class Expressions(Comprehensions):
    """Emits the expressions of one instance's body."""

    def __init__(self, functions: FunctionTable, instance: Instance, emitter: Emitter) -> None:
        self._functions, self._instance, self._real = functions, instance, functions.real
        self._wraps = False
        self._set_emitter(emitter)
        self._storage: dict[str, list[Any]] = {}
        self._fault: Any = None
        self._node: ast.AST = instance.tree

    def _set_emitter(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self._operators = self._operators_of(wraps=self._wraps)

    def _operators_of(self, *, wraps: bool) -> Operators:
        note = self._note_fault if self._instance.is_checked else None
        return Operators(self._emitter, note, self._real, wraps=wraps)

    @contextmanager
    def _dry(self) -> Iterator[None]:
        """Find types only, inside."""
        before = self._emitter
        self._set_emitter(Finder(getattr(before, "guesses", None)))
        try:
            yield
        finally:
            self._set_emitter(before)

    # Faults and errors.

    def _note_fault(self, kind: int, happens: Any) -> None:
        self._instance.can_fault = True
        code = self._functions.site(self._node, kind)
        if not self._emitter.emits:
            return
        e = self._emitter
        e.if_rarely(happens, lambda: self._keep_fault(e.constant(INT, code)))

    def _keep_fault(self, fault: Any) -> None:
        """Keep a fault, if none happened before."""
        e = self._emitter
        so_far = e.read(self._fault)
        is_first = e.compare("==", INT, so_far, e.constant(INT, 0))
        e.write(self._fault, e.select(is_first, fault, so_far, INT))

    @contextmanager
    def _at(self, node: ast.AST) -> Iterator[None]:
        before = self._node
        if hasattr(node, "lineno"):
            self._node = node
        try:
            yield
        except UnfitError as error:
            reject(self._node, str(error))
        finally:
            self._node = before

    def _store(self, array: Value, at: Any, value: Value) -> None:
        assert isinstance(array.kind, Array)
        if value.kind == OPTIONAL and array.kind.element == INT:
            value = Value(INT, value.handle)  # what may be None is kept as it is
        stored = self._operators.declared(value, array.kind.element)
        self._emitter.store(array.handle, array.kind, at, stored.handle)

    def _load(self, array: Value, at: Any) -> Value:
        assert isinstance(array.kind, Array)
        return Value(array.kind.element, self._emitter.load(array.handle, array.kind, at))

    def _leave(self, kind: int) -> None:
        """Return at once, with a fault."""
        self._instance.can_fault = True
        code = self._functions.site(self._node, kind)
        if self._emitter.emits:
            zeros = [self._zero(part) for part in flat(self._instance.result or NONE)]
            self._emitter.return_([*zeros, self._emitter.constant(INT, code)])

    def _zero(self, part: Scalar | Array) -> Any:
        return self._emitter.read(self._emitter.variable(part))

    # Expressions.

    def _value(self, node: ast.expr) -> Value:
        with self._at(node):
            return self._evaluated(node)

    def _evaluated(self, node: ast.expr) -> Value:
        ops = self._operators
        if isinstance(node, ast.Constant):
            return Value(NONE) if node.value is None else ops.constant(node.value)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.BinOp) and _is_count(node.left):
            one, other = (ops.to(self._value(part), INT).handle for part in (node.left, node.right))
            return Value(INT, self._emitter.binary("+", INT, one, other))
        written = whole_constant(node) if isinstance(node, (ast.BinOp, ast.UnaryOp)) else None
        if written is not None and -(2**63) <= written < 2**63:
            return ops.constant(written)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return vectors.dot(ops, self._value(node.left), self._value(node.right))
        if isinstance(node, ast.BinOp):
            return ops.binary(node.op, self._value(node.left), self._value(node.right))
        if isinstance(node, ast.UnaryOp):
            return ops.unary(node.op, self._value(node.operand))
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.BoolOp):
            return self._either(node.op, node.values)
        if isinstance(node, ast.IfExp):
            return self._lazily(self._truth(node.test), node.body, node.orelse)
        if isinstance(node, ast.Tuple):
            return tuple_of([value for item in node.elts for value in self._items(item)])
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.GeneratorExp):
            raise UnfitError(
                "an expression with 'for' stands in sum(), min(), max(), any() or all(): elsewhere write a loop, or "
                "compute with a vector as a whole, as in np.sqrt(v)"
            )
        raise UnfitError(f"{ast.unparse(node)} cannot be compiled: compute with numbers and tuples")

    def _items(self, node: ast.expr) -> Sequence[Value]:
        """Return what one item of a tuple display stands for."""
        if not isinstance(node, ast.Starred):
            return [self._value(node)]
        value = self._value(node.value)
        if isinstance(value.kind, Vector):
            return self._numbers(value)
        if not isinstance(value.kind, Tuple):
            raise UnfitError(f"* takes a tuple, and this is {value.kind}")
        return value.items

    def _numbers(self, vector: Value) -> list[Value]:
        """Return the numbers of a vector, one after the other."""
        assert isinstance(vector.kind, Vector)
        return [vectors.item(self._operators, vector, i) for i in range(vector.kind.length)]

    def _truth(self, node: ast.expr) -> Value:
        with self._at(node):
            value = self._value(node)
            if isinstance(value.kind, Tuple):
                return self._operators.constant(bool(value.items))
            return self._operators.truth(value)

    def _name(self, node: ast.Name) -> Value:
        kind = self._instance.variables.get(node.id)
        if kind is not None:
            value = self._rebuilt(kind, iter(self._storage[node.id] if self._emitter.emits else ()))
            if node.id.startswith("__g") and node.id[3:].isdigit():  # a reduction, which may be of nothing: 0
                self._instance.note_joined(node, INT, kind)
            known = GIVEN.get(node.id) if kind == INT else None
            return value if known is None else replace(value, bounds=known)
        meaning = self._meaning(node)
        if meaning is None:
            return Value(NONE)
        if isinstance(meaning, (bool, int, float, np.number, np.bool_, tuple)):
            return self._operators.constant(meaning)
        raise UnfitError(f"{node.id} is a {type(meaning).__name__}: compute with numbers and tuples")

    def _rebuilt(self, kind: Type, parts: Iterator[Any]) -> Value:
        """Return the value of a variable."""
        if isinstance(kind, Tuple):
            return Value(kind, items=tuple(self._rebuilt(item, parts) for item in kind.items))
        if kind == NONE:
            return Value(kind)
        return Value(kind, self._emitter.read(next(parts)) if self._emitter.emits else None)

    def _meaning(self, node: ast.expr) -> Any:
        """Return what a global name, or an attribute of a module, stands for; the name of a function of the module."""
        if isinstance(node, ast.Subscript) and self._meaning(node.value) is UserVector:
            return self._vector_type(node.slice)
        if isinstance(node, ast.Attribute):
            return getattr(self._meaning(node.value), node.attr, None)
        if not isinstance(node, ast.Name) or node.id in self._instance.variables:
            return None
        meanings = self._instance.meanings
        if node.id in meanings:
            return getattr(meanings[node.id], "py_func", meanings[node.id])
        if node.id in self._functions:
            return node.id
        return getattr(builtins, node.id, None)

    def _vector_type(self, given: ast.expr) -> VectorType:
        """Return what `Vector[type, length]` stands for."""
        parts = given.elts if isinstance(given, ast.Tuple) else [given]
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and isinstance(parts[1].value, str):
            raise UnfitError(no_length(parts[1].value))
        length = self._value(parts[1]).literal if len(parts) == 2 else NO_LITERAL
        if len(parts) == 2 and length is NO_LITERAL:
            raise UnfitError(
                "the length of a vector is a constant: a number, or a parameter that says how long a declared vector is"
            )
        element = self._meaning(parts[0])
        try:
            return UserVector[element, length]  # type: ignore[no-any-return, misc]
        except (TypeError, ValueError) as error:
            raise UnfitError(str(error)) from None

    def _compare(self, node: ast.Compare) -> Value:
        left, ops = self._value(node.left), self._operators
        if len(node.ops) == 1:
            operator, right = node.ops[0], self._value(node.comparators[0])
            if isinstance(operator, (ast.In, ast.NotIn)):
                return self._in(operator, left, right)
            if isinstance(operator, (ast.Is, ast.IsNot)) and NONE in (left.kind, right.kind):
                return ops.constant((left.kind == right.kind) == isinstance(operator, ast.Is))
            return ops.compare(operator, left, right)
        e, answer = self._emitter, self._emitter.variable(BOOL)
        e.write(answer, e.constant(BOOL, False))

        def rest(left: Value, at: int) -> None:
            right = self._value(node.comparators[at])
            test = ops.compare(node.ops[at], left, right)
            if at + 1 == len(node.ops):
                e.write(answer, test.handle)
            else:
                e.if_(test.handle, lambda: rest(right, at + 1), lambda: None)

        rest(left, 0)
        return Value(BOOL, e.read(answer))

    def _in(self, operator: ast.cmpop, value: Value, values: Value) -> Value:
        if isinstance(values.kind, Vector):
            equal = vectors.some(self._operators, self._operators.compare(ast.Eq(), values, value))
            return equal if isinstance(operator, ast.In) else Value(BOOL, self._emitter.invert(equal.handle))
        if not isinstance(values.kind, Tuple):
            raise UnfitError(f"'in' searches a tuple, and this is {values.kind}")
        e, found = self._emitter, self._emitter.constant(BOOL, False)
        for item in values.items:
            found = e.binary("|", BOOL, found, self._operators.compare(ast.Eq(), value, item).handle)
        return Value(BOOL, found if isinstance(operator, ast.In) else e.invert(found))

    def _either(self, operator: ast.boolop, values: Sequence[ast.expr]) -> Value:
        """Return the value that decides `and` or `or`; the others are not computed."""
        if len(values) == 1:
            return self._value(values[0])
        first = self._value(values[0])
        with self._dry():
            rest = self._either(operator, values[1:])
            kind = join_values(first, rest)
        self._instance.note_joined(values[0], first.kind, kind)
        for node in values[1:]:
            self._instance.note_joined(node, rest.kind, kind)
        e, ops = self._emitter, self._operators
        result = [e.variable(part) for part in flat(kind)]
        test = ops.truth(first)

        def first_decides() -> None:
            self._write(result, ops.to(first, kind))

        def rest_decides() -> None:
            self._write(result, self._operators.to(self._either(operator, values[1:]), kind))

        branches = (
            (first_decides, rest_decides) if isinstance(operator, ast.Or) else (rest_decides, first_decides)
        )
        e.if_(test.handle, *branches)
        return self._rebuilt(kind, iter(result))

    def _write(self, variables: Sequence[Any], value: Value) -> None:
        for variable, handle in zip(variables, value.handles(), strict=True):
            self._emitter.write(variable, handle)

    def _lazily(self, test: Value, body: ast.expr, orelse: ast.expr) -> Value:
        if test.literal is not NO_LITERAL:
            return self._value(body if test.literal else orelse)
        with self._dry():
            one, other = self._value(body), self._value(orelse)
            kind = join_values(one, other)
        self._instance.note_joined(body, one.kind, kind)
        self._instance.note_joined(orelse, other.kind, kind)
        e, ops = self._emitter, self._operators
        result = [e.variable(part) for part in flat(kind)]
        e.if_(
            test.handle,
            lambda: self._write(result, ops.to(self._value(body), kind)),
            lambda: self._write(result, ops.to(self._value(orelse), kind)),
        )
        bounds = join_bounds(one.range, other.range) if kind == INT else None
        return replace(self._rebuilt(kind, iter(result)), bounds=bounds)

    def _position(self, value: Value) -> Any:
        kind = self._operators.number(value, "a position")
        if kind.is_float:
            raise UnfitError("a position is a whole number, and this is a float")
        return self._emitter.cast(value.handle, kind, INT)

    def _vector_variable(self, node: ast.expr) -> Vector | None:
        """Return the type of a variable that is a vector; None for anything else."""
        kind = self._instance.variables.get(node.id) if isinstance(node, ast.Name) else None
        return kind if isinstance(kind, Vector) else None

    def _place(self, at: Value, length: int) -> Any:
        """Return a position in a vector, counted from the end where it is negative; a fault where there is none."""
        position, e = self._position(at), self._emitter
        if at.literal is not NO_LITERAL:
            if not -length <= at.literal < length:
                raise UnfitError(f"a vector of {length} has no position {at.literal}")
            return e.constant(INT, int(at.literal) % length)
        from_end = e.binary("+", INT, position, e.constant(INT, length))
        position = e.select(e.compare("<", INT, position, e.constant(INT, 0)), from_end, position, INT)
        beyond = e.compare(">=", UINT, e.cast(position, INT, UINT), e.constant(UINT, length))
        if self._instance.is_checked:
            self._note_fault(Fault.NO_ITEM, beyond)
        return e.select(beyond, e.constant(INT, 0), position, INT)

    def _subscript(self, node: ast.Subscript) -> Value:
        of_variable = self._vector_variable(node.value)
        if of_variable is not None and not isinstance(node.slice, ast.Slice):
            assert isinstance(node.value, ast.Name)
            place = self._place(self._value(node.slice), of_variable.length)
            storage = self._storage[node.value.id][0] if self._emitter.emits else None
            return Value(of_variable.element, self._emitter.read_item(storage, of_variable, place))
        whole = self._value(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._part(whole, node.slice)
        at = self._value(node.slice)
        if isinstance(whole.kind, Vector):
            place = self._place(at, whole.kind.length)
            return Value(whole.kind.element, self._emitter.item(whole.handle, whole.kind, place))
        if isinstance(whole.kind, Array):
            return self._load(whole, self._position(at))
        if not isinstance(whole.kind, Tuple):
            raise UnfitError(f"only tuples have parts, and this is {whole.kind}")
        found = self._item(whole, at)
        if at.literal is NO_LITERAL:
            for item in whole.items:
                self._instance.note_joined(node, item.kind, found.kind)
        return found

    def _note_tuple(self, node: ast.expr, values: Value) -> None:
        """Note that the parts of a tuple are given the type that any of them has."""
        parts = values.items
        kind = functools.reduce(lambda a, b: Value(join_values(a, b)), parts).kind
        if isinstance(node, ast.Tuple) and len(node.elts) == len(parts):
            for item, part in zip(node.elts, parts, strict=True):
                self._instance.note_joined(item, part.kind, kind)
        else:
            self._instance.note_joined(node, values.kind, Tuple((kind,) * len(parts)))

    def _part(self, whole: Value, part: ast.Slice) -> Value:
        """Return a slice of an array, whose bounds are positions in it, or of a tuple, whose bounds are constants."""
        if part.step is not None:
            raise UnfitError("a slice has no step here")
        begin, end = (None if bound is None else self._value(bound) for bound in (part.lower, part.upper))
        if isinstance(whole.kind, Array):
            first = self._emitter.constant(INT, 0) if begin is None else self._position(begin)
            last = self._emitter.size(whole.handle) if end is None else self._position(end)
            return Value(whole.kind, self._emitter.part(whole.handle, whole.kind, first, last))
        if not isinstance(whole.kind, (Tuple, Vector)) or any(
            b and b.literal is NO_LITERAL for b in (begin, end)
        ):
            raise UnfitError("a slice is one of a tuple or a vector, with constants")
        bounds = slice(*(None if b is None else b.literal for b in (begin, end)))
        if isinstance(whole.kind, Tuple):
            return tuple_of(whole.items[bounds])
        chosen = range(whole.kind.length)[bounds]
        if not chosen:
            raise UnfitError("this slice of a vector is empty")
        part_kind = Vector(whole.kind.element, len(chosen))
        return Value(part_kind, self._emitter.stretch(whole.handle, whole.kind, chosen[0], len(chosen)))

    def _item(self, values: Value, at: Value) -> Value:
        count = len(values.items)
        if at.literal is not NO_LITERAL:
            if not -count <= at.literal < count:
                raise UnfitError(f"a tuple of {count} has no part {at.literal}")
            return values.items[int(at.literal)]
        ops = self._operators
        found = values.items[-1]
        for i, item in enumerate(values.items[:-1]):
            found = ops.select(ops.compare(ast.Eq(), at, ops.constant(i)), item, found)
        return found

    def _attribute(self, node: ast.Attribute) -> Value:
        meaning = self._meaning(node)
        if isinstance(meaning, (bool, int, float, np.number, np.bool_)):
            return self._operators.constant(meaning)
        whole = self._value(node.value)
        if isinstance(whole.kind, Array) and node.attr == "size":
            return Value(INT, self._emitter.size(whole.handle))
        fields = getattr(getattr(whole.kind, "cls", None), "_fields", ())
        if node.attr not in fields:
            near = difflib.get_close_matches(node.attr, fields, 1)
            hint = (
                f"; did you mean {near[0]!r}?" if near else f"; it has: {', '.join(fields)}" if fields else ""
            )
            raise UnfitError(f"{whole.kind} has no {node.attr!r}{hint}")
        return whole.items[fields.index(node.attr)]

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "_replace" and not node.args:
            return self._replaced(node.func.value, node)
        function = self._meaning(node.func)
        if function is None:
            raise UnfitError(self._not_a_function(node.func))
        if node.args and isinstance(node.args[0], ast.GeneratorExp) and any(function is f for f in FOLDS):
            return self._fold(function, node)
        if isinstance(function, ProgramFunction):
            return self._call_program(function, [self._value(argument) for argument in node.args])
        if isinstance(function, External):
            return self._call_external(function, [self._value(argument) for argument in node.args])
        if isinstance(function, python_types.FunctionType) and function in _PRIMITIVES:
            values = [self._value(argument) for argument in node.args]
            if function in (primitives.min_by, primitives.max_by):
                self._note_tuple(node.args[1], values[1])
            return _PRIMITIVES[function](self, values)
        if function is wrapping:
            return self._wrapping(node)
        if isinstance(function, VectorType):
            return self._make_vector(function, node)
        if isinstance(function, (str, python_types.FunctionType)):
            return self._call_function(function, node)
        if isinstance(function, type) and hasattr(function, "_fields"):
            return self._record(
                function, self._arguments(inspect.signature(function), node, function.__name__)
            )
        if node.keywords:
            raise UnfitError(f"{ast.unparse(node.func)}() takes no named arguments here")
        written = whole_constant(node.args[0]) if len(node.args) == 1 else None
        if function is np.uint64 and written is not None:
            if not 0 <= written < 2**64:
                raise UnfitError(f"{written} is no np.uint64, which holds 0 to 2**64 - 1")
            return self._operators.constant(np.uint64(written))
        if function is np.float64 and ast.unparse(node.func).startswith("__np."):
            return self._in_double(node)
        values = [self._value(argument) for argument in node.args]
        return self._built_in(function, node, values)

    def _not_a_function(self, called: ast.expr) -> str:
        """Say why a value cannot be called."""
        if not isinstance(called, ast.Attribute):
            return f"this is {self._value(called).kind}, which cannot be called"
        kind, name = self._value(called.value).kind, called.attr
        is_reduction = isinstance(kind, Vector) and name in ("sum", "min", "max", "any", "all")
        return f"{kind} has no method {name!r}" + (f": write {name}(v) of a vector v" if is_reduction else "")

    def _wrapping(self, node: ast.Call) -> Value:
        if len(node.args) != 1 or node.keywords:
            raise UnfitError("wrapping() takes one expression")
        before, self._wraps = self._wraps, True
        self._set_emitter(self._emitter)
        try:
            value = self._value(node.args[0])
            if self._operators.number(value, "wrapping()").is_float:
                raise UnfitError("wrapping() takes whole numbers, and this is a float")
            return value if value.literal is not NO_LITERAL else self._operators.to(value, INT)
        finally:
            self._wraps = before
            self._set_emitter(self._emitter)

    def _replaced(self, whole: ast.expr, node: ast.Call) -> Value:
        """Return a NamedTuple with some fields replaced."""
        value = self._value(whole)
        fields = getattr(getattr(value.kind, "cls", None), "_fields", ())
        given = {k.arg: k.value for k in node.keywords}
        if not fields or set(given) - set(fields):
            raise UnfitError(f"{value.kind} has the fields {', '.join(fields) or 'of no NamedTuple'}")
        items = [
            self._value(given[name]) if name in given else item
            for name, item in zip(fields, value.items, strict=True)
        ]
        return self._record(value.kind.cls, items)  # type: ignore[union-attr]

    def _record(self, cls: Any, items: Sequence[Value]) -> Value:
        """Return a NamedTuple; a number or a tuple that is given for a vector is one (`records.with_vectors`)."""
        held = list(items)
        for name, kind in vectors_of(cls).items():
            at = cls._fields.index(name)
            if not isinstance(held[at].kind, Vector):
                held[at] = self._operators.declared(held[at], self._vector_kind(kind))
        return Value(Tuple(tuple(item.kind for item in held), cls), items=tuple(held))

    def _vector_kind(self, kind: VectorType) -> Vector:
        return Vector(self._real if kind.element is float else Number.of(kind.element), int(kind.length))

    def _make_vector(self, kind: VectorType, node: ast.Call) -> Value:
        if len(node.args) != 1 or node.keywords:
            raise UnfitError(f"{kind}(...) takes a vector, a tuple of its numbers, or one number for all")
        if isinstance(kind.length, str):
            raise UnfitError(no_length(kind.length))
        is_generated = isinstance(node.func, ast.Name) and node.func.id.startswith("__vector_")
        vector = self._vector_kind(kind)
        with self._computing_in(FLOAT if is_generated and kind.element is np.float64 else self._real):
            return self._operators.declared(self._value(node.args[0]), vector)

    @contextmanager
    def _computing_in(self, real: Number) -> Iterator[None]:
        """Compute with floats of a type, inside."""
        before, self._real = self._real, real
        self._set_emitter(self._emitter)
        try:
            yield
        finally:
            self._real = before
            self._set_emitter(self._emitter)

    def _in_double(self, node: ast.Call) -> Value:
        """Compute what goes to an aggregator, which adds up in double precision whatever compute() uses."""
        with self._computing_in(FLOAT):
            return self._built_in(np.float64, node, [self._value(argument) for argument in node.args])

    def _built_in(self, function: Any, node: ast.Call, values: list[Value]) -> Value:
        ops, name = self._operators, ast.unparse(node.func)
        if len(values) == 1 and isinstance(values[0].kind, Vector):
            reduced = self._reduced(function, values[0])
            if reduced is not None:
                return reduced
        if function in (min, max) and len(values) > 1 and any(isinstance(v.kind, Vector) for v in values):
            raise UnfitError(f"{name}() of vectors: write np.{name}imum(v, w) for that of each two numbers")
        if function in (min, max) and len(values) > 1:
            best = ops.extreme(function.__name__, values)
            for given, value in zip(node.args, values, strict=False):
                self._instance.note_joined(given, value.kind, best.kind)
            return best
        if function is sorted and len(values) == 1 and isinstance(values[0].kind, Tuple):
            self._note_tuple(node.args[0], values[0])
            return tuple_of(ops.sorted(values[0].items))
        if function is len and len(values) == 1:
            if isinstance(values[0].kind, Array):
                return Value(INT, self._emitter.size(values[0].handle))
            if isinstance(values[0].kind, Tuple):
                return ops.constant(len(values[0].items))
        if isinstance(function, type) and issubclass(function, np.generic) and len(values) == 1:
            kind, value = Number.of(function), values[0]
            is_generated = name.startswith("__np.")
            if isinstance(value.kind, Vector) and is_generated:
                raise UnfitError(f"this takes one number, and is given {value.kind}")
            if isinstance(value.kind, Vector):
                return self._converted(value, kind)
            if not is_generated and kind.kind in "iu" and ops.number(value, name).is_float:
                value = ops.to_int(value)
            return ops.declared(value, kind)
        if function is np.dot and len(values) == 2:
            return vectors.dot(ops, *values)
        found = FUNCTIONS.get(function) if _is_hashable(function) else None
        if found is None:
            instead = _INSTEAD.get(name.rpartition(".")[2]) if _is_of_numpy(function) else None
            if instead is not None:
                raise UnfitError(f"{name}() cannot be compiled: write {instead}")
            raise UnfitError(
                f"{name}() cannot be compiled: use arithmetic, tuples, and the scalar functions of math and numpy"
            )
        count, emit = found
        if len(values) != count:
            raise UnfitError(f"{name}() takes {count} argument{'s' * (count != 1)} here, not {len(values)}")
        by_number = ops.each(lambda lanes, *numbers: emit(lanes, numbers), *values)
        result: Value = emit(ops, values) if by_number is None else by_number
        if function in (np.minimum, np.maximum, np.where) and isinstance(result.kind, Number):
            for given, value in list(zip(node.args, values, strict=False))[-2:]:
                self._instance.note_joined(given, value.kind, result.kind)
        return result

    def _reduced(self, function: Any, vector: Value) -> Value | None:
        """Return what a function of a vector's numbers together comes to; None for any other function."""
        ops = self._operators
        assert isinstance(vector.kind, Vector)
        if function is len:
            return ops.constant(vector.kind.length)
        if function in (sum, np.sum):
            return vectors.total(self._operators_of(wraps=False), vector)  # wrapping() is of what is written
        if function in (any, np.any):
            return vectors.some(ops, vector)
        if function in (all, np.all):
            return vectors.every(ops, vector)
        if function in (min, max, np.min, np.max):
            return vectors.extremum(ops, vector, function.__name__[-3:])
        if function in (np.argmin, np.argmax):
            return vectors.place_of_extremum(ops, vector, function.__name__[-3:])
        if function in (int, float, bool):
            raise UnfitError(
                f"{function.__name__}() takes one number; np.float64(v) converts each of a vector"
            )
        return None

    def _converted(self, vector: Value, kind: Number) -> Value:
        """Return each number of a vector in a type; floats lose their fraction where it is one of whole numbers."""

        def convert(lanes: Any, number: Value) -> Value:
            if kind.kind in "iu" and lanes.number(number, "this").is_float:
                number = lanes.to_int(number)
            converted: Value = lanes.declared(number, kind)
            return converted

        found = self._operators.each(convert, vector)
        assert found is not None
        return found

    def _call_function(self, function: Any, node: ast.Call) -> Value:
        if isinstance(function, str):
            tree = self._functions.tree(function)
            values = self._in_order(tree.args, node, function)
        else:
            values = self._arguments(inspect.signature(function), node, function.__name__)
        is_checked = isinstance(function, str) or self._instance.is_checked
        is_checked = is_checked and getattr(function, "__module__", "") not in _NEVER_CHECKED
        instance = self._functions.instance(
            function,
            tuple(value.kind for value in values),
            is_checked=is_checked,
            reorders=self._instance.reorders,
            has_nan=self._instance.has_nan,
        )
        if isinstance(function, str) and function.startswith("__reduce"):
            self._instance.note_joined(node, INT, instance.result or NONE)
        handles = [h for value in values for h in value.handles()]
        *results, fault = self._emitter.call(instance, handles)
        if instance.can_fault and getattr(function, "__module__", "") in _ENGINES_OWN:
            # What it was called with has no result: the place is the caller's.
            happens = self._emitter.compare("!=", INT, fault, self._emitter.constant(INT, 0))
            self._note_fault(Fault.OVERFLOW, happens)
        elif instance.can_fault:
            self._instance.can_fault = True
            if self._emitter.emits:
                self._keep_fault(fault)
        return self._given(instance.result or NONE, iter(results))

    def _call_program(self, function: ProgramFunction, values: Sequence[Value]) -> Value:
        """Call a function of the program from a loop: its result and its fault are a tuple."""
        instance = self._functions.instance(
            function.name,
            tuple(value.kind for value in values),
            reorders=function.reorders,
            has_nan=function.has_nan,
        )
        handles = [h for value in values for h in value.handles()]
        *results, fault = self._emitter.call(instance, handles)
        if not instance.can_fault:
            fault = self._emitter.constant(INT, 0)
        return tuple_of([self._given(instance.result or NONE, iter(results)), Value(INT, fault)])

    def _call_external(self, function: External, values: Sequence[Value]) -> Value:
        if function.result is None and isinstance(values[-1].kind, Tuple):
            each = [self._call_external(function, [*values[:-1], item]) for item in values[-1].items]
            return self._given(values[-1].kind, iter([h for item in each for h in item.handles()]))
        result = values[-1].kind if function.result is None else function.result
        kinds = (*function.arguments, result) if function.result is None else function.arguments
        given = [self._as_declared(v, kind) for v, kind in zip(values, kinds, strict=True)]
        handles = [h for value in given for h in value.handles()]
        *results, overflow = self._emitter.external(function.name, handles, list(flat(result)))
        if function.can_overflow and self._instance.is_checked:
            happens = self._emitter.compare("!=", INT, overflow, self._emitter.constant(INT, 0))
            self._note_fault(Fault.OVERFLOW, happens)
        return self._given(result, iter(results))

    def _as_declared(self, value: Value, kind: Type) -> Value:
        if isinstance(kind, Tuple):
            return tuple_of([self._as_declared(v, k) for v, k in zip(value.items, kind.items, strict=True)])
        if value.kind == OPTIONAL and kind == INT:
            return Value(INT, value.handle)  # what may be None is sent as it is
        return self._operators.declared(value, kind) if isinstance(kind, (Number, Vector)) else value

    # What loops call (`primitives.py`).

    def _load_row(self, values: Sequence[Value]) -> Value:
        arrays, at = values
        position = self._position(at)
        return tuple_of([a if isinstance(a.kind, Tuple) else self._load(a, position) for a in arrays.items])

    def _store_row(self, values: Sequence[Value]) -> Value:
        arrays, at, row = values
        position = self._position(at)
        for array, value in zip(arrays.items, row.items, strict=True):
            self._store(array, position, value)
        return Value(NONE)

    def _prefetch(self, values: Sequence[Value]) -> Value:
        array, at = values
        assert isinstance(array.kind, Array)
        self._emitter.prefetch(array.handle, array.kind, self._position(at))
        return Value(NONE)

    def _exchange(self, values: Sequence[Value]) -> Value:
        array, at, value = values
        assert isinstance(array.kind, Array)
        assert isinstance(array.kind.element, Number)
        given = self._operators.to(value, array.kind.element)
        before = self._emitter.exchange(array.handle, array.kind, self._position(at), given.handle)
        return Value(array.kind.element, before)

    def _lowest_bit(self, values: Sequence[Value]) -> Value:
        (mask,) = values
        return Value(INT, self._emitter.lowest_bit(self._operators.to(mask, UINT).handle))

    def _count_bits(self, values: Sequence[Value]) -> Value:
        (mask,) = values
        return Value(INT, self._emitter.count_bits(self._operators.to(mask, UINT).handle))

    def _scratch_rows(self, values: Sequence[Value]) -> Value:
        arrays, size = values
        return tuple_of([self._scratch_like(array.kind, int(size.literal)) for array in arrays.items])

    def _scratch_like(self, kind: Type, size: int) -> Value:
        assert isinstance(kind, Array)
        return Value(Array(kind.element), self._emitter.scratch(kind.element, size))

    def _scratch(self, values: Sequence[Value]) -> Value:
        (size,) = values
        return Value(Array(UINT), self._emitter.scratch(UINT, int(size.literal)))

    def _pick(self, values: Sequence[Value]) -> Value:
        flags, ones, others = values
        chosen = zip(flags.items, ones.items, others.items, strict=True)
        return tuple_of([a if flag.literal else b for flag, a, b in chosen])

    def _keep_fault_at(self, values: Sequence[Value]) -> Value:
        at, fault = values
        self._instance.can_fault = True
        if self._emitter.emits:
            e = self._emitter
            happens = e.compare("!=", INT, fault.handle, e.constant(INT, 0))
            position = self._position(at)

            def keep() -> None:
                place = e.binary("<<", INT, position, e.constant(INT, 24))
                self._keep_fault(e.binary("|", INT, place, fault.handle))

            e.if_rarely(happens, keep)
        return Value(NONE)

    def _edge_at(self, values: Sequence[Value]) -> Value:
        begin, end, at = (self._position(value) for value in values)
        e, zero = self._emitter, self._emitter.constant(INT, 0)
        count = e.binary("-", INT, end, begin)
        at = e.select(e.compare("<", INT, at, zero), e.binary("+", INT, at, count), at, INT)
        is_none = e.binary("|", BOOL, e.compare("<", INT, at, zero), e.compare(">=", INT, at, count))
        e.if_rarely(is_none, lambda: self._leave(Fault.NO_EDGE))
        return Value(UINT, e.cast(e.binary("+", INT, begin, at), INT, UINT))

    def _table_at(self, values: Sequence[Value]) -> Value:
        """Load a number of a table; the first where the position is outside, which is a fault."""
        (array, size), at = values[0].items, self._position(values[1])
        e, zero = self._emitter, self._emitter.constant(INT, 0)
        at = e.select(e.compare("<", INT, at, zero), e.binary("+", INT, at, size.handle), at, INT)
        below, above = e.compare("<", INT, at, zero), e.compare(">=", INT, at, size.handle)
        is_outside = e.binary("|", BOOL, below, above)
        self._note_fault(Fault.NO_ENTRY, is_outside)
        return self._load(array, e.select(is_outside, zero, at, INT))

    def _lost_nan(self, value: Value, instead: float) -> Value:
        value = self._operators.known(value)
        if not isinstance(value.kind, Number) or not value.kind.is_float or not self._instance.has_nan:
            return value
        e, kind = self._emitter, value.kind
        is_nan = e.compare("!=", kind, value.handle, value.handle)
        return Value(kind, e.select(is_nan, e.constant(kind, instead), value.handle, kind))

    def _bits(self, values: Sequence[Value], to: Number) -> Value:
        (value,) = values
        given = FLOAT if to == INT else INT
        whole = self._emitter.cast(value.handle, self._operators.number(value, "bits"), given)
        return Value(to, self._emitter.bits(whole, to))

    def _best_by(self, operator: ast.cmpop, values: Sequence[Value]) -> Value:
        keys, given = values
        ops, (key, best) = self._operators, (keys.items[0], given.items[0])
        for other, value in zip(keys.items[1:], given.items[1:], strict=True):
            is_better = ops.compare(operator, other, key)
            key, best = ops.select(is_better, other, key), ops.select(is_better, value, best)
        return best

    def _has_fault(self, values: Sequence[Value]) -> Value:
        e = self._emitter
        so_far = e.read(self._fault) if e.emits else None
        return Value(BOOL, e.compare("!=", INT, so_far, e.constant(INT, 0)))

    def _given(self, kind: Type, parts: Iterator[Any]) -> Value:
        """Return the value of a call."""
        if isinstance(kind, Tuple):
            return Value(kind, items=tuple(self._given(item, parts) for item in kind.items))
        return Value(kind) if kind == NONE else Value(kind, next(parts))

    def _in_order(self, args: ast.arguments, node: ast.Call, name: str) -> list[Value]:
        missing = len(args.args) - len(node.args)
        if node.keywords or not 0 <= missing <= len(args.defaults):
            raise UnfitError(f"{name}() takes {len(args.args)} arguments")
        given = [*node.args, *args.defaults[len(args.defaults) - missing :]]
        return [self._value(argument) for argument in given]

    def _arguments(self, signature: inspect.Signature, node: ast.Call, name: str) -> list[Value]:
        """Return the arguments of a user's function or NamedTuple, in the order of its parameters."""
        try:
            bound = signature.bind(*node.args, **{k.arg or "": k.value for k in node.keywords})
        except TypeError as error:
            raise UnfitError(f"{name}(): {error}") from None
        bound.apply_defaults()
        found = []
        for value in bound.arguments.values():
            found.append(
                self._value(value) if isinstance(value, ast.expr) else self._operators.constant(value)
            )
        return found


_PRIMITIVES: dict[Any, Callable[[Expressions, Sequence[Value]], Value]] = {
    primitives.load_row: Expressions._load_row,
    primitives.store_row: Expressions._store_row,
    primitives.prefetch: Expressions._prefetch,
    primitives.exchange: Expressions._exchange,
    primitives.lowest_bit: Expressions._lowest_bit,
    primitives.count_bits: Expressions._count_bits,
    primitives.scratch_rows: Expressions._scratch_rows,
    primitives.scratch: Expressions._scratch,
    primitives.pick: Expressions._pick,
    primitives.keep_fault: Expressions._keep_fault_at,
    primitives.is_none: lambda body, values: body._operators.is_none(values[0]),
    primitives.id_or_none: lambda body, values: body._operators.as_id(values[0]),
    primitives.table_at: Expressions._table_at,
    primitives.table_size: lambda body, values: values[0].items[1],
    primitives.known: lambda body, values: body._operators.known(values[0]),
    primitives.has_fault: Expressions._has_fault,
    primitives.edge_at: Expressions._edge_at,
    primitives.float_bits: lambda body, values: body._bits(values, INT),
    primitives.float_of_bits: lambda body, values: body._bits(values, FLOAT),
    primitives.min_by: lambda body, values: body._best_by(ast.Lt(), values),
    primitives.max_by: lambda body, values: body._best_by(ast.Gt(), values),
    primitives.lost_in_min: lambda body, values: body._lost_nan(values[0], math.inf),
    primitives.lost_in_max: lambda body, values: body._lost_nan(values[0], -math.inf),
}


_NEVER_CHECKED = ("sigps.native.sums",)
"""Modules whose functions have a result for all arguments."""

_ENGINES_OWN = ("sigps.model.draws",)
"""Modules whose functions a program calls without naming them."""


def _is_count(node: ast.expr) -> bool:
    """Tell whether a variable counts, and never leaves 64 bits: `frontend/reductions.py` and `combine.py` name them."""
    return isinstance(node, ast.Name) and node.id.startswith("__count")


def whole_constant(node: ast.expr) -> int | None:
    """Return the value of an expression of whole numbers as written, such as `2**63 - 1`; None of any other."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = whole_constant(node.operand)
        return None if value is None else -value
    compute = _WHOLE.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if compute is None:
        return None
    assert isinstance(node, ast.BinOp)
    left, right = whole_constant(node.left), whole_constant(node.right)
    if (
        left is None
        or right is None
        or (isinstance(node.op, (ast.Pow, ast.LShift)) and not 0 <= right <= 128)
    ):
        return None
    return compute(left, right)


_WHOLE: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Pow: pow, ast.LShift: lshift,
}  # fmt: skip


def may_be_unsigned(value: Value) -> bool:
    """Tell whether a value is a constant that a `np.uint64` may be, too."""
    return value.kind == INT and value.literal is not NO_LITERAL and value.literal >= 0


_MADE = "Vector[float, 2](0.0) or Vector[float, 2]((x, y))"

_INSTEAD = {
    "array": _MADE, "asarray": _MADE, "zeros": _MADE, "ones": _MADE, "full": _MADE, "empty": _MADE,
    "mean": "sum(v) / len(v)", "average": "sum(v) / len(v)", "norm": "math.sqrt(v @ v)",
    "clip": "np.minimum(np.maximum(v, low), high)", "prod": "a loop over the numbers",
    "std": "math.sqrt(sum((v - mean) ** 2) / len(v))", "var": "sum((v - mean) ** 2) / len(v)",
}  # fmt: skip
"""What vectors have in the place of functions of arrays."""


def _is_of_numpy(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "numpy"


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def as_load(target: ast.expr) -> ast.expr:
    """Return the expression that reads what a statement assigns."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Subscript):
        read = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
        read.sigps_file = getattr(target, "sigps_file", "")  # type: ignore[attr-defined]
        return read
    if isinstance(target, ast.Attribute):
        raise UnfitError(no_part(target.attr))
    raise UnfitError("this cannot be assigned")
