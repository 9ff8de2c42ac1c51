"""Linear programs: what a vertex keeps is a constant, and a multiple of what its in-neighbours keep, added up.

    x(v) = a(v) + b(v) * (sum { c(e) * f(u) * x(u) : e = (u, v) } [+ d * sum { l(u) * x(u) : u a vertex }])

PageRank and Katz centrality are such programs: rounds towards the solution of these equations. Where it alone is asked
for, within a tolerance, residuals are pushed until they are small (`engine/cpu/linear.py`), and after an update only
those of rows that changed are made anew.

The proof runs compute() of a later superstep on opaque values: numbers that depend on nothing unknown; numbers that are
linear in the messages, the old state or an aggregator; and what was made of these in another way, as a measure of
change is. The last may decide nothing but when the run ends. Numbers a, b, f and l are not derived here: an engine
finds them by running compute() of each vertex twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sigps.compiler.program import HALT, SENT, Consumption, Delivery, VertexProgram
from sigps.compiler.proofs.monotone import all_answers, meanings
from sigps.compiler.proofs.opaque import Casts, functions, may_not_end
from sigps.compiler.proofs.rounds import names_read
from sigps.compiler.proofs.together import acts_together

__all__ = ["Linear", "linear"]


@dataclass(frozen=True)
class Linear:
    """A claim: the one state is linear in the one sum of messages, and perhaps in an aggregator, but not in itself.

    Attributes:
        lost: Position of the aggregator whose value adds to all states; None where none does.
        reads_ends: Whether what an edge passes depends on the ids of its ends.
    """

    lost: int | None
    reads_ends: bool = False


def linear(program: VertexProgram) -> Linear | str:
    """Return the claim, or why it does not hold."""
    if program.delivery is not Delivery.RECORD or program.consumption is not Consumption.COMBINED:
        return "messages are not combined along edges"
    if [slot.op for slot in program.slots] != ["sum"] or len(program.slots[0].names) != 1:
        return "there is not one sum of messages"
    if len(program.states) != 1 or len(program.record) != 1 or program.state_dtypes[0] != "f8":
        return "there is not one state, a float of 64 bits, and one number that is sent"
    if program.has_master or any(a.persistent for a in program.aggregators):
        return "there is a master, or an aggregator that keeps what it had"
    if program.reads_edges or program.reads_edge_links or may_not_end(program.module):
        return "compute() has a loop"
    if not acts_together(program):
        return "vertices do not all send together, and halt together"
    if any("__num_edges" in names_read(function) for function in program.module.body):
        return "it reads the number of edges, which updates change"
    edge = program.function("edge")
    if edge is not None and "__superstep" in names_read(edge):
        return "what an edge passes depends on the superstep"
    try:
        return _claim(program)
    except Exception:  # an opaque value was used for more than it supports
        return "compute() does more than add, and multiply by constants"


def _claim(program: VertexProgram) -> Linear | str:
    names = functions(program, Casts(), {**meanings(program), "abs": abs, "bool": bool})
    states, records, lost_texts = set(), set(), set()
    used, sent_used = frozenset[str](), frozenset[str]()
    for oracle in all_answers():

        def constant(text: str, ask: Callable[[], bool] = oracle.answer) -> _Term:
            return _Term(text, frozenset(), True, ask)

        def unknown(text: str, ask: Callable[[], bool] = oracle.answer) -> _Term:
            return _Term(text, frozenset({text}), True, ask)

        env = (_Later(oracle.answer), constant("n"), constant("m"))
        params = tuple(constant(f"p{i}") for i in range(len(program.params)))
        aggregates = tuple(unknown(f"a{i}") for i in range(len(program.aggregators)))
        vertex = constant("id"), constant("out"), constant("in")
        after, flags, record, given = names["compute"](
            env, params, aggregates, vertex, (unknown("x"),), (unknown("g"),), True, (), ()
        )
        (state,), (sent,) = after, record
        if not isinstance(state, _Term):
            return "the state is not linear in messages"
        if flags & HALT and not flags & SENT and state.text == "x":
            continue  # the end, of all vertices together
        states.add(state.text)
        used = state.unknowns
        if flags & SENT:
            if not isinstance(sent, _Term):
                return "what is sent is not linear in the state"
            sent_used |= sent.unknowns
            records.add(sent.text)
        if not flags & HALT:
            lost_texts |= {(i, bool(flags & SENT), _text(value)) for i, value in enumerate(given)}
    if "x" in used or "g" not in used or len(states) != 1 or len(records) != 1:
        return "the state is not always the same linear function of messages"
    if "x" in sent_used:
        return "what is sent depends on the state of before"
    lost = [i for i in range(len(program.aggregators)) if f"a{i}" in used]
    if len(lost) > 1 or any(program.aggregators[i].kind != "sum" for i in lost):
        return "more than one aggregator adds to states"
    found = {
        sends: {text for i, s, text in lost_texts if i in lost and s is sends} for sends in (True, False)
    }
    if any(None in texts or len(texts) > 1 for texts in found.values()):
        return "what vertices give to an aggregator is not linear in the state"
    passed = _passed_multiple(program, names)
    if passed is None:
        return "messages are no multiples"
    return Linear(lost[0] if lost else None, reads_ends="source" in passed or "target" in passed)


def _passed_multiple(program: VertexProgram, names: dict[str, Any]) -> str | None:
    """Return what every edge passes: the record, or a multiple of it that depends on the edge alone; else None."""

    def refuse() -> bool:
        raise TypeError("a message was compared")

    env = tuple(_Term(text, frozenset(), True, refuse) for text in ("s", "n", "m"))
    params = tuple(_Term(f"p{i}", frozenset(), True, refuse) for i in range(len(program.params)))
    columns = tuple(_Term(f"c{i}", frozenset(), True, refuse) for i in range(len(program.edge_columns)))
    ends = tuple(_Term(text, frozenset(), True, refuse) for text in ("source", "target"))
    record = (_Term("r", frozenset({"r"}), True, refuse),)
    passes, message = names["edge"](env, params, record, *ends, columns)
    value = names["lift"](env, params, message)[0]
    is_multiple = isinstance(value, _Term) and value.is_homogeneous and value.unknowns == {"r"}
    return value.text if passes is True and is_multiple else None


def _text(value: Any) -> str | None:
    """Return what a contribution is made of; None where it is not linear."""
    if isinstance(value, _Term):
        return value.text
    return repr(float(value)) if isinstance(value, (int, float)) else None


class _Later:
    """A superstep after the first: an oracle decides how it compares with others."""

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask

    def _compared(self, other: object) -> bool:
        return self._ask()

    def __eq__(self, other: object) -> bool:
        return False if type(other) is int and other == 0 else self._ask()

    def __gt__(self, other: object) -> bool:
        return True if type(other) is int and other == 0 else self._ask()

    __lt__ = __le__ = __ge__ = _compared
    __hash__ = None  # type: ignore[assignment]


class _Term:
    """A number that is linear in unknowns, as text. Constants, which have none, and aggregators can be compared.

    Args:
        text: What it is made of.
        unknowns: Those that it depends on.
        is_homogeneous: Whether it is 0 where these are.
        ask: Decides comparisons.
    """

    def __init__(
        self, text: str, unknowns: frozenset[str], is_homogeneous: bool, ask: Callable[[], bool]
    ) -> None:
        self.text, self.unknowns, self.is_homogeneous, self._ask = text, unknowns, is_homogeneous, ask

    def _added(self, other: Any, sign: str, *, swapped: bool = False) -> Any:
        if isinstance(other, _Other):
            return other
        text = other.text if isinstance(other, _Term) else repr(float(other))
        unknowns = self.unknowns | (other.unknowns if isinstance(other, _Term) else frozenset())
        both = [self.text, text][:: -1 if swapped else 1]
        is_zero = not isinstance(other, _Term) and other == 0
        parts = [t for t in (self, other) if isinstance(t, _Term)]
        is_homogeneous = (len(parts) == 2 or is_zero) and all(t.unknowns and t.is_homogeneous for t in parts)
        return _Term(f"({both[0]} {sign} {both[1]})", unknowns, is_homogeneous, self._ask)

    def _multiplied(self, other: Any, sign: str, *, swapped: bool = False) -> Any:
        if isinstance(other, _Other):
            return other
        text = other.text if isinstance(other, _Term) else repr(float(other))
        unknowns = other.unknowns if isinstance(other, _Term) else frozenset()
        divisor = self.unknowns if swapped else unknowns
        if (self.unknowns and unknowns) or (sign == "/" and divisor):
            return _Other(self._ask)
        both = [self.text, text][:: -1 if swapped else 1]
        of_unknowns = self if self.unknowns else other
        is_homogeneous = not isinstance(of_unknowns, _Term) or of_unknowns.is_homogeneous
        return _Term(f"({both[0]} {sign} {both[1]})", self.unknowns | unknowns, is_homogeneous, self._ask)

    def __add__(self, other: Any) -> Any:
        return self._added(other, "+")

    def __radd__(self, other: Any) -> Any:
        return self._added(other, "+", swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._added(other, "-")

    def __rsub__(self, other: Any) -> Any:
        return self._added(other, "-", swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._multiplied(other, "*")

    def __rmul__(self, other: Any) -> Any:
        return self._multiplied(other, "*", swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self._multiplied(other, "/")

    def __rtruediv__(self, other: Any) -> Any:
        return self._multiplied(other, "/", swapped=True)

    def __abs__(self) -> Any:
        return _Other(self._ask)

    def _compared(self, *other: object) -> bool:
        if not all(name.startswith("a") for name in self.unknowns):
            raise TypeError("what a vertex keeps or reads was compared")
        return self._ask()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _compared
    __hash__ = None  # type: ignore[assignment]


class _Other:
    """A number that is not linear. Whatever is made of it is none either; the oracle decides how it compares."""

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask

    def _used(self, *other: object) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __abs__ = (
        _used
    )

    def _compared(self, *other: object) -> bool:
        return self._ask()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _compared
    __hash__ = None  # type: ignore[assignment]
