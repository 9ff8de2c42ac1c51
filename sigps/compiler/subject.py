"""The class under compilation: what its `self.x` mean, and which of its methods can be called from where."""

from __future__ import annotations

import ast
import difflib
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from sigps.compiler.source import parse_function, reject
from sigps.vertex import Aggregator, Field, Vertex

__all__ = ["ACTIONS", "Subject", "constant_of", "is_self"]

ENV = ("superstep", "num_vertices", "num_edges")
VERTEX = ("id", "out_degree", "in_degree")
ACTIONS = ("send", "send_to", "send_to_neighbors", "vote_to_halt", "retire")


class Subject:
    """A program's class and parameters, as the front end asks about them.

    Parameters that are not one number (strings, None) become constants; the rest are read at run time.
    """

    def __init__(self, program: Vertex) -> None:
        self.cls = type(program)
        self.name = self.cls.__name__
        declared = program.declaration
        self.message_type = declared.message_type
        self.message = declared.message
        self.states = {f.name: f for f in declared.states}
        self.aggregators = {a.name: a for a in declared.aggregators}
        self.params: dict[str, Field] = {}
        self.constants: dict[str, Any] = {}
        for field in declared.params:
            value = getattr(program, field.name)
            if field.type is not None:
                self.params[field.name] = field
            elif isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
                kind = float if isinstance(value, (float, np.floating)) else int
                self.params[field.name] = Field(field.name, kind, value, field.is_vertex_id)
            else:
                self.constants[field.name] = value

    def reach(self, attribute: str) -> str | None:
        """Tell where `self.attribute` can be known: `uniform` for all, `vertex` for one vertex, None for neither."""
        if attribute in ENV or attribute in self.params or attribute in self.constants:
            return "uniform"
        if attribute in VERTEX or attribute in self.states or attribute in self.aggregators:
            return "vertex"
        value = inspect.getattr_static(self.cls, attribute, None)
        if constant_of(value) is not None:
            return "uniform"
        return None

    def method(self, attribute: str) -> Callable[..., Any] | None:
        """Return the user's own method of that name, or None."""
        value = inspect.getattr_static(self.cls, attribute, None)
        if isinstance(value, staticmethod):
            value = value.__func__
        is_own = isinstance(value, types.FunctionType) and not hasattr(Vertex, attribute)
        return value if is_own else None

    def is_static(self, attribute: str) -> bool:
        return isinstance(inspect.getattr_static(self.cls, attribute, None), staticmethod)

    def method_tree(self, attribute: str) -> ast.FunctionDef:
        method = self.method(attribute)
        assert method is not None
        return parse_function(method, self.name)

    def method_reads(self, attribute: str, seen: frozenset[str] = frozenset()) -> set[str]:
        """Return every `self.x` that a method reads, also through the methods that it calls."""
        if attribute in seen:
            reject(self.method_tree(attribute), f"{attribute}() calls itself; write the recursion as a loop")
        tree = self.method_tree(attribute)
        reads: set[str] = set()
        for node in ast.walk(tree):
            if is_self(node):
                name = node.attr  # type: ignore[attr-defined]
                called = self.method(name) is not None
                reads |= self.method_reads(name, seen | {attribute}) if called else {name}
        return reads

    def has_effects(self, attribute: str) -> bool:
        """Tell whether a method assigns fields, sends, halts, or walks edges, itself or through others."""
        if any(name in (*ACTIONS, "out_edges") for name in self.method_reads(attribute)):
            return True
        for node in ast.walk(self.method_tree(attribute)):
            if is_self(node):
                if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                    return True
                name = node.attr  # type: ignore[attr-defined]
                if self.method(name) is not None and self.has_effects(name):
                    return True
        return False

    def reject_unknown(self, node: ast.Attribute) -> None:
        known = [*ENV, *VERTEX, *self.states, *self.params, *self.constants, *self.aggregators, "out_edges"]
        near = difflib.get_close_matches(node.attr, known, 1)
        hint = f"; did you mean self.{near[0]}?" if near else ""
        reject(node, f"{self.name} has no field {node.attr!r}{hint} Declare it: '{node.attr}: State[float] = 0.0'")

    def state(self, attribute: str) -> Field | None:
        return self.states.get(attribute)

    def aggregator(self, attribute: str) -> Aggregator[Any] | None:
        return self.aggregators.get(attribute)


def is_self(node: ast.AST) -> bool:
    """Tell whether a node is `self.something`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def constant_of(value: Any) -> ast.Constant | None:
    """Return a number, string or None as a constant node; None where it is something else."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        plain: Any = value
        for kind in (bool, int, float, str):
            if isinstance(value, kind):
                plain = kind(value)
                break
        return ast.Constant(plain)
    return None
