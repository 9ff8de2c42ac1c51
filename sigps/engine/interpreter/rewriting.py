"""A program whose methods compute by the rules of `arithmetic.py`: their source, rewritten with its lines kept.

`a + b` becomes a call of the rule, and every call asks whether its function stands for another one: a rule, or a
function of the user's, rewritten too. A function whose source cannot be read, or that is a library's, stays as it is.
"""

from __future__ import annotations

import ast
import copy
import functools
import logging
import operator
import sysconfig
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeGuard

from sigps.compiler.cpu.joined import NOTHING, Joined, Places
from sigps.engine.interpreter import arithmetic, vectors
from sigps.engine.interpreter.joining import as_type, by_arguments, mark, marked_names
from sigps.engine.interpreter.messages import folds, sum_of
from sigps.errors import CompileError
from sigps.model.records import is_record_type, vectors_of, with_vectors
from sigps.model.vector import Vector
from sigps.model.vertex import Aggregator, Vertex
from sigps.native.expressions import whole_constant
from sigps.native.source import parse_function
from sigps.native.trees import parse, parse_expression
from sigps.native.types import Type

__all__ = ["combine", "rewritten", "rewritten_program"]

log = logging.getLogger(__name__)

_RULES = "sigps_rules_"
"""The name by which rewritten functions know `_Rules`."""

_NAMES: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "iadd"), ast.Sub: ("-", "isub"), ast.Mult: ("*", "imul"), ast.Div: ("/", "itruediv"),
    ast.FloorDiv: ("//", "ifloordiv"), ast.Mod: ("%", "imod"), ast.Pow: ("**", "ipow"), ast.LShift: ("<<", "ilshift"),
    ast.RShift: (">>", "irshift"), ast.BitAnd: ("&", "iand"), ast.BitOr: ("|", "ior"), ast.BitXor: ("^", "ixor"),
    ast.MatMult: ("@", "imatmul"),
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}


def rewritten_program(program: Vertex, joined: Joined = NOTHING) -> Vertex:
    """Return a copy of a program whose methods are rewritten.

    Args:
        program: The program.
        joined: Where compiled code gives values another type.
    """
    copied = copy.copy(program)
    object.__setattr__(copied, "__class__", _rewritten_class(type(program), joined))
    return copied


_classes: weakref.WeakKeyDictionary[type, dict[Joined, type]] = weakref.WeakKeyDictionary()


def _rewritten_class(cls: type, joined: Joined) -> type:
    made = _classes.setdefault(cls, {})
    if joined not in made:
        rules = _Rules(joined) if joined is not NOTHING else _PLAIN
        members: dict[str, Any] = {}
        for base in reversed(cls.__mro__[: cls.__mro__.index(Vertex)]):
            for name, member in vars(base).items():
                found = _rewritten_member(name, member, rules)
                if found is not None:
                    members[name] = found
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        declaration = cls.declaration  # type: ignore[attr-defined]
        made[joined] = type(cls)(cls.__name__, (cls,), {**members, **names, "declaration": declaration})
    return made[joined]


def _rewritten_member(name: str, member: Any, rules: _Rules) -> Any:
    if isinstance(member, types.FunctionType) and not name.startswith("__"):
        return rules.rewritten(member)
    if isinstance(member, staticmethod):
        return staticmethod(rules.rewritten(member.__func__))
    if isinstance(member, property) and member.fget is not None:
        return property(rules.rewritten(member.fget))
    return None


def rewritten(function: Any) -> Any:
    """Return a function that computes by the rules; one that cannot be rewritten as it is."""
    return _PLAIN.rewritten(function)


def combine(aggregator: Aggregator[Any], a: Any, b: Any) -> Any:
    """Combine two values of an aggregator, as its type holds the result."""
    if isinstance(a, Vector) or isinstance(b, Vector):
        numbers = vectors.by_number(functools.partial(combine, aggregator.of_numbers), a, b)
        return aggregator.field.assigned(numbers)
    if aggregator.kind == "sum":
        return aggregator.field.assigned(arithmetic.OPERATORS["+"](a, b))
    if aggregator.function is not None:
        return aggregator.field.assigned(rewritten(aggregator.function)(a, b))
    return aggregator.combine(a, b)


def _rewrite(function: types.FunctionType, rules: _Rules, places: Places) -> types.FunctionType:
    tree = parse_function(function, function.__module__)
    tree.decorator_list = []
    first = rules.take(mark(tree, places))
    tree = ast.fix_missing_locations(_Rewriting(tree, first).visit(tree))
    free = function.__code__.co_freevars
    # Inside a class of the same name, so that private names mean what they meant.
    owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2]
    is_method = bool(owner) and owner != "<locals>"
    taken = ", ".join(name for name in (_RULES, *free) if name != "__class__")
    factory: Any = parse(f"def sigps_factory_({taken}):\n    class {owner if is_method else '_'}: pass").body[
        0
    ]
    factory.body[0].body = [tree]
    if not is_method:
        factory.body = [tree]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    code = _code_named(compile(module, function.__code__.co_filename, "exec", dont_inherit=True), tree.name)
    cells = dict(zip(free, function.__closure__ or (), strict=True)) | {_RULES: types.CellType(rules)}
    made = types.FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def _code_named(code: types.CodeType, name: str) -> types.CodeType:
    """Return the first function of a name inside some code."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    found = next((c for c in inner if c.co_name == name), None)
    return found or next(_code_named(c, name) for c in inner)


@functools.cache
def _library_folders() -> tuple[str, ...]:
    return tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _is_of_a_library(function: types.FunctionType) -> bool:
    module = function.__module__ or ""  # None of a function that exec() made among bare names
    if module.startswith("sigps."):
        return not module.startswith("sigps.apps")
    return function.__code__.co_filename.startswith(("<frozen", *_library_folders()))


class _Rules:
    """What rewritten code calls; the functions of one program, rewritten."""

    def __init__(self, joined: Joined) -> None:
        self._joined = joined
        self._kinds: list[Type] = []
        self._functions: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def take(self, kinds: list[Type]) -> int:
        """Keep the types of marked nodes of one function; return the position of the first."""
        self._kinds += kinds
        return len(self._kinds) - len(kinds)

    def joined(self, at: int, value: Any) -> Any:
        return as_type(self._kinds[at], value)

    def rewritten(self, function: Any) -> Any:
        """Return a function that computes by the rules; one that cannot be rewritten as it is."""
        if not isinstance(function, types.FunctionType) or _is_of_a_library(function):
            return function
        if function not in self._functions:
            self._functions[function] = function  # while it is rewritten, for one that calls itself
            place = function.__code__.co_filename, function.__code__.co_firstlineno
            try:
                if place in self._joined.variants:
                    make = functools.partial(_rewrite, function, self)
                    made = by_arguments(function, self._joined, place, make)
                else:
                    made = _rewrite(function, self, self._joined.places)
                self._functions[function] = made
            except (CompileError, SyntaxError, StopIteration) as problem:
                log.debug("%s() computes as Python does: %s", function.__name__, problem)
        return self._functions[function]

    folds = staticmethod(folds)
    sum_of = staticmethod(sum_of)

    binary = arithmetic.OPERATORS
    wrapping = arithmetic.WRAPPING
    unary = arithmetic.UNARY

    @staticmethod
    def in_place(name: str, method: str, a: Any, b: Any) -> Any:
        plain: Callable[[Any, Any], Any] = getattr(operator, method)
        return arithmetic.in_place(name, plain, a, b)

    compared = staticmethod(arithmetic.compared)
    with_item = staticmethod(vectors.with_item)
    whole = staticmethod(vectors.whole)
    item_of = staticmethod(vectors.item_of)
    store_item = staticmethod(vectors.store_item)
    start_of_sum = staticmethod(vectors.start_of_sum)
    chained = staticmethod(arithmetic.chained)

    @staticmethod
    def real(value: Any) -> Any:
        return float(value)

    def callee(self, function: Any) -> Any:
        found = arithmetic.standing_for(function)
        if found is not None:
            return found
        makes = function if isinstance(function, type) else type(getattr(function, "__self__", None))
        is_maker = makes is function or getattr(function, "__name__", "") == "_replace"
        if is_maker and is_record_type(makes) and vectors_of(makes):
            return lambda *given, **named: with_vectors(function(*given, **named))
        return self.rewritten(getattr(function, "py_func", function))


_PLAIN = _Rules(NOTHING)


class _Rewriting(ast.NodeTransformer):
    def __init__(self, tree: ast.FunctionDef, first: int) -> None:
        self._table, self._first = "binary", first
        self._num_folds = self._num_kept = 0
        self._locals: set[str] = set()
        for arg in tree.args.args:
            if hasattr(arg, "sigps_joined"):
                tree.body.insert(0, self._joined_name(arg.arg, arg.sigps_joined, tree.body[0]))

    def visit(self, node: ast.AST) -> Any:
        """Give what is marked its type, when it is rewritten."""
        made = super().visit(node)
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
            at = getattr(node, "sigps_joined", None)
            return made if at is None else self._joined(at, made)
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        around, self._locals = self._locals, _locals_of(node)
        self.generic_visit(node)
        self._locals = around
        return node

    def _joined(self, at: int, value: ast.expr) -> ast.expr:
        return _call(value, "joined", ast.Constant(self._first + at), value)

    def _joined_name(self, name: str, at: int, place: ast.AST) -> ast.stmt:
        """Return the statement that gives a variable its type."""
        value = self._joined(at, ast.copy_location(ast.Name(name, ast.Load()), place))
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), place)

    def _joined_if_set(self, name: str, at: int, place: ast.AST) -> ast.stmt:
        made = _statement("try: pass\nexcept UnboundLocalError: pass", place)
        made.body = [self._joined_name(name, at, place)]  # type: ignore[attr-defined]
        return made

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self.generic_visit(node)
        for _, at in marked_names(node.target):
            node.value = self._joined(at, node.value)
        return node

    def visit_For(self, node: ast.For) -> Any:
        """Let a loop over messages add up exactly where the engine says so, each accumulator when it is over."""
        found: list[tuple[ast.expr, ast.operator]] = []
        joined = [self._joined_name(name, at, node) for name, at in marked_names(node.target)]
        # What is added up, also over nothing.
        folded = [self._joined_if_set(n, at, node) for s in node.body for n, at in marked_names(s)]
        self._num_folds += 1
        name = f"sigps_folds_{self._num_folds}_"
        if isinstance(node.iter, ast.Name) and not node.orelse:
            node.body = _folding(node.body, name, _temporaries(node), found)
        if not found:
            self.generic_visit(node)
            node.body = [*joined, *node.body]
            return [node, *folded] if folded else node
        before = _statement(f"{name} = {_RULES}.folds({node.iter.id})", node)  # type: ignore[attr-defined]
        after = []
        for i, (target, op) in enumerate(found):
            last = _statement(f"if {name} is not None and {i} in {name}: pass", node)
            total = _statement(f"{name}.total({i})", node).value  # type: ignore[attr-defined]
            last.body = [ast.copy_location(ast.AugAssign(target, op, total), node)]  # type: ignore
            after.append(self.generic_visit(last))
        self.generic_visit(node)
        node.body = [*joined, *node.body]
        return [before, node, *after, *folded]

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        written = whole_constant(node)
        if written is not None and -(2**63) <= written < 2**63:  # 2**63 - 1: a constant, as in compiled code
            return ast.copy_location(ast.Constant(written), node)
        is_root = isinstance(node.op, ast.Pow) and _is_minus(node.right)
        self.generic_visit(node)
        if type(node.op) not in _NAMES:
            return node
        if is_root:  # a float, as in Python
            node.left = _call(node.left, "real", node.left)
        return _call(node, f"{self._table}[{_NAMES[type(node.op)][0]!r}]", node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if whole_constant(node) == -(2**63):
            return ast.copy_location(ast.Constant(-(2**63)), node)
        self.generic_visit(node)
        is_number = isinstance(node.operand, ast.Constant)
        if type(node.op) not in _UNARY or is_number:
            return node
        if isinstance(node.op, ast.USub) and self._table == "wrapping":
            return _call(node, "wrapping['-']", ast.Constant(0), node.operand)
        return _call(node, f"unary[{_UNARY[type(node.op)]!r}]", node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        names = [_COMPARE.get(type(op)) for op in node.ops]
        if None in names:
            return node
        if len(names) == 1:
            return _call(node, "compared", ast.Constant(names[0]), node.left, node.comparators[0])
        plain = ast.arguments([], [], None, [], [], None, [])
        later: list[ast.expr] = [ast.copy_location(ast.Lambda(plain, c), c) for c in node.comparators]
        given = ast.Tuple([ast.Constant(name) for name in names], ast.Load())
        return ast.fix_missing_locations(_call(node, "chained", given, node.left, *later))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        for _, at in marked_names(node.target):
            node.value = None if node.value is None else self._joined(at, node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        names = [found for target in node.targets for found in marked_names(target)]
        self.generic_visit(node)
        made: list[ast.stmt] = [node]
        if any(map(_stores_part, node.targets)):
            value, made = node.value, []
            names_some = any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))
            if len(node.targets) > 1 or isinstance(node.targets[0], ast.Tuple) or names_some:
                value = self._kept(value, made)  # before what the targets read
            for target in node.targets:
                made += self._stored(target, value)
        return [*made, *[self._joined_name(name, at, node) for name, at in names]]

    def _stored(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """Return the statements that assign to a target in which there may be parts of vectors."""
        if isinstance(target, ast.Tuple):
            parts: list[ast.expr] = [self._new_name(target) for _ in target.elts]
            made: list[ast.stmt] = [
                _assignment(ast.copy_location(ast.Tuple(parts, ast.Store()), target), value)
            ]
            for part, name in zip(target.elts, parts, strict=True):
                made += self._stored(part, _loaded(name))
            return made
        if _is_part(target):
            assert isinstance(target, ast.Attribute)
            whole = self._whole(target, _loaded(target.value), target.attr)
            return [
                _assignment(ast.copy_location(ast.Attribute(whole, target.attr, ast.Store()), target), value)
            ]
        if not isinstance(target, ast.Subscript):
            return [_assignment(target, value)]
        return [self._stored_item(target, _loaded(target.value), target.slice, value)]

    def _stored_item(
        self, target: ast.Subscript, owner: ast.expr, at: ast.expr, value: ast.expr, *old: ast.expr
    ) -> ast.stmt:
        """Return the statement that assigns one number of a vector; `old` is what `store_item` takes beside it."""
        if self._is_variable(target.value):
            variable = ast.copy_location(ast.Name(target.value.id, ast.Store()), target)
            return _assignment(variable, _call(target, "with_item", owner, at, value))
        if _is_item_of_self(target):
            field: Any = target.value
            call = _call(
                target, "store_item", _loaded(field.value), ast.Constant(field.attr), at, value, *old
            )
            return ast.copy_location(ast.Expr(call), target)
        item = ast.Subscript(self._whole(target, owner), at, ast.Store())
        return _assignment(ast.copy_location(item, target), value)

    def _whole(self, target: ast.expr, owner: ast.expr, *part: str) -> ast.expr:
        """Return what a target is a part of; a vector or a NamedTuple is refused, at the user's line."""
        given = getattr(target, "sigps_file", ""), target.lineno, *part
        return _call(target, "whole", owner, *map(ast.Constant, given))

    def _is_variable(self, node: ast.expr) -> TypeGuard[ast.Name]:
        return isinstance(node, ast.Name) and node.id in self._locals

    def _new_name(self, place: ast.AST) -> ast.expr:
        self._num_kept += 1
        return ast.copy_location(ast.Name(f"sigps_kept_{self._num_kept}_", ast.Store()), place)

    def _kept(self, value: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """Keep a value in a variable of its own; return how it is read."""
        if isinstance(value, ast.Constant):
            return value
        name = self._new_name(value)
        before.append(_assignment(name, value))
        return _loaded(name)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if type(node.op) not in _NAMES:
            return node
        name, method = _NAMES[type(node.op)]
        rule = ast.Constant(name), ast.Constant(method)
        if isinstance(node.target, ast.Subscript) and not isinstance(node.target.slice, ast.Slice):
            return self._changed_item(node, node.target, rule)
        if not _is_simple(node.target):
            if _is_part(node.target):
                assert isinstance(node.target, ast.Attribute)
                node.target.value = self._whole(node.target, _loaded(node.target.value), node.target.attr)
            return node
        value = _call(node, "in_place", *rule, _loaded(node.target), node.value)
        return [ast.copy_location(made, node) for made in self._stored(node.target, value)]

    def _changed_item(
        self, node: ast.AugAssign, target: ast.Subscript, rule: tuple[ast.expr, ast.expr]
    ) -> list[ast.stmt]:
        """Return the statements of `v[i] += x`: what is there is read before x, as in Python."""
        made: list[ast.stmt] = []
        if _is_item_of_self(target):
            field: Any = target.value
            at = self._kept(target.slice, made)
            given = _loaded(field.value), ast.Constant(field.attr), at
            old = self._kept(_call(target, "item_of", *given), made)
            operator = parse_expression(f"{_RULES}.{self._table}[{_NAMES[type(node.op)][0]!r}]")
            return [*made, self._stored_item(target, _loaded(field), at, node.value, old, operator)]
        owner = _loaded(target.value)
        if not self._is_variable(target.value):
            owner = self._kept(self._whole(target, owner), made)
        at = self._kept(target.slice, made)
        item = ast.copy_location(ast.Subscript(owner, at, ast.Load()), target)
        value = _call(node, "in_place", *rule, self._kept(item, made), node.value)
        return [*made, self._stored_item(target, owner, at, value)]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        named = getattr(node.func, "attr", getattr(node.func, "id", ""))
        is_constant = named == "uint64" and all(map(_is_whole_constant, node.args))
        if named == "wrapping":
            before, self._table = self._table, "wrapping"
            self.generic_visit(node)
            self._table = before
        elif is_constant:  # np.uint64(2**63): the argument may have more than 63 bits
            self.generic_visit(node.func)
        else:
            self.generic_visit(node)
        if named in ("min", "max"):
            for keyword in node.keywords:
                if keyword.arg == "key":
                    keyword.value = _call(keyword.value, "callee", keyword.value)
        is_sum = isinstance(node.func, ast.Name) and node.func.id == "sum" and bool(node.args)
        source = node.args[0] if is_sum else None
        if is_sum and len(node.args) == 1:
            node.args += _start_of_sum(node)
        if isinstance(source, ast.GeneratorExp):
            source = source.generators[0].iter
        if isinstance(source, ast.Name):
            function = _call(node.func, "callee", node.func)
            given = _call(node, "sum_of", copy.deepcopy(source), function, *node.args)
            given.keywords = node.keywords  # type: ignore[attr-defined]
            return given
        is_own = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "self"
        if not is_own:
            node.func = _call(node.func, "callee", node.func)
        return node


def _stores_part(target: ast.expr) -> bool:
    """Tell whether a target has a part `v[i]` or `x.y`, and is taken apart by names alone."""
    nodes = list(ast.walk(target))
    is_plain = not any(isinstance(n, (ast.Starred, ast.List)) for n in nodes)
    stores = [n for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return is_plain and (any(not isinstance(n.slice, ast.Slice) for n in stores) or any(map(_is_part, nodes)))


def _is_part(node: ast.AST) -> bool:
    """Tell whether a node is a target `x.y`, of anything but self."""
    is_stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    return is_stored and getattr(node.value, "id", "") != "self"  # type: ignore[attr-defined]


def _locals_of(function: ast.FunctionDef) -> set[str]:
    """Return the names of a function's own variables."""
    own: list[ast.AST] = list(function.body)
    names = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    outer: set[str] = set()
    while own:
        node = own.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            outer |= set(node.names)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name is not None:
            names.add(node.name)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            own += ast.iter_child_nodes(node)
    return names - outer


def _assignment(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Assign([target], value), target)


def _loaded(target: ast.expr) -> ast.expr:
    """Return what is assigned as it is read."""
    found = copy.deepcopy(target)
    if isinstance(found, (ast.Name, ast.Attribute, ast.Subscript)):
        found.ctx = ast.Load()
    return found


def _is_item_of_self(node: ast.AST) -> bool:
    """Tell whether something is `self.x[i]`."""
    field = node.value if isinstance(node, ast.Subscript) else None
    return isinstance(field, ast.Attribute) and getattr(field.value, "id", "") == "self"


def _start_of_sum(node: ast.Call) -> list[ast.expr]:
    """Return what a sum over `messages` begins with, as an argument; nothing of another sum."""
    over, element = node.args[0], ast.Constant(None)
    if isinstance(over, ast.GeneratorExp) and len(over.generators) == 1:
        generator = over.generators[0]
        if not isinstance(generator.target, ast.Name):
            return []
        given = ast.arguments([], [ast.arg(generator.target.id)], None, [], [], None, [])
        element = ast.Lambda(given, copy.deepcopy(over.elt))  # type: ignore[assignment]
        over = generator.iter
    if not isinstance(over, ast.Name):
        return []
    return [ast.fix_missing_locations(_call(node, "start_of_sum", ast.Name(over.id, ast.Load()), element))]


def _folding(
    body: list[ast.stmt], name: str, temporaries: set[str], found: list[tuple[ast.expr, ast.operator]]
) -> list[ast.stmt]:
    """Return a loop's body in which what is added to a variable goes to the folds `name`, where there are some."""
    changed: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If):
            statement.body = _folding(statement.body, name, temporaries, found)
            statement.orelse = _folding(statement.orelse, name, temporaries, found)
        added = _added(statement)
        if added is None or ast.unparse(added[0]) in temporaries:
            changed.append(statement)
            continue
        target, op, term = added
        choice = _statement(f"if {name} is None: pass\nelse: {name}.add({len(found)}, None)", statement)
        assert isinstance(choice, ast.If)
        choice.orelse[0].value.args[1] = copy.deepcopy(term)  # type: ignore[attr-defined]
        choice.body = [statement]
        changed.append(choice)
        found.append((copy.deepcopy(target), op))
    return changed


def _temporaries(loop: ast.For) -> set[str]:
    """Return the locals that an iteration gives a value, other than by adding to them."""
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    added = {
        id(node.targets[0]) for node in inside if isinstance(node, ast.Assign) and _added(node) is not None
    }
    added |= {id(node.target) for node in inside if isinstance(node, ast.AugAssign)}
    stored = [node for node in (*inside, *ast.walk(loop.target)) if isinstance(node, ast.Name)]
    return {node.id for node in stored if isinstance(node.ctx, ast.Store) and id(node) not in added}


def _added(statement: ast.stmt) -> tuple[ast.expr, ast.operator, ast.expr] | None:
    """Return the variable to which a statement adds or from which it takes, and what; None of any other statement."""
    if isinstance(statement, ast.AugAssign):
        is_sum = isinstance(statement.op, (ast.Add, ast.Sub)) and _is_simple(statement.target)
        return (statement.target, statement.op, statement.value) if is_sum else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return None
    (target, *others), value = statement.targets, statement.value
    if others or not _is_simple(target) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return None
    if ast.unparse(value.left) == ast.unparse(target):
        return target, value.op, value.right
    is_last = isinstance(value.op, ast.Add) and ast.unparse(value.right) == ast.unparse(target)
    return (target, value.op, value.left) if is_last else None


def _statement(text: str, place: ast.AST) -> ast.stmt:
    """Return a statement at a place."""
    (made,) = parse(text).body
    for node in ast.walk(made):
        ast.copy_location(node, place)
    return made


def _is_minus(node: ast.expr) -> bool:
    """Tell whether an exponent is written with a minus (`frontend/constants.py`)."""
    is_negative = isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value < 0
    return is_negative or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub))


def _is_whole_constant(node: ast.AST) -> bool:
    allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(isinstance(n, allowed) and isinstance(getattr(n, "value", 0), int) for n in ast.walk(node))


def _is_simple(target: ast.expr) -> bool:
    """Tell whether an expression may be evaluated twice."""
    if isinstance(target, ast.Attribute):
        return isinstance(target.value, ast.Name)
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Name) and isinstance(target.slice, (ast.Name, ast.Constant))
    return isinstance(target, ast.Name)


def _call(node: ast.AST, rule: str, *arguments: ast.expr) -> ast.expr:
    function = parse_expression(f"{_RULES}.{rule}")
    call = ast.Call(function, list(arguments), [])
    for made in (call, *ast.walk(function), *arguments):
        if not hasattr(made, "lineno"):
            ast.copy_location(made, node)
    for made in ast.walk(function):
        ast.copy_location(made, node)
    return ast.copy_location(call, node)
