"""min() and max() with key=, written before the other passes see them, so that none meets a lambda.

min(messages, key=lambda m: m.far)            ->  __own_min_by((m.far, m) for m in messages)
min(self.out_edges, key=lambda e: e.weight)   ->  self.out_edges[__own_min_by((e.weight,) for e in self.out_edges)]
min(a, b, key=rank), min((a, b), key=rank)    ->  __own_min_by((rank(a), rank(b)), (a, b))

Of messages with equal keys min() takes the smallest message and max() the largest, compared field by field, since
messages have no order. Edges and tuples have one: the first with the best key is taken, as in Python.
"""

from __future__ import annotations

import ast
from typing import Any

from sigps.compiler.frontend.desugar import OWN
from sigps.compiler.frontend.grammar import is_common_neighbors, is_messages, is_out_edges
from sigps.compiler.frontend.keyed import applied, is_grouped
from sigps.compiler.frontend.syntax import at, expression, tuple_of
from sigps.native.primitives import max_by, min_by
from sigps.native.source import reject
from sigps.native.trees import copied, walk

__all__ = ["KEY_FUNCTIONS", "OWN", "write_keys"]

KEY_FUNCTIONS = {f"{OWN}min_by": min_by, f"{OWN}max_by": max_by}
"""What generated functions call, by name."""


def write_keys(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function in which no min() or max() has a key=; a new tree where one has.

    Raises:
        CompileError: If the key is neither a lambda nor the name of a function.
    """
    if not any(_has_key(node) for node in walk(tree)):
        return tree
    loops = (n for n in walk(tree) if isinstance(n, ast.For) and is_grouped(n.iter))
    groups = {n.target.elts[-1].id for n in loops if isinstance(n.target, ast.Tuple)}  # type: ignore[attr-defined]
    written: ast.FunctionDef = _Keys(groups).visit(copied(tree))
    return written


def _has_key(node: ast.AST) -> bool:
    is_extreme = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
    )
    return is_extreme and any(k.arg == "key" for k in node.keywords)  # type: ignore[attr-defined]


class _Keys(ast.NodeTransformer):
    def __init__(self, groups: set[str]) -> None:
        self._groups = groups  # names of groups of messages

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not _has_key(node) or not node.args:
            return node
        name: str = node.func.id  # type: ignore[attr-defined]
        function = ast.Name(f"{OWN}{name}_by", ast.Load())
        key = next(k.value for k in node.keywords if k.arg == "key")
        others = [k for k in node.keywords if k.arg != "key"]
        first = node.args[0]
        if len(node.args) == 1 and not isinstance(first, ast.Tuple):
            return at([self._over_many(function, node, key, others)], node)[0]
        values = first.elts if isinstance(first, ast.Tuple) and len(node.args) == 1 else node.args
        if others or any(isinstance(value, ast.Starred) for value in values):
            reject(node, f"{name}(a, b, key=...) takes values and a key, nothing else")
        keys = tuple_of([applied(key, value) for value in values])
        return at([ast.Call(function, [keys, tuple_of(copied(values))], [])], node)[0]

    def _over_many(
        self, function: ast.Name, node: ast.Call, key: ast.expr, others: list[ast.keyword]
    ) -> ast.expr:
        """Write an extreme of messages or edges."""
        source, name = node.args[0], function.id.removeprefix(OWN)[:3]
        if isinstance(source, ast.GeneratorExp):
            generators, element = source.generators, source.elt
        else:
            # A lambda's argument is a name for the loop's variable.
            variable = key.args.args[0].arg if isinstance(key, ast.Lambda) and key.args.args else f"{OWN}each"
            generators = [ast.comprehension(ast.Name(variable, ast.Store()), source, [], 0)]
            element = ast.Name(variable, ast.Load())
        over = generators[0].iter
        is_group = isinstance(over, ast.Name) and over.id in self._groups
        if not (is_group or is_messages(over) or is_out_edges(over) or is_common_neighbors(over)):
            reject(
                node,
                f"{name}(..., key=) takes messages, self.out_edges, or a tuple that is written out: "
                f"'{name}((a, b), key=...)'",
            )
        of_edges = is_out_edges(over) and ast.unparse(element) == ast.unparse(generators[0].target)
        parts = [applied(key, element)] if of_edges else [applied(key, element), element]
        if not of_edges:
            return ast.Call(function, [ast.GeneratorExp(tuple_of(parts), generators)], others)
        if others:
            reject(node, f"{name}() of edges has no {others[0].arg}=: test self.out_degree before it")
        # No edge: a position past the last one, which is an error where it is read.
        none = [ast.keyword("default", expression("self.out_degree"))]
        position = ast.Call(function, [ast.GeneratorExp(tuple_of(parts), generators)], none)
        return expression("self.out_edges[AT]", AT=position)
