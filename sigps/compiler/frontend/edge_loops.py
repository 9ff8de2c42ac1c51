"""Loops and reductions over `self.out_edges`, and sends of direct messages, as loops over array positions.

Of an edge state `bound`, `edge.bound` becomes an element of `__pending_bound`, the array that compute() writes.
`for one, other in self.common_neighbors(edge)` becomes a walk along two sorted rows (`kernels/cpu/neighbors.py`), in
which `one.bound` is an element of `__committed_bound`: the value when the superstep began.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from sigps.compiler.frontend.absent import held
from sigps.compiler.frontend.grammar import (
    SENDS,
    action_of,
    check_pair,
    is_common_neighbors,
    is_edge_loop,
    is_out_edges,
    reject_edge,
)
from sigps.compiler.frontend.lower import LowerFields
from sigps.compiler.frontend.reductions import Loop, Reduction, match_reduction, reduction_call
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import at, expression, is_self, statements, tuple_of, visited
from sigps.compiler.program import TO_GID, TO_ID
from sigps.native.primitives import edge_at
from sigps.native.source import reject

__all__ = ["EDGE_FUNCTIONS", "EdgeLoops", "rewrite_edge_loops"]


@dataclass
class EdgeLoops:
    """What compute() reads of its out-edges, and its body with the loops rewritten.

    Attributes:
        columns: The edge columns it reads.
        walks: Whether it loops over its out-edges.
        pairs: Whether it loops over common neighbours, along the rows of two vertices.
        reverses: Whether it reads `edge.reverse`: the edge states of the other end.
        functions: Reductions of edges, one function each.
        methods: Pure methods that `functions` call.
    """

    body: list[ast.stmt]
    columns: tuple[str, ...] = ()
    walks: bool = False
    pairs: bool = False
    reverses: bool = False
    functions: list[ast.FunctionDef] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)


def has_edge(ids: Any, begin: Any, end: Any, target: Any) -> bool:
    """Tell whether a target is among the ascending ids at begin..end; O(log of how many these are)."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if ids[middle] < target:
            low = middle + np.uint64(1)
        else:
            high = middle
    return bool(low < end and ids[low] == target)


EDGE_FUNCTIONS = {"__edge_at": edge_at, "__has_edge": has_edge}
"""What generated functions call, by name."""


def rewrite_edge_loops(body: list[ast.stmt], subject: Subject) -> EdgeLoops:
    """Turn loops over self.out_edges, and sends still in the body, into loops over array positions."""
    rewriter = _Rewriter(subject)
    rewriter.result.body = visited(rewriter, body)
    rewriter.result.columns = tuple(rewriter.columns)
    return rewriter.result


class _Rewriter(ast.NodeTransformer):
    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._positions: dict[str, str] = {}
        self._committed: set[str] = set()  # names of edges that common_neighbors() gave: read only
        self.columns: list[str] = []
        self.result = EdgeLoops([])

    def visit_For(self, node: ast.For) -> Any:
        if is_common_neighbors(node.iter):
            return self._visit_pairs(node)
        if not is_edge_loop(node):
            return self.generic_visit(node)
        edge = node.target.id  # type: ignore[attr-defined]
        self.result.walks = True
        if edge in self._committed:
            reject(node, f"{edge!r} is an edge that common_neighbors() gave: choose another name")
        outer = dict(self._positions)
        self._positions[edge] = f"__position_{edge}"
        node.body = visited(self, node.body)
        self._positions = outer
        node.target = ast.copy_location(ast.Name(f"__position_{edge}", ast.Store()), node.target)
        node.iter = at([expression("range(__edge_begin, __edge_end)")], node)[0]
        return node

    def _visit_pairs(self, node: ast.For) -> Any:
        edge, names = self._pair(node.iter, node.target)
        outer = dict(self._positions)
        self._positions |= {name: f"__position_{name}" for name in names}
        self._committed |= set(names)
        body = visited(self, node.body)
        self._positions = outer
        self._committed -= set(names)
        return at(_walk(edge, names, body), node)

    def _pair(self, source: ast.expr, target: ast.expr) -> tuple[str, list[str]]:
        """Return the position of the edge whose common neighbours are walked, and the names of the pair."""
        assert isinstance(source, ast.Call)
        edge = source.args[0].id  # type: ignore[attr-defined]
        if edge not in self._positions or edge in self._committed:
            reject(source, "common_neighbors() takes the variable of a loop over self.out_edges")
        if self._positions[edge] == "__i":
            reject(
                source, "a reduction over edges cannot hold one over their common neighbours: write a loop"
            )
        check_pair(target)
        names = [t.id for t in target.elts]  # type: ignore[attr-defined]
        if set(names) & self._positions.keys() or len(set(names)) < 2:
            reject(target, "the two edges need names of their own: 'for one, other in ...'")
        self.result.pairs = True
        return self._positions[edge], names

    def _reduce_pairs(self, reduction: Reduction) -> ast.expr:
        edge, names = self._pair(reduction.source, reduction.variable)
        positions = {name: f"__position_{name}" for name in names}
        self._committed |= set(names)
        call = self._reduce(reduction, positions, lambda body: _walk(edge, names, body))
        self._committed -= set(names)
        return call

    def visit_Call(self, node: ast.Call) -> Any:
        if is_self(node.func) and node.func.attr == "has_edge":
            return self._has_edge(node)
        reduction = match_reduction(node)
        if reduction is not None and is_common_neighbors(reduction.source):
            if reduction.needs_default:
                reject(node, f"{reduction.op}() of pairs needs default=...: an edge may have none")
            return self._reduce_pairs(reduction)
        if is_common_neighbors(node):
            reject(node, "common_neighbors() is looped over: 'for one, other in self.common_neighbors(edge)'")
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
        if "__i" in self._positions.values():
            reject(node, "a reduction over edges cannot hold another: write a loop")
        if reduction.variable.id in self._committed:
            reject(
                node,
                f"{reduction.variable.id!r} is an edge that common_neighbors() gave: choose another name",
            )
        return self._reduce(reduction, {reduction.variable.id: "__i"})

    def _has_edge(self, node: ast.Call) -> ast.expr:
        if node.keywords or len(node.args) != 1:
            reject(node, "self.has_edge() takes one id: self.has_edge(target)")
        self.result.walks = True
        call = expression("__has_edge(__edge_ids, __edge_begin, __edge_end, X)", X=self.visit(node.args[0]))
        return at([call], node)[0]

    def _reduce(self, reduction: Reduction, positions: dict[str, str], loop: Loop | None = None) -> ast.expr:
        lower = LowerFields(self._subject)
        if reduction.default is not None:
            reduction.default = lower.visit(self.visit(reduction.default))
        outer = dict(self._positions)
        self._positions |= positions
        reduction.element = lower.visit(self.visit(reduction.element))
        if reduction.key is not None:
            reduction.key = lower.visit(self.visit(reduction.key))
        reduction.conditions = [lower.visit(self.visit(c)) for c in reduction.conditions]
        self._positions = outer
        name = f"__reduce_edges{len(self.result.functions)}"
        span = ("__edge_begin", "__edge_end")
        definition, call = reduction_call(name, reduction, [], self._subject, span, loop)
        self.result.functions.append(definition)
        self.result.methods |= lower.methods
        return call

    def _indexed(self, node: ast.expr) -> str | None:
        """Return the position of `self.out_edges[k]`, as an expression; None of any other."""
        if not isinstance(node, ast.Subscript) or not is_out_edges(node.value):
            return None
        if isinstance(node.slice, ast.Slice):
            reject(node, "self.out_edges[k] is one edge: loop over self.out_edges for more")
        self.result.walks = True
        return f"__edge_at(__edge_begin, __edge_end, {ast.unparse(self.visit(node.slice))})"

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        indexed = self._indexed(node.value)
        if indexed is not None:
            if not isinstance(node.ctx, ast.Load) or node.attr in self._subject.edge_states:
                reject(node, f"write 'edge = self.out_edges[k]' first, then edge.{node.attr}")
            if node.attr == "target":
                return at([expression(f"__np.int64(__edge_ids[{indexed}])")], node)[0]
            if node.attr not in self.columns:
                self.columns.append(node.attr)
            return at([expression(f"__column_{node.attr}[{indexed}]")], node)[0]
        whole = node.value
        if isinstance(whole, ast.Attribute) and whole.attr == "reverse" and self._is_own_edge(whole.value):
            return self._reversed(node, whole)
        if not isinstance(node.value, ast.Name) or node.value.id not in self._positions:
            return self.generic_visit(node)
        edge, position = node.value.id, self._positions[node.value.id]
        if node.attr in self._subject.edge_states:
            return self._edge_state(node, position)
        if node.attr == "reverse":
            reject(node, "edge.reverse is read as edge.reverse.<what is kept on edges>")
        if edge in self._committed and node.attr != "target":
            reject(
                node,
                f"an edge that common_neighbors() gives has a target and what is kept on it, no {node.attr!r}: "
                "declare an EdgeState, and copy the column there in superstep 0",
            )
        if not isinstance(node.ctx, ast.Load):
            reject(
                node,
                f"edge.{node.attr} cannot be assigned: its columns belong to the graph, and what a vertex keeps "
                "on edges is declared as an EdgeState",
            )
        if node.attr == "target":
            if edge in self._committed:  # both lead to one vertex; its id stands in this vertex's row
                position = self._positions[edge].replace("__position_", "__mine_")
            return at([expression(f"__np.int64(__edge_ids[{position}])")], node)[0]
        if node.attr not in self.columns:
            self.columns.append(node.attr)
        return at([expression(f"__column_{node.attr}[{position}]")], node)[0]

    def _edge_state(self, node: ast.Attribute, position: str) -> ast.expr:
        edge = node.value.id  # type: ignore[attr-defined]
        is_committed = edge in self._committed
        if is_committed and not isinstance(node.ctx, ast.Load):
            reject(
                node,
                f"{edge}.{node.attr} cannot be assigned: what common_neighbors() gives is as it was when the "
                "superstep began. Assign to an edge of self.out_edges",
            )
        place = expression(f"__{'committed' if is_committed else 'pending'}_{node.attr}[{position}]")
        assert isinstance(place, ast.Subscript)
        place.ctx = node.ctx
        return at([place], node)[0]

    def _is_own_edge(self, node: ast.expr) -> TypeGuard[ast.Name]:
        return isinstance(node, ast.Name) and node.id in self._positions and node.id not in self._committed

    def _reversed(self, node: ast.Attribute, edge: ast.Attribute) -> ast.expr:
        """Return the element that `edge.reverse.<edge state>` reads."""
        name = edge.value.id  # type: ignore[attr-defined]
        if self._subject.cls.declaration.directed:
            reject(node, f"{name}.reverse is there in undirected graphs: class ...(Vertex, directed=False)")
        if node.attr not in self._subject.edge_states:
            reject(node, f"{name}.reverse has what is kept on edges, no {node.attr!r}")
        if not isinstance(node.ctx, ast.Load):
            reject(node, f"{name}.reverse.{node.attr} cannot be assigned: the edge's target keeps it")
        self.result.reverses = True
        return at([expression(f"__committed_{node.attr}[__reverse[{self._positions[name]}]]")], node)[0]

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Cast what is assigned to an edge state to its declared type at once, as the interpreter does."""
        indexed = self._indexed(node.value)
        if indexed is not None:
            (target, *more) = node.targets
            if more or not isinstance(target, ast.Name) or target.id in self._committed:
                reject(node, "an edge is given a name of its own: 'edge = self.out_edges[k]'")
            self._positions[target.id] = f"__position_{target.id}"
            return at(statements(f"__position_{target.id} = {indexed}"), node)[0]
        on_edges = [t for t in node.targets if self._is_edge_state(t)]
        if not on_edges:
            return self.generic_visit(node)
        target = on_edges[0]
        if len(node.targets) > 1:
            reject(node, "assign what is kept on edges on a line of its own")
        field = self._subject.edge_states[target.attr]
        value = held(field, self._subject.precision, self.visit(node.value))
        return at([ast.Assign([self.visit(target)], value)], node)[0]

    def _is_edge_state(self, node: ast.expr) -> TypeGuard[ast.Attribute]:
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in self._positions
            and node.attr in self._subject.edge_states
        )

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self._positions:
            reject_edge(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        action = action_of(node)
        if action not in SENDS:
            return self.generic_visit(node)
        args = node.value.args  # type: ignore[attr-defined]
        parts = zip(self._subject.message, self._subject.message_parts(args[-1]), strict=True)
        values = tuple_of([held(f, self._subject.precision, self.visit(p)) for f, p in parts])
        if action == "send_to":
            target = self.visit(args[0])
            if self._subject.has_none:
                target = expression("__known(ID)", ID=target)
            return at([_emit(TO_ID, target, values)], node)[0]
        self.result.walks = True
        if action == "send":
            edge = args[0].id if isinstance(args[0], ast.Name) else ""
            if edge not in self._positions or edge in self._committed:
                reject(
                    node,
                    "the first argument of self.send() is the variable of a loop over self.out_edges; "
                    "a vertex of a known id is reached by self.send_to(vertex_id, message)",
                )
            return at([_emit(TO_GID, expression(f"__edge_gids[{self._positions[edge]}]"), values)], node)[0]
        loop = ast.For(
            ast.Name("__position", ast.Store()),
            expression("range(__edge_begin, __edge_end)"),
            [_emit(TO_GID, expression("__edge_gids[__position]"), values)],
            [],
        )
        return at([loop], node)[0]


def _walk(edge: str, names: list[str], body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a loop over the common neighbours of the two ends of an edge.

    Args:
        edge: Its position among the out-edges.
        names: Names of the pair of edges to the common neighbour; their positions are `__position_<name>`.
        body: The loop's body.
    """
    one, other = names
    row = f"__row_of_{one}"
    start = statements(
        f"{row} = __row_of[{edge}]\n"
        f"__at_{one} = __np.uint64(__edge_begin)\n"
        f"__at_{other} = __row_offsets[{row}]\n"
        f"__mark_row(__row_targets, __marks, __at_{one}, __np.uint64(__edge_end))"
    )
    loop = statements(
        "while True:\n"
        f"    (__at_{one}, __at_{other}) = __next_common(__row_targets, __marks, __np.uint64(__edge_begin), "
        f"__at_{one}, __np.uint64(__edge_end), __row_offsets[{row}], __at_{other}, "
        f"__row_offsets[{row} + __np.uint32(1)])\n"
        f"    if __at_{one} >= __edge_end:\n"
        "        break\n"
        f"    __position_{one} = __at_{one}\n"
        f"    __position_{other} = __at_{other}\n"
        f"    __mine_{one} = __at_{one}\n"
        f"    __mine_{other} = __at_{one}\n"
        f"    __at_{one} += __np.uint64(1)\n"
        f"    __at_{other} += __np.uint64(1)\n"
        f"    if __edge_ids[__position_{one}] == __id or __row_targets[__position_{one}] == __row_targets[{edge}]:\n"
        "        continue"
    )[0]
    assert isinstance(loop, ast.While)
    loop.body += body
    loop.sigps_ends = True  # type: ignore[attr-defined]
    return [*start, loop]


def _emit(kind: int, target: ast.expr, values: ast.expr) -> ast.stmt:
    return ast.Expr(expression(f"emit(__direct, {kind}, TARGET, VALUES)", TARGET=target, VALUES=values))
