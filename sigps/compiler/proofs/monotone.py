"""Monotone programs: a message changes a vertex only where its first field, the key, is better than what it knows.

Such a vertex keeps the best key it has heard (`known`), and lives by one rule after superstep 0: a strictly better key
is taken, and perhaps passed on; any other message leaves everything as it is. So a message that is heard a second
time changes nothing: when it was heard first, `known` became at least as good. A pull need not ask who sent in
the last superstep then; it reads the last record of every in-neighbour (the worst value where there is none)
and looks for a key better than `known`. A push may drop every other message on the way. States and supersteps stay
exactly those of BSP. (The same rule makes chaotic relaxation legal: Chazan, Miranker, "Chaotic relaxation", Linear
Algebra and its Applications 2, 1969. Here the order stays that of supersteps.)

That a program follows the rule is found by running its functions on values that can only be compared and copied,
in every order that they may have. NaN has no order, so nothing that could be NaN may become a key: what compute()
says is checked here, parameters and edge columns when a run starts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
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

__all__ = ["find_obstacle", "monotone"]

MORE = 'compute() does more than "take a better value, or do nothing"'


def monotone(program: VertexProgram) -> Monotone | None:
    """Return where a monotone program keeps what it knows and says its keys; None for other programs."""
    found = _examine(program)
    return found if isinstance(found, Monotone) else None


def find_obstacle(program: VertexProgram) -> str | None:
    """Tell why a program is not a monotone one; None where it is."""
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
    names = functions(program, _Casts(key_dtype), _meanings(program))
    try:
        key = _key(program, names, key_dtype)
        if key is None:
            return "the first value of a message is not the sender's, nor that and one of the edge added up"
        record, column = key
        for known, dtype in enumerate(program.state_dtypes):
            if dtype == key_dtype and _improves(program, names, known, record):
                return Monotone(known, record, column)
    except Exception:  # whatever else the program did with a value, no value here can bear it
        return MORE
    return MORE


def _meanings(program: VertexProgram) -> dict[str, Any]:
    """Return the global names that a proof can follow: the message's type and numbers."""
    return {
        name: value
        for name, value in program.namespace.items()
        if value is program.message_type or isinstance(value, (int, float))
    }


class _Anything:
    """A value of which nothing is known: it may be handed on and computed with, and decides nothing."""

    def __add__(self, other: object) -> _Anything:
        return _Anything()

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__

    def _undecided(self, *other: object) -> bool:
        raise TypeError("a value of which nothing is known was compared")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _undecided
    __hash__ = None  # type: ignore[assignment]


class _Number(_Anything):
    """A number that is not NaN, and stays one where a finite one is added."""

    def __add__(self, other: object) -> _Anything:
        return _Number() if _is_finite(other) else _Anything()

    __radd__ = __sub__ = __add__


class _Key(Value):
    """A key, or what compares with keys: it has an order, which what is computed of it has lost."""

    def __add__(self, other: object) -> _Anything:
        return _Number() + other

    __radd__ = __sub__ = __add__

    def __mul__(self, other: object) -> _Anything:
        return _Anything()

    __rmul__ = __rsub__ = __truediv__ = __rtruediv__ = __mul__


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and math.isfinite(value)


class _Said(_Anything):
    """A number that an edge function may make a key of: the sender's, the edge's, or the two added up."""

    def __init__(self, records: tuple[int, ...], columns: tuple[int, ...], is_shifted: bool = False) -> None:
        self.records, self.columns, self.is_shifted = records, columns, is_shifted

    def __add__(self, other: object) -> _Anything:
        if isinstance(other, _Said):
            shifted = self.is_shifted or other.is_shifted
            return _Said(self.records + other.records, self.columns + other.columns, shifted)
        return _Said(self.records, self.columns, True) if _is_finite(other) else _Anything()

    __radd__ = __add__

    def is_key(self, may_add: bool) -> bool:
        """Tell whether a worse record makes a worse key, and the worst record none that is better than any."""
        adds = bool(self.columns or self.is_shifted)
        return len(self.records) == 1 and len(self.columns) <= 1 and may_add >= adds


class _Casts:
    """Stands for NumPy: values stay what they are in the key's type; in another type their order may be lost."""

    def __init__(self, key_dtype: np.dtype[Any]) -> None:
        self._key_dtype = key_dtype

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        dtype = np.dtype(name)

        def cast(value: Any) -> Any:
            if isinstance(value, (int, float, np.number)):
                with np.errstate(all="ignore"):
                    return dtype.type(value)
            loses = dtype != self._key_dtype and isinstance(value, (Value, _Number, _Said))
            return _Anything() if loses else value

        return cast


def _key(program: VertexProgram, names: Functions, dtype: np.dtype[Any]) -> tuple[int, int | None] | None:
    """Return which field of the record a key is made of, and the edge column added to it, if one is."""
    env = (_Anything(), _Anything(), _Anything())
    params = tuple(_Anything() for _ in program.params)
    record = tuple(_Said((i,), ()) for i in range(len(program.record)))
    columns = tuple(_Said((), (i,)) for i in range(len(program.edge_columns)))
    passes, message = names["edge"](env, params, record, _Anything(), _Anything(), columns)
    key = names["lift"](env, params, message)[0]
    if passes is not True or dtype.kind not in "iuf" or not isinstance(key, _Said):
        return None
    if not key.is_key(may_add=dtype.kind == "f"):
        return None
    return key.records[0], key.columns[0] if key.columns else None


def _improves(program: VertexProgram, names: Functions, known: int, key: int) -> bool:
    return _starts_simply(program, names, known, key) and _follows_the_rule(program, names, known, key)


def _follows_the_rule(program: VertexProgram, names: Functions, known: int, key: int) -> bool:
    """Tell whether a better key is taken, and nothing else ever happens after superstep 0."""
    (slot,) = program.slots
    for orders in itertools.product(range(3), repeat=3):
        vertex_id, knows, heard = (_Key(o) for o in orders)
        states: tuple[Any, ...] = tuple(
            knows if i == known else _Anything() for i in range(len(program.states))
        )
        inbox = (heard, *(_Anything() for _ in slot.names[1:]))
        vertex = (vertex_id, Unknown(), Unknown())
        after, flags, record = call_compute(
            names, program, Superstep(False), vertex, states, inbox, True, Unknown()
        )
        if (heard < knows) if slot.op == "min" else (heard > knows):
            if after[known] is not heard or flags not in (HALT, HALT | SENT):
                return False
            if flags & SENT and not _has_order(record[key], program):
                return False
        elif flags != HALT or any(a is not b for a, b in zip(after, states, strict=True)):
            return False
    return True


def _starts_simply(program: VertexProgram, names: Functions, known: int, key: int) -> bool:
    """Tell whether every vertex halts in superstep 0, however it decides, and no NaN can come of it."""
    for oracle in _all_answers():
        vertex = (_Guess(oracle), _Guess(oracle), _Guess(oracle))
        states = tuple(Unknown() if field.measure else field.default for field in program.states)
        inbox = tuple(Unknown() for _ in program.slots[0].names)
        after, flags, record = call_compute(
            names, program, Superstep(True), vertex, states, inbox, False, _Guess(oracle)
        )
        said = [record[key]] if flags & SENT else []
        if flags not in (HALT, HALT | SENT):
            return False
        if not all(_has_order(value, program) for value in [after[known], *said]):
            return False
    return True


def _has_order(value: Any, program: VertexProgram) -> bool:
    """Tell whether a value cannot be NaN in the type of keys."""
    if isinstance(value, (int, float, np.number)):
        return not np.isnan(value)
    return isinstance(value, (Value, _Number)) or program.message_dtypes[0].kind != "f"


class _Oracle:
    """Answers questions that nobody can answer: as it was told at first, then with no."""

    def __init__(self, answers: list[bool]) -> None:
        self.answers = answers
        self._asked = 0

    def answer(self) -> bool:
        self._asked += 1
        if self._asked > len(self.answers):
            self.answers.append(False)
        return self.answers[self._asked - 1]


def _all_answers() -> Iterator[_Oracle]:
    """Yield oracles until every course that a function can take has been taken."""
    waiting: list[list[bool]] = [[]]
    for _ in range(1000):
        if not waiting:
            return
        told = waiting.pop()
        oracle = _Oracle(list(told))
        yield oracle
        waiting += [[*oracle.answers[:i], True] for i in range(len(told), len(oracle.answers))]
    raise TypeError("the function decides too much")


class _Guess(_Number):
    """An id, a count, a parameter. How it compares with others is guessed both ways."""

    def __init__(self, oracle: _Oracle) -> None:
        self._oracle = oracle

    def __add__(self, other: object) -> _Anything:
        return _Guess(self._oracle) if _is_finite(other) else _Anything()

    __radd__ = __sub__ = __add__

    def _undecided(self, *other: object) -> bool:
        return self._oracle.answer()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _undecided
    __hash__ = None  # type: ignore[assignment]
