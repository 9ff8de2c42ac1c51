"""gather(), merge, apply() and scatter(): what a message is, and what becomes of edge values.

gather() runs at the source of an edge where it reads nothing of the target's: then messages combine. Else the message
has what it reads of the source and of the edge, and it runs at the target, over a list.
"""

from __future__ import annotations

import ast
import copy
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple

from sigps.gas.methods import Method, attribute_of, is_straight_line, replaced
from sigps.gas.writing import Translation, statements
from sigps.model.fields import VertexId, extreme
from sigps.native.source import reject

__all__ = ["Fields", "of_phases", "start_of"]

_VERTEX: dict[str, Any] = {"id": VertexId, "out_degree": int, "in_degree": int}
_RUN = ("superstep", "num_vertices", "num_edges")


class Fields(NamedTuple):
    """The annotated types of a class: its states, its edge values with what they begin with, and its parameters."""

    states: Mapping[str, Any]
    edge_values: Mapping[str, tuple[Any, Any]]
    params: frozenset[str]


def of_phases(
    cls: type, methods: Mapping[str, Any], merge: Any, total_type: Any, fields: Fields
) -> Translation:
    """Return what a class with apply(), and perhaps gather() and scatter(), becomes."""
    owner = cls.__name__
    apply = Method(methods["apply"], owner, ("self", "total") if "gather" in methods else ("self",))
    if not apply.results() or None in apply.results():
        reject(apply.tree, "apply() returns whether the vertex changed: the run goes on while any did")
    parts = Translation([], [], apply.with_result(), [], None, apply.tree)
    scatter = Method(methods["scatter"], owner, ("self", "edge")) if "scatter" in methods else None
    assigned, locals_of = ({}, []) if scatter is None else _edge_values(scatter, fields)
    parts.stored = set(fields.edge_values) - set(assigned)
    if "gather" in methods:
        gather = Method(methods["gather"], owner, ("self", "edge"))
        read = gather.reads("edge")
        parts.stored |= {name for name in assigned if name not in read}
        if parts.stored & set(assigned):  # one that is kept: the whole of scatter() runs as it is written
            assigned, parts.stored = {}, set(fields.edge_values)
        before = list(locals_of) if assigned else (scatter.body if scatter is not None else [])
        _gather(gather, merge, total_type, fields, assigned, before, parts)
    else:
        parts.stored = set(fields.edge_values)
        if scatter is not None:
            parts.scatter = _loop(scatter.body, scatter.tree)
        parts.parts.append(("gather", "not written: nothing is sent"))
    for name in fields.edge_values:
        kept = (
            "kept on edges" if name in parts.stored else "made again from what its source sends: not stored"
        )
        parts.parts.append((f"edge.{name}", kept))
    parts.parts.append(("apply", "put in place in compute()"))
    if scatter is None:
        parts.parts.append(("scatter", "not written: costs nothing"))
    else:
        parts.parts.append(("scatter", "part of the message" if assigned else "a loop over out-edges"))
    parts.start = start_of(methods, owner, apply.tree)
    return parts


def start_of(methods: Mapping[str, Any], owner: str, place: ast.AST) -> list[ast.stmt]:
    """Return what superstep 0 does before it sends."""
    if "start" not in methods:
        return statements("changed = True", place)
    return Method(methods["start"], owner, ("self",)).with_result()


def _edge_values(scatter: Method, fields: Fields) -> tuple[dict[str, ast.expr], list[ast.stmt]]:
    """Return the edge values that can be made again, as expressions at the source, and the locals these need."""
    for node in (n for s in scatter.body for n in ast.walk(s)):
        is_stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if is_stored and attribute_of(node, "edge") not in {*fields.edge_values, ""}:
            reject(node, f"declare it on edges: '{node.attr}: EdgeState[float] = 0.0'")  # type: ignore[attr-defined]
        if is_stored and attribute_of(node, "self"):
            reject(node, "scatter() assigns values of edges; apply() those of the vertex")
    reads = [n for s in scatter.body for n in ast.walk(s) if isinstance(n, ast.Attribute)]
    is_old = [n for n in reads if isinstance(n.ctx, ast.Load) and n.attr in {*fields.edge_values, "reverse"}]
    if is_old or not is_straight_line(scatter.body):
        return {}, []
    found: dict[str, ast.expr] = {}
    before: list[ast.stmt] = []
    for statement in scatter.body:
        assert isinstance(statement, ast.Assign)
        name = attribute_of(statement.targets[0], "edge")
        if name and name not in found:
            found[name] = statement.value
        elif name or not isinstance(statement.targets[0], ast.Name):
            return {}, []
        else:
            before.append(statement)
    return found, before


def _gather(
    gather: Method,
    merge: Any,
    total_type: Any,
    fields: Fields,
    assigned: Mapping[str, ast.expr],
    before: list[ast.stmt],
    parts: Translation,
) -> None:
    """Add the message and the total: gather() is at the source, or at the target."""
    if (
        not gather.body
        or not isinstance(gather.body[-1], ast.Return)
        or not is_straight_line(gather.body[:-1])
        or gather.body[-1].value is None
    ):
        reject(gather.tree, "gather() is assignments of locals and one 'return' of what an in-edge brings")
    own = [n for s in gather.body for n in ast.walk(s) if attribute_of(n, "self")]
    of_target = [n for n in own if n.attr in {*fields.states, *_VERTEX}]  # type: ignore[attr-defined]
    if not of_target:
        body = [replaced(s, _AtSource(assigned)) for s in gather.body]
        value = body.pop().value
        parts.scatter = _loop([*before, *body, *_send(value, gather.tree)], gather.tree)
        parts.message = total_type
        parts.total = _total(merge, total_type, parts, gather.tree)
        parts.parts.append(("gather", "runs at the source of an edge: messages combine"))
    else:
        leaves = _Leaves(assigned, fields)
        body = [replaced(s, leaves) for s in gather.body]
        value = body.pop().value
        message, sent = leaves.message(parts)
        parts.scatter = _loop([*before, *_send(sent, gather.tree)], gather.tree)
        parts.message = message
        parts.total = _listed(merge, total_type, body, value, parts, gather.tree)
        name = of_target[0].attr  # type: ignore[attr-defined]
        parts.parts.append(("gather", f"reads self.{name} of the target, so it runs there, over a list"))
    shown = merge if isinstance(merge, str) else merge.__name__
    parts.parts.append(("merge", f"{shown} of messages"))


class _AtSource:
    """Puts what the source knows in the place of `edge.source`, and edge values that are made again in theirs."""

    def __init__(self, assigned: Mapping[str, ast.expr]) -> None:
        self._assigned = assigned

    def __call__(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Attribute) and attribute_of(node.value, "edge") == "source":
            return ast.Attribute(ast.Name("self", ast.Load()), node.attr, node.ctx)
        name = attribute_of(node, "edge")
        if name == "source":
            reject(node, "edge.source is a vertex: read one of its fields, as in edge.source.rank")
        return copy.deepcopy(self._assigned[name]) if name in self._assigned else None


class _Leaves:
    """Puts fields of the message in the place of what gather() reads of the source and of the edge."""

    def __init__(self, assigned: Mapping[str, ast.expr], fields: Fields) -> None:
        self._at_source, self._fields = _AtSource(assigned), fields
        self._found: dict[str, tuple[Any, ast.expr]] = {}

    def __call__(self, node: ast.AST) -> ast.AST | None:
        name = attribute_of(node, "edge")
        if isinstance(node, ast.Attribute) and attribute_of(node.value, "edge") == "source":
            types = {**_VERTEX, **self._fields.states}
            if node.attr not in types:
                reject(node, f"edge.source has states, id and degrees, and no {node.attr!r}")
            return self._leaf(f"source_{node.attr}", types[node.attr], node)
        if name in self._fields.edge_values:
            return self._leaf(name, self._fields.edge_values[name][0], node)
        if name == "weight":
            return self._leaf("weight", float, node)
        if name:
            reject(
                node,
                f"gather() reads the target's own fields, so it runs there, and edge.{name} has no declared type: "
                f"copy it to an EdgeState in scatter(), 'edge.value = edge.{name}'",
            )
        return None

    def _leaf(self, name: str, type_: Any, node: ast.AST) -> ast.expr:
        self._found[name] = (type_, replaced(node, self._at_source))
        return ast.Attribute(ast.Name("m", ast.Load()), name, ast.Load())

    def message(self, parts: Translation) -> tuple[Any, ast.expr]:
        types = {name: type_ for name, (type_, _) in self._found.items()} or {"nothing": bool}
        made = typing.NamedTuple("Gathered", list(types.items()))  # type: ignore[misc]
        parts.bound["Gathered"] = made
        values: list[ast.expr] = [value for _, value in self._found.values()] or [ast.Constant(False)]
        return made, ast.Call(ast.Name("Gathered", ast.Load()), values, [])


def _loop(body: list[ast.stmt], place: ast.AST) -> list[ast.stmt]:
    (loop,) = statements("for edge in self.out_edges: pass", place)
    loop.body = copy.deepcopy(body)  # type: ignore[attr-defined]
    return [ast.fix_missing_locations(loop)]


def _send(value: ast.expr, place: ast.AST) -> list[ast.stmt]:
    (made,) = statements("self.send(edge, 0)", place)
    made.value.args[1] = value  # type: ignore[attr-defined]
    return [ast.fix_missing_locations(ast.copy_location(made, value if hasattr(value, "lineno") else place))]


def _nothing(merge: Any, type_: Any) -> str:
    """Return the total of no in-edges, as text."""
    if merge == "sum":
        return "0.0" if type_ is float else "0"
    if hasattr(type_, "_fields"):
        hints = typing.get_type_hints(type_)
        return f"Total({', '.join(_nothing(merge, hints[name]) for name in type_._fields)})"
    kind = getattr(type_, "__origin__", type_)
    worst = extreme(merge, kind)
    return ("-" if worst < 0 else "") + "1e999" if kind is float else repr(worst)


def _total(merge: Any, type_: Any, parts: Translation, place: ast.AST) -> list[ast.stmt]:
    if isinstance(merge, str):
        if hasattr(type_, "_fields"):
            parts.bound["Total"] = type_
        default = "" if merge == "sum" else f", default={_nothing(merge, type_)}"
        return statements(f"total = {merge}(messages{default})", place)
    parts.combiner = merge
    return statements("total = self.empty\nfor m in messages: total = m", place)


def _listed(
    merge: Any, type_: Any, body: list[ast.stmt], value: ast.expr, parts: Translation, place: ast.AST
) -> list[ast.stmt]:
    fold = {"sum": "total += 0", "min": "total = min(total, 0)", "max": "total = max(total, 0)"}
    if isinstance(merge, str):
        start, (folded,) = f"total = {_nothing(merge, type_)}", statements(fold[merge], place)
        if merge == "sum":
            folded.value = value  # type: ignore[attr-defined]
        else:
            folded.value.args[1] = value  # type: ignore[attr-defined]
    else:
        parts.bound["merged"] = merge
        start, (folded,) = "total = self.empty", statements("total = merged(total, 0)", place)
        folded.value.args[1] = value  # type: ignore[attr-defined]
    first, loop = statements(f"{start}\nfor m in messages: pass", place)
    loop.body = [*body, folded]  # type: ignore[attr-defined]
    return [first, ast.fix_missing_locations(loop)]
