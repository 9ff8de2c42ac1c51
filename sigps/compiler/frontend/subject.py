"""The class under compilation: what each `self.x` refers to, and which methods have effects."""

from __future__ import annotations

import ast
import difflib
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeGuard

import numpy as np

from sigps.compiler.frontend.absent import name_none_tests, nested
from sigps.compiler.frontend.constants import Constants, constant_of, fold_constants
from sigps.compiler.frontend.desugar import desugar, hold_messages
from sigps.compiler.frontend.grammar import refuse
from sigps.compiler.frontend.keyed import spell_out_keys
from sigps.compiler.frontend.keys import write_keys
from sigps.compiler.frontend.names import Names
from sigps.compiler.frontend.syntax import expression, is_self, rename
from sigps.compiler.frontend.tables import name_table_reads
from sigps.errors import CompileError
from sigps.model.records import Record
from sigps.model.vector import VectorType
from sigps.model.vertex import Field, Vertex
from sigps.native.source import parse_function, reject
from sigps.native.trees import copied, walk
from sigps.native.unset import check_locals_are_set

__all__ = ["DRAWS", "ENV", "VERTEX", "Precision", "Subject"]

Precision = Literal["single", "double"]

ENV = ("superstep", "num_vertices", "num_edges")
VERTEX = ("id", "out_degree", "in_degree")
DRAWS = {
    "random": (0, "x = self.random()"),
    "random_int": (1, "k = self.random_int(n)"),
    "choose": (1, "k = self.choose((w0, w1, w2))"),
    "random_edge": (0, "edge = self.random_edge()"),
}
"""The methods that draw random numbers: how many arguments each takes, and an example."""
EFFECTS = (
    "send", "send_to", "send_to_neighbors", "vote_to_halt", "retire", "out_edges", "common_neighbors", "has_edge",
    "stop", "wake_all", *DRAWS,
)  # fmt: skip


_ELSEWHERE = {
    **dict.fromkeys(
        ("neighbors", "neighbours", "edges", "get_edges"),
        "a vertex walks its out-edges: 'for edge in self.out_edges', where edge.target is the neighbour's id",
    ),
    **dict.fromkeys(
        ("in_edges", "in_neighbors", "in_neighbours", "predecessors"),
        "a vertex sees its out-edges; write class ...(Vertex, both_ways=True) to walk edges backward too",
    ),
    **dict.fromkeys(
        ("degree", "num_edges_of", "out_degrees"), "self.out_degree and self.in_degree count edges"
    ),
    **dict.fromkeys(
        ("value", "get_value", "set_value", "vertex_value"),
        "declare a field, 'rank: State[float] = 0.0', and use self.rank",
    ),
    **dict.fromkeys(("halt", "vote_halt", "voteToHalt", "deactivate"), "write self.vote_to_halt()"),
    **dict.fromkeys(
        ("send_message", "sendMessage", "send_message_to"), "self.send(edge, m), self.send_to(id, m)"
    ),
    **dict.fromkeys(("step", "round", "iteration"), "self.superstep counts from 0"),
}
"""What other frameworks have, and what it is here."""


class Subject:
    """A program's class and parameters, as the passes read them.

    Parameters that are not one number (strings, None) become constants; the others are read at run time.
    """

    def __init__(self, program: Vertex, precision: Precision) -> None:
        self.cls = type(program)
        self.name = self.cls.__name__
        self.precision = precision
        declared = program.declaration
        self.message_type, self.message_record = declared.message_type, declared.message_record
        self.message = declared.message
        self.message_dtypes = [f.dtype(precision) for f in declared.message]
        self.combiner = declared.combiner
        self.has_master, self.has_phases = declared.has_master, declared.has_phases
        self.states = {f.name: f for f in declared.states}
        self.records = {r.name: r for r in declared.records}
        self.edge_states = {f.name: f for f in declared.edge_states}
        self.aggregators = {a.name: a for a in declared.aggregators}
        self.params: dict[str, Field] = {}
        self.names = Names()
        self._trees: dict[str, ast.FunctionDef] = {}
        constants, vectors = {}, {}
        for field in declared.params:
            value = getattr(program, field.name)
            if isinstance(field.type, VectorType):
                # Ids that are strings become numbers where the graph is known.
                numbers = tuple(0 if isinstance(number, str) else number for number in value)
                vectors[field.name] = field.dtype(precision), numbers
            elif field.name in declared.given_lengths:
                constants[field.name] = value
            elif field.type is not None:
                self.params[field.name] = field
            elif field.is_vertex_id and value is not None:  # `VertexId | None`, of any graph
                self.params[field.name] = Field(field.name, int, value, True)
            elif isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
                kind = float if isinstance(value, (float, np.floating)) else int
                self.params[field.name] = Field(field.name, kind, value, field.is_vertex_id)
            else:
                constants[field.name] = value
        self._tables = {name for name, field in self.params.items() if field.is_table}
        self._fixed = self._constants(constants, vectors)

    @property
    def has_none(self) -> bool:
        """Whether a state, an edge state or a field of messages may be None."""
        kept = (*self.states.values(), *self.edge_states.values(), *self.message)
        return any(field.may_be_none for field in kept)

    def _constants(
        self, params: dict[str, Any], vectors: dict[str, tuple[np.dtype[Any], tuple[Any, ...]]]
    ) -> Constants:
        kept = {*self.states, *self.records, *self.edge_states, *self.aggregators}
        declared = {*kept, *self.params, *params, *vectors}
        own = {
            n: inspect.getattr_static(self.cls, n)
            for n in dir(self.cls)
            if n not in declared and not hasattr(Vertex, n)
        }
        constants = {n: constant_of(v) for n, v in {**own, **params}.items()}
        properties = {n for n, v in own.items() if isinstance(v, property)}
        values = {n: c for n, c in constants.items() if c is not NotImplemented}
        return Constants(values, vectors, set(self.params), properties)

    def compute(self) -> ast.FunctionDef:
        """Return the tree, folded, with its global names resolved."""
        tree = parse_function(self.cls.compute, self.name)
        if len(tree.args.args) != 2 or not _takes_plain(tree):
            reject(tree, "compute must be written as 'def compute(self, messages)'")
        return self._read(tree, self.cls.compute, ("self", "messages"))

    def master(self) -> ast.FunctionDef:
        """Return the tree of the method that runs between supersteps, folded, with its global names resolved."""
        name = "next_phase" if self.has_phases else "master"
        function = inspect.getattr_static(self.cls, name)
        if not isinstance(function, types.FunctionType):
            raise CompileError(f"{self.name}.{name} is no plain method")
        tree = parse_function(function, self.name)
        if len(tree.args.args) != 1 or not _takes_plain(tree):
            reject(tree, f"{name} is not written as 'def {name}(self)'")
        return self._read(tree, function, ("self",))

    def method(self, attribute: str) -> Callable[..., Any] | None:
        """Return the function of the user's own method or property of that name, or None."""
        value = inspect.getattr_static(self.cls, attribute, None)
        if isinstance(value, staticmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        is_own = isinstance(value, types.FunctionType) and not hasattr(Vertex, attribute)
        return value if is_own else None

    def is_static(self, attribute: str) -> bool:
        return isinstance(inspect.getattr_static(self.cls, attribute, None), staticmethod)

    def tree(self, attribute: str) -> ast.FunctionDef:
        """Return a method's tree, folded, with its global names resolved. Callers must not change it."""
        if attribute not in self._trees:
            method = self.method(attribute)
            assert method is not None
            tree = parse_function(method, self.name)
            if not _takes_plain(tree):
                reject(tree, f"{attribute}() takes '*' or named arguments, which cannot be compiled")
            kept = () if self.is_static(attribute) else ("self",)
            self._trees[attribute] = self._read(tree, method, kept)
        return self._trees[attribute]

    def _read(
        self, tree: ast.FunctionDef, function: Callable[..., Any], kept: tuple[str, ...]
    ) -> ast.FunctionDef:
        given = dict(zip((arg.arg for arg in tree.args.args), kept, strict=False))
        if given != {k: k for k in kept}:
            tree = rename(tree, {**{k: f"{k}_" for k in kept}, **given})
        tree = fold_constants(desugar(write_keys(spell_out_keys(tree))), self._fixed)
        tree = name_table_reads(name_none_tests(tree), self._tables)
        refuse(tree)
        check_locals_are_set(tree)
        tree = self.names.resolve(tree, function, kept)
        if (record := self.message_record) is not None:
            hold_messages(tree, lambda message: self._is_returned(message, record))
        for node in walk(tree):
            node.sigps_file = function.__code__.co_filename  # type: ignore[attr-defined]
        return tree

    def scope(self, attribute: str) -> str | None:
        """Return whether `self.attribute` is the run's (`uniform`) or one vertex's (`vertex`); None if unknown."""
        if attribute in ENV or attribute in self.params:
            return "uniform"
        if attribute in VERTEX or attribute in {*self.states, *self.records, *self.aggregators}:
            return "vertex"
        return None

    def is_uniform(self, attribute: str) -> bool:
        """Tell whether a field, or all that a method reads, is the same for all vertices."""
        reads = self.method_reads(attribute) if self.method(attribute) else {attribute}
        return all(self.scope(r) == "uniform" for r in reads)

    def method_reads(self, attribute: str, seen: tuple[str, ...] = ()) -> set[str]:
        """Return every `self.x` that a method reads, also through the methods that it calls."""
        reads: set[str] = set()
        for node in walk(self.tree(attribute)):
            if is_self(node):
                name = node.attr
                if name in (*seen, attribute):
                    reject(node, f"{attribute}() calls itself; write the recursion as a loop")
                called = self.method(name) is not None
                reads |= self.method_reads(name, (*seen, attribute)) if called else {name}
        return reads

    def has_effects(self, attribute: str) -> bool:
        """Tell whether a method assigns fields, sends, halts, or walks edges, itself or through others."""
        if any(name in EFFECTS for name in self.method_reads(attribute)):
            return True
        for node in walk(self.tree(attribute)):
            if isinstance(node, ast.Subscript) and is_self(node.value) and not isinstance(node.ctx, ast.Load):
                return True
            if is_self(node):
                name = node.attr
                is_stored = not isinstance(node.ctx, ast.Load)
                if is_stored or (self.method(name) is not None and self.has_effects(name)):
                    return True
        return False

    def makes_message(self, node: ast.AST) -> bool:
        """Tell whether an expression calls the NamedTuple that is the message type."""
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return (
            is_call
            and self.message_type is not None
            and self.names.meanings.get(node.func.id) is self.message_type  # type: ignore[attr-defined]
        )

    def message_parts(self, message: ast.expr) -> list[ast.expr]:
        """Split a message expression into one expression a field."""
        record = self.message_record
        if record is None:
            if isinstance(message, ast.Tuple) and not isinstance(self.message[0].type, VectorType):
                reject(
                    message,
                    f"{self.name} declares one number a message, not a tuple of {len(message.elts)}: "
                    f"declare a NamedTuple and write class {self.name}(Vertex, message=...)",
                )
            return [message]
        self._require_made(message, record)
        return self._parts_of(message, record)

    def _is_made(self, message: ast.expr, record: Record) -> bool:
        """Tell whether a NamedTuple is written out, chosen, changed, or held by a variable or a state."""
        if isinstance(message, ast.IfExp):
            return self._is_made(message.body, record) and self._is_made(message.orelse, record)
        if _is_replaced(message):
            return self._is_made(message.func.value, record)  # type: ignore[attr-defined]
        state = self.records.get(message.attr) if is_self(message) else None
        return (
            isinstance(message, (ast.Tuple, ast.Name))
            or self._makes(message, record)
            or (state is not None and state.cls is record.cls)
        )

    def _is_returned(self, message: ast.expr, record: Record) -> bool:
        """Tell whether a function or a method of the user returns a NamedTuple, perhaps one among others."""
        if isinstance(message, ast.IfExp):
            ways = message.body, message.orelse
            found = [self._is_returned(way, record) for way in ways]
            made = [self._is_made(way, record) for way in ways]
            return any(found) and all(a or b for a, b in zip(found, made, strict=True))
        if _is_replaced(message):
            return self._is_returned(message.func.value, record)  # type: ignore[attr-defined]
        called = message.func if isinstance(message, ast.Call) else None
        if isinstance(called, ast.Name):
            return isinstance(self.names.meanings.get(called.id), types.FunctionType)
        return called is not None and is_self(called) and self.method(called.attr) is not None

    def _require_made(self, message: ast.expr, record: Record) -> None:
        """Refuse a message of another form, or with fields replaced that it does not have."""
        if not self._is_made(message, record):
            reject(
                message,
                f"a message is written as {record.cls.__name__}(...) where it is sent, or as a variable or a "
                "state that holds one, perhaps with _replace(...) or 'if' and 'else'",
            )
        for node in _wholes(message):
            unknown = [k.arg for k in node.keywords if k.arg not in record.names]
            if unknown:
                has = ", ".join(record.names)
                reject(node, f"{record.cls.__name__} has no field {unknown[0]!r}; it has: {has}")

    def made_message(self, parts: Sequence[ast.expr]) -> ast.expr:
        """Return the message that is made of one expression a field."""
        return parts[0] if self.message_record is None else self.made(self.message_record, parts)

    def made(self, record: Record, parts: Sequence[ast.expr]) -> ast.expr:
        """Return the NamedTuple that is made of one expression a field: a message, or a part of one."""
        names = [f"__part{i}" for i in range(len(parts))]
        return expression(nested(record, iter(names)), **dict(zip(names, parts, strict=True)))

    def message_part(self, expression: ast.expr) -> Record | None:
        """Return the NamedTuple that an expression reads of the message `__m`; None of any other expression."""
        found, path = self.message_record, ast.unparse(expression).split(".")
        for name in path[1:]:
            parts = found.parts if found is not None else ()
            found = next(
                (p for p in parts if isinstance(p, Record) and p.name.rpartition(".")[2] == name), None
            )
        return found if path[0] == "__m" else None

    def _makes(self, node: ast.expr, record: Record) -> bool:
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return is_call and self.names.meanings.get(node.func.id) is record.cls  # type: ignore[attr-defined]

    def _parts_of(self, given: ast.expr, record: Record) -> list[ast.expr]:
        """Split an expression for a NamedTuple into one a field."""
        names = record.names
        if isinstance(given, ast.Tuple):
            if len(given.elts) != len(names):
                what = "a message" if not record.name else f"a message's {record.name}"
                reject(given, f"{what} has {len(names)} fields ({', '.join(names)}), not {len(given.elts)}")
            values = given.elts
        elif self._makes(given, record):
            values = self._arguments(given, record)  # type: ignore[arg-type]
        elif isinstance(given, ast.Constant):
            reject(
                given, f"a message's {record.name} is a {record.cls.__name__}, and {given.value!r} is none"
            )
        elif isinstance(given, ast.IfExp):
            ways = [self._parts_of(one, record) for one in (given.body, given.orelse)]
            return [
                ast.copy_location(ast.IfExp(copied(given.test), one, other), given)
                for one, other in zip(*ways, strict=True)
            ]
        else:
            values = [_part_of(given, name) for name in names]
        found: list[ast.expr] = []
        for part, value in zip(record.parts, values, strict=True):
            found += self._parts_of(value, part) if isinstance(part, Record) else [value]
        return found

    def _arguments(self, call: ast.Call, record: Record) -> list[ast.expr]:
        """Return what a call of a NamedTuple's class gives its fields."""
        names = record.names
        given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
        is_once = len(call.args) + len(call.keywords) == len(given)
        for name, value in record.cls._field_defaults.items():  # type: ignore[attr-defined]
            if isinstance(value, (bool, int, float)):
                given.setdefault(name, ast.copy_location(ast.Constant(value), call))
        if set(given) != set(names) or not is_once:
            reject(call, f"{record.cls.__name__} takes exactly these fields: {', '.join(names)}")
        return [given[name] for name in names]

    def reject_unknown(self, node: ast.Attribute) -> None:
        """Raise the CompileError that says why `self.x` cannot be compiled."""
        name = node.attr
        if name in self.edge_states:
            reject(node, f"{name!r} is kept on edges: edge.{name}, in a loop over self.out_edges")
        if name in ("stop", "wake_all"):
            reject(node, f"{name}() is for master() and next_phase(): compute() of one vertex cannot call it")
        value = inspect.getattr_static(self.cls, name, NotImplemented)
        if isinstance(value, classmethod):
            reject(
                node, f"{self.name}.{name} is a classmethod, which cannot be compiled: make it a staticmethod"
            )
        if name in {f.name for f in self.cls.declaration.params} or value is not NotImplemented:
            reject(
                node,
                f"self.{name} is no number, string, None or tuple of these, so it cannot be compiled: "
                "use a State or Param field",
            )
        if name in _ELSEWHERE:
            reject(node, f"self.{name} is not there: {_ELSEWHERE[name]}")
        methods = [n for n in dir(self.cls) if not n.startswith("_") and callable(getattr(self.cls, n, None))]
        fields = [
            *ENV,
            *VERTEX,
            *self.states,
            *self.records,
            *self.params,
            *self._fixed.values,
            *self.aggregators,
            "out_edges",
        ]
        near = difflib.get_close_matches(name, [*fields, *methods], 1)
        if near:
            reject(
                node,
                f"{self.name} has no {name!r}; did you mean self.{near[0]}{'()' * (near[0] in methods)}?",
            )
        reject(node, f"{self.name} has no {name!r}. A field of it is declared: '{name}: State[float] = 0.0'")


def _is_replaced(node: ast.AST) -> TypeGuard[ast.Call]:
    """Tell whether an expression is `x._replace(...)` with named fields."""
    is_call = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "_replace"
    return is_call and not node.args and all(k.arg for k in node.keywords)  # type: ignore[attr-defined]


def _wholes(message: ast.expr) -> Iterator[ast.Call]:
    """Yield each `_replace(...)` of a whole message."""
    if isinstance(message, ast.IfExp):
        yield from _wholes(message.body)
        yield from _wholes(message.orelse)
    elif _is_replaced(message):
        yield message
        yield from _wholes(message.func.value)  # type: ignore[attr-defined]


def _part_of(given: ast.expr, name: str) -> ast.expr:
    """Return the expression for a field of a NamedTuple, which is perhaps that of a variable with others replaced."""
    whole = given
    replaced: dict[str | None, ast.expr] = {}
    while _is_replaced(whole):
        fields = {k.arg: k.value for k in whole.keywords}
        if fields.keys() & replaced.keys():  # what is replaced twice is computed all the same
            break
        replaced |= fields
        whole = whole.func.value  # type: ignore[attr-defined]
    if isinstance(whole, ast.Name) or (is_self(whole) and replaced):
        if name in replaced:
            return replaced[name]
        given = whole
    return ast.copy_location(ast.Attribute(copied(given), name, ast.Load()), given)


def _takes_plain(tree: ast.FunctionDef) -> bool:
    """Tell whether a function has only arguments that are given by position or by name."""
    return len(tree.args.args) == sum(isinstance(n, ast.arg) for n in walk(tree.args))
