"""Variables split where one name is used for several things: each part that no read joins may have a type of its own.

t = self.id          # t
self.x = t + 1
t = 0.5              # t.1: no read sees both assignments
self.y = t
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from sigps.native.source import targets_of
from sigps.native.trees import copied, walk

__all__ = ["split_variables"]

Reaching = dict[str, frozenset[int]] | None
"""The assignments of each name that may have given it its value; None where a statement is never reached."""


def split_variables(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return a copy of a function in which the name of each web of assignments is its own."""
    tree = copied(tree)
    flow = _Flow()
    flow.block(tree.body, {arg.arg: flow.assignment(arg) for arg in tree.args.args})
    flow.rename()
    return tree


class _Flow:
    """Follows assignments to the reads that they reach, and joins those that reach the same read."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._of_node: dict[ast.AST, int] = {}
        self._left: list[dict[type[ast.stmt], list[Reaching]]] = []

    def assignment(self, node: ast.AST) -> frozenset[int]:
        if node not in self._of_node:
            self._of_node[node] = len(self._parents)
            self._parents.append(len(self._parents))
        return frozenset([self._of_node[node]])

    def rename(self) -> None:
        """Give each web but the first of a name a number."""
        webs: dict[str, dict[int, str]] = {}
        for node, number in self._of_node.items():
            name = node.arg if isinstance(node, ast.arg) else node.id  # type: ignore[attr-defined]
            of_name = webs.setdefault(name, {})
            new = of_name.setdefault(self._root(number), f"{name}.{len(of_name)}" if of_name else name)
            if isinstance(node, ast.Name):
                node.id = new

    def block(self, body: Sequence[ast.stmt], before: Reaching) -> Reaching:
        for statement in body:
            before = self._statement(statement, before)
        return before

    def _statement(self, node: ast.stmt, before: Reaching) -> Reaching:
        if isinstance(node, ast.If):
            self._read([node.test], before)
            return _both(self.block(node.body, before), self.block(node.orelse, before))
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node, before)
        if isinstance(node, ast.Assign):
            self._read([node.value], before)
            for target in targets_of(node):  # in order: `i, v[i] = 2, x` reads the new i
                self._read([target], before)
                before = self._with(before, [target])
            return before
        self._read([node], before)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._join(node.target, before)
        if isinstance(node, (ast.Break, ast.Continue)):
            self._left[-1][type(node)].append(before)
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return None
        return self._with(before, [node])

    def _loop(self, node: ast.While | ast.For, before: Reaching) -> Reaching:
        while True:
            self._read([node.test if isinstance(node, ast.While) else node.iter], before)
            inside = self._with(before, [node.target]) if isinstance(node, ast.For) else before
            self._left.append({ast.Break: [], ast.Continue: []})
            again = self.block(node.body, inside)
            left = self._left.pop()
            for state in left[ast.Continue]:
                again = _both(again, state)
            joined = _both(before, again)
            if joined == before:
                break
            before = joined
        behind = self.block(node.orelse, before)
        for state in left[ast.Break]:
            behind = _both(behind, state)
        return behind

    def _read(self, nodes: Iterable[ast.AST], before: Reaching) -> None:
        for name in _names(nodes):
            if isinstance(name.ctx, ast.Load):
                self._join(name, before)

    def _join(self, name: ast.Name, before: Reaching) -> None:
        for number in (before or {}).get(name.id, ()):
            (own,) = self.assignment(name)
            self._parents[self._root(own)] = self._root(number)

    def _root(self, number: int) -> int:
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def _with(self, before: Reaching, nodes: Iterable[ast.AST]) -> Reaching:
        if before is None:
            return None
        stored = [name for name in _names(nodes) if isinstance(name.ctx, ast.Store)]
        return before | {name.id: self.assignment(name) for name in stored}


def _both(one: Reaching, other: Reaching) -> Reaching:
    if one is None or other is None:
        return one if other is None else other
    return {name: one.get(name, frozenset()) | other.get(name, frozenset()) for name in one | other}


def _names(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    return (name for node in nodes for name in walk(node) if isinstance(name, ast.Name))
