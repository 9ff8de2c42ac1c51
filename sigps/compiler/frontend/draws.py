"""Random numbers: `self.random()` and the like become calls on lines of their own, each with its number.

    x = 2 * self.random()    ->    __drawn1 = __random(self.random_seed, self.id, self.superstep, __draws)
                                   __draws = __draws + 1
                                   x = 2 * __drawn1

So a draw stands where it is always reached: not inside `and`, `or`, `x if y else z`, or the condition of a `while`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from sigps.compiler.frontend.subject import DRAWS, Subject
from sigps.compiler.frontend.syntax import at, expression, is_self, statements
from sigps.model import draws
from sigps.model.fields import Field
from sigps.native.source import reject
from sigps.native.trees import walk

__all__ = ["DRAW_FUNCTIONS", "number_draws"]

DRAW_FUNCTIONS = {f"__{name}": getattr(draws, name) for name in DRAWS if name != "random_edge"}
"""What generated functions call, by name."""

_CONDITIONAL = (ast.BoolOp, ast.IfExp, ast.GeneratorExp, ast.ListComp, ast.Lambda)


def number_draws(body: list[ast.stmt], subject: Subject) -> list[ast.stmt]:
    """Return compute()'s body with its draws numbered; as it is where there are none.

    Raises:
        CompileError: If a draw stands where it is not always reached.
    """
    if not any(_is_draw(node) for statement in body for node in walk(statement)):
        return body
    subject.params["random_seed"] = Field("random_seed", int, 0)
    numbered = _Draws().block(body)
    return [*at(statements("__draws = 0"), body[0]), *numbered]


def _is_draw(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and is_self(node.func) and node.func.attr in DRAWS


class _Draws(ast.NodeTransformer):
    def __init__(self) -> None:
        self._count = 0
        self._before: list[ast.stmt] = []

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            for branch in ("body", "orelse"):
                if isinstance(getattr(statement, branch, None), list):
                    setattr(statement, branch, self.block(getattr(statement, branch)))
            self._before = []
            self._own(statement)
            found += [*self._before, statement]
        return found

    def _own(self, statement: ast.stmt) -> None:
        """Replace the draws in a statement's own expressions."""
        for name, value in ast.iter_fields(statement):
            if name in ("body", "orelse"):
                continue
            if isinstance(statement, ast.While) and name == "test":
                _refuse_draws([value])
            if isinstance(value, ast.expr):
                setattr(statement, name, self.visit(value))
            elif isinstance(value, list):
                setattr(statement, name, [self.visit(v) if isinstance(v, ast.expr) else v for v in value])

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _CONDITIONAL):
            first: list[Any] = []
            if isinstance(node, ast.IfExp):
                node.test, first = self.visit(node.test), [node.test]
            _refuse_draws([child for child in ast.iter_child_nodes(node) if child not in first])
            return node
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if not _is_draw(node):
            return node
        assert isinstance(node.func, ast.Attribute)
        name, (count, example) = node.func.attr, DRAWS[node.func.attr]
        if node.keywords or len(node.args) != count:
            reject(node, f"self.{name}() takes {count} argument{'s' * (count != 1)}: {example}")
        self._count += 1
        is_edge, name = name == "random_edge", "random_int" if name == "random_edge" else name
        if is_edge:
            node.args, count = [expression("self.out_degree")], 1
        arguments = "".join(f", A{i}" for i in range(count))
        drawn = statements(
            f"__drawn{self._count} = __{name}(self.random_seed, self.id, self.superstep, __draws{arguments})\n"
            "__draws = __draws + 1"
        )
        assert isinstance(drawn[0], ast.Assign)
        assert isinstance(drawn[0].value, ast.Call)
        drawn[0].value.args[4:] = node.args
        self._before += at(drawn, node)
        number = ast.Name(f"__drawn{self._count}", ast.Load())
        found = expression("self.out_edges[K]", K=number) if is_edge else number
        return at([found], node)[0]


def _refuse_draws(nodes: Sequence[ast.AST]) -> None:
    for node in _all(nodes):
        if _is_draw(node):
            reject(
                node,
                "a random number is drawn on a line of its own where it is not always needed: "
                "'x = self.random()' before it, or inside the loop",
            )


def _all(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from walk(node)
