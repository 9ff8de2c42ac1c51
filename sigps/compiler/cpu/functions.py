"""A program's functions as `kernels/cpu` calls them: what `kernels/cpu/functions.py` says of them."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from sigps.compiler.cpu.rows import Dtypes
from sigps.compiler.program import FUNCTIONS, Consumption, EarlyExit, VertexProgram
from sigps.kernels.cpu import grouped, push
from sigps.kernels.cpu.functions import ONE, Functions, commit, compute_vertex
from sigps.native.builder import Functions as TypedFunctions
from sigps.native.primitives import (
    ProgramFunction,
    keep_fault,
    load_row,
    lost_in_max,
    pick,
    sender,
)
from sigps.native.trees import walk

__all__ = ["adds_floats", "build_functions"]


def build_functions(
    program: VertexProgram,
    typed: TypedFunctions,
    slots: Dtypes,
    record: Dtypes,
    deterministic: bool,
    num_lanes: int = 1,
) -> Functions:
    """Return what loops call of a program.

    Args:
        program: The program.
        typed: Its functions.
        slots: Types of the inbox fields.
        record: Types of the outbox record's fields.
        deterministic: Whether floats add up in the order of messages, and vertices' contributions stay apart.
        num_lanes: Runs side by side; of several floats add up in the order of messages, too.
    """
    lists = program.consumption is Consumption.LISTED
    # The keys of a monotone program's loops have an order: no key is NaN (`engine/cpu/monotone.py`).
    has_nan = program.monotone is None
    names = {name: ProgramFunction(name, has_nan=has_nan) for name in FUNCTIONS if name in typed}
    if _merges_in_any_order(program, slots, deterministic or num_lanes > 1):
        names["merge"] = ProgramFunction("merge", reorders=True)
    functions = Functions(
        compute=names["compute"],
        deliver=_deliver(names, lists, program.needs_end_ids),
        lift=names.get("lift", _absent),
        merge=_merge(names),
        contribute=_contribute(names["fold"]),
        edges_of=_edges_of if program.reads_edges else _no_edges,
        edges_between=_edges_between if program.reads_edges else _no_edges,
        load_inbox=_load_lists if lists else _load_inbox,
        conclude=_conclude(names["fold"], tuple(a.persistent for a in program.aggregators)),
        stops_early=program.early_exit in (EarlyExit.FIRST, EarlyExit.LOWEST),
        may_retire=program.monotone is None,
        num_lanes=num_lanes,
        passes_always=program.sends_along_all_edges,
        has_record=bool(record),
        has_vectors=any(dtype.shape for dtype in slots),
        only_arrives=not slots and _is_constant(program.function("edge")),
        **_comparisons(program),
    )
    functions = functions._replace(key=names.get("key"), is_more=_is_more, arrange=_as_they_are)
    if program.sorts_by:
        functions = functions._replace(arrange=grouped.sort_list(functions))
    functions = functions._replace(compute_vertex=compute_vertex(functions), commit=commit(functions))
    return functions._replace(
        scatter_direct=push.scatter_direct(functions), compute_listed=push.compute_listed(functions)
    )


def _is_constant(edge: ast.FunctionDef | None) -> bool:
    """Tell whether edge() is there and returns constants, so that every message passes and has no fault."""
    if edge is None:
        return False
    *before, last = edge.body
    unpacks_only = all(isinstance(s, ast.Assign) and isinstance(s.value, ast.Name) for s in before)
    return unpacks_only and ast.unparse(last).startswith("return (True,") and not _names(last) - {"__np"}


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in walk(node) if isinstance(name, ast.Name)}


def adds_floats(program: VertexProgram, slots: Dtypes) -> bool:
    """Tell whether messages combine by adding or multiplying floats, which depends on their order."""
    return any(
        d.base.kind == "f" and op in ("sum", "prod") for d, op in zip(slots, program.slot_ops, strict=False)
    )


def _merges_in_any_order(program: VertexProgram, slots: Dtypes, deterministic: bool) -> bool:
    """Tell whether sums may be done in any order, several at once: where the order of messages is left open."""
    if deterministic or not adds_floats(program, slots) or program.consumption is Consumption.GROUPED:
        return False
    return all(op in ("sum", "any", "all") for op in program.slot_ops)


def _deliver(names: dict[str, Any], lists: bool, needs_end_ids: bool) -> Any:
    """Return what makes a message of a record and an edge, and slots of it where messages are not listed."""
    edge: Any = names.get("edge")
    lift: Any = names.get("lift")

    def deliver(arguments, record, ids, s, v, columns):  # type: ignore[no-untyped-def]
        source = np.int64(ids[s]) if needs_end_ids and len(ids) > 0 else np.int64(s)
        target = np.int64(ids[v]) if needs_end_ids and len(ids) > 0 else np.int64(v)
        sent_in = (arguments.superstep - 1, arguments.num_vertices, arguments.num_edges)
        (passes, message), fault = edge(sent_in, arguments.params, record, source, target, columns)
        keep_fault(sender(s), fault)
        if lists:
            return passes, message
        read_in = (arguments.superstep, arguments.num_vertices, arguments.num_edges)
        value, fault = lift(read_in, arguments.params, message)
        if passes:
            keep_fault(v, fault)
        return passes, value

    def deliver_nothing(arguments, record, ids, s, v, columns):  # type: ignore[no-untyped-def]
        return False, ()

    return deliver_nothing if edge is None else deliver


def _comparisons(program: VertexProgram) -> dict[str, Any]:
    """Return how a monotone program's loops compare keys; for other programs every message matters."""
    claim = program.monotone
    if claim is None:
        return {"matters": _always}
    at, takes_min = claim.current, program.slots[0].op == "min"

    def current(states, v):  # type: ignore[no-untyped-def]
        return states[at][v]

    def is_better(key, other):  # type: ignore[no-untyped-def]
        return key < other if takes_min else key > other

    def matters(states, v, value):  # type: ignore[no-untyped-def]
        return is_better(value[0], states[at][v])  # type: ignore[no-untyped-call]

    return {
        "current": current,
        "is_better": is_better,
        "matters": matters,
        "key_field": claim.record,
        "key_column": claim.column,
    }


def _always(states, v, value):  # type: ignore[no-untyped-def]
    return True


def _as_they_are(v, arguments, messages):  # type: ignore[no-untyped-def]
    return messages


def _is_more(slots, other):  # type: ignore[no-untyped-def]
    mine, theirs = lost_in_max(slots[1]), lost_in_max(other[1])
    return mine > theirs or (mine == theirs and slots[0] < other[0])


def _absent() -> None:
    """Stand for a function that this program has no use for."""


def _merge(names: dict[str, Any]) -> Any:
    """Return the combiner, for a vertex v."""
    merge: Any = names.get("merge")

    def merge_slots(v, slots, has, value):  # type: ignore[no-untyped-def]
        merged, fault = merge(slots, has, value)
        keep_fault(v, fault)
        return merged

    return merge_slots if merge is not None else _absent


def _contribute(fold: Any) -> Any:
    def contribute(contributions, v, total, contribution):  # type: ignore[no-untyped-def]
        folded, fault = fold(total, contribution)
        keep_fault(v, fault)
        return folded

    return contribute


def _conclude(fold: Any, persistent: tuple[bool, ...]) -> Any:
    def conclude(values, total, identity):  # type: ignore[no-untyped-def]
        return total

    def conclude_kept(values, total, identity):  # type: ignore[no-untyped-def]
        folded, fault = fold(pick(persistent, values, identity), total)
        keep_fault(-1, fault)
        return folded

    return conclude_kept if any(persistent) else conclude


def _edges_of(walked, v):  # type: ignore[no-untyped-def]
    offsets = walked[0]
    return (offsets[v], offsets[v + ONE], *walked[1:])


def _edges_between(walked, v):  # type: ignore[no-untyped-def]
    return (walked[0][v], walked[1][v], *walked[2:])


def _no_edges(walked, v):  # type: ignore[no-untyped-def]
    return ()


def _load_inbox(v, inbox, empty):  # type: ignore[no-untyped-def]
    if inbox.state[v] != 0:
        return True, load_row(inbox.slots, v)
    return False, empty


def _load_lists(v, inbox, empty):  # type: ignore[no-untyped-def]
    first, last = inbox.offsets[v], inbox.offsets[v + 1]
    return last > first, (first, last, *inbox.messages)
