"""Random numbers: `self.random()` and the like become calls on lines of their own, each with its number.

    x = 2 * self.random()    ->    __drawn1 = __random(self.random_seed, self.id, self.superstep, __draws)
                                   __draws = __draws + 1
                                   x = 2 * __drawn1

What is not always drawn is drawn under the same condition:

    x = self.random() if c else 0.5   ->    __asked1 = not not c
                                            __drawn1 = 0.0
                                            if __asked1: __drawn1 = ...
                                            x = __drawn1 if __asked1 else 0.5

`a and b` with a draw in b is `b if a else a`; the condition of a `while` with one is tested inside an endless loop.
A draw for each element of a reduction has no such form.
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
from sigps.native.trees import copied, walk

__all__ = ["DRAW_FUNCTIONS", "number_draws"]

DRAW_FUNCTIONS = {f"__{name}": getattr(draws, name) for name in DRAWS if name != "random_edge"}
"""What generated functions call, by name."""

_REPEATED = (ast.GeneratorExp, ast.ListComp, ast.Lambda)


def number_draws(body: list[ast.stmt], subject: Subject) -> list[ast.stmt]:
    """Return compute()'s body with its draws numbered; as it is where there are none.

    Raises:
        CompileError: If a draw stands inside a reduction.
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
        if isinstance(statement, ast.While):
            self._test(statement)
            return
        for name, value in ast.iter_fields(statement):
            if name in ("body", "orelse"):
                continue
            if isinstance(value, ast.expr):
                setattr(statement, name, self.visit(value))
            elif isinstance(value, list):
                setattr(statement, name, [self.visit(v) if isinstance(v, ast.expr) else v for v in value])

    def _test(self, loop: ast.While) -> None:
        """Replace the draws in a loop's condition, which is tested in its body then."""
        test = self.visit(loop.test)
        drawn, self._before = self._before, []
        if not drawn:
            loop.test = test
            return
        if loop.orelse:
            reject(loop, "a loop that draws in its condition has no 'else' here: draw on a line of its own")
        leave = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
        loop.test = ast.Constant(True)
        loop.body = [*drawn, *at([leave], loop), *loop.body]
        at([loop.test], loop)

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _REPEATED):
            _refuse_draws(list(ast.iter_child_nodes(node)))
            return node
        return super().visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        first, *others = node.values
        if not any(map(_is_draw, _all(others))):
            return self.generic_visit(node)
        first = self.visit(first)
        rest = others[0] if len(others) == 1 else at([ast.BoolOp(node.op, others)], node)[0]
        ways = (rest, copied(first)) if isinstance(node.op, ast.And) else (copied(first), rest)
        chosen = at([ast.IfExp(first, *ways)], node)[0]
        return self._choice(chosen)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        node.test = self.visit(node.test)
        return self._choice(node)

    def _choice(self, node: ast.IfExp) -> ast.IfExp:
        """Replace the draws in both ways of a choice, whose condition has none: each is drawn where it is chosen."""
        outer, ways = self._before, []
        for name in ("body", "orelse"):
            self._before = []
            setattr(node, name, self.visit(getattr(node, name)))
            ways.append(self._before)
        self._before = outer
        if not any(ways):
            return node
        self._count += 1
        asked = f"__asked{self._count}"
        begin = [n for way in ways for s in way if isinstance(s, ast.Assign) and (n := _begun(s)) is not None]
        test = statements(f"{asked} = not not TEST")
        assert isinstance(test[0], ast.Assign)
        test[0].value.operand.operand = node.test  # type: ignore[attr-defined]
        # What a choice inside begins with is set before both ways.
        drawn = ast.If(ast.Name(asked, ast.Load()), ways[0] or [ast.Pass()], ways[1])
        self._before += at([*test, *begin, drawn], node)
        node.test = ast.copy_location(ast.Name(asked, ast.Load()), node.test)
        return node

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


def _begun(assignment: ast.Assign) -> ast.stmt | None:
    """Return what a variable of a draw or a choice is before; None of another assignment."""
    (target,) = assignment.targets
    assert isinstance(target, ast.Name)
    if target.id.startswith("__asked"):
        return statements(f"{target.id} = False")[0]
    if not target.id.startswith("__drawn"):
        return None
    is_real = "__random(" in ast.unparse(assignment.value)
    return statements(f"{target.id} = {0.0 if is_real else 0}")[0]


def _refuse_draws(nodes: Sequence[ast.AST]) -> None:
    for node in _all(nodes):
        if _is_draw(node):
            reject(
                node,
                "a reduction draws no random number for each of its elements: write a loop, and draw inside it",
            )


def _all(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from walk(node)
