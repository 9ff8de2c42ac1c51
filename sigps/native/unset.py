"""Locals that may be read before they are set: Python raises UnboundLocalError, compiled code would read anything.

The rule is that of Java: on every path from the first line to a read there is an assignment, whatever the conditions
on the way are. A loop may run no iteration, except over a `range` of constants that is not empty, or `while True`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sigps.native.source import reject, targets_of
from sigps.native.trees import walk

__all__ = ["check_locals_are_set", "read_before_set"]

Set = frozenset[str] | None
"""The locals that are set at a point of the function; None where it is never reached."""


def check_locals_are_set(tree: ast.FunctionDef) -> None:
    """Raise a CompileError at the first read of a local that some path leaves unset.

    Args:
        tree: The function, whose parameters are set.
    """
    params = frozenset(arg.arg for arg in walk(tree.args) if isinstance(arg, ast.arg))
    stores = [name for name in _names(tree.body) if isinstance(name.ctx, ast.Store)]
    _Flow({name.id: name.lineno for name in reversed(stores)}).block(tree.body, params)


def read_before_set(body: Sequence[ast.stmt], names: Iterable[str]) -> set[str]:
    """Return which of some names a block, the body of a loop, may read before it sets them."""
    found: set[str] = set()

    class Reads(_Flow):
        def _check(self, name: ast.Name, before: Set) -> None:
            if before is not None and name.id in self._lines and name.id not in before:
                found.add(name.id)

    Reads(dict.fromkeys(names, 0)).loop_body(body)
    return found


class _Flow:
    """One walk along the statements of a function.

    Args:
        lines: The line of the first assignment to each local.
    """

    def __init__(self, lines: dict[str, int]) -> None:
        self._lines = lines
        self._left: list[dict[type[ast.stmt], list[Set]]] = []  # of each loop, what is set where it is left

    def block(self, body: Sequence[ast.stmt], before: Set) -> Set:
        """Return what is set behind a block."""
        for statement in body:
            before = self._statement(statement, before)
        return before

    def loop_body(self, body: Sequence[ast.stmt]) -> None:
        """Walk along the body of a loop of which nothing is set before."""
        self._left.append({ast.Break: [], ast.Continue: []})
        self.block(body, frozenset())

    def _statement(self, node: ast.stmt, before: Set) -> Set:
        if isinstance(node, ast.If):
            self._read([node.test], before)
            return _both(self.block(node.body, before), self.block(node.orelse, before))
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node, before)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._check(node.target, before)
        if isinstance(node, ast.Assign):
            self._read([node.value], before)
            for target in targets_of(node):  # in order: `i, v[i] = 2, x` reads the new i
                self._read([target], before)
                before = _with(before, _stored([target]))
            return before
        self._read([node], before)
        if isinstance(node, (ast.Break, ast.Continue)):
            self._left[-1][type(node)].append(before)
        if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return None
        return _with(before, _stored([node]))

    def _loop(self, node: ast.While | ast.For, before: Set) -> Set:
        self._read([node.test if isinstance(node, ast.While) else node.iter], before)
        inside = _with(before, _stored([node.target])) if isinstance(node, ast.For) else before
        self._left.append({ast.Break: [], ast.Continue: []})
        behind = self.block(node.body, inside)
        left = self._left.pop()
        ended = functools.reduce(_both, left[ast.Continue], behind) if _runs_at_least_once(node) else before
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
            ended = None
        return functools.reduce(_both, left[ast.Break], self.block(node.orelse, ended))

    def _read(self, nodes: Iterable[ast.AST], before: Set) -> None:
        for name in _names(nodes):
            if isinstance(name.ctx, ast.Load):
                self._check(name, before)

    def _check(self, name: ast.Name, before: Set) -> None:
        if before is not None and name.id in self._lines and name.id not in before:
            reject(
                name,
                f"the variable {name.id!r} may be read before it is set: line {self._lines[name.id]} sets it on some "
                f"paths only. Set it before them, as in '{name.id} = 0'",
            )


def _both(one: Set, other: Set) -> Set:
    """Return what is set where two paths meet."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _with(before: Set, names: Iterable[str]) -> Set:
    return None if before is None else before.union(names)


def _stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (name.id for name in _names(nodes) if isinstance(name.ctx, ast.Store))


def _names(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    """Yield the names of a function, in the order of its lines; those of comprehensions are their own."""
    for node in nodes:
        if isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
            own = {n.id for part in node.generators for n in walk(part.target) if isinstance(n, ast.Name)}
            yield from (name for name in _names(ast.iter_child_nodes(node)) if name.id not in own)
        elif isinstance(node, ast.Name):
            yield node
        else:
            yield from _names(ast.iter_child_nodes(node))


def _runs_at_least_once(loop: ast.For | ast.While) -> bool:
    """Tell whether a loop runs over a constant range, or a tuple, that is not empty."""
    source = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(source, ast.Tuple):
        return bool(source.elts)
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name) or source.func.id != "range":
        return False
    bounds: list[Any] = [argument.value for argument in source.args if isinstance(argument, ast.Constant)]
    return len(bounds) == len(source.args) > 0 and len(range(*bounds)) > 0
