"""Messages one by one: reductions and loops over positions in lists, and over runs of one key in sorted lists."""

from __future__ import annotations

import ast

from sigps.compiler.frontend.absent import message_of
from sigps.compiler.frontend.grammar import GROUP
from sigps.compiler.frontend.keyed import Keyed
from sigps.compiler.frontend.reading import Reader, bind_message, first_of_vertex
from sigps.compiler.frontend.reductions import (
    Reduction,
    names_from_outside,
    numeric,
    reduction_call,
    without_nan,
)
from sigps.compiler.frontend.syntax import (
    assign,
    expression,
    function,
    loaded_names,
    statements,
    substitute,
    visited,
)
from sigps.compiler.program import Consumption
from sigps.native.source import reject
from sigps.native.trees import copied

__all__ = ["Listed"]


class Listed(Reader):
    """Messages are listed: positions `__begin` to `__end` of the arrays `__box0`, ..., one a field.

    Where messages are read by key, lists ascend by it: a group is a run of equal keys, `__begin0` to `__end0`.
    """

    consumption = Consumption.LISTED

    def reduce(self, reduction: Reduction) -> ast.expr:
        begin, end = span = _span(reduction.source)
        if reduction.op == "len" and not reduction.conditions:
            return expression(f"({end} - {begin})")
        element = self.visit(self.over_message(reduction.element, reduction.variable))
        conditions = [self.visit(self.over_message(c, reduction.variable)) for c in reduction.conditions]
        reduction.element = self.lowered(element)
        if reduction.key is not None:
            reduction.key = self.lowered(self.visit(self.over_message(reduction.key, reduction.variable)))
        reduction.conditions = [self.lowered(c) for c in conditions]
        reduction.default = None if reduction.default is None else self.lowered(reduction.default)
        name = f"__reduce{len(self.result.functions)}"
        item = []
        if "__m" in loaded_names(
            [reduction.element, *reduction.conditions, reduction.key or reduction.element]
        ):
            item = [assign("__m", self._message("__i"))]
        definition, call = reduction_call(name, reduction, item, self.subject, span)
        self.result.functions.append(definition)
        return call

    def loop(self, node: ast.For) -> list[ast.stmt]:
        begin, end = _span(node.iter)
        code = [assign("__m", self._message("__at_message")), *bind_message(node.target, self.subject)]
        node.body = [*code, *visited(self, node.body)]
        node.target = ast.Name("__at_message", ast.Store())
        node.iter = expression(f"range({begin}, {end})")
        return [node]

    def truth(self) -> ast.expr:
        return expression("(__end > __begin)")

    def loop_groups(self, node: ast.For, keyed: Keyed, group: str) -> list[ast.stmt]:
        key = self._sorting_key(keyed)
        number = group.removeprefix(GROUP)
        begin, end, value = f"__begin{number}", f"__end{number}", f"__key{number}"
        after = _loop(
            f"while {end} < __end:\n    MESSAGE\n    if KEY != {value}:\n        break\n    {end} = {end} + 1",
            {"MESSAGE": assign("__m", self._message(end))},
            KEY=key,
        )
        outer = statements(f"{end} = __begin\nwhile {end} < __end: pass")
        (start, loop) = outer
        assert isinstance(loop, ast.While)
        target: ast.expr = node.target.elts[0]  # type: ignore[attr-defined]
        loop.body = [
            *statements(f"{begin} = {end}"),
            assign("__m", self._message(begin)),
            assign(value, copied(key)),
            *statements(f"{end} = {end} + 1"),
            after,
            ast.Assign([target], ast.Name(value, ast.Load())),
            *visited(self, node.body),
        ]
        loop.sigps_ends = True  # type: ignore[attr-defined]
        return [start, loop]

    def most_common(self, keyed: Keyed) -> ast.expr:
        """Return a call of a function that walks the runs, and keeps the key of the first one that weighs most."""
        key = self._sorting_key(keyed)
        weight: ast.expr = ast.Constant(1)
        if keyed.weight is not None:
            weight = numeric(self.lowered(self.visit(self.over_message(keyed.weight, keyed.variable))), None)
        default = self.lowered(keyed.default or ast.Constant(0))
        name = f"__most_common{len(self.result.functions)}"
        run = _loop(
            "while __i < __end:\n    MESSAGE\n    if KEY != __key:\n        break\n"
            "    __total = __total + WEIGHT\n    __i = __i + 1",
            {"MESSAGE": assign("__m", self._message("__i"))},
            KEY=key,
            WEIGHT=weight,
        )
        loop = _loop(
            "while __i < __end:\n    MESSAGE\n    __key = KEY\n    __total = WEIGHT\n    __i = __i + 1\n    RUN\n"
            "    __total = TOTAL\n    if not __found or __total > __most:\n        __best = __key\n"
            "        __most = __total\n    __found = True",
            {"MESSAGE": assign("__m", self._message("__i")), "RUN": run},
            KEY=key,
            WEIGHT=weight,
            TOTAL=without_nan("max", ast.Name("__total", ast.Load()), None),
        )
        before = [*statements("__i = __begin\n__found = False\n__most = 0"), assign("__best", default)]
        code = [*before, loop, *statements("return __best")]
        captured = names_from_outside(code, self.subject)
        self.result.functions.append(function(name, captured, code))
        return ast.Call(ast.Name(name, ast.Load()), [ast.Name(c, ast.Load()) for c in captured], [])

    def _sorting_key(self, keyed: Keyed) -> ast.expr:
        """Return a key over `__m`, lowered, by which the engine is to sort lists."""
        key = self.over_message(keyed.key, keyed.variable)
        other = first_of_vertex([key], self.subject, self.local_names)
        if other:
            reject(
                keyed.node,
                f"a key depends on the message and the run alone, and this one on {other}: engines sort messages by "
                "it before compute() runs",
            )
        text = ast.unparse(key).replace("__m", "m")
        if self.result.key_text not in ("", text):
            reject(
                keyed.node,
                f"messages are grouped by {self.result.key_text} elsewhere in compute(), and here by {text}: one key "
                "a program",
            )
        self.result.key_text, self.result.key = text, self.lowered(key)
        return copied(self.result.key)

    def _message(self, index: str) -> ast.expr:
        parts = [f"__box{i}[{index}]" for i in range(len(self.dtypes))]
        return expression(message_of(self.subject.message, parts, self.subject.message_record))


def _span(source: ast.expr) -> tuple[str, str]:
    """Return the names of the first position of messages, or of a group, and of the one past the last."""
    number = source.id.removeprefix(GROUP) if source.id != "messages" else ""  # type: ignore[attr-defined]
    return f"__begin{number}", f"__end{number}"


def _loop(text: str, blocks: dict[str, ast.stmt], **parts: ast.expr) -> ast.While:
    """Return a loop that ends, with statements and expressions in the place of their names."""
    (loop,) = statements(text)
    assert isinstance(loop, ast.While)
    loop.body = [
        copied(blocks[s.value.id])
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Name)
        else substitute(s, parts)
        for s in loop.body
    ]
    loop.sigps_ends = True  # type: ignore[attr-defined]
    return loop
