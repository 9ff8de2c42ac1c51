"""The priority-order form: a program whose best value may be sent before all others, and is final where it arrives.

It exists for programs of one shape: in superstep 0 a vertex sends its first value, or nothing; later, a vertex that
receives a better value stores it and sends it on, and nothing else happens. The result then does not depend on the
order in which values are sent (it is the least fixed point of a monotone function; Cousot, Cousot, "Automatic
synthesis of optimal invariant assertions", 1977), so an engine may send values in order of priority, the best first.
All messages of such a superstep are equal: a pull stops at the first, and a vertex that has the best value can retire.

The proof runs the program's functions on opaque values. What the functions do depends on the order of their
arguments alone, so trying every order proves the shape for all values.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sigps.compiler.program import HALT, RETIRE, SENT, Consumption, Delivery, EarlyExit, VertexProgram
from sigps.compiler.proofs.opaque import (
    Casts,
    Functions,
    Superstep,
    Unknown,
    Value,
    call_compute,
    functions,
    may_not_end,
)
from sigps.native.trees import copied, parse, walk

__all__ = ["find_obstacle", "priority_form"]

_SENT_OVER_RETIRE = (SENT // RETIRE).bit_length() - 1


def priority_form(program: VertexProgram) -> VertexProgram | None:
    """Return the form of a program for supersteps in which only the best value is sent; None where it has none.

    In it a vertex that sends retires, and a pull stops at the first message.
    """
    if find_obstacle(program) is not None:
        return None
    module = copied(program.module)
    compute = next(f for f in module.body if isinstance(f, ast.FunctionDef) and f.name == "compute")
    wrapped = copied(compute)
    compute.name = "__compute"
    given = ", ".join(arg.arg for arg in compute.args.args)
    wrapped.body = parse(
        f"__state, __flags, __record, __contributions = __compute({given})\n"
        f"return __state, __np.uint8(__flags | (__flags & {SENT}) >> {_SENT_OVER_RETIRE}), __record, __contributions"
    ).body
    for node in (node for statement in wrapped.body for node in walk(statement)):
        ast.copy_location(node, compute)  # where an error in it points to
    module.body.append(wrapped)
    return replace(program, module=module, early_exit=EarlyExit.FIRST, key=f"{program.key} priority order")


def find_obstacle(program: VertexProgram) -> str | None:
    """Return why a program has no priority-order form; None where it has one."""
    if program.delivery is not Delivery.RECORD or program.consumption is not Consumption.COMBINED:
        return "messages are not combined along edges"
    if [slot.op for slot in program.slots] not in (["min"], ["max"]) or len(program.message) != 1:
        return "there is not one min or max of one value"
    if len(program.slots[0].names) != 1:
        return "messages are compared by a key"
    if len(program.states) != 1 or program.aggregators:
        return "a vertex has more state than its current value"
    if program.message_dtypes != program.state_dtypes or program.message_dtypes[0].kind not in "iu":
        return "the value is not an integer, stored and sent in one type"
    if may_not_end(program.module):
        return "compute() has a loop"
    better = min if program.slots[0].op == "min" else max
    try:
        holds = _starts_halted(program) and _sends_on_only_better_values(program, better)
    except Exception:  # compute() used an opaque value for more than it supports
        holds = False
    return None if holds else 'compute() does more than "store a better value and send it on"'


def _functions(program: VertexProgram) -> Functions:
    return functions(program, Casts(), {})


def _compute(
    program: VertexProgram, superstep: Superstep, vertex_id: Value, state: Any, inbox: Any
) -> tuple[Any, int, Any]:
    unknown = Unknown()
    has = isinstance(inbox, Value)
    (after,), flags, (record,) = call_compute(
        _functions(program),
        program,
        superstep,
        (vertex_id, unknown, unknown),
        (state,),
        (inbox,),
        has,
        unknown,
    )
    return after, flags, record


def _starts_halted(program: VertexProgram) -> bool:
    """Return whether a vertex halts in superstep 0, and sends nothing but the value that it stores."""
    after, flags, record = _compute(program, Superstep(True), Value(0), Unknown(), Unknown())
    if flags & SENT:
        return flags == HALT | SENT and record is after and isinstance(after, Value)
    return flags == HALT


def _sends_on_only_better_values(program: VertexProgram, better: Callable[..., Value]) -> bool:
    for orders in itertools.product(range(3), repeat=3):
        vertex_id, current, received = (Value(o) for o in orders)
        after, flags, record = _compute(program, Superstep(False), vertex_id, current, received)
        improves = better(received, current) != current
        if after != better(received, current) or flags != (HALT | SENT if improves else HALT):
            return False
        if improves and record != received:
            return False
        if not _edge_copies(program, received):
            return False
    return True


def _edge_copies(program: VertexProgram, value: Value) -> bool:
    """Return whether every edge passes a message, equal to the record."""
    unknown = Unknown()
    names = _functions(program)
    env = (Superstep(False), unknown, unknown)
    params = (unknown,) * len(program.params)
    columns = (unknown,) * len(program.edge_columns)
    passes, message = names["edge"](env, params, (value,), unknown, unknown, columns)
    return passes is True and names["lift"](env, params, message) == (value,)
