"""Messages that are only reduced: each reduction becomes a slot, one value a vertex, combined as messages arrive."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from sigps.compiler.frontend.keyed import Keyed
from sigps.compiler.frontend.reading import NotCombinableError, Reader, first_of_vertex
from sigps.compiler.frontend.reductions import Reduction, numeric, without_nan
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import assigned_names, cast, expression, is_self
from sigps.compiler.program import Consumption, Slot
from sigps.model.vertex import extreme

__all__ = ["Combined", "Grouped"]


class Combined(Reader):
    """Replaces each reduction by a read of its slot; raises `NotCombinableError` at any other use."""

    consumption = Consumption.COMBINED

    def __init__(self, subject: Subject, body: Sequence[ast.stmt]) -> None:
        super().__init__(subject, body)
        self._read_after_loops = _names_outside_their_loops(body)
        self._slot_of: dict[str, int] = {}
        self._folded: dict[str, str] = {}

    def reduce(self, reduction: Reduction) -> ast.expr:
        element = self.over_message(reduction.element, reduction.variable)
        conditions = [self.over_message(c, reduction.variable) for c in reduction.conditions]
        op, node = reduction.op, reduction.node
        key = None if reduction.key is None else self.over_message(reduction.key, reduction.variable)
        value = self._slot("count" if op == "len" else op, element, conditions, node, key)
        if op == "sum" and reduction.default is not None:
            return ast.BinOp(reduction.default, ast.Add(), value)
        if op in ("min", "max"):
            has = expression("__has")
            if conditions:
                has = self._slot("any", ast.Constant(True), conditions, node)
            return value if reduction.default is None else ast.IfExp(has, value, reduction.default)
        return value

    def loop(self, node: ast.For) -> list[ast.stmt]:
        code: list[ast.stmt] = []
        self._folded = {}
        lasting = assigned_names([node.target]) & self._read_after_loops
        if lasting:
            raise NotCombinableError(
                node, f"the loop's variable {sorted(lasting)[0]!r} is read after the loop"
            )
        for statement in node.body:
            code += self._fold(statement, node, [])
        return code

    def loop_groups(self, node: ast.For, keyed: Keyed, group: str) -> list[ast.stmt]:
        raise AssertionError("read by Grouped or Listed")

    def most_common(self, keyed: Keyed) -> ast.expr:
        raise AssertionError("read by Grouped or Listed")

    def truth(self) -> ast.expr:
        return expression("__has")

    def _fold(self, statement: ast.stmt, loop: ast.For, conditions: list[ast.expr]) -> list[ast.stmt]:
        """Return the update of an accumulator after a loop over messages that equals one update in each iteration."""
        if isinstance(statement, ast.If) and not statement.orelse:
            extremum = self._extremum(statement)
            if extremum is not None:
                return self._accumulate(*extremum, loop, conditions, statement)
            inner = [*conditions, statement.test]
            return [s for child in statement.body for s in self._fold(child, loop, inner)]
        update = _update(statement)
        if update is None:
            raise NotCombinableError(statement, "the loop over messages does more than fold them")
        return self._accumulate(*update, loop, conditions, statement)

    def _extremum(self, node: ast.If) -> tuple[str, ast.expr, ast.expr] | None:
        """Match `if x < best: best = x` and its mirror images."""
        test = node.test
        if (
            len(node.body) != 1
            or not isinstance(node.body[0], ast.Assign)
            or not isinstance(test, ast.Compare)
        ):
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
        if self._folded.setdefault(ast.dump(target), op) != op:
            raise NotCombinableError(
                node, f"the loop folds {ast.unparse(target)} in two ways, and their order matters"
            )
        element = self.over_message(element, loop.target)
        over = [self.over_message(c, loop.target) for c in conditions]
        value = self._slot(op, element, over, node)
        if is_self(target) and target.attr in self.subject.aggregators:
            if op != "sum" or self.subject.aggregators[target.attr].kind != "sum":
                raise NotCombinableError(node, "the loop over messages contributes each one to an aggregator")
            return [ast.AugAssign(_as_store(target), ast.Add(), value)]  # type: ignore[arg-type]
        folded = {
            "sum": "OLD + NEW",
            "min": "NEW if __has and NEW < OLD else OLD",
            "max": "NEW if __has and NEW > OLD else OLD",
            "any": "OLD or NEW",
            "all": "OLD and NEW",
        }
        return [ast.Assign([_as_store(target)], expression(folded[op], OLD=target, NEW=value))]

    def _slot(
        self,
        op: str,
        element: ast.expr,
        conditions: list[ast.expr],
        node: ast.AST,
        by: ast.expr | None = None,
    ) -> ast.expr:
        keys = [] if by is None else self._keys(by, element)
        self._require_uniform([element, *conditions, *keys], node)
        text = "1" if op == "count" else ast.unparse(element).replace("__m", "m")
        if keys:
            text += f" by {', '.join(map(ast.unparse, keys))}".replace("__m", "m")
        key = f"{op} {text if op == 'count' else ast.dump(element)} {[ast.dump(k) for k in (*keys, *conditions)]}"
        is_whole = self.subject.message_type is not None and ast.dump(element) == ast.dump(
            ast.Name("__m", ast.Load())
        )
        if key not in self._slot_of:
            self._slot_of[key] = len(self.result.lift)
            parts = self._parts(op, element, conditions, is_whole, node, keys)
            self.result.lift += [self.lowered(p) for p in parts]
            condition = "".join(f" if {ast.unparse(c)}" for c in conditions).replace("__m", "m")
            names = tuple(f"__g{self._slot_of[key] + i}" for i in range(len(parts)))
            self.result.places.append(node)
            self.result.slots.append(Slot("sum" if op == "count" else op, names, text + condition))
        first = self._slot_of[key]
        if is_whole and op in ("min", "max"):
            fields = ", ".join(f"__g{first + len(keys) + i}" for i in range(len(self.dtypes)))
            return expression(f"__Message({fields})")
        return ast.Name(f"__g{first + len(keys)}", ast.Load())

    def _keys(self, key: ast.expr, element: ast.expr) -> list[ast.expr]:
        """Return the values before an element's own by which it is compared; none where its own do."""
        keys = key.elts if isinstance(key, ast.Tuple) else [key]
        own = [ast.unparse(element)]
        if own == ["__m"] and self.subject.message_type is not None:
            own = [f"__m.{f.name}" for f in self.subject.message]
        return [] if [ast.unparse(k) for k in keys] == own[: len(keys)] else keys

    def _parts(
        self,
        op: str,
        element: ast.expr,
        conditions: list[ast.expr],
        is_whole: bool,
        node: ast.AST,
        keys: list[ast.expr],
    ) -> list[ast.expr]:
        if op == "count":
            parts, identities = [expression("__np.int64(1)")], [expression("__np.int64(0)")]
        elif op == "sum":
            parts, identities = [numeric(element, self._dtype(element))], [ast.Constant(0)]
        elif op in ("any", "all"):
            parts, identities = [expression("bool(VALUE)", VALUE=element)], [ast.Constant(op == "all")]
        else:
            parts = [element]
            if is_whole:
                parts = [expression(f"__m.{f.name}") for f in self.subject.message]
            parts[0] = without_nan(op, parts[0], self.dtypes[0] if is_whole else self._dtype(element))
            if keys:
                parts = [numeric(k, self._dtype(k)) for k in keys] + parts
                parts[0] = without_nan(op, parts[0], self._dtype(keys[0]))
            identities = []
            if conditions:
                own = self.dtypes if is_whole else [self._dtype(element)]
                dtypes = [*map(self._dtype, keys), *own]
                if any(d is None for d in dtypes):
                    raise NotCombinableError(
                        node, f"a filtered {op}() of an expression has no known neutral value"
                    )
                identities = [cast(d, ast.Constant(extreme(op, d.type))) for d in dtypes if d is not None]
        if not conditions:
            return parts
        test = conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), conditions)
        return [ast.IfExp(test, p, i) for p, i in zip(parts, identities, strict=True)]

    def _dtype(self, element: ast.expr) -> Any:
        """Return the type of an element that is a message or a field of one; None for an expression."""
        if isinstance(element, ast.Name) and element.id == "__m" and self.subject.message_type is None:
            return self.dtypes[0]
        if (
            isinstance(element, ast.Attribute)
            and isinstance(element.value, ast.Name)
            and element.value.id == "__m"
        ):
            names = [f.name for f in self.subject.message]
            return self.dtypes[names.index(element.attr)]
        return None

    def _require_uniform(self, parts: list[ast.expr], node: ast.AST) -> None:
        name = first_of_vertex(parts, self.subject, self.local_names)
        if name:
            raise NotCombinableError(node, f"what is reduced depends on {name}, which belongs to one vertex")


class Grouped(Combined):
    """Replaces `most_common()`, where all messages are read by it, by a read of the key that the engine found.

    The first slot is a message's key, the second its weight; messages of one key combine.
    """

    consumption = Consumption.GROUPED

    def __init__(self, subject: Subject, body: Sequence[ast.stmt]) -> None:
        super().__init__(subject, body)
        self._found = ""

    def reduce(self, reduction: Reduction) -> ast.expr:
        raise NotCombinableError(reduction.node, "messages are grouped by key, and also read in another way")

    def loop(self, node: ast.For) -> list[ast.stmt]:
        raise NotCombinableError(node, "messages are grouped by key, and also read in another way")

    def loop_groups(self, node: ast.For, keyed: Keyed, group: str) -> list[ast.stmt]:
        raise NotCombinableError(node, "the loop reads messages group by group")

    def most_common(self, keyed: Keyed) -> ast.expr:
        key = self.over_message(keyed.key, keyed.variable)
        weight: ast.expr = expression("__np.int64(1)")
        if keyed.weight is not None:
            weight = self.over_message(keyed.weight, keyed.variable)
            weight = numeric(weight, self._dtype(weight))
        self._require_uniform([key, weight], keyed.node)
        found = f"{ast.unparse(key)} {ast.unparse(weight)}"
        if self._found not in ("", found):
            raise NotCombinableError(keyed.node, "messages are grouped in two ways")
        if not self._found:
            self._found = found
            self.result.lift = [self.lowered(key), self.lowered(weight)]
            texts = [ast.unparse(part).replace("__m", "m") for part in (key, weight)]
            texts[1] = texts[1] if keyed.weight is not None else "1"
            self.result.places = [keyed.node, keyed.node]
            self.result.slots = [Slot("key", ("__g0",), texts[0]), Slot("sum", ("__g1",), texts[1])]
        value = ast.Name("__g0", ast.Load())
        return value if keyed.default is None else ast.IfExp(expression("__has"), value, keyed.default)


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


def _names_outside_their_loops(body: Sequence[ast.AST], bound: frozenset[str] = frozenset()) -> set[str]:
    """Return the names that are read where no loop or generator around them gives them their value."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
            found.add(node.id)
        inside = bound
        if isinstance(node, ast.For):
            inside = bound | assigned_names([node.target])
        elif isinstance(node, ast.GeneratorExp):
            inside = bound | assigned_names([g.target for g in node.generators])
        found |= _names_outside_their_loops(list(ast.iter_child_nodes(node)), inside)
    return found
