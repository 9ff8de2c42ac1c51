"""The priority-order form: a program in which the best value may spread alone, and is final where it arrives.

It exists for programs of one shape: in superstep 0 a vertex says what it starts with, or nothing; later, whoever
hears a better value takes it and passes it on, and nothing else happens. Then the end does not depend on the
order in which values travel (a least fixed point of a monotone function; Cousot, Cousot, "Automatic synthesis
of optimal invariant assertions", 1977), so an engine may let the best value go first. All messages of such a
superstep are equal: a pull stops at the first, and a vertex that has the best value can retire.

That a program has this shape is found by running its functions on values that can only be compared and copied.
What such functions do depends on the order of their arguments alone, so trying every order proves it for all.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sigps.compiler.program import (
    HALT,
    RETIRE,
    SENT,
    Consumption,
    Delivery,
    EarlyExit,
    VertexProgram,
)
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

__all__ = ["find_obstacle", "priority_form"]


def priority_form(program: VertexProgram) -> VertexProgram | None:
    """Return the form of a program for supersteps in which only the best value is sent; None where it has none.

    In it, whoever sends retires, and the first message is enough.
    """
    if find_obstacle(program) is not None:
        return None
    module = copy.deepcopy(program.module)
    compute = next(f for f in module.body if isinstance(f, ast.FunctionDef) and f.name == "compute")
    wrapped = copy.deepcopy(compute)
    compute.name = "__compute"
    given = ", ".join(arg.arg for arg in compute.args.args)
    wrapped.body = ast.parse(
        f"__state, __flags, __record, __contributions = __compute({given})\n"
        f"return __state, __np.uint8(__flags | (__flags & {SENT}) // {SENT // RETIRE}), __record, __contributions"
    ).body
    for node in (node for statement in wrapped.body for node in ast.walk(statement)):
        ast.copy_location(node, compute)  # where an error in it points to
    module.body.append(wrapped)
    return replace(program, module=module, early_exit=EarlyExit.FIRST, key=f"{program.key} priority order")


def find_obstacle(program: VertexProgram) -> str | None:
    """Tell why a program has no priority-order form; None where it has one."""
    if program.delivery is not Delivery.RECORD or program.consumption is not Consumption.COMBINED:
        return "messages are not combined along edges"
    if [slot.op for slot in program.slots] not in (["min"], ["max"]) or len(program.message) != 1:
        return "there is not one min or max of one value"
    if len(program.states) != 1 or program.aggregators:
        return "a vertex keeps more than the best value it knows"
    if program.message_dtypes != program.state_dtypes or program.message_dtypes[0].kind not in "iu":
        return "the value is not a whole number, kept and sent in one type"
    if may_not_end(program.module):
        return "compute() has a loop"
    better = min if program.slots[0].op == "min" else max
    try:
        holds = _starts_simply(program) and _passes_on_only_what_is_better(program, better)
    except Exception:  # whatever else compute() did with a value, no value here can bear it
        holds = False
    return None if holds else 'compute() does more than "take a better value and pass it on"'


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


def _starts_simply(program: VertexProgram) -> bool:
    """Tell whether a vertex halts in superstep 0, and sends nothing but what it then keeps."""
    after, flags, record = _compute(program, Superstep(True), Value(0), Unknown(), Unknown())
    if flags & SENT:
        return flags == HALT | SENT and record is after and isinstance(after, Value)
    return flags == HALT


def _passes_on_only_what_is_better(program: VertexProgram, better: Callable[..., Value]) -> bool:
    for orders in itertools.product(range(3), repeat=3):
        vertex_id, state, heard = (Value(o) for o in orders)
        after, flags, record = _compute(program, Superstep(False), vertex_id, state, heard)
        improves = better(heard, state) != state
        if after != better(heard, state) or flags != (HALT | SENT if improves else HALT):
            return False
        if improves and record != heard:
            return False
        if not _edges_add_nothing(program, heard):
            return False
    return True


def _edges_add_nothing(program: VertexProgram, said: Value) -> bool:
    unknown = Unknown()
    names = _functions(program)
    env = (Superstep(False), unknown, unknown)
    params = (unknown,) * len(program.params)
    columns = (unknown,) * len(program.edge_columns)
    passes, message = names["edge"](env, params, (said,), unknown, unknown, columns)
    return passes is True and names["lift"](env, params, message) == (said,)
