"""That what a vertex sends last stands for all that it has sent: its key, or that and a constant.

A monotone program's messages change nothing unless they are better. So a result may go on from the last records alone
if these are the best that vertices have sent: if each is the key that the vertex stored then with one constant added,
in superstep 0 and in all others, and whoever stores a better key sends it. Else what was sent before, and would be
sent again on another graph, or not, is lost.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sigps.compiler.program import HALT, SENT, VertexProgram
from sigps.compiler.proofs.monotone import Guess, Key, KeyCasts, Number, all_answers, is_finite, meanings
from sigps.compiler.proofs.opaque import Count, Functions, Superstep, Unknown, call_compute, functions
from sigps.model.fields import extreme

__all__ = ["added_to_key"]


def added_to_key(program: VertexProgram) -> float | int | None:
    """Return what a monotone program adds to a vertex's key when it sends it; None where it does something else."""
    claim = program.monotone
    assert claim is not None
    names = functions(program, KeyCasts(program.message_dtypes[0]), meanings(program))
    try:
        added = _added_later(program, names)
        return added if added is not None and _is_added_first(program, names, added) else None
    except Exception:  # an opaque value was used for more than it supports
        return None


class _Sum(Number):
    """An opaque value and a constant."""

    def __init__(self, base: Any, constant: Any) -> None:
        self.base, self.constant = base, constant

    def __add__(self, other: object) -> Any:
        return _Sum(self.base, self.constant + other) if is_finite(other) else Number() + other

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return _Sum(self.base, self.constant - other) if is_finite(other) else Number() - other


class _AddedKey(Key):
    """A key of which it is known what is added to it."""

    def __add__(self, other: object) -> Any:
        return _Sum(self, 0) + other

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return _Sum(self, 0) - other


class _AddedGuess(Guess):
    """The same of an id or parameter."""

    def __add__(self, other: object) -> Any:
        return _Sum(self, 0) + other

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        return _Sum(self, 0) - other


def _parts(value: Any) -> tuple[Any, Any]:
    """Return an opaque value, or None, and the constant that is added to it."""
    if isinstance(value, (int, float, np.number)):
        return None, value
    return (value.base, value.constant) if isinstance(value, _Sum) else (value, 0)


def _added_later(program: VertexProgram, names: Functions) -> Any:
    """Return what is added after superstep 0; None where whoever takes a better key may send something else."""
    claim, (slot,) = program.monotone, program.slots
    assert claim is not None
    dtype, is_less = program.message_dtypes[0], slot.op == "min"
    least, greatest = (extreme(kind, dtype.type) for kind in ("max", "min"))
    found = set()
    for own, low, high in itertools.product(
        range(4), (-1, 0), (3, 4)
    ):  # with and without the ends of the type
        ends = {least: low, greatest: high}
        key, old = (_AddedKey(order, ends) for order in ((1, 2) if is_less else (2, 1)))
        states = tuple(old if i == claim.current else Unknown() for i in range(len(program.states)))
        inbox = (key, *(Unknown() for _ in slot.names[1:]))
        vertex = (_AddedKey(own, ends), Count(), Count())
        _, flags, record = call_compute(
            names, program, Superstep(False), vertex, states, inbox, True, Unknown()
        )
        base, constant = _parts(record[claim.record])
        if flags != HALT | SENT or base is not key:
            return None
        found.add(constant)
    return found.pop() if len(found) == 1 else None


def _is_added_first(program: VertexProgram, names: Functions, added: Any) -> bool:
    """Return whether on each path of superstep 0 what is sent is what is stored, with this added."""
    claim = program.monotone
    assert claim is not None
    for oracle in all_answers():
        vertex = (_AddedGuess(oracle), Count(), Count())
        states = tuple(Unknown() if field.varies else field.default for field in program.states)
        inbox = tuple(Unknown() for _ in program.slots[0].names)
        after, flags, record = call_compute(
            names, program, Superstep(True), vertex, states, inbox, False, _AddedGuess(oracle)
        )
        if not flags & SENT:
            continue
        base, constant = _parts(after[claim.current])
        of_record, sent = _parts(record[claim.record])
        if of_record is not base or sent != constant + added:
            return False
    return True
