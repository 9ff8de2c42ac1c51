"""Programs of shortest paths: a vertex's key is the length of the shortest path to it, and a parent is that path's end.

Such a program is monotone, and more: its keys are floats, the least is the best, an edge adds the number of one column,
and what a vertex sends is the key that it stores. Besides the key it keeps at most the id of the sender of its best
message, the smallest where several are as good. BSP then ends with a function of the graph alone, where lengths are
exact and no weight is negative: the length of the shortest path to each vertex (the least fixed point; R. Bellman, "On
a routing problem", 1958), and of the last vertices before the end of such paths that have the fewest edges the one with
the smallest id. So an engine may find lengths and numbers of edges in any order, and parents when all are known.

The proof runs the program's functions on opaque values, as that of monotone programs does.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sigps.compiler.program import HALT, SENT, PathLengths, VertexProgram
from sigps.compiler.proofs.monotone import first_supersteps, meanings
from sigps.compiler.proofs.opaque import (
    Casts,
    Functions,
    Superstep,
    Unknown,
    Value,
    call_compute,
    functions,
)
from sigps.native.primitives import lost_in_min

__all__ = ["find_obstacle", "path_lengths"]

MORE = "compute() keeps more than the key and the id of its sender, or sends something else than its key"


def path_lengths(program: VertexProgram) -> PathLengths | None:
    """Return where a program of shortest paths keeps lengths and parents; None for other programs.

    Args:
        program: One whose claim `monotone` is there, if it is monotone.
    """
    found = _examine(program)
    return found if isinstance(found, PathLengths) else None


def find_obstacle(program: VertexProgram) -> str | None:
    """Return why a program is none of shortest paths; None where it is one."""
    found = _examine(program)
    return found if isinstance(found, str) else None


def _examine(program: VertexProgram) -> PathLengths | str:
    claim = program.monotone
    if claim is None:
        return "it is not monotone"
    if claim.column is None or program.message_dtypes[0].kind != "f":
        return "keys are not floats to which an edge column is added"
    if set(program.slot_ops) != {"min"} or len(program.slot_ops) > 2 or len(program.record) != 1:
        return "there is more than the least key and its sender"
    try:
        kept = _kept(program) if _sends_its_key(program) and _adds_the_column(program) else None
    except Exception:  # the program used an opaque value for more than it supports
        kept = None
    if kept is None or len(kept) > 1 or any(program.state_dtypes[state] != np.int64 for state in kept):
        return MORE
    return PathLengths(claim.current, next(iter(kept), None), claim.column)


def _functions(program: VertexProgram) -> Functions:
    known = {name: value for name, value in meanings(program).items() if value is not lost_in_min}
    lost = {name: _same for name, value in program.namespace.items() if value is lost_in_min}
    return functions(program, Casts(), {**known, **lost})  # keys are no NaN: weights are finite


def _same(value: Any) -> Any:
    return value


class _Term:
    """A number that can be copied, and added to another once."""

    def __init__(self, *terms: _Term) -> None:
        self.terms = terms

    def __add__(self, other: object) -> _Term:
        if not isinstance(other, _Term) or self.terms or other.terms:
            raise TypeError("more than two numbers were added up")
        return _Term(self, other)


def _adds_the_column(program: VertexProgram) -> bool:
    """Return whether an edge brings the sender's key and its column's number added up, and the sender's id."""
    names, unknown = _functions(program), Unknown()
    env, params = (Superstep(False), unknown, unknown), (unknown,) * len(program.params)
    record, source = _Term(), Unknown()
    columns = tuple(_Term() for _ in program.edge_columns)
    assert program.monotone is not None
    assert program.monotone.column is not None
    column = columns[program.monotone.column]
    passes, message = names["edge"](env, params, (record,), source, unknown, columns)
    key, *others = names["lift"](env, params, message)
    if passes is not True or not isinstance(key, _Term) or not all(other is source for other in others):
        return False
    return key.terms in ((record, column), (column, record))


def _kept(program: VertexProgram) -> set[int] | None:
    """Return which states get the best message's sender; None where a vertex keeps more, or does not send its key."""
    names, claim = _functions(program), program.monotone
    assert claim is not None
    found = []
    for orders in itertools.product(range(3), repeat=3):
        vertex_id, current, key = (Value(order) for order in orders)
        inbox = (key, *(Unknown() for _ in program.slots[0].names[1:]))
        states = tuple(current if i == claim.current else Unknown() for i in range(len(program.states)))
        vertex = (vertex_id, Unknown(), Unknown())
        after, flags, record = call_compute(
            names, program, Superstep(False), vertex, states, inbox, True, Unknown()
        )
        if not key < current:
            continue  # nothing happens: it is monotone
        changed = {i for i, state in enumerate(states) if after[i] is not state} - {claim.current}
        if flags != HALT | SENT or record[0] is not key or any(after[i] is not inbox[-1] for i in changed):
            return None
        found.append(changed)
    return found[0] if all(changed == found[0] for changed in found) else None


def _sends_its_key(program: VertexProgram) -> bool:
    """Return whether in superstep 0 a vertex that sends sends the key that it stores."""
    names, claim = functions(program, _Numbers(), meanings(program)), program.monotone
    assert claim is not None
    for after, flags, record in first_supersteps(program, names):
        stored, sent = after[claim.current], record[0]
        if flags & SENT and stored is not sent and not (_is_number(stored) and stored == sent):
            return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


class _Numbers:
    """Replaces NumPy: numbers are cast as it casts them, other values are only copied."""

    def __getattr__(self, name: str) -> Any:
        return lambda value: np.dtype(name).type(value) if _is_number(value) else value
