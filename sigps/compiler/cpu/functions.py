"""A program's functions built for Numba: what `kernels/cpu/functions.py` says of them, compiled."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from sigps.compiler.cpu.linked import linked
from sigps.compiler.cpu.loops import jit
from sigps.compiler.cpu.rows import Dtypes, array_access, row_access
from sigps.compiler.program import FUNCTIONS, Consumption, EarlyExit, VertexProgram
from sigps.compiler.typed.builder import Functions as TypedFunctions
from sigps.kernels import direction
from sigps.kernels.cpu import push
from sigps.kernels.cpu.functions import ONE, Functions, commit, compute_vertex
from sigps.kernels.cpu.functions import note_fault as note_any_fault

__all__ = ["adds_floats", "aggregates_floats", "build_functions"]


def build_functions(
    program: VertexProgram, typed: TypedFunctions, slots: Dtypes, record: Dtypes, deterministic: bool
) -> Functions:
    """Return what loops call of a program.

    Args:
        program: The program.
        typed: Its functions.
        slots: Types of the inbox fields.
        record: Types of the outbox record's fields.
        deterministic: Whether floats add up in the order of messages, and vertices' contributions stay apart.
    """
    lists = program.consumption is Consumption.LISTED
    prefix = f"sigps.{program.key}"
    names = {name: linked(typed, name, prefix) for name in FUNCTIONS if name in typed}
    if _merges_in_any_order(program, slots, deterministic):
        names["merge"] = linked(typed, "merge", f"{prefix}.reordered", reorders=True)
    load_states, store_states = array_access(len(program.states))
    load_record, store_record = row_access(len(record))
    load_slots, store_slots = row_access(len(slots))
    load_message, store_message = array_access(len(program.message))
    functions = Functions(
        compute=names["compute"],
        deliver=_deliver(names, lists, program.needs_end_ids),
        lift=names.get("lift", _absent),
        merge=_merge(names),
        contribute=_contribute(names["fold"], program, deterministic),
        edges_of=jit(_edges_of if program.reads_edges else _no_edges),
        load_states=load_states,
        store_states=store_states,
        load_record=load_record,
        store_record=store_record,
        load_columns=array_access(len(program.edge_columns))[0],
        load_slots=load_slots,
        store_slots=store_slots,
        load_message=load_message,
        store_message=store_message,
        load_inbox=jit(_load_lists) if lists else _load_inbox(load_slots),
        conclude=_conclude(names["fold"], tuple(a.persistent for a in program.aggregators)),
        choose_direction=_choose_direction(),
        prefetch=_prefetch(),
        note_fault=_note_fault(),
        stops_early=program.early_exit in (EarlyExit.FIRST, EarlyExit.LOWEST),
        may_retire=program.monotone is None,
        **_comparisons(program),
    )
    functions = functions._replace(
        compute_vertex=jit(compute_vertex(functions)), commit=jit(commit(functions))
    )
    return functions._replace(
        scatter_direct=jit(push.scatter_direct(functions)),
        compute_listed=jit(push.compute_listed(functions)),
    )


def adds_floats(program: VertexProgram, slots: Dtypes) -> bool:
    """Tell whether messages combine by adding up floats, whose sum depends on their order."""
    return any(d.kind == "f" and op == "sum" for d, op in zip(slots, program.slot_ops, strict=False))


def aggregates_floats(program: VertexProgram) -> bool:
    """Tell whether an aggregator is a float."""
    return any(d.kind == "f" for d in program.aggregate_dtypes)


def _merges_in_any_order(program: VertexProgram, slots: Dtypes, deterministic: bool) -> bool:
    """Tell whether sums may be done in any order, several at once: where the order of messages is left open."""
    if deterministic or not adds_floats(program, slots):
        return False
    return all(op in ("sum", "any", "all") for op in program.slot_ops)


def _deliver(names: dict[str, Any], lists: bool, needs_end_ids: bool) -> Any:
    """Return what makes a message of a record and an edge, and slots of it where messages are not listed."""
    edge: Any = names.get("edge")
    lift: Any = names.get("lift")
    note_fault = _note_fault()

    def deliver(arguments, record, ids, s, v, columns):  # type: ignore[no-untyped-def]
        source = np.int64(ids[s]) if needs_end_ids and len(ids) > 0 else np.int64(s)
        target = np.int64(ids[v]) if needs_end_ids and len(ids) > 0 else np.int64(v)
        sent_in = (arguments.superstep - 1, arguments.num_vertices, arguments.num_edges)
        (passes, message), fault = edge(sent_in, arguments.params, record, source, target, columns)
        note_fault(arguments, v, fault)
        if lists:
            return passes, message
        read_in = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        value, fault = lift(read_in, arguments.params, message)
        note_fault(arguments, v, fault)
        return passes, value

    def deliver_nothing(arguments, record, ids, s, v, columns):  # type: ignore[no-untyped-def]
        return False, ()

    return jit(deliver_nothing if edge is None else deliver)


def _comparisons(program: VertexProgram) -> dict[str, Any]:
    """Return how a monotone program's loops compare keys; for other programs every message matters."""
    claim = program.monotone
    if claim is None:
        return {"matters": jit(_always)}
    at, takes_min = claim.current, program.slots[0].op == "min"

    def current(states, v):  # type: ignore[no-untyped-def]
        return states[at][v]

    def is_better(key, other):  # type: ignore[no-untyped-def]
        return key < other if takes_min else key > other

    better = jit(is_better)

    def matters(states, v, value):  # type: ignore[no-untyped-def]
        return better(value[0], states[at][v])

    return {
        "current": jit(current),
        "is_better": better,
        "matters": jit(matters),
        "key_field": claim.record,
        "key_column": claim.column,
    }


def _always(states, v, value):  # type: ignore[no-untyped-def]
    return True


def _absent() -> None:
    """Stand for a function that this program has no use for."""


def _merge(names: dict[str, Any]) -> Any:
    """Return the combiner, for a vertex v."""
    merge: Any = names.get("merge")
    note_fault = _note_fault()

    def merge_slots(arguments, v, slots, has, value):  # type: ignore[no-untyped-def]
        merged, fault = merge(slots, has, value)
        note_fault(arguments, v, fault)
        return merged

    return jit(merge_slots) if merge is not None else _absent


def _contribute(fold: Any, program: VertexProgram, deterministic: bool) -> Any:
    _, store = array_access(len(program.aggregators))
    note_fault = _note_fault()

    def contribute(arguments, contributions, v, total, contribution):  # type: ignore[no-untyped-def]
        folded, fault = fold(total, contribution)
        note_fault(arguments, v, fault)
        return folded

    def contribute_apart(arguments, contributions, v, total, contribution):  # type: ignore[no-untyped-def]
        store(contributions, v, contribution)
        folded, fault = fold(total, contribution)
        note_fault(arguments, v, fault)
        return folded

    return jit(contribute_apart if deterministic and aggregates_floats(program) else contribute)


def _conclude(fold: Any, persistent: tuple[bool, ...]) -> Any:
    def conclude(values, total, identity):  # type: ignore[no-untyped-def]
        return total

    def conclude_kept(values, total, identity):  # type: ignore[no-untyped-def]
        return fold(begin(values, identity), total)[0]

    if not any(persistent):
        return jit(conclude)
    parts = ", ".join(f"{'values' if keeps else 'identity'}[{i}]" for i, keeps in enumerate(persistent))
    names: dict[str, Any] = {"__name__": __name__}
    exec(f"def begin(values, identity):\n    return ({parts},)", names)
    begin = jit(names["begin"])
    return jit(conclude_kept)


@functools.cache
def _prefetch() -> Any:
    """Return a function that loads the cache line of an array's element, and does not wait for it."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(typingctx, array, at):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
            view = context.make_array(signature.args[0])(context, builder, given[0])
            address = builder.bitcast(builder.gep(view.data, [given[1]]), cgutils.voidptr_t)
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
            load = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            builder.call(load, [address, word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.none(array, at), generate

    return prefetch


@functools.cache
def _note_fault() -> Any:
    return jit(note_any_fault)


@functools.cache
def _choose_direction() -> Any:
    return jit(direction.choose_direction)


def _edges_of(walked, v):  # type: ignore[no-untyped-def]
    offsets = walked[0]
    return (offsets[v], offsets[v + ONE], *walked[1:])


def _no_edges(walked, v):  # type: ignore[no-untyped-def]
    return ()


def _load_inbox(load_slots: Any) -> Any:
    def load_inbox(v, inbox, empty):  # type: ignore[no-untyped-def]
        if inbox.state[v] != 0:
            return True, load_slots(inbox.slots, v)
        return False, empty

    return jit(load_inbox)


def _load_lists(v, inbox, empty):  # type: ignore[no-untyped-def]
    first, last = inbox.offsets[v], inbox.offsets[v + 1]
    return last > first, (first, last, *inbox.messages)
