"""Messages that are only reduced: each reduction becomes a slot, one value a vertex, combined as messages arrive."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from sigps.compiler.frontend.grammar import is_messages
from sigps.compiler.frontend.keyed import Keyed
from sigps.compiler.frontend.loop_folds import Fold, Take, as_load, as_store, read_loop
from sigps.compiler.frontend.reading import NotCombinableError, Reader, bind_message, first_of_vertex
from sigps.compiler.frontend.reductions import Reduction, numeric, without_nan
from sigps.compiler.frontend.subject import Subject
from sigps.compiler.frontend.syntax import assign, assigned_names, at, cast, expression, is_self, loaded_names
from sigps.compiler.program import Consumption, Slot, identity_of
from sigps.native.source import reject
from sigps.native.trees import walk

__all__ = ["Combined", "Grouped"]


class Combined(Reader):
    """Replaces each reduction by a read of its slot; raises `NotCombinableError` at any other use."""

    consumption = Consumption.COMBINED

    def __init__(self, subject: Subject, body: Sequence[ast.stmt]) -> None:
        super().__init__(subject, body)
        self._read_outside = _reads_outside_loops(body)
        self._read_after_loops = _names_outside_their_loops(body)
        self._slot_of: dict[str, int] = {}

    def reduce(self, reduction: Reduction) -> ast.expr:
        element = self.over_message(reduction.element, reduction.variable)
        conditions = [self.over_message(c, reduction.variable) for c in reduction.conditions]
        op, node = reduction.op, reduction.node
        dtype = self._dtype(element)
        if op in ("min", "max") and dtype is not None and dtype.shape:
            reject(
                node,
                f"{op}() of vectors: fold them in a loop over messages, best = np.{op}imum(best, m)",
            )
        key = None if reduction.key is None else self.over_message(reduction.key, reduction.variable)
        keys = [] if key is None else self._keys(key, element)
        value = self._value("count" if op == "len" else op, element, conditions, node, keys)
        if op == "sum" and reduction.default is not None:
            return ast.BinOp(reduction.default, ast.Add(), value)
        if op in ("min", "max"):
            has = self._any(conditions, node)
            return value if reduction.default is None else ast.IfExp(has, value, reduction.default)
        return value

    def loop_groups(self, node: ast.For, keyed: Keyed, group: str) -> list[ast.stmt]:
        raise AssertionError("read by Grouped or Listed")

    def most_common(self, keyed: Keyed) -> ast.expr:
        raise AssertionError("read by Grouped or Listed")

    def truth(self) -> ast.expr:
        return expression("__has")

    # Loops.

    def loop(self, node: ast.For) -> list[ast.stmt]:
        lasting = assigned_names([node.target]) & self._read_after_loops
        if lasting:
            raise NotCombinableError(
                node, f"the loop's variable {sorted(lasting)[0]!r} is read after the loop"
            )
        code: list[ast.stmt] = []
        for part in read_loop(node, self._read_outside[ast.dump(node)]):
            own, conditions = self._split(part.conditions, node)
            made: list[ast.stmt]
            if isinstance(part, Fold):
                made = self._fold(part, conditions, node)
            elif isinstance(part, Take):
                made = self._take(part, conditions, node)
            else:
                made = [ast.If(self._any(conditions, part.node), part.body, [])]
            code += [ast.If(ast.BoolOp(ast.And(), [self.truth(), *own]), made, [])] if own else made
        return code

    def _split(self, conditions: list[ast.expr], loop: ast.For) -> tuple[list[ast.expr], list[ast.expr]]:
        """Return the conditions that a vertex tests once for all its messages, and the others, over `__m`."""
        of_message, own, others = assigned_names([loop.target]), [], []
        for condition in (c for both in conditions for c in _conjuncts(both)):
            over = self.over_message(condition, loop.target)
            try:
                self._require_uniform([over], condition)
                others.append(over)
            except NotCombinableError:
                if loaded_names([condition]) & of_message:
                    raise
                own.append(condition)
        return own, others

    def _fold(self, fold: Fold, conditions: list[ast.expr], loop: ast.For) -> list[ast.stmt]:
        """Return the update of an accumulator after a loop that equals one update in each iteration."""
        op, target = fold.op, fold.target
        if op in ("minimum", "maximum") and not self._is_of_numpy(fold.node):
            raise NotCombinableError(fold.node, "the loop over messages does more than fold them")
        element = self.over_message(fold.element, loop.target)
        value = self._value("sum" if op == "difference" else op, element, conditions, fold.node)
        if is_self(target) and target.attr in self.subject.aggregators:
            if op != "sum" or self.subject.aggregators[target.attr].kind != "sum":
                raise NotCombinableError(
                    fold.node, "the loop over messages contributes each one to an aggregator"
                )
            return [ast.AugAssign(as_store(target), ast.Add(), value)]  # type: ignore[arg-type]
        folded = {
            "sum": "OLD + NEW",
            "difference": "OLD - NEW",
            "prod": "OLD * NEW",
            "or": "OLD | NEW",
            "and": "OLD & NEW",
            "xor": "OLD ^ NEW",
            "min": "NEW if __has and NEW < OLD else OLD",
            "max": "NEW if __has and NEW > OLD else OLD",
            "any": "OLD or NEW",
            "all": "OLD and NEW",
            "minimum": "__np.minimum(OLD, NEW) if __has else OLD",
            "maximum": "__np.maximum(OLD, NEW) if __has else OLD",
        }
        return [ast.Assign([as_store(target)], expression(folded[op], OLD=as_load(target), NEW=value))]

    def _is_of_numpy(self, statement: ast.stmt) -> bool:
        """Tell whether a statement assigns what a function of NumPy returns."""
        call = statement.value if isinstance(statement, ast.Assign) else None
        module = (
            call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        )
        return isinstance(module, ast.Name) and self.subject.names.meanings.get(module.id) is np

    def _take(self, take: Take, conditions: list[ast.expr], loop: ast.For) -> list[ast.stmt]:
        """Return what a loop does with the one message that it takes, from a slot that holds its fields."""
        if any(isinstance(n, ast.Name) and n.id == "messages" for s in take.body for n in walk(s)):
            raise NotCombinableError(take.node, "the loop over messages reads messages inside")
        scalar = self.subject.message_type is None
        fields = [expression("__m" if scalar else f"__m.{f.name}") for f in self.subject.message]
        over = [self.over_message(k, loop.target) for k in take.key]
        body = [self.over_message(s, loop.target) for s in take.body]
        keys = {ast.dump(k) for k in over}
        read = {ast.dump(n) for p in [*over, *body] for n in walk(p)} - keys
        is_nested = any("." in f.name for f in self.subject.message)
        is_read = [ast.dump(f) in read or is_nested or self._reads_whole(body) for f in fields]
        others = [f for i, f in enumerate(fields) if any(is_read[i:]) and ast.dump(f) not in keys]
        if any(getattr(self._dtype(part), "shape", ()) for part in [*over, *others]):
            raise NotCombinableError(take.node, "messages with vectors have no order")
        if not take.is_strict and over and self._kind(over[0]) != "i":
            conditions = [*conditions, ast.Compare(over[0], [ast.Eq()], [over[0]])]  # a NaN is not taken
        has = self.truth() if take.key and take.is_strict else self._any(conditions, take.node)
        parts = [*over, *others]
        code: list[ast.stmt] = []
        if parts:
            ties = "min" if take.is_strict or not over else "max"  # as if messages came in ascending order
            names = self._slot(take.op, parts, conditions, take.node, ties, len(over))
            self.result.takes_one = True
            value_of = {ast.dump(p): n for p, n in zip(parts, names, strict=True)}
            values = [
                value_of.get(ast.dump(f), cast(d, ast.Constant(0)))
                for f, d in zip(fields, self.dtypes, strict=True)
            ]
            message = self.subject.made_message(values)
            code = [assign("__m", message), *bind_message(loop.target, self.subject)]
        code += take.body if take.test is None else [ast.If(take.test, take.body, [])]
        return [ast.If(has, code, [])]

    def _reads_whole(self, body: Sequence[ast.AST]) -> bool:
        """Tell whether a message `__m` is read other than by its fields."""
        nodes = [n for s in body for n in walk(s)]
        inside = {id(n.value) for n in nodes if isinstance(n, ast.Attribute) and n.attr != "_replace"}
        return any(isinstance(n, ast.Name) and n.id == "__m" and id(n) not in inside for n in nodes)

    # Slots.

    def _any(self, conditions: list[ast.expr], node: ast.AST) -> ast.expr:
        """Return whether there is a message for which conditions hold."""
        if not conditions:
            return self.truth()
        return self._slot("any", [ast.Constant(True)], conditions, node)[0]

    def _value(
        self,
        op: str,
        element: ast.expr,
        conditions: list[ast.expr],
        node: ast.AST,
        keys: Sequence[ast.expr] = (),
    ) -> ast.expr:
        """Return the value of a reduction, of the type of its element; `keys` are compared before it."""
        record = self.subject.message_part(element)
        if record is not None and op in ("min", "max"):
            parts = [expression(f"__m.{f.name}") for f in record.fields()]
            values = self._slot(op, [*keys, *parts], conditions, node, num_keys=len(keys))
            return self.subject.made(record, values[len(keys) :])
        if record is not None and op != "count":
            of = ast.unparse(element).replace("__m", "m")
            reject(
                node,
                f"{op}() of a {record.cls.__name__} means nothing: write {op}({of}.{record.names[0]} ...)",
            )
        if isinstance(element, ast.Tuple) and op in ("min", "max"):
            values = self._slot(op, [*keys, *element.elts], conditions, node, num_keys=len(keys))
            return ast.Tuple(values[len(keys) :], ast.Load())
        return self._slot(op, [*keys, element], conditions, node, num_keys=len(keys))[-1]

    def _keys(self, key: ast.expr, element: ast.expr) -> list[ast.expr]:
        """Return the values before an element's own by which it is compared; none where its own do."""
        keys = key.elts if isinstance(key, ast.Tuple) else [key]
        own = [ast.unparse(element)]
        if own == ["__m"] and self.subject.message_type is not None:
            own = [f"__m.{f.name}" for f in self.subject.message]
        return [] if [ast.unparse(k) for k in keys] == own[: len(keys)] else keys

    def _known(self, element: ast.expr, node: ast.AST) -> ast.expr:
        """Return an element that is added up or compared, and so must not be None."""
        may_be_none = any(field.may_be_none for field in self.subject.message)
        return at([expression("__known(VALUE)", VALUE=element)], node)[0] if may_be_none else element

    def _slot(
        self,
        op: str,
        parts: Sequence[ast.expr],
        conditions: list[ast.expr],
        node: ast.AST,
        ties: str = "",
        num_keys: int = 0,
    ) -> list[ast.expr]:
        """Return the values of the slot that reduces these, one that is there already if it is the same.

        Args:
            op: The operation.
            parts: What is reduced; of `min` and `max`, what is compared, in this order.
            conditions: What holds of the messages that count.
            node: Where it stands.
            ties: `min` or `max`: how parts other than keys are compared; empty for as `op` says.
            num_keys: How many of the parts are keys.
        """
        self._require_uniform([*parts, *conditions], node)
        texts = ["1"] if op == "count" else [ast.unparse(p) for p in parts]
        keys, own = (texts[:num_keys], texts[num_keys:]) if len(texts) > num_keys else ([], texts)
        is_whole = len(own) > 1 and own == [f"__m.{f.name}" for f in self.subject.message]
        text = "__m" if is_whole else ", ".join(own)
        if keys:
            text += f" by {', '.join(keys)}"
        text += "".join(f" if {ast.unparse(c)}" for c in conditions)
        key = f"{op} {text} {ties}"
        if key not in self._slot_of:
            self._slot_of[key] = len(self.result.lift)
            names = tuple(f"__g{len(self.result.lift) + i}" for i in range(len(parts)))
            keeps = ties in ("", op)
            op_of_slot = "sum" if op == "count" else op
            slot = Slot(
                op_of_slot,
                names,
                text.replace("__m", "m"),
                keys=0 if keeps else num_keys,
                others="" if keeps else ties,
            )
            self.result.slots.append(slot)
            self.result.places.append(node)
            lifted = self._lifted(op, slot, parts, conditions, node)
            self.result.lift += [self.lowered(p) for p in lifted]
        first = self._slot_of[key]
        return [ast.Name(f"__g{first + i}", ast.Load()) for i in range(len(parts))]

    def _lifted(
        self, op: str, slot: Slot, parts: Sequence[ast.expr], conditions: list[ast.expr], node: ast.AST
    ) -> list[ast.expr]:
        """Return what one message brings to a slot: neutral values where a condition does not hold."""
        dtypes = [self._dtype(p) for p in parts]
        lifted = list(parts)
        if op == "count":
            lifted = [expression("__np.int64(1)")]
        elif op == "sum":
            lifted = [numeric(self._known(parts[0], node), dtypes[0])]
        elif op in ("any", "all"):
            lifted = [expression("bool(VALUE)", VALUE=parts[0])]
        elif op in ("min", "max"):
            lifted = [numeric(p, d) if len(parts) > 1 else p for p, d in zip(parts, dtypes, strict=True)]
            lifted[0] = without_nan(op, self._known(lifted[0], node), dtypes[0])
        if not conditions:
            return lifted
        test = conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), conditions)
        ops = [op] if op == "count" else slot.ops
        neutral = [self._neutral(o, p, node) for o, p in zip(ops, parts, strict=True)]
        return [ast.IfExp(test, p, n) for p, n in zip(lifted, neutral, strict=True)]

    def _neutral(self, op: str, element: ast.expr, node: ast.AST) -> ast.expr:
        if op in ("count", "sum", "any", "all", "prod"):
            same = identity_of("sum" if op == "count" else op, np.dtype(np.int64))
            return expression("__np.int64(0)") if op == "count" else ast.Constant(same)
        dtype = self._dtype(element)
        if dtype is not None:
            return cast(dtype, ast.Constant(identity_of(op, dtype)))
        kind = self._kind(element)
        if not kind:
            raise NotCombinableError(node, f"a filtered {op}() of this expression has no known neutral value")
        return ast.Constant(identity_of(op, np.dtype(np.int64 if kind == "i" else np.float64)))

    def _dtype(self, element: ast.expr) -> Any:
        """Return the type of an element that is a message or a field of one; None for an expression."""
        if isinstance(element, ast.Name) and element.id == "__m" and self.subject.message_type is None:
            return self.dtypes[0]
        names = [f"__m.{f.name}" for f in self.subject.message]
        text = ast.unparse(element) if isinstance(element, ast.Attribute) else ""
        return self.dtypes[names.index(text)] if text in names else None

    def _kind(self, element: ast.expr) -> str:
        """Return `i` for an expression that is a whole number of 64 bits, `f` for a float; empty where that is open."""
        dtype = self._dtype(element)
        if dtype is None and is_self(element) and element.attr in self.subject.params:
            field = self.subject.params[element.attr]
            dtype = None if field.type is None else field.dtype(self.subject.precision)
        if dtype is not None:
            return {"f": "f", "i": "i"}.get(dtype.kind, "")
        if isinstance(element, ast.Constant):
            return {int: "i", float: "f"}.get(type(element.value), "")
        if isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.USub):
            return self._kind(element.operand)
        if isinstance(element, ast.BinOp):
            kinds = {self._kind(element.left), self._kind(element.right)}
            if "" in kinds or not isinstance(element.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
                return ""
            return "f" if "f" in kinds or isinstance(element.op, ast.Div) else "i"
        return ""

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


def _conjuncts(condition: ast.expr) -> list[ast.expr]:
    if isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.And):
        return [c for part in condition.values for c in _conjuncts(part)]
    return [condition]


def _reads_outside_loops(body: Sequence[ast.stmt]) -> dict[str, set[str]]:
    """Return, by the text of each loop over messages, the names read outside it.

    Names that another loop gives a value in each iteration, before it reads them, are its own.
    """
    reads: list[tuple[str, str]] = []  # of every read the loop over messages around it, and the name

    def visit(node: ast.AST, bound: frozenset[str], around: str) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
            reads.append((around, node.id))
        if isinstance(node, ast.For):
            visit(node.iter, bound, around)
            around = ast.dump(node) if is_messages(node.iter) else around
            found.setdefault(around, set())
            bound |= assigned_names([node.target])
            for statement in node.body:
                visit(statement, bound, around)
                if isinstance(statement, ast.Assign):
                    bound |= assigned_names(statement.targets)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, bound, around)

    found: dict[str, set[str]] = {}
    for statement in body:
        visit(statement, frozenset(), "")
    return {loop: {name for around, name in reads if around != loop} for loop in found}


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
