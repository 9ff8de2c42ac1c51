"""A vertex's loop over its out-edges divided among the warps of a block, where what it folds is associative.

Where compute() looks through rows of neighbours, a warp runs it for one vertex, and a vertex with many edges would be
all that some warp does in a superstep. Where an iteration depends on no other, but for accumulators, a block's warps
run compute() together: all run all of it, on the same values, but each takes the edges in turn, and then they join what
they folded. So

    for edge in edges: ...; most = max(most, x); total += y; fell = True

becomes

    begin(); before = total; total = 0
    for turn in turns: edge = ...; ...; most = max(most, x); total += y; fell = True
    most = join_max(most); total = before + join_sum(total); fell = join_max(fell); end()

A warp alone takes all edges, and joins nothing (`kernels/cuda/warp_neighbors.cuh`). The CPU's loops run the
program as it is.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.native.unset import read_before_set

__all__ = ["divided", "divides"]

_EDGES = "range(__edge_begin, __edge_end)"
_PENDING = "__pending_"


def divides(program: VertexProgram) -> bool:
    """Return whether the warps of a block may share a vertex of a program."""
    gathers = program.delivery is not Delivery.DIRECT and program.consumption is not Consumption.LISTED
    return program.reads_neighbors and gathers and divided(program.module) is not None


def divided(module: ast.Module) -> ast.Module | None:
    """Return a program's functions with the loops of compute() over edges divided; None where that cannot be.

    All that compute() writes to edges, and looks for among neighbours, must be in loops that can be. Warps go the same
    way outside these: where one might end a loop or the call before the others, nothing is divided.
    """
    written = copy.deepcopy(module)
    functions = {n.name: n for n in written.body if isinstance(n, ast.FunctionDef)}
    compute = functions["compute"]
    loops = [
        n for n in _outside_loops(compute.body) if isinstance(n, ast.For) and ast.unparse(n.iter) == _EDGES
    ]
    walks = {name for name, f in functions.items() if name != "compute" and _looks(f, frozenset())}
    inside = {id(n) for loop in loops for n in ast.walk(loop)}
    for node in ast.walk(compute):
        looks = isinstance(node, ast.Name) and _looks(node, walks)
        is_elsewhere = id(node) not in inside and (_stores_to_edges(node) or looks)
        if is_elsewhere or (isinstance(node, ast.Name) and node.id == "emit"):
            return None
    if any(map(_may_end_early, (*functions.values(), *loops))):
        return None
    folds = {}
    for loop in loops:
        if not _looks(loop, walks) and not any(map(_stores_to_edges, ast.walk(loop))):
            continue
        found = _folds(loop, loops, compute)
        if found is None:
            return None
        folds[id(loop)] = found
    _Dividing(folds).visit(compute)
    return ast.fix_missing_locations(written) if folds else None


def _may_end_early(node: ast.AST) -> bool:
    """Tell whether a loop over edges, or a function, may go another way in one warp: by an interruption or a fault."""
    parts = list(ast.walk(node))
    if isinstance(node, ast.For):
        return any(isinstance(n, ast.Name) and n.id == "__edge_at" for n in parts)
    inside = {id(n) for loop in parts if isinstance(loop, ast.For) for n in ast.walk(loop)}
    is_compute = isinstance(node, ast.FunctionDef) and node.name == "compute"
    return any(
        isinstance(n, ast.While)
        and not getattr(n, "sigps_ends", False)
        and not (is_compute and id(n) in inside)
        for n in parts
    )


def _outside_loops(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block and of the branches in it; of loops nothing inside."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from _outside_loops([*statement.body, *statement.orelse])


def _looks(node: ast.AST, walks: Iterable[str]) -> bool:
    """Tell whether something looks for common neighbours, itself or by one of these functions."""
    return any(isinstance(n, ast.Name) and n.id in ("__next_common", *walks) for n in ast.walk(node))


def _stores_to_edges(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)


def _folds(loop: ast.For, loops: Sequence[ast.For], compute: ast.FunctionDef) -> dict[str, str] | None:
    """Return how each accumulator of a loop folds: `sum`, `max` or `min`; None where the loop does more."""
    assert isinstance(loop.target, ast.Name)
    position = loop.target.id
    for node in ast.walk(loop):
        if isinstance(node, ast.Return) or (isinstance(node, ast.For) and node.orelse):
            return None
        if _is_of_edges(node) and not (isinstance(node.slice, ast.Name) and node.slice.id == position):
            return None
        if isinstance(node, ast.Call) and any(_is_pending(argument) for argument in node.args):
            return None
    if any(isinstance(n, ast.Break) for n in _of_this_loop(loop.body)):
        return None
    carried = _carried(loop)
    lasting = carried | (_stored(loop.body) & _read_outside(loop, loops, compute))
    folds = {}
    for name in sorted(lasting):
        op = _fold(name, loop.body)
        if op is None:
            return None
        folds[name] = op
    return folds


def _is_pending(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id.startswith(_PENDING)


def _is_of_edges(node: ast.AST) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and (_is_pending(node.value) or isinstance(node.ctx, ast.Store))


def _of_this_loop(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a loop's body; of loops inside it only themselves."""
    return _outside_loops(body)


def _stored(body: Sequence[ast.AST]) -> set[str]:
    return {
        n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _loads(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    return (n for s in nodes for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _carried(loop: ast.For) -> set[str]:
    """Return the names that an iteration may read from the one before."""
    assert isinstance(loop.target, ast.Name)
    return read_before_set(loop.body, _stored(loop.body) - {loop.target.id})


def _read_outside(loop: ast.For, loops: Sequence[ast.For], compute: ast.FunctionDef) -> set[str]:
    """Return the names read outside a loop, but for those that another loop sets in each iteration first."""
    skipped = {id(n) for n in ast.walk(loop)}
    for other in loops:
        own = _stored([other.target, *other.body]) - _carried(other)
        skipped |= {id(n) for n in ast.walk(other) if isinstance(n, ast.Name) and n.id in own}
    return {n.id for n in _loads([compute]) if id(n) not in skipped}


def _fold(name: str, body: Sequence[ast.stmt]) -> str | None:
    """Return how a variable folds; None where it is read or set in other ways."""
    ops: set[str | None] = set()
    read = 0
    of_extremes: set[int] = set()
    for node in (n for s in body for n in ast.walk(s)):  # an `if` before what is in it
        extreme = _extreme(name, node) if isinstance(node, ast.If) else None
        if isinstance(node, ast.If) and extreme is not None:
            ops.add(extreme)
            read += 1
            of_extremes.add(id(node.body[0]))
        if not isinstance(node, (ast.Assign, ast.AugAssign)) or name not in _stored([node]):
            continue
        if id(node) not in of_extremes:
            ops.add(_op(name, node))
            read += sum(n.id == name for n in _loads([node]))
    ops -= {"cast"}
    is_all_read = sum(n.id == name for n in _loads(body)) == read
    return ops.pop() if len(ops) == 1 and is_all_read else None


def _extreme(name: str, node: ast.If) -> str | None:
    """Match `if x > name: name = x`, perhaps cast after that, and its mirror images."""
    (statement, *casts), test = node.body, node.test
    if not isinstance(statement, ast.Assign) or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    if any(not isinstance(c, ast.Assign) or _op(name, c) != "cast" for c in casts):
        return None
    if node.orelse or ast.unparse(statement.targets[0]) != name:
        return None
    sides, value = [ast.unparse(test.left), ast.unparse(test.comparators[0])], ast.unparse(statement.value)
    is_less = isinstance(test.ops[0], (ast.Lt, ast.LtE))
    if not is_less and not isinstance(test.ops[0], (ast.Gt, ast.GtE)):
        return None
    if any(n.id == name for n in _loads([statement.value])):
        return None
    if sides == [value, name]:
        return "min" if is_less else "max"
    return ("max" if is_less else "min") if sides == [name, value] else None


def _op(name: str, node: ast.Assign | ast.AugAssign) -> str | None:
    """Return how a statement sets a variable: `sum`, `max`, `min` or `cast`; None for any other way."""
    value = node.value
    if isinstance(node, ast.AugAssign):
        is_sum = isinstance(node.op, ast.Add) and not any(n.id == name for n in _loads([value]))
        return "sum" if is_sum else None
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return "max" if value.value else "min"
    parts, op = _parts(value)
    reads = [any(n.id == name for n in _loads([part])) for part in parts]
    own = [isinstance(part, ast.Name) and part.id == name for part in parts]
    if op == "cast":
        return "cast" if own == [True] else None
    return op if len(parts) == 2 and sum(own) == sum(reads) == 1 else None


def _parts(value: ast.expr) -> tuple[list[ast.expr], str | None]:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [value.left, value.right], "sum"
    if isinstance(value, ast.BoolOp) and all(map(_is_truth, value.values[1:])):
        return value.values, "max" if isinstance(value.op, ast.Or) else "min"
    if isinstance(value, ast.Call):
        called = ast.unparse(value.func)
        if called in ("max", "min") and not value.keywords:
            return value.args, called
        if called.startswith("__np.") and len(value.args) == 1:
            return value.args, "cast"
    return [value], None


def _is_truth(node: ast.expr) -> bool:
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return (
        is_not
        or isinstance(node, ast.Compare)
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "bool")
    )


class _Dividing(ast.NodeTransformer):
    """Replaces loops by divided ones."""

    def __init__(self, folds: Mapping[int, dict[str, str]]) -> None:
        self._folds, self._count = folds, 0

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        folds = self._folds.get(id(node))
        if folds is None:
            return node
        self._count += 1
        turn = f"__turn{self._count}"
        sums = [name for name, op in folds.items() if op == "sum"]
        casts = {name: _cast(name, node.body) for name in folds}
        before = ["__team_begin(__marks)", *(f"__before_{n} = {n}\n{n} = 0" for n in sums)]
        joins = []
        for name, op in folds.items():
            joined = f"__team_{op}(__marks, {name})"
            joins.append(f"{name} = __before_{name} + {joined}" if op == "sum" else f"{name} = {joined}")
        assert isinstance(node.target, ast.Name)
        position = f"{node.target.id} = __team_edge(__marks, __edge_begin, {turn})"
        node.body = [*_statements(position, node), *node.body]
        node.target = ast.copy_location(ast.Name(turn, ast.Store()), node.target)
        turns = _statements("range(__team_turns(__marks, __edge_begin, __edge_end))", node)[0]
        assert isinstance(turns, ast.Expr)
        node.iter = turns.value
        after = [*joins, *(text for text in casts.values() if text), "__team_end(__marks)"]
        return [*_statements("\n".join(before), node), node, *_statements("\n".join(after), node)]


def _cast(name: str, body: Sequence[ast.stmt]) -> str:
    """Return the statement that casts a variable to its type in a loop; empty where there is none."""
    for statement in (n for s in body for n in ast.walk(s)):
        if not isinstance(statement, ast.Assign) or ast.unparse(statement.targets[0]) != name:
            continue
        if _op(name, statement) == "cast":
            return ast.unparse(statement)
    return ""


def _statements(text: str, place: ast.AST) -> list[ast.stmt]:
    found = ast.parse(text).body
    for node in (n for s in found for n in ast.walk(s)):
        if "lineno" in node._attributes:
            ast.copy_location(node, place)
        if hasattr(place, "sigps_file"):
            node.sigps_file = place.sigps_file  # type: ignore[attr-defined]
    return found
