"""From a `Vertex` class to a `VertexProgram`: the passes in their order, and the functions they leave put together."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import threading
from typing import Any

import numpy as np

from sigps.compiler.fingerprint import class_fingerprint, fingerprint
from sigps.compiler.frontend.absent import held, message_name, message_of
from sigps.compiler.frontend.combine import emit, fold, key, lift, merge
from sigps.compiler.frontend.draws import DRAW_FUNCTIONS, number_draws
from sigps.compiler.frontend.edge_function import Sends
from sigps.compiler.frontend.edge_loops import EDGE_FUNCTIONS, EdgeLoops, rewrite_edge_loops
from sigps.compiler.frontend.lower import lowered, record_name, state_name, unpack
from sigps.compiler.frontend.master import derive_master
from sigps.compiler.frontend.messages import consume_messages
from sigps.compiler.frontend.prepare import check_fields, prepare
from sigps.compiler.frontend.reading import Messages
from sigps.compiler.frontend.reductions import NAN_FUNCTIONS
from sigps.compiler.frontend.sends import separate_sends
from sigps.compiler.frontend.small_sums import mark_small_sums
from sigps.compiler.frontend.subject import Precision, Subject
from sigps.compiler.frontend.syntax import (
    VECTOR,
    assign,
    at,
    cast,
    expression,
    function,
    statements,
    tuple_of,
)
from sigps.compiler.program import Consumption, Delivery, EarlyExit, MasterFunction, Slot, VertexProgram
from sigps.compiler.proofs import asynchronous
from sigps.compiler.proofs.monotone import monotone
from sigps.compiler.proofs.path_lengths import path_lengths
from sigps.compiler.proofs.priority import priority_form
from sigps.compiler.proofs.together import sends_together
from sigps.errors import CompileError
from sigps.kernels.cpu.neighbors import mark_row, next_common
from sigps.model.records import Record
from sigps.model.vector import VectorType
from sigps.model.vertex import Vertex
from sigps.native.primitives import VALUE_FUNCTIONS
from sigps.native.source import reject
from sigps.native.trees import copied, walk

__all__ = ["analyse"]


def analyse(program: Vertex, precision: Precision = "double") -> VertexProgram:
    """Derive the vertex program of a class and its parameters. Reads the source of the class; runs none of it.

    Memoized: a class is analysed again only where its code, or what its code refers to, has changed. O(size of the
    source). May be called in several threads.

    Raises:
        CompileError: If something in the class cannot be compiled; with file, line and source text.
    """
    if type(program).compute is Vertex.compute:
        raise CompileError(f"{type(program).__name__} has no compute(): write 'def compute(self, messages)'")
    cls, given = type(program), tuple([f.name for f in program.declaration.states if f.is_given])
    key = (cls, precision, _fixed_params(program), class_fingerprint(cls), given)
    kept = cls.declaration.kept
    if key not in kept:
        with _analysing:
            if key not in kept:
                kept[key] = _analyse(program, Subject(program, precision), precision)
    found: VertexProgram = kept[key]
    return found


_analysing = threading.Lock()  # syntax trees are not safe to make in several threads at once (CPython 3.11)


def _fixed_params(program: Vertex) -> str:
    """Describe what the compiled code depends on: values that are not one number, and whether a number is whole."""
    fixed = [f.name for f in program.declaration.params if f.type is None or isinstance(f.type, VectorType)]
    if not fixed and not program.declaration.given_lengths:
        return ""
    values = {name: getattr(program, name) for name in fixed}
    is_number = {
        n: isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for n, v in values.items()
    }
    described = {
        n: isinstance(v, (float, np.floating)) if is_number[n] else repr(v) for n, v in values.items()
    }
    return repr((described, [getattr(program, name) for name in program.declaration.given_lengths]))


def _analyse(program: Vertex, subject: Subject, precision: Precision) -> VertexProgram:
    tree = subject.compute()
    sends = separate_sends(number_draws(prepare(tree, subject), subject), subject)
    messages = consume_messages(sends.body, subject, sends.delivery)
    edges = rewrite_edge_loops(messages.body, subject)
    body, called = lowered(edges.body, subject)
    messages.slots = mark_small_sums(subject, messages, sends)
    functions: list[ast.stmt] = [
        _compute(subject, body, sends, messages, edges, tree),
        *messages.functions,
        *edges.functions,
    ]
    edge, edge_methods = _edge(subject, sends, tree)
    functions += edge
    if messages.consumption is not Consumption.LISTED:
        functions += [lift(subject, messages, tree), merge(subject, messages)]
    elif messages.key is not None:
        functions.append(key(subject, messages, tree))
    functions.append(fold(subject))
    if sends.delivery is Delivery.DIRECT:
        functions.append(emit(len(subject.message)))
    functions += _methods(subject, called | messages.methods | edges.methods | edge_methods)
    module = _TypedMessages(subject).visit(ast.Module(body=at(functions, tree), type_ignores=[]))
    namespace = _namespace(subject)
    if edges.pairs:
        namespace |= {"__mark_row": mark_row, "__next_common": next_common}
    called_names = {node.id for node in walk(module) if isinstance(node, ast.Name)}
    own = EDGE_FUNCTIONS | VALUE_FUNCTIONS
    namespace |= {name: value for name, value in own.items() if name in called_names}
    namespace |= {name: _vector_type(name) for name in called_names if name.startswith(VECTOR)}
    if "random_seed" in subject.params:
        namespace |= DRAW_FUNCTIONS
    early_exit = _early_exit(subject, sends, messages)
    master, master_obstacle = derive_master(program, subject.params, precision)
    derived = VertexProgram(
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
        read_columns=edges.columns,
        reads_edges=edges.walks or edges.pairs or bool(subject.edge_states),
        early_exit=early_exit,
        module=module,
        namespace=namespace,
        obstacles=tuple(o for o in (messages.obstacle, sends.obstacle) if o),
        key=_key(subject, module, namespace, messages.slots, precision, master),
        has_master=subject.has_master,
        has_phases=subject.has_phases,
        master=master,
        master_obstacle=master_obstacle,
        reads_target=sends.reads_target,
        needs_end_ids=sends.needs_end_ids,
        takes_one=messages.takes_one,
        edge_states=tuple(subject.edge_states.values()),
        reads_neighbors=edges.pairs,
        reads_reverse=edges.reverses,
        sorts_by=messages.key_text,
    )
    derived = dataclasses.replace(derived, sends_together=sends_together(derived))
    if derived.has_master or derived.reads_edge_links:  # supersteps run as written
        return dataclasses.replace(derived, barrier_reason=asynchronous.find_obstacle(derived) or "")
    proved = dataclasses.replace(derived, priority_form=priority_form(derived), monotone=monotone(derived))
    proved = dataclasses.replace(proved, path_lengths=path_lengths(proved))
    factor = program.declaration.factor
    claim = asynchronous.asynchronous(proved, factor)
    reason = asynchronous.find_obstacle(proved, factor) or ""
    return dataclasses.replace(proved, asynchronous=claim, barrier_reason=reason)


def _compute(
    subject: Subject,
    body: list[ast.stmt],
    sends: Sends,
    messages: Messages,
    edges: EdgeLoops,
    tree: ast.FunctionDef,
) -> ast.FunctionDef:
    start = unpack(subject, "__env", "__params", "__aggregates", "__vertex", "__state")
    start += _unpack_inbox(subject, messages)
    has_links = edges.pairs or edges.reverses or bool(subject.edge_states)
    if edges.walks or has_links:
        links = ", __links" if has_links else ""
        start += statements(
            f"(__edge_begin, __edge_end, __edge_gids, __edge_ids, __edge_columns{links}) = __edges"
        )
        names = ", ".join(f"__column_{c}" for c in edges.columns)
        start += statements(f"({names},) = __edge_columns") if names else []
    if has_links:
        start += statements(
            "(__row_of, __row_offsets, __row_targets, __marks, __reverse, __pending, __committed) = __links"
        )
        for kind in ("pending", "committed") if subject.edge_states else ():
            names = ", ".join(f"__{kind}_{name}" for name in subject.edge_states)
            start += statements(f"({names},) = __{kind}")
    start += statements("__halt = False\n__retired = False\n__sent = False")
    start += [assign(f"__r{i}", value) for i, value in enumerate(sends.record)]
    start += [
        assign(f"__c_{a.name}", cast(a.field.dtype(), ast.Constant(_number_of(a.identity))))
        for a in subject.aggregators.values()
    ]
    result = tuple_of(
        [
            tuple_of([expression(state_name(s)) for s in subject.states]),
            expression("__np.uint8((1 if __halt else 0) | (2 if __retired else 0) | (4 if __sent else 0))"),
            tuple_of([expression(f"__r{i}") for i in range(len(sends.record))]),
            tuple_of([expression(f"__c_{a}") for a in subject.aggregators]),
        ]
    )
    returns = _Returns(result)
    body = [returns.visit(s) for s in body]
    given = ("env", "params", "aggregates", "vertex", "state", "inbox", "has", "edges", "direct")
    return at([function("compute", [f"__{n}" for n in given], [*start, *body, ast.Return(result)])], tree)[0]


class _TypedMessages(ast.NodeTransformer):
    """Casts the fields of each message that compute() builds to the declared types, those of messages that arrive."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if self._subject.makes_message(node):
            parts = self._subject.message_parts(node)
            fields = zip(self._subject.message, parts, strict=True)
            made = self._subject.made_message([held(f, self._subject.precision, p) for f, p in fields])
            return at([made], node)[0]
        return node


def _unpack_inbox(subject: Subject, messages: Messages) -> list[ast.stmt]:
    kind = messages.consumption
    if kind is Consumption.LISTED:
        boxes = "".join(f", __box{i}" for i in range(len(subject.message)))
        return statements(f"(__begin, __end{boxes}) = __inbox")
    names = [f"__g{i}" for i in range(len(messages.lift))]
    start = statements(f"({', '.join(names)},) = __inbox") if names else []
    if kind is Consumption.SINGLE:
        start += statements(f"__m = {message_of(subject.message, names, subject.message_record)}")
    return start


class _Returns(ast.NodeTransformer):
    """Makes every `return` of compute() return (state, flags, record, contributions)."""

    def __init__(self, result: ast.expr) -> None:
        self._result = result

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if node.value is not None and not (
            isinstance(node.value, ast.Constant) and node.value.value in (None, 0)
        ):
            reject(node, "compute() returns nothing: assign fields, send, and 'return'")
        return at([ast.Return(self._result)], node)[0]


def _edge(subject: Subject, sends: Sends, tree: ast.FunctionDef) -> tuple[list[ast.stmt], set[str]]:
    if sends.delivery is Delivery.DIRECT:
        return [], set()
    start = unpack(subject, "__env", "__params")
    if sends.record:
        start += statements(f"({', '.join(f'__r{i}' for i in range(len(sends.record)))},) = __record")
    if sends.columns:
        start += statements(f"({', '.join(f'__w_{c}' for c in sends.columns)},) = __columns")
    body, called = lowered(sends.edge_body, subject)
    params = ["__env", "__params", "__record", "__source", "__target", "__columns"]
    return at([function("edge", params, [*start, *body])], tree), called


def _methods(subject: Subject, names: set[str]) -> list[ast.stmt]:
    functions: list[ast.stmt] = []
    done: set[str] = set()
    waiting = sorted(names)
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        done.add(name)
        tree = copied(subject.tree(name))
        check_fields(tree, subject)
        params = [arg.arg for arg in tree.args.args]
        context: list[str] = []
        if not subject.is_static(name):
            params = params[1:]
            context = ["__env", "__params"]
            if not subject.is_uniform(name):
                context += ["__aggregates", "__vertex", "__state"]
        body, called = lowered(tree.body, subject)
        waiting += sorted(called - done)
        method = function(f"__method_{name}", [*context, *params], [*unpack(subject, *context), *body])
        method.args.args[len(context) :] = tree.args.args[len(tree.args.args) - len(params) :]
        method.args.defaults = tree.args.defaults
        functions.append(at([method], tree)[0])
    return functions


def _namespace(subject: Subject) -> dict[str, Any]:
    """Return the value of every global name of the generated functions."""
    namespace: dict[str, Any] = {"__np": np, **NAN_FUNCTIONS, **subject.names.meanings}
    messages = [subject.message_record]
    while messages:
        message = messages.pop()
        if message is not None:
            namespace[message_name(message)] = message.cls
            messages += [part for part in message.parts if isinstance(part, Record)]
    records: list[Any] = list(subject.records.values())
    while records:
        record = records.pop()
        namespace[record_name(record)] = record.cls
        records += [part for part in record.parts if isinstance(part, Record)]
    if subject.combiner is not None:
        namespace["__combiner"] = subject.combiner
    for aggregator in subject.aggregators.values():
        if aggregator.function is not None:
            namespace[f"__fold_{aggregator.name}"] = aggregator.function
    return namespace


def _number_of(identity: Any) -> Any:
    """Return an aggregator's identity as a number: all of a vector's are the same."""
    return identity[0] if isinstance(identity, tuple) else identity


def _vector_type(name: str) -> VectorType:
    """Return the type that a name of the generated module stands for (`syntax.scalar_type`)."""
    element, length = name.removeprefix(VECTOR).rsplit("_", 1)
    return VectorType(np.dtype(element).type, int(length))


def _early_exit(subject: Subject, sends: Sends, messages: Messages) -> EarlyExit:
    if messages.consumption is Consumption.LISTED or sends.delivery is not Delivery.RECORD:
        return EarlyExit.NEVER
    if not all(s.is_idempotent for s in messages.slots):
        return EarlyExit.NEVER
    if sends.is_uniform:
        return EarlyExit.FIRST
    slot = messages.slots[0] if len(messages.slots) == 1 else None
    if slot is None or slot.text != "m" or subject.message_type is not None:
        return EarlyExit.NEVER
    is_lowest = slot.op == "min" and sends.is_sender_id and not sends.columns
    return EarlyExit.LOWEST if is_lowest else EarlyExit.NEVER


def _key(
    subject: Subject,
    module: ast.Module,
    namespace: dict[str, Any],
    slots: list[Slot],
    precision: str,
    master: MasterFunction | None,
) -> str:
    text = [ast.unparse(module), repr(slots), precision, subject.name, repr(subject.has_master)]
    for group in (subject.states.values(), subject.params.values(), subject.message):
        text += [f"{f.name} {f.type} {f.is_vertex_id} {f.may_be_none}" for f in group]
    text += [f"{f.default!r} {f.measure} {f.varies}" for f in subject.states.values()]
    text += [f"edge {f.name} {f.type} {f.default!r}" for f in subject.edge_states.values()]
    text += [
        f"{a.name} {a.kind} {a.field.type} {a.identity} {a.start} {a.persistent}"
        for a in subject.aggregators.values()
    ]
    text += [f"{name}={fingerprint(value, set())}" for name, value in sorted(namespace.items())]
    if master is not None:
        text += [master.name, ast.unparse(master.module)]
        text += [f"{name}={fingerprint(value, set())}" for name, value in sorted(master.namespace.items())]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:32]
