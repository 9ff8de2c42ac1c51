"""Monotone programs: a message changes a vertex only where its key is better than the vertex's current key.

The key is the first field of a message; better is less where compute() takes the `min` of messages, greater where it
takes the `max`. One state of a vertex holds its current key. After superstep 0 one rule holds: a strictly better key is
stored there, and perhaps sent on; any other message changes nothing. So a message read a second time changes nothing:
since the first time the current key is at least as good. A pull may therefore ignore which vertices sent in the last
superstep: it reads the last record of every in-neighbour (the worst key where there is none) and takes the best key, if
that is better than the current one. A push may drop every other message. States and supersteps are exactly those of
BSP. (The same rule makes chaotic relaxation correct: Chazan, Miranker, "Chaotic relaxation", Linear Algebra and its
Applications 2, 1969. Here the order stays that of supersteps.)

The proof runs the program's functions on opaque values, in every order that these may have. NaN has no order, so no
value that could be NaN may become a key: the values that compute() sends are checked here, parameters and edge columns
when a run starts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sigps.compiler.program import HALT, SENT, Consumption, Delivery, Monotone, VertexProgram
from sigps.compiler.proofs.opaque import (
    Functions,
    Superstep,
    Unknown,
    Value,
    call_compute,
    functions,
    may_not_end,
)
from sigps.model.fields import extreme
from sigps.model.records import is_record_type
from sigps.native.primitives import lost_in_max, lost_in_min

__all__ = [
    "Guess",
    "Key",
    "KeyCasts",
    "Number",
    "all_answers",
    "find_obstacle",
    "first_supersteps",
    "is_finite",
    "meanings",
    "monotone",
]

MORE = 'compute() does more than "store a better value, or do nothing"'


def monotone(program: VertexProgram) -> Monotone | None:
    """Return where a monotone program stores its current key and sends it from; None for other programs."""
    found = _examine(program)
    return found if isinstance(found, Monotone) else None


def find_obstacle(program: VertexProgram) -> str | None:
    """Return why a program is not monotone; None where it is."""
    found = _examine(program)
    return found if isinstance(found, str) else None


def _examine(program: VertexProgram) -> Monotone | str:
    if program.delivery is not Delivery.RECORD or program.consumption is not Consumption.COMBINED:
        return "messages are not combined along edges"
    if [slot.op for slot in program.slots] not in (["min"], ["max"]):
        return "there is not one min or max of messages"
    if program.aggregators:
        return "vertices contribute to an aggregator"
    if may_not_end(program.module) or program.reads_edges:
        return "compute() has a loop"
    key_dtype = program.message_dtypes[0]
    names = functions(program, KeyCasts(key_dtype), meanings(program))
    try:
        key = _key(program, names, key_dtype)
        if key is None:
            return "the first value of a message is not the sender's, nor that and one of the edge added up"
        record, column = key
        for state, dtype in enumerate(program.state_dtypes):
            may_be_none = program.states[state].may_be_none
            if dtype == key_dtype and not may_be_none and _is_monotone(program, names, state, record):
                return Monotone(state, record, column)
    except Exception:  # the program used an opaque value for more than it supports
        return MORE
    return MORE


def meanings(program: VertexProgram) -> dict[str, Any]:
    """Return the global names that a proof can run with: the message's type, numbers, and what takes NaN out.

    What reads and stores ids that may be None is a cast: it only copies. A program that asks for None is refused.
    """
    casts = {"__id_or_none": lambda value: value} if "__id_or_none" in program.namespace else {}
    return casts | {
        name: value
        for name, value in program.namespace.items()
        if is_record_type(value) or isinstance(value, (int, float)) or value in (lost_in_min, lost_in_max)
    }


class _Anything:
    """Any number: it may be copied and computed with, but not compared."""

    def __add__(self, other: object) -> _Anything:
        return _Anything()

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__

    def _undecided(self, *other: object) -> bool:
        raise TypeError("an opaque number was compared")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _undecided
    __hash__ = None  # type: ignore[assignment]


class Number(_Anything):
    """A number that is not NaN, and stays one where a finite one is added."""

    def __add__(self, other: object) -> _Anything:
        return Number() if is_finite(other) else _Anything()

    __radd__ = __sub__ = __add__


class Key(Value):
    """A key, or a value that compares with keys, and with the ends of its type. Results of arithmetic have no order.

    Args:
        order: Its place among such values.
        ends: The places of the least and the greatest number of its type.
    """

    def __init__(self, order: int, ends: Mapping[Any, int]) -> None:
        super().__init__(order)
        self._ends = ends

    def _place(self, other: object) -> int:
        if isinstance(other, Value):
            return other.order
        if isinstance(other, (int, float, np.number)) and other in self._ends:
            return self._ends[other]
        raise TypeError("compared with a constant")

    def __eq__(self, other: object) -> bool:
        return self.order == self._place(other)

    def __lt__(self, other: object) -> bool:
        return self.order < self._place(other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: object) -> _Anything:
        return Number() + other

    __radd__ = __sub__ = __add__

    def __mul__(self, other: object) -> _Anything:
        return _Anything()

    __rmul__ = __rsub__ = __truediv__ = __rtruediv__ = __mul__


def is_finite(value: object) -> bool:
    """Tell whether a value is a finite number."""
    return isinstance(value, (int, float, np.number)) and math.isfinite(value)


class _Sent(_Anything):
    """A number from which an edge function may make a key: of the record, of the edge, or a sum of both."""

    def __init__(self, records: tuple[int, ...], columns: tuple[int, ...], is_shifted: bool = False) -> None:
        self.records, self.columns, self.is_shifted = records, columns, is_shifted

    def __add__(self, other: object) -> _Anything:
        if isinstance(other, _Sent):
            shifted = self.is_shifted or other.is_shifted
            return _Sent(self.records + other.records, self.columns + other.columns, shifted)
        return _Sent(self.records, self.columns, True) if is_finite(other) else _Anything()

    __radd__ = __add__

    def is_key(self, may_add: bool) -> bool:
        """Return whether a worse record makes no better key, and the worst record the worst key."""
        adds = bool(self.columns or self.is_shifted)
        return len(self.records) == 1 and len(self.columns) <= 1 and may_add >= adds


class KeyCasts:
    """Replaces NumPy: a cast to the key's type returns the value itself; one to another type may lose its order."""

    def __init__(self, key_dtype: np.dtype[Any]) -> None:
        self._key_dtype = key_dtype

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        dtype = np.dtype(name)

        def cast(value: Any) -> Any:
            if isinstance(value, (int, float, np.number)):
                with np.errstate(all="ignore"):
                    return dtype.type(value)
            loses = dtype != self._key_dtype and isinstance(value, (Value, Number, _Sent))
            return _Anything() if loses else value

        return cast


def _key(program: VertexProgram, names: Functions, dtype: np.dtype[Any]) -> tuple[int, int | None] | None:
    """Return the field of the record that a key is made of, and the edge column added to it, if any."""
    env = (_Anything(), _Anything(), _Anything())
    params = tuple(_Anything() for _ in program.params)
    record = tuple(_Sent((i,), ()) for i in range(len(program.record)))
    columns = tuple(_Sent((), (i,)) for i in range(len(program.edge_columns)))
    passes, message = names["edge"](env, params, record, _Anything(), _Anything(), columns)
    key = names["lift"](env, params, message)[0]
    if passes is not True or dtype.kind not in "iuf" or not isinstance(key, _Sent):
        return None
    if not key.is_key(may_add=dtype.kind == "f"):
        return None
    return key.records[0], key.columns[0] if key.columns else None


def _is_monotone(program: VertexProgram, names: Functions, state: int, record: int) -> bool:
    return _starts_halted(program, names, state, record) and _takes_better_keys(program, names, state, record)


def _takes_better_keys(program: VertexProgram, names: Functions, state: int, sent: int) -> bool:
    """Return whether after superstep 0 a better key is stored, and any other message changes nothing."""
    (slot,) = program.slots
    least, greatest = (extreme(kind, program.message_dtypes[0].type) for kind in ("max", "min"))
    for *orders, low, high in itertools.product(
        *[range(3)] * 3, (-1, 0), (2, 3)
    ):  # with and without the ends
        vertex_id, current, key = (Key(o, {least: low, greatest: high}) for o in orders)
        states: tuple[Any, ...] = tuple(
            current if i == state else _Anything() for i in range(len(program.states))
        )
        inbox = (key, *(_Anything() for _ in slot.names[1:]))
        vertex = (vertex_id, Unknown(), Unknown())
        after, flags, record = call_compute(
            names, program, Superstep(False), vertex, states, inbox, True, Unknown()
        )
        if (key < current) if slot.op == "min" else (key > current):
            if after[state] is not key or flags not in (HALT, HALT | SENT):
                return False
            if flags & SENT and not _has_order(record[sent], program):
                return False
        elif flags != HALT or any(a is not b for a, b in zip(after, states, strict=True)):
            return False
    return True


def _starts_halted(program: VertexProgram, names: Functions, state: int, sent: int) -> bool:
    """Return whether every vertex halts in superstep 0, on every path, and stores and sends no NaN as its key."""
    for after, flags, record in first_supersteps(program, names):
        keys = [after[state], *([record[sent]] if flags & SENT else [])]
        if flags not in (HALT, HALT | SENT):
            return False
        if not all(_has_order(value, program) for value in keys):
            return False
    return True


def _has_order(value: Any, program: VertexProgram) -> bool:
    """Return whether a value cannot be NaN in the type of keys."""
    if isinstance(value, (int, float, np.number)):
        return not np.isnan(value)
    return isinstance(value, (Value, Number)) or program.message_dtypes[0].kind != "f"


class _Oracle:
    """Decides comparisons of opaque values: with the given answers first, then with False."""

    def __init__(self, answers: list[bool]) -> None:
        self.answers = answers
        self._asked = 0

    def answer(self) -> bool:
        self._asked += 1
        if self._asked > len(self.answers):
            self.answers.append(False)
        return self.answers[self._asked - 1]


def all_answers() -> Iterator[_Oracle]:
    """Yield oracles until a function has run on each of its paths: after each yield, the paths it opened are queued."""
    waiting: list[list[bool]] = [[]]
    for _ in range(1000):
        if not waiting:
            return
        given = waiting.pop()
        oracle = _Oracle(list(given))
        yield oracle
        waiting += [[*oracle.answers[:i], True] for i in range(len(given), len(oracle.answers))]
    raise TypeError("the function has over 1000 paths")


def first_supersteps(
    program: VertexProgram, names: Functions
) -> Iterator[tuple[tuple[Any, ...], int, tuple[Any, ...]]]:
    """Compute a vertex in superstep 0 on each path; yield its states, the flags and the record.

    What an id, a degree and a parameter brought are told apart.
    """
    for oracle in all_answers():
        vertex = (Guess(oracle), Guess(oracle), Guess(oracle))
        states = tuple(Unknown() if field.varies else field.default for field in program.states)
        inbox = tuple(Unknown() for _ in program.slots[0].names)
        yield call_compute(names, program, Superstep(True), vertex, states, inbox, False, Guess(oracle))


class Guess(Number):
    """An id, a count or a parameter: an oracle decides how it compares, so that both outcomes are tried."""

    def __init__(self, oracle: _Oracle) -> None:
        self._oracle = oracle

    def __add__(self, other: object) -> _Anything:
        return Guess(self._oracle) if is_finite(other) else _Anything()

    __radd__ = __sub__ = __add__

    def _undecided(self, *other: object) -> bool:
        return self._oracle.answer()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _undecided
    __hash__ = None  # type: ignore[assignment]
