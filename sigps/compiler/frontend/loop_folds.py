"""What a loop over messages does with each, where the order of messages does not matter.

    for m in messages: total += m.x                                   a fold
    for m in messages: if m.d < best: best, who = m.d, m.sender       takes the message of the best key
    for m in messages: if m.kind == 1: self.x = m.x; break            takes one message of a kind
    for m in messages: if m.kind == 1: found = True                   does something once, if any is of a kind

The order of messages is unspecified, so a loop that takes one of several equally good ones may take any. By rule it
takes the one that it would take if they came in ascending order, compared field by field as they are declared.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from sigps.compiler.frontend.reading import NotCombinableError
from sigps.compiler.frontend.syntax import assigned_names, is_self, loaded_names, substitute
from sigps.native.trees import copied, walk

__all__ = ["Fold", "Once", "Take", "as_load", "as_store", "read_loop"]

MORE = "the loop over messages does more than fold them"
STOPS = "the loop over messages stops at one, and does something else with others"


@dataclass
class Fold:
    """An accumulator: `target = op(target, element)` for each message under the conditions.

    Attributes:
        op: `sum`, `difference`, `prod`, `min`, `max`, `any`, `all`, `or`, `and`, `xor`; `minimum` or `maximum`, which a
            call of a module's function is named: NumPy's, if it folds.
    """

    op: str
    target: ast.expr
    element: ast.expr
    conditions: list[ast.expr]
    node: ast.stmt


@dataclass
class Take:
    """One message under the conditions, with which `body` runs once; none where there is none.

    Attributes:
        op: `min` or `max` of the key.
        key: The key's parts; none where any message does.
        test: What also holds before `body` runs: that the key is better than the accumulator.
        is_strict: Whether the best key of a type's values passes no test.
    """

    op: str
    key: list[ast.expr]
    test: ast.expr | None
    is_strict: bool
    body: list[ast.stmt]
    conditions: list[ast.expr]
    node: ast.stmt


@dataclass
class Once:
    """Statements that do not depend on the message, run once if there is any under the conditions."""

    body: list[ast.stmt]
    conditions: list[ast.expr]
    node: ast.stmt


def read_loop(loop: ast.For, read_outside: set[str]) -> list[Fold | Take | Once]:
    """Return what a loop over messages does, in the order of its statements.

    Args:
        loop: The loop.
        read_outside: The names that are read outside it.

    Raises:
        NotCombinableError: If it is not made of such parts, with the line that stands in the way.
    """
    walk = _Walk(loop, read_outside)
    walk.block(loop.body, [], {}, is_tail=True)
    walk.check()
    return walk.found


@dataclass
class _Walk:
    loop: ast.For
    read_outside: set[str]
    found: list[Fold | Take | Once] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._of_message = assigned_names([self.loop.target])

    def block(
        self,
        body: Sequence[ast.stmt],
        conditions: list[ast.expr],
        temporaries: dict[str, ast.expr],
        *,
        is_tail: bool,
    ) -> None:
        """Read a block; `temporaries` are the values of locals that live in one iteration, `is_tail` if it ends one."""
        for i, statement in enumerate(body):
            is_last = i == len(body) - 1
            if isinstance(statement, ast.Pass) or (
                isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            ):
                continue
            if isinstance(statement, ast.Continue) and is_tail and is_last:
                continue
            if _changed_by(statement) & set(temporaries):
                raise NotCombinableError(statement, MORE)  # a number of a vector that lives in one iteration
            value = substitute(statement, temporaries)
            if self._is_temporary(statement, temporaries):
                assert isinstance(value, ast.Assign)
                self._bind(statement, value.value, temporaries)
            elif isinstance(statement, ast.If) and (_skips(statement) or not _leaves(body)):
                conditions = self._branch(statement, conditions, temporaries, is_tail, is_last)
            elif _leaves(body):
                self._take_any(body[i:], conditions, temporaries)
                return
            else:
                self._statement(value, conditions)

    def _branch(
        self,
        node: ast.If,
        conditions: list[ast.expr],
        temporaries: dict[str, ast.expr],
        is_tail: bool,
        is_last: bool,
    ) -> list[ast.expr]:
        """Read an `if`; return the conditions under which the block goes on after it."""
        written = substitute(node, temporaries)
        test = written.test
        if not node.orelse and self._take_best(written, conditions):
            return conditions
        if not node.orelse and _leaves(node.body):
            if not (is_tail and is_last):
                raise NotCombinableError(node, STOPS)
            self._take_any(node.body, [*conditions, test], temporaries)
            return conditions
        negated = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
        inner = is_tail and is_last
        skips = _skips(node)
        if skips and not is_tail:
            raise NotCombinableError(node, MORE)
        body = node.body[:-1] if skips else node.body
        branches = [(body, test), (node.orelse, negated)]
        for branch, condition in branches:
            inside = dict(temporaries)
            self.block(branch, [*conditions, condition], inside, is_tail=inner or (skips and branch is body))
            for name in inside:
                if inside[name] is not temporaries.get(name):
                    temporaries.pop(name, None)
        return [*conditions, negated] if skips else conditions

    # Locals of one iteration.

    def _is_temporary(self, statement: ast.stmt, temporaries: Mapping[str, ast.expr]) -> bool:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        names = assigned_names(statement.targets)
        is_plain = all(isinstance(n, (ast.Name, ast.Tuple)) for n in _parts(statement.targets[0]))
        if not names or not is_plain or names & (self.read_outside | self._of_message):
            return False
        return not (loaded_names([statement.value]) & names - set(temporaries))

    def _bind(self, statement: ast.stmt, value: ast.expr, temporaries: dict[str, ast.expr]) -> None:
        (target,) = statement.targets  # type: ignore[attr-defined]
        if isinstance(target, ast.Name):
            temporaries[target.id] = value
            return
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
            raise NotCombinableError(statement, MORE)
        temporaries |= {name.id: part for name, part in zip(target.elts, value.elts, strict=True)}

    # Statements.

    def _statement(self, statement: ast.stmt, conditions: list[ast.expr]) -> None:
        update = _update(statement)
        if update is not None and isinstance(update[1], ast.Subscript):
            raise NotCombinableError(
                statement, MORE
            )  # a part of a vector: which one may depend on the message
        if update is not None:
            self.found.append(Fold(*update, conditions, statement))
            return
        is_plain = isinstance(statement, ast.Assign) and not (
            loaded_names([statement.value, *statement.targets]) & self._of_message
        )
        if not is_plain:
            raise NotCombinableError(statement, MORE)
        last = self.found[-1] if self.found else None
        if isinstance(last, Once) and last.conditions == conditions:
            last.body.append(statement)
        else:
            self.found.append(Once([statement], conditions, statement))

    def _take_any(
        self,
        body: Sequence[ast.stmt],
        conditions: list[ast.expr],
        temporaries: Mapping[str, ast.expr],
    ) -> None:
        """Read statements that end the loop: they run once, with any message."""
        if self.found:
            raise NotCombinableError(body[0], STOPS)
        written = [substitute(s, temporaries) for s in body]
        if isinstance(written[-1], ast.Break):
            written.pop()
        for node in (n for s in written for n in walk(s)):
            if isinstance(node, (ast.Break, ast.Continue)):
                raise NotCombinableError(body[0], STOPS)
        if any(set(temporaries) & (_changed_by(s) | assigned_names([s])) for s in body):
            raise NotCombinableError(body[0], MORE)
        self.found.append(Take("min", [], None, True, written, conditions, body[-1]))

    def _take_best(self, node: ast.If, conditions: list[ast.expr]) -> bool:
        """Read `if key < best: best = key; who = m.sender`, its mirror images, and `if condition and key < best`."""
        tests = list(node.test.values) if isinstance(node.test, ast.BoolOp) else [node.test]
        if isinstance(node.test, ast.BoolOp) and not isinstance(node.test.op, ast.And):
            return False
        values = _assignments(node.body)
        if values is None:
            return False
        for i, test in enumerate(tests):
            found = _better(test, values)
            if found is None:
                continue
            op, key, best, is_strict = found
            others = tests[:i] + tests[i + 1 :]
            if len(values) == 1 and len(best) == 1:
                self.found.append(Fold(op, best[0], key[0], [*conditions, *others], node))
                return True
            stored = set(values)
            for part in [*values.values(), *others]:
                if any(ast.dump(n) in stored for n in walk(part)):
                    return False
            self.found.append(Take(op, key, test, is_strict, node.body, [*conditions, *others], node))
            return True
        return False

    def check(self) -> None:
        """Refuse what one part of the loop changes and another one reads or changes."""
        owners: dict[str, int] = {}
        for i, part in enumerate(self.found):
            for target in _stored(part):
                before = self.found[owners.setdefault(ast.dump(target), i)]
                is_one = isinstance(part, Fold) and isinstance(before, Fold) and part.op == before.op
                if before is not part and not is_one:
                    raise NotCombinableError(
                        part.node,
                        f"the loop folds {ast.unparse(target)} in two ways, and their order matters",
                    )
        changed = {ast.dump(_owner(n)) for s in self.loop.body for n in walk(s) if _is_stored(n)}
        for part in self.found:
            for node in (n for value in _read(part) for n in walk(value)):
                if isinstance(node, (ast.Name, ast.Attribute)) and ast.dump(node) in changed:
                    raise NotCombinableError(
                        part.node,
                        f"what the loop does with a message depends on {ast.unparse(node)}, which it changes",
                    )


def _is_stored(node: ast.AST) -> TypeGuard[ast.expr]:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)


def _owner(target: ast.expr) -> ast.expr:
    """Return what an assignment to a target changes, as it is read: of `v[i]` it is `v`."""
    while isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and not is_self(target)):
        target = target.value
    return as_load(target)


def _changed_by(statement: ast.stmt) -> set[str]:
    """Return the variables of which a statement, without what is in its blocks, assigns a part."""
    if not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    parts = [
        part for target in targets for part in _parts(target) if not isinstance(part, (ast.Name, ast.Tuple))
    ]
    return {owner.id for owner in map(_owner, parts) if isinstance(owner, ast.Name)}


def _read(part: Fold | Take | Once) -> list[ast.expr]:
    if isinstance(part, Fold):
        return [part.element, *part.conditions]
    assignments = [s for s in part.body if isinstance(s, ast.Assign)]
    positions = [
        n.slice for s in assignments for t in s.targets for n in ast.walk(t) if isinstance(n, ast.Subscript)
    ]
    values = [*(s.value for s in assignments), *positions]
    if isinstance(part, Take):  # one that stops is alone, and its statements run once
        return [*part.key, *part.conditions, *(values if part.key else [])]
    return [*part.conditions, *values]


def _stored(part: Fold | Take | Once) -> list[ast.expr]:
    if isinstance(part, Fold):
        targets = [part.target]
    elif isinstance(part, Take) and not part.key:
        return []
    else:
        targets = [t for s in part.body if isinstance(s, ast.Assign) for t in s.targets]
    return [_owner(t) for target in targets for t in _parts(target) if not isinstance(t, ast.Tuple)]


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Tell whether a block ends by leaving the loop."""
    return bool(body) and isinstance(body[-1], (ast.Break, ast.Return))


def _skips(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Continue)


def _parts(target: ast.expr) -> list[ast.expr]:
    return [target, *target.elts] if isinstance(target, ast.Tuple) else [target]


def _assignments(body: Sequence[ast.stmt]) -> dict[str, ast.expr] | None:
    """Return the values that a block assigns, by its targets; None where it does anything else."""
    values: dict[str, ast.expr] = {}
    for statement in body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target, value = statement.targets[0], statement.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple):
            if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
                return None
            pairs = list(zip(target.elts, value.elts, strict=True))
        for name, part in pairs:
            if not isinstance(name, (ast.Name, ast.Attribute)) or ast.dump(as_load(name)) in values:
                return None
            if isinstance(name, ast.Attribute) and not is_self(name):
                return None
            values[ast.dump(as_load(name))] = part
    return values


def _better(
    test: ast.expr, values: Mapping[str, ast.expr]
) -> tuple[str, list[ast.expr], list[ast.expr], bool] | None:
    """Match a comparison of a key with what takes its value: the operation, the key, the accumulator, strictness."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    less = isinstance(test.ops[0], (ast.Lt, ast.LtE))
    if not (less or isinstance(test.ops[0], (ast.Gt, ast.GtE))):
        return None
    is_strict = isinstance(test.ops[0], (ast.Lt, ast.Gt))
    left, right = (s.elts if isinstance(s, ast.Tuple) else [s] for s in (test.left, test.comparators[0]))
    ops = ("min", "max") if less else ("max", "min")
    for key, best, op in ((left, right, ops[0]), (right, left, ops[1])):
        names = [ast.dump(as_load(b)) for b in best]
        values_of_key = [ast.dump(k) for k in key]
        if all(n in values for n in names) and [ast.dump(values[n]) for n in names] == values_of_key:
            return op, list(key), [as_load(b) for b in best], is_strict
    return None


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "sum", ast.Sub: "difference", ast.Mult: "prod", ast.BitOr: "or", ast.BitAnd: "and", ast.BitXor: "xor",
}  # fmt: skip


def _update(statement: ast.stmt) -> tuple[str, ast.expr, ast.expr] | None:
    """Match `acc += x`, `acc = acc + x`, `acc = min(acc, x)`, `acc = acc or x`, ...: the operation, acc, and x."""
    if isinstance(statement, ast.AugAssign):
        op = _OPERATORS.get(type(statement.op))
        return None if op is None else (op, as_load(statement.target), statement.value)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = as_load(statement.targets[0]), statement.value
    op, parts = "", []
    if isinstance(value, ast.BinOp):
        op, parts = _OPERATORS.get(type(value.op), ""), [value.left, value.right]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.keywords:
        op, parts = value.func.id if value.func.id in ("min", "max") else "", value.args
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.keywords:
        op, parts = value.func.attr if value.func.attr in ("minimum", "maximum") else "", value.args
    elif isinstance(value, ast.BoolOp):
        op, parts = "any" if isinstance(value.op, ast.Or) else "all", value.values
    elif isinstance(value, ast.IfExp):
        return _chosen(target, value)
    if not op or len(parts) != 2:
        return None
    if ast.dump(parts[0]) == ast.dump(target):
        return op, target, parts[1]
    if op != "difference" and ast.dump(parts[1]) == ast.dump(target):
        return op, target, parts[0]
    return None


def _chosen(target: ast.expr, value: ast.IfExp) -> tuple[str, ast.expr, ast.expr] | None:
    """Match `acc = x if x < acc else acc` and its mirror images."""
    if ast.dump(value.orelse) != ast.dump(target):
        return None
    found = _better(value.test, {ast.dump(target): value.body})
    return None if found is None or len(found[1]) != 1 else (found[0], target, value.body)


def as_load(node: ast.expr) -> ast.expr:
    """Return a copy of a target as it is read."""
    return _in_context(node, ast.Load)


def as_store(node: ast.expr) -> ast.expr:
    """Return a copy of an expression as it is assigned."""
    return _in_context(node, ast.Store)


def _in_context(node: ast.expr, context: type[ast.expr_context]) -> ast.expr:
    node = copied(node)
    for part in _parts(node):
        if hasattr(part, "ctx"):
            part.ctx = context()
    return node
