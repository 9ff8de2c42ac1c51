"""`GAS`: programs written as gather, merge, apply and scatter, or as update() of edge values.

    from sigps import GAS, Param, State, VertexId, inf

    class SSSP(GAS):
        source: Param[VertexId]
        distance: State[float] = inf
        merge = "min"

        def start(self):
            if self.id == self.source:
                self.distance = 0.0
            return self.id == self.source

        def gather(self, edge):
            return edge.source.distance + edge.weight

        def apply(self, total):
            if total < self.distance:
                self.distance = total
                return True
            return False

The class becomes a vertex program with a compute() that every engine runs. J. Gonzalez, Y. Low, H. Gu, D. Bickson,
C. Guestrin, "PowerGraph: distributed graph-parallel computation on natural graphs", OSDI 2012.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import types
from dataclasses import replace
from typing import Any, ClassVar

from sigps.errors import CompileError
from sigps.gas.keeps_best import keeps_best
from sigps.gas.methods import attribute_of
from sigps.gas.phases import Fields, of_phases
from sigps.gas.updates import of_update
from sigps.gas.writing import COUNTER, Form, Translation, made_function, written
from sigps.model.aggregator import Aggregator
from sigps.model.fields import EDGE_STATE
from sigps.model.vertex import Vertex, scope_of_class

__all__ = ["GAS"]

PHASES = ("start", "gather", "apply", "scatter", "update")


class GAS(Vertex):
    """The base of programs of phases.

    Methods of a subclass:
        start(self): Superstep 0. It may return False where no neighbour needs to gather from this vertex yet: a field
            that `gather` reads is then the worst value. Optional.
        gather(self, edge): What one in-edge brings, of `edge.source.<field>`, `edge.weight`, edge columns and edge
            values. Its type is the annotation of what it returns, `-> int`; without one, float.
        apply(self, total): Take the merged total; return whether the vertex changed. The run goes on while any did.
        scatter(self, edge): Assign values of an out-edge: `edge.value = ...`, each an `EdgeState`. Optional.
        update(self): In the place of the last three: reads `edge.value for edge in self.in_edges`, sets fields, and
            values in one loop over `self.out_edges`, which runs when it has ended. It may return whether the vertex
            changed; else a field did.

    Attributes:
        merge: "sum", "min", "max" (or those functions), or a function of two values, with `empty`, the total of no
            in-edges, beside it.

    Class arguments are those of `Vertex`, without `message` and `combiner`.

    Raises:
        CompileError: When a class is defined: with the file and line of what cannot be translated.
    """

    _edge_values: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **arguments: Any) -> None:
        if "declaration" in vars(cls):  # another form of a class that is declared
            super().__init_subclass__(**arguments)
            return
        for name in ("message", "combiner"):
            if name in arguments:
                raise CompileError(
                    f"{cls.__name__}: {name}= is for compute(). A class of phases has the annotation of gather(), "
                    "and merge"
                )
        if "compute" in vars(cls):
            raise CompileError(
                f"{cls.__name__}: write compute() in a subclass of Vertex, or phases in one of GAS"
            )
        methods = _methods_of(cls)
        if not methods:
            super().__init_subclass__(**arguments)
            return
        fields, merge = _fields_of(cls), _merge_of(cls)
        parts = _translated(cls, methods, merge, fields)
        cls._edge_values = dict(fields.edge_values)  # of subclasses, which may write other phases
        _forget(cls, [name for name in fields.edge_values if name not in parts.stored])
        num_changed = Aggregator.sum(int)
        num_changed.__set_name__(cls, COUNTER)
        super().__init_subclass__(message=parts.message, combiner=parts.combiner, **arguments)
        form = _form(cls, parts, merge, fields)
        if form is Form.EVERY:
            if hasattr(cls, COUNTER) and not isinstance(getattr(cls, COUNTER), Aggregator):
                raise CompileError(f"{cls.__name__}.{COUNTER}: the count of changed vertices has this name")
            setattr(cls, COUNTER, num_changed)
            others = [a for a in cls.declaration.aggregators if a.name != COUNTER]
            cls.declaration = replace(cls.declaration, aggregators=(*others, num_changed))
        shown = (*parts.parts, ("runs", form.value))
        cls.declaration = replace(cls.declaration, parts=tuple(shown))
        used = [methods.get(name) for name in ("update", "apply", "gather", "scatter", "start")]
        cls.compute = made_function(written(parts, form), used, parts.bound, cls.__name__)  # type: ignore


def _methods_of(cls: type) -> dict[str, Any]:
    """Return the phases that a class or a base of it has.

    Raises:
        CompileError: If one is missing, or there is one too many.
    """
    found = {name: inspect.getattr_static(cls, name, None) for name in PHASES}
    methods = {name: value for name, value in found.items() if isinstance(value, types.FunctionType)}
    if "update" in methods and len({"gather", "apply", "scatter"} & set(methods)):
        raise CompileError(f"{cls.__name__}: update() takes the place of gather(), apply() and scatter()")
    if methods and not {"update", "apply"} & set(methods):
        raise CompileError(f"{cls.__name__} has no apply(): write 'def apply(self, total)', or update()")
    return methods


def _merge_of(cls: type) -> Any:
    merge = inspect.getattr_static(cls, "merge", "sum")
    merge = merge.__func__ if isinstance(merge, staticmethod) else merge
    names = {builtins.sum: "sum", builtins.min: "min", builtins.max: "max"}
    merge = names.get(merge, merge) if callable(merge) else merge
    if merge in ("sum", "min", "max"):
        return merge
    if not isinstance(merge, types.FunctionType) or merge.__code__.co_argcount != 2:
        raise CompileError(
            f"{cls.__name__}: merge={merge!r} is neither 'sum', 'min', 'max' nor a function of two values "
            "(in the class, a staticmethod)"
        )
    if not hasattr(cls, "empty"):
        raise CompileError(
            f"{cls.__name__}: with a merge of its own it needs 'empty', the total of no in-edges"
        )
    return merge


def _fields_of(cls: type) -> Fields:
    scope = scope_of_class()
    states, edge_values, params = {}, dict(getattr(cls, "_edge_values", {})), set()
    for base in reversed(cls.__mro__[: cls.__mro__.index(Vertex)]):
        names = scope if base is cls else vars(sys.modules[base.__module__])
        for name, annotation in inspect.get_annotations(base).items():
            kind = eval(annotation, {**scope, **names}) if isinstance(annotation, str) else annotation
            marks = getattr(kind, "__metadata__", ())
            shown = {repr(mark) for mark in marks}
            type_ = getattr(kind, "__origin__", kind)
            if "VertexId" in shown:
                from sigps.model.fields import VertexId

                type_ = VertexId
            if "State" in shown:
                states[name] = type_
            elif "Param" in shown:
                params.add(name)
            elif EDGE_STATE in marks:
                edge_values[name] = (type_, vars(base).get(name))
    return Fields(states, edge_values, frozenset(params))


def _translated(cls: type, methods: dict[str, Any], merge: Any, fields: Fields) -> Translation:
    if "update" in methods:
        return of_update(cls, methods, fields)
    written = methods["gather"].__annotations__.get("return", float) if "gather" in methods else float
    if isinstance(written, str):
        written = eval(written, {**methods["gather"].__globals__, **scope_of_class()})
    return of_phases(cls, methods, merge, written, fields)


def _forget(cls: type, names: list[str]) -> None:
    """Take edge values that are not stored out of the class: they are no fields of it."""
    cls.__annotations__ = {n: a for n, a in inspect.get_annotations(cls).items() if n not in names}
    for name in names:
        if name in vars(cls):
            delattr(cls, name)


def _form(cls: type[Vertex], parts: Translation, merge: Any, fields: Fields) -> Form:
    """Return the form of compute() with the least to do."""
    last = [s.value for s in parts.apply if isinstance(s, ast.Assign) and _names_changed(s)]
    everywhere = [
        n for s in parts.apply for n in ast.walk(s) if isinstance(n, ast.Assign) and _names_changed(n)
    ]
    if len(last) == len(everywhere) == 1 and _is_uniform(last[0], fields):
        return Form.TOGETHER
    if parts.message is None:
        return Form.TOGETHER
    if keeps_best(written(parts, Form.CHANGED), parts, cls.declaration.states, merge):
        return Form.CHANGED
    return Form.EVERY


def _names_changed(statement: ast.Assign) -> bool:
    return isinstance(statement.targets[0], ast.Name) and statement.targets[0].id == "changed"


def _is_uniform(value: ast.expr, fields: Fields) -> bool:
    """Return whether a value is the same for all vertices."""
    allowed = {*fields.params, "superstep", "num_vertices", "num_edges"}
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id != "self":
            return False
        if isinstance(node, ast.Attribute) and attribute_of(node, "self") not in allowed:
            return False
        if isinstance(node, ast.Call):
            return False
    return True
