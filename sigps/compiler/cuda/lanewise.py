"""Common neighbours looked at by the lanes of a warp at once, and not one after another by all of them.

All lanes of a warp run compute() of a vertex that looks through rows of neighbours, with the same values, so a loop
over `common_neighbors` takes its turns one after another. Where a turn does nothing but count, and take minima and
maxima, each lane takes one, of what 32 lanes find at a time:

    for one, other in common:                  for up to 32 at a time, one a lane: one = mine, other = mine
        if one.x >= k:                             if one.x >= k:
            n += 1                                     found = True
            if n == k:                             n += lanes that found
                break                              if n passed k: n = k; leave

Nothing in such a turn has a fault, since a lane that had one would go another way than the rest. What is found is the
same: whole numbers are counted, and minima and maxima have no order.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from sigps.compiler.cuda.teams import divides, fold_of, statements_at
from sigps.compiler.program import VertexProgram
from sigps.native.trees import copied, walk
from sigps.native.unset import read_before_set

__all__ = ["by_lanes", "shares_all"]

_NEXT, _LANES_NEXT = "__next_common", "__lanes_next"
_IDS = ("__edge_ids[", "__edge_gids[", "__row_targets[")
_ARRAYS = ("__edge_ids", "__edge_gids", "__row_targets", "__committed_", "__pending_")
"""What a turn may read: its vertex and edge are there."""


def by_lanes(module: ast.Module) -> ast.Module:
    """Return a program's functions with those loops over common neighbours divided among lanes that can be."""
    written = copied(module)
    for function in written.body:
        if isinstance(function, ast.FunctionDef):
            _Lanes(function).visit(function)
    return ast.fix_missing_locations(written)


def shares_all(program: VertexProgram) -> bool:
    """Return whether lanes, and warps of a block, share what a program looks for among neighbours."""
    looks = {n.id for n in walk(by_lanes(program.module)) if isinstance(n, ast.Name)}
    return _NEXT not in looks and divides(program)


class _Lanes(ast.NodeTransformer):
    """Divides the loops of one function."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self._function = function

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        body = _turn(node)
        if body is None:
            return self.generic_visit(node)
        found = _divided(node, body, self._function)
        return node if found is None else found


def _turn(loop: ast.While) -> list[ast.stmt] | None:
    """Return what a loop over common neighbours does for each of them; None of any other loop."""
    if len(loop.body) < 2 or loop.orelse:
        return None
    first, end = loop.body[:2]
    is_walk = (
        isinstance(first, ast.Assign)
        and isinstance(first.value, ast.Call)
        and ast.unparse(first.value.func) == _NEXT
        and isinstance(end, ast.If)
    )
    return loop.body[2:] if is_walk else None


def _divided(loop: ast.While, turn: Sequence[ast.stmt], function: ast.FunctionDef) -> list[ast.stmt] | None:
    """Return a loop divided among lanes; None where it cannot be."""
    call = copied(loop.body[0])
    assert isinstance(call, ast.Assign)
    assert isinstance(call.value, ast.Call)
    at = [n.id for n in walk(call.targets[0]) if isinstance(n, ast.Name)]
    body = _with_steps(copied(list(turn)))
    stop = _take_stop(body)
    counts, extremes = [], {}
    for name in sorted(_lasting(loop, _stored(body) - set(at), function)):
        op = None if _counts(name, body) else fold_of(name, body)
        if op is None and _counts(name, body):
            counts.append(name)
        elif op in ("min", "max"):
            extremes[name] = op
        else:
            return None
    if not all(map(_is_plain, body)):
        return None
    leaving = ""
    if stop is not None:
        name, bound = stop
        if (
            counts != [name]
            or extremes
            or _stored(body) & {n.id for n in walk(bound) if isinstance(n, ast.Name)}
        ):
            return None
        k = ast.unparse(bound)
        leaving = (
            f"    if __before_{name} < {k} and {name} >= {k} and __np.int64({k}) == {k}:\n"
            f"        {name} = __np.int64({k})\n        break\n"
        )
    (made,) = statements_at(
        "while True:\n"
        "    pass\n"
        f"    if {at[0]} == __edge_end:\n        break\n"
        + "".join(f"    __before_{n} = {n}\n    __one_{n} = False\n" for n in counts)
        + f"    if {at[0]} < __edge_end:\n        for __once in range(1):\n            pass\n"
        + "".join(f"    {n} += __lanes_count(__one_{n})\n" for n in counts)
        + leaving,
        loop,
    )
    assert isinstance(made, ast.While)
    call.value.func = ast.copy_location(ast.Name(_LANES_NEXT, ast.Load()), call.value.func)
    made.body[0] = call
    once = next(n for n in walk(made) if isinstance(n, ast.For))
    once.body = [_Marking(counts).visit(statement) for statement in body]
    made.sigps_ends = True  # type: ignore[attr-defined]
    joins = "".join(
        f"for __step in range(5):\n"
        f"    __other_{name} = __lanes_step(__step, {name})\n"
        f"    if __other_{name} {'<' if op == 'min' else '>'} {name}:\n"
        f"        {name} = __other_{name}\n"
        for name, op in extremes.items()
    )
    return [made, *statements_at(joins, loop)]


def _lasting(loop: ast.While, stored: set[str], function: ast.FunctionDef) -> set[str]:
    """Return which of the names that a loop sets are read in its next turn, or outside of it."""
    everywhere, inside = _counted(function), _counted(loop)
    return read_before_set(loop.body, stored) | {n for n in stored if everywhere[n] > inside[n]}


def _counted(node: ast.AST) -> Counter[str]:
    return Counter(n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _with_steps(body: list[ast.stmt]) -> list[ast.stmt]:
    """Write `x = 1; n = n + x`, as reductions have it, as `n += 1`."""
    ones = {
        ast.unparse(s.targets[0]) for s in body if isinstance(s, ast.Assign) and ast.unparse(s.value) == "1"
    }
    for i, s in enumerate(body):
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.BinOp) and isinstance(s.value.op, ast.Add):
            name = ast.unparse(s.targets[0])
            if ast.unparse(s.value.left) == name and ast.unparse(s.value.right) in {*ones, "1"} - {name}:
                body[i : i + 1] = statements_at(f"{name} += 1", s)
    return body


def _take_stop(body: list[ast.stmt]) -> tuple[str, ast.expr] | None:
    """Take `if n == k: break` away, right behind `n += 1`; return n and k, or None where there is none."""
    for block in _blocks(body):
        for before, statement in itertools.pairwise(block):
            if not isinstance(statement, ast.If) or [type(s) for s in statement.body] != [ast.Break]:
                continue
            test = statement.test
            is_equal = isinstance(test, ast.Compare) and [type(op) for op in test.ops] == [ast.Eq]
            if not is_equal or statement.orelse or _added_to(before) is None:
                continue
            assert isinstance(test, ast.Compare)
            name, sides = _added_to(before), [test.left, test.comparators[0]]
            others = [s for s in sides if ast.unparse(s) != name]
            if len(others) == 1 and _has_no_fault(others[0]):
                block.remove(statement)
                assert name is not None
                return name, others[0]
    return None


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    yield body
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _blocks(statement.body)
            yield from _blocks(statement.orelse)


def _added_to(statement: ast.stmt) -> str | None:
    """Return the name of n in `n += 1`."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        is_one = isinstance(statement.value, ast.Constant) and statement.value.value is not True
        if isinstance(statement.target, ast.Name) and is_one and statement.value.value == 1:  # type: ignore[attr-defined]
            return statement.target.id
    return None


def _counts(name: str, body: Sequence[ast.stmt]) -> bool:
    """Tell whether a turn does no more to a variable than add 1 to it, once."""
    uses = [n for s in body for n in walk(s) if isinstance(n, ast.Name) and n.id == name]
    adds = [n for s in body for n in walk(s) if isinstance(n, ast.stmt) and _added_to(n) == name]
    return len(uses) == len(adds) == 1


class _Marking(ast.NodeTransformer):
    """Marks that a lane counts, where it would."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        name = _added_to(node)
        return statements_at(f"__one_{name} = True", node)[0] if name in self._names else node


def _is_plain(statement: ast.stmt) -> bool:
    """Tell whether a statement of a turn has no fault, no lane waits in it, and only the next turn comes behind it."""
    if isinstance(statement, ast.If):
        return _has_no_fault(statement.test) and all(map(_is_plain, [*statement.body, *statement.orelse]))
    if isinstance(statement, ast.Assign):
        are_names = all(isinstance(target, ast.Name) for target in statement.targets)
        return are_names and _has_no_fault(statement.value)
    if isinstance(statement, ast.AugAssign):
        return _added_to(statement) is not None or ast.unparse(statement.value) == "__np.uint64(1)"
    return isinstance(statement, (ast.Pass, ast.Continue))


def _has_no_fault(value: ast.expr) -> bool:
    if isinstance(value, (ast.Name, ast.Constant)):
        return True
    if isinstance(value, ast.Subscript):
        return ast.unparse(value.value).startswith(_ARRAYS) and _has_no_fault(value.slice)
    if isinstance(value, ast.Call) and not value.keywords:
        called = ast.unparse(value.func)
        is_cast = called == "__np.int64" and ast.unparse(value.args[0]).startswith(_IDS)
        return (called in ("min", "max") or is_cast) and all(map(_has_no_fault, value.args))
    if isinstance(value, ast.UnaryOp) and not isinstance(value.op, ast.Not):
        return False
    if not isinstance(value, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        return False
    return all(_has_no_fault(part) for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr))


def _stored(nodes: Sequence[ast.AST]) -> set[str]:
    return {n.id for s in nodes for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
