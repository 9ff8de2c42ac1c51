"""Python's shorter forms as the longer ones that the other passes know.

match x: case 1 | 2: a  case y if y > 3: b  case _: c   ->  if, elif, else
while (y := f(x)) > 0: ...                              ->  while True: y = f(x); if not y > 0: break; ...
for i, m in enumerate(source, 1): ...                   ->  a counter beside the loop
for a, b in zip((1, 2), range(2)): ...                  ->  a loop over positions
for ... else                                            ->  a variable that says whether the loop was left
x.bit_count(), x.bit_length()                           ->  functions
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from sigps.compiler.frontend.syntax import at, expression, statements
from sigps.native.source import reject
from sigps.native.trees import copied, walk

__all__ = ["BIT_FUNCTIONS", "OWN", "desugar"]

OWN = "__own_"
"""What the names of variables begin with that this pass adds."""

_CONDITIONAL = (ast.BoolOp, ast.IfExp, ast.GeneratorExp, ast.Lambda, ast.ListComp)


def bit_count(x: int) -> int:
    """Return how many bits of |x| are set."""
    left, count = abs(x), 0
    while left != 0:
        left = left & (left - 1)
        count += 1
    return count


def bit_length(x: int) -> int:
    """Return how many bits |x| needs, without leading zeros."""
    left, count = abs(x), 0
    while left != 0:
        left = left >> 1
        count += 1
    return count


BIT_FUNCTIONS = {f"{OWN}bit_count": bit_count, f"{OWN}bit_length": bit_length}
"""Methods of whole numbers as functions of generated code, by name."""


def desugar(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function without the short forms; a new tree where it has any.

    Raises:
        CompileError: If one stands where it has no longer form.
    """
    short = (ast.Match, ast.NamedExpr)
    calls = ("enumerate", "zip")
    if not any(
        isinstance(n, short)
        or (isinstance(n, (ast.For, ast.While)) and n.orelse)
        or (
            isinstance(n, ast.Call) and getattr(n.func, "id", getattr(n.func, "attr", "")) in (*calls, *_BITS)
        )
        for n in walk(tree)
    ):
        return tree
    written = copied(tree)
    written.body = _Desugar().block(written.body)
    for node in walk(written):
        node.sigps_file = tree.sigps_file  # type: ignore[attr-defined]
    return written


_BITS = ("bit_count", "bit_length")


class _Desugar:
    def __init__(self) -> None:
        self._count = 0

    def _name(self) -> str:
        self._count += 1
        return f"{OWN}{self._count}"

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            found += at(self._statement(statement), statement)
        return found

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Match):
            return self._match(node)
        if isinstance(node, ast.While):
            return self._while(node)
        if isinstance(node, ast.For):
            return self._for(node)
        before = self._hoisted(node)
        for branch in ("body", "orelse"):
            if isinstance(getattr(node, branch, None), list):
                setattr(node, branch, self.block(getattr(node, branch)))
        return [*before, node]

    # Expressions.

    def _hoisted(self, node: ast.stmt) -> list[ast.stmt]:
        """Take the named expressions out of a statement's own expressions; return the assignments before it."""
        before: list[ast.stmt] = []
        for name, value in ast.iter_fields(node):
            if name not in ("body", "orelse"):
                setattr(node, name, _Expressions(before).of(value))
        return before

    # Statements.

    def _while(self, node: ast.While) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        test = _Expressions(before).of(node.test)
        body = self.block(node.body)
        if before:
            leave = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
            body, test = [*before, leave, *body], ast.Constant(True)
            if node.orelse:
                reject(
                    node, "a loop with ':=' in its condition has no 'else' here: assign on a line of its own"
                )
        node.test, node.body = test, body
        return self._without_else(node)

    def _for(self, node: ast.For) -> list[ast.stmt]:
        source = node.iter
        called = source.func.id if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) else ""
        if called == "enumerate":
            return self._enumerate(node, source)  # type: ignore[arg-type]
        if called == "zip":
            return self._zip(node, source)  # type: ignore[arg-type]
        before: list[ast.stmt] = []
        node.iter = _Expressions(before).of(source)
        node.body = self.block(node.body)
        return [*before, *self._without_else(node)]

    def _enumerate(self, node: ast.For, call: ast.Call) -> list[ast.stmt]:
        target = node.target
        if (
            not isinstance(target, ast.Tuple)
            or len(target.elts) != 2
            or not 1 <= len(call.args) <= 2
            or call.keywords
        ):
            reject(
                node, "enumerate() is written 'for i, x in enumerate(values)' or 'enumerate(values, start)'"
            )
        start = call.args[1] if len(call.args) == 2 else ast.Constant(0)
        counter = self._name()
        number, item = target.elts
        node.iter, node.target = call.args[0], item
        count = [
            ast.Assign([number], ast.Name(counter, ast.Load())),
            *statements(f"{counter} = {counter} + 1"),
        ]
        node.body = [*at(count, node), *node.body]
        return [ast.Assign([ast.Name(counter, ast.Store())], start), *self._for(node)]

    def _zip(self, node: ast.For, call: ast.Call) -> list[ast.stmt]:
        target = node.target
        if (
            not isinstance(target, ast.Tuple)
            or len(target.elts) != len(call.args)
            or not call.args
            or call.keywords
        ):
            reject(node, "zip() is written 'for a, b in zip(ones, others)', with a name for each")
        at_, before, takes, lengths = self._name(), [], [], []
        for name, values in zip(target.elts, call.args, strict=True):
            if (
                isinstance(values, ast.Call)
                and isinstance(values.func, ast.Name)
                and values.func.id == "range"
            ):
                if len(values.args) != 1:
                    reject(
                        values,
                        "zip() takes tuples, vectors and range(n) here",
                    )
                lengths.append(values.args[0])
                item: ast.expr = ast.Name(at_, ast.Load())
            elif _is_plain(values):
                kept = self._name()
                before.append(ast.Assign([ast.Name(kept, ast.Store())], values))
                lengths.append(expression(f"len({kept})"))
                item = expression(f"{kept}[{at_}]")
            else:
                reject(
                    values,
                    "zip() takes tuples, vectors and range(n) here",
                )
            takes.append(ast.Assign([name], item))
        size = lengths[0]
        if len(lengths) > 1:
            size = ast.Call(ast.Name("min", ast.Load()), lengths, [])
        node.target = ast.Name(at_, ast.Store())
        node.iter = ast.Call(ast.Name("range", ast.Load()), [size], [])
        node.body = [*at(takes, node), *node.body]
        return [*before, *self._for(node)]

    def _without_else(self, node: ast.For | ast.While) -> list[ast.stmt]:
        if not node.orelse:
            return [node]
        left, orelse = self._name(), self.block(node.orelse)
        node.orelse = []
        node.body = _noting_breaks(node.body, left)
        after = ast.If(ast.UnaryOp(ast.Not(), ast.Name(left, ast.Load())), orelse, [])
        return [*statements(f"{left} = False"), node, after]

    # Match.

    def _match(self, node: ast.Match) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        subject = _Expressions(before).of(node.subject)
        parts = list(subject.elts) if isinstance(subject, ast.Tuple) else [subject]
        names = []
        for part in parts:
            names.append(self._name())
            before.append(ast.Assign([ast.Name(names[-1], ast.Store())], part))
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            tests, bound = self._pattern(case.pattern, names)
            if case.guard is not None:
                tests.append(_Renamed(bound).visit(copied(case.guard)))
            binding: list[ast.stmt] = [
                ast.Assign([ast.Name(name, ast.Store())], ast.Name(value, ast.Load()))
                for name, value in bound.items()
            ]
            body = [*binding, *self.block(case.body)]
            if not tests:
                chain = body
                continue
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            chain = [ast.If(test, body, chain)]
        return [*before, *chain]

    def _pattern(self, pattern: ast.pattern, names: list[str]) -> tuple[list[ast.expr], dict[str, str]]:
        """Return the conditions under which a pattern fits, and what it binds."""
        if isinstance(pattern, ast.MatchSequence) and len(names) > 1 and len(pattern.patterns) == len(names):
            tests: list[ast.expr] = []
            bound: dict[str, str] = {}
            for inner, name in zip(pattern.patterns, names, strict=True):
                more, binds = self._pattern(inner, [name])
                tests, bound = [*tests, *more], {**bound, **binds}
            return tests, bound
        if isinstance(pattern, ast.MatchAs) and pattern.name is None:
            return [], {}
        if len(names) == 1:
            value = ast.Name(names[0], ast.Load())
            if isinstance(pattern, ast.MatchAs):
                assert pattern.name is not None
                tests, bound = self._pattern(pattern.pattern, names) if pattern.pattern else ([], {})
                return tests, {**bound, pattern.name: names[0]}
            if isinstance(pattern, ast.MatchValue):
                return [ast.Compare(value, [ast.Eq()], [pattern.value])], {}
            if isinstance(pattern, ast.MatchSingleton) and pattern.value is not None:
                return [ast.Compare(value, [ast.Eq()], [ast.Constant(pattern.value)])], {}
            if isinstance(pattern, ast.MatchOr):
                each = [self._pattern(inner, names) for inner in pattern.patterns]
                if all(tests and not bound for tests, bound in each):
                    return [ast.BoolOp(ast.Or(), [tests[0] for tests, _ in each])], {}
        reject(
            pattern,
            "'match' takes numbers, names, '_', '|' of numbers, and for a tuple written out one of these each: "
            "use 'if' here",
        )


class _Expressions(ast.NodeTransformer):
    """Takes named expressions out, into assignments before."""

    def __init__(self, before: list[ast.stmt]) -> None:
        self._before = before

    def of(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.of(item) for item in value]
        return self.visit(value) if isinstance(value, ast.expr) else value

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _CONDITIONAL):
            for child in _named(node):
                reject(child, "':=' stands where it is always reached: assign on a line of its own")
        return super().visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.generic_visit(node)
        self._before += at([ast.Assign([node.target], node.value)], node)
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _BITS and not node.args:
            name = ast.copy_location(ast.Name(f"{OWN}{node.func.attr}", ast.Load()), node)
            return ast.copy_location(ast.Call(name, [node.func.value], []), node)
        return node


def _named(node: ast.AST) -> Iterator[ast.AST]:
    return (child for child in walk(node) if isinstance(child, ast.NamedExpr))


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self._names.get(node.id, node.id), node.ctx), node)


def _noting_breaks(body: Sequence[ast.stmt], left: str) -> list[ast.stmt]:
    """Set a variable before each `break` of a loop; loops inside have their own."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Break):
            found += at(statements(f"{left} = True"), statement)
        elif isinstance(statement, ast.If):
            statement.body = _noting_breaks(statement.body, left)
            statement.orelse = _noting_breaks(statement.orelse, left)
        found.append(statement)
    return found


def _is_plain(values: ast.expr) -> bool:
    """Tell whether zip() may run over something by position: a tuple, a variable, or a field."""
    if isinstance(values, ast.Attribute):
        return values.attr != "out_edges"
    return isinstance(values, (ast.Name, ast.Tuple)) and getattr(values, "id", "") != "messages"
