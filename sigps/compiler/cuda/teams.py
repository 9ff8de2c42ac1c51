"""A vertex's loops over its edges and messages divided among the warps or threads of a block.

A vertex with many edges or messages would be all that some thread does in a superstep, and others would wait for it.
Where an iteration depends on no other, but for accumulators that are joined, a block runs compute() of such a vertex
together. All members of this team run all of it, on the same values, but each takes the turns of a divided loop that
are its own, and then they join what they folded. So

    for edge in edges: ...; most = max(most, x); total += y; fell = True

becomes

    meet(); before = total; total = 0
    for turn in turns: edge = ...; ...; most = max(most, x); total += y; fell = True
    most = joined by max; total = before + join_sum(total); fell = joined by max; meet()

The same is done to reductions that are functions, and only one of the team sends what is sent outside these loops.

Members are warps where compute() looks through rows of neighbours, which takes a warp for a vertex anyway. They are
threads where messages are listed, or where compute() goes through edges and messages are combined. A member alone
takes all turns, and joins nothing (`kernels/cuda/team.cuh`). The CPU's loops run the program as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

from sigps.compiler.program import Consumption, Delivery, VertexProgram, join_of
from sigps.native.trees import copied, parse, walk
from sigps.native.unset import read_before_set

__all__ = ["divided", "divided_for", "divides", "fold_of", "statements_at"]

TEAM = "__team"
"""What the functions of a team take: the last argument of compute()."""

_EDGES, _MESSAGES = ("__edge_begin", "__edge_end"), ("__begin", "__end")
_TURNS = {_EDGES: ("__team_edge_turns", "__team_edge"), _MESSAGES: ("__team_turns", "__team_turn")}
_PENDING = "__pending_"


def divides(program: VertexProgram) -> bool:
    """Return whether a team may run a vertex of a program."""
    is_listed = program.consumption is Consumption.LISTED
    if program.reads_neighbors:
        return not is_listed and program.delivery is not Delivery.DIRECT and _divided(program) is not None
    if not (is_listed or _walks_alone(program)):
        return False
    has_vectors = any(d.shape for d in (*program.message_dtypes, *program.state_dtypes))
    return not program.is_deterministic and not has_vectors and _divided(program) is not None


def _walks_alone(program: VertexProgram) -> bool:
    """Tell whether compute() walks edges, and its messages are combined."""
    is_together = program.consumption not in (Consumption.LISTED, Consumption.GROUPED)
    return is_together and program.reads_edges


def _divided(program: VertexProgram) -> ast.Module | None:
    return divided_for(program, program.module)


def divided_for(program: VertexProgram, module: ast.Module) -> ast.Module | None:
    """Return what `divided` returns of a program's functions."""
    return divided(module, by_warp=program.reads_neighbors, shares_edges=_walks_alone(program))


def divided(module: ast.Module, *, by_warp: bool, shares_edges: bool = False) -> ast.Module | None:
    """Return a program's functions for members of a team; None where they cannot be one.

    All that compute() writes to edges, and looks for among neighbours, must be in loops that can be divided. Members go
    the same way outside these: where one might end a loop or the call before the others, nothing is divided.

    Args:
        module: The functions.
        by_warp: Whether members are warps, which share loops over edges alone; else threads.
        shares_edges: Whether loops over edges suffice for threads to share a vertex; else one over messages must be.
    """
    written = copied(module)
    functions = {n.name: n for n in written.body if isinstance(n, ast.FunctionDef)}
    compute = functions["compute"]
    walks = {name for name, f in functions.items() if name != "compute" and _looks(f, frozenset())}
    sends = {name for name, f in functions.items() if name != "compute" and _names(f, {"emit"})}
    if (_names(compute, {"emit"}) and by_warp) or _names(compute, sends):
        return None
    folds = {}
    for loop, after in _loops(compute.body, []):
        if by_warp and (_span(loop) != _EDGES or not _must_be_divided(loop, walks)):
            continue
        found = _folds(loop, after)
        if found is None and _must_be_divided(loop, walks):
            return None
        if found is not None:
            folds[id(loop)] = (loop, found)
    inside = {id(n) for loop, _ in folds.values() for n in walk(loop)}
    outside = [n for n in walk(compute) if id(n) not in inside]
    if any(_stores_to_edges(n) or (isinstance(n, ast.Name) and _looks(n, walks)) for n in outside):
        return None
    if any(map(_may_end_early, (*functions.values(), *(loop for loop, _ in folds.values())))):
        return None
    joined = set() if by_warp else _joined(functions, inside)
    suffices = by_warp or shares_edges
    shares = joined or any(suffices or _span(loop) == _MESSAGES for loop, _ in folds.values())
    if not shares:
        return None
    _Dividing({key: found for key, (_, found) in folds.items()}, joined).visit(compute)
    compute.args.args.append(ast.arg(TEAM))
    for name in joined:
        _divide_reduction(functions[name])
    return ast.fix_missing_locations(written)


def _span(loop: ast.AST) -> tuple[str, str] | None:
    """Return the names of the first and last positions of a loop over edges or messages."""
    if isinstance(loop, ast.For):
        for span in _TURNS:
            if ast.unparse(loop.iter) == f"range({', '.join(span)})":
                return span
    return None


def _loops(body: Sequence[ast.stmt], after: list[ast.stmt]) -> Iterator[tuple[ast.For, list[ast.stmt]]]:
    """Yield the loops over edges and messages that are in no other loop, and what may run after each."""
    for i, statement in enumerate(body):
        rest = [*body[i + 1 :], *after]
        if isinstance(statement, ast.For) and _span(statement) is not None:
            yield statement, rest
        elif isinstance(statement, ast.If):
            yield from _loops(statement.body, rest)
            yield from _loops(statement.orelse, rest)


def _must_be_divided(node: ast.AST, walks: Iterable[str]) -> bool:
    """Tell whether something looks for common neighbours or writes to edges, which one member alone may do."""
    return _looks(node, walks) or any(map(_stores_to_edges, walk(node)))


def _names(node: ast.AST, names: Iterable[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in walk(node))


def _joined(functions: Mapping[str, ast.FunctionDef], inside: set[int]) -> set[str]:
    """Return the reductions that a team shares: all members call them, from outside of divided loops."""
    compute = functions["compute"]
    found = {
        name
        for name, f in functions.items()
        if join_of(f) is not None and any(_span(statement) is not None for statement in f.body)
    }
    for name, f in functions.items():
        calls = {n.id for n in walk(f) if isinstance(n, ast.Name) and (name != "compute" or id(n) in inside)}
        found -= calls - {name}
    return {name for name in found if _names(compute, {name})}


def _may_end_early(node: ast.AST) -> bool:
    """Tell whether a loop over edges, or a function, may go another way in one warp: by an interruption or a fault."""
    parts = list(walk(node))
    if isinstance(node, ast.For):
        return any(isinstance(n, ast.Name) and n.id == "__edge_at" for n in parts)
    inside = {id(n) for loop in parts if isinstance(loop, ast.For) for n in walk(loop)}
    is_compute = isinstance(node, ast.FunctionDef) and node.name == "compute"
    return any(
        isinstance(n, ast.While)
        and not getattr(n, "sigps_ends", False)
        and not (is_compute and id(n) in inside)
        for n in parts
    )


def _looks(node: ast.AST, walks: Iterable[str]) -> bool:
    """Tell whether something looks for common neighbours, itself or by one of these functions."""
    return any(isinstance(n, ast.Name) and n.id in ("__next_common", *walks) for n in walk(node))


def _stores_to_edges(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)


def _folds(loop: ast.For, after: Sequence[ast.stmt]) -> dict[str, str] | None:
    """Return how each accumulator of a loop folds: `sum`, `max` or `min`; None where the loop does more."""
    assert isinstance(loop.target, ast.Name)
    position = loop.target.id
    for node in walk(loop):
        if isinstance(node, ast.Return) or (isinstance(node, ast.For) and node.orelse):
            return None
        if _is_of_edges(node) and not (isinstance(node.slice, ast.Name) and node.slice.id == position):
            return None
        if isinstance(node, ast.Call) and any(_is_pending(argument) for argument in node.args):
            return None
    if any(isinstance(n, ast.Break) for n in _of_this_loop(loop.body)):
        return None
    carried = _carried(loop)
    lasting = carried | read_before_set(after, _stored([loop]))
    folds = {}
    for name in sorted(lasting):
        op = fold_of(name, loop.body)
        if op is None:
            return None
        folds[name] = op
    return folds


def _is_pending(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id.startswith(_PENDING)


def _is_of_edges(node: ast.AST) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and (_is_pending(node.value) or isinstance(node.ctx, ast.Store))


def _of_this_loop(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a loop's body, and of the branches in it; of loops inside it only themselves."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from _of_this_loop([*statement.body, *statement.orelse])


def _stored(body: Sequence[ast.AST]) -> set[str]:
    return {n.id for s in body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _loads(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    return (n for s in nodes for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _carried(loop: ast.For) -> set[str]:
    """Return the names that an iteration may read from the one before."""
    assert isinstance(loop.target, ast.Name)
    return read_before_set(loop.body, _stored(loop.body) - {loop.target.id})


def fold_of(name: str, body: Sequence[ast.stmt]) -> str | None:
    """Return how a variable folds; None where it is read or set in other ways."""
    ops: set[str | None] = set()
    read = 0
    of_extremes: set[int] = set()
    for node in (n for s in body for n in walk(s)):  # an `if` before what is in it
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
    parts, op = _parts(_unwrapped(value))
    reads = [any(n.id == name for n in _loads([part])) for part in parts]
    own = [isinstance(part, ast.Name) and part.id == name for part in parts]
    if op == "cast":
        return "cast" if own == [True] else None
    return op if len(parts) == 2 and sum(own) == sum(reads) == 1 else None


def _unwrapped(value: ast.expr) -> ast.expr:
    """Return what a cast is of, where that is no variable; of `bool(a or b)` also truth values."""
    while isinstance(value, ast.Call) and len(value.args) == 1 and not isinstance(value.args[0], ast.Name):
        called, inner = ast.unparse(value.func), value.args[0]
        if called == "bool" and isinstance(inner, ast.BoolOp):
            truths = [inner.values[0], *(_truth(v) for v in inner.values[1:])]
            return ast.BoolOp(inner.op, truths)
        if not called.startswith("__np."):
            break
        value = inner
    return value


def _truth(value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("bool", ast.Load()), [value], [])


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
    """Replaces loops by divided ones; outside of these, lets one member send, and calls joined reductions.

    Args:
        folds: How each accumulator folds, by the loop's identity.
        joined: The reductions that the team shares.
    """

    def __init__(self, folds: Mapping[int, dict[str, str]], joined: Iterable[str]) -> None:
        self._folds, self._joined, self._count = folds, joined, 0

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        folds = self._folds.get(id(node))
        if folds is None:
            return self.generic_visit(node)
        self._count += 1
        sums = [name for name, op in folds.items() if op == "sum"]
        casts = {name: _cast(name, node.body) for name in folds}
        before = [f"__team_meet({TEAM})", *(f"__before_{n} = {n}\n{n} = 0" for n in sums)]
        joins = []
        for name, op in folds.items():
            if op == "sum":
                joins.append(f"{name} = __before_{name} + __team_sum({TEAM}, {name})")
            else:  # as a whole: a record goes by its first field that differs
                joins.append(
                    f"for __step in range(__team_steps({TEAM})):\n"
                    f"    __other_{name} = __team_step({TEAM}, __step, {name})\n"
                    f"    if __other_{name} {'<' if op == 'min' else '>'} {name}:\n"
                    f"        {name} = __other_{name}"
                )
        _take_turns(node, f"__turn{self._count}")
        after = [*joins, *(text for text in casts.values() if text), f"__team_meet({TEAM})"]
        return [*statements_at("\n".join(before), node), node, *statements_at("\n".join(after), node)]

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        if not _names(node, {"emit"}):
            return node
        (guarded,) = statements_at(f"if __team_leads({TEAM}): pass", node)
        assert isinstance(guarded, ast.If)
        guarded.body = [node]
        return guarded

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self._joined:
            node.args.append(ast.copy_location(ast.Name(TEAM, ast.Load()), node))
        return node


def _take_turns(loop: ast.For, turn: str) -> None:
    """Let a loop over positions take every so manieth."""
    span = _span(loop)
    assert span is not None
    assert isinstance(loop.target, ast.Name)
    turns, position = _TURNS[span]
    loop.body = [
        *statements_at(f"{loop.target.id} = {position}({TEAM}, {turn}, {span[0]})", loop),
        *loop.body,
    ]
    loop.target = ast.copy_location(ast.Name(turn, ast.Store()), loop.target)
    (every,) = statements_at(f"range({turns}({TEAM}, {', '.join(span)}))", loop)
    assert isinstance(every, ast.Expr)
    loop.iter = every.value


def _divide_reduction(function: ast.FunctionDef) -> None:
    """Let each member reduce its turns; then all take what another has into their own, step by step."""
    join = join_of(function)
    assert join is not None
    function.args.args.append(ast.arg(TEAM))
    at = next(i for i, statement in enumerate(function.body) if _span(statement) is not None)
    loop = function.body[at]
    assert isinstance(loop, ast.For)
    _take_turns(loop, "__turn")
    others = [f"__team_step({TEAM}, __step, {name})" for name in join.kept]
    update = [f"__x = {others[0] if len(others) == 1 else '(' + ', '.join(others) + ')'}"]
    if join.is_found:
        took = "\n".join(f"    {line}" for line in join.update.splitlines())
        update = [f"__has = __team_step({TEAM}, __step, __found)", *update, f"if __has:\n{took}"]
    else:
        update.append(join.update)
    body = "\n".join(f"    {line}" for text in update for line in text.splitlines())
    after = [f"for __step in range(__team_steps({TEAM})):\n{body}"]
    before = []
    if join.is_sum:
        (name,) = join.kept
        before = [f"__before = {name}\n{name} = 0"]
        after.append(f"{name} = __before + {name}")
    function.body[at + 1 : at + 1] = statements_at("\n".join(after), loop)
    function.body[at:at] = statements_at("\n".join(before), loop)


def _cast(name: str, body: Sequence[ast.stmt]) -> str:
    """Return the statement that casts a variable to its type in a loop; empty where there is none."""
    for statement in (n for s in body for n in walk(s)):
        if not isinstance(statement, ast.Assign) or ast.unparse(statement.targets[0]) != name:
            continue
        if _op(name, statement) == "cast":
            return ast.unparse(statement)
    return ""


def statements_at(text: str, place: ast.AST) -> list[ast.stmt]:
    """Return the statements of a text, at the line of another node."""
    found = parse(text).body
    for node in (n for s in found for n in walk(s)):
        if "lineno" in node._attributes:
            ast.copy_location(node, place)
        if hasattr(place, "sigps_file"):
            node.sigps_file = place.sigps_file  # type: ignore[attr-defined]
    return found
