"""From a `Vertex` class to a `VertexProgram`: the passes in order, and the functions put together."""

from __future__ import annotations

import ast
import builtins
import difflib
import hashlib
import inspect
import types
from typing import Any, Literal

import numpy as np

from sigps.compiler.fields import LowerFields, is_uniform_method, unpack
from sigps.compiler.messages import Messages, consume_messages
from sigps.compiler.prepare import prepare, prepare_method, rename
from sigps.compiler.program import Consumption, Delivery, EarlyExit, Slot, VertexProgram
from sigps.compiler.sends import Sends, message_parts, rewrite_edge_loops, separate_sends
from sigps.compiler.source import global_names, parse_function, reject
from sigps.compiler.subject import Subject
from sigps.compiler.syntax import assign, assigned_names, at, cast, expression, function, loaded_names, statements, tuple_of
from sigps.errors import CompileError
from sigps.vertex import Vertex

__all__ = ["analyse"]

Precision = Literal["single", "double"]


def analyse(program: Vertex, precision: Precision = "double") -> VertexProgram:
    """Derive the vertex program of a class and its parameters. Reads source, runs nothing of it.

    Raises:
        CompileError: If something in the class cannot be compiled; with file, line and source text.
    """
    if type(program).compute is Vertex.compute:
        raise CompileError(f"{type(program).__name__} has no compute(): write 'def compute(self, messages)'")
    subject = Subject(program)
    tree = parse_function(type(program).compute, subject.name)
    body = prepare(tree, subject).body
    sends = separate_sends(body, subject, precision)
    messages = consume_messages(sends.body, subject, precision)
    body, read_columns, walks = rewrite_edge_loops(messages.body, subject, precision)
    lower = LowerFields(subject)
    block = ast.Module(body=body, type_ignores=[])
    lower.visit(block)
    _TypedMessages(subject, precision).visit(block)
    functions = [
        _compute(subject, block.body, sends, messages, read_columns, walks, tree),
        *messages.functions,
    ]
    edge, edge_methods = _edge(subject, sends, tree)
    functions += edge
    if messages.consumption is not Consumption.LISTED:
        functions += [_lift(subject, messages, tree), _merge(subject, messages)]
    functions.append(_fold(subject))
    if sends.delivery is Delivery.MAILBOX:
        functions.append(_emit(len(subject.message)))
    functions += _methods(subject, lower.methods | messages.methods | edge_methods)
    module = ast.Module(body=functions, type_ignores=[])
    namespace = _namespace(subject, module, tree)
    early_exit = _early_exit(sends, messages)
    return VertexProgram(
        name=subject.name,
        file=type(program).compute.__code__.co_filename,
        line=tree.lineno,
        precision=precision,
        states=tuple(subject.states.values()),
        params=tuple(subject.params.values()),
        aggregators=tuple(subject.aggregators.values()),
        message=subject.message,
        message_type=subject.message_type,
        delivery=sends.delivery,
        consumption=messages.consumption,
        slots=tuple(messages.slots),
        record=tuple(f"__r{i}" for i in range(len(sends.record))),
        edge_columns=sends.columns,
        read_columns=read_columns,
        reads_edges=walks,
        early_exit=early_exit,
        is_monotone=bool(messages.slots) and all(s.op in ("min", "max", "any") for s in messages.slots),
        module=module,
        namespace=namespace,
        notes=tuple(_notes(subject, sends, messages, early_exit)),
        obstacles=tuple(o for o in (messages.obstacle, sends.obstacle) if o),
        key=_key(subject, module, namespace, messages.slots, precision),
    )


def _compute(
    subject: Subject,
    body: list[ast.stmt],
    sends: Sends,
    messages: Messages,
    read_columns: tuple[str, ...],
    walks: bool,
    tree: ast.FunctionDef,
) -> ast.FunctionDef:
    start = unpack(subject, "env", "params", "aggregates", "vertex", "state")
    start += _unpack_inbox(subject, messages)
    if walks:
        start += statements("(__edge_begin, __edge_end, __edge_gids, __edge_ids, __edge_columns) = edges")
        names = ", ".join(f"__edge_{c}" for c in read_columns)
        start += statements(f"({names},) = __edge_columns") if names else []
    start += statements("__halt = False\n__retired = False\n__sent = False")
    start += [assign(f"__r{i}", value) for i, value in enumerate(sends.record)]
    start += [
        assign(f"__c_{a.name}", cast(a.field.dtype(), ast.Constant(a.field.dtype().type(a.identity).item())))
        for a in subject.aggregators.values()
    ]
    result = tuple_of(
        [
            tuple_of([expression(f"__s_{s}") for s in subject.states]),
            expression("__np.uint8(1 * __halt + 2 * __retired + 4 * __sent)"),
            tuple_of([expression(f"__r{i}") for i in range(len(sends.record))]),
            tuple_of([expression(f"__c_{a}") for a in subject.aggregators]),
        ]
    )
    returns = _Returns(result)
    body = [returns.visit(s) for s in body]
    params = ["env", "params", "aggregates", "vertex", "state", "inbox", "has", "edges", "mail"]
    return at([function("compute", params, [*start, *body, ast.Return(result)])], tree)[0]


class _TypedMessages(ast.NodeTransformer):
    """Gives every NamedTuple message that compute() builds the types that messages arrive in, so they mix."""

    def __init__(self, subject: Subject, precision: Precision) -> None:
        self._subject = subject
        self._dtypes = [f.dtype(precision) for f in subject.message]
        kind = subject.message_type
        self._name = None if kind is None else kind.__name__

    def visit_Call(self, node: ast.Call) -> ast.Call:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == self._name:
            parts = message_parts(node, self._subject)
            node.args = at([cast(d, p) for d, p in zip(self._dtypes, parts, strict=True)], node)
            node.keywords = []
        return node


def _unpack_inbox(subject: Subject, messages: Messages) -> list[ast.stmt]:
    kind = messages.consumption
    if kind is Consumption.LISTED:
        boxes = "".join(f", __box{i}" for i in range(len(subject.message)))
        return statements(f"(__begin, __end{boxes}) = inbox")
    names = [f"__g{i}" for i in range(len(messages.lift))]
    start = statements(f"({', '.join(names)},) = inbox") if names else []
    if kind is Consumption.SINGLE:
        scalar = subject.message_type is None
        start += statements(f"__m = {'__g0' if scalar else '__Message(' + ', '.join(names) + ')'}")
    return start


class _Returns(ast.NodeTransformer):
    """Makes every `return` of compute() give the vertex's outcome."""

    def __init__(self, result: ast.expr) -> None:
        self._result = result

    def visit_Return(self, node: ast.Return) -> ast.Return:  # noqa: N802
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value in (None, 0)):
            reject(node, "compute() returns nothing: assign fields, send, and 'return'")
        return at([ast.Return(self._result)], node)[0]


def _edge(subject: Subject, sends: Sends, tree: ast.FunctionDef) -> tuple[list[ast.stmt], set[str]]:
    if sends.delivery is not Delivery.RECORD:
        return [], set()
    start = unpack(subject, "env", "params")
    if sends.record:
        start += statements(f"({', '.join(f'__r{i}' for i in range(len(sends.record)))},) = record")
    if sends.columns:
        start += statements(f"({', '.join(f'__w_{c}' for c in sends.columns)},) = columns")
    if sends.reads_target:
        start += statements("__target = target")
    lower = LowerFields(subject)
    block = ast.Module(body=sends.edge_body, type_ignores=[])
    lower.visit(block)
    params = ["env", "params", "record", "target", "columns"]
    return at([function("edge", params, [*start, *block.body])], tree), lower.methods


def _lift(subject: Subject, messages: Messages, tree: ast.FunctionDef) -> ast.stmt:
    start = unpack(subject, "env", "params")
    parts = ", ".join(f"message[{i}]" for i in range(len(subject.message)))
    if messages.lift:
        start += statements(f"__m = {parts if subject.message_type is None else f'__Message({parts})'}")
    return at([function("lift", ["env", "params", "message"], [*start, ast.Return(tuple_of(messages.lift))])], tree)[0]


def _merge(subject: Subject, messages: Messages) -> ast.stmt:
    """Build the combiner: slot by slot; the first message of a slot without a neutral value is taken as it is."""
    code = ["if not has:", "    return value"]
    first = 0
    results: list[str] = []
    for slot in messages.slots:
        width = len(slot.names)
        a = [f"inbox[{first + i}]" for i in range(width)]
        b = [f"value[{first + i}]" for i in range(width)]
        results += _merged(slot, a, b, code, subject, len(results))
        first += width
    code.append(f"return ({', '.join(results)},)" if results else "return ()")
    return function("merge", ["inbox", "has", "value"], statements("\n".join(code)))


def _merged(slot: Slot, a: list[str], b: list[str], code: list[str], subject: Subject, first: int) -> list[str]:
    width = len(slot.names)
    if slot.op == "user":
        scalar = subject.message_type is None
        given = [", ".join(x) if scalar else f"__Message({', '.join(x)})" for x in (a, b)]
        code.append(f"__u = __combiner({given[0]}, {given[1]})")
        return ["__u"] if scalar else [f"__u.{f.name}" for f in subject.message]
    if slot.op == "sum":
        return [f"{x} + {y}" for x, y in zip(a, b, strict=True)]
    if slot.op in ("any", "all"):
        word = "or" if slot.op == "any" else "and"
        return [f"({a[0]} {word} {b[0]})"]
    sign = "<" if slot.op == "min" else ">"
    if width == 1:
        return [f"({b[0]} if {b[0]} {sign} {a[0]} else {a[0]})"]
    # NamedTuples compare field by field, as Python compares them.
    test = f"{b[-1]} {sign} {a[-1]}"
    for x, y in reversed(list(zip(a[:-1], b[:-1], strict=True))):
        test = f"({y} {sign} {x} or ({y} == {x} and ({test})))"
    code.append(f"__take{first} = {test}")
    return [f"({y} if __take{first} else {x})" for x, y in zip(a, b, strict=True)]


def _fold(subject: Subject) -> ast.stmt:
    """Build the function that adds one vertex's contributions to the totals."""
    forms = {"sum": "{a} + {b}", "min": "min({a}, {b})", "max": "max({a}, {b})"}
    forms |= {"any": "bool({a} or {b})", "all": "bool({a} and {b})", "custom": "__fold_{name}({a}, {b})"}
    parts = [
        forms[a.kind].format(a=f"total[{i}]", b=f"given[{i}]", name=a.name)
        for i, a in enumerate(subject.aggregators.values())
    ]
    return function("fold", ["total", "given"], statements(f"return ({', '.join(parts)},)" if parts else "return ()"))


def _emit(width: int) -> ast.stmt:
    """Build the mailbox append. Past the end only the count grows: the engine makes room and runs the vertex again."""
    lines = ["__n = mail[0][0]", "mail[0][0] = __n + 1", "if __n < len(mail[1]):"]
    lines += ["    mail[1][__n] = kind", "    mail[2][__n] = target"]
    lines += [f"    mail[{4 + i}][__n] = message[{i}]" for i in range(width)]
    return function("emit", ["mail", "kind", "target", "message"], statements("\n".join(lines)))


def _methods(subject: Subject, names: set[str]) -> list[ast.stmt]:
    functions: list[ast.stmt] = []
    done: set[str] = set()
    waiting = sorted(names)
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        done.add(name)
        tree = subject.method_tree(name)
        params = [arg.arg for arg in tree.args.args]
        lower = LowerFields(subject)
        if subject.is_static(name):
            start, context = [], []
        else:
            tree, params = rename(tree, {params[0]: "self"}), params[1:]
            tuples = ["env", "params"]
            if not is_uniform_method(name, subject):
                tuples += ["aggregates", "vertex", "state"]
            start, context = unpack(subject, *tuples), tuples
        tree = prepare_method(tree, subject)
        lower.visit(tree)
        waiting += sorted(lower.methods - done)
        functions.append(at([function(f"__method_{name}", [*context, *params], [*start, *tree.body])], tree)[0])
    return functions


def _namespace(subject: Subject, module: ast.Module, tree: ast.FunctionDef) -> dict[str, Any]:
    """Find what the global names of the generated functions mean in the user's module."""
    meanings = global_names(subject.cls.compute)
    for name in list(vars(subject.cls)):
        if subject.method(name) is not None:
            method = subject.method(name)
            assert method is not None
            meanings = {**global_names(method), **meanings}
    namespace: dict[str, Any] = {"__np": np}
    if subject.message_type is not None:
        namespace["__Message"] = subject.message_type
    combiner = subject.cls.declaration.combiner
    if combiner is not None:
        namespace["__combiner"] = combiner
    for aggregator in subject.aggregators.values():
        if aggregator.function is not None:
            namespace[f"__fold_{aggregator.name}"] = aggregator.function
    own = {f.name for f in module.body if isinstance(f, ast.FunctionDef)}
    for definition in module.body:
        assert isinstance(definition, ast.FunctionDef)
        local = assigned_names([definition]) | {a.arg for a in definition.args.args}
        for node in ast.walk(definition):
            if not isinstance(node, ast.Name) or node.id in local | own | set(namespace):
                continue
            if node.id in meanings:
                namespace[node.id] = _usable(node, meanings[node.id], tree)
            elif not hasattr(builtins, node.id):
                near = difflib.get_close_matches(node.id, [*local, *meanings], 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                _reject_at(node, f"the name {node.id!r} is not defined{hint}", tree)
    return namespace


def _usable(node: ast.Name, value: Any, tree: ast.FunctionDef) -> Any:
    """Return what a global name may mean in compiled code.

    Raises:
        CompileError: If it means something that compiled code cannot hold.
    """
    if isinstance(value, (bool, int, float, np.number, np.bool_, types.ModuleType)):
        return value
    if isinstance(value, tuple) and all(isinstance(v, (bool, int, float)) for v in value):
        return value
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
        return value
    if isinstance(value, type) and (issubclass(value, np.generic) or hasattr(value, "_fields")):
        return value
    if value in (int, float, bool, abs, round) or hasattr(value, "py_func"):
        return value
    _reject_at(
        node,
        f"the global {node.id!r} is a {type(value).__name__}; compiled code can use numbers, tuples of numbers, "
        "functions and modules from outside compute()",
        tree,
    )
    return None


def _reject_at(node: ast.AST, problem: str, tree: ast.FunctionDef) -> None:
    node.sigps_file = tree.sigps_file  # type: ignore[attr-defined]
    reject(node, problem)


def _early_exit(sends: Sends, messages: Messages) -> EarlyExit:
    if messages.consumption is Consumption.LISTED or sends.delivery is not Delivery.RECORD:
        return EarlyExit.NEVER
    if not all(s.is_idempotent for s in messages.slots):
        return EarlyExit.NEVER
    if sends.is_uniform:
        return EarlyExit.FIRST
    is_lowest = len(messages.slots) == 1 and messages.slots[0].op == "min" and messages.slots[0].text == "m"
    return EarlyExit.LOWEST if is_lowest and sends.is_sender_id and not sends.columns else EarlyExit.NEVER


def _notes(subject: Subject, sends: Sends, messages: Messages, early_exit: EarlyExit) -> list[str]:
    notes = [f"messages: {messages.consumption.value}"]
    notes += [f"combiner: {s.op}({s.text})" for s in messages.slots]
    notes.append(f"delivery: {sends.delivery.value}")
    if sends.delivery is Delivery.RECORD:
        count = len(sends.record)
        notes.append(f"outbox record: {count} value{'s' * (count != 1)} a vertex")
        notes.append(f"edge columns: {', '.join(sends.columns) or 'none'}")
        forms = "pull only (lists)" if messages.consumption is Consumption.LISTED else "pull and push"
        notes.append(f"forms: {forms}")
        notes.append(f"early exit: {early_exit.value}")
    return notes


def _key(
    subject: Subject, module: ast.Module, namespace: dict[str, Any], slots: list[Slot], precision: str
) -> str:
    text = [ast.unparse(module), repr(slots), precision, subject.name]
    for group in (subject.states.values(), subject.params.values(), subject.message):
        text += [f"{f.name} {f.type} {f.is_vertex_id}" for f in group]
    text += [f"{a.name} {a.kind} {a.field.type} {a.identity}" for a in subject.aggregators.values()]
    text += [f"{name}={_fingerprint(value, set())}" for name, value in sorted(namespace.items())]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:32]


def _fingerprint(value: Any, seen: set[int]) -> str:
    """Describe what a global means, so that a change of it is a change of the program."""
    value = getattr(value, "py_func", value)
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, types.FunctionType):
        if id(value) in seen:
            return value.__name__
        seen.add(id(value))
        code = value.__code__
        names = global_names(value)
        inner = [_fingerprint(names[n], seen) for n in (*code.co_names, *code.co_freevars) if n in names]
        return f"def {code.co_code.hex()} {code.co_consts!r} {inner}"
    if isinstance(value, type) and hasattr(value, "_fields"):
        return f"{value.__name__}{value._fields}{inspect.get_annotations(value)}"
    return repr(value)
