"""Loops and reductions over `self.out_edges`, and mailbox sends, as loops over array positions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from sigps.compiler.fields import LowerFields
from sigps.compiler.program import TO_GID, TO_ID
from sigps.compiler.reductions import Reduction, is_out_edges, match_reduction, reduction_call
from sigps.compiler.source import reject
from sigps.compiler.subject import Subject
from sigps.compiler.syntax import at, cast, expression, is_self, tuple_of

__all__ = ["SENDS", "EdgeLoops", "action_of", "is_edge_loop", "reject_edge", "rewrite_edge_loops"]

SENDS = ("send", "send_to", "send_to_neighbors")


@dataclass
class EdgeLoops:
    """What compute() reads of its out-edges, and its body with the loops rewritten.

    Attributes:
        columns: The edge columns it reads.
        walks: Whether it walks edges at all.
        functions: Reductions of edges, one function each.
        methods: Pure methods that `functions` call.
    """

    body: list[ast.stmt]
    columns: tuple[str, ...] = ()
    walks: bool = False
    functions: list[ast.FunctionDef] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)


def rewrite_edge_loops(body: list[ast.stmt], subject: Subject) -> EdgeLoops:
    """Turn loops over self.out_edges, and sends still in the body, into loops over array positions."""
    rewriter = _Rewriter(subject)
    block = ast.Module(body=body, type_ignores=[])
    rewriter.visit(block)
    result = rewriter.result
    result.body, result.columns = block.body, tuple(rewriter.columns)
    return result


def is_edge_loop(node: ast.AST) -> bool:
    """Tell whether a statement is a loop over self.out_edges."""
    return isinstance(node, ast.For) and is_out_edges(node.iter)


def action_of(node: ast.AST) -> str | None:
    """Return the send, or other action, that a statement is."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and is_self(call.func):
        name: str = call.func.attr
        return name if name in (*SENDS, "vote_to_halt", "retire") else None
    return None


class _Rewriter(ast.NodeTransformer):
    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._positions: dict[str, str] = {}
        self.columns: list[str] = []
        self.result = EdgeLoops([])

    def visit_For(self, node: ast.For) -> Any:
        if not is_edge_loop(node):
            return self.generic_visit(node)
        edge = node.target.id  # type: ignore[attr-defined]
        self.result.walks = True
        outer = dict(self._positions)
        self._positions[edge] = f"__position_{edge}"
        block = ast.Module(body=node.body, type_ignores=[])
        self.generic_visit(block)
        self._positions = outer
        node.body = block.body
        node.target = ast.copy_location(ast.Name(f"__position_{edge}", ast.Store()), node.target)
        node.iter = at([expression("range(__edge_begin, __edge_end)")], node)[0]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        reduction = match_reduction(node)
        if reduction is None or not is_out_edges(reduction.source):
            return self.generic_visit(node)
        if reduction.needs_default:
            reject(node, f"{reduction.op}() of edges needs default=...: a vertex may have none")
        if not isinstance(reduction.variable, ast.Name):
            reject(node, "the loop variable must be one name")
        self.result.walks = True
        if reduction.op == "len":
            reject(
                node,
                "len() cannot count edges: use self.out_degree, or sum(1 for edge in self.out_edges if ...)",
            )
        return self._reduce(reduction, reduction.variable.id)

    def _reduce(self, reduction: Reduction, edge: str) -> ast.expr:
        lower = LowerFields(self._subject)
        if reduction.default is not None:
            reduction.default = lower.visit(self.visit(reduction.default))
        outer = dict(self._positions)
        self._positions[edge] = "__i"
        reduction.element = lower.visit(self.visit(reduction.element))
        reduction.conditions = [lower.visit(self.visit(c)) for c in reduction.conditions]
        self._positions = outer
        name = f"__reduce_edges{len(self.result.functions)}"
        span = ("__edge_begin", "__edge_end")
        definition, call = reduction_call(name, reduction, [], self._subject, span)
        self.result.functions.append(definition)
        self.result.methods |= lower.methods
        return call

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not isinstance(node.value, ast.Name) or node.value.id not in self._positions:
            return self.generic_visit(node)
        position = self._positions[node.value.id]
        if not isinstance(node.ctx, ast.Load):
            reject(node, "an edge cannot be changed: its columns belong to the graph")
        if node.attr == "target":
            return at([expression(f"__np.int64(__edge_ids[{position}])")], node)[0]
        if node.attr not in self.columns:
            self.columns.append(node.attr)
        return at([expression(f"__column_{node.attr}[{position}]")], node)[0]

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self._positions:
            reject_edge(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        action = action_of(node)
        if action not in SENDS:
            return self.generic_visit(node)
        args = node.value.args  # type: ignore[attr-defined]
        parts = zip(self._subject.message_dtypes, self._subject.message_parts(args[-1]), strict=True)
        values = tuple_of([cast(d, self.visit(p)) for d, p in parts])
        if action == "send_to":
            return at([_emit(TO_ID, self.visit(args[0]), values)], node)[0]
        self.result.walks = True
        if action == "send":
            edge = args[0].id if isinstance(args[0], ast.Name) else ""
            if edge not in self._positions:
                reject(
                    node, "the first argument of self.send() is the variable of a loop over self.out_edges"
                )
            return at([_emit(TO_GID, expression(f"__edge_gids[{self._positions[edge]}]"), values)], node)[0]
        loop = ast.For(
            ast.Name("__position", ast.Store()),
            expression("range(__edge_begin, __edge_end)"),
            [_emit(TO_GID, expression("__edge_gids[__position]"), values)],
            [],
        )
        return at([loop], node)[0]


def reject_edge(node: ast.AST) -> None:
    """Refuse to use an edge as a value."""
    reject(
        node, "an edge can only be used as edge.target, edge.weight, edge.<column> or in self.send(edge, ...)"
    )


def _emit(kind: int, target: ast.expr, values: ast.expr) -> ast.stmt:
    call = expression(f"emit(__mail, {kind}, 0, 0)")
    assert isinstance(call, ast.Call)
    call.args[2:] = [target, values]
    return ast.Expr(call)
