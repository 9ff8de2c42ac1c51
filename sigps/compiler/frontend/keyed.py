"""`messages.grouped()` and `messages.most_common()`: matched, with their functions of a message written out.

    messages.grouped(lambda m: m.label)            ->  messages.grouped((m.label,) for m in messages)
    messages.most_common(label_of)                 ->  messages.most_common((label_of(m),) for m in messages)
    messages.most_common(weight=lambda m: m.size)  ->  messages.most_common((m, m.size) for m in messages)

In the form on the right all passes know what to do with the names of the expressions.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NoReturn

from sigps.compiler.frontend.syntax import at, substitute
from sigps.native.source import reject
from sigps.native.trees import copied, walk

__all__ = ["Keyed", "applied", "is_grouped", "match_keyed", "spell_out_keys"]

_TAKES = {"grouped": ("key",), "most_common": ("key", "weight", "default")}
_EXAMPLES = {
    "grouped": "for key, group in messages.grouped(lambda m: m.label)",
    "most_common": "messages.most_common(key=lambda m: m.label, weight=lambda m: m.weight, default=-1)",
}
_MESSAGE = "__own_message"


@dataclass
class Keyed:
    """One call of `grouped()` or `most_common()`.

    Attributes:
        source: What is grouped: `messages`.
        variable: The name of a message in `key` and `weight`.
        key: Its key.
        weight: Its weight; None where messages are counted.
        default: What most_common() gives without messages; None if not given.
    """

    source: ast.expr
    variable: ast.expr
    key: ast.expr
    weight: ast.expr | None
    default: ast.expr | None
    node: ast.Call


def is_grouped(node: ast.AST) -> bool:
    """Tell whether an expression is a call of `grouped()`."""
    return _method(node) == "grouped"


def spell_out_keys(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function with the functions of keys and weights written out; a new tree where it has any.

    Raises:
        CompileError: If a call has other arguments than it takes.
    """
    if not any(_method(node) for node in walk(tree)):
        return tree
    written: ast.FunctionDef = _SpellOut().visit(copied(tree))
    return written


def match_keyed(node: ast.AST) -> Keyed | None:
    """Return what a call groups, after `spell_out_keys`; None of any other."""
    if not _method(node):
        return None
    assert isinstance(node, ast.Call)
    (generator,) = node.args
    assert isinstance(generator, ast.GeneratorExp)
    (source,), parts = generator.generators, generator.elt
    key, *rest = parts.elts  # type: ignore[attr-defined]
    default = node.keywords[0].value if node.keywords else None
    return Keyed(source.iter, source.target, key, rest[0] if rest else None, default, node)


def _method(node: ast.AST) -> str:
    """Return `grouped` or `most_common` where that method of a name is called; else nothing."""
    function = node.func if isinstance(node, ast.Call) else None
    is_method = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    name = function.attr if is_method else ""  # type: ignore[union-attr]
    return name if name in _TAKES else ""


class _SpellOut(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = _method(node)
        if not name:
            return node
        given = dict(zip(_TAKES[name], node.args, strict=False))
        names = [k.arg for k in node.keywords]
        if len(node.args) > len(_TAKES[name][:2]) or not set(names) <= set(_TAKES[name]) - set(given):
            _reject_call(node, name)
        given |= {k.arg: k.value for k in node.keywords if k.arg is not None}
        message = ast.Name(_MESSAGE, ast.Load())
        given = {n: v for n, v in given.items() if not (isinstance(v, ast.Constant) and v.value is None)}
        parts: list[ast.expr] = [applied(given["key"], message) if "key" in given else message]
        parts += [applied(given["weight"], message)] if "weight" in given else []
        assert isinstance(node.func, ast.Attribute)
        each = ast.comprehension(ast.Name(_MESSAGE, ast.Store()), copied(node.func.value), [], 0)
        node.args = at([ast.GeneratorExp(ast.Tuple(parts, ast.Load()), [each])], node)
        node.keywords = [ast.keyword("default", given["default"])] if "default" in given else []
        return ast.fix_missing_locations(node)


def applied(function: ast.expr, value: ast.expr) -> ast.expr:
    """Return what a lambda, or a function by its name, gives of a value.

    Raises:
        CompileError: If it is neither, or takes other arguments.
    """
    if isinstance(function, ast.Lambda):
        arguments = function.args
        if (
            len(arguments.args) != 1
            or sum(isinstance(n, ast.arg) for n in walk(arguments)) != 1
            or arguments.defaults
        ):
            reject(function, "a key takes one argument: 'key=lambda m: m.distance'")
        return substitute(function.body, {arguments.args[0].arg: value})
    if not isinstance(function, (ast.Name, ast.Attribute)):
        reject(function, "a key is a lambda or the name of a function: 'key=lambda m: m.distance'")
    return ast.Call(copied(function), [copied(value)], [])


def _reject_call(node: ast.Call, name: str) -> NoReturn:
    reject(node, f"{name}() takes {', '.join(f'{n}=' for n in _TAKES[name])}: {_EXAMPLES[name]}")
