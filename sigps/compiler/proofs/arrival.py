"""First arrival: a vertex acts once, in the first superstep in which a message reaches it, keeps it, and retires.

Breadth-first search is one. The state that keeps the superstep, its *level*, then says all about what a vertex sends
and when: in that superstep alone, what follows from its id and its edges. So after an update levels are settled in
ascending order, and only where something changed: a vertex acts in superstep s if it did not before, and an
in-neighbour of level s - 1 sends to it; what else it keeps follows from these messages (`engine/cpu/arrivals.py`). The
result is that of a full run, all states, bit for bit: compute() itself runs on the very messages of that superstep,
which combine in any order.

The proof runs compute() on opaque values: in superstep 0, and later with a message, a vertex acts, or halts and changes
nothing. Degrees and counts may not be read, as other edges would change them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from sigps.compiler.program import HALT, RETIRE, SENT, Consumption, Delivery, VertexProgram
from sigps.compiler.proofs.monotone import Guess, Number, all_answers, meanings
from sigps.compiler.proofs.opaque import Casts, Count, CountReadError, Superstep, functions, may_not_end
from sigps.native.trees import walk

__all__ = ["FirstArrival", "first_arrival", "retires"]

_ANY_ORDER = frozenset({"min", "max", "any", "all", "or", "and"})
"""Operations by which the same messages in any order, or twice, come to the same value."""


@dataclass(frozen=True)
class FirstArrival:
    """A claim: a vertex acts once, in the superstep that it keeps, sends along all its edges, and retires.

    Attributes:
        level: Position in `states` of that superstep; below 0 where a vertex has not acted.
        is_nearest: Whether every edge brings a message, and any message makes a vertex act: the level is then the least
            of those of in-neighbours, and one more.
    """

    level: int
    is_nearest: bool = False


def retires(program: VertexProgram) -> bool:
    """Return whether compute() retires a vertex anywhere."""
    compute = program.function("compute")
    return compute is not None and any(
        isinstance(node, ast.Assign) and ast.unparse(node) == "__retired = True" for node in walk(compute)
    )


def first_arrival(program: VertexProgram) -> FirstArrival | str:
    """Return the claim, or why it does not hold."""
    if program.delivery is not Delivery.RECORD or program.consumption is not Consumption.COMBINED:
        return "messages are not combined along edges"
    if program.aggregators or program.has_master:
        return "vertices contribute to an aggregator, or there is a master"
    if program.edge_states or program.reads_edges or may_not_end(program.module):
        return "compute() has a loop"
    if any(field.varies for field in program.states):
        return "a state begins with other values than its default"
    if program.record:
        return "a message holds what its sender computed"
    if program.takes_one or not all(op in _ANY_ORDER for slot in program.slots for op in slot.ops):
        return "messages do not combine by min, max, any or all"
    if any(_reads_counts(program.function(name)) for name in ("edge", "lift", "merge")):
        return "a message depends on a count, which updates change"
    try:
        levels, acts_at_any = _levels(program)
    except CountReadError:
        return "compute() reads a degree or a count, which updates change"
    except Exception:  # an opaque value was used for more than it supports
        return 'compute() does more than "act once and retire"'
    if not levels:
        return "a vertex does not always keep the superstep in which it acts, send, and retire"
    return FirstArrival(min(levels), acts_at_any and _brings_always(program))


class _Superstep(Superstep):
    """A superstep that is not below 0."""

    def __ge__(self, other: object) -> bool:
        self._is_zero(other)
        return True

    def __lt__(self, other: object) -> bool:
        return not self >= other

    def _used(self, other: object) -> Number:
        return Number()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _used
    __hash__ = None


def _levels(program: VertexProgram) -> tuple[set[int], bool]:
    """Return the states that keep the superstep in which a vertex acts; none where a vertex may do something else.

    And whether every vertex acts that has a message.
    """
    names = functions(program, Casts(), meanings(program))
    begin = tuple(field.default for field in program.states)
    levels = {
        i
        for i, dtype in enumerate(program.state_dtypes)
        if dtype.kind == "i" and dtype.itemsize == 8 and not program.states[i].may_be_none and begin[i] < 0
    }
    acts_at_any = True
    for is_first in (True, False):
        for oracle in all_answers():
            now = _Superstep(is_first)
            inbox = tuple(Guess(oracle) for slot in program.slots for _ in slot.names)
            params = tuple(Guess(oracle) for _ in program.params)
            vertex = (Guess(oracle), Count(), Count())
            given = (now, Count(), Count()), params, (), vertex, begin, inbox, not is_first, (), ()
            after, flags, _, _ = names["compute"](*given)
            if any(isinstance(value, Count) for value in after):
                raise CountReadError
            acts = bool(flags & RETIRE and flags & SENT)
            acts_at_any &= acts or is_first
            if acts:
                levels = {
                    i
                    for i in levels
                    if after[i] is now or (is_first and type(after[i]) is int and after[i] == 0)
                }
            elif flags != HALT or any(a is not b for a, b in zip(after, begin, strict=True)):
                return set(), False
    return levels, acts_at_any


def _brings_always(program: VertexProgram) -> bool:
    """Return whether every edge brings a message; what follows a return is never reached."""
    edge = program.function("edge")
    if edge is None:
        return False
    last = next((i for i, line in enumerate(edge.body) if isinstance(line, ast.Return)), -1)
    reached = ast.Module(edge.body[: last + 1], [])
    returns = [node for node in walk(reached) if isinstance(node, ast.Return)]
    return last >= 0 and all(ast.unparse(node).startswith("return (True,") for node in returns)


def _reads_counts(function: ast.FunctionDef | None) -> bool:
    if function is None:
        return False
    read = [n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return bool({"__num_vertices", "__num_edges"} & set(read)) or read.count("__env") > 1
