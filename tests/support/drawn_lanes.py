"""Programs that send messages and have a parameter, drawn from the grammar of `drawn_programs.py`, for many runs.

    PYTHONPATH=tests/support python -m drawn_lanes 0 200

compares runs side by side, on one rank and on two, with each run interpreted by itself, for these seeds.
"""

from __future__ import annotations

import random
import sys
import textwrap
from typing import Any

import numpy as np
from cells import run_cell
from drawn_masters import RoundedAlike
from drawn_programs import FIELDS
from thread_group import ThreadGroup, run_ranks

from sigps import ComputeError, Graph, Vertex, run, run_many

__all__ = ["assert_lanes_are_runs", "drawn_sender"]

FOLDS = {
    "float": ["sum(messages)", "min(messages, default=2.5)", "max(messages, default=-1.0)", "len(messages)"],
    "int": ["sum(messages)", "min(messages, default=7)", "max(messages, default=-3)", "len(messages)"],
    "bool": ["any(messages)", "all(messages)", "len(messages)"],
}
SENDS = [
    "self.send_to_neighbors({value})",
    "for edge in self.out_edges:\n    self.send(edge, {value})",
    "for edge in self.out_edges:\n    if edge.target > self.id:\n        self.send(edge, {value})",
    "self.send_to((self.id * 5 + self.p) % 12, {value})",
]
ENDS = ["self.vote_to_halt()", "self.retire()", "pass"]


class _Drawing(RoundedAlike):
    def source(self) -> str:
        """Draw a class; three of four follow edges alone and fold their messages, as lanes can have them."""
        pick = self._random
        message = pick.choice(list(FOLDS))
        values = {"i": self.number(), "k": 3, "u": 200, "f": pick.uniform(-9, 9), "b": pick.random() < 0.5}
        values |= {"w": pick.randrange(99), "v": (0.5, -1.0, 0.0, 3.0), "n": (1, 0, -2, 5)}
        heard = pick.choice(FOLDS[message])
        lines = [f"heard = {heard}", f"count = {pick.choice(['len(messages)', '0'])}"]
        if pick.random() < 0.15:
            lines = ["heard, count = 0, 0", "for got in messages:", "    heard = heard * 3 + int(got)"]
        lines += ["i0, i1, i2 = self.p, count, self.superstep"]
        lines += [f"f{n} = {pick.choice(['heard * 1.0', '0.5 * self.p', 'self.f'])}" for n in range(3)]
        lines += [f"b{n} = {pick.choice(['count > 0', 'self.b', 'self.p > 1'])}" for n in range(3)]
        lines += ["m0, m1 = 0.5, 2", "v0 = self.v", "v1 = v0 * 0.5", "n0 = self.n"]
        for _ in range(pick.randrange(1, 4)):
            lines += self.statement(2)
        lines += [
            f"self.i = {self.whole(1)}",
            f"self.f = {self.real(1)} + heard",
            f"self.b = {self.truth(1)}",
        ]
        value = {"float": "self.f * 0.5", "int": "self.i % 97 + i1 % 5", "bool": self.truth(1)}[message]
        send = pick.choice(SENDS[:3]) if pick.random() < 0.85 else SENDS[3]
        lines += [f"if {pick.choice(['self.superstep < 3 + self.p', self.truth(1), 'i2 < 4'])}:"]
        lines += textwrap.indent(send.format(value=value), "    ").splitlines()
        lines += [
            "self.total += self.i % 1000",
            "self.most += self.f",
            f"if {self.truth(1)} or i2 > 1 + self.p:",
        ]
        lines += [f"    {pick.choice(ENDS)}"]
        head = f"class Program(Vertex, message={message}):\n"
        fields = "p: Param[int]\ntotal = Aggregator.sum(int)\nmost = Aggregator.max(float)\n"
        body = "def compute(self, messages):\n" + textwrap.indent("\n".join(lines), "    ")
        return head + textwrap.indent(f"{fields}{FIELDS.format(**values)}\n{body}", "    ")

    def number(self) -> int:
        return self._random.choice([0, 1, -1, 5, 2**40, self._random.randrange(-1000, 1000)])


_MOST = 7
"""Supersteps of a run at most."""


def drawn_sender(seed: int) -> type[Vertex]:
    """Return a class with one parameter, `p`, whose vertices send and read messages."""
    cls: type[Vertex] = run_cell(_Drawing(seed).source())["Program"]
    return cls


def drawn_graph(seed: int, group: Any = None) -> Graph:
    """Return a graph of twelve vertices, directed or not, with parallel edges and loops."""
    pick = random.Random(seed)
    ends = [[pick.randrange(12) for _ in range(30)] for _ in range(2)]
    directed = pick.random() < 0.5
    return Graph.from_edges(*ends, directed=directed, vertices=range(12), group=group)


def assert_lanes_are_runs(seed: int) -> str:
    """Compare three runs side by side, on one rank and on two, with the interpreter; return how they ended.

    Returns:
        `"same"`, or `"an error"`, the same one, where a run has one.
    """
    cls, values = drawn_sender(seed), [0, 3, 1]
    options: dict[str, Any] = {"max_supersteps": _MOST, "asynchronous": False}
    expected: Any = []
    try:
        for p in values:
            expected.append(_left(run(cls(p=p), drawn_graph(seed), device="python", **options)))
    except ComputeError as error:
        expected = str(error).split(", in vertex")[0]

    def found(group: Any = None) -> Any:
        results = run_many(cls, drawn_graph(seed, group), p=values, device="cpu", threads=1, **options)
        assert results.one_by_one == ""
        return [_left(result) for result in results]

    def on_rank(group: ThreadGroup) -> Any:
        return found(group)

    for way in (found, lambda: run_ranks(2, on_rank)[0]):
        try:
            left = way()
        except ComputeError as error:
            left = str(error).split(", in vertex")[0]
        assert left == expected, (seed, left, expected)
    return "an error" if isinstance(expected, str) else "same"


def _left(result: Any) -> Any:
    arrays = {name: result[name] for name in result.fields} | dict(result.aggregators)
    # Compiled code does not know yet, at the last superstep, whether what is sent reaches anybody.
    reason = result.reason if result.supersteps < _MOST else ""
    return {n: _bits(np.asarray(a)) for n, a in arrays.items()}, reason, result.supersteps


def _bits(values: Any) -> bytes:
    """Return the bits of values; of a NaN those of one NaN."""
    found: bytes = (
        np.where(values != values, np.nan, values) if values.dtype.kind == "f" else values
    ).tobytes()
    return found


if __name__ == "__main__":
    ends = [assert_lanes_are_runs(seed) for seed in range(int(sys.argv[1]), int(sys.argv[2]))]
    print({end: ends.count(end) for end in set(ends)})
