"""The best-first form: a program in which the best value may spread alone, and is final where it arrives.

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
import functools
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
from sigps.compiler.syntax import at, statements

__all__ = ["best_first", "find_obstacle"]


def best_first(program: VertexProgram) -> VertexProgram | None:
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
    wrapped.body = statements(
        f"__state, __flags, __record, __contributions = __compute({given})\n"
        f"return __state, __np.uint8(__flags | (__flags & {SENT}) // {SENT // RETIRE}), __record, __contributions"
    )
    module.body += at([wrapped], compute)
    return replace(program, module=module, early_exit=EarlyExit.FIRST, key=f"{program.key} best first")


def find_obstacle(program: VertexProgram) -> str | None:
    """Tell why a program has no best-first form; None where it has one."""
    if program.delivery is not Delivery.RECORD or program.consumption is not Consumption.COMBINED:
        return "messages are not combined along edges"
    if [slot.op for slot in program.slots] not in (["min"], ["max"]) or len(program.message) != 1:
        return "there is not one min or max of one value"
    if len(program.states) != 1 or program.aggregators:
        return "a vertex keeps more than the best value it knows"
    if program.message_dtypes != program.state_dtypes or program.message_dtypes[0].kind not in "iu":
        return "the value is not a whole number, kept and sent in one type"
    if _may_not_end(program.module):
        return "compute() has a loop"
    better = min if program.slots[0].op == "min" else max
    try:
        holds = _starts_simply(program) and _passes_on_only_what_is_better(program, better)
    except Exception:  # whatever else compute() did with a value, no value here can bear it
        holds = False
    return None if holds else 'compute() does more than "take a better value and pass it on"'


def _may_not_end(module: ast.Module) -> bool:
    return any(isinstance(node, (ast.For, ast.While)) for node in ast.walk(module))


@functools.total_ordering
class _Value:
    """A value of which only the order is known."""

    def __init__(self, order: int) -> None:
        self.order = order

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Value):
            raise TypeError("compared with a constant")
        return self.order == other.order

    def __lt__(self, other: _Value) -> bool:
        return self.order < other.order

    def __hash__(self) -> int:
        raise TypeError("values can only be compared")

    def __bool__(self) -> bool:
        raise TypeError("values can only be compared")


class _Superstep:
    """A superstep of which is only known whether it is the first."""

    def __init__(self, is_first: bool) -> None:
        self._sign = 0 if is_first else 1

    def _compared(self, other: object, holds: bool) -> bool:
        if type(other) is not int or other != 0:
            raise TypeError("supersteps after the first are not told apart")
        return holds

    def __eq__(self, other: object) -> bool:
        return self._compared(other, self._sign == 0)

    def __ne__(self, other: object) -> bool:
        return self._compared(other, self._sign != 0)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, self._sign > 0)

    def __le__(self, other: object) -> bool:
        return self._compared(other, self._sign == 0)

    def __hash__(self) -> int:
        raise TypeError("supersteps can only be compared")

    def __bool__(self) -> bool:
        return self._sign > 0


class _Unknown:
    """Something that must not be touched, only handed on."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("something unknown was compared")

    def __hash__(self) -> int:
        raise TypeError("something unknown was used")

    def __bool__(self) -> bool:
        raise TypeError("something unknown was tested")


class _Casts:
    """Stands for NumPy: a value that is only copied keeps its order in every type that holds it."""

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        return lambda value: value


def _functions(program: VertexProgram) -> dict[str, Any]:
    """Return the generated functions, with nothing in their reach but what is harmless and keeps the order."""
    names: dict[str, Any] = {"__np": _Casts(), "__builtins__": {"min": min, "max": max}}
    exec(compile(program.module, program.file, "exec"), names)
    return names


def _compute(
    program: VertexProgram, superstep: _Superstep, vertex_id: _Value, state: Any, inbox: Any
) -> tuple[Any, int, Any]:
    unknown = _Unknown()
    env = (superstep, unknown, unknown)
    params = (unknown,) * len(program.params)
    vertex = (vertex_id, unknown, unknown)
    has = isinstance(inbox, _Value)
    compute = _functions(program)["compute"]
    (after,), flags, (record,), _ = compute(env, params, (), vertex, (state,), (inbox,), has, (), ())
    return after, flags, record


def _starts_simply(program: VertexProgram) -> bool:
    """Tell whether a vertex halts in superstep 0, and sends nothing but what it then keeps."""
    after, flags, record = _compute(program, _Superstep(True), _Value(0), _Unknown(), _Unknown())
    if flags & SENT:
        return flags == HALT | SENT and record is after and isinstance(after, _Value)
    return flags == HALT


def _passes_on_only_what_is_better(program: VertexProgram, better: Callable[..., _Value]) -> bool:
    for orders in itertools.product(range(3), repeat=3):
        vertex_id, state, heard = (_Value(o) for o in orders)
        after, flags, record = _compute(program, _Superstep(False), vertex_id, state, heard)
        improves = better(heard, state) != state
        if after != better(heard, state) or flags != (HALT | SENT if improves else HALT):
            return False
        if improves and record != heard:
            return False
        if not _edges_add_nothing(program, heard):
            return False
    return True


def _edges_add_nothing(program: VertexProgram, said: _Value) -> bool:
    unknown = _Unknown()
    names = _functions(program)
    env = (_Superstep(False), unknown, unknown)
    params = (unknown,) * len(program.params)
    columns = (unknown,) * len(program.edge_columns)
    passes, message = names["edge"](env, params, (said,), unknown, unknown, columns)
    return passes is True and names["lift"](env, params, message) == (said,)
