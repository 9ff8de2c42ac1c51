"""Programs whose arithmetic has no result somewhere: one table for every engine, and what each must say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cells import program_of

from sigps import ComputeError, Graph, Param, State, Vertex, run

__all__ = ["CASES", "FaultCase", "Overflows", "assert_faults", "assert_named", "path_of"]

FIELDS = "n: State[int] = 3\nu: State[np.uint8] = 200\nw: State[np.uint64] = 5"
HALT = "\nself.vote_to_halt()"


class Overflows(Vertex, message=int):
    """A whole number beyond 64 bits, where `factor` is large."""

    factor: Param[int]
    value: State[int] = 1

    def compute(self, messages):
        self.value = self.value * self.factor
        if self.superstep == 3:
            self.vote_to_halt()


def ring(group: Any = None) -> Graph:
    """Every vertex has one in-edge and one out-edge."""
    return Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], group=group)


def pairs(group: Any = None) -> Graph:
    """Each vertex hears from two others."""
    return Graph.from_edges([0, 1, 2, 3, 0, 1, 2, 3], [1, 2, 3, 0, 2, 3, 0, 1], group=group)


def path_of(length: int) -> Callable[[Any], Graph]:
    def path(group: Any = None) -> Graph:
        return Graph.from_edges(np.arange(length - 1), np.arange(1, length), group=group)

    return path


def complete(group: Any = None) -> Graph:
    sources, targets = np.nonzero(~np.eye(5, dtype=bool))
    return Graph.from_edges(sources, targets, group=group)


@dataclass(frozen=True)
class FaultCase:
    """A program that ends with a ComputeError.

    Attributes:
        body: The body of compute().
        says: A part of the error's text.
        superstep: When it happens on compiled engines; None where engines differ.
        vertex: The vertex's id; None where it happens at several, or engines differ.
        line: The text of the line; None where it is that of compute() as a whole.
        graph: Returns the graph, for a group.
        message, fields, before: As of `program_of`.
    """

    body: str
    says: str = "fit 64 bits"
    superstep: int | None = 0
    vertex: int | None = None
    line: str | None = None
    graph: Callable[[Any], Graph] = ring
    message: str = "message=int"
    fields: str = FIELDS
    before: str = ""

    def program(self) -> Vertex:
        return program_of(self.body, self.fields, message=self.message, before=self.before)


def one_line(line: str, says: str, vertex: int | None = None) -> FaultCase:
    return FaultCase(line + HALT, says, vertex=vertex, line=line)


WAVE = """
if self.superstep == 0 and self.id == 0 or sum(messages) > 0:
    {}
self.vote_to_halt()
"""

CASES: dict[str, FaultCase] = {
    "division": one_line("self.n = 7 // (self.id - 2)", "zero", 2),
    "modulo": one_line("self.n = 7 % (self.id - 2)", "zero", 2),
    "power": one_line("self.n = (self.id - 6) ** 40", "fit"),
    "shift": one_line("self.n = 1 << (self.id + 62)", "fit"),
    "negative_shift": one_line("self.n = 1 << (1 - self.id // 2 * 2)", "negative"),
    "product": one_line("self.n = 4611686018427387904 * self.id", "fit"),
    "declared_type": one_line("self.u += self.id // 3 * 100", "fit", 3),
    "conversion": one_line("self.n = int(self.id * 1e300)", "int"),
    "negative_to_unsigned": one_line("self.w = np.uint64(self.id - 1)", "fit", 0),
    "in_a_method": FaultCase(
        "self.n = self.least(self.id)" + HALT,
        "zero",
        vertex=1,
        line="return 9 // (v - 1)",
        fields=FIELDS + "\ndef least(self, v):\n    return 9 // (v - 1)",
    ),
    "in_a_loop": FaultCase(
        "k = 1\nwhile k < 40:\n    k += k // (3 - self.id) + 1\nself.n = k" + HALT,
        "zero",
        vertex=3,
        line="k += k // (3 - self.id) + 1",
    ),
    "second_superstep": FaultCase(
        "self.n = 7 // (self.id - 2 * self.superstep)\nif self.superstep == 2:\n    self.vote_to_halt()",
        "zero",
        vertex=0,
        line="self.n = 7 // (self.id - 2 * self.superstep)",
    ),
    "sum": FaultCase(
        "self.n = sum(messages)\nif self.superstep == 0:\n    self.send_to_neighbors(2**62)" + HALT,
        superstep=1,
        graph=pairs,
    ),
    "sum_at_a_hub": FaultCase(
        "self.n = sum(messages)\nif self.superstep == 0:\n    self.send_to_neighbors(2**50)" + HALT,
        superstep=1,
        vertex=9000,
        graph=lambda group=None: Graph.from_edges(np.arange(9000), np.full(9000, 9000), group=group),
    ),
    "sum_of_a_record": FaultCase(
        "self.n = sum(m.a for m in messages)\nself.x = max((m.b for m in messages), default=0.0)\n"
        "if self.superstep == 0:\n    self.send_to_neighbors(Pair(2**62, 1.0))" + HALT,
        superstep=1,
        graph=pairs,
        message="message=Pair",
        before="class Pair(NamedTuple):\n    a: int\n    b: float",
    ),
    "weights_of_a_key": FaultCase(
        "self.n = messages.most_common(key=lambda m: m.a, weight=lambda m: m.b, default=0)\n"
        "if self.superstep == 0:\n    self.send_to_neighbors(Pair(7, 2**62))" + HALT,
        superstep=1,
        graph=pairs,
        message="message=Pair",
        before="class Pair(NamedTuple):\n    a: int\n    b: int",
    ),
    "lifted": FaultCase(
        "self.n = sum(m * m for m in messages)\n"
        "if self.superstep == 0:\n    self.send_to_neighbors(2**(29 + self.id))" + HALT,
        superstep=1,
        vertex=0,
    ),
    "along_an_edge": FaultCase(
        "self.n = sum(messages)\nif self.superstep == 0:\n    for edge in self.out_edges:\n"
        "        self.send(edge, 100 // (edge.target - 3))" + HALT,
        "zero",
        superstep=0,
        vertex=2,
        line="self.send(edge, 100 // (edge.target - 3))",
    ),
    "of_the_senders_id": FaultCase(
        "self.n = max(messages, default=0)\n"
        "if self.superstep == 1:\n    self.send_to_neighbors(1 // (self.id - 2))"
        + HALT.replace("\n", "\n    "),
        "zero",
        superstep=1,
        vertex=2,
        line="self.send_to_neighbors(1 // (self.id - 2))",
        graph=pairs,
    ),
    "listed_along_an_edge": FaultCase(
        "for m in messages:\n    self.n = self.n % 7 * 3 + m\nif self.superstep == 2:\n"
        "    for edge in self.out_edges:\n        self.send(edge, 9 // (self.id * 8 + edge.target - 26))"
        + HALT.replace("\n", "\n    "),
        "zero",
        superstep=2,
        vertex=3,
        line="self.send(edge, 9 // (self.id * 8 + edge.target - 26))",
        graph=complete,
    ),
    "listed": FaultCase(
        "for m in messages:\n    self.n = self.n * 3 + m\n"
        "if self.superstep < 60:\n    self.send_to_neighbors(self.id)\nelse:\n    self.vote_to_halt()",
        superstep=39,
        line="self.n = self.n * 3 + m",
    ),
    "sent_directly": FaultCase(
        "self.n = sum(messages)\nif self.superstep == 0:\n    self.send_to(1, 2**61 * 3)" + HALT,
        superstep=None,
    ),
    "combiner": FaultCase(
        "for m in messages:\n    self.n = m\nif self.superstep == 0:\n    self.send_to_neighbors(2**40)"
        + HALT,
        superstep=1,
        graph=pairs,
        message="message=int, combiner=product",
        before="def product(a, b):\n    return a * b",
        line="return a * b",
    ),
    "aggregator": FaultCase("self.total += 2**62" + HALT, fields=FIELDS + "\ntotal = Aggregator.sum(int)"),
    "contribution": FaultCase(
        "self.n = 2**61 * self.id\nself.total += self.n + 2**61" + HALT,
        vertex=3,
        line="self.total += self.n + 2**61",
        fields=FIELDS + "\ntotal = Aggregator.max(int)",
    ),
    "deep_in_a_path": FaultCase(
        WAVE.format("self.n = 7 // (self.id - 900)\n    self.send_to_neighbors(1)"),
        "zero",
        superstep=900,
        vertex=900,
        line="self.n = 7 // (self.id - 900)",
        graph=path_of(1500),
    ),
    "deep_along_an_edge": FaultCase(
        WAVE.format("for edge in self.out_edges:\n        self.send(edge, 10**4 // (901 - edge.target))"),
        "zero",
        superstep=900,
        vertex=900,
        line="self.send(edge, 10**4 // (901 - edge.target))",
        graph=path_of(1500),
    ),
    "neighbors": FaultCase(
        "for edge in self.out_edges:\n"
        "    self.n += 7 // (sum(1 for one, other in self.common_neighbors(edge)) + self.id - 7)" + HALT,
        "zero",
        vertex=4,
        line="self.n += 7 // (sum(1 for one, other in self.common_neighbors(edge)) + self.id - 7)",
        graph=complete,
        message="",
    ),
    "edge_state": FaultCase(
        "for edge in self.out_edges:\n    edge.kept += 130 // (self.id + 1) * (edge.target + 1)" + HALT,
        vertex=None,
        line="edge.kept += 130 // (self.id + 1) * (edge.target + 1)",
        fields=FIELDS + "\nkept: EdgeState[np.int8] = 0",
        graph=complete,
        message="",
    ),
}


def assert_named(error: ComputeError, case: FaultCase, *, is_interpreted: bool = False) -> None:
    """Check what an error says."""
    superstep, vertex = case.superstep, case.vertex
    assert superstep is None or error.superstep == superstep, str(error)
    assert vertex is None or f"in vertex {vertex}, superstep" in str(error), str(error)
    assert case.line is None or error.source == case.line, str(error)
    assert is_interpreted or case.says in str(error), str(error)
    assert error.file.startswith("<ipython-input") or is_interpreted


def assert_faults(name: str, **options: Any) -> None:
    """Check that a case ends as it must, and that it goes well as long as it is cut off before."""
    case = CASES[name]
    with pytest.raises(ComputeError) as caught:
        run(case.program(), case.graph(None), **options)
    assert_named(caught.value, case, is_interpreted=options["device"] == "python")
    if case.superstep:
        assert run(case.program(), case.graph(None), max_supersteps=case.superstep, **options).supersteps > 0
