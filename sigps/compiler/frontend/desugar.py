"""Python's shorter forms as the longer ones that the other passes know.

match x: case 1 | 2: a  case y if y > 3: b  case _: c   ->  if, elif, else
while (y := f(x)) > 0: ...                              ->  while True: y = f(x); if not y > 0: break; ...
for i, m in enumerate(source, 1): ...                   ->  a counter beside the loop
for a, b in zip((1, 2), range(2)): ...                  ->  a loop over positions
sum(a * b for a, b in zip(u, v))                        ->  sum(u[i] * v[i] for i in range(...))
for ... else                                            ->  a variable that says whether the loop was left
self.send(edge, self.best(x))                           ->  a variable that holds the message
x.bit_count(), x.bit_length()                           ->  functions
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sigps.compiler.frontend.syntax import at, expression, is_self, statements, substitute
from sigps.native.source import reject
from sigps.native.trees import copied, walk

__all__ = ["BIT_FUNCTIONS", "OWN", "desugar", "hold_messages"]

OWN = "__own_"
"""What the names of variables begin with that this pass adds."""


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
    written.body = _Desugar(tree.args.args[0].arg if tree.args.args else "").block(written.body)
    for node in walk(written):
        node.sigps_file = tree.sigps_file  # type: ignore[attr-defined]
    return written


def hold_messages(tree: ast.FunctionDef, is_returned: Callable[[ast.expr], bool]) -> None:
    """Assign messages that functions return to variables before they are sent.

    Not where something else in the line is called, which would then be computed after the message.

    Args:
        tree: The function; changed.
        is_returned: Whether a message is such a one.
    """
    _Holds(is_returned).visit(tree)


_SENDS = ("send", "send_to", "send_to_neighbors")


class _Holds(ast.NodeTransformer):
    def __init__(self, is_returned: Callable[[ast.expr], bool]) -> None:
        self._is_returned, self._count = is_returned, 0

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | list[ast.stmt]:
        call = node.value
        if not (isinstance(call, ast.Call) and is_self(call.func) and call.func.attr in _SENDS and call.args):
            return node
        *others, message = call.args
        calls = [n for other in others for n in walk(other) if isinstance(n, ast.Call)]
        if call.keywords or calls or not self._is_returned(message):
            return node
        self._count += 1
        name = f"{OWN}message_{self._count}"
        call.args = [*others, ast.copy_location(ast.Name(name, ast.Load()), message)]
        return [*at([ast.Assign([ast.Name(name, ast.Store())], message)], node), node]


_BITS = ("bit_count", "bit_length")
_DRAWS = ("random", "random_int", "random_edge", "choose")


class _Desugar:
    """Rewrites statements.

    Args:
        vertex: What the function calls the vertex.
    """

    def __init__(self, vertex: str) -> None:
        self._vertex, self._count = vertex, 0

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
        self._check_order(node)
        for name, value in ast.iter_fields(node):
            if name not in ("body", "orelse"):
                setattr(node, name, _Expressions(before).of(value))
        return before

    def _check_order(self, node: ast.AST) -> None:
        """Refuse a `:=` that changes, or depends on, what is computed before it in its line: it is taken out in front.

        `x + (x := 1)`, `self.random() - (x := self.random())`, `self.n[(x := 1)] = x`.
        """
        parts = list(_in_order(node))
        if not any(isinstance(part, ast.NamedExpr) for part in parts):
            return
        read: set[str] = set()
        reads_state = has_called = has_drawn = False
        for part in parts:
            if isinstance(part, ast.Name):
                read.add(part.id)
            elif isinstance(part, ast.Attribute):
                reads_state |= self._is_of_vertex(part)
            elif isinstance(part, ast.Call):
                has_called |= self._is_of_vertex(part.func) and not _is_draw(part)
                has_drawn |= _is_draw(part)
            else:
                inside = list(walk(part.value))
                calls = [n for n in inside if isinstance(n, ast.Call) and self._is_of_vertex(n.func)]
                draws = any(map(_is_draw, calls))
                changes = not all(map(_is_draw, calls))
                depends = any(map(self._is_of_vertex, inside))
                if (
                    part.target.id in read
                    or (changes and reads_state)
                    or (depends and has_called)
                    or (draws and has_drawn)
                ):
                    reject(
                        part,
                        "':=' stands behind what it may change, or what may change it, in this line: assign on a line "
                        "of its own",
                    )
                self._check_order(part.value)

    def _is_of_vertex(self, node: ast.AST) -> bool:
        """Whether this is a state, a method or another attribute of the vertex."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
            if isinstance(node, ast.Name):
                return node.id == self._vertex
        return False

    # Statements.

    def _while(self, node: ast.While) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        self._check_order(node.test)
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
        self._check_order(source)
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
        self._check_order(node.subject)
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
        for part in _perhaps_reached(node):
            for child in _named(part):
                reject(child, "':=' stands where it is always reached: assign on a line of its own")
        return super().visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.generic_visit(node)
        self._before += at([ast.Assign([node.target], node.value)], node)
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        self.generic_visit(node)
        return _by_position(node) or node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _BITS and not node.args:
            name = ast.copy_location(ast.Name(f"{OWN}{node.func.attr}", ast.Load()), node)
            return ast.copy_location(ast.Call(name, [node.func.value], []), node)
        return node


def _by_position(node: ast.GeneratorExp) -> ast.GeneratorExp | None:
    """Write a generator over zip() or enumerate() of variables and fields as one over positions; None of others."""
    loop, number = node.generators[0], f"{OWN}position"
    called = getattr(getattr(loop.iter, "func", None), "id", "")
    names = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    if len(node.generators) > 1 or called not in ("zip", "enumerate") or loop.iter.keywords:  # type: ignore[attr-defined]
        return None
    sources = list(loop.iter.args)  # type: ignore[attr-defined]
    items: dict[str, ast.expr] = {}
    if called == "enumerate" and len(names) == 2 and len(sources) == 1 and isinstance(names[0], ast.Name):
        items[names[0].id] = ast.Name(number, ast.Load())
        names = names[1:]
    if len(names) != len(sources) or not names or not all(isinstance(name, ast.Name) for name in names):
        return None
    if not all(isinstance(s, (ast.Name, ast.Attribute)) and _is_plain(s) for s in sources):
        return None
    for name, source in zip(names, sources, strict=True):
        items[name.id] = expression(f"__source[{number}]", __source=copied(source))  # type: ignore[attr-defined]
    lengths = [expression("len(__source)", __source=copied(source)) for source in sources]
    size = lengths[0] if len(lengths) == 1 else ast.Call(ast.Name("min", ast.Load()), lengths, [])
    iterated = ast.Call(ast.Name("range", ast.Load()), [size], [])
    ifs = [substitute(test, items) for test in loop.ifs]
    over = ast.comprehension(ast.Name(number, ast.Store()), iterated, ifs, 0)
    return ast.copy_location(ast.GeneratorExp(substitute(node.elt, items), [over]), node)


def _is_draw(call: ast.Call) -> bool:
    """Whether a call takes the next random number; it changes no state."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _DRAWS


def _perhaps_reached(node: ast.AST) -> Sequence[ast.AST]:
    """Return the parts of an expression that are not always computed where it is."""
    if isinstance(node, ast.BoolOp):
        return node.values[1:]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Compare):
        return node.comparators[1:]
    return [node] if isinstance(node, (ast.GeneratorExp, ast.Lambda, ast.ListComp)) else []


def _in_order(node: ast.AST) -> Iterator[ast.Name | ast.Attribute | ast.Call | ast.NamedExpr]:
    """Yield what a statement's own expressions read, call and name, in the order in which Python computes them.

    Of a `:=` itself and those inside it, not what its value reads: that is taken out with it.
    """
    if isinstance(node, ast.NamedExpr):
        yield from (inner for inner in _in_order(node.value) if isinstance(inner, ast.NamedExpr))
        yield node
        return
    fields: list[Any] = [value for name, value in ast.iter_fields(node) if name not in ("body", "orelse")]
    if isinstance(node, ast.IfExp):
        fields = [node.test, node.body, node.orelse]
    elif isinstance(node, ast.Assign):
        fields = [node.value, *node.targets]
    for value in fields:
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield from _in_order(part)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        yield node


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
    """Tell whether zip() may run over something by position: a tuple, a variable, a field, or a vector computed."""
    if isinstance(values, ast.Attribute):
        return values.attr != "out_edges"
    if isinstance(values, ast.IfExp):
        return _is_plain(values.body) and _is_plain(values.orelse)
    return (
        isinstance(values, (ast.Name, ast.Tuple, ast.BinOp, ast.UnaryOp))
        and getattr(values, "id", "") != "messages"
    )
