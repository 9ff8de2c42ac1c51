"""How a program's result follows when edges are inserted and deleted: what can be kept of the last run, and why.

    monotone        the old states stay; vertices that changes improve, or that lost what their key came from, go on
    first arrival   vertices act in the supersteps in which they did, but where messages came or went (`arrival.py`)
    fixed rounds    all vertices run in each superstep; those run again that see something else there (`rounds.py`)
    local measures  the same, of states that begin with measures of the graph: these follow the batch's edges
    linear          within a tolerance, where that is asked for: residuals are pushed (`linear.py`)
    full            the program runs anew

A monotone program (`monotone.py`) has a fixed point that does not depend on the order in which messages are read. The
old one is a step towards it if nothing but edges makes it differ: compute() must read no degree and no count of
vertices or edges. Its key is then that of a full run, bit for bit. Other states that it sets with its key, such as a
parent, may be those of another order of supersteps: they are *witnesses*, valid, but perhaps not equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sigps.compiler.program import HALT, SENT, VertexProgram
from sigps.compiler.proofs.arrival import FirstArrival, first_arrival, retires
from sigps.compiler.proofs.linear import Linear, linear
from sigps.compiler.proofs.monotone import Guess, all_answers, find_obstacle, meanings
from sigps.compiler.proofs.opaque import Casts, Count, CountReadError, Superstep, Unknown, functions
from sigps.compiler.proofs.rounds import Rounds, rounds
from sigps.compiler.proofs.sent_keys import added_to_key

__all__ = ["Incremental", "incremental", "within_tolerance"]


@dataclass(frozen=True)
class Incremental:
    """How a result follows an update.

    Attributes:
        kind: Which way.
        why: Why, in words.
        witnesses: States that are valid, and perhaps not those of a full run.
        sends_keys: Whether what a vertex sends after superstep 0 follows from its key alone.
        record_is_key: Whether it is the key, and nothing else.
        level: Of a first arrival, the position among the states of the superstep in which a vertex acts.
        is_nearest: Of a first arrival, whether the level is the least of those of in-neighbours, and one more.
        rounds: Of a program in rounds, what was proved.
        linear: Of a linear program, likewise.
    """

    kind: Literal["monotone", "first arrival", "fixed rounds", "local measures", "linear", "full"]
    why: str
    witnesses: tuple[str, ...] = ()
    sends_keys: bool = False
    record_is_key: bool = False
    level: int = 0
    is_nearest: bool = False
    rounds: Rounds | None = None
    linear: Linear | None = None


def within_tolerance(program: VertexProgram) -> Incremental:
    """Return how the solution that a program comes to follows an update of its graph, within a tolerance."""
    found = linear(program)
    if isinstance(found, str):
        return Incremental("full", f"not linear: {found}")
    why = "it is linear: residuals are pushed until they are small"
    return Incremental("linear", why, linear=found)


def incremental(program: VertexProgram) -> Incremental:
    """Return how the result of a program follows an update of its graph."""
    if (obstacle := find_obstacle(program)) is not None:
        found = first_arrival(program)
        if isinstance(found, FirstArrival):
            why = "a vertex acts once, where the first message comes, keeps the superstep, and retires"
            return Incremental("first arrival", why, level=found.level, is_nearest=found.is_nearest)
        in_rounds = rounds(program)
        if isinstance(in_rounds, Rounds):
            why = "all vertices run in each superstep, and only those again whose rows, messages or states changed"
            if any(field.measure for field in program.states):
                also = "measures of the graph are counted along the edges that a batch changes; "
                return Incremental("local measures", also + why, rounds=in_rounds)
            return Incremental("fixed rounds", why, rounds=in_rounds)
        also = f"; no first arrival: {found}" if retires(program) else ""
        return Incremental("full", f"not monotone: {obstacle}{also}; no fixed rounds: {in_rounds}")
    if any(field.measure for field in program.states):
        return Incremental("full", "a state begins with a measure of the graph, which updates change")
    if program.monotone is None:
        return Incremental("full", "not monotone on every device")
    try:
        changed = _changed_states(program)
    except CountReadError:
        return Incremental("full", "compute() reads a degree or a count, which updates change")
    except Exception:  # an opaque value was used for more than it supports
        return Incremental("full", "it cannot be proved that compute() reads no degree and no count")
    added = added_to_key(program)
    if added is None:
        why = "what a vertex sends may be worse than what it sent before, so its last message does not stand for all"
        return Incremental("full", why)
    key = program.monotone.current
    witnesses = tuple(program.states[i].name for i in sorted(changed - {key}))
    why = "its fixed point does not depend on the order of messages"
    is_key = added == 0 and len(program.record) == 1
    return Incremental("monotone", why, witnesses, _sends_keys(program), is_key)


class _Other(Unknown):
    """A state or a part of a message that is no key: it may be copied, but not into a record."""

    def _used(self, *other: object) -> Any:
        return _Other()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _used


def _sends_keys(program: VertexProgram) -> bool:
    """Return whether records after superstep 0 are made of keys, ids and parameters alone."""
    assert program.monotone is not None
    names = functions(program, Casts(), meanings(program))
    current = program.monotone.current
    try:
        for oracle in all_answers():
            states = tuple(Guess(oracle) if i == current else _Other() for i in range(len(program.states)))
            inbox = (Guess(oracle), *(_Other() for _ in program.slots[0].names[1:]))
            env = (Superstep(False), Count(), Count())
            params = tuple(Guess(oracle) for _ in program.params)
            vertex = (Guess(oracle), Count(), Count())
            _, flags, record, _ = names["compute"](env, params, (), vertex, states, inbox, True, (), ())
            if flags & SENT and any(isinstance(value, (_Other, Count)) for value in record):
                return False
    except Exception:  # an opaque value was used for more than it supports
        return False
    return True


def _changed_states(program: VertexProgram) -> set[int]:
    """Return the states that compute() may change, on every path of superstep 0 and the later ones.

    Raises:
        CountReadError: If a degree or a count is read.
    """
    names = functions(program, Casts(), meanings(program))
    changed: set[int] = set()
    for is_first in (True, False):
        for oracle in all_answers():
            states = tuple(Guess(oracle) for _ in program.states)
            inbox = tuple(Guess(oracle) for _ in program.slots[0].names)
            env = (Superstep(is_first), Count(), Count())
            params = tuple(Guess(oracle) for _ in program.params)
            vertex = (Guess(oracle), Count(), Count())
            given = env, params, (), vertex, states, inbox, not is_first, (), ()
            after, flags, record, _ = names["compute"](*given)
            sent = record if flags & SENT else ()
            if any(isinstance(value, (Count, Unknown)) for value in (*after, *sent)) or not flags & HALT:
                raise CountReadError
            changed |= {i for i, value in enumerate(after) if value is not states[i]}
    return changed
