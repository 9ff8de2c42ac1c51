"""Whether all vertices send together: in every superstep all that have out-edges, or none.

It follows from the paths through compute(). A condition is uniform where it depends on nothing of the vertex: on the
superstep, parameters, aggregators and the size of the graph. If only uniform conditions decide who sends and who stays
active, and whoever sends stays active, all do alike: in superstep 0 all run, and so in each one after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sigps.compiler.program import Delivery, VertexProgram
from sigps.native.trees import copied, walk

__all__ = ["acts_together", "sends_together"]

_OF_A_VERTEX = frozenset({"__vertex", "__state", "__inbox", "__has", "__edges", "__direct"})
_FLAGS = {"__halt": "halts", "__retired": "retires", "__sent": "sends"}


@dataclass(frozen=True)
class _Outcome:
    """What a path through compute() has decided so far; `known`: what uniform names that are set once were there."""

    halts: bool = False
    retires: bool = False
    sends: bool = False
    known: frozenset[tuple[str, bool]] = frozenset()


class _DiffersError(Exception):
    """Vertices may do different things."""


def sends_together(program: VertexProgram) -> bool:
    """Return whether in every superstep all vertices with out-edges send along them, or none does."""
    if program.delivery is not Delivery.RECORD:
        return False
    ended = _outcomes(program)
    return any(o.sends for o in ended) and _act_alike(ended)


def acts_together(program: VertexProgram) -> bool:
    """Return whether all vertices run in each superstep, alike: those with out-edges send or none; all halt or none.

    So the number of supersteps depends on nothing of a vertex. True, too, where nothing is ever sent.
    """
    return _act_alike(_outcomes(program))


def _act_alike(ended: set[_Outcome]) -> bool:
    return bool(ended) and not any(o.sends and (o.halts or o.retires) for o in ended)


def _outcomes(program: VertexProgram) -> set[_Outcome]:
    """Return what the paths through compute() decide; none where vertices may do different things."""
    compute = program.function("compute")
    if program.delivery is Delivery.DIRECT or compute is None:
        return set()
    alike = frozenset(f.name for f in program.module.body if isinstance(f, ast.FunctionDef) and _is_alike(f))
    tree = _WithoutVertex(alike).visit(copied(compute))
    paths = _Paths(_varying(tree), _set_once(tree))
    try:
        paths.follow(tree.body, {_Outcome()}, of_vertex=False)
    except _DiffersError:
        return set()
    return paths.ended


class _Paths:
    """Follows all paths through a function.

    Args:
        varying: Names whose values may differ among vertices.
        constant: Names that are set once.

    Attributes:
        ended: What the paths that ended have decided.
    """

    def __init__(self, varying: frozenset[str], constant: frozenset[str]) -> None:
        self._varying, self._constant = varying, constant
        self.ended: set[_Outcome] = set()

    def follow(self, body: list[ast.stmt], begun: set[_Outcome], *, of_vertex: bool) -> set[_Outcome]:
        """Return what paths have decided that come to the end of a block; `of_vertex`: not all vertices enter it."""
        for statement in body:
            begun = self._after(statement, begun, of_vertex)
        return begun

    def _after(self, statement: ast.stmt, begun: set[_Outcome], of_vertex: bool) -> set[_Outcome]:
        if isinstance(statement, ast.If):
            return self._after_if(statement, begun, of_vertex)
        if isinstance(statement, ast.Return):
            if of_vertex:
                raise _DiffersError
            self.ended |= begun
            return set()
        if isinstance(statement, ast.Assign) and (flag := _flag_of(statement)):
            assert isinstance(statement.value, ast.Constant)
            decided: dict[str, Any] = {flag: bool(statement.value.value)}
            return {replace(o, **decided) for o in begun}
        if any(_decides(node) for node in walk(statement)):  # in a loop, say
            raise _DiffersError
        return begun

    def _after_if(self, statement: ast.If, begun: set[_Outcome], of_vertex: bool) -> set[_Outcome]:
        differs = reads(statement.test, self._varying)
        if not differs:
            then, other = (self._where(statement.test, holds, begun) for holds in (True, False))
            then = self.follow(statement.body, then, of_vertex=of_vertex)
            return then | self.follow(statement.orelse, other, of_vertex=of_vertex)
        found = set()
        for outcome in begun:
            then = self.follow(statement.body, {outcome}, of_vertex=True)
            other = self.follow(statement.orelse, {outcome}, of_vertex=True)
            if _asks_for_edges(statement.test):  # without out-edges nothing is sent
                other = {replace(o, sends=t.sends) for o in other for t in then} if len(then) == 1 else other
            if len(then) != 1 or then != other:
                raise _DiffersError
            found |= then
        return found

    def _where(self, test: ast.expr, holds: bool, begun: set[_Outcome]) -> set[_Outcome]:
        """Return the paths on which a uniform condition may hold, or not."""
        if not isinstance(test, ast.Name) or test.id not in self._constant:
            return begun
        possible = (o for o in begun if (test.id, not holds) not in o.known)
        return {replace(o, known=o.known | {(test.id, holds)}) for o in possible}


class _WithoutVertex(ast.NodeTransformer):
    """Takes the vertex and its state from calls of the user's methods that are given them and do not read them."""

    def __init__(self, methods: frozenset[str]) -> None:
        self._methods = methods

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._methods:
            node.args = [
                *node.args[:3],
                *node.args[5:],
            ]  # lower.py: env, params, aggregates, vertex, state, others
        return node


def _is_alike(function: ast.FunctionDef) -> bool:
    """Return whether a method is given a vertex and its state, and reads nothing of them."""
    given = [argument.arg for argument in function.args.args]
    if given[3:5] != ["__vertex", "__state"]:
        return False
    unpacked = [n.id for s in function.body if _unpacks(s) for n in walk(s) if isinstance(n, ast.Name)]
    names = frozenset({"__vertex", "__state", *unpacked})
    return not any(reads(s, names) for s in function.body if not _unpacks(s))


def _unpacks(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Name)
        and statement.value.id in ("__vertex", "__state")
    )


def reads(tree: ast.AST, names: frozenset[str]) -> bool:
    """Return whether an expression reads one of these names."""
    return any(isinstance(node, ast.Name) and node.id in names for node in walk(tree))


def _flag_of(statement: ast.Assign) -> str | None:
    target = statement.targets[0]
    is_constant = len(statement.targets) == 1 and isinstance(statement.value, ast.Constant)
    return _FLAGS.get(target.id) if is_constant and isinstance(target, ast.Name) else None


def _decides(node: ast.AST) -> bool:
    """Return whether something writes a flag or ends the function."""
    is_write = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in _FLAGS
    return is_write or isinstance(node, ast.Return)


def _asks_for_edges(test: ast.expr) -> bool:
    return ast.unparse(test) in ("__out_degree > 0", "__out_degree", "__out_degree != 0", "__out_degree >= 1")


def _varying(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names whose values may differ among vertices, found in passes until no more are."""
    found = _OF_A_VERTEX
    while True:
        more = found | {name for name in _written(function.body, found, of_vertex=False)}
        if more == found:
            return found
        found = more


def _written(body: list[ast.stmt], varying: frozenset[str], *, of_vertex: bool) -> Iterator[str]:
    """Yield the names that get values of a vertex, or that not all vertices write."""
    for statement in body:
        if isinstance(statement, ast.If | ast.While):
            inside = of_vertex or reads(statement.test, varying)
            yield from _written(statement.body + statement.orelse, varying, of_vertex=inside)
        elif of_vertex or reads(statement, varying):  # a loop, too: then all that it writes
            yield from (
                n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            )


def _set_once(function: ast.FunctionDef) -> frozenset[str]:
    stored = [n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return frozenset(name for name in stored if stored.count(name) == 1)
