"""Programs that may run without barriers: their results do not depend on when a vertex reads its neighbours' records.

All that such a program keeps is one monotone fold: a key, of which the least or the greatest counts. It is monotone
(`monotone.py`), and more: after superstep 0 a vertex that stores a better key always sends, and what it sends is that
key, perhaps with one number added, as in superstep 0; no other state changes. A better key then never makes a worse
record, rounding included, so that supersteps end with the least fixed point, and so does any order in which vertices
read the last records of their in-neighbours, as long as every new record is read in the end (P. Cousot, R. Cousot,
"Automatic synthesis of optimal invariant assertions", 1977; Chazan, Miranker, "Chaotic relaxation", 1969).

A contraction is declared, `class P(Vertex, asynchronous=0.85)`, and is believed: what compute() makes of two states is
nearer than these were, by that factor, so that its fixed point is reached in any order. Proved is only that nothing
but the end needs barriers: one aggregator counts the vertices that changed, and the superstep is read to tell the
first from the others.

A parent, as in `apps.SSSP`, is another state. It follows from the fixed point where lengths are exact
(`path_lengths.py`); there alone such a program may run so.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from sigps.compiler.program import HALT, SENT, Asynchronous, Delivery, Monotone, VertexProgram
from sigps.compiler.proofs import monotone
from sigps.compiler.proofs.monotone import Key, KeyCasts, Number, first_supersteps, is_finite, meanings
from sigps.compiler.proofs.opaque import Functions, Superstep, Unknown, Value, call_compute, functions
from sigps.model.fields import extreme
from sigps.native.trees import walk

__all__ = ["asynchronous", "find_obstacle"]


def asynchronous(program: VertexProgram, factor: float | None = None) -> Asynchronous | None:
    """Return how a program may run without barriers; None for one that may not.

    Args:
        program: One whose claims `monotone` and `path_lengths` are there, if they hold.
        factor: What its class declares.
    """
    found = _examine(program, factor)
    return found if isinstance(found, Asynchronous) else None


def find_obstacle(program: VertexProgram, factor: float | None = None) -> str | None:
    """Return why a program needs barriers, with the line where one line is the reason; None where it needs none."""
    found = _examine(program, factor)
    return found if isinstance(found, str) else None


def _examine(program: VertexProgram, factor: float | None) -> Asynchronous | str:
    if factor is not None:
        return next(_reasons_declared(program), None) or Asynchronous(factor=factor)
    reason = next(_reasons(program), None)
    if reason is not None:
        return reason
    claim = program.monotone
    if claim is None:
        return monotone.find_obstacle(program) or "it is not monotone"
    try:
        changed = _changed(program, claim)
    except Exception:  # an opaque value was used for more than it supports
        return "it cannot be proved that a vertex with a better key stores and sends that, and does no more"
    if changed is None:
        return "a vertex with a better key does not always send it on, or sends something else than it"
    lengths = program.path_lengths
    if changed and (lengths is None or changed != {lengths.parent}):
        names = ", ".join(program.states[i].name for i in sorted(changed))
        return f"{names} may depend on the order of messages: it is stored with the key, and is no parent of a path"
    return Asynchronous(has_parents=bool(changed))


def _reasons_declared(program: VertexProgram) -> Iterator[str]:
    """Yield what of a declared contraction has a meaning between barriers alone."""
    yield from _reasons_of_any(program)
    if program.delivery is not Delivery.RECORD or program.reads_all_at_once:
        yield "messages are not combined along edges"
    for aggregator in program.aggregators:
        is_count = aggregator.kind in ("sum", "any") and aggregator.field.dtype().kind in "bi"
        if not is_count or aggregator.persistent or len(program.aggregators) > 1:
            yield f"aggregator {aggregator.name!r} is more than a count of the vertices that changed"
    if not program.aggregators:
        yield "no aggregator counts the vertices that changed (sum of ints, or any), so nothing tells the end"
    for name in ("compute", "edge", "lift"):
        for node in _supersteps(program, name, (0, 1)):
            yield f"line {node.lineno}: it reads the number of a superstep after the first"


def _reasons_of_any(program: VertexProgram) -> Iterator[str]:
    if program.has_master:
        method = "next_phase()" if program.has_phases else "master()"
        yield f"{method} runs between supersteps"
    if program.delivery is Delivery.DIRECT:
        yield next(iter(program.obstacles[-1:]), "it sends direct messages")
    if program.reads_edge_links:
        yield "values on edges are read as they were when a superstep began"


def _reasons(program: VertexProgram) -> Iterator[str]:
    """Yield what of a program has a meaning between barriers alone, each with its line."""
    yield from _reasons_of_any(program)
    for node in _found(program, "compute", lambda name: name.startswith(("__c_", "__a_"))):
        yield f"line {node.lineno}: aggregator {node.id[4:]!r} has a value after each superstep"
    for aggregator in program.aggregators:
        yield f"aggregator {aggregator.name!r} has a value after each superstep"
    for name in ("compute", "edge", "lift"):
        for node in _supersteps(program, name):
            yield f"line {node.lineno}: it reads the number of a superstep after the first"
    for slot in program.slots:
        if not slot.is_idempotent:
            yield f"{slot.op} of {slot.text}: a message that is read twice counts twice"


def _found(program: VertexProgram, function: str, is_wanted: Any) -> list[ast.Name]:
    """Return the names in a function that the user wrote: those the compiler puts first and last have its own line."""
    tree = program.function(function)
    if tree is None:
        return []
    names = [node for node in walk(tree) if isinstance(node, ast.Name) and is_wanted(node.id)]
    return [node for node in names if node.lineno > tree.lineno]


def _supersteps(program: VertexProgram, function: str, known: tuple[int, ...] = (0,)) -> list[ast.Name]:
    """Return where a function reads the superstep for more than whether it is the first.

    Args:
        program: The program.
        function: The function's name.
        known: What it may be compared with.
    """
    tree = program.function(function)
    if tree is None:
        return []
    tested = {
        id(node.left)
        for node in walk(tree)
        if isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value in known
    }
    reads = _found(program, function, lambda name: name == "__superstep")
    return [node for node in reads if isinstance(node.ctx, ast.Load) and id(node) not in tested]


class _Shifted(Number):
    """A key with a finite number added, which compares with nothing."""

    def __init__(self, key: Any, by: Any) -> None:
        self.key, self.by = key, by

    def __add__(self, other: object) -> Any:
        raise TypeError("two numbers were added to a key")

    __radd__ = __sub__ = __add__


class _KnownKey(Key):
    """A key that knows what is made of it."""

    def __add__(self, other: object) -> Any:
        if not is_finite(other):
            raise TypeError("a key was added to what may differ")
        return _Shifted(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other


def _changed(program: VertexProgram, claim: Monotone) -> set[int] | None:
    """Return the states that change beside the key after superstep 0; None where records do not follow from keys."""
    dtype = program.message_dtypes[0]
    names = functions(program, KeyCasts(dtype), meanings(program))
    (slot,) = program.slots
    least, greatest = (extreme(kind, dtype.type) for kind in ("max", "min"))
    changed: set[int] = set()
    shifts: list[Any] = []
    for *orders, low, high in itertools.product(*[range(3)] * 3, (-1, 0), (2, 3)):
        vertex_id, current, key = (_KnownKey(o, {least: low, greatest: high}) for o in orders)
        if not (key < current if slot.op == "min" else key > current):
            continue  # nothing happens: it is monotone
        states = tuple(current if i == claim.current else Unknown() for i in range(len(program.states)))
        inbox = (key, *(Unknown() for _ in slot.names[1:]))
        vertex = (vertex_id, Unknown(), Unknown())
        after, flags, record = call_compute(
            names, program, Superstep(False), vertex, states, inbox, True, Unknown()
        )
        if flags != HALT | SENT:
            return None
        shifts.append(_shift(record[claim.record], key))
        changed |= {i for i, value in enumerate(states) if after[i] is not value} - {claim.current}
    first = shifts[0]
    is_one = all(by is not None and by == first for by in shifts)
    return changed if is_one and _begins_alike(program, names, claim, first) else None


def _shift(sent: Any, key: Any) -> Any:
    """Return the number that is added to a key to make what is sent; None where it is made in another way."""
    if sent is key:
        return 0
    return sent.by if isinstance(sent, _Shifted) and sent.key is key else None


def _begins_alike(program: VertexProgram, names: Functions, claim: Monotone, shift: Any) -> bool:
    """Return whether in superstep 0, too, a vertex that sends sends the key that it stores with that number added."""
    dtype = program.message_dtypes[0].type
    for after, flags, record in first_supersteps(program, names):
        if not flags & SENT:
            continue
        stored, sent = after[claim.current], record[claim.record]
        if _is_number(stored) and _is_number(sent):
            if dtype(stored) + dtype(shift) != sent:
                return False
        elif shift != 0 or sent is not stored or isinstance(stored, Value):
            return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))
