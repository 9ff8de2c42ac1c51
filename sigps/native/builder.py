"""From the syntax trees of a program's functions to an emitter's calls: types are found first, then code is emitted.

A function is compiled once for each combination of argument types (`Instance`). A variable has one type, that of all
values that it is ever given (`types.join`). Every function also returns its fault: 0, or where and how its arithmetic
had no result: a position in `Functions.sites`, counted from 1; the first that happened.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sigps.model.records import no_part
from sigps.model.vector import INSIDE
from sigps.native.comprehensions import Step, with_own_names
from sigps.native.emitter import Emitter, Finder
from sigps.native.expressions import Expressions, as_load, may_be_unsigned
from sigps.native.instance import Instance, Site
from sigps.native.operators import NO_LITERAL, Fault, UnfitError, Value, tuple_of
from sigps.native.source import as_written, global_names, parse_function, reject
from sigps.native.trees import walk
from sigps.native.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    OPTIONAL,
    UINT,
    Array,
    Number,
    Tuple,
    Type,
    Vector,
    flat,
    join,
)  # fmt: skip
from sigps.native.unset import check_locals_are_set
from sigps.native.webs import split_variables

__all__ = ["Functions", "Instance", "Site"]


class Functions:
    """Functions that call each other, and their instances: those of one program, and the loops around them.

    Args:
        module: The program's function definitions; None for functions of no program.
        namespace: The values of their global names.
        real: The type of floats while computing.

    Attributes:
        sites: Found with the types.
    """

    def __init__(
        self,
        module: ast.Module | None = None,
        namespace: Mapping[str, Any] | None = None,
        real: Number = FLOAT,
    ) -> None:
        self.real = real
        self._trees = {f.name: f for f in module.body if isinstance(f, ast.FunctionDef)} if module else {}
        self._namespace = namespace or {}
        self._instances: dict[Any, Instance] = {}
        self.sites: list[Site] = []
        self._places: dict[tuple[Any, ...], int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._trees

    def instance(
        self,
        function: Any,
        arguments: tuple[Type, ...],
        *,
        is_checked: bool = True,
        reorders: bool = False,
        has_nan: bool = True,
    ) -> Instance:
        """Return a function of the module, by name, or a Python function, for types of arguments; its types found.

        Raises:
            CompileError: If the types do not fit together; with file and line.
        """
        key = function, arguments, is_checked, reorders, has_nan
        if key not in self._instances:
            made = self._new(function, arguments, len(self._instances))
            made.is_checked, made.reorders, made.has_nan = is_checked, reorders, has_nan
            module = "" if isinstance(function, str) else function.__module__
            is_of_a_user = not module.startswith("sigps.") or module.startswith("sigps.apps")
            made.may_not_end = is_checked and is_of_a_user
            if is_checked and module and is_of_a_user:
                check_locals_are_set(made.tree)
            self._instances[key] = made
        found = self._instances[key]
        if not found.is_found:
            if found.result is not None or found.variables:
                reject(
                    found.tree, f"{found.tree.name}() calls itself, which cannot be compiled: write a loop"
                )
            self._find(found)
        return found

    def _new(self, function: Any, arguments: tuple[Type, ...], number: int) -> Instance:
        if isinstance(function, str):
            meanings: Mapping[str, Any] = self._namespace
            tree = self._trees[function]
        else:
            tree, meanings = parse_function(function, function.__module__), global_names(function)
        return Instance(f"{tree.name}.{number}", split_variables(with_own_names(tree)), meanings, arguments)

    def _find(self, found: Instance) -> None:
        params = [arg.arg for arg in found.tree.args.args]
        found.variables = dict(zip(params, found.arguments, strict=True))
        for _ in range(100):
            before, guesses = (dict(found.variables), found.result), list[bool]()
            found.joined, found.copies, found.conflict = {}, {}, None
            _Body(self, found, Finder(guesses)).run()
            if found.result is None:
                found.result = NONE
            if before == (found.variables, found.result):
                if found.conflict is not None:
                    reject(
                        found.conflict,
                        "this is a whole number in one call of the method that it stands in, and a float in another: "
                        "give all calls the same type, such as float(...)",
                    )
                if guesses:
                    _Body(self, found, Finder()).run()  # says what is None there
                found.is_found = True
                return
        raise AssertionError(f"types of {found.name} do not settle")

    @property
    def instances(self) -> list[Instance]:
        """All functions, each for the types of arguments that were found so far."""
        return list(self._instances.values())

    def emit(self, instance: Instance, emitter: Emitter, arguments: Sequence[Any]) -> None:
        """Emit the body of an instance, given the handles of its arguments' parts."""
        _Body(self, instance, emitter).run(arguments)

    def site(self, node: ast.AST, kind: int) -> int:
        """Return the fault of a place: what kind it is, at which node.

        Places are numbered by nodes and not by lines: code that is kept on disk is also that of a program whose lines
        are broken elsewhere.
        """
        file, line = getattr(node, "sigps_file", ""), getattr(node, "lineno", 0)
        place = file, line, getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0), kind
        if place not in self._places:
            self.sites.append((file, line, kind))
            self._places[place] = len(self.sites)
        return self._places[place]

    @property
    def has_open_loops(self) -> bool:
        """Whether what was found has a `while` of the user's, which may never end."""
        return any(kind == Fault.INTERRUPTED for _, _, kind in self.sites)

    def tree(self, name: str) -> ast.FunctionDef:
        """Return the definition of a function of the module."""
        return self._trees[name]


class _Body(Expressions):
    """Emits the body of one instance, statement after statement."""

    def __init__(self, functions: Functions, instance: Instance, emitter: Emitter) -> None:
        super().__init__(functions, instance, emitter)
        self._left: list[Any] = []  # of each loop with an else, the variable that says that it was left

    def run(self, arguments: Sequence[Any] = ()) -> None:
        e, instance = self._emitter, self._instance
        for arg, kind in zip(instance.tree.args.args, instance.arguments, strict=True):
            instance.note_joined(arg, kind, instance.variables[arg.arg])
        if e.emits:
            self._fault = e.variable(INT)
            for name, kind in instance.variables.items():
                self._storage[name] = [e.variable(part) for part in flat(kind)]
            parts = iter(arguments)
            for arg, kind in zip(instance.tree.args.args, instance.arguments, strict=True):
                argument = self._operators.to(self._given(kind, parts), instance.variables[arg.arg])
                self._write(self._storage[arg.arg], argument)
        self._block(instance.tree.body)
        if not instance.tree.body or not isinstance(instance.tree.body[-1], ast.Return):
            with self._at(instance.tree):
                self._return(Value(NONE), is_end=True)

    # Statements.

    def _block(self, body: Sequence[ast.stmt]) -> bool:
        """Emit statements; tell whether what follows is never reached, as far as constants say."""
        for statement in body:
            with self._at(statement):
                if self._statement(statement):
                    return True
        return False

    def _statement(self, node: ast.stmt) -> bool:
        """Emit one; tell whether what follows in its block is never reached."""
        if isinstance(node, ast.Assign):
            value = self._value(node.value)
            for target in node.targets:
                self._assign(target, value)
            self._note_fold(node)
        elif isinstance(node, ast.AugAssign):
            load = as_load(node.target)
            self._assign(
                node.target, self._operators.binary(node.op, self._value(load), self._value(node.value))
            )
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self._value(node.value))
        elif isinstance(node, ast.If):
            test = self._truth(node.test)
            if test.literal is not NO_LITERAL:
                return self._block(node.body if test.literal else node.orelse)
            self._emitter.if_(test.handle, lambda: self._block(node.body), lambda: self._block(node.orelse))
        elif isinstance(node, ast.While):
            self._while(node)
        elif isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, Step):
            node.emit()
        elif isinstance(node, ast.Return):
            value = Value(NONE) if node.value is None else self._value(node.value)
            self._return(value)
            if node.value is not None:
                self._instance.note_joined(node.value, value.kind, self._instance.result or NONE)
            return True
        elif isinstance(node, ast.Break):
            self._break()
            return True
        elif isinstance(node, ast.Continue):
            self._emitter.continue_()
            return True
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                self._value(node.value)
        elif not isinstance(node, ast.Pass):
            raise UnfitError(f"'{type(node).__name__.lower()}' cannot be compiled")
        return False

    def _return(self, value: Value, *, is_end: bool = False) -> None:
        instance = self._instance
        if instance.result is None:
            instance.result = value.kind
        kind = join(instance.result, value.kind)
        if is_end and instance.result not in (NONE, OPTIONAL):
            kind = None  # a return that was forgotten
        if kind is None:
            if is_end and _never_ends(instance.tree.body):
                if self._emitter.emits:
                    zeros = [self._zero(part) for part in flat(instance.result)]
                    self._emitter.return_([*zeros, self._emitter.read(self._fault)])
                return
            raise UnfitError(
                f"{instance.tree.name}() returns {instance.result} on one path and {value.kind} on another"
            )
        instance.result = kind
        if self._emitter.emits:
            handles = self._operators.to(value, kind).handles()
            self._emitter.return_([*handles, self._emitter.read(self._fault)])

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
            if not as_written(target.id).startswith("__"):
                self._instance.note_joined(target, value.kind, self._instance.variables[target.id])
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value.kind, Vector) and value.kind.length == len(target.elts):
                value = self._operators.constant(()) if not target.elts else tuple_of(self._numbers(value))
            if not isinstance(value.kind, Tuple) or len(value.items) != len(target.elts):
                raise UnfitError(f"{len(target.elts)} names are given {value.kind}")
            for part, item in zip(target.elts, value.items, strict=True):
                self._assign(part, item)
        elif isinstance(target, ast.Subscript) and self._vector_variable(target.value) is not None:
            self._assign_item(target, value)
        elif isinstance(target, ast.Subscript):
            array = self._value(target.value)
            if isinstance(array.kind, Vector):
                raise UnfitError(INSIDE)
            if not isinstance(array.kind, Array):
                raise UnfitError("what a tuple holds cannot be assigned: make a new one")
            self._store(array, self._position(self._value(target.slice)), value)
        elif isinstance(target, ast.Attribute):
            raise UnfitError(no_part(target.attr))
        else:
            raise UnfitError("this cannot be assigned")

    def _note_fold(self, node: ast.Assign) -> None:
        """Note that `t = t + x` has a type also where it stands for a loop that may run over nothing."""
        for target in (t for t in node.targets if isinstance(t, ast.Name)):
            for name in walk(node.value):
                if isinstance(name, ast.Name) and name.id.partition(".")[0] == target.id.partition(".")[0]:
                    variables = self._instance.variables
                    self._instance.note_joined(target, variables.get(name.id, NONE), variables[target.id])

    def _assign_item(self, target: ast.Subscript, value: Value) -> None:
        kind = self._vector_variable(target.value)
        assert kind is not None
        assert isinstance(target.value, ast.Name)
        if isinstance(target.slice, ast.Slice):
            raise UnfitError("a slice of a vector cannot be assigned: assign its numbers, one by one")
        place = self._place(self._value(target.slice), kind.length)
        stored = self._operators.declared(value, kind.element)
        if self._emitter.emits:
            self._emitter.write_item(self._storage[target.value.id][0], kind, place, stored.handle)

    def _set(self, name: str, value: Value) -> None:
        variables, literals = self._instance.variables, self._instance.literals
        before = variables.get(name, value.kind)
        kind = join(before, value.kind)
        if UINT in (before, value.kind) and (name in literals or may_be_unsigned(value)):
            kind = UINT
        if kind is None and not self._instance.is_checked and {before, value.kind} == {INT, UINT}:
            kind = UINT
        if not may_be_unsigned(value):
            literals.discard(name)
        elif name not in variables:
            literals.add(name)
        if kind is None:
            raise UnfitError(
                f"the variable {name.partition('.')[0]!r} is {variables[name]} on one path and {value.kind} on "
                "another: a variable keeps one type"
            )
        if not self._emitter.emits:
            variables[name] = kind
            return
        for variable, handle in zip(
            self._storage[name], self._operators.to(value, kind).handles(), strict=True
        ):
            self._emitter.write(variable, handle)

    def _while(self, node: ast.While) -> None:
        def body() -> None:
            if self._instance.may_not_end and not getattr(node, "sigps_ends", False):
                self._end_if_interrupted()
            test = self._truth(node.test)
            if test.literal is not True:
                self._emitter.if_(self._emitter.invert(test.handle), self._emitter.break_, lambda: None)
            self._block(node.body)

        self._loop(body, node.orelse)

    def _end_if_interrupted(self) -> None:
        e = self._emitter
        interrupted = e.interrupted()
        if e.leaves_at_once:
            e.if_rarely(interrupted, lambda: self._leave(Fault.INTERRUPTED))
            return
        self._instance.can_fault = True
        code = e.constant(INT, self._functions.site(self._node, Fault.INTERRUPTED))
        has_fault = e.compare("!=", INT, e.read(self._fault), e.constant(INT, 0))

        def end() -> None:
            self._keep_fault(code)
            self._break()

        e.if_rarely(e.binary("|", BOOL, interrupted, has_fault), end)

    def _break(self) -> None:
        if self._left[-1] is not None:
            self._emitter.write(self._left[-1], self._emitter.constant(BOOL, True))
        self._emitter.break_()

    def _loop(self, body: Callable[[], None], orelse: Sequence[ast.stmt]) -> None:
        e = self._emitter
        self._left.append(e.variable(BOOL) if orelse else None)
        if orelse:
            e.write(self._left[-1], e.constant(BOOL, False))
        e.loop(body)
        left = self._left.pop()
        if orelse:
            e.if_(e.invert(e.read(left)), lambda: self._block(orelse), lambda: None)

    def _for(self, node: ast.For) -> None:
        if isinstance(node.iter, ast.Call) and self._meaning(node.iter.func) is range:
            self._for_range(node, node.iter)
            return
        values = self._value(node.iter)
        e, counter = self._emitter, self._emitter.variable(INT)
        if isinstance(values.kind, Array):
            size = e.size(values.handle)
        elif isinstance(values.kind, Tuple):
            size = e.constant(INT, len(values.items))
        elif isinstance(values.kind, Vector):
            size, held = e.constant(INT, values.kind.length), e.variable(values.kind)
            e.write(held, values.handle)
        else:
            raise UnfitError(f"a loop runs over range(...), a tuple or a vector, and this is {values.kind}")
        if isinstance(values.kind, Tuple) and not values.items:
            return
        if isinstance(values.kind, Tuple):
            self._note_tuple(node.iter, values)
        e.write(counter, e.constant(INT, 0))

        def body() -> None:
            at = Value(INT, e.read(counter))
            e.if_(e.compare(">=", INT, at.handle, size), e.break_, lambda: None)
            e.write(counter, e.binary("+", INT, at.handle, e.constant(INT, 1)))
            if isinstance(values.kind, Vector):
                item = Value(values.kind.element, e.read_item(held, values.kind, at.handle))
            else:
                is_array = isinstance(values.kind, Array)
                item = self._load(values, at.handle) if is_array else self._item(values, at)
            self._assign(node.target, item)
            self._block(node.body)

        self._loop(body, node.orelse)

    def _for_range(self, node: ast.For, call: ast.Call) -> None:
        ops, e = self._operators, self._emitter
        given = [self._value(argument) for argument in call.args]
        for value in given:
            if not isinstance(value.kind, Number) or value.kind.is_float:
                raise UnfitError(f"range() takes whole numbers, and this is {value.kind}")
        step = given[2].literal if len(given) == 3 else 1
        if step is NO_LITERAL or step == 0:
            raise UnfitError("the step of range() is a constant that is not 0")
        begin, end = (ops.constant(0), given[0]) if len(given) == 1 else given[:2]
        kind = UINT if UINT in (begin.kind, end.kind) else INT
        begin, end = (Value(kind, e.cast(v.handle, ops.number(v, "range()"), kind)) for v in (begin, end))
        counter = e.variable(kind)
        e.write(counter, begin.handle)

        def body() -> None:
            at = e.read(counter)
            e.if_(e.compare(">=" if step > 0 else "<=", kind, at, end.handle), e.break_, lambda: None)
            e.write(counter, e.binary("+", kind, at, e.constant(kind, step)))
            self._assign(node.target, Value(kind, at))
            self._block(node.body)

        self._loop(body, node.orelse)


def _never_ends(body: Sequence[ast.stmt]) -> bool:
    """Tell whether what is behind a block is never reached: each of its paths returns, or goes round for ever."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _never_ends(last.body) and _never_ends(last.orelse)
    if isinstance(last, ast.While):
        is_endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
        return is_endless and not any(isinstance(node, ast.Break) for node in walk(last))
    return isinstance(last, ast.Return)
