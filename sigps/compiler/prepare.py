"""First passes over compute(): refuse what cannot be compiled, fold constants, put methods in place.

After `prepare` the body speaks only of `self.<field>`, `self.<action>(...)`, `self.out_edges`,
`messages`, local names and global names; parameters that are constants are gone, with the branches they rule out.
"""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable, Sequence
from typing import Any

from sigps.compiler.source import reject
from sigps.compiler.subject import ACTIONS, Subject, constant_of, is_self

__all__ = ["prepare", "prepare_method", "rename"]

_REFUSED: dict[type[ast.AST], str] = {
    ast.Try: "'try' cannot be compiled: test for the case before it happens",
    ast.With: "'with' cannot be compiled",
    ast.Raise: "'raise' cannot be compiled: store an error code in a State field",
    ast.Assert: "'assert' cannot be compiled: run with device='python' to check assumptions",
    ast.Lambda: "a lambda cannot be compiled here: write a method or a function of the module",
    ast.FunctionDef: "a function inside compute() cannot be compiled: write a method or a function of the module",
    ast.ClassDef: "a class inside compute() cannot be compiled",
    ast.Import: "an import inside compute() cannot be compiled: import at the top of the file",
    ast.ImportFrom: "an import inside compute() cannot be compiled: import at the top of the file",
    ast.Global: "'global' cannot be compiled: vertices share values through aggregators",
    ast.Nonlocal: "'nonlocal' cannot be compiled: vertices share values through aggregators",
    ast.Delete: "'del' cannot be compiled",
    ast.Yield: "'yield' cannot be compiled",
    ast.Await: "'await' cannot be compiled",
    ast.List: "a list cannot be compiled: use State fields, tuples or local variables",
    ast.Dict: "a dict cannot be compiled: use State fields, tuples or local variables",
    ast.Set: "a set cannot be compiled: use State fields, tuples or local variables",
    ast.ListComp: "a list comprehension cannot be compiled: reduce with sum(), min(), max(), any(), all() or a loop",
    ast.DictComp: "a dict comprehension cannot be compiled: use a loop",
    ast.SetComp: "a set comprehension cannot be compiled: use a loop",
    ast.JoinedStr: "an f-string cannot be compiled: print and format with device='python'",
    ast.NamedExpr: "':=' cannot be compiled: assign on a line of its own",
    ast.Match: "'match' cannot be compiled: use if and elif",
    ast.Starred: "'*' cannot be compiled: name the arguments",
}
_CALLS_REFUSED = {
    "print": "print() cannot be compiled: run with device='python', or trace=[ids]",
    "breakpoint": "breakpoint() cannot be compiled: run with device='python'",
    "super": "super() cannot be compiled: give the shared part a method name of its own",
    "sorted": "sorted() cannot be compiled: keep the best values in local variables while looping",
    "list": "list() cannot be compiled: loop over the messages themselves",
    "next": "next() cannot be compiled: the order of messages is unspecified; use min() or max()",
}


def prepare(tree: ast.FunctionDef, subject: Subject) -> ast.FunctionDef:
    """Return compute() checked, folded and with the user's methods in place.

    Raises:
        CompileError: If something in it cannot be compiled.
    """
    names = [arg.arg for arg in tree.args.args]
    if len(names) != 2 or tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs:
        reject(tree, "compute must be written as 'def compute(self, messages)'")
    tree = rename(tree, {names[0]: "self", names[1]: "messages"})
    tree.body = _Methods(subject).block(_fold(tree.body, subject))
    tree.body = _fold(tree.body, subject)
    for statement in tree.body:
        _check(statement, subject)
    return tree


def prepare_method(tree: ast.FunctionDef, subject: Subject) -> ast.FunctionDef:
    """Return a method that only computes, checked and folded."""
    tree.body = _fold(tree.body, subject)
    for statement in tree.body:
        _check(statement, subject)
    return tree


def rename(tree: Any, names: dict[str, str]) -> Any:
    """Return a copy with local names replaced."""
    tree = copy.deepcopy(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = names[node.id]
        elif isinstance(node, ast.arg) and node.arg in names:
            node.arg = names[node.arg]
    return tree


def _check(statement: ast.stmt, subject: Subject) -> None:
    for node in ast.walk(statement):
        refusal = _REFUSED.get(type(node))
        if refusal is not None:
            reject(node, refusal)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS_REFUSED:
            reject(node, _CALLS_REFUSED[node.func.id])
        if isinstance(node, ast.For):
            _check_loop(node)
        if is_self(node):
            _check_attribute(node, subject)  # type: ignore[arg-type]
    _check_actions(statement)


def _check_loop(node: ast.For) -> None:
    source = node.iter
    is_range = isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range"
    is_messages = isinstance(source, ast.Name) and source.id == "messages"
    is_edges = is_self(source) and source.attr == "out_edges"  # type: ignore[attr-defined]
    if not (is_range or is_messages or is_edges):
        reject(node, "a loop runs over messages, self.out_edges or range(...); this one does not")
    if node.orelse:
        reject(node, "'else' of a loop cannot be compiled")
    if not isinstance(node.target, ast.Name) and not (is_messages and isinstance(node.target, ast.Tuple)):
        reject(node, "the loop variable must be one name")


def _check_attribute(node: ast.Attribute, subject: Subject) -> None:
    name = node.attr
    if name in ACTIONS or name == "out_edges" or subject.method(name) is not None:
        return
    if subject.reach(name) is None:
        subject.reject_unknown(node)
    if isinstance(node.ctx, ast.Load) or name in subject.states:
        return
    if name in subject.aggregators:
        return
    what = "a parameter of the run" if name in subject.params else "read-only"
    reject(node, f"self.{name} cannot be assigned: it is {what}. Only State fields can")


def _check_actions(statement: ast.stmt) -> None:
    """Every action is a statement of its own, with the arguments it takes."""
    wanted = {"send": 2, "send_to": 2, "send_to_neighbors": 1, "vote_to_halt": 0, "retire": 0}
    done = {
        node.value
        for node in ast.walk(statement)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and is_self(node.value.func)
    }
    calls = {node.func: node for node in ast.walk(statement) if isinstance(node, ast.Call)}
    for node in ast.walk(statement):
        if not is_self(node) or node.attr not in ACTIONS:  # type: ignore[attr-defined]
            continue
        action = node.attr  # type: ignore[attr-defined]
        call = calls.get(node)  # type: ignore[call-overload]
        if call is None or call not in done:
            reject(node, f"self.{action}(...) gives no value: call it on a line of its own")
        if call.keywords or len(call.args) != wanted[action]:
            reject(node, f"self.{action}() takes {wanted[action]} arguments, without names")


_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


class _Folder(ast.NodeTransformer):
    """Replaces constant parameters by their values and drops branches that they rule out."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if not is_self(node) or not isinstance(node.ctx, ast.Load):
            return node
        if node.attr in self._subject.constants:
            return ast.copy_location(ast.Constant(self._subject.constants[node.attr]), node)
        if node.attr not in self._subject.states | self._subject.params:
            constant = constant_of(getattr(self._subject.cls, node.attr, None))
            if constant is not None and not isinstance(constant.value, str):
                return ast.copy_location(constant, node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:  # noqa: N802
        is_number = (
            is_self(node.left)
            and node.left.attr in self._subject.params  # type: ignore[attr-defined]
            and isinstance(node.comparators[0], ast.Constant)
            and node.comparators[0].value is None
        )
        self.generic_visit(node)
        if len(node.ops) != 1 or type(node.ops[0]) not in _OPERATORS:
            return node
        if is_number:
            return ast.copy_location(ast.Constant(isinstance(node.ops[0], (ast.IsNot, ast.NotEq))), node)
        left, right = node.left, node.comparators[0]
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            value = _OPERATORS[type(node.ops[0])](left.value, right.value)
            return ast.copy_location(ast.Constant(value), node)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.copy_location(ast.Constant(not node.operand.value), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        decisive = isinstance(node.op, ast.Or)
        kept: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                if bool(value.value) is decisive:
                    kept.append(value)
                    break
                continue
            kept.append(value)
        if not kept:
            return ast.copy_location(ast.Constant(not decisive), node)
        node.values = kept
        return kept[0] if len(kept) == 1 else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_If(self, node: ast.If) -> Any:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        if not node.body:
            node.body = [ast.copy_location(ast.Pass(), node)]
        return node


def _fold(body: Sequence[ast.stmt], subject: Subject) -> list[ast.stmt]:
    block = ast.Module(body=[copy.deepcopy(s) for s in body], type_ignores=[])
    folded: ast.Module = _Folder(subject).visit(block)
    return folded.body


class _Methods:
    """Puts the bodies of methods that act (assign, send, halt) where they are called."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._num_inlined = 0

    def block(self, body: Sequence[ast.stmt], stack: tuple[str, ...] = ()) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            result += self._statement(statement, stack)
        return result

    def _statement(self, statement: ast.stmt, stack: tuple[str, ...]) -> list[ast.stmt]:
        for name in ("body", "orelse"):
            if isinstance(getattr(statement, name, None), list):
                setattr(statement, name, self.block(getattr(statement, name), stack))
        call = getattr(statement, "value", None)
        name = self._acting(call)
        if name is not None and isinstance(statement, (ast.Expr, ast.Assign, ast.Return)):
            assert isinstance(call, ast.Call)
            return self._inline(statement, call, name, stack)
        nested = [n for n in _own_expressions(statement) for n in ast.walk(n) if self._acting(n) is not None]
        if nested:
            reject(
                nested[0],
                "a method that assigns fields, sends or halts is called on a line of its own: "
                "'self.method(...)' or 'x = self.method(...)'",
            )
        return [statement]

    def _acting(self, node: Any) -> str | None:
        if isinstance(node, ast.Call) and is_self(node.func):
            name: str = node.func.attr  # type: ignore[attr-defined]
            if self._subject.method(name) is not None and self._subject.has_effects(name):
                return name
        return None

    def _inline(
        self, statement: ast.stmt, call: ast.Call, name: str, stack: tuple[str, ...]
    ) -> list[ast.stmt]:
        tree = self._subject.method_tree(name)
        params = [arg.arg for arg in tree.args.args]
        if call.keywords or len(call.args) != len(params) - 1 or tree.args.vararg or tree.args.kwonlyargs:
            reject(call, f"self.{name}() takes {len(params) - 1} arguments, without names")
        for node in ast.walk(tree):
            if isinstance(node, ast.Return) and node is not tree.body[-1]:
                reject(node, f"{name}() assigns fields, sends or halts, so its only 'return' must be its last line")
        self._num_inlined += 1
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names = {old: f"__{name}{self._num_inlined}_{old}" for old in stored | set(params[1:])}
        tree = rename(tree, {params[0]: "self", **names})
        body = _fold(tree.body, self._subject)
        binding = [
            ast.copy_location(ast.Assign([ast.Name(names[p], ast.Store())], argument), call)
            for p, argument in zip(params[1:], call.args, strict=True)
        ]
        value: ast.expr = ast.copy_location(ast.Constant(0), call)
        if body and isinstance(body[-1], ast.Return):
            last = body.pop()
            value = last.value or value  # type: ignore[attr-defined]
        result = [*binding, *self.block(body, (*stack, name))]
        if not isinstance(statement, ast.Expr):
            statement.value = value  # type: ignore[attr-defined]
            result.append(statement)
        return [ast.fix_missing_locations(s) for s in result]


def _own_expressions(statement: ast.stmt) -> list[ast.expr]:
    """Return a statement's own expressions, not those of the statements inside it."""
    return [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
