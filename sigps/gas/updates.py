"""update(): it reads the values of its in-edges, and sets its own fields and the values of its out-edges.

The values of an in-edge are a message. Its source sends them in every superstep in which any vertex changed, so all are
there; those that can be made again are not stored.
"""

from __future__ import annotations

import ast
import copy
import typing
from collections.abc import Mapping
from typing import Any

from sigps.gas.methods import Method, attribute_of, nodes_of, replaced, stored_attribute
from sigps.gas.phases import Fields, start_of
from sigps.gas.writing import Translation, statements
from sigps.native.source import reject

__all__ = ["of_update"]


def of_update(cls: type, methods: Mapping[str, Any], fields: Fields) -> Translation:
    """Return what a class with update(), and perhaps start(), becomes."""
    owner = cls.__name__
    update = Method(methods["update"], owner, ("self",))
    if not fields.edge_values:
        reject(
            update.tree,
            "update() reads and sets values of edges: declare one, 'value: EdgeState[float] = 0.0'",
        )
    message, parts_of = _message(fields)
    parts = Translation([], [], [], [], message, update.tree)
    if parts_of:
        parts.bound["EdgeValues"] = message
    body = _Messages(fields, parts_of).of_body(update.body)
    update.body = body
    if not any(value is not None for value in update.results()):
        body = _compared(body, fields, update)
    update.body = body
    parts.apply = update.with_result()
    loops = [s for s in parts.apply if _sets_values(s, fields)]
    _refuse_other_loops(parts.apply, loops, fields)
    if loops:
        _refuse_locals(loops[0])
    scatter, stored = _scatter(loops[0] if loops else None, fields, parts_of, update)
    parts.stored = stored
    parts.apply = [s for s in parts.apply if s not in loops]
    parts.scatter = scatter
    parts.start = start_of(methods, owner, update.tree)
    kept = "kept on edges" if stored else "made again from what its source sends: not stored"
    parts.parts = [
        ("update", "in-edges are messages; put in place in compute()"),
        *((f"edge.{name}", kept) for name in fields.edge_values),
    ]
    return parts


def _message(fields: Fields) -> tuple[Any, tuple[str, ...]]:
    """Return the type of a message, and the names of its fields where there are several."""
    types = {name: type_ for name, (type_, _) in fields.edge_values.items()}
    if len(types) == 1:
        return next(iter(types.values())), ()
    return typing.NamedTuple("EdgeValues", list(types.items())), tuple(types)


class _Messages:
    """Puts `messages` in the place of `self.in_edges`, and a message in that of an in-edge's value."""

    def __init__(self, fields: Fields, parts_of: tuple[str, ...]) -> None:
        self._fields, self._parts_of = fields, parts_of

    def of_body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [replaced(s, self._loops) for s in body]

    def _loops(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, (ast.GeneratorExp, ast.For)):
            loop = node.generators[0] if isinstance(node, ast.GeneratorExp) else node
            if attribute_of(loop.iter, "self") == "in_edges" and isinstance(loop.target, ast.Name):
                edge = loop.target.id
                loop.iter = ast.copy_location(ast.Name("messages", ast.Load()), loop.iter)
                made: ast.AST = replaced(node, lambda n: self._value(n, edge))
                return made
        if isinstance(node, ast.Call) and node.args and attribute_of(node.args[0], "self") == "in_edges":
            return _as_messages(node)  # len(self.in_edges)
        is_read = isinstance(node, ast.Attribute) and attribute_of(node.value, "self") == "in_edges"
        if is_read and not self._parts_of:  # self.in_edges.most_common()
            return _as_messages(node)
        if attribute_of(node, "self") == "in_edges":
            reject(node, "in-edges are read in a loop: 'sum(edge.value for edge in self.in_edges)'")
        return None

    def _value(self, node: ast.AST, edge: str) -> ast.AST | None:
        name = attribute_of(node, edge)
        if not name:
            return None
        if name not in self._fields.edge_values or not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
            names = ", ".join(f"edge.{n}" for n in self._fields.edge_values)
            reject(node, f"an in-edge has the values that its source set: {names}, which can be read")
        message = ast.Name(edge, ast.Load())
        return ast.Attribute(message, name, ast.Load()) if self._parts_of else message


def _as_messages(tree: ast.AST) -> ast.AST:
    def change(node: ast.AST) -> ast.AST | None:
        return ast.Name("messages", ast.Load()) if attribute_of(node, "self") == "in_edges" else None

    made: ast.AST = replaced(tree, change)
    return made


def _sets_values(statement: ast.stmt, fields: Fields) -> bool:
    """Tell whether a statement is a loop over out-edges that sets values of theirs."""
    if not isinstance(statement, ast.For) or attribute_of(statement.iter, "self") != "out_edges":
        return False
    edge = getattr(statement.target, "id", "")
    return any(stored_attribute(n, edge) in fields.edge_values for n in ast.walk(statement))


def _refuse_other_loops(body: list[ast.stmt], allowed: list[ast.stmt], fields: Fields) -> None:
    """Refuse edge values that are set on some paths only: a target reads all its in-edges in every superstep."""
    inside = {id(n) for n in ast.walk(allowed[0])} if allowed else set()
    for node in nodes_of(body):
        is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if is_set and node.attr in fields.edge_values and id(node) not in inside:  # type: ignore[attr-defined]
            reject(
                node,
                "values of out-edges are set in one loop over self.out_edges that stands on no branch, after what "
                "it reads: its targets read all their in-edges in every superstep",
            )


def _refuse_locals(loop: ast.stmt) -> None:
    """Refuse a loop over out-edges that reads locals of update(): it also runs after start()."""
    names = [n for n in ast.walk(loop) if isinstance(n, ast.Name)]
    own = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    for node in names:
        if node.id.endswith("_in_update") and node.id not in own:
            name = node.id.removesuffix("_in_update")
            reject(
                node,
                f"the loop that sets values of out-edges reads the local {name!r}, and it also runs after start(), "
                f"which has none: keep it in a field, '{name}: State[float] = 0.0'",
            )


def _scatter(
    loop: ast.stmt | None, fields: Fields, parts_of: tuple[str, ...], update: Method
) -> tuple[list[ast.stmt], set[str]]:
    """Return the loop that sends, and the edge values that are kept."""
    place = update.tree if loop is None else loop
    (made,) = statements("for edge in self.out_edges: pass", place)
    assert isinstance(made, ast.For)
    body: list[ast.stmt] = []
    if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name):
        old = loop.target.id
        renamed = replaced(
            loop,
            lambda n: ast.Name("edge", n.ctx) if isinstance(n, ast.Name) and n.id == old else None,
        )
        body = renamed.body
    reads = {n.attr for n in nodes_of(body) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    values: dict[str, ast.expr] = {}
    before: list[ast.stmt] = []
    for statement in body:
        name = attribute_of(statement.targets[0], "edge") if isinstance(statement, ast.Assign) else ""
        if name in fields.edge_values and name not in values:
            values[name] = statement.value  # type: ignore[attr-defined]
        else:
            before.append(statement)
    sets = [n for n in nodes_of(before) if stored_attribute(n, "edge")]
    is_kept = bool(reads & {*fields.edge_values, "reverse"} or sets or set(values) != set(fields.edge_values))
    if is_kept:
        before = body
        values = {n: ast.Attribute(ast.Name("edge", ast.Load()), n, ast.Load()) for n in fields.edge_values}
    ordered = [values[name] for name in fields.edge_values]
    value = ast.Call(ast.Name("EdgeValues", ast.Load()), ordered, []) if parts_of else ordered[0]
    (send,) = statements("self.send(edge, 0)", place)
    send.value.args[1] = value  # type: ignore[attr-defined]
    made.body = [*copy.deepcopy(before), send]
    return [ast.fix_missing_locations(made)], set(fields.edge_values) if is_kept else set()


def _compared(body: list[ast.stmt], fields: Fields, update: Method) -> list[ast.stmt]:
    """Return a body that ends with whether it changed a field of its vertex."""
    place = update.tree
    assigned = {stored_attribute(n, "self") for n in nodes_of(body)}
    names = sorted(assigned & set(fields.states))
    before = "\n".join(f"old_{name} = self.{name}" for name in names)
    test = " or ".join(f"self.{name} != old_{name}" for name in names) or "False"
    for node in nodes_of(body):
        if isinstance(node, ast.Return):
            reject(
                node,
                "update() returns nothing, or whether the vertex changed: 'return abs(rank - old) > 1e-9'",
            )
    return [*statements(before, place), *body, *statements(f"return {test}", place)]
