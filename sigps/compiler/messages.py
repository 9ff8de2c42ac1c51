"""From the ways compute() reads its messages to slots that combine them, or to lists.

Where every use of `messages` is a reduction of something that depends only on the message and the run, the
reductions become slots: one value each, combined on the way. Two folds of one stream make two slots.

    best = min(messages, default=inf)                slot 0: min of m
    for m in messages: total += m * self.damping     slot 1: sum of m * damping

Any other use keeps the messages as a list. With an explicit combiner there is one message at most.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sigps.compiler.fields import LowerFields
from sigps.compiler.program import Consumption, Slot
from sigps.compiler.source import reject
from sigps.compiler.subject import Subject, is_self
from sigps.compiler.syntax import (
    assign,
    assigned_names,
    at,
    cast,
    expression,
    function,
    loaded_names,
    statements,
    substitute,
)
from sigps.vertex import extreme

__all__ = ["Messages", "consume_messages"]

_REDUCTIONS = ("sum", "min", "max", "any", "all", "len")


@dataclass
class Messages:
    """How a program reads messages, and compute()'s body with the reading replaced.

    Attributes:
        lift: One expression an inbox field, over `__m` and the run's names.
        functions: Reductions of lists, one function each.
        methods: Pure methods that `lift` and `functions` call.
    """

    consumption: Consumption
    body: list[ast.stmt]
    slots: list[Slot] = field(default_factory=list)
    lift: list[ast.expr] = field(default_factory=list)
    functions: list[ast.FunctionDef] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)
    obstacle: str = ""


def consume_messages(body: list[ast.stmt], subject: Subject, precision: Any) -> Messages:
    """Derive how a program reads its messages."""
    if not any(isinstance(n, ast.Name) and n.id == "messages" for s in body for n in ast.walk(s)):
        return Messages(Consumption.NONE, body)
    if not subject.message:
        reject(body[0], f"{subject.name} reads messages, but declares none: class {subject.name}(Vertex, message=float)")
    if subject.cls.declaration.combiner is not None:
        reader: _Reader = _Single(subject, precision, body)
        return reader.read(body)
    try:
        return _Combined(subject, precision, body).read(copy.deepcopy(body))
    except _NotCombinable as reason:
        messages = _Listed(subject, precision, body).read(body)
        messages.obstacle = str(reason)
        return messages


class _NotCombinable(Exception):
    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(f"line {getattr(node, 'lineno', '?')}: {reason}")


@dataclass
class _Reduction:
    """One call of sum, min, max, any, all or len over the messages (or over edges, in lists)."""

    op: str
    variable: ast.expr
    element: ast.expr
    conditions: list[ast.expr]
    default: ast.expr | None
    node: ast.Call


class _Reader(ast.NodeTransformer):
    """Walks compute() and hands each use of `messages` to the strategy."""

    consumption: Consumption

    def __init__(self, subject: Subject, precision: Any, body: Sequence[ast.stmt]) -> None:
        self.subject = subject
        self.dtypes = [f.dtype(precision) for f in subject.message]
        self.local_names = assigned_names(body) | {"messages"}
        self.result = Messages(self.consumption, [])

    def read(self, body: list[ast.stmt]) -> Messages:
        block = ast.Module(body=body, type_ignores=[])
        self.visit(block)
        self.result.body = block.body
        self.finish()
        return self.result

    def visit_Call(self, node: ast.Call) -> Any:  # noqa: N802
        reduction = self._reduction(node)
        if reduction is None:
            return self.generic_visit(node)
        if reduction.op in ("min", "max") and reduction.default is None:
            reject(node, f"{reduction.op}() of messages needs default=...: a vertex may have none")
        if reduction.default is not None:
            reduction.default = self.visit(reduction.default)
        return at([self.reduce(reduction)], node)[0]

    def visit_For(self, node: ast.For) -> Any:  # noqa: N802
        if isinstance(node.iter, ast.Name) and node.iter.id == "messages":
            code = self.loop(node)
            return at(code, node)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:  # noqa: N802
        node.test = self._truth(node.test)
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:  # noqa: N802
        node.test = self._truth(node.test)
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: N802
        if isinstance(node.op, ast.Not):
            node.operand = self._truth(node.operand)
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802
        node.values = [self._truth(v) for v in node.values]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:  # noqa: N802
        if node.id == "messages":
            reject(
                node,
                "messages can be reduced (sum, min, max, any, all, len), tested, or looped over in compute(); "
                "not stored, indexed or handed on",
            )
        return node

    def reduce(self, reduction: _Reduction) -> ast.expr:
        raise NotImplementedError

    def loop(self, node: ast.For) -> list[ast.stmt]:
        raise NotImplementedError

    def truth(self) -> ast.expr:
        raise NotImplementedError

    def finish(self) -> None:
        return

    def _truth(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name) and node.id == "messages":
            return at([self.truth()], node)[0]
        return node

    def _reduction(self, node: ast.Call) -> _Reduction | None:
        if not isinstance(node.func, ast.Name) or node.func.id not in _REDUCTIONS or not node.args:
            return None
        first = node.args[0]
        op = node.func.id
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        if op == "sum" and len(node.args) == 2:
            default = node.args[1]
        if any(k.arg == "key" for k in node.keywords):
            reject(node, f"{op}(..., key=) cannot be compiled: send a NamedTuple whose first field is the key")
        if isinstance(first, ast.Name) and first.id == "messages":
            variable: ast.expr = ast.Name("__each", ast.Store())
            return _Reduction(op, variable, ast.Name("__each", ast.Load()), [], default, node)
        if isinstance(first, ast.GeneratorExp):
            source = first.generators[0]
            if len(first.generators) != 1 or source.is_async:
                reject(node, "a reduction has one 'for' inside it")
            if self.reads(source.iter):
                return _Reduction(op, source.target, first.elt, source.ifs, default, node)
            if _is_out_edges(source.iter):
                reject(node, f"{op}() over self.out_edges cannot be compiled: write a loop, 'for edge in self.out_edges:'")
            reject(node, f"{op}() can reduce messages; this runs over something else")
        return None

    def reads(self, source: ast.expr) -> bool:
        return isinstance(source, ast.Name) and source.id == "messages"

    def over_message(self, node: ast.expr, variable: ast.expr, message: str = "__m") -> ast.expr:
        """Return an expression with the loop's variables replaced by the message's."""
        if isinstance(variable, ast.Name):
            return substitute(node, variable.id, ast.Name(message, ast.Load()))
        assert isinstance(variable, ast.Tuple)
        for target, part in zip(variable.elts, self.subject.message, strict=True):
            assert isinstance(target, ast.Name)
            node = substitute(node, target.id, expression(f"{message}.{part.name}"))
        return node

    def lowered(self, node: ast.expr) -> ast.expr:
        lower = LowerFields(self.subject)
        result: ast.expr = lower.visit(copy.deepcopy(node))
        self.result.methods |= lower.methods
        return result


class _Combined(_Reader):
    """Every use is a reduction: slots."""

    consumption = Consumption.COMBINED

    def __init__(self, subject: Subject, precision: Any, body: Sequence[ast.stmt]) -> None:
        super().__init__(subject, precision, body)
        self._known: dict[str, int] = {}

    def reduce(self, reduction: _Reduction) -> ast.expr:
        element = self.over_message(reduction.element, reduction.variable)
        conditions = [self.over_message(c, reduction.variable) for c in reduction.conditions]
        op, node = reduction.op, reduction.node
        value = self._slot("count" if op == "len" else op, element, conditions, node)
        if op == "sum" and reduction.default is not None:
            return ast.BinOp(reduction.default, ast.Add(), value)
        if op in ("min", "max"):
            has = expression("has")
            if conditions:
                has = self._slot("any", ast.Constant(True), conditions, node)
            assert reduction.default is not None
            return ast.IfExp(has, value, reduction.default)
        return value

    def loop(self, node: ast.For) -> list[ast.stmt]:
        code: list[ast.stmt] = []
        for statement in node.body:
            code += self._fold(statement, node, [])
        return code

    def truth(self) -> ast.expr:
        return expression("has")

    def _fold(self, statement: ast.stmt, loop: ast.For, conditions: list[ast.expr]) -> list[ast.stmt]:
        """Turn one update of an accumulator inside a loop over messages into an update after it."""
        if isinstance(statement, ast.If) and not statement.orelse:
            extremum = self._extremum(statement)
            if extremum is not None:
                return self._accumulate(*extremum, loop, conditions, statement)
            inner = [*conditions, statement.test]
            return [s for child in statement.body for s in self._fold(child, loop, inner)]
        update = _update(statement)
        if update is None:
            raise _NotCombinable(statement, "the loop over messages does more than fold them")
        return self._accumulate(*update, loop, conditions, statement)

    def _extremum(self, node: ast.If) -> tuple[str, ast.expr, ast.expr] | None:
        """Match `if x < best: best = x` and its mirror images."""
        test = node.test
        if len(node.body) != 1 or not isinstance(node.body[0], ast.Assign) or not isinstance(test, ast.Compare):
            return None
        target, value = node.body[0].targets[0], node.body[0].value
        sides = [ast.dump(_as_load(test.left)), ast.dump(_as_load(test.comparators[0]))]
        less = isinstance(test.ops[0], (ast.Lt, ast.LtE))
        if len(test.ops) != 1 or not (less or isinstance(test.ops[0], (ast.Gt, ast.GtE))):
            return None
        best, new = ast.dump(_as_load(target)), ast.dump(value)
        if sides == [new, best]:
            return ("min" if less else "max"), _as_load(target), value
        if sides == [best, new]:
            return ("max" if less else "min"), _as_load(target), value
        return None

    def _accumulate(
        self,
        op: str,
        target: ast.expr,
        element: ast.expr,
        loop: ast.For,
        conditions: list[ast.expr],
        node: ast.stmt,
    ) -> list[ast.stmt]:
        element = self.over_message(element, loop.target)
        over = [self.over_message(c, loop.target) for c in conditions]
        value = self._slot(op, element, over, node)
        if is_self(target) and target.attr in self.subject.aggregators:  # type: ignore[attr-defined]
            if op != "sum" or self.subject.aggregators[target.attr].kind != "sum":  # type: ignore[attr-defined]
                raise _NotCombinable(node, "the loop over messages contributes each one to an aggregator")
            return [ast.AugAssign(_as_store(target), ast.Add(), value)]  # type: ignore[arg-type]
        store = _as_store(target)
        new: ast.expr
        if op == "sum":
            new = ast.BinOp(target, ast.Add(), value)
        elif op in ("min", "max"):
            new = ast.IfExp(
                ast.BoolOp(ast.And(), [expression("has"), ast.Compare(value, [ast.Lt() if op == "min" else ast.Gt()], [target])]),
                value,
                target,
            )
        else:
            new = ast.BoolOp(ast.Or() if op == "any" else ast.And(), [target, value])
        return [ast.Assign([store], new)]

    def _slot(self, op: str, element: ast.expr, conditions: list[ast.expr], node: ast.AST) -> ast.expr:
        for part in (element, *conditions):
            self._require_uniform(part, node)
        text = "1" if op == "count" else ast.unparse(element).replace("__m", "m")
        key = f"{op} {ast.dump(element) if op != 'count' else ''} {[ast.dump(c) for c in conditions]}"
        is_whole = self.subject.message_type is not None and ast.dump(element) == ast.dump(ast.Name("__m", ast.Load()))
        if key not in self._known:
            self._known[key] = len(self.result.lift)
            parts = self._parts(op, element, conditions, is_whole, node)
            self.result.lift += [self.lowered(p) for p in parts]
            condition = "".join(f" if {ast.unparse(c)}" for c in conditions).replace("__m", "m")
            names = tuple(f"__g{self._known[key] + i}" for i in range(len(parts)))
            self.result.slots.append(Slot("sum" if op == "count" else op, names, text + condition))
        first = self._known[key]
        if is_whole and op in ("min", "max"):
            fields = ", ".join(f"__g{first + i}" for i in range(len(self.dtypes)))
            return expression(f"__Message({fields})")
        return ast.Name(f"__g{first}", ast.Load())

    def _parts(
        self, op: str, element: ast.expr, conditions: list[ast.expr], is_whole: bool, node: ast.AST
    ) -> list[ast.expr]:
        if op == "count":
            parts, identities = [expression("__np.int64(1)")], [expression("__np.int64(0)")]
        elif op == "sum":
            parts, identities = [_number(element, self._dtype(element))], [ast.Constant(0)]
        elif op in ("any", "all"):
            parts, identities = [ast.Call(ast.Name("bool", ast.Load()), [element], [])], [ast.Constant(op == "all")]
        else:
            parts = [element]
            if is_whole:
                parts = [expression(f"__m.{f.name}") for f in self.subject.message]
            identities = []
            if conditions:
                dtypes = self.dtypes if is_whole else [self._dtype(element)]
                if any(d is None for d in dtypes):
                    raise _NotCombinable(node, f"a filtered {op}() of an expression has no known neutral value")
                identities = [cast(d, ast.Constant(extreme(op, d))) for d in dtypes if d is not None]
        if not conditions:
            return parts
        test = conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), conditions)
        return [ast.IfExp(test, p, i) for p, i in zip(parts, identities, strict=True)]

    def _dtype(self, element: ast.expr) -> Any:
        """Return the type of an element that is a message or a field of one; None for an expression."""
        if isinstance(element, ast.Name) and element.id == "__m" and self.subject.message_type is None:
            return self.dtypes[0]
        if isinstance(element, ast.Attribute) and isinstance(element.value, ast.Name) and element.value.id == "__m":
            names = [f.name for f in self.subject.message]
            if element.attr not in names:
                reject(element, f"a message has no field {element.attr!r}; it has: {', '.join(names)}")
            return self.dtypes[names.index(element.attr)]
        return None

    def _require_uniform(self, part: ast.expr, node: ast.AST) -> None:
        for child in ast.walk(part):
            if isinstance(child, ast.Name) and child.id in self.local_names:
                raise _NotCombinable(node, f"what is reduced depends on {child.id!r}, which belongs to one vertex")
            if is_self(child):
                name = child.attr  # type: ignore[attr-defined]
                reads = self.subject.method_reads(name) if self.subject.method(name) else {name}
                if any(self.subject.reach(r) != "uniform" for r in reads):
                    raise _NotCombinable(node, f"what is reduced depends on self.{name}, which belongs to one vertex")


class _Single(_Reader):
    """An explicit combiner leaves at most one message, `__m`."""

    consumption = Consumption.SINGLE

    def reduce(self, reduction: _Reduction) -> ast.expr:
        element = self.over_message(reduction.element, reduction.variable)
        has: ast.expr = expression("has")
        if reduction.conditions:
            conditions = [self.over_message(c, reduction.variable) for c in reduction.conditions]
            has = ast.BoolOp(ast.And(), [has, *conditions])
        op, default = reduction.op, reduction.default
        if op == "len":
            return ast.IfExp(has, ast.Constant(1), ast.Constant(0))
        if op == "any":
            return ast.BoolOp(ast.And(), [has, element])
        if op == "all":
            return ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), has), element])
        if op == "sum":
            value = ast.IfExp(has, element, ast.Constant(0))
            return value if default is None else ast.BinOp(default, ast.Add(), value)
        assert default is not None
        return ast.IfExp(has, element, default)

    def loop(self, node: ast.For) -> list[ast.stmt]:
        self.generic_visit_body(node)
        node.body = [*_bind(node.target, "__m", self.subject), *node.body]
        node.target = ast.Name("__once", ast.Store())
        node.iter = expression("range(1 if has else 0)")
        return [node]

    def generic_visit_body(self, node: ast.For) -> None:
        block = ast.Module(body=node.body, type_ignores=[])
        self.generic_visit(block)
        node.body = block.body

    def truth(self) -> ast.expr:
        return expression("has")

    def finish(self) -> None:
        names = [f.name for f in self.subject.message]
        scalar = self.subject.message_type is None
        self.result.lift = [expression("__m" if scalar else f"__m.{n}") for n in names]
        combiner = self.subject.cls.declaration.combiner
        op = {min: "min", max: "max", sum: "sum"}.get(combiner, "user")  # type: ignore[call-overload]
        fields = tuple(f"__g{i}" for i in range(len(names)))
        self.result.slots = [Slot(op, fields, "m")]


class _Listed(_Single):
    """The messages stay a list: positions `__begin` to `__end` of the arrays `__box0`, ..."""

    consumption = Consumption.LISTED

    def reduce(self, reduction: _Reduction) -> ast.expr:
        if reduction.op == "len" and not reduction.conditions:
            return expression("(__end - __begin)")
        name = f"__reduce{len(self.result.functions)}"
        boxes = [f"__box{i}" for i in range(len(self.dtypes))]
        body, captured = self._reduction_body(reduction)
        self.result.functions.append(function(name, ["__begin", "__end", *boxes, "__default", *captured], body))
        default = reduction.default or ast.Constant(0)
        given = ", ".join(["__begin", "__end", *boxes])
        call = expression(f"{name}({given})")
        assert isinstance(call, ast.Call)
        call.args += [default, *[ast.Name(c, ast.Load()) for c in captured]]
        return call

    def loop(self, node: ast.For) -> list[ast.stmt]:
        self.generic_visit_body(node)
        code = [assign("__m", self._message("__i")), *_bind(node.target, "__m", self.subject)]
        node.body = [*code, *node.body]
        node.target = ast.Name("__i", ast.Store())
        node.iter = expression("range(__begin, __end)")
        return [node]

    def truth(self) -> ast.expr:
        return expression("(__end > __begin)")

    def finish(self) -> None:
        return

    def _message(self, index: str) -> ast.expr:
        parts = ", ".join(f"__box{i}[{index}]" for i in range(len(self.dtypes)))
        return expression(parts if self.subject.message_type is None else f"__Message({parts})")

    def _reduction_body(self, reduction: _Reduction) -> tuple[list[ast.stmt], list[str]]:
        element = self.lowered(self.over_message(reduction.element, reduction.variable))
        conditions = [self.lowered(self.over_message(c, reduction.variable)) for c in reduction.conditions]
        used = loaded_names([element, *conditions])
        captured = sorted(
            n for n in used if n in self.local_names or (n.startswith("__") and n not in ("__m", "__Message", "__np"))
        )
        captured = [n for n in captured if not n.startswith("__method_")]
        if used & {f"__method_{m}" for m in self.result.methods}:
            captured = sorted({*captured, "env", "params", "aggregates", "vertex", *[f"__s_{s}" for s in self.subject.states]})
        start, update, result = _LIST_REDUCTIONS[reduction.op]
        code = statements(
            f"{start}\nfor __i in range(__begin, __end):\n    __m = 0\n    if True:\n        pass\n    __x = 0\n"
            + "\n".join("    " + line for line in update.splitlines())
            + f"\nreturn {result}"
        )
        loop = next(s for s in code if isinstance(s, ast.For))
        skip: list[ast.stmt] = [
            ast.If(ast.UnaryOp(ast.Not(), c), [ast.Continue()], []) for c in conditions
        ]
        if reduction.op == "sum":
            element = _number(element, None)
        loop.body[:3] = [assign("__m", self._message("__i")), *skip, assign("__x", element)]
        return at(code, reduction.node), captured


_LIST_REDUCTIONS = {
    "sum": ("__acc = __default", "__acc = __acc + __x", "__acc"),
    "min": ("__acc = __default\n__seen = False", "if not __seen or __x < __acc:\n    __acc = __x\n__seen = True", "__acc"),
    "max": ("__acc = __default\n__seen = False", "if not __seen or __x > __acc:\n    __acc = __x\n__seen = True", "__acc"),
    "any": ("__acc = False", "__acc = __acc or bool(__x)", "__acc"),
    "all": ("__acc = True", "__acc = __acc and bool(__x)", "__acc"),
    "len": ("__acc = 0", "__acc = __acc + 1", "__acc"),
}


def _update(statement: ast.stmt) -> tuple[str, ast.expr, ast.expr] | None:
    """Match `acc += x`, `acc = acc + x`, `acc = min(acc, x)`, `acc = acc or x`: the operation, acc, and x."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return "sum", _as_load(statement.target), statement.value
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = _as_load(statement.targets[0]), statement.value
    pairs: list[tuple[str, list[ast.expr]]] = []
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        pairs.append(("sum", [value.left, value.right]))
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("min", "max"):
        pairs.append((value.func.id, value.args))
    if isinstance(value, ast.BoolOp):
        pairs.append(("any" if isinstance(value.op, ast.Or) else "all", value.values))
    for op, (first, *rest) in pairs:
        if len(rest) == 1 and ast.dump(first) == ast.dump(target):
            return op, target, rest[0]
        if len(rest) == 1 and ast.dump(rest[0]) == ast.dump(target):
            return op, target, first
    return None


def _as_store(node: ast.expr) -> ast.expr:
    node = copy.deepcopy(node)
    node.ctx = ast.Store()  # type: ignore[attr-defined]
    return node


def _as_load(node: ast.expr) -> ast.expr:
    node = copy.deepcopy(node)
    if hasattr(node, "ctx"):
        node.ctx = ast.Load()
    return node


def _number(element: ast.expr, dtype: Any) -> ast.expr:
    """Return a truth value as a whole number, as sum() counts it."""
    is_truth = isinstance(element, (ast.Compare, ast.BoolOp)) or (
        isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.Not)
    )
    if is_truth or (dtype is not None and dtype.kind == "b"):
        return ast.Call(ast.Attribute(ast.Name("__np", ast.Load()), "int64", ast.Load()), [element], [])
    return element


def _bind(target: ast.expr, message: str, subject: Subject) -> list[ast.stmt]:
    if isinstance(target, ast.Name):
        return [assign(target.id, ast.Name(message, ast.Load()))]
    assert isinstance(target, ast.Tuple)
    if len(target.elts) != len(subject.message):
        reject(target, f"a message has {len(subject.message)} fields, not {len(target.elts)}")
    return [
        assign(t.id, expression(f"{message}.{f.name}"))  # type: ignore[attr-defined]
        for t, f in zip(target.elts, subject.message, strict=True)
    ]


def _is_out_edges(node: ast.expr) -> bool:
    return is_self(node) and node.attr == "out_edges"  # type: ignore[attr-defined]


